#include "cli/verbs/verbs.h"

#include <string.h>

const at_verb at_verbs[] = {
    {"train", "[options]", "one training run",
     "Trains a model with several workers on this machine and writes what happened into a folder.\n"
     "\n"
     "  anytime train                                   softmax on Fashion-MNIST, one worker a "
     "core\n"
     "  anytime train --strategy amb --straggler niagara --straggler-scale 20% --sample-time "
     "100us\n"
     "                                                  anytime minibatches, slow workers induced\n"
     "  anytime train --model mlp:300,100 --optimizer adam --target accuracy=0.88\n",
     AT_FOR_TRAIN | AT_FOR_LIVE, at_verb_train},
    {"simulate", "[options]", "the same in virtual time: any number of workers on one core",
     "`anytime train --world sim`. Gradients are really computed (unless --model none:P); time is\n"
     "modelled: --sample-time, --straggler, --latency, --bandwidth, --comm-delay, --faults.\n"
     "\n"
     "  anytime simulate --strategy amb --workers 100 --straggler niagara --straggler-scale 20%\n"
     "  anytime simulate --from runs/DATE-fmb --strategy amb     what if it had been amb?\n"
     "  anytime simulate --model none:4607178 --workers 10000 --steps 100 --record steps\n",
     AT_FOR_TRAIN | AT_FOR_LIVE | AT_FOR_SIMULATE, at_verb_simulate},
    {"compare", "S1 S2 ... [options]", "the same run under several strategies",
     "Runs each strategy with the same seeds and the same slowness and shows means, 95 % "
     "intervals\n"
     "and speed-ups against the first. An entry may carry its own options.\n"
     "\n"
     "  anytime compare fmb amb --workers 10 --sample-time 1ms --straggler niagara \\\n"
     "                          --straggler-scale 20% --target accuracy=0.8\n"
     "  anytime compare fmb 'amb:time-limit=50ms,lr=0.05' --repeats 5\n",
     AT_FOR_COMPARE, at_verb_compare},
    {"sweep", "--over NAME=V1,V2,.. [options]", "one run per value of an option",
     "The same run with several values of one option, shown as `compare` shows strategies.\n"
     "\n"
     "  anytime sweep --over batch=16,32,64,128 --strategy amb --world sim --workers 20\n"
     "  anytime sweep --over time-limit=20ms,40ms,auto --strategy amb --target accuracy=0.8\n",
     AT_FOR_SWEEP, at_verb_sweep},
    {"slices", "[options]", "what it costs to cut a batch into micro-batches",
     "Times steps of several batches, each cut into several numbers of micro-batches: the gradient "
     "of\n"
     "the whole batch and one update, in this process.\n"
     "\n"
     "  anytime slices --model mnist-cnn --data fashion-mnist\n"
     "  anytime slices --model cifar10-cnn --data cifar10 --batches 256,512 --repeats 5\n",
     AT_FOR_SLICES, at_verb_slices},
    {"link", "[options]", "what messages cost here",
     "Rounds that carry parameters and gradients of several sizes but learn nothing: by one\n"
     "worker process, by one loop (--workers 0), and as bare loops over memory, the limit of\n"
     "both. Then the same with more and more workers.\n"
     "\n"
     "  anytime link\n"
     "  anytime link --sizes 1M,10M --workers 16 --seconds 2\n",
     AT_FOR_LINK, at_verb_link},
    {"report", "RUN...", "recorded runs side by side: a table and plots",
     "RUN is the folder of a run that has ended. The plots are those of `compare`, one colour a "
     "run.\n"
     "\n"
     "  anytime report runs/my-run\n"
     "  anytime report runs/monday runs/tuesday --out both --plots all\n",
     AT_FOR_REPORT, at_verb_report},
    {"watch", "RUN...", "a live dashboard of runs in a browser",
     "RUN is the folder of a run that goes on, has ended or has not begun yet. Serves a page on "
     "this\n"
     "machine, prints its address and goes on until Ctrl-C; `train --watch` does the same beside "
     "a\n"
     "run. The page only reads; see docs/guide/watch.md for access and Prometheus.\n"
     "\n"
     "  anytime watch runs/my-run\n"
     "  anytime watch runs/monday runs/tuesday --open\n"
     "  anytime watch runs/my-run --listen 127.0.0.1:8080 --token my-token\n",
     AT_FOR_WATCH, at_verb_watch},
    {"replay", "RUN", "feeds the record of a run to a fresh hub and compares what it decides",
     "RUN is the folder of a run. Every recorded event goes into a fresh hub, and every action "
     "that\n"
     "comes out must be the recorded one. The first difference is shown, with exit code 1.\n"
     "\n"
     "  anytime replay runs/my-run\n",
     AT_FOR_REPLAY, at_verb_replay},
    {"eval", "RUN|FILE [options]", "how good a trained model is on test samples",
     "Scores the newest weights of a run, or a .safetensors file, on the whole test set or on\n"
     "--test-data: loss, accuracy, AUC (two classes), top-5 (more than 20).\n"
     "\n"
     "  anytime eval runs/my-run\n"
     "  anytime eval runs/my-run --test-data new-images,new-labels\n"
     "  anytime eval model.safetensors --model mnist-cnn --data mnist --json\n",
     AT_FOR_EVAL, at_verb_eval},
    {"predict", "RUN|FILE [options]", "what a trained model says: one line a row",
     "RUN is the folder of a run, FILE its weights (.safetensors). For every test sample, or "
     "every\n"
     "row of --test-data, a line with the most probable class and its probability; with two "
     "classes,\n"
     "the probability of the second one (+1).\n"
     "\n"
     "  anytime predict runs/my-run\n"
     "  anytime predict runs/clicks --test-data new.libsvm > scores.txt\n",
     AT_FOR_PREDICT, at_verb_predict},
    {"export", "RUN|FILE --out FILE [options]", "a trained model for other programs",
     "Writes the newest weights of a run, or a .safetensors file, as safetensors (tensors by name) "
     "or\n"
     "as ONNX (the whole net, without sample preparation; docs/guide/trained-models.md).\n"
     "\n"
     "  anytime export runs/my-run --out model.onnx\n"
     "  anytime export runs/my-run --out model.safetensors\n",
     AT_FOR_EXPORT, at_verb_export},
    {"data", "list | get NAME | info NAME|PATH", "data sets",
     "  anytime data list          known sets, licences, whether they are here\n"
     "  anytime data get mnist     fetches and verifies a set into the cache\n"
     "  anytime data info PATH     what a set or file holds\n",
     AT_FOR_DATA, at_verb_data},
    {"models", "list | show NAME|FILE.net", "nets: layers, shapes, parameters, multiply-adds",
     "  anytime models list                          known nets\n"
     "  anytime models show mnist-cnn                what one is made of\n"
     "  anytime models show my.net --data PATH       your own, for the data you have\n",
     AT_FOR_MODELS, at_verb_models},
    {"doctor", "", "what this machine has, and what that means",
     "Looks at processor, memory, libraries and data sets; fit to paste into a bug report.\n",
     AT_FOR_DOCTOR, at_verb_doctor},
    {0},
};

const at_verb *at_verb_find(const char *name)
{
    for (const at_verb *verb = at_verbs; verb->name; verb++)
        if (strcmp(verb->name, name) == 0) return verb;
    return NULL;
}
