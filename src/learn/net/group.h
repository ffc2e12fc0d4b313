/* group.h - parameter groups: parts of the flat vector with their own optimizer settings.
 *
 * A group multiplies the run's learning rate and weight decay, and may have its own momentum and
 * schedule. Every tensor is in the group that its layer names, or else in that of its role:
 * `weights`, `biases`, `norms`. Groups without settings use the run's.
 */
#ifndef AT_LEARN_NET_GROUP_H
#define AT_LEARN_NET_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AT_GROUPS_MAX = 16 };

typedef struct at_param_group {
    char   name[24];
    double lr, decay;    /* factors, 1 by default */
    double momentum;     /* 0: the optimizer's default */
    char   schedule[48]; /* "": the run's */
} at_param_group;

typedef struct at_param_groups {
    at_param_group group[AT_GROUPS_MAX];
    uint32_t       count;
} at_param_groups;

/* A range of the flat vector with one set of update settings: parameters of a group, or running
 * statistics, a moving average over batches: s <- keep * s + (1 - keep) * mean. */
typedef struct at_param_range {
    size_t  at, count;
    int32_t group; /* index, or -1 for statistics */
    float   keep;  /* statistics: the weight of the old value */
} at_param_range;

#endif
