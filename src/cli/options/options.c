#include "cli/options/options.h"

/* Columns: name, level, group, verbs, field, default, (bounds,) placeholder, text.
 *
 * An option that means something else for some verbs has a second row with the same name, field
 * and default, for those verbs only. A text that ends with [..] states the default itself;
 * otherwise --help adds the one of the row. */
#define ROW(name, level, group, verbs, type, field, fallback, min, max, value, help)     \
    {                                                                                    \
        name, AT_OPTION_##type, offsetof(at_settings, field), fallback, min, max, verbs, \
            AT_LEVEL_##level, AT_GROUP_##group, value, help                              \
    }
#define TEXT(name, level, group, verbs, field, fallback, value, help) \
    ROW(name, level, group, verbs, TEXT, field, fallback, 0, 0, value, help)
#define WHOLE(name, level, group, verbs, field, fallback, min, max, value, help) \
    ROW(name, level, group, verbs, WHOLE, field, fallback, min, max, value, help)
#define REAL(name, level, group, verbs, field, fallback, min, max, value, help) \
    ROW(name, level, group, verbs, REAL, field, fallback, min, max, value, help)
#define TIME(name, level, group, verbs, field, fallback, value, help) \
    ROW(name, level, group, verbs, DURATION, field, fallback, 0, 0, value, help)
#define RULE(name, field, help) \
    ROW(name, RARE, WORKERS, RUNS, RULE, field, NULL, 0, 0, "RULE", help)
#define FLAG(name, level, group, verbs, field, fallback, help) \
    ROW(name, level, group, verbs, YES_NO, field, fallback, 0, 0, NULL, help)
#define SWITCH(name, level, group, verbs, field, fallback, value, help) \
    ROW(name, level, group, verbs, SWITCH, field, fallback, 0, 0, value, help)

enum {
    RUNS = AT_FOR_RUNS,
    TRAIN = AT_FOR_TRAIN,
    COMPARE = AT_FOR_COMPARE,
    SWEEP = AT_FOR_SWEEP,
    SIMULATE = AT_FOR_SIMULATE,
    SLICES = AT_FOR_SLICES,
    LINK = AT_FOR_LINK,
    REPORT = AT_FOR_REPORT,
    WATCH = AT_FOR_WATCH,
    LIVE = AT_FOR_LIVE,
    RUN_VERB = AT_FOR_RUN,
    HUB = AT_FOR_HUB,
    WORK = AT_FOR_WORK,
    TRAINED = AT_FOR_TRAINED,
    EXPORT = AT_FOR_EXPORT,
    DATA = AT_FOR_DATA,
    MODELS = AT_FOR_MODELS,
    MEASURED = AT_FOR_ADVISE | AT_FOR_CALIBRATE,
    ALL = AT_FOR_ALL
};

#define CHECKPOINTS                                                                                \
    "How often to save a checkpoint (--mix gossip: of all workers' models); 0: only at the start " \
    "and the end; none: never "

const char *const at_option_group_name[AT_GROUP_COUNT] = {
#define X(id, name) [AT_GROUP_##id] = name,
    AT_OPTION_GROUP_MAP(X)
#undef X
};

const at_option at_options[] = {
    /* ---- model and data ---- */
    TEXT("model", MAIN, MODEL, RUNS | SLICES, model, "softmax", "NAME",
         "Built-in model (softmax, mlp:H1,H2,.., mnist-cnn, linear, sparse-lr, ..; see `anytime "
         "models "
         "list`) or a file NAME.net [softmax; linear if the labels of a table are real numbers]"),
    TEXT("model", COMMON, MODEL, TRAINED, model, "softmax", "NAME",
         "Model that the weights belong to [as recorded with them]"),
    TEXT("data", MAIN, MODEL, RUNS | SLICES, data, "fashion-mnist", "NAME|PATH",
         "Data set: a known name, a file or folder in any known format, IMAGES,LABELS, "
         "FORMAT:PATH, or synthetic:N,FEATURES,CLASSES"),
    TEXT("data", COMMON, MODEL, TRAINED, data, "fashion-mnist", "NAME|PATH",
         "Data set that the model was trained on [as recorded with the weights]"),
    TEXT("data", COMMON, MODEL, MODELS, data, "fashion-mnist", "NAME|PATH",
         "Data set to build the model for [the shape the model was made for]"),
    TEXT("data", COMMON, MODEL, WORK, data, "fashion-mnist", "NAME|PATH",
         "Data set of the hub, if it is elsewhere on this machine [as on the hub]"),
    TEXT("test-data", COMMON, MODEL, RUNS | TRAINED, test_data, NULL, "NAME|PATH",
         "Test set, if not the one in --data"),
    REAL("test-split", RARE, MODEL, RUNS | TRAINED, test_split, "0.1", 0, 0.9, "SHARE",
         "Share of the rows to hold out for testing, if --data has no test part; always the same "
         "rows; 0: test on the training rows"),
    WHOLE("eval-size", RARE, MODEL, RUNS | AT_FOR_PREDICT | AT_FOR_EVAL, eval_size, NULL, 1, 1e15,
          "N", "Use only the first N samples of the test set [all]"),
    TEXT("prep", COMMON, MODEL, RUNS | TRAINED, prep, NULL, "STEPS",
         "Preprocessing of each sample, for example pad:4,crop:32,flip,normalise. Steps: scale "
         "resize:N pad:P[:reflect] crop:N flip normalise[:MEANS/DEVIATIONS] standardise rgb grey "
         "raw; none [none; normalise for tables]"),
    TEXT("label", RARE, MODEL, RUNS | DATA | TRAINED, label, NULL, "COLUMN",
         "CSV: the label column [label, class or target, else the last]"),
    TEXT("unpack-limit", SIMULATION, MODEL, RUNS | DATA | TRAINED | SLICES | WORK | AT_FOR_ADVISE,
         unpack_limit, "auto", "SIZE|auto|none",
         "Largest size that a packed file (gzip, xz) may unpack to; auto: 1 GB, or 200 times its "
         "own size if that is more"),
    TEXT("ignore", RARE, MODEL, RUNS | DATA | TRAINED, ignore, NULL, "COLUMN,..",
         "CSV: columns to leave out; none: keep all [those that only tell rows apart]"),
    TEXT("missing", RARE, MODEL, RUNS | DATA | TRAINED, missing, "refuse", "refuse|fill|drop",
         "CSV: what to do about missing numbers: refuse the file, fill in the mean of the column, "
         "or drop the row"),
    TEXT("header", RARE, MODEL, RUNS | DATA | TRAINED, header, "auto", "auto|yes|no",
         "CSV: whether the first line has the names of the columns; auto: unless it has a number"),
    WHOLE("hash-bits", SIMULATION, MODEL, RUNS | DATA | TRAINED, hash_bits, "20", 8, 31, "B",
          "Criteo: hash categories to 2^B features"),
    FLAG("data-cache", SIMULATION, MODEL, RUNS | DATA | TRAINED, data_cache, "yes",
         "Cache data that is slow to parse, so that later runs load it at once"),
    TEXT("init", RARE, MODEL, RUNS, init, NULL, "FILE|RUN",
         "Start from the weights in a .safetensors file or a run folder"),

    /* ---- workers and strategy ---- */
    WHOLE("workers", MAIN, WORKERS, RUNS, workers, NULL, 0, 1e6, "N",
          "Worker processes, also as -n N; 0 trains in this process, without a hub [one per core]"),
    WHOLE("workers-min", RARE, WORKERS, RUNS, workers_min, NULL, 1, 1e6, "N",
          "With fewer workers the run waits for more, and stops after --join-timeout [1]"),
    WHOLE("workers-max", SIMULATION, WORKERS, RUNS, workers_max, NULL, 1, 1e6, "N",
          "Most workers at a time, when workers join later (simulation: --faults join) "
          "[--workers]"),
    TIME("join-timeout", RARE, WORKERS, RUNS, join_timeout, NULL, "T",
         "How long the run waits for workers to join: at the start for --workers, later for "
         "--workers-min [60s]"),
    ROW("strategy", MAIN, WORKERS, TRAIN | SWEEP, STRATEGY, strategy, "fmb", 0, 0, "S[:ARGS]",
        "Training strategy, with the arguments of its main rule"),
    RULE("work", work, "When a round ends"),
    RULE("gather", gather, "Which reports a step waits for"),
    RULE("release", release, "When a worker may start its next round"),
    RULE("newer", newer, "What a worker does when new parameters arrive mid-round"),
    RULE("stale", stale, "What the hub does with stale gradients"),
    RULE("size", size, "How the round size changes"),
    RULE("mix", mix, "Who updates the parameters"),
    RULE("outer", outer, "How a step combines changes of parameters (not gradients)"),
    TEXT("switch", RARE, WORKERS, RUNS, switch_to, NULL, "S@WHEN",
         "Another strategy for the rest of the run; WHEN: epoch=N, step=N, loss=L or time=T"),
    WHOLE("batch", MAIN, WORKERS, RUNS, batch, NULL, 1, 1e9, "N",
          "Samples per worker per round. Fixed strategies: exact; timed ones: average, or maximum "
          "with a given --time-limit [64]"),
    WHOLE("micro-batch", RARE, WORKERS, RUNS, micro_batch, NULL, 1, 1e6, "M",
          "Samples computed at once; a round can end only between micro-batches [min(32, batch)]"),
    TEXT("time-limit", COMMON, WORKERS, RUNS, time_limit, "auto", "T|auto",
         "Length of a timed round; auto finds the length that gives --batch on average"),
    SWITCH("shard", RARE, WORKERS, RUNS, shard, "no", "no|yes|by-class",
           "Give each worker its own part of the data; by-class: worker W of N gets the classes "
           "W-1, W-1+N, .."),
    TEXT("deal", RARE, WORKERS, RUNS, deal, "own", "own|global",
         "own: each worker draws from its own permutation; global: the samples of a step do not "
         "depend on the number of workers"),
    FLAG("respawn", RARE, WORKERS, RUNS, respawn, "yes", "Replace workers that die"),
    TIME("lease", RARE, WORKERS, RUNS, lease, NULL, "T",
         "Evict a worker after T without a message [estimated from past rounds]"),
    TEXT("world", COMMON, WORKERS, RUNS, world, "local", "local|sim|mpi",
         "local: processes on this machine; sim: simulation in virtual time, with any number of "
         "workers (its options: `anytime simulate --help all`); mpi: the ranks of mpirun or srun "
         "[local; mpi if started with several ranks]"),
    TEXT("compress", RARE, WORKERS, RUNS, compress, "none", "none|fp16|bf16|topk:F",
         "Compress messages: fp16, bf16: 16 bits per number; topk:F: only the "
         "share F "
         "of a gradient with the largest values. What a gradient loses is added to the next one"),

    /* ---- optimization, computation ---- */
    TEXT("optimizer", MAIN, OPTIMIZATION, RUNS | SLICES, optimizer, NULL, "NAME[:NUMBERS]",
         "Optimizer: sgd momentum[:M] nesterov[:M] rmsprop[:DECAY,EPS] adam[:BETA1,BETA2,EPS] "
         "adamw[:BETA1,BETA2,EPS] adagrad dual-averaging [sgd; for diloco adamw]"),
    REAL("lr", MAIN, OPTIMIZATION, RUNS, lr, NULL, 1e-12, 1e6, "X",
         "Learning rate [sgd 0.1; momentum, nesterov, adagrad 0.01; "
         "rmsprop, adam, adamw 0.001; dual-averaging 1]"),
    REAL("lr", MAIN, OPTIMIZATION, SLICES, lr, NULL, 1e-12, 1e6, "X", "Learning rate [1e-4]"),
    TEXT("lr-schedule", COMMON, OPTIMIZATION, RUNS, lr_schedule, "const", "S",
         "Learning-rate schedule over the samples used: const linear:END[,steps] exp:EVERY,RATE "
         "epochs:A,B,..:FACTOR cosine stairs:COUNT,FACTOR one-cycle; with a warm-up before it: "
         "warmup:LENGTH+SCHEDULE (5000 samples or 2e for epochs)"),
    TEXT("lr-scale", RARE, OPTIMIZATION, RUNS, lr_scale, "none", "none|linear|inverse",
         "linear: scale the learning rate with the total batch that a size rule sets; inverse: "
         "divide it by the samples per worker, as if the mean gradient were divided twice"),
    REAL("weight-decay", COMMON, OPTIMIZATION, RUNS | SLICES, weight_decay, "0", 0, 1e3, "X",
         "Weight decay, applied in the optimizer: L2, with adamw decoupled"),
    REAL("clip", RARE, OPTIMIZATION, RUNS, clip, NULL, 1e-12, 1e12, "NORM",
         "Scale the mean gradient of a step down to this L2 norm if it is longer [no limit]"),
    REAL("label-smoothing", RARE, OPTIMIZATION, RUNS, label_smoothing, "0", 0, 1, "X",
         "Part of each training label that is spread evenly over all classes"),
    TEXT("engine", RARE, COMPUTATION, RUNS | SLICES | TRAINED, engine, "fast", "fast|exact|ref",
         "fast: optimized kernels; exact: without Winograd's method in convolutions, which rounds "
         "less; ref: slow reference implementation, for checking"),
    WHOLE("threads", RARE, COMPUTATION, RUNS | SLICES | TRAINED, threads, "1", 1, 1024, "N",
          "Engine threads in each process"),
    TEXT("bind", RARE, COMPUTATION, RUNS, bind, "none", "none|core|numa",
         "Keep each worker of this machine on one core, or on the cores of one memory node; "
         "workers take turns"),

    /* ---- delays and faults ---- */
    TEXT("straggler", COMMON, DELAYS, RUNS, straggler, "none", "MODEL",
         "Straggler model: none niagara cedar mix:MEAN,SD,WEIGHT;.. exp:SHIFT,MEAN "
         "pareto:MIN,ALPHA speed:F1,F2,.. disturb:P burst:P,LENGTH,FACTOR vary:SD trace:FILE"),
    TEXT("straggler-scale", COMMON, DELAYS, RUNS, straggler_scale, "1", "X|P%",
         "Factor for the sleeps of the straggler model, or their mean as a percentage of a "
         "round's compute time"),
    TEXT("straggler-batch", SIMULATION, DELAYS, RUNS, straggler_batch, "none", "LAW",
         "Draw the size of each round (n: as ordered): bernoulli:P,N (n with probability P, else "
         "N), gauss:SD (around n) or rotate (n for one worker in turn, 1 for the others)"),
    TEXT("sample-time", COMMON, DELAYS, RUNS, sample_time, NULL, "T|measure",
         "Pad computing to T per sample by sleeping, so that workers that share cores behave like "
         "separate machines; measure: use the time of one sample here"),
    TIME("comm-delay", SIMULATION, DELAYS, RUNS, comm_delay, NULL, "SIGMA",
         "Delay every message by |N(0,1)| x SIGMA"),
    TIME("latency", SIMULATION, DELAYS, RUNS, latency, NULL, "T",
         "Simulation: latency of every message [0]"),
    REAL("bandwidth", SIMULATION, DELAYS, RUNS, bandwidth, NULL, 1, 1e15, "BYTES/S",
         "Simulation: bandwidth of the hub's link in each direction [unlimited]"),
    TEXT("worker-bandwidth", SIMULATION, DELAYS, RUNS, worker_bandwidth, NULL, "B1,B2,..",
         "Simulation: bandwidth of the workers' own links; the list repeats [unlimited]"),
    TEXT("worker-latency", SIMULATION, DELAYS, RUNS, worker_latency, NULL, "T1,T2,..",
         "Simulation: latency of the workers' own links, added to --latency; the list repeats [0]"),
    TEXT("broadcast", SIMULATION, DELAYS, RUNS, broadcast, NULL, "each|share|all|tree",
         "Simulation: parameters go to each worker in turn, copies share the hub's link (as over "
         "TCP), one copy serves all, or workers pass them on along a tree [each]"),
    TEXT("reduce", SIMULATION, DELAYS, RUNS, reduce, NULL, "each|tree",
         "Simulation: gradients go to the hub one after another, or are added up along a tree "
         "[each]"),
    TEXT("allreduce", SIMULATION, DELAYS, RUNS, allreduce, NULL, "ring|tree",
         "Simulation: how workers exchange gradients under --mix replicated [ring]"),
    TIME("micro-cost", SIMULATION, DELAYS, RUNS, micro_cost, NULL, "T",
         "Simulation: cost of a micro-batch besides that of its samples [0]"),
    REAL("jitter", SIMULATION, DELAYS, RUNS, jitter, NULL, 0, 1, "X",
         "Simulation: relative standard deviation of the time of a micro-batch [0]"),
    TEXT("faults", SIMULATION, DELAYS, RUNS, faults, NULL, "F,..",
         "Simulation: die:W@T[+D] (worker W dies at T and is replaced after D), join:W@T (it joins "
         "at T, up to --workers-max), freeze:W@T+D (it pauses for D), late:W@T+D (its next report "
         "takes D longer); or trace:FILE (recorded faults, or availability of spot instances)"),

    REAL(
        "trace-scale", SIMULATION, DELAYS, RUNS, trace_scale, "1", 1e-12, 1e12, "X",
        "Factor for the step times of --straggler trace:FILE and all times of --faults trace:FILE"),

    /* ---- stopping and evaluation ---- */
    WHOLE("steps", COMMON, STOPPING, RUNS, steps, NULL, 1, 1e15, "N",
          "Stop after N steps (parameter updates)"),
    REAL("epochs", MAIN, STOPPING, RUNS, epochs, NULL, 1e-6, 1e9, "X",
         "Stop after X passes over the data, counted in samples used [10 without another limit, "
         "100 with --target alone]"),
    WHOLE("samples", RARE, STOPPING, RUNS, samples, NULL, 1, 1e18, "N",
          "Stop after N samples used"),
    TIME("seconds", COMMON, STOPPING, RUNS, seconds, NULL, "T",
         "Stop after T, counted from the first computation"),
    TEXT("target", MAIN, STOPPING, RUNS, target, NULL, "accuracy=X,loss=Y",
         "Stop when all test metrics listed here are reached; also auc (two classes), top5 (more "
         "than 20 classes) and r2 (regression)"),
    TEXT("nonfinite", RARE, STOPPING, RUNS, nonfinite, "stop", "stop|skip|ignore",
         "When a loss or gradient is infinite or not a number: stop the run with the last "
         "checkpoint intact, skip that gradient, or use it"),
    WHOLE("eval-every", COMMON, STOPPING, RUNS, eval_every, NULL, 0, 1e15, "STEPS",
          "Steps between evaluations of the test set, in parallel with training; 0: only at the "
          "end [one epoch]"),

    /* ---- measurements: slices, link ---- */
    TEXT("batches", COMMON, MEASUREMENT, SLICES, batches, NULL, "N1,N2,..",
         "Batch sizes to measure [powers of two from 4 to 512]"),
    TEXT("slices", COMMON, MEASUREMENT, SLICES, slices, NULL, "N1,N2,..",
         "Micro-batches per batch; numbers that do not divide a batch are skipped [powers of two]"),
    WHOLE("repeats", COMMON, MEASUREMENT, SLICES, repeats, "3", 1, 1000, "R",
          "Timings of each batch size and number of slices"),
    TEXT("sizes", COMMON, MEASUREMENT, LINK, sizes, NULL, "B1,B2,..",
         "Bytes of parameters per message [4k,31.4k,1M,10M,100M]"),
    WHOLE("workers", COMMON, MEASUREMENT, LINK, workers, NULL, 0, 65536, "N",
          "Largest number of workers to measure [8]; with ADDRESS:PORT: workers at that hub [1]"),
    TIME("seconds", COMMON, MEASUREMENT, LINK, seconds, NULL, "T",
         "Duration of each measurement [600ms, with ADDRESS:PORT 1s]"),

    /* ---- measured logs: advise, calibrate ---- */
    TEXT("unit", COMMON, MEASUREMENT, MEASURED, unit, "s", "s|ms|us|min",
         "Unit of the times in a CSV log"),
    FLAG("normalised", COMMON, MEASUREMENT, MEASURED, normalised, "no",
         "The times of a CSV log have no absolute scale"),
    TEXT("delays", COMMON, MEASUREMENT, MEASURED, delays, "auto", "auto|pause|slow",
         "What a long round of a CSV log was: a pause, or slow computing; auto: slow computing if "
         "delays last several rounds"),
    REAL("cost", COMMON, MEASUREMENT, AT_FOR_ADVISE, cost, NULL, 1e-9, 1e9, "PER_HOUR",
         "Price of one worker per hour, to show the cost of a million samples"),
    TEXT("html", COMMON, MEASUREMENT, AT_FOR_ADVISE, html, NULL, "FILE",
         "Also write the advice as a web page"),

    /* ---- the run and its files ---- */
    ROW("over", MAIN, RUN, SWEEP, LIST, over, NULL, 0, 0, "NAME=V1,V2,..",
        "Option to vary, and its values (required); several of them make a grid"),
    TEXT("tune", COMMON, RUN, COMPARE, tune, NULL, "NAME=V1,V2,..",
         "Search before the comparison: run every entry once with each value of an option (lr), "
         "and compare each entry at its best one [no search]"),
    WHOLE("repeats", MAIN, RUN, COMPARE | SWEEP, repeats, "3", 1, 1000, "R",
          "Runs per entry, with consecutive seeds; confidence intervals need 3"),
    WHOLE("jobs", RARE, RUN, COMPARE | SWEEP, jobs, NULL, 1, 1024, "N",
          "Simulated runs at the same time; the results are the same for any N [one per core]"),
    WHOLE("seed", COMMON, RUN, RUNS, seed, "1", 0, 9e18, "N",
          "Seed for the data order, the initial parameters and the induced delays"),
    WHOLE("seed", COMMON, RUN, SLICES, seed, "1", 0, 9e18, "N",
          "Seed for the data order and the initial parameters"),
    TEXT("run", MAIN, RUN, TRAIN, run, NULL, "DIR",
         "Run folder to create; must not exist [runs/DATE-STRATEGY]"),
    TEXT("resume", COMMON, RUN, TRAIN, resume, NULL, "RUN",
         "Resume a run in its folder from its newest checkpoint, with its settings; --workers, "
         "--world, --mix and the stopping options may change"),
    TEXT("resume", RARE, RUN, COMPARE | SWEEP, resume, NULL, "DIR",
         "Continue an interrupted comparison in its folder: finished runs are kept; --repeats "
         "may be larger, all other settings stay"),
    TEXT("from", COMMON, RUN, SIMULATE, from, NULL, "RUN",
         "Simulate the machines of a recorded run under the options given here"),
    TEXT("checkpoint-every", RARE, RUN, TRAIN, checkpoint_every, NULL, "STEPS|T",
         CHECKPOINTS "[60s; 0 in simulation]"),
    TEXT("checkpoint-every", RARE, RUN, COMPARE | SWEEP, checkpoint_every, NULL, "STEPS|T",
         CHECKPOINTS "[none]"),
    TEXT("out", COMMON, RUN, COMPARE | SWEEP | REPORT | SLICES, out, NULL, "DIR",
         "Folder to create; must not exist [runs/DATE-NAME]"),
    TEXT("out", COMMON, RUN, EXPORT, out, NULL, "FILE", "File to write (required)"),
    TEXT("format", COMMON, RUN, EXPORT, format, NULL, "safetensors|onnx",
         "Format of the file [from the suffix of --out]"),
    TEXT("plots", COMMON, RUN, COMPARE | SWEEP | REPORT, plots, "few", "all|few|none",
         "few: curves over time and two pages of panels; all: also each panel as its own file; "
         "none: neither plots nor a web page"),
    TEXT("plots", COMMON, RUN, SLICES, plots, "few", "all|few|none",
         "few or all: both plots; none: no plots"),
    WHOLE("trace-events", COMMON, RUN, REPORT, trace_events, "200000", 0, 1e8, "N",
          "Maximum events in trace.json; 0 disables it"),
    TIME("trace-from", COMMON, RUN, REPORT, trace_from, NULL, "T",
         "Time in the run at which trace.json begins [the start]"),
    TEXT("record", RARE, RUN, RUNS, record, "full", "full|steps|none",
         "full: record everything; steps: no line per round and no event log; none: only "
         "result.json and workers.json"),
    TEXT("record-limit", SIMULATION, RUN, RUNS, record_limit, "1GB", "SIZE|none",
         "Largest size of tables and event log together; from half of it on they leave out steps"),
    TEXT("resources", RARE, RUN, RUNS, resources, "1s", "T",
         "Resource sampling interval (processor, memory, disk and network of each process); 0 "
         "disables it"),

    TEXT("log-style", RARE, RUN, LIVE, log_style, "lines", "lines|classic",
         "classic: a line per round and per step on stdout, as the published programs print them"),
    FLAG("dry-run", RARE, RUN, LIVE | COMPARE | SWEEP, dry_run, "no",
         "Check everything, print sizes, memory and time needed, and write nothing"),
    WHOLE("restarts", COMMON, RUN, RUN_VERB, restarts, "5", 0, 1e9, "N",
          "How often a worker that ends with an error is started again; its next report resets "
          "the count"),
    TEXT(
        "log-dir", COMMON, RUN, RUN_VERB, log_dir, NULL, "DIR",
        "Write the output of each worker to DIR/rank-N.out and rank-N.err [print it, with the rank "
        "in front of each line]"),

    /* ---- runs ---- */
    TEXT("columns", MAIN, RUN, AT_FOR_LIST, columns, NULL, "NAME,..",
         "Values to show: of result.json (steps, test.accuracy, samples_per_second, ..) or options "
         "of the run (lr, batch, ..) [run, state, world, strategy, model, data, workers, steps, "
         "seconds, loss, accuracy]"),
    TEXT("where", MAIN, RUN, AT_FOR_LIST, where, NULL, "TERM,..",
         "Only runs for which all terms hold, for example 'strategy=amb,accuracy>0.8'; also != < "
         "<= >="),
    TEXT("sort", MAIN, RUN, AT_FOR_LIST, sort, NULL, "NAME",
         "Value to sort by; -NAME: largest first [time of the last change]"),

    /* ---- other machines ---- */
    TEXT("listen", MAIN, RUN, HUB, listen, "127.0.0.1:0", "ADDR:PORT",
         "Address where workers join; 0.0.0.0:7000 is port 7000 on all networks of this machine; "
         "port 0 picks a free one"),
    TEXT("token", RARE, RUN, HUB, token, NULL, "FILE",
         "File with the token that workers need; created if missing [RUN/token]"),
    TEXT("token", COMMON, MEASUREMENT, LINK, token, NULL, "FILE",
         "With ADDRESS:PORT: copy of the hub's token [ANYTIME_TOKEN_FILE]"),
    TEXT("token", MAIN, RUN, WORK, token, NULL, "FILE",
         "Copy of the hub's token [ANYTIME_TOKEN_FILE]"),
    FLAG("standby", RARE, RUN, HUB, standby, "no",
         "With --resume: wait until the hub that has this run dies, then take its place"),
    TEXT("hub-file", RARE, RUN, HUB, hub_file, NULL, "PATH",
         "File to which the hub writes its address, for example in a shared folder"),
    TEXT("hub-file", COMMON, RUN, WORK, hub_file, NULL, "PATH",
         "File to which the hub writes its address; the worker waits for it, at most --reconnect"),
    TIME("reconnect", COMMON, RUN, WORK, reconnect, "60s", "T",
         "How long to try to reach the hub, at the start and after a lost connection"),

    /* ---- dashboard ---- */
    FLAG("watch", COMMON, DASHBOARD, LIVE, watch, "no",
         "Serve a live dashboard of the run and print its address; `anytime watch --help` has its "
         "options"),
    TEXT("listen", WATCHING, DASHBOARD, WATCH | LIVE, listen, "127.0.0.1:0", "ADDR:PORT",
         "Address of the dashboard; port 0 picks a free one"),
    TEXT("token", WATCHING, DASHBOARD, WATCH | LIVE, token, NULL, "FILE",
         "File with the access token of the dashboard; created if missing [a new token each time]"),
    FLAG("open", WATCHING, DASHBOARD, WATCH | LIVE, open, "no", "Open the dashboard in a browser"),
    FLAG("once", COMMON, DASHBOARD, WATCH, once, "no",
         "Print the current metrics in the Prometheus format and exit"),

    /* ---- all verbs ---- */
    TEXT("config", COMMON, GENERAL, ALL, config, NULL, "FILE",
         "Read options from a file of `name = value` lines"),
    FLAG("json", COMMON, GENERAL, ALL, json, "no",
         "Print one JSON document to stdout and nothing else"),
    FLAG("quiet", COMMON, GENERAL, ALL, quiet, "no", "Print only warnings and errors to stderr"),
    SWITCH("help", COMMON, GENERAL, ALL | AT_FOR_TEXTS, help, NULL, "[all]", "Show this help"),
    {0},
};

/* Options of earlier versions that are arguments of rules now. */
const at_option_alias at_option_aliases[] = {
    {"learning-rate", NULL, "lr", "%s"},        {"k", NULL, "gather", ":k=%s"},
    {"period", NULL, "gather", ":period=%s"},   {"staleness", NULL, "release", ":staleness=%s"},
    {"cap", NULL, "work", ":cap=%s"},           {"cut", NULL, "work", ":cut=%s"},
    {"local-batch", NULL, "work", ":batch=%s"}, {"batch-min", NULL, "size", ":min=%s"},
    {"batch-max", NULL, "size", ":max=%s"},     {"hubs", "1", "mix", "central"},
    {"hubs", NULL, "mix", "sliced:%s"},         {"mix-weights", NULL, "mix", ":weights=%s"},
    {"mix-form", NULL, "mix", ":form=%s"},      {"mix-matrix", NULL, "mix", ":matrix=%s"},
    {"topology", "hub", "mix", "central"},      {"topology", "allreduce", "mix", "replicated"},
    {"topology", "hogwild", "mix", "shared"},   {0},
};
