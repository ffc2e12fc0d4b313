/* Pools with AVX2: 8 channels per register.
 *
 * Max pool positions are 32 bits in registers and bytes in memory. The common windows, 2x2 and 3x3
 * with stride 2, are compiled with constant sizes. Backward goes over the padded image in squares
 * of 2x2, which four windows of 3x3 can overlap:
 *
 *     above left | above
 *     -----------+------       the square is the upper left part of the window `here`, and
 *           left | here        the right column, lower row or corner of the others
 *
 * so each square is written once, from registers. Average pools sum row by row, as in the plain
 * loops; windows that tile the image, as most do, give each position under them the same value. */
#include "learn/engines/pool_kernels.h"

#include "learn/engines/avx2.h"

#if defined(__x86_64__)

#include <assert.h>

/* Stores 8 channels of one position of dx. */
TILE void put(float *dx, __m256 sum, at_write write)
{
    __m256 before = write == AT_WRITE_ADD ? _mm256_loadu_ps(dx) : _mm256_setzero_ps();
    _mm256_storeu_ps(dx, _mm256_add_ps(before, sum));
}

/* ---- max pool -------------------------------------------------------------------------------- */

typedef struct best {
    __m256  value;
    __m256i argmax;
} best;

/* A later value wins only if it is larger: maxps returns its second operand otherwise. */
TILE best best_of(best b, const float *x, size_t argmax)
{
    __m256 v = _mm256_loadu_ps(x);
    __m256 more = _mm256_cmp_ps(v, b.value, _CMP_GT_OQ);
    __m256 at = _mm256_castsi256_ps(_mm256_set1_epi32((int)argmax));
    b.value = _mm256_max_ps(v, b.value);
    b.argmax = _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(b.argmax), at, more));
    return b;
}

/* Stores 8 positions as bytes; all ones, which is NONE, where `mask` is set and the value is not
 * positive. */
TILE void store_argmax(uint8_t *argmax, best b, __m256i mask)
{
    const __m256i low =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256  live = _mm256_cmp_ps(b.value, _mm256_setzero_ps(), _CMP_GT_OQ);
    __m256i none = _mm256_andnot_si256(_mm256_castps_si256(live), mask);
    __m256i four = _mm256_shuffle_epi8(_mm256_or_si256(b.argmax, none), low);
    __m128i upper = _mm256_extracti128_si256(four, 1);
    _mm_storel_epi64((__m128i *)argmax, _mm_unpacklo_epi32(_mm256_castsi256_si128(four), upper));
}

/* What all windows share. */
typedef struct forward_job {
    const at_pool *pool;
    size_t         height, width, stride; /* constants for the common windows */
    bool           common, saves;         /* constants */
    __m256i        mask;
} forward_job;

/* 8 channels; x is the first position inside the image. */
TILE best window_part(const forward_job *job, const float *x, at_axis_range rows,
                      at_axis_range columns)
{
    size_t block = job->pool->in.block, row = job->pool->in.width * block;
    size_t first = rows.first * job->width + columns.first;
    best   b = {_mm256_loadu_ps(x), _mm256_set1_epi32((int)first)};
    for (size_t r = rows.first; r < rows.end; r++, x += row)
        for (size_t c = columns.first; c < columns.end; c++)
            b = best_of(b, x + (c - columns.first) * block, r * job->width + c);
    return b;
}

TILE best window_whole(const forward_job *job, const float *x)
{
    size_t block = job->pool->in.block, row = job->pool->in.width * block;
    best   b = {_mm256_loadu_ps(x), _mm256_setzero_si256()};
    EACH(r, job->height)
    EACH(c, job->width)
    if (r + c > 0) b = best_of(b, x + r * row + c * block, r * job->width + c);
    return b;
}

/* One output position, all channels of a block. */
TILE void window(const forward_job *job, float *y, uint8_t *argmax, const float *x,
                 at_axis_range rows, at_axis_range columns)
{
    bool whole = rows.end - rows.first == job->height && columns.end - columns.first == job->width;
    for (size_t lane = 0; lane < job->pool->in.block; lane += LANES) {
        best b = job->common && whole ? window_whole(job, x + lane)
                                      : window_part(job, x + lane, rows, columns);
        _mm256_storeu_ps(y + lane, b.value);
        if (job->saves) store_argmax(argmax + lane, b, job->mask);
    }
}

TILE void forward_plane(const forward_job *job, float *y, uint8_t *argmax, const float *x)
{
    const at_activation *in = &job->pool->in, *out = &job->pool->out;
    size_t               top = job->pool->window.top, left = job->pool->window.left;
    for (size_t oh = 0; oh < out->height; oh++) {
        at_axis_range rows = at_axis_range_inside(oh, job->height, job->stride, top, in->height);
        size_t        h = oh * job->stride + rows.first - top;
        for (size_t ow = 0; ow < out->width; ow++) {
            at_axis_range columns =
                at_axis_range_inside(ow, job->width, job->stride, left, in->width);
            size_t w = ow * job->stride + columns.first - left;
            window(job, y, argmax, x + (h * in->width + w) * in->block, rows, columns);
            y += out->block;
            if (job->saves) argmax += out->block;
        }
    }
}

TILE void forward_planes(const at_pool *pool, float *y, uint8_t *argmax, const float *x,
                         size_t count, bool masks, size_t common, bool saves)
{
    size_t      planes = count * at_activation_blocks(&pool->in);
    size_t      in = at_activation_area(&pool->in) * pool->in.block;
    size_t      out = at_activation_area(&pool->out) * pool->out.block;
    forward_job job = {.pool = pool,
                       .height = common ? common : pool->window.height,
                       .width = common ? common : pool->window.width,
                       .stride = common ? 2 : pool->window.stride,
                       .common = common > 0,
                       .saves = saves,
                       .mask = _mm256_set1_epi32(masks ? -1 : 0)};
    for (size_t i = 0; i < planes; i++)
        forward_plane(&job, y + i * out, saves ? argmax + i * out : NULL, x + i * in);
}

/* The size of a common window, 0 for others. */
static size_t common_size(const at_window *w)
{
    bool common = w->stride == 2 && w->height == w->width && (w->height == 2 || w->height == 3);
    return common ? w->height : 0;
}

AVX2 static void max_forward(const at_pool *pool, float *y, uint8_t *argmax, const float *x,
                             size_t count, bool masks)
{
    assert(pool->in.block % LANES == 0);
    switch (common_size(&pool->window) * 2 + (argmax != NULL)) {
    case 4: forward_planes(pool, y, argmax, x, count, masks, 2, false); break;
    case 5: forward_planes(pool, y, argmax, x, count, masks, 2, true); break;
    case 6: forward_planes(pool, y, argmax, x, count, masks, 3, false); break;
    case 7: forward_planes(pool, y, argmax, x, count, masks, 3, true); break;
    case 1: forward_planes(pool, y, argmax, x, count, masks, 0, true); break;
    default: forward_planes(pool, y, argmax, x, count, masks, 0, false); break;
    }
}

/* 8 channels of the gradient of one window. */
typedef struct window_dy {
    __m256  dy;
    __m256i argmax;
} window_dy;

TILE window_dy load_dy(const float *dy, const uint8_t *argmax, size_t at)
{
    return (window_dy){_mm256_loadu_ps(dy + at),
                       _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(argmax + at)))};
}

/* sum + dy where the maximum was at this position. */
TILE __m256 add_if(__m256 sum, window_dy s, size_t argmax)
{
    __m256i mine = _mm256_cmpeq_epi32(s.argmax, _mm256_set1_epi32((int)argmax));
    return _mm256_add_ps(sum, _mm256_and_ps(_mm256_castsi256_ps(mine), s.dy));
}

/* Which of the two rows (or columns) of a square are inside the image. */
typedef struct pair {
    size_t first; /* in the image; undefined unless has_first */
    bool   has_first, has_second;
} pair;

TILE pair pair_at(size_t index, size_t top, size_t height)
{
    size_t row = 2 * index; /* in the padded image */
    return (pair){.first = row - top,
                  .has_first = row >= top && row - top < height,
                  .has_second = row + 1 >= top && row + 1 - top < height};
}

/* A row of squares, 8 channels; dx, dy and argmax point to the first of these channels. */
typedef struct square_row {
    const at_pool *pool;
    float         *dx;
    const float   *dy;
    const uint8_t *argmax;
    at_write       write;
    size_t         above, here; /* offsets of the rows of windows in dy, if any */
    bool           has_above, has_here;
    pair           rows;
} square_row;

TILE void put_square(const square_row *q, pair columns, const __m256 sum[4])
{
    size_t block = q->pool->in.block, row = q->pool->in.width;
    for (size_t i = 0; i < 2; i++) {
        if (!(i ? q->rows.has_second : q->rows.has_first)) continue;
        size_t at = (q->rows.first + i) * row + columns.first;
        if (columns.has_first) put(q->dx + at * block, sum[2 * i], q->write);
        if (columns.has_second) put(q->dx + (at + 1) * block, sum[2 * i + 1], q->write);
    }
}

TILE void squares_of_two(const square_row *q)
{
    const at_activation *in = &q->pool->in, *out = &q->pool->out;
    size_t               left = q->pool->window.left, squares = (in->width + left + 1) / 2;
    const __m256         zero = _mm256_setzero_ps();
    const window_dy      none = {zero, _mm256_setzero_si256()};
    for (size_t i = 0; i < squares; i++) {
        bool      there = q->has_here && i < out->width;
        window_dy here = there ? load_dy(q->dy, q->argmax, q->here + i * out->block) : none;
        put_square(q, pair_at(i, left, in->width),
                   (__m256[4]){add_if(zero, here, 0), add_if(zero, here, 1), add_if(zero, here, 2),
                               add_if(zero, here, 3)});
    }
}

TILE void squares_of_three(const square_row *q)
{
    const at_activation *in = &q->pool->in, *out = &q->pool->out;
    size_t               left = q->pool->window.left, squares = (in->width + left + 1) / 2;
    const __m256         zero = _mm256_setzero_ps();
    const window_dy      none = {zero, _mm256_setzero_si256()};
    window_dy            before = none, above_before = none;
    for (size_t i = 0; i < squares; i++) {
        bool      there = i < out->width;
        size_t    at = i * out->block;
        window_dy above = q->has_above && there ? load_dy(q->dy, q->argmax, q->above + at) : none;
        window_dy here = q->has_here && there ? load_dy(q->dy, q->argmax, q->here + at) : none;
        __m256    corner = add_if(add_if(zero, above_before, 8), above, 6);
        put_square(q, pair_at(i, left, in->width),
                   (__m256[4]){add_if(add_if(corner, before, 2), here, 0),
                               add_if(add_if(zero, above, 7), here, 1),
                               add_if(add_if(zero, before, 5), here, 3), add_if(zero, here, 4)});
        before = here;
        above_before = above;
    }
}

TILE void backward_squares(const at_pool *pool, float *dx, const float *dy, const uint8_t *argmax,
                           at_write write, size_t size)
{
    size_t top = pool->window.top, row = pool->out.width * pool->out.block;
    for (size_t i = 0; i < (pool->in.height + top + 1) / 2; i++)
        for (size_t lane = 0; lane < pool->in.block; lane += LANES) {
            square_row q = {.pool = pool,
                            .dx = dx + lane,
                            .dy = dy + lane,
                            .argmax = argmax + lane,
                            .write = write,
                            .above = i > 0 ? (i - 1) * row : 0,
                            .here = i * row,
                            .has_above = i > 0 && i - 1 < pool->out.height,
                            .has_here = i < pool->out.height,
                            .rows = pair_at(i, top, pool->in.height)};
            if (size == 2)
                squares_of_two(&q);
            else
                squares_of_three(&q);
        }
}

/* One position of the image, 8 channels: it is position (row - oh stride, column - ow stride) in
 * the windows that cover it. Row and column are those of the padded image. */
TILE __m256 sum_windows(const at_pool *pool, const float *dy, const uint8_t *argmax, size_t row,
                        size_t column, at_axis_range rows, at_axis_range columns)
{
    const at_window *v = &pool->window;
    __m256           sum = _mm256_setzero_ps();
    for (size_t oh = rows.first; oh < rows.end; oh++)
        for (size_t ow = columns.first; ow < columns.end; ow++) {
            size_t at = (oh * pool->out.width + ow) * pool->out.block;
            size_t mine = (row - oh * v->stride) * v->width + column - ow * v->stride;
            sum = add_if(sum, load_dy(dy, argmax, at), mine);
        }
    return sum;
}

TILE void backward_any(const at_pool *pool, float *dx, const float *dy, const uint8_t *argmax,
                       at_write write)
{
    const at_window     *v = &pool->window;
    const at_activation *in = &pool->in, *out = &pool->out;
    for (size_t h = 0; h < in->height; h++) {
        at_axis_range rows = at_axis_range_covering(h, v->height, v->stride, v->top, out->height);
        for (size_t w = 0; w < in->width; w++, dx += in->block) {
            at_axis_range columns =
                at_axis_range_covering(w, v->width, v->stride, v->left, out->width);
            for (size_t lane = 0; lane < in->block; lane += LANES)
                put(dx + lane,
                    sum_windows(pool, dy + lane, argmax + lane, h + v->top, w + v->left, rows,
                                columns),
                    write);
        }
    }
}

AVX2 static void max_backward(const at_pool *pool, float *dx, const float *dy,
                              const uint8_t *argmax, size_t count, at_write write)
{
    size_t planes = count * at_activation_blocks(&pool->in), size = common_size(&pool->window);
    size_t in = at_activation_area(&pool->in) * pool->in.block;
    size_t out = at_activation_area(&pool->out) * pool->out.block;
    assert(pool->in.block % LANES == 0);
    for (size_t i = 0; i < planes; i++, dx += in, dy += out, argmax += out) {
        if (size == 2)
            backward_squares(pool, dx, dy, argmax, write, 2);
        else if (size == 3)
            backward_squares(pool, dx, dy, argmax, write, 3);
        else
            backward_any(pool, dx, dy, argmax, write);
    }
}

/* ---- average pool ---------------------------------------------------------------------------- */

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

/* 8 channels; x is the first of rows x columns positions. */
TILE __m256 mean(const float *x, size_t rows, size_t columns, size_t row, size_t block)
{
    __m256 sum = _mm256_setzero_ps();
    for (size_t r = 0; r < rows; r++, x += row)
        for (size_t c = 0; c < columns; c++)
            sum = _mm256_add_ps(sum, _mm256_loadu_ps(x + c * block));
    return _mm256_div_ps(sum, _mm256_set1_ps((float)(rows * columns)));
}

AVX2 static void avg_row(const at_pool *pool, float *y, const float *x, size_t oh)
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

static void avg_forward(const at_pool *pool, float *y, const float *x, size_t count)
{
    size_t planes = count * at_activation_blocks(&pool->in),
           row = pool->out.width * pool->out.block;
    assert(pool->in.block % LANES == 0);
    for (size_t i = 0; i < planes; i++, x += at_activation_area(&pool->in) * pool->in.block)
        for (size_t oh = 0; oh < pool->out.height; oh++, y += row) avg_row(pool, y, x, oh);
}

/* Whether the windows tile the image: no overlap, no gaps, no padding. */
static bool tiles(const at_pool *pool)
{
    const at_window *v = &pool->window;
    bool             one = pool->out.height == 1 && pool->out.width == 1;
    return v->top == 0 && v->left == 0 &&
           (one || (v->stride == v->height && v->stride == v->width)) &&
           pool->out.height * v->height == pool->in.height &&
           pool->out.width * v->width == pool->in.width;
}

/* The share of dy that each position of a window gets. */
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

/* One row of the image from `shares`, a row of windows that tile it. */
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

/* The same for any windows: one row of the image, covered by windows rows.first .. rows.end-1. */
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

static void avg_backward(const at_pool *pool, float *dx, const float *dy, size_t count,
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

const at_pool_kernels at_pools_avx2 = {
    .name = "avx2",
    .max_forward = max_forward,
    .max_backward = max_backward,
    .avg_forward = avg_forward,
    .avg_backward = avg_backward,
};

#endif
