/* compare.h - the state and the numbers of a comparison; report.c uses the measures as well.
 *
 *     words ─► entries ─► every entry with seed 1, every entry with seed 2, .. ─► numbers
 *     numbers ─► table, findings, compare.json, compare.csv; files of the runs ─► plots, page
 *     compare.json and the folders of runs ─► a comparison that goes on (--resume)
 */
#ifndef AT_CLI_VERBS_COMPARE_H
#define AT_CLI_VERBS_COMPARE_H

#include "cli/launch.h"
#include "model_io/checkpoint.h"
#include "record/run_lock.h"
#include "report/summary/stats.h"

/* Measures of a run: id, name in compare.json and compare.csv, place in result.json (a key, or an
 * object and a key in it; none for TARGET and those at equal time, which are computed). */
#define AT_MEASURE_MAP(X)                                       \
    X(SECONDS, "seconds", "seconds", NULL)                      \
    X(STEPS, "steps", "steps", NULL)                            \
    X(STEP_SECONDS, "step_seconds", "step_seconds", "mean")     \
    X(RATE, "samples_per_second", "samples_per_second", NULL)   \
    X(BATCH, "mean_batch", "mean_batch", NULL)                  \
    X(USEFUL, "useful_fraction", "useful_fraction", NULL)       \
    X(TRAIN_LOSS, "train_loss", "train", "loss")                \
    X(TEST_LOSS, "test_loss", "test", "loss")                   \
    X(ACCURACY, "test_accuracy", "test", "accuracy")            \
    X(STALENESS, "mean_staleness", "staleness", "mean")         \
    X(DOWN, "to_workers_bytes", "messages", "to_workers_bytes") \
    X(UP, "to_hub_bytes", "messages", "to_hub_bytes")           \
    X(TARGET, "target_seconds", NULL, NULL)                     \
    X(EQUAL_SECONDS, "equal_time_seconds", NULL, NULL)          \
    X(EQUAL_ACCURACY, "equal_time_accuracy", NULL, NULL)        \
    X(EQUAL_LOSS, "equal_time_test_loss", NULL, NULL)           \
    X(FIRST_ACCURACY, "equal_time_first_accuracy", NULL, NULL)  \
    X(FIRST_LOSS, "equal_time_first_test_loss", NULL, NULL)

typedef enum at_measure {
#define X(id, name, key, part) AT_MEASURE_##id,
    AT_MEASURE_MAP(X)
#undef X
        AT_MEASURE_COUNT
} at_measure;
extern const char *const at_measure_name[AT_MEASURE_COUNT];

enum { AT_LABEL_SIZE = 48, AT_TITLE_SIZE = 128, AT_COMPARE_PATH_SIZE = 4096 };

/* Where the value of the option of --tune, or else the learning rate, comes from. */
typedef enum at_lr_source {
    AT_LR_COMMON, /* the options of the whole comparison, or the default */
    AT_LR_OWN,    /* the entry itself */
    AT_LR_TUNED   /* a search */
} at_lr_source;

/* One of the compared configurations: a strategy, optionally with its own options. */
typedef struct at_entry {
    const char *text;                 /* as typed */
    char        label[AT_LABEL_SIZE]; /* also begins the folder names of its runs */
    char        title[AT_TITLE_SIZE]; /* for plots */
    bool        labelled;             /* by the user */
    at_parsed   parsed;               /* the common options, overridden by its own */
    json_t     *own;                  /* its own options as text, for compare.json */
    json_t     *runs;                 /* one object per finished run */
    json_t     *tuned; /* what --tune found for it, for compare.json; NULL: nothing */
    double      lr;    /* learning rate; NAN: not known */
    bool        simulated;
    char        sample_time[32]; /* that was measured for it; "": it did not ask for that */
    uint32_t    run_count;
    double     *value[AT_MEASURE_COUNT]; /* run_count values, by repeat; NAN: unknown */
} at_entry;

typedef struct at_compare {
    const at_parsed *parsed;
    const char      *command;
    const char      *what; /* "compare", "sweep" or "tune", for messages */
    char             folder[AT_COMPARE_PATH_SIZE];
    at_limits        limits; /* the targets only */
    at_entry        *entry;  /* the first one is the baseline */
    uint32_t         entries, repeats;
    json_t          *before; /* compare.json of the comparison that is resumed; NULL: a new one */
    at_run_lock      lock;
} at_compare;

/* ---- compare.c, for tuning ------------------------------------------------------------------ */

/* An entry with the options of `parsed`, and room for the values of so many runs. Close it in any
 * case. */
at_err at_entry_open(at_entry *entry, const char *text, const at_parsed *parsed, uint32_t repeats,
                     at_fail *fail);
void   at_entry_close(at_entry *entry);

/* Gives an entry a unique label made of `stem`: letters that do not suit folder names become
 * dashes, and a number is appended if necessary. */
void at_entry_label(at_compare *compare, at_entry *entry, const char *stem);

/* Checks what a run of the entry would refuse only when it starts. */
at_err at_entry_check(at_compare *compare, at_entry *entry, at_fail *fail);

/* Prints sizes, memory and time of the runs instead of making them (--dry-run). */
at_err at_compare_dry_run(const at_compare *compare, at_fail *fail);

/* Makes all runs. */
at_err at_compare_run_all(at_compare *compare, at_fail *fail);

/* ---- compare_tune.c ------------------------------------------------------------------------- */

/* Checks --tune NAME=V1,V2,..; AT_OK without it. */
at_err at_tune_check(at_compare *compare, at_fail *fail);

/* Runs every entry that does not set the option itself with each of the values, with a seed that
 * the comparison does not use, in the subfolder `tune`; then gives each entry its best value: the
 * one that reaches the target first, or else has the best accuracy (or test loss) at the end. */
at_err at_tune(at_compare *compare, at_fail *fail);

/* What the search was, for compare.json; null without --tune. */
json_t *at_tune_json(const at_compare *compare);

/* Where the learning rate of an entry comes from. */
at_lr_source at_entry_lr_source(const at_entry *entry);

/* The label for plots: with the value that was found for it. Returns buffer. */
const char *at_entry_title(const at_entry *entry, char *buffer, size_t size);

/* Prints which values were chosen, and what to know about those that were not tuned. */
void at_tune_print(const at_compare *compare);

/* ---- running -------------------------------------------------------------------------------- */

/* Runs are numbered: every entry with the first seed, every entry with the second, and so on.
 *
 * The folder of a run. */
at_err at_compare_run_folder(const at_compare *compare, uint32_t run, char *path, size_t size,
                             at_fail *fail);

/* Makes a run in its folder. */
at_err at_compare_run(at_compare *compare, uint32_t run, bool quiet, at_fail *fail);

/* All runs, so many at a time, each in a process of its own; for simulations. */
at_err at_compare_run_jobs(at_compare *compare, uint32_t jobs, at_fail *fail);

/* Adds a run from the result.json in its folder; runs MUST be added in order. */
at_err at_compare_add_run(at_compare *compare, uint32_t run, at_fail *fail);

/* Says on stderr that a run begins; `finished` of them took `spent`, and `remaining` are not
 * finished, this one included. */
void at_compare_progress(const at_compare *compare, uint32_t run, uint32_t finished,
                         uint32_t remaining, at_ns spent);

/* The error of a comparison that a signal has stopped between two runs. */
at_err at_compare_stopped(at_fail *fail);

/* Names the run in an error. */
at_err at_compare_wrap_run(const at_compare *compare, uint32_t run, at_fail *fail);

/* Adds the result.json of a finished run in `folder`, a subfolder of the comparison's. */
at_err at_compare_add(at_compare *compare, at_entry *entry, const json_t *result,
                      const char *folder, at_fail *fail);

/* Reads a measure from a result.json; NAN if missing. */
double at_measure_of(const json_t *result, at_measure measure);

/* A measure as JSON; NAN becomes null. */
json_t *at_measure_json(at_measure measure, double value);

/* Mean over the runs of an entry. */
at_interval at_compare_mean(const at_entry *entry, at_measure measure);

/* Speedup relative to the first entry over pairs of runs with the same seed: ratio of samples per
 * second (RATE) or of times (TARGET). */
at_interval at_compare_speedup(const at_compare *compare, const at_entry *entry,
                               at_measure measure);

/* Number of runs of the entry that reached all targets. */
uint32_t at_compare_reached(const at_entry *entry);

/* compare.json as a document; NULL when out of memory. */
json_t *at_compare_json(const at_compare *compare);

/* Writes compare.json and compare.csv. */
at_err at_compare_write(const at_compare *compare, at_fail *fail);

/* ---- compare_resume.c ------------------------------------------------------------------------ */

/* Takes folder, entries and options from the folder that --resume names, and goes to the folder in
 * which the comparison was started. The command of programs has to be given again, in that
 * folder. */
at_err at_compare_resume(at_compare *compare, at_parsed *parsed, at_fail *fail);

/* Gives an entry what was measured for it in the earlier part, if there was one. */
at_err at_compare_restore_entry(at_compare *compare, uint32_t index, at_fail *fail);

/* Whether the earlier part has made this run, and how many it has made. */
bool     at_compare_is_made(const at_compare *compare, uint32_t run);
uint32_t at_compare_count_made(const at_compare *compare);

/* Prepares the folder of a run that was under way, if there is one: opens its checkpoint to resume
 * from, or removes the folder, so that the run is made again. */
at_err at_compare_take_up(const char *folder, bool simulated, at_checkpoint *checkpoint,
                          bool *resumes, at_fail *fail);

/* ---- compare_show.c -------------------------------------------------------------------------- */

/* Prints the numbers, then draws the plots and writes the page that --plots asks for. */
at_err at_compare_show(at_compare *compare, at_fail *fail);

/* ---- compare_findings.c --------------------------------------------------------------------- */

/* Sets the measures at equal time of the last run of an entry: its accuracy and test loss, and
 * those of the first entry with the same seed, when the shorter of the two runs ended. Values are
 * interpolated between evaluations. They stay unknown where no curve was recorded, or where a run
 * had not been evaluated yet. */
at_err at_compare_equal_time(at_compare *compare, at_entry *entry, at_fail *fail);

/* ACCURACY or, for models that have none, TEST_LOSS. */
at_measure at_compare_quality(const at_compare *compare);

/* "accuracy" or "test loss". */
const char *at_compare_quality_name(const at_compare *compare);

/* An entry beside the first one at equal time. */
typedef struct at_equal_time {
    double      seconds, here, first; /* means; NAN: unknown */
    at_interval difference;           /* over pairs of runs with the same seed */
} at_equal_time;

/* By ACCURACY or TEST_LOSS. Of the first entry all is unknown. */
at_equal_time at_compare_at_equal_time(const at_entry *entry, at_measure quality);

enum { AT_FINDING_SIZE = 600 };

/* Writes a sentence that compares an entry with the first one. Returns buffer. */
const char *at_compare_finding(const at_compare *compare, const at_entry *entry, char *buffer,
                               size_t size);

/* ---- compare_result.c ------------------------------------------------------------------------ */

/* Prints the table and the findings to stdout. */
at_err at_compare_print(const at_compare *compare, at_fail *fail);

#endif
