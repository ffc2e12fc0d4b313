/* comm_delay.h - the published comm straggler: a message that was received is held for a while. */
#ifndef AT_PACE_COMM_DELAY_H
#define AT_PACE_COMM_DELAY_H

#include <stdint.h>

#include "base/time.h"

/* How long message number `message` of `node` is held: |N(0,1)| * sigma seconds, 0 for sigma 0. The
 * same for the same numbers in every world. */
at_ns at_comm_delay(double sigma, uint64_t seed, uint32_t node, uint64_t message);

#endif
