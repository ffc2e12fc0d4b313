/* optim_kinds.h - the rows of the table in optim.c; each lives in its own file optim_KIND.c. */
#ifndef AT_LEARN_OPTIM_OPTIM_KINDS_H
#define AT_LEARN_OPTIM_OPTIM_KINDS_H

#include "learn/optim/optim.h"

extern const at_optim at_optim_sgd;
extern const at_optim at_optim_momentum;
extern const at_optim at_optim_rmsprop;
extern const at_optim at_optim_adam;
extern const at_optim at_optim_adagrad;
extern const at_optim at_optim_dual_averaging;

/* The mean gradient of one parameter, weight decay included. Every optimiser starts with it. */
static inline float at_optim_mean(float w, float sum, const float scale, const float decay)
{
    return scale * sum + decay * w;
}

#endif
