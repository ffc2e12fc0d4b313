/* A newer version appears while a worker computes: what then? */
#include "step/rules/rules.h"

const at_newer_rule at_newer_rules[] = {
    {"finish", "goes on with what it has", NULL, AT_NEWER_FINISH},
    {"abandon", "stops at the next micro-batch and starts on the new one", NULL, AT_NEWER_ABANDON},
    {"refresh", "takes the new parameters at the next micro-batch", NULL, AT_NEWER_REFRESH},
    {0},
};
