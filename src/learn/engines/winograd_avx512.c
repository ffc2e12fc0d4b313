/* Winograd convolutions in vectors of 16 floats. */
#define VECTOR_512
#include "learn/engines/winograd_simd.h"

#if defined(__x86_64__)
const at_winograd_kernels at_winograd_avx512 = WINOGRAD_KERNELS;
#endif
