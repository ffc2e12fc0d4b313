/* torch_learning.h - a PyTorch optimizer as the optimizer of a run: its kind and numbers. */
#ifndef AT_LEARN_OPTIM_TORCH_LEARNING_H
#define AT_LEARN_OPTIM_TORCH_LEARNING_H

#include "learn/net/group.h"
#include "learn/optim/optim.h"
#include "learn/optim/torch_update.h"

typedef struct at_torch_learning {
    at_optim        optim; /* name and state vectors; it has no update of its own */
    at_torch_kind   kind;
    at_torch_group  group[AT_GROUPS_MAX];
    uint32_t        groups;
    at_torch_range *ranges;
    size_t          ranges_count;
} at_torch_learning;

#endif
