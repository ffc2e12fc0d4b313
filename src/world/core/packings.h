/* packings.h - how a run's parameters and gradients are sent, where they are messages. */
#ifndef AT_WORLD_CORE_PACKINGS_H
#define AT_WORLD_CORE_PACKINGS_H

#include "world/core/host.h"
#include "world/core/world.h"

/* By --compress. Running statistics are sent in full; gradients of sparse tasks have their own
 * form, and `gradient` only says how long they can be. */
typedef struct at_packings {
    at_packing params, gradient;
} at_packings;

/* Of vectors of `floats` floats, the last `exact` of which are sent in full. AT_ERR_USAGE when they
 * are too large, as in at_packings_init. */
at_err at_packings_of(at_packings *packings, at_compress params, at_compress gradient,
                      size_t floats, size_t exact, at_fail *fail);

/* Of a run's vectors. */
at_err at_packings_init(at_packings *packings, const at_world_context *context, at_fail *fail);

/* Tells the user of a resumed run that residuals start at zero, if it has any. */
void at_packings_say(const at_world_context *context, at_host *host, at_ns now);

#endif
