/* tensorboard_usage.h - what a process takes from the machine, as numbers of TensorBoard. */
#ifndef AT_RECORD_SINKS_TENSORBOARD_USAGE_H
#define AT_RECORD_SINKS_TENSORBOARD_USAGE_H

#include "base/usage.h"
#include "record/sinks/tfevents.h"

/* Rates between two readings of one process that lie `seconds` apart, and the memory of the newer
 * one; what the system did not tell is left out. Returns how many there are. */
size_t at_tensorboard_usage(at_tfevents_scalar scalars[AT_TFEVENTS_SCALARS], const at_usage *before,
                            const at_usage *now, double seconds);

#endif
