/* Average pools by hand for AVX2: 8 channels in a register. Places are summed row by row, as in the
 * plain loops. Windows that tile the picture, as most do, hand back the same number to each place
 * under them. */
#include "learn/engines/avx2_pool.h"

#if defined(__x86_64__)

#include <assert.h>

static at_axis_range rows_under(const at_pool *pool, size_t oh)
{
    const at_window *v = &pool->window;
    return at_axis_range_inside(oh, v->height, v->stride, v->top, pool->in.height);
}

static at_axis_range columns_under(const at_pool *pool, size_t ow)
{
    const at_window *v = &pool->window;
    return at_axis_range_inside(ow, v->width, v->stride, v->left, pool->in.width);
}

static size_t length(at_axis_range span)
{
    assert(span.first < span.end);
    return span.end - span.first;
}

/* 8 channels; x is the first of rows x columns places. */
TILE __m256 mean(const float *x, size_t rows, size_t columns, size_t row, size_t block)
{
    __m256 sum = _mm256_setzero_ps();
    for (size_t r = 0; r < rows; r++, x += row)
        for (size_t c = 0; c < columns; c++)
            sum = _mm256_add_ps(sum, _mm256_loadu_ps(x + c * block));
    return _mm256_div_ps(sum, _mm256_set1_ps((float)(rows * columns)));
}

AVX2 static void forward_row(const at_pool *pool, float *y, const float *x, size_t oh)
{
    const at_window *v = &pool->window;
    size_t           block = pool->in.block, width = pool->in.width;
    at_axis_range    rows = rows_under(pool, oh);
    const float     *from = x + (oh * v->stride + rows.first - v->top) * width * block;
    for (size_t ow = 0; ow < pool->out.width; ow++, y += block) {
        at_axis_range columns = columns_under(pool, ow);
        size_t        w = ow * v->stride + columns.first - v->left;
        for (size_t lane = 0; lane < block; lane += LANES)
            _mm256_storeu_ps(y + lane, mean(from + w * block + lane, length(rows), length(columns),
                                            width * block, block));
    }
}

void at_avx2_mean_forward(const at_pool *pool, float *y, const float *x, size_t count)
{
    size_t planes = count * at_activation_blocks(&pool->in),
           row = pool->out.width * pool->out.block;
    assert(pool->in.block % LANES == 0);
    for (size_t i = 0; i < planes; i++, x += at_activation_area(&pool->in) * pool->in.block)
        for (size_t oh = 0; oh < pool->out.height; oh++, y += row) forward_row(pool, y, x, oh);
}

/* Every place lies under exactly one window, and every window has all its places. */
static bool tiles(const at_pool *pool)
{
    const at_window *v = &pool->window;
    bool             one = pool->out.height == 1 && pool->out.width == 1;
    return v->top == 0 && v->left == 0 &&
           (one || (v->stride == v->height && v->stride == v->width)) &&
           pool->out.height * v->height == pool->in.height &&
           pool->out.width * v->width == pool->in.width;
}

/* What each place under a window gets. */
AVX2 static void share(const at_pool *pool, float *shares, const float *dy)
{
    size_t block = pool->in.block;
    for (size_t oh = 0; oh < pool->out.height; oh++) {
        size_t rows = length(rows_under(pool, oh));
        for (size_t ow = 0; ow < pool->out.width; ow++, shares += block, dy += block) {
            __m256 n = _mm256_set1_ps((float)(rows * length(columns_under(pool, ow))));
            for (size_t lane = 0; lane < block; lane += LANES)
                _mm256_storeu_ps(shares + lane, _mm256_div_ps(_mm256_loadu_ps(dy + lane), n));
        }
    }
}

/* The row of the picture below `shares`, a row of windows that tile it. */
AVX2 static void spread_tiles(const at_pool *pool, float *dx, const float *shares, at_write write)
{
    size_t block = pool->in.block;
    for (size_t ow = 0; ow < pool->out.width; ow++, shares += block)
        for (size_t lane = 0; lane < block; lane += LANES) {
            __m256 s = _mm256_loadu_ps(shares + lane);
            float *to = dx + ow * pool->window.width * block + lane;
            for (size_t c = 0; c < pool->window.width; c++) put(to + c * block, s, write);
        }
}

/* The same for any windows: the picture's row h, below the windows of rows.first .. rows.end-1. */
AVX2 static void spread_any(const at_pool *pool, float *dx, const float *shares, at_axis_range rows,
                            at_write write)
{
    const at_window *v = &pool->window;
    size_t           block = pool->in.block, row = pool->out.width * block;
    for (size_t w = 0; w < pool->in.width; w++, dx += block) {
        at_axis_range columns =
            at_axis_range_covering(w, v->width, v->stride, v->left, pool->out.width);
        for (size_t lane = 0; lane < block; lane += LANES) {
            __m256 sum = _mm256_setzero_ps();
            for (size_t oh = rows.first; oh < rows.end; oh++)
                for (size_t ow = columns.first; ow < columns.end; ow++)
                    sum =
                        _mm256_add_ps(sum, _mm256_loadu_ps(shares + oh * row + ow * block + lane));
            put(dx + lane, sum, write);
        }
    }
}

static void spread(const at_pool *pool, float *dx, const float *shares, at_write write)
{
    const at_window *v = &pool->window;
    size_t           row = pool->in.width * pool->in.block;
    bool             tiled = tiles(pool);
    for (size_t h = 0; h < pool->in.height; h++, dx += row) {
        at_axis_range rows =
            at_axis_range_covering(h, v->height, v->stride, v->top, pool->out.height);
        if (tiled)
            spread_tiles(pool, dx, shares + rows.first * pool->out.width * pool->out.block, write);
        else
            spread_any(pool, dx, shares, rows, write);
    }
}

void at_avx2_mean_backward(const at_pool *pool, float *dx, const float *dy, size_t count,
                           at_write write, float *scratch)
{
    size_t planes = count * at_activation_blocks(&pool->in);
    assert(pool->in.block % LANES == 0);
    for (size_t i = 0; i < planes; i++) {
        share(pool, scratch, dy);
        spread(pool, dx, scratch, write);
        dx += at_activation_area(&pool->in) * pool->in.block;
        dy += at_activation_area(&pool->out) * pool->out.block;
    }
}

#endif
