#include "pace/comm_delay.h"

#include <assert.h>
#include <math.h>

#include "base/rng.h"

at_ns at_comm_delay(double sigma, uint64_t seed, uint32_t node, uint64_t message)
{
    assert(sigma >= 0);
    if (sigma == 0) return 0;
    at_rng rng = at_rng_stream(seed, node, AT_RNG_PURPOSE_NETWORK, message);
    return AT_SEC(fabs(at_rng_normal(&rng)) * sigma);
}
