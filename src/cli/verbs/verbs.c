#include "cli/verbs/verbs.h"

#include <string.h>

const at_verb at_verbs[] = {
    {"train", "[options]", "Train a model",
     "Trains a model with several workers on this machine (or as MPI ranks) and records the run\n"
     "in a folder.\n"
     "\n"
     "  anytime train                                   softmax on Fashion-MNIST, one worker per "
     "core\n"
     "  anytime train --strategy amb --straggler niagara --straggler-scale 20% --sample-time "
     "100us\n"
     "                                                  anytime minibatch, with induced delays\n"
     "  anytime train --model mlp:300,100 --optimizer adam --target accuracy=0.88\n",
     AT_FOR_TRAIN | AT_FOR_LIVE, at_verb_train},
    {"run", "-n N [options] -- COMMAND", "Train with programs of your own as workers",
     "Starts a hub and N copies of COMMAND, which join the run through libanytime (anytime.h, or\n"
     "`import anytime` in Python). Model, data and optimizer are theirs; strategy, stopping,\n"
     "recording and checkpoints are the hub's. Without a stopping option the programs decide\n"
     "when to end.\n"
     "\n"
     "  anytime run -n 4 --strategy amb --epochs 3 -- python3 train.py --lr 0.1\n"
     "  anytime run -n 4 --steps 1000 --log-dir logs -- ./program\n",
     AT_FOR_TRAIN | AT_FOR_LIVE | AT_FOR_RUN, at_verb_run},
    {"hub", "--listen ADDRESS:PORT [options]", "Train with workers on other machines",
     "Waits for workers, on this machine or others, and trains with those that are there; they\n"
     "may join and leave at any time. With --model or --data the workers are `anytime work`, and\n"
     "the hub takes the options of `train`. Otherwise they are programs, as in `run`, which you\n"
     "start with ANYTIME_HUB=ADDRESS:PORT and ANYTIME_TOKEN_FILE. Workers need the token in\n"
     "RUN/token; connections between machines are encrypted.\n"
     "\n"
     "  anytime hub --listen 0.0.0.0:7000 --model mnist-cnn --data mnist --workers 4\n"
     "  anytime hub --listen 0.0.0.0:7000 --strategy amb --epochs 3 --workers 4   programs\n"
     "  anytime hub --listen 0.0.0.0:7000 --resume runs/my-run\n"
     "  anytime hub --listen 0.0.0.0:7000 --resume /shared/run --standby   take over if it dies\n",
     AT_FOR_TRAIN | AT_FOR_HUB, at_verb_hub},
    {"work", "ADDRESS:PORT ... --token FILE", "Work for a hub on another machine",
     "Joins the hub at this address (of several, the first that answers), loads the model and the\n"
     "data that it trains, and computes until the run is over. If the connection is lost, it\n"
     "tries to reconnect. FILE is a copy of the hub's RUN/token.\n"
     "\n"
     "  anytime work 10.0.0.7:7000 --token token\n"
     "  anytime work 10.0.0.7:7000 10.0.0.8:7000 --token token        a hub and its standby\n"
     "  anytime work --hub-file /shared/hub --token /shared/token     wait for the file\n",
     AT_FOR_WORK, at_verb_work},
    {"simulate", "[options]", "Train in virtual time, with any number of workers on one core",
     "The same as `anytime train --world sim`. Gradients are computed (except with --model\n"
     "none:P); time is simulated from --sample-time, --straggler, --latency, --bandwidth,\n"
     "--comm-delay and --faults.\n"
     "\n"
     "  anytime simulate --strategy amb --workers 100 --straggler niagara --straggler-scale 20%\n"
     "  anytime simulate --from runs/DATE-fmb --strategy amb     the same machines with amb\n"
     "  anytime simulate --model none:4607178 --workers 10000 --steps 100 --record steps\n",
     AT_FOR_TRAIN | AT_FOR_LIVE | AT_FOR_SIMULATE, at_verb_simulate},
    {"compare", "S1 S2 ... [options] | --resume DIR",
     "Compare strategies on the same training task",
     "Runs every strategy with the same seeds and the same induced delays. Prints means, 95 %\n"
     "confidence intervals and speedups relative to the first strategy. Each entry may have its\n"
     "own options, and a name: label=NAME (--label=COLUMN is the option).\n"
     "\n"
     "  anytime compare fmb amb --workers 10 --sample-time 1ms --straggler niagara \\\n"
     "                          --straggler-scale 20% --target accuracy=0.8\n"
     "  anytime compare fmb 'amb:time-limit=50ms,lr=0.05' --repeats 5\n"
     "  anytime compare fmb amb -n 4 --seconds 30 -- python3 train.py     programs, as in `run`\n"
     "  anytime compare --resume runs/DATE-compare                        after an interruption\n",
     AT_FOR_COMPARE, at_verb_compare},
    {"sweep", "--over NAME=V1,V2,.. [options] | --resume DIR",
     "Compare several values of an option",
     "Runs the same training with each value of an option, prints the results as `compare` does,\n"
     "and says which value is best.\n"
     "\n"
     "  anytime sweep --over batch=16,32,64,128 --strategy amb --world sim --workers 20\n"
     "  anytime sweep --over time-limit=20ms,40ms,auto --strategy amb --target accuracy=0.8\n"
     "  anytime sweep --over lr=0.01,0.1 --over batch=16,64               all combinations\n"
     "  anytime sweep --resume runs/DATE-sweep                            after an interruption\n",
     AT_FOR_SWEEP, at_verb_sweep},
    {"advise", "LOG...", "Say which strategy would help a measured job, and by how much",
     "LOG is the folder of a run, or a CSV file with the columns step, worker, seconds and, if\n"
     "known, samples: one row per worker and step. Several CSV files are parts of one job. Fits\n"
     "the speeds and delays, simulates every strategy with them at the same mean batch, names\n"
     "slow workers, and says what to do or that little can be gained.\n"
     "\n"
     "  anytime advise runs/my-run\n"
     "  anytime advise steps.csv --unit ms --cost 3.06\n"
     "  anytime advise rank0.csv rank1.csv rank2.csv rank3.csv --html advice.html\n",
     AT_FOR_ADVISE, at_verb_advise},
    {"calibrate", "LOG", "Print a config file that simulates a measured job",
     "LOG is the same as for `advise`. Estimates the time of a sample, speeds, delays and the\n"
     "link, and how well a simulation with them repeats the log.\n"
     "\n"
     "  anytime calibrate steps.csv > job.conf\n"
     "  anytime simulate --config job.conf --strategy amb\n",
     AT_FOR_CALIBRATE, at_verb_calibrate},
    {"slices", "[options]", "Measure the cost of splitting a batch into micro-batches",
     "Times training steps for several batch sizes, each split into different numbers of\n"
     "micro-batches. A step computes the gradient of the whole batch and updates the parameters\n"
     "once, in this process.\n"
     "\n"
     "  anytime slices --model mnist-cnn --data fashion-mnist\n"
     "  anytime slices --model cifar10-cnn --data cifar10 --batches 256,512 --repeats 5\n",
     AT_FOR_SLICES, at_verb_slices},
    {"link", "[ADDRESS:PORT] [options]", "Measure the cost of messages between hub and workers",
     "Times rounds that transfer parameters and gradients of several sizes but compute nothing:\n"
     "with one worker process, within a single process (as `train --workers 0` works), and as\n"
     "plain loops over memory, the lower bound for both. Then measures one size with increasing\n"
     "numbers of workers. With the address of a hub: measures the path to it, and shows what\n"
     "steps of models of several sizes would cost there.\n"
     "\n"
     "  anytime link\n"
     "  anytime link --sizes 1M,10M --workers 16 --seconds 2\n"
     "  anytime link 10.0.0.7:7000 --token token       the network, from a worker's machine\n",
     AT_FOR_LINK, at_verb_link},
    {"runs", "[FOLDER...] | remove RUN...", "List recorded runs, and remove them",
     "Lists the runs in runs/ or in these folders, such as that of a comparison, oldest first.\n"
     "`remove` deletes the folders of runs that are not running.\n"
     "\n"
     "  anytime runs\n"
     "  anytime runs --where 'strategy=amb,accuracy>0.8' --sort -accuracy\n"
     "  anytime runs runs/DATE-compare --columns run,lr,batch,seconds,accuracy\n"
     "  anytime runs remove runs/my-run\n",
     AT_FOR_LIST, at_verb_runs},
    {"show", "RUN", "Print the summary of a recorded run again",
     "RUN is the folder of a finished run, or `latest`: the newest in runs/. All verbs that take "
     "a\n"
     "run accept that word, and NAME for runs/NAME.\n"
     "\n"
     "  anytime show latest\n"
     "  anytime show runs/my-run --json\n",
     AT_FOR_SHOW, at_verb_show},
    {"report", "RUN...", "Show recorded runs side by side: table, plots, web page",
     "RUN is the folder of a finished run. The plots are those of `compare`, with one color per\n"
     "run.\n"
     "\n"
     "  anytime report runs/my-run\n"
     "  anytime report runs/monday runs/tuesday --out both --plots all\n",
     AT_FOR_REPORT, at_verb_report},
    {"watch", "RUN...", "Serve a live dashboard of runs",
     "RUN is the folder of a run that is running, has finished or has not started yet. Serves a\n"
     "web page on this machine, prints its address and runs until Ctrl-C; `train --watch` does\n"
     "the same for the run it starts. The page is read-only; docs/guide/watch.md explains who can\n"
     "access it and how to connect Prometheus.\n"
     "\n"
     "  anytime watch runs/my-run\n"
     "  anytime watch runs/monday runs/tuesday --open\n"
     "  anytime watch runs/my-run --listen 127.0.0.1:8080 --token my-token\n",
     AT_FOR_WATCH, at_verb_watch},
    {"replay", "RUN", "Check that a recorded run can be reproduced from its event log",
     "RUN is the folder of a run. Feeds every recorded event to a new hub and compares its\n"
     "actions with the recorded ones. If they differ, shows the first difference and exits with\n"
     "code 1.\n"
     "\n"
     "  anytime replay runs/my-run\n",
     AT_FOR_REPLAY, at_verb_replay},
    {"eval", "RUN|FILE [options]", "Evaluate a trained model on a test set",
     "Evaluates the newest weights of a run, or a .safetensors file, on the whole test set or on\n"
     "--test-data. Prints loss, accuracy, AUC (two classes) and top-5 accuracy (more than 20\n"
     "classes); for regression loss, RMSE and R2.\n"
     "\n"
     "  anytime eval runs/my-run\n"
     "  anytime eval runs/my-run --test-data new-images,new-labels\n"
     "  anytime eval model.safetensors --model mnist-cnn --data mnist --json\n",
     AT_FOR_EVAL, at_verb_eval},
    {"predict", "RUN|FILE [FILE..|-] [options]",
     "Print the predictions of a trained model, one line per row",
     "RUN is the folder of a run, or a .safetensors file. For every row of FILE, which needs no\n"
     "labels, or every picture (JPEG, PNG, a folder of them), prints the most probable class and\n"
     "its probability; with two classes, the probability of the second one; for regression, the\n"
     "predicted value. - reads from stdin; without a file, the test samples of the run are used.\n"
     "\n"
     "  anytime predict runs/my-run\n"
     "  anytime predict runs/flowers photo.jpg\n"
     "  anytime predict runs/houses new.csv > prices.txt\n"
     "  printf 'rooms,area\\n3,85\\n' | anytime predict runs/houses -\n",
     AT_FOR_PREDICT, at_verb_predict},
    {"export", "RUN|FILE --out FILE [options]", "Save a trained model for other programs",
     "Writes the newest weights of a run, or a .safetensors file, as safetensors (named tensors)\n"
     "or as ONNX (the whole network, without the preprocessing; see "
     "docs/guide/trained-models.md).\n"
     "\n"
     "  anytime export runs/my-run --out model.onnx\n"
     "  anytime export runs/my-run --out model.safetensors\n",
     AT_FOR_EXPORT, at_verb_export},
    {"data", "list | get NAME | info NAME|PATH", "List, download and inspect data sets",
     "  anytime data list          known data sets, their licenses and locations\n"
     "  anytime data get mnist     download a data set into the cache and verify it\n"
     "  anytime data info PATH     describe the contents of a data set or file\n",
     AT_FOR_DATA, at_verb_data},
    {"models", "list | show NAME|FILE.net", "List models; show one as text, with shapes and sizes",
     "  anytime models list                          built-in models\n"
     "  anytime models show mnist-cnn                its text, with the layers in comments\n"
     "  anytime models show mnist-cnn > my.net       the same as a start for your own\n"
     "  anytime models show my.net --data PATH       your own model, built for your data\n",
     AT_FOR_MODELS, at_verb_models},
    {"doctor", "", "Check this machine and the installation",
     "Checks processor, memory, libraries and data sets. The output is suitable for a bug\n"
     "report.\n",
     AT_FOR_DOCTOR, at_verb_doctor},
    {"manual", "[VERB | anytime.h]", "Print a manual page, for `man -l -`",
     "Prints the manual page of the program, of a verb or of the C interface in the format of\n"
     "man(1). `make install` installs all of them.\n"
     "\n"
     "  anytime manual train | man -l -\n",
     AT_FOR_TEXTS, at_verb_manual},
    {"completion", "bash | zsh", "Print a script that completes command lines in a shell",
     "Prints a script that completes verbs, options and their values. `make install` installs it\n"
     "for both shells; without that, put one of these lines into ~/.bashrc or ~/.zshrc:\n"
     "\n"
     "  eval \"$(anytime completion bash)\"\n"
     "  eval \"$(anytime completion zsh)\"\n",
     AT_FOR_TEXTS, at_verb_completion},
    {0},
};

const at_verb *at_verb_find(const char *name)
{
    for (const at_verb *verb = at_verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0) return verb;
    return NULL;
}
