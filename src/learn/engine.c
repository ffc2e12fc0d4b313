#include "learn/kernels.h"

#include <assert.h>
#include <stdbool.h>

/* Up to this many outputs the hand-written kernels beat a general matrix product, which has to
 * pack its operands before it starts. */
enum { OUTPUTS_FEW_MAX = 32 };

static bool has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

const at_kernels *at_kernels_plain(at_engine engine)
{
    if (engine == AT_ENGINE_REF) return &at_kernels_ref;
    return has_avx2() ? &at_kernels_avx2 : &at_kernels_portable;
}

const at_kernels *at_kernels_dense(at_engine engine, size_t I, size_t O)
{
    assert(I > 0);
    assert(O > 0);
    if (engine == AT_ENGINE_REF || O <= OUTPUTS_FEW_MAX) return at_kernels_plain(engine);
    return has_avx2() ? &at_kernels_mixed : &at_kernels_blas;
}
