/* The newer rules: what does a worker do when a newer version appears during its round? */
#include "step/plan.h"

const at_newer_rule at_newer_rules[] = {
    {.rule = {.name = "finish", .summary = "finish the round on the version it started from"},
     .choice = AT_NEWER_FINISH},
    {.rule = {.name = "abandon", .summary = "stop at the next micro-batch and start over"},
     .choice = AT_NEWER_ABANDON,
     .interrupts = true},
    {.rule = {.name = "refresh", .summary = "install the new parameters at the next micro-batch"},
     .choice = AT_NEWER_REFRESH,
     .interrupts = true},
    {.rule = {0}},
};
