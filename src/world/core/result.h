/* result.h - settings and results of a run as JSON, for result.json. Internal to world/. */
#ifndef AT_WORLD_CORE_RESULT_H
#define AT_WORLD_CORE_RESULT_H

#include <jansson.h>

#include "record/tally.h"
#include "world/core/run.h"

typedef struct at_result_facts {
    const at_run_options *options;
    const at_plan        *plan;
    const at_run_info    *info;
    const at_tally       *tally;
    const at_outcome     *outcome;
    double                wall_seconds;
    uint32_t              cores;
    bool                  oversubscribed;
    uint64_t              drawn_before; /* by former workers that the resumed run does not have */
    uint64_t              saved;        /* step of the newest checkpoint, UINT64_MAX: none */
} at_result_facts;

/* Metrics by name: loss and accuracy (null if unknown), and those that the task has. */
json_t *at_result_metrics(const double value[AT_METRIC_COUNT]);

/* The commands of a resumed run before this one, the first one first; one that was repeated counts
 * once. NULL: it was not resumed. */
json_t *at_result_earlier_commands(const at_run_options *options);

/* Builds the document; NULL: out of memory. */
json_t *at_result_json(const at_result_facts *facts);

#endif
