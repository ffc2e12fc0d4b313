/* group.h - parameter groups: parts of the flat vector that learn by their own numbers.
 *
 * A group multiplies the run's learning rate and weight decay, and may have its own momentum and
 * schedule. Every tensor is in the group that its layer names, or else in that of its role:
 * `weights`, `biases`, `norms`. Groups that nobody set are all the same.
 */
#ifndef AT_LEARN_NET_GROUP_H
#define AT_LEARN_NET_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AT_GROUPS_MAX = 16 };

typedef struct at_group {
    char   name[24];
    double lr, decay;    /* factors, 1 for the run's own */
    double momentum;     /* 0: the optimiser's own */
    char   schedule[48]; /* "": the run's own */
} at_group;

typedef struct at_groups {
    at_group group[AT_GROUPS_MAX];
    uint32_t count;
} at_groups;

/* The index of the group of that name, added with factors of 1 when it is new; -1 when there are
 * too many. */
int at_groups_take(at_groups *groups, const char *name);

/* One range of the flat vector that is updated in one way: a group's parameters, or running
 * statistics, which follow the mean of the batches: s <- keep * s + (1 - keep) * mean. */
typedef struct at_param_range {
    size_t  at, count;
    int32_t group; /* index, or -1 for statistics */
    float   keep;  /* of statistics */
} at_param_range;

#endif
