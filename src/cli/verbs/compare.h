/* compare.h - the state and the numbers of a comparison; report.c uses the measures as well.
 *
 *     words ─► entries ─► every entry with seed 1, every entry with seed 2, .. ─► numbers
 *     numbers ─► table, findings, compare.json, compare.csv; the files of the runs ─► plots
 */
#ifndef AT_CLI_VERBS_COMPARE_H
#define AT_CLI_VERBS_COMPARE_H

#include "cli/launch.h"
#include "report/summary/stats.h"

/* Measures of a run: id, name in compare.json and compare.csv, place in result.json (a key, or an
 * object and a key in it; none for TARGET, which is computed). */
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
    X(TARGET, "target_seconds", NULL, NULL)

typedef enum at_measure {
#define X(id, name, key, part) AT_MEASURE_##id,
    AT_MEASURE_MAP(X)
#undef X
        AT_MEASURE_COUNT
} at_measure;
extern const char *const at_measure_name[AT_MEASURE_COUNT];

enum { AT_LABEL_SIZE = 48, AT_COMPARE_PATH_SIZE = 4096 };

/* One of the compared configurations: a strategy, optionally with its own options. */
typedef struct at_entry {
    const char *text;                 /* as typed */
    char        label[AT_LABEL_SIZE]; /* also begins the folder names of its runs */
    bool        labelled;             /* by the user */
    at_parsed   parsed;               /* the common options, overridden by its own */
    json_t     *own;                  /* its own options as text, for compare.json */
    json_t     *runs;                 /* one object per finished run */
    bool        simulated;
    uint32_t    run_count;
    double     *value[AT_MEASURE_COUNT]; /* run_count values, by repeat; NAN: unknown */
} at_entry;

typedef struct at_compare {
    const at_parsed *parsed;
    const char      *command;
    char             folder[AT_COMPARE_PATH_SIZE];
    at_limits        limits; /* the targets only */
    at_entry        *entry;  /* the first one is the baseline */
    uint32_t         entries, repeats;
} at_compare;

/* Runs are numbered: every entry with the first seed, every entry with the second, and so on.
 *
 * Makes a run in its folder. */
at_err at_compare_run(at_compare *compare, uint32_t run, bool quiet, at_fail *fail);

/* All runs, so many at a time, each in a process of its own; for simulations. */
at_err at_compare_run_jobs(at_compare *compare, uint32_t jobs, at_fail *fail);

/* Adds a run from the result.json in its folder; runs MUST be added in order. */
at_err at_compare_add_run(at_compare *compare, uint32_t run, at_fail *fail);

/* Says on stderr that a run begins; `finished` of them took `spent`. */
void at_compare_progress(const at_compare *compare, uint32_t run, uint32_t finished, at_ns spent);

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

enum { AT_FINDING_SIZE = 400 };

/* Writes a sentence that compares an entry with the first one. Returns buffer. */
const char *at_compare_finding(const at_compare *compare, const at_entry *entry, char *buffer,
                               size_t size);

/* Prints the table and the findings to stdout. */
at_err at_compare_print(const at_compare *compare, at_fail *fail);

#endif
