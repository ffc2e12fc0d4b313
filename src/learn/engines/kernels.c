#include "learn/engines/kernels.h"

#include "base/isa.h"

#include <assert.h>
#include <stdbool.h>

/* Up to this many outputs the AVX2 kernels do all of a layer. Measured with 784 inputs on Zen 4:
 * they are 1.1 to 4 times faster than OpenBLAS's AVX2 kernels at every size tried; against its
 * AVX-512 kernels they are faster from 128 samples on, and up to 20 % slower on small products. */
enum { OUTPUTS_FEW_MAX = 32 };

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return at_isa_here() >= AT_ISA_AVX2;
}

static const at_kernels *fast_elementwise(void)
{
    return has_avx2() ? &at_kernels_avx2 : &at_kernels_portable;
}

static const at_kernels *fast_wide(void)
{
    return has_avx2() ? &at_kernels_mixed : &at_kernels_blas;
}
#else
static const at_kernels *fast_elementwise(void)
{
    return &at_kernels_portable;
}

static const at_kernels *fast_wide(void)
{
    return &at_kernels_blas;
}
#endif

const at_kernels *at_kernels_elementwise(at_engine engine)
{
    return engine == AT_ENGINE_REF ? &at_kernels_ref : fast_elementwise();
}

const at_kernels *at_kernels_dense(at_engine engine, size_t I, size_t O)
{
    assert(I > 0);
    assert(O > 0);
    if (engine == AT_ENGINE_REF || O <= OUTPUTS_FEW_MAX) return at_kernels_elementwise(engine);
    return fast_wide();
}
