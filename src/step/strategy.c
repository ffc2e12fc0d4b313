/* The table: every published method is a row of six rules. A new one costs one line. */
#include "step/plan.h"

const at_strategy at_strategies[] = {
    {"fmb", "fixed minibatch: everybody does n samples, the step waits for all", "fixed", "all",
     "barrier", "finish", "drop", "static", "synchronous SGD, SyncReplicas, DDP"},
    {"amb", "anytime minibatch: everybody computes for a time T, whatever that gives", "timed",
     "all", "barrier", "finish", "drop", "static", "Anytime Minibatch"},
    {"backup", "the first K workers make the step, the others start over", "fixed", "first",
     "barrier", "abandon", "drop", "static",
     "K-sync; with --newer finish TensorFlow's backup workers"},
    {"batch-sync", "the first K batches of anybody on the same version make the step", "fixed",
     "any", "free", "abandon", "drop", "static", "K-batch-sync"},
    {"async", "every report is a step, nobody waits", "fixed", "any:1", "free", "finish", "use",
     "static", "asynchronous parameter server"},
    {"async-fmb", "any K reports make a step, nobody waits", "fixed", "any", "free", "finish",
     "use", "static", "Async-FMB, K-batch-async"},
    {"async-timed", "timed rounds and timed steps, nobody waits", "timed", "every", "free",
     "refresh", "use", "static", "Async-Timed, AMB-DG"},
    {"ssp", "every report is a step, nobody runs more than S rounds ahead", "fixed", "any:1",
     "bound", "finish", "use", "static", "stale synchronous parallel"},
    {"dbs", "fmb in which everybody's share follows its speed", "fixed", "all", "barrier", "finish",
     "drop", "speed:epoch", "DBS; with --size speed:step LB-BSP"},
    {"grow", "fmb with a batch that grows every so many epochs", "fixed", "all", "barrier",
     "finish", "drop", "grow", "dynamic batching, increasing"},
    {"shrink", "fmb with a batch that shrinks every so many epochs", "fixed", "all", "barrier",
     "finish", "drop", "shrink", "dynamic batching, decreasing"},
    {"loss", "fmb with a batch that doubles or halves by how the last epoch went", "fixed", "all",
     "barrier", "finish", "drop", "loss", "dynamic batching, loss based"},
    {"noise", "fmb with a batch that follows the gradient noise scale", "fixed", "all", "barrier",
     "finish", "drop", "noise", "dynamic batching, gradient noise scale"},
    {"probe", "fmb that tries 1, 2, 4, 8 times the batch and keeps the fastest", "fixed", "all",
     "barrier", "finish", "drop", "probe", "dynamic batching, smallest epoch time"},
};

const size_t at_strategies_count = sizeof at_strategies / sizeof *at_strategies;
