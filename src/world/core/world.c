#include "world/core/world.h"

#include <stdlib.h>

void at_outcome_deinit(at_outcome *outcome)
{
    free(outcome->params);
    free(outcome->drawn);
    free(outcome->lost);
    *outcome = (at_outcome){0};
}
