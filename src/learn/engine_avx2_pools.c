/* Max pools by hand for AVX2: 8 channels in a register. */
#include "learn/pictures.h"

bool at_pool_avx2(const at_pool *pool)
{
    (void)pool;
    return false;
}

void at_pool_avx2_max_forward(const at_pool *pool, float *y, uint8_t *place, const float *x,
                              size_t count, bool masks)
{
    (void)pool, (void)y, (void)place, (void)x, (void)count, (void)masks;
}

void at_pool_avx2_max_backward(const at_pool *pool, float *dx, const float *dy,
                               const uint8_t *place, size_t count, at_write write)
{
    (void)pool, (void)dx, (void)place, (void)dy, (void)count, (void)write;
}
