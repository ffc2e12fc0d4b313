/* gradient_parts.h - a long gradient as several messages. Internal to world/.
 *
 *     0        front                          trained       floats
 *     │ report │ part 2 │ part 1 │ part 0     │ statistics  │
 *       last                       first        just before the report
 *
 * The backward pass runs from the end of the vector to its start. So in a round's last micro-batch
 * the parts of the last layers are sent while the others are still computed. Hub and workers cut
 * alike, and every round has all messages, in this order: parts that were final too late follow
 * with the report, and those of a round without a gradient are one number long. Each is received
 * where it belongs. Parts are large enough for the bandwidth and few enough to be polled often.
 */
#ifndef AT_WORLD_MPI_GRADIENT_PARTS_H
#define AT_WORLD_MPI_GRADIENT_PARTS_H

#include "learn/optim/sum.h"
#include "world/core/world.h"

enum {
    AT_PART_FLOATS_MIN = 1 << 18, /* vectors of less than two such parts are sent whole */
    AT_PARTS_EARLY_MAX = 16,
    AT_PARTS_MAX = AT_PARTS_EARLY_MAX + 1
};

typedef struct at_gradient_parts {
    uint32_t count; /* messages besides the report; 0: the report has everything */
    uint32_t early; /* of these, parts; the other one has statistics */
    size_t   size;  /* floats of a part */
    size_t   front; /* floats of the report */
    size_t   trained, floats;
} at_gradient_parts;

/* How a vector is cut; all of it belongs to the report if it is short. */
at_gradient_parts at_gradient_parts_cut(size_t trained, size_t floats);

/* How the gradients of a run are sent; `count` is 0 where they are not final before the round ends:
 * compressed, sparse and local changes, rounds that can be interrupted. */
at_gradient_parts at_gradient_parts_of(const at_world_context *context);

/* The i-th message, in the order of sending. */
at_slice at_gradient_part(const at_gradient_parts *parts, uint32_t i);

#endif
