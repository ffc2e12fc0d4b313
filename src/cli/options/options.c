#include "cli/options/options.h"

/* The table. Order is the order in --help; `group` starts a new heading. */
#define AT(field) offsetof(at_settings, field)
#define TEXT(name, field, fallback, verbs, group, value, help)                     \
    {                                                                              \
        name, AT_OPTION_TEXT, AT(field), fallback, 0, 0, verbs, group, value, help \
    }
#define WHOLE(name, field, fallback, min, max, verbs, group, value, help)               \
    {                                                                                   \
        name, AT_OPTION_WHOLE, AT(field), fallback, min, max, verbs, group, value, help \
    }
#define REAL(name, field, fallback, min, max, verbs, group, value, help)               \
    {                                                                                  \
        name, AT_OPTION_REAL, AT(field), fallback, min, max, verbs, group, value, help \
    }
#define TIME(name, field, fallback, verbs, group, value, help)                         \
    {                                                                                  \
        name, AT_OPTION_DURATION, AT(field), fallback, 0, 0, verbs, group, value, help \
    }
#define FLAG(name, field, fallback, verbs, group, help)                             \
    {                                                                               \
        name, AT_OPTION_YES_NO, AT(field), fallback, 0, 0, verbs, group, NULL, help \
    }
#define SWITCH(name, field, fallback, verbs, group, value, help)                     \
    {                                                                                \
        name, AT_OPTION_SWITCH, AT(field), fallback, 0, 0, verbs, group, value, help \
    }

enum { RUNS = AT_FOR_RUNS, SLICES = AT_FOR_SLICES, TRAINED = AT_FOR_TRAINED };

const at_option at_options[] = {
    TEXT("model", model, "softmax", RUNS | SLICES | TRAINED, "What is learnt", "NAME",
         "softmax, mlp:H1,H2,.., mnist-cnn, sparse-lr, .. (see `anytime models list`), or a file "
         "NAME.net"),
    TEXT("data", data, "fashion-mnist", RUNS | AT_FOR_MODELS | SLICES | TRAINED, NULL, "NAME|PATH",
         "a known set, a file or folder in any known format, IMAGES,LABELS, FORMAT:PATH, or "
         "synthetic:N,FEATURES,CLASSES"),
    TEXT("test-data", test_data, NULL, RUNS | TRAINED, NULL, "NAME|PATH",
         "where the test samples come from, if not from --data"),
    TEXT("prep", prep, NULL, RUNS | TRAINED, NULL, "STEPS",
         "what is done to a sample before it is learnt, for example pad:4,crop:32,flip,normalise; "
         "steps: scale resize:N pad:P[:reflect] crop:N flip normalise[:MEANS/DEVIATIONS] "
         "standardise rgb grey"),
    TEXT("label", label, NULL, RUNS | AT_FOR_DATA | TRAINED, NULL, "COLUMN",
         "CSV: the column of the labels [label, class or target, else the last]"),
    WHOLE("hash-bits", hash_bits, "20", 8, 31, RUNS | AT_FOR_DATA | TRAINED, NULL, "B",
          "Criteo: categories are hashed to 2^B features"),
    FLAG("data-cache", data_cache, "yes", RUNS | AT_FOR_DATA | TRAINED, NULL,
         "keep what was slow to read, so that the next start is instant"),

    TEXT("init", init, NULL, RUNS, NULL, "FILE|RUN",
         "start from these weights: a .safetensors file, or the folder of a run"),

    WHOLE("workers", workers, NULL, 0, 65536, RUNS | AT_FOR_LINK, "Who works how", "N",
          "worker processes; 0 trains in this process without a hub [as many as cores]. Of link: "
          "the most there are [8]"),
    TEXT(
        "strategy", strategy, "fmb", AT_FOR_TRAIN | AT_FOR_SWEEP, NULL, "S",
        "a row of six rules: fmb (fixed minibatch) amb (anytime minibatch) backup batch-sync async "
        "async-fmb async-timed ssp dbs grow shrink loss noise probe hogwild"),
    TEXT("work", work, NULL, RUNS, NULL, "RULE", "override one rule: fixed[:N] timed[:T]"),
    TEXT("gather", gather, NULL, RUNS, NULL, "RULE",
         "override one rule: all first[:K] any[:K] every[:T]"),
    TEXT("release", release, NULL, RUNS, NULL, "RULE", "override one rule: barrier free bound[:S]"),
    TEXT("newer", newer, NULL, RUNS, NULL, "RULE", "override one rule: finish abandon refresh"),
    TEXT("stale", stale, NULL, RUNS, NULL, "RULE", "override one rule: use drop scale"),
    TEXT("size", size, NULL, RUNS, NULL, "RULE",
         "override one rule: static auto speed[:epoch|step] grow[:FACTOR,EPOCHS] "
         "shrink[:FACTOR,EPOCHS] loss noise probe"),
    TEXT("topology", topology, NULL, RUNS, NULL, "hub|allreduce",
         "who makes the updates: the hub, or at strategies that wait for all the workers together, "
         "each a slice [hub]"),
    WHOLE("hubs", hubs, "1", 1, 1024, RUNS, NULL, "H",
          "processes that share the hub's updates, each a slice of the parameters"),
    WHOLE("batch", batch, NULL, 1, 1e9, RUNS, NULL, "N",
          "samples a worker and round: the size, or the mean with --time-limit auto, or the cap "
          "with a given time limit [64]"),
    WHOLE("micro-batch", micro_batch, NULL, 1, 1e6, RUNS, NULL, "M",
          "samples computed at once; a round ends between two of them [min(32, batch)]"),
    WHOLE("cap", cap, NULL, 1, 1e9, RUNS, NULL, "N",
          "most samples of a timed round [4 x batch with auto, else batch]"),
    WHOLE("batch-min", batch_min, NULL, 1, 1e9, RUNS, NULL, "N",
          "least samples of a round under size rules that change it [batch / 16]"),
    WHOLE("batch-max", batch_max, NULL, 1, 1e9, RUNS, NULL, "N",
          "most samples of a round under size rules that change it [16 x batch]"),
    TEXT("time-limit", time_limit, "auto", RUNS, NULL, "T|auto",
         "length of a timed round; auto finds the one that gives --batch on average"),
    TEXT("cut", cut, "nearest", RUNS, NULL, "nearest|after",
         "end a timed round nearest to T, or after T as published"),
    TEXT("period", period, NULL, RUNS, NULL, "T", "of --gather every [the time limit]"),
    WHOLE("k", k, NULL, 1, 1e6, RUNS, NULL, "K", "of --gather first and any [workers - 1]"),
    WHOLE("staleness", staleness, NULL, 0, 1e6, RUNS, NULL, "S", "of --release bound [3]"),
    SWITCH("shard", shard, "no", RUNS, NULL, "no|yes|by-class",
           "each worker draws only from its own part of the data; by-class: worker W of N has the "
           "classes W-1, W-1+N, .."),
    TEXT("deal", deal, "own", RUNS, NULL, "own|global",
         "own: each worker walks its own permutation; global: a step's samples do not depend on "
         "the number of workers"),
    FLAG("respawn", respawn, "yes", RUNS, NULL, "replace workers that die"),
    TIME("lease", lease, NULL, RUNS, NULL, "T",
         "evict a worker that is silent for so long [learnt from past rounds]"),

    TEXT("optimizer", optimizer, "sgd", RUNS | SLICES, "How it learns", "NAME",
         "sgd momentum rmsprop adam adagrad dual-averaging"),
    REAL("lr", lr, NULL, 1e-12, 1e6, RUNS | SLICES, NULL, "X",
         "learning rate [the optimizer's own; slices: 1e-4]"),
    TEXT("lr-schedule", lr_schedule, "const", RUNS, NULL, "S",
         "const linear:END exp:EVERY,RATE epochs:A,B,..:FACTOR cosine stairs:COUNT,FACTOR, in "
         "samples really used"),
    TEXT("lr-scale", lr_scale, "none", RUNS, NULL, "none|linear",
         "linear: the learning rate follows the total batch that a size rule has set"),
    REAL("weight-decay", weight_decay, "0", 0, 1e3, RUNS | SLICES, NULL, "X",
         "L2, applied once, in the optimizer"),
    TEXT("engine", engine, "fast", RUNS | SLICES | TRAINED, NULL, "fast|ref",
         "ref: plain loops, the oracle"),
    WHOLE("threads", threads, "1", 1, 1024, RUNS | SLICES | TRAINED, NULL, "N",
          "threads of the engine in each worker"),

    TEXT("straggler", straggler, "none", RUNS, "Induced slowness", "LAW",
         "none niagara cedar mix:MEAN,SD,WEIGHT;.. exp:SHIFT,MEAN pareto:MIN,ALPHA speed:F1,F2,.. "
         "disturb:P trace:FILE"),
    TEXT("straggler-scale", straggler_scale, "1", RUNS, NULL, "X|P%",
         "a factor; or 20%: the mean sleep is a fifth of a round's compute time"),
    TEXT("sample-time", sample_time, NULL, RUNS, NULL, "T|measure",
         "pad computing to T a sample by sleeping, so that workers behave like machines of their "
         "own; measure: what one sample takes here"),

    TIME("comm-delay", comm_delay, NULL, RUNS, NULL, "SIGMA",
         "every message is held for |N(0,1)| x SIGMA"),
    TIME("latency", latency, NULL, RUNS, NULL, "T", "virtual time: of every message [0]"),
    REAL("bandwidth", bandwidth, NULL, 1, 1e15, RUNS, NULL, "BYTES/S",
         "virtual time: of the hub's link, each direction [unlimited]"),
    TEXT(
        "faults", faults, NULL, RUNS, NULL, "F,..",
        "virtual time: die:W@T[+D] (worker W dies at T, is replaced after D), freeze:W@T+D (stands "
        "still for D), late:W@T+D (its next report takes D longer)"),

    WHOLE("steps", steps, NULL, 1, 1e15, RUNS, "When it ends", "N", "updates of the parameters"),
    REAL("epochs", epochs, NULL, 1e-6, 1e9, RUNS, NULL, "X",
         "passes over the data, in samples really used [10 when no limit is given]"),
    WHOLE("samples", samples, NULL, 1, 1e18, RUNS, NULL, "N", "samples used"),
    TIME("seconds", seconds, NULL, RUNS | AT_FOR_LINK, NULL, "T",
         "time since the first computation. Of link: of one measurement [600ms]"),
    TEXT("target", target, NULL, RUNS, NULL, "accuracy=X,loss=Y",
         "stop when all are met; also auc (two classes) and top5 (more than 20)"),
    WHOLE("eval-every", eval_every, NULL, 0, 1e15, RUNS, NULL, "STEPS",
          "evaluate the test set beside the training; 0: at the end only [once an epoch]"),
    WHOLE("eval-size", eval_size, NULL, 1, 1e15, RUNS | AT_FOR_PREDICT | AT_FOR_EVAL, NULL, "N",
          "evaluate on the first N test samples only [all]"),

    WHOLE("seed", seed, "1", 0, 9e18, RUNS | SLICES, "The run", "N",
          "of data order, initial parameters and slowness"),
    TEXT("over", over, NULL, AT_FOR_SWEEP, NULL, "NAME=V1,V2,..",
         "the option to vary, and its values"),
    TEXT("batches", batches, NULL, SLICES, NULL, "N1,N2,..",
         "the batches to cut [powers of two from 4 to 512]"),
    TEXT("slices", slices, NULL, SLICES, NULL, "N1,N2,..",
         "into how many micro-batches; those that do not divide a batch are left out [powers of "
         "two]"),
    TEXT("sizes", sizes, NULL, AT_FOR_LINK, NULL, "B1,B2,..",
         "bytes of parameters [4k,31.4k,1M,10M,100M]"),
    WHOLE("repeats", repeats, "3", 1, 1000, AT_FOR_COMPARE | AT_FOR_SWEEP | SLICES, NULL, "R",
          "runs of each entry, with seeds N, N+1, ..; intervals need 3. Of slices: timings of each "
          "point"),
    TEXT("from", from, NULL, AT_FOR_SIMULATE, NULL, "RUN",
         "what if: the machines of a recorded run, under the options given here"),
    TEXT("resume", resume, NULL, AT_FOR_TRAIN, NULL, "RUN",
         "go on where a run was saved, with all its settings, in its folder; --workers, --world "
         "and when it ends may be given anew"),
    TEXT("checkpoint-every", checkpoint_every, NULL, RUNS, NULL, "STEPS|T",
         "save so often what is needed to go on; 0: at the start and the end; none: never [60s; 0 "
         "in virtual time; none for compare and sweep]"),
    TEXT("run", run, NULL, AT_FOR_TRAIN, NULL, "DIR",
         "folder to write to; must not exist [runs/DATE-NAME]"),
    TEXT("out", out, NULL, AT_FOR_COMPARE | AT_FOR_SWEEP | AT_FOR_REPORT | SLICES | AT_FOR_EXPORT,
         NULL, "DIR|FILE",
         "folder to write to; must not exist [runs/DATE-VERB]. Of export: the file to write"),
    TEXT("format", format, NULL, AT_FOR_EXPORT, NULL, "safetensors|onnx",
         "what to write [by the suffix of --out]"),
    TEXT("plots", plots, "few", AT_FOR_COMPARE | AT_FOR_SWEEP | AT_FOR_REPORT | SLICES, NULL,
         "all|few|none",
         "few: curves against time and two pages of panels; all: every panel by itself, too"),
    WHOLE("trace-events", trace_events, "200000", 0, 1e8, AT_FOR_REPORT, NULL, "N",
          "longest timeline of a run, trace.json; 0: none"),
    TIME("trace-from", trace_from, NULL, AT_FOR_REPORT, NULL, "T",
         "where in the run that timeline begins"),
    TEXT("record", record, "full", RUNS, NULL, "full|steps|none",
         "everything; no line per round and no event log; result.json and workers.json only"),
    TEXT("resources", resources, "1s", RUNS, NULL, "T",
         "look so often what each process takes: processor, memory, disk, network; 0: never"),
    TEXT("world", world, "local", RUNS, NULL, "local|sim|mpi",
         "processes on this machine, virtual time (any number of workers), or the ranks of mpirun "
         "or srun [mpi when one of them started more than one]"),
    FLAG("watch", watch, "no", AT_FOR_LIVE, NULL,
         "serve a live dashboard of the run beside it, and tell its address"),
    TEXT("listen", listen, "127.0.0.1:0", AT_FOR_WATCH | AT_FOR_LIVE, NULL, "ADDR:PORT",
         "where the dashboard listens; port 0: any that is free"),
    TEXT("token", token, NULL, AT_FOR_WATCH | AT_FOR_LIVE, NULL, "FILE",
         "the dashboard's token is in FILE, which is made if it is not there [a new one each "
         "time]"),
    FLAG("open", open, "no", AT_FOR_WATCH | AT_FOR_LIVE, NULL, "show the dashboard in a browser"),
    FLAG("once", once, "no", AT_FOR_WATCH, NULL,
         "print the newest state as Prometheus reads it, and end"),
    TEXT("config", config, NULL, AT_FOR_ALL, NULL, "FILE",
         "read options from `name = value` lines"),
    FLAG("json", json, "no", AT_FOR_ALL, NULL, "print one JSON document to stdout, nothing else"),
    FLAG("quiet", quiet, "no", AT_FOR_ALL, NULL, "only say what matters on stderr"),
    FLAG("help", help, "no", AT_FOR_ALL, NULL, "this text"),
    {0},
};
