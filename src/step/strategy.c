/* The table: every published method is a row of six rules. A new one costs one line. */
#include "step/plan.h"

const at_strategy at_strategies[] = {
    {"fmb", "fixed minibatch: everybody does n samples, the step waits for all", "fixed", "all",
     "barrier", "finish", "drop", "static", "synchronous SGD, SyncReplicas, DDP"},
    {"amb", "anytime minibatch: everybody computes for a time T, whatever that gives", "timed",
     "all", "barrier", "finish", "drop", "static", "Anytime Minibatch"},
};

const size_t at_strategies_count = sizeof at_strategies / sizeof *at_strategies;
