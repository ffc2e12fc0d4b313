/* options.h - the option table: every option is one row.
 *
 * The table drives the parser, --help, the config file and the echo in result.json. Values come
 * from `--name value`, `--name=value`, a config file of `name = value` lines (--config FILE), or an
 * entry of compare ('amb:lr=0.05'); a later value replaces an earlier one.
 */
#ifndef AT_CLI_OPTIONS_OPTIONS_H
#define AT_CLI_OPTIONS_OPTIONS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text.h"
#include "base/time.h"

typedef struct at_settings {
    /* model and data */
    const char *model, *data, *test_data, *prep, *init, *label, *ignore, *missing, *header;
    int64_t     hash_bits;
    double      test_split;
    bool        data_cache;
    /* workers and strategy */
    const char *strategy, *work, *gather, *release, *newer, *stale, *size, *mix, *outer;
    const char *switch_to;
    const char *time_limit, *deal, *shard, *compress;
    int64_t     workers; /* -1: one per core */
    int64_t     workers_min, workers_max;
    at_ns       join_timeout;
    int64_t     batch, micro_batch;
    bool        respawn;
    at_ns       lease;
    /* optimization and computation */
    const char *optimizer, *lr_schedule, *lr_scale, *engine, *nonfinite, *bind;
    double      lr, weight_decay, clip, label_smoothing;
    int64_t     threads;
    /* delays and faults */
    const char *straggler, *straggler_scale, *straggler_batch, *sample_time, *faults;
    at_ns       latency, comm_delay, micro_cost;
    double      bandwidth, jitter, trace_scale;
    const char *broadcast, *reduce, *allreduce, *worker_bandwidth, *worker_latency;
    /* stopping and evaluation */
    int64_t     steps, samples;
    double      epochs;
    at_ns       seconds;
    const char *target;
    int64_t     eval_every, eval_size;
    /* the run and its files */
    int64_t     seed, repeats, jobs;
    const char *run, *out, *plots, *record, *world, *config, *over, *tune, *from, *resume,
        *checkpoint_every;
    const char *batches, *slices, *format, *sizes;
    const char *resources, *record_limit, *unpack_limit;
    /* measured logs */
    const char *unit, *html, *delays;
    bool        normalised;
    double      cost;
    int64_t     trace_events;
    at_ns       trace_from;
    const char *listen, *token, *hub_file;
    at_ns       reconnect;
    bool        standby;
    const char *log_dir, *log_style;
    const char *columns, *where, *sort; /* of runs */
    int64_t     restarts;
    bool        watch, open, once;
    bool        scores, crop; /* of a trained model: needs labels, crops pictures; no options */
    const char *net_text;     /* of a trained model: kept with its weights; no option */
    bool        json, quiet, dry_run;
    const char *help; /* NULL, "yes" or "all" */
} at_settings;

/* Which verbs an option belongs to. */
enum {
    AT_FOR_TRAIN = 1,
    AT_FOR_COMPARE = 2,
    AT_FOR_DATA = 4,
    AT_FOR_MODELS = 8,
    AT_FOR_DOCTOR = 16,
    AT_FOR_SWEEP = 32,
    AT_FOR_REPLAY = 64,
    AT_FOR_SIMULATE = 128,
    AT_FOR_REPORT = 256,
    AT_FOR_SLICES = 512,
    AT_FOR_PREDICT = 1024,
    AT_FOR_EVAL = 2048,
    AT_FOR_EXPORT = 4096,
    AT_FOR_LINK = 8192,
    AT_FOR_WATCH = 16384,
    AT_FOR_SHOW = 1 << 18,
    AT_FOR_LIST = 1 << 19, /* of runs */
    AT_FOR_RUN = 1 << 20,  /* programs with their own loop, see seat_options.c */
    AT_FOR_HUB = 1 << 16,  /* workers on other machines */
    AT_FOR_WORK = 1 << 17,
    AT_FOR_LIVE = 32768, /* accompanies a run but is not one of its settings: never echoed */
    AT_FOR_TRAINED = AT_FOR_PREDICT | AT_FOR_EVAL | AT_FOR_EXPORT,
    AT_FOR_RUNS = AT_FOR_TRAIN | AT_FOR_COMPARE | AT_FOR_SWEEP,
    AT_FOR_ADVISE = 1 << 21,
    AT_FOR_CALIBRATE = 1 << 22,
    AT_FOR_ALL = (1 << 24) - 1,
    AT_FOR_TEXTS = 1 << 24 /* only print: no options but --help */
};

typedef enum at_option_type {
    AT_OPTION_TEXT,
    AT_OPTION_LIST,     /* may be given several times; the values are lines */
    AT_OPTION_STRATEGY, /* NAME[:ARGS]; --help lists the strategies */
    AT_OPTION_RULE,     /* a rule of the family of the option's name; --help lists the rules */
    AT_OPTION_WHOLE,
    AT_OPTION_REAL,
    AT_OPTION_DURATION,
    AT_OPTION_YES_NO,
    AT_OPTION_SWITCH /* yes or no, as AT_OPTION_YES_NO, or another word of `value` (no|yes|..) */
} at_option_type;

/* How often an option is needed: --help shows RARE ones only with `all`. Of the last two kinds,
 * `train` takes the options but leaves listing them to `simulate` and `watch`; so it does with
 * those of a single data format, which `data` lists, too. */
typedef enum at_option_level {
    AT_LEVEL_MAIN,
    AT_LEVEL_COMMON,
    AT_LEVEL_RARE,
    AT_LEVEL_SIMULATION,
    AT_LEVEL_WATCHING
} at_option_level;

/* Headings of --help, in order. */
#define AT_OPTION_GROUP_MAP(X)             \
    X(MODEL, "Model and data")             \
    X(WORKERS, "Workers and strategy")     \
    X(OPTIMIZATION, "Optimization")        \
    X(COMPUTATION, "Computation")          \
    X(DELAYS, "Induced delays and faults") \
    X(STOPPING, "Stopping and evaluation") \
    X(MEASUREMENT, "Measurement")          \
    X(RUN, "Run and output files")         \
    X(DASHBOARD, "Dashboard")              \
    X(GENERAL, "General")

typedef enum at_option_group {
#define X(id, name) AT_GROUP_##id,
    AT_OPTION_GROUP_MAP(X)
#undef X
        AT_GROUP_COUNT
} at_option_group;
extern const char *const at_option_group_name[AT_GROUP_COUNT];

typedef struct at_option {
    const char     *name;
    at_option_type  type;
    size_t          offset;   /* of the field in at_settings */
    const char     *fallback; /* NULL: none */
    double          min, max; /* of numbers */
    unsigned        verbs;    /* AT_FOR_..; rows with the same name have no verb in common */
    at_option_level level;
    at_option_group group;
    const char     *value; /* placeholder in --help, [..] if optional; NULL: yes or no */
    const char     *help;
} at_option;

/* Another spelling of an option, as in earlier versions. */
typedef struct at_option_alias {
    const char *name;
    const char *value;  /* the row is for this value only; NULL: for any other */
    const char *option; /* what it sets .. */
    const char *text;   /* .. to this, with the value as %s. ":k=8" is an argument for whatever
                           rule is used */
} at_option_alias;

enum { AT_OPTIONS_MAX = 160, AT_WORDS_MAX = 64, AT_HELP_SHORT_MAX = 30 };

/* Settings, and which of them the user gave. */
typedef struct at_parsed {
    at_settings settings;
    bool        given[AT_OPTIONS_MAX]; /* by row */
    bool        inherits;              /* those of an earlier run, which settle what is default */
    const char *word[AT_WORDS_MAX];    /* arguments that are not options, in order */
    uint32_t    words;
    /* The arguments after `--`: a command. NULL: there are none; otherwise NULL ends them. */
    const char *const *command;
    at_arena           texts; /* owns copied texts */
    /* The MPI launcher that started this process as one of several ranks, or NULL. */
    const struct at_launcher *launcher;
    at_ns                     started; /* the program, by at_clock_now; 0: not its only run */
} at_parsed;

extern const at_option       at_options[]; /* ends with a row of zeros */
extern const at_option_alias at_option_aliases[];

/* Sets all defaults. AT_ERR_FAILED when out of memory. */
at_err at_options_init(at_parsed *parsed, at_fail *fail);
/* Releases the texts; accepts a zeroed one. */
void at_options_deinit(at_parsed *parsed);

/* A copy that owns its own texts. */
at_err at_options_copy(at_parsed *to, const at_parsed *from, at_fail *fail);

/* Takes the user's defaults from the file that ANYTIME_CONFIG names (empty: none), or else from
 * ~/.config/anytime/config if it exists: lines as in --config, for all verbs. They do not count as
 * given, so the settings of a run that is resumed or evaluated come first. */
at_err at_options_defaults(at_parsed *parsed, unsigned verb, at_fail *fail);

/* Parses the arguments after the verb. An option that is unknown or belongs to another verb is
 * refused with the nearest known name; so is a value that does not fit. */
at_err at_options_parse(at_parsed *parsed, unsigned verb, int argc, const char *const *argv,
                        at_fail *fail);

/* Sets one option, as if it had been typed. */
at_err at_options_set(at_parsed *parsed, unsigned verb, const char *name, const char *value,
                      at_fail *fail);

/* Takes the values of an echo (see below) for options of these verbs that the user did not give,
 * except those named in `except`. */
at_err at_options_inherit(at_parsed *parsed, unsigned verb, const json_t *echo,
                          const char *const *except, size_t except_count, at_fail *fail);

/* Copies a text; the copy lives as long as the options. */
at_err at_options_keep(at_parsed *parsed, const char *text, const char **copy, at_fail *fail);

/* Refuses arguments that are not options. */
at_err at_options_refuse_words(const at_parsed *parsed, at_fail *fail);

/* True for options that make sense when programs with their own loop are the workers. The others
 * are about models, data and optimizers, which those programs have. (seat_options.c) */
bool at_option_works_with_seats(const at_option *option);

/* AT_ERR_USAGE for the first option given that does not. (seat_options.c) */
at_err at_options_refuse_for_seats(const at_parsed *parsed, at_fail *fail);

/* From now on the option counts as given. */
void at_options_settle(at_parsed *parsed, const char *name);

/* Whether the user gave this option. */
bool at_options_given(const at_parsed *parsed, const char *name);

/* Every option of these verbs with its value: enough to repeat the run. */
json_t *at_options_echo(const at_parsed *parsed, unsigned verb);

/* Prints the options of this verb by group: at most AT_HELP_SHORT_MAX of them, main options first,
 * or all. Returns how many were left out. (help.c) */
size_t at_options_help(FILE *file, unsigned verb, bool all);

/* Whether `--help all` of this verb lists the option. (help.c) */
bool at_option_is_listed(const at_option *row, unsigned verb);

/* Appends what --help of this verb says of the option: its text, what may be chosen, the default.
 * (help.c) */
void at_option_describe(const at_option *row, unsigned verb, at_text *text);

#endif
