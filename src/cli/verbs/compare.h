/* compare.h - what a comparison holds while it runs; shared by the files of `anytime compare`.
 *
 *     words ─► entries ─► every entry with seed 1, every entry with seed 2, .. ─► numbers
 *     numbers ─► table, sentences, compare.json, compare.csv; the runs' own files ─► plots
 */
#ifndef AT_CLI_VERBS_COMPARE_H
#define AT_CLI_VERBS_COMPARE_H

#include "cli/launch.h"
#include "report/summary/stats.h"

/* What is taken from each run: id, name in compare.json and compare.csv, where result.json has it
 * (an object and a key in it, or just a key; none for TARGET, which is worked out). */
#define AT_MEASURE_MAP(X)                                     \
    X(SECONDS, "seconds", "seconds", NULL)                    \
    X(STEPS, "steps", "steps", NULL)                          \
    X(STEP_SECONDS, "step_seconds", "step_seconds", "mean")   \
    X(RATE, "samples_per_second", "samples_per_second", NULL) \
    X(BATCH, "mean_batch", "mean_batch", NULL)                \
    X(USEFUL, "useful_fraction", "useful_fraction", NULL)     \
    X(TRAIN_LOSS, "train_loss", "train", "loss")              \
    X(TEST_LOSS, "test_loss", "test", "loss")                 \
    X(ACCURACY, "test_accuracy", "test", "accuracy")          \
    X(STALENESS, "mean_staleness", "staleness", "mean")       \
    X(TARGET, "target_seconds", NULL, NULL)

typedef enum at_measure {
#define X(id, name, key, part) AT_MEASURE_##id,
    AT_MEASURE_MAP(X)
#undef X
        AT_MEASURE_COUNT
} at_measure;
extern const char *const at_measure_name[AT_MEASURE_COUNT];

enum { AT_LABEL_SIZE = 48, AT_COMPARE_PATH_SIZE = 4096 };

/* One of the things compared: a strategy, perhaps with options of its own. */
typedef struct at_entry {
    const char *text;                 /* as typed */
    char        label[AT_LABEL_SIZE]; /* also the start of its runs' folder names */
    bool        labelled;             /* by the user */
    at_parsed   parsed;               /* the common options with its own over them */
    json_t     *own;                  /* name to text, for compare.json */
    json_t     *runs;                 /* one object a complete run */
    uint32_t    run_count;
    double     *value[AT_MEASURE_COUNT]; /* by repeat, run_count of them; NAN: not known */
} at_entry;

typedef struct at_compare {
    const at_parsed *parsed;
    const char      *command;
    char             folder[AT_COMPARE_PATH_SIZE];
    at_limits        limits; /* the targets only */
    at_entry        *entry;  /* the first one is what the others are measured against */
    uint32_t         entries, repeats;
} at_compare;

/* ---- entries (compare_entry.c) ------------------------------------------------------------- */

/* Reads 'amb:time-limit=50ms,label=fast' over a copy of the common options. A part without '='
 * belongs to the value before it, so that 'fmb:straggler=speed:1,2' works. */
at_err at_entry_open(at_entry *entry, const char *text, const at_parsed *common, at_fail *fail);
void   at_entry_close(at_entry *entry); /* accepts a zeroed one */

/* Gives every entry a label of its own: what the user said, else the strategy's name, else the
 * entry's text with a number where even that is there twice. */
at_err at_entry_label_all(at_entry *entries, uint32_t count, at_fail *fail);

/* ---- numbers (compare_result.c) ------------------------------------------------------------ */

/* Takes in the result.json of a complete run, which lies in `folder` below the comparison's. */
at_err at_compare_add(at_compare *compare, at_entry *entry, const json_t *result,
                      const char *folder, at_fail *fail);

/* A number of a result.json; NAN when it is not there. */
double at_measure_of(const json_t *result, at_measure measure);

/* The number for a JSON document, which has no NAN. */
json_t *at_measure_json(at_measure measure, double value);

/* Mean over an entry's runs. */
at_interval at_compare_mean(const at_entry *entry, at_measure measure);

/* How many times better than the first entry in the pairs of runs with the same seed: more samples
 * per second (RATE), or less time (TARGET). */
at_interval at_compare_speedup(const at_compare *compare, const at_entry *entry,
                               at_measure measure);

/* How many of the entry's runs reached all targets. */
uint32_t at_compare_reached(const at_entry *entry);

/* compare.json as a document; NULL when there is no memory. */
json_t *at_compare_json(const at_compare *compare);

/* Writes compare.json and compare.csv. */
at_err at_compare_write(const at_compare *compare, at_fail *fail);

/* ---- for people (compare_show.c, compare_plot.c) ------------------------------------------- */

enum { AT_FINDING_SIZE = 400 };

/* One sentence about an entry that is not the first. Returns buffer. */
const char *at_compare_finding(const at_compare *compare, const at_entry *entry, char *buffer,
                               size_t size);

/* Prints the table and the sentences to stdout. */
at_err at_compare_print(const at_compare *compare, at_fail *fail);

/* Draws the panels into the comparison's folder. `names` becomes a list of the pictures, parted by
 * blanks. A picture that cannot be drawn is told on stderr and is no failure; a full disk is. */
at_err at_compare_plot(const at_compare *compare, char *names, size_t size, at_fail *fail);

#endif
