/* Winograd convolutions in vectors of 8 floats. */
#include "learn/engines/winograd_simd.h"

#if defined(__x86_64__)
const at_winograd_kernels at_winograd_avx2 = WINOGRAD_KERNELS;
#endif
