/* Max pools by hand for AVX2: 8 channels in a register, whose places in the window are numbers of
 * 32 bits on the way and bytes in memory. The common windows, 2x2 and 3x3 in steps of 2, are
 * compiled with their sizes.
 *
 * Backward goes over the padded picture in squares of 2x2, which four windows of 3x3 can touch:
 *
 *     above left | above
 *     -----------+------       the square is the upper left part of the window `here`, and
 *           left | here        of the others their right column, lower row or corner
 *
 * so each square is written once, from registers. */
#include "learn/engines/avx2_pool.h"

#if defined(__x86_64__)

#include <assert.h>

typedef struct best {
    __m256  value;
    __m256i place;
} best;

/* The later one only wins when it is larger: maxps returns its second operand otherwise. */
TILE best best_of(best b, const float *x, size_t place)
{
    __m256 v = _mm256_loadu_ps(x);
    __m256 more = _mm256_cmp_ps(v, b.value, _CMP_GT_OQ);
    __m256 at = _mm256_castsi256_ps(_mm256_set1_epi32((int)place));
    b.value = _mm256_max_ps(v, b.value);
    b.place = _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(b.place), at, more));
    return b;
}

/* Bytes of 8 places; all ones, which is NONE, where `mask` is and the value is not positive. */
TILE void store_places(uint8_t *place, best b, __m256i mask)
{
    const __m256i low =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256  live = _mm256_cmp_ps(b.value, _mm256_setzero_ps(), _CMP_GT_OQ);
    __m256i none = _mm256_andnot_si256(_mm256_castps_si256(live), mask);
    __m256i four = _mm256_shuffle_epi8(_mm256_or_si256(b.place, none), low);
    __m128i upper = _mm256_extracti128_si256(four, 1);
    _mm_storel_epi64((__m128i *)place, _mm_unpacklo_epi32(_mm256_castsi256_si128(four), upper));
}

/* What does not change from window to window. */
typedef struct forward_job {
    const at_pool *pool;
    size_t         height, width, stride; /* constants for the common windows */
    bool           common, places;        /* constants */
    __m256i        mask;
} forward_job;

/* 8 channels; x is the first place that is in the picture. */
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

/* One output place, all channels of a block. */
TILE void window(const forward_job *job, float *y, uint8_t *place, const float *x,
                 at_axis_range rows, at_axis_range columns)
{
    bool whole = rows.end - rows.first == job->height && columns.end - columns.first == job->width;
    for (size_t lane = 0; lane < job->pool->in.block; lane += LANES) {
        best b = job->common && whole ? window_whole(job, x + lane)
                                      : window_part(job, x + lane, rows, columns);
        _mm256_storeu_ps(y + lane, b.value);
        if (job->places) store_places(place + lane, b, job->mask);
    }
}

TILE void forward_plane(const forward_job *job, float *y, uint8_t *place, const float *x)
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
            window(job, y, place, x + (h * in->width + w) * in->block, rows, columns);
            y += out->block;
            if (job->places) place += out->block;
        }
    }
}

TILE void forward_planes(const at_pool *pool, float *y, uint8_t *place, const float *x,
                         size_t count, bool masks, size_t common, bool places)
{
    size_t      planes = count * at_activation_blocks(&pool->in);
    size_t      in = at_activation_area(&pool->in) * pool->in.block;
    size_t      out = at_activation_area(&pool->out) * pool->out.block;
    forward_job job = {.pool = pool,
                       .height = common ? common : pool->window.height,
                       .width = common ? common : pool->window.width,
                       .stride = common ? 2 : pool->window.stride,
                       .common = common > 0,
                       .places = places,
                       .mask = _mm256_set1_epi32(masks ? -1 : 0)};
    for (size_t i = 0; i < planes; i++)
        forward_plane(&job, y + i * out, places ? place + i * out : NULL, x + i * in);
}

/* The size of a common window, 0 for others. */
static size_t common_size(const at_window *w)
{
    bool common = w->stride == 2 && w->height == w->width && (w->height == 2 || w->height == 3);
    return common ? w->height : 0;
}

AVX2 static void max_forward(const at_pool *pool, float *y, uint8_t *place, const float *x,
                             size_t count, bool masks)
{
    assert(pool->in.block % LANES == 0);
    switch (common_size(&pool->window) * 2 + (place != NULL)) {
    case 4: forward_planes(pool, y, place, x, count, masks, 2, false); break;
    case 5: forward_planes(pool, y, place, x, count, masks, 2, true); break;
    case 6: forward_planes(pool, y, place, x, count, masks, 3, false); break;
    case 7: forward_planes(pool, y, place, x, count, masks, 3, true); break;
    case 1: forward_planes(pool, y, place, x, count, masks, 0, true); break;
    default: forward_planes(pool, y, place, x, count, masks, 0, false); break;
    }
}

/* 8 channels of what came back to one window. */
typedef struct seen {
    __m256  dy;
    __m256i place;
} seen;

TILE seen see(const float *dy, const uint8_t *place, size_t at)
{
    return (seen){_mm256_loadu_ps(dy + at),
                  _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(place + at)))};
}

/* sum + dy where the place is this one. */
TILE __m256 gain(__m256 sum, seen s, size_t place)
{
    __m256i mine = _mm256_cmpeq_epi32(s.place, _mm256_set1_epi32((int)place));
    return _mm256_add_ps(sum, _mm256_and_ps(_mm256_castsi256_ps(mine), s.dy));
}

/* Which of the two rows (or columns) of a square are in the picture. */
typedef struct pair {
    size_t first; /* of the picture; nonsense unless has_first */
    bool   has_first, has_second;
} pair;

TILE pair pair_at(size_t index, size_t top, size_t height)
{
    size_t row = 2 * index; /* in the padded picture */
    return (pair){.first = row - top,
                  .has_first = row >= top && row - top < height,
                  .has_second = row + 1 >= top && row + 1 - top < height};
}

/* A row of squares, 8 channels. `dx` and so on begin at the plane's first channel of these. */
typedef struct square_row {
    const at_pool *pool;
    float         *dx;
    const float   *dy;
    const uint8_t *place;
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
    const seen           none = {zero, _mm256_setzero_si256()};
    for (size_t i = 0; i < squares; i++) {
        bool there = q->has_here && i < out->width;
        seen here = there ? see(q->dy, q->place, q->here + i * out->block) : none;
        put_square(q, pair_at(i, left, in->width),
                   (__m256[4]){gain(zero, here, 0), gain(zero, here, 1), gain(zero, here, 2),
                               gain(zero, here, 3)});
    }
}

TILE void squares_of_three(const square_row *q)
{
    const at_activation *in = &q->pool->in, *out = &q->pool->out;
    size_t               left = q->pool->window.left, squares = (in->width + left + 1) / 2;
    const __m256         zero = _mm256_setzero_ps();
    const seen           none = {zero, _mm256_setzero_si256()};
    seen                 before = none, above_before = none;
    for (size_t i = 0; i < squares; i++) {
        bool   there = i < out->width;
        size_t at = i * out->block;
        seen   above = q->has_above && there ? see(q->dy, q->place, q->above + at) : none;
        seen   here = q->has_here && there ? see(q->dy, q->place, q->here + at) : none;
        __m256 corner = gain(gain(zero, above_before, 8), above, 6);
        put_square(q, pair_at(i, left, in->width),
                   (__m256[4]){gain(gain(corner, before, 2), here, 0),
                               gain(gain(zero, above, 7), here, 1),
                               gain(gain(zero, before, 5), here, 3), gain(zero, here, 4)});
        before = here;
        above_before = above;
    }
}

TILE void backward_squares(const at_pool *pool, float *dx, const float *dy, const uint8_t *place,
                           at_write write, size_t size)
{
    size_t top = pool->window.top, row = pool->out.width * pool->out.block;
    for (size_t i = 0; i < (pool->in.height + top + 1) / 2; i++)
        for (size_t lane = 0; lane < pool->in.block; lane += LANES) {
            square_row q = {.pool = pool,
                            .dx = dx + lane,
                            .dy = dy + lane,
                            .place = place + lane,
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

/* One place of the picture, 8 channels: place (row - oh stride, column - ow stride) of the windows
 * that cover it. Row and column are those of the padded picture. */
TILE __m256 sum_place(const at_pool *pool, const float *dy, const uint8_t *place, size_t row,
                      size_t column, at_axis_range rows, at_axis_range columns)
{
    const at_window *v = &pool->window;
    __m256           sum = _mm256_setzero_ps();
    for (size_t oh = rows.first; oh < rows.end; oh++)
        for (size_t ow = columns.first; ow < columns.end; ow++) {
            size_t at = (oh * pool->out.width + ow) * pool->out.block;
            size_t mine = (row - oh * v->stride) * v->width + column - ow * v->stride;
            sum = gain(sum, see(dy, place, at), mine);
        }
    return sum;
}

TILE void backward_any(const at_pool *pool, float *dx, const float *dy, const uint8_t *place,
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
                    sum_place(pool, dy + lane, place + lane, h + v->top, w + v->left, rows,
                              columns),
                    write);
        }
    }
}

AVX2 static void max_backward(const at_pool *pool, float *dx, const float *dy, const uint8_t *place,
                              size_t count, at_write write)
{
    size_t planes = count * at_activation_blocks(&pool->in), size = common_size(&pool->window);
    size_t in = at_activation_area(&pool->in) * pool->in.block;
    size_t out = at_activation_area(&pool->out) * pool->out.block;
    assert(pool->in.block % LANES == 0);
    for (size_t i = 0; i < planes; i++, dx += in, dy += out, place += out) {
        if (size == 2)
            backward_squares(pool, dx, dy, place, write, 2);
        else if (size == 3)
            backward_squares(pool, dx, dy, place, write, 3);
        else
            backward_any(pool, dx, dy, place, write);
    }
}

const at_pool_kernels at_pools_avx2 = {
    .name = "avx2",
    .max_forward = max_forward,
    .max_backward = max_backward,
    .mean_forward = at_avx2_mean_forward,
    .mean_backward = at_avx2_mean_backward,
};

#endif
