#include "learn/engines/pool_kernels.h"

#include "base/isa.h"

#include <assert.h>

enum { BLOCK_MAX = 16 };

static at_axis_range rows_inside(const at_pool *p, size_t oh)
{
    at_axis_range s =
        at_axis_range_inside(oh, p->window.height, p->window.stride, p->window.top, p->in.height);
    assert(s.first < s.end);
    return s;
}

static at_axis_range columns_inside(const at_pool *p, size_t ow)
{
    at_axis_range s =
        at_axis_range_inside(ow, p->window.width, p->window.stride, p->window.left, p->in.width);
    assert(s.first < s.end);
    return s;
}

static at_axis_range rows_covering(const at_pool *p, size_t h)
{
    return at_axis_range_covering(h, p->window.height, p->window.stride, p->window.top,
                                  p->out.height);
}

static at_axis_range columns_covering(const at_pool *p, size_t w)
{
    return at_axis_range_covering(w, p->window.width, p->window.stride, p->window.left,
                                  p->out.width);
}

/* The input at position (r, c) of the window of output (oh, ow). The window is positioned in the
 * padded image. */
static const float *under(const at_pool *p, const float *x, size_t oh, size_t ow, size_t r,
                          size_t c)
{
    size_t h = oh * p->window.stride + r - p->window.top;
    size_t w = ow * p->window.stride + c - p->window.left;
    assert(h < p->in.height && w < p->in.width);
    return x + (h * p->in.width + w) * p->in.block;
}

static void check(const at_pool *p)
{
    assert(p->in.block == p->out.block && p->in.channels == p->out.channels);
    assert(p->in.block <= BLOCK_MAX);
    assert(p->window.top < p->window.height && p->window.bottom < p->window.height);
    assert(p->window.left < p->window.width && p->window.right < p->window.width);
}

/* One output position, all channels of a block. */
static void max_window(const at_pool *p, float *y, uint8_t *argmax, const float *x, size_t oh,
                       size_t ow, bool masks)
{
    at_axis_range rows = rows_inside(p, oh), columns = columns_inside(p, ow);
    for (size_t b = 0; b < p->in.block; b++) {
        size_t at = rows.first * p->window.width + columns.first;
        float  best = under(p, x, oh, ow, rows.first, columns.first)[b];
        for (size_t r = rows.first; r < rows.end; r++)
            for (size_t c = columns.first; c < columns.end; c++) {
                float value = under(p, x, oh, ow, r, c)[b];
                if (!(value > best)) continue;
                best = value;
                at = r * p->window.width + c;
            }
        y[b] = best;
        if (argmax) argmax[b] = (uint8_t)(masks && !(best > 0) ? AT_POOL_NONE : at);
    }
}

static void max_forward(const at_pool *pool, float *y, uint8_t *argmax, const float *x,
                        size_t count, bool masks)
{
    check(pool);
    size_t planes = count * at_activation_blocks(&pool->in), block = pool->in.block;
    for (size_t i = 0; i < planes; i++, x += at_activation_area(&pool->in) * block)
        for (size_t oh = 0; oh < pool->out.height; oh++)
            for (size_t ow = 0; ow < pool->out.width; ow++) {
                max_window(pool, y, argmax, x, oh, ow, masks);
                y += block;
                if (argmax) argmax += block;
            }
}

/* One input position, all channels of a block. */
static void max_backward_at(const at_pool *p, float *dx, const float *dy, const uint8_t *argmax,
                            size_t h, size_t w, at_write write)
{
    at_axis_range rows = rows_covering(p, h), columns = columns_covering(p, w);
    size_t        block = p->in.block, row = h + p->window.top, column = w + p->window.left;
    float         sum[BLOCK_MAX] = {0};
    for (size_t oh = rows.first; oh < rows.end; oh++)
        for (size_t ow = columns.first; ow < columns.end; ow++) {
            size_t at = (oh * p->out.width + ow) * block;
            size_t wanted =
                (row - oh * p->window.stride) * p->window.width + column - ow * p->window.stride;
            for (size_t b = 0; b < block; b++) sum[b] += argmax[at + b] == wanted ? dy[at + b] : 0;
        }
    for (size_t b = 0; b < block; b++) dx[b] = (write == AT_WRITE_ADD ? dx[b] : 0) + sum[b];
}

static void max_backward(const at_pool *pool, float *dx, const float *dy, const uint8_t *argmax,
                         size_t count, at_write write)
{
    check(pool);
    size_t planes = count * at_activation_blocks(&pool->in), block = pool->in.block;
    for (size_t i = 0; i < planes; i++) {
        for (size_t h = 0; h < pool->in.height; h++)
            for (size_t w = 0; w < pool->in.width; w++, dx += block)
                max_backward_at(pool, dx, dy, argmax, h, w, write);
        dy += at_activation_area(&pool->out) * block;
        argmax += at_activation_area(&pool->out) * block;
    }
}

static size_t area_of(at_axis_range rows, at_axis_range columns)
{
    return (rows.end - rows.first) * (columns.end - columns.first);
}

static void add_to(float *restrict sum, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) sum[i] += x[i];
}

static void avg_forward(const at_pool *pool, float *y, const float *x, size_t count)
{
    check(pool);
    size_t planes = count * at_activation_blocks(&pool->in), block = pool->in.block;
    for (size_t i = 0; i < planes; i++, x += at_activation_area(&pool->in) * block)
        for (size_t oh = 0; oh < pool->out.height; oh++)
            for (size_t ow = 0; ow < pool->out.width; ow++, y += block) {
                at_axis_range rows = rows_inside(pool, oh), columns = columns_inside(pool, ow);
                float         n = (float)area_of(rows, columns), sum[BLOCK_MAX] = {0};
                for (size_t r = rows.first; r < rows.end; r++)
                    for (size_t c = columns.first; c < columns.end; c++)
                        add_to(sum, under(pool, x, oh, ow, r, c), block);
                for (size_t b = 0; b < block; b++) y[b] = sum[b] / n;
            }
}

size_t at_avgpool_scratch(const at_pool *pool)
{
    return at_activation_area(&pool->out) * pool->out.block;
}

/* The share of dy that each element of a window gets. */
static void share(const at_pool *p, float *shares, const float *dy)
{
    size_t block = p->in.block;
    for (size_t oh = 0; oh < p->out.height; oh++)
        for (size_t ow = 0; ow < p->out.width; ow++, shares += block, dy += block) {
            float n = (float)area_of(rows_inside(p, oh), columns_inside(p, ow));
            for (size_t b = 0; b < block; b++) shares[b] = dy[b] / n;
        }
}

static void avg_backward_at(const at_pool *p, float *dx, const float *shares, size_t h, size_t w,
                            at_write write)
{
    at_axis_range rows = rows_covering(p, h), columns = columns_covering(p, w);
    size_t        block = p->in.block;
    float         sum[BLOCK_MAX] = {0};
    for (size_t oh = rows.first; oh < rows.end; oh++)
        for (size_t ow = columns.first; ow < columns.end; ow++)
            add_to(sum, shares + (oh * p->out.width + ow) * block, block);
    for (size_t b = 0; b < block; b++) dx[b] = (write == AT_WRITE_ADD ? dx[b] : 0) + sum[b];
}

static void avg_backward(const at_pool *pool, float *dx, const float *dy, size_t count,
                         at_write write, float *scratch)
{
    check(pool);
    size_t planes = count * at_activation_blocks(&pool->in), block = pool->in.block;
    for (size_t i = 0; i < planes; i++, dy += at_activation_area(&pool->out) * block) {
        share(pool, scratch, dy);
        for (size_t h = 0; h < pool->in.height; h++)
            for (size_t w = 0; w < pool->in.width; w++, dx += block)
                avg_backward_at(pool, dx, scratch, h, w, write);
    }
}

const at_pool_kernels at_pools_plain = {
    .name = "plain",
    .max_forward = max_forward,
    .max_backward = max_backward,
    .avg_forward = avg_forward,
    .avg_backward = avg_backward,
};

#if defined(__x86_64__)
const at_pool_kernels *at_pools_for(const at_pool *pool)
{
    bool avx2 = at_isa_here() >= AT_ISA_AVX2;
    check(pool);
    return avx2 && pool->in.block % 8 == 0 ? &at_pools_avx2 : &at_pools_plain;
}
#else
const at_pool_kernels *at_pools_for(const at_pool *pool)
{
    check(pool);
    return &at_pools_plain;
}
#endif
