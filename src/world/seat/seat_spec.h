/* seat_spec.h - what the seats of a run train, checked and copied. Internal to world/.
 *
 *     at_seat_spec of the caller ──at_spec_new──► at_spec ──JSON──► hub ──at_spec_read──► at_spec
 */
#ifndef AT_WORLD_SEAT_SEAT_SPEC_H
#define AT_WORLD_SEAT_SEAT_SPEC_H

#include <jansson.h>

#include "anytime.h"
#include "base/err.h"
#include "learn/net/group.h"
#include "learn/net/model.h"
#include "learn/optim/torch_update.h"
#include "world/core/packings.h"

enum { AT_SPEC_TENSORS_MAX = 4096, AT_SPEC_MODEL_SIZE = 64 };

typedef struct at_spec {
    char            model[AT_SPEC_MODEL_SIZE], optimizer[16];
    bool            at_workers; /* seats update, the hub returns mean gradients */
    uint32_t        batch;      /* >= 1 */
    uint64_t        samples;    /* of an epoch; 0: unknown */
    at_tensor      *tensors;
    at_param_range *ranges;          /* of each tensor: its group, or -1 for a buffer */
    uint32_t        count;           /* of tensors */
    size_t          floats, trained; /* of the flat vector; buffers are its tail */
    at_seat_group   group[AT_SEAT_GROUPS_MAX];
    uint32_t        groups; /* >= 1 */
} at_spec;

/* Checks and copies a spec. AT_ERR_USAGE with the first thing that is wrong with it. */
at_err at_spec_new(const at_seat_spec *given, at_spec *spec, at_fail *fail);
void   at_spec_deinit(at_spec *spec); /* accepts a zeroed one */

/* Whether a name can be in JSON: in messages, checkpoints and results. */
bool at_spec_is_utf8(const char *name);

/* As JSON, and back. JSON from a peer may be anything: AT_ERR_FORMAT or AT_ERR_USAGE. */
json_t *at_spec_write(const at_spec *spec);
at_err  at_spec_read(const json_t *json, at_spec *spec, at_fail *fail);

/* AT_ERR_USAGE with the first difference when seats with these specs cannot train together. */
at_err at_spec_compare(const at_spec *first, const at_spec *other, at_fail *fail);

/* How its vectors are sent with --compress. AT_ERR_USAGE when they are too large. */
at_err at_spec_packings(const at_spec *spec, at_compress compress, at_packings *packings,
                        at_fail *fail);

/* The optimizer of that name ("adamw"), AT_TORCH_COUNT when there is none, and the numbers of a
 * group as the hub's update takes them. */
at_torch_kind  at_spec_kind(const char *optimizer);
at_torch_group at_spec_group(const at_seat_group *group);

/* True when all numbers of a group can be used. */
bool at_seat_group_valid(at_torch_kind kind, const at_seat_group *group);

#endif
