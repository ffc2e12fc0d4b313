/* The table: every published method is a row of six rules. A new one costs one line. */
#include "step/plan.h"

const at_strategy at_strategies[] = {
    {"fmb", "fixed minibatch: everybody does n samples, the step waits for all", "fixed", "all",
     "barrier", "finish", "drop", "static", .known_as = "synchronous SGD, SyncReplicas, DDP"},
    {"amb", "anytime minibatch: everybody computes for a time T, whatever that gives", "timed",
     "all", "barrier", "finish", "drop", "static", .known_as = "Anytime Minibatch"},
    {"backup", "the first K workers make the step, the others start over", "fixed", "first",
     "barrier", "abandon", "drop", "static",
     .known_as = "K-sync; with --newer finish TensorFlow's backup workers"},
    {"batch-sync", "the first K batches of anybody on the same version make the step", "fixed",
     "any", "free", "abandon", "drop", "static", .known_as = "K-batch-sync"},
    {"async", "every report is a step, nobody waits", "fixed", "any:1", "free", "finish", "use",
     "static", .known_as = "asynchronous parameter server"},
    {"async-fmb", "any K reports make a step, nobody waits", "fixed", "any", "free", "finish",
     "use", "static", .known_as = "Async-FMB, K-batch-async"},
    {"async-timed", "timed rounds and timed steps, nobody waits", "timed", "every", "free",
     "refresh", "use", "static", .known_as = "Async-Timed, AMB-DG"},
    {"ssp", "every report is a step, nobody runs more than S rounds ahead", "fixed", "any:1",
     "bound", "finish", "use", "static", .known_as = "stale synchronous parallel"},
    {"dbs", "fmb in which everybody's share follows its speed", "fixed", "all", "barrier", "finish",
     "drop", "speed:epoch", .known_as = "DBS; with --size speed:step LB-BSP"},
    {"grow", "fmb with a batch that grows every so many epochs", "fixed", "all", "barrier",
     "finish", "drop", "grow", .known_as = "dynamic batching, increasing"},
    {"shrink", "fmb with a batch that shrinks every so many epochs", "fixed", "all", "barrier",
     "finish", "drop", "shrink", .known_as = "dynamic batching, decreasing"},
    {"loss", "fmb with a batch that doubles or halves by how the last epoch went", "fixed", "all",
     "barrier", "finish", "drop", "loss", .known_as = "dynamic batching, loss based"},
    {"noise", "fmb with a batch that follows the gradient noise scale", "fixed", "all", "barrier",
     "finish", "drop", "noise", .known_as = "dynamic batching, gradient noise scale"},
    {"probe", "fmb that tries 1, 2, 4, 8 times the batch and keeps the fastest", "fixed", "all",
     "barrier", "finish", "drop", "probe", .known_as = "dynamic batching, smallest epoch time"},
    {"hogwild", "workers change the shared weights themselves, nobody waits (sparse models)",
     "fixed", "any:1", "free", "finish", "use", "static", .known_as = "Hogwild!",
     .topology = AT_TOPOLOGY_HOGWILD, .batch = 4096, .micro_batch = 256},
};

const size_t at_strategies_count = sizeof at_strategies / sizeof *at_strategies;
