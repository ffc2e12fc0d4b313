/* Order of the work. Transformed tiles should stay in the second cache, and transformed weights
 * should not be read too often. With many tiles, weights are transformed once, and then chunks of
 * tiles are transformed, multiplied with all weights and transformed back. With few tiles (small
 * images of many channels, where weights are larger than images) all tiles are one chunk, and one
 * group of outputs after the other is computed, whose transformed weights are used at once and
 * never kept. The weight gradient sums over tiles: chunk after chunk is added, and with a single
 * chunk the gradient of each cell is transformed back at once.
 *
 * The sizes of chunks do not depend on the processor's caches, because the grouping of sums
 * determines bits. AVX2 and AVX-512 give the same bits, and so does any number of threads.
 *
 * Precision: the largest error against double precision, relative to the largest value, over the
 * layers of the built-in models and inputs like those after a ReLU, in millionths (direct sums have
 * 0.5 for y and dx, 1.3 for dw; tests/unit/learn/winograd.c bounds it for each layer):
 *     F(4x4, 3x3)    y 0.9    dx 1.6    dw 1.2
 *     F(4x4, 5x5)    y 3.4    dx 6.3    dw 5.8 */
#include "learn/engines/winograd.h"

#include "learn/engines/winograd_kernels.h"

#include <assert.h>
#include <omp.h>
#include <string.h>

#if defined(__x86_64__)
static const at_winograd_kernels *kernels_for(uint32_t block)
{
    return block == 16 ? &at_winograd_avx512 : block == 8 ? &at_winograd_avx2 : NULL;
}
#else
static const at_winograd_kernels *kernels_for(uint32_t block)
{
    (void)block;
    return NULL;
}
#endif

bool at_winograd_supports(const at_winograd *w)
{
    const at_window *k = &w->spec->window;
    return kernels_for(w->spec->in.block) && at_weight_layout_is_blocked(w->layout, w->spec) &&
           k->height == k->width && (k->height == 3 || k->height == 5) && k->stride == 1;
}

/* ---- sizes ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

static size_t panels_of(const at_winograd_pass *p)
{
    return divide_up(at_activation_blocks(&p->out), 2);
}

static size_t panel_size(const at_winograd_pass *p)
{
    return at_winograd_points(p) * at_winograd_panel_point(p);
}

/* Tiles per chunk for forward and input: a multiple of what is multiplied at a time, and more if
 * the weights, which are read once per chunk, do not fit the second cache either. */
static size_t tiles_in_cache(const at_winograd_pass *p)
{
    enum { CHUNK_FLOATS = 80 * 1024, WEIGHTS_MANY = 512 * 1024, TILES_MAX = 48 };
    size_t step = p->in.block == 16 ? 14 : 12, weights = panels_of(p) * panel_size(p);
    size_t per_tile = at_winograd_points(p) * at_activation_blocks(&p->in) * p->in.block;
    if (p->tiles * per_tile <= weights) return p->tiles;
    size_t tiles = weights > WEIGHTS_MANY ? TILES_MAX : least(CHUNK_FLOATS / per_tile, TILES_MAX);
    return least(tiles < step ? step : tiles / step * step, p->tiles);
}

/* Tiles per chunk for the weight gradient: more if adding a chunk means adding many weights. */
static size_t tiles_per_sum(const at_winograd_pass *p)
{
    enum { WEIGHTS_MANY = 1 << 20, TILES = 48, TILES_MANY = 144 };
    size_t weights = at_winograd_points(p) * at_activation_blocks(&p->in) * p->in.block *
                     at_activation_blocks(&p->out) * p->out.block;
    return least(p->tiles, weights > WEIGHTS_MANY ? TILES_MANY : TILES);
}

static at_winograd_pass pass_of(const at_winograd *w, at_conv_pass pass)
{
    const at_conv_spec *spec = w->spec;
    const at_window    *k = &spec->window;
    bool                swapped = pass == AT_CONV_INPUT;
    at_winograd_pass    p = {.in = swapped ? spec->out : spec->in,
                             .out = swapped ? spec->in : spec->out,
                             .window = k->height,
                             .top = swapped ? k->height - 1 - k->top : k->top,
                             .left = swapped ? k->width - 1 - k->left : k->left,
                             .rows = w->rows,
                             .swapped = swapped,
                             .relu = pass == AT_CONV_FORWARD && spec->relu,
                             .weight_stride = {w->layout->stride[0], w->layout->stride[1]}};
    assert(at_winograd_supports(w));
    p.down = divide_up(p.out.height, AT_WINOGRAD_TILE);
    p.across = divide_up(p.out.width, AT_WINOGRAD_TILE);
    p.tiles = p.rows * p.down * p.across;
    p.chunk = pass == AT_CONV_WEIGHT ? tiles_per_sum(&p) : tiles_in_cache(&p);
    return p;
}

/* ---- scratch ---- */

static size_t lines(size_t floats)
{
    return divide_up(floats, 16) * 16;
}

/* Floats of v, d or m. */
static size_t tiles_size(const at_winograd_pass *p, size_t blocks)
{
    return lines(at_winograd_points(p) * at_winograd_point(p, blocks));
}

static size_t group_size(const at_winograd_pass *p)
{
    return AT_WINOGRAD_GROUP_BLOCKS / 2 * panel_size(p);
}

static size_t cell_size(const at_winograd_pass *p)
{
    return at_winograd_points(p) * at_winograd_cell_point(p);
}

static size_t cells_across(const at_winograd_pass *p)
{
    return divide_up(at_activation_blocks(&p->in), AT_WINOGRAD_CELL_IN);
}

static size_t cells_of(const at_winograd_pass *p)
{
    return cells_across(p) * divide_up(at_activation_blocks(&p->out), AT_WINOGRAD_CELL_OUT);
}

static bool is_one_chunk(const at_winograd_pass *p)
{
    return p->chunk >= p->tiles;
}

/* Floats that all threads share, and floats that each thread has to itself. */
typedef struct sizes {
    size_t shared, own;
} sizes;

static sizes sizes_of(const at_winograd_pass *p, at_conv_pass pass)
{
    size_t v = tiles_size(p, at_activation_blocks(&p->in));
    size_t d = tiles_size(p, at_activation_blocks(&p->out));
    size_t m = tiles_size(p, AT_WINOGRAD_GROUP_BLOCKS);
    if (pass == AT_CONV_WEIGHT)
        return is_one_chunk(p) ? (sizes){v + d, cell_size(p)}
                               : (sizes){v + d + cells_of(p) * cell_size(p), 0};
    return is_one_chunk(p) ? (sizes){v, m + group_size(p)}
                           : (sizes){panels_of(p) * panel_size(p), v + m};
}

size_t at_winograd_scratch(const at_winograd *w, at_conv_pass pass)
{
    at_winograd_pass p = pass_of(w, pass);
    sizes            size = sizes_of(&p, pass);
    assert(w->threads > 0);
    return (size.shared + (size_t)w->threads * size.own) * sizeof(float);
}

/* Scratch of the calling thread. */
static float *own_scratch(const at_winograd_pass *p, at_conv_pass pass, float *scratch)
{
    sizes size = sizes_of(p, pass);
    return scratch + size.shared + (size_t)omp_get_thread_num() * size.own;
}

/* ---- forward and input ---- */

/* The images and weights of a pass. */
typedef struct operands {
    float       *y;
    const float *x, *weights, *bias;
} operands;

/* One chunk of tiles, v, and one group of outputs from `block` on, whose weights are u. */
static void convolve_group(const at_winograd_pass *p, const operands *to, float *m, const float *v,
                           const float *u, size_t block, size_t first)
{
    const at_winograd_kernels *k = kernels_for(p->in.block);
    size_t blocks = least(AT_WINOGRAD_GROUP_BLOCKS, at_activation_blocks(&p->out) - block);
    size_t count = least(p->chunk, p->tiles - first);
    for (size_t i = 0; i < blocks; i += 2, u += panel_size(p))
        k->multiply(p, m + i * at_winograd_block(p), v, u, least(blocks - i, 2), count);
    k->write_tiles(p, to->y, m, to->bias, block, blocks, first, count);
}

/* Many tiles: all weights are transformed, then each thread takes some of the chunks. */
static void convolve_chunks(const at_winograd_pass *p, const operands *to, float *scratch,
                            int threads)
{
    const at_winograd_kernels *k = kernels_for(p->in.block);
    size_t in = at_activation_blocks(&p->in), out = at_activation_blocks(&p->out);
    size_t panels = panels_of(p), chunks = divide_up(p->tiles, p->chunk);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < panels; i++)
        k->read_weights(p, scratch + i * panel_size(p), to->weights, i);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < chunks; i++) {
        float *v = own_scratch(p, AT_CONV_FORWARD, scratch), *m = v + tiles_size(p, in);
        size_t first = i * p->chunk;
        for (size_t b = 0; b < in; b++)
            k->read_tiles(p, v, to->x, b, first, least(p->chunk, p->tiles - first));
        for (size_t b = 0; b < out; b += AT_WINOGRAD_GROUP_BLOCKS)
            convolve_group(p, to, m, v, scratch + b / 2 * panel_size(p), b, first);
    }
}

/* Few tiles: all are transformed, then each thread takes some of the groups of outputs. */
static void convolve_groups(const at_winograd_pass *p, const operands *to, float *scratch,
                            int threads)
{
    const at_winograd_kernels *k = kernels_for(p->in.block);
    size_t in = at_activation_blocks(&p->in), out = at_activation_blocks(&p->out);
    size_t groups = divide_up(out, AT_WINOGRAD_GROUP_BLOCKS);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < in; i++) k->read_tiles(p, scratch, to->x, i, 0, p->tiles);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < groups; i++) {
        float *m = own_scratch(p, AT_CONV_FORWARD, scratch);
        float *u = m + tiles_size(p, AT_WINOGRAD_GROUP_BLOCKS);
        size_t panel = i * AT_WINOGRAD_GROUP_BLOCKS / 2;
        size_t end = least(panel + AT_WINOGRAD_GROUP_BLOCKS / 2, panels_of(p));
        for (size_t j = panel; j < end; j++)
            k->read_weights(p, u + (j - panel) * panel_size(p), to->weights, j);
        convolve_group(p, to, m, scratch, u, i * AT_WINOGRAD_GROUP_BLOCKS, 0);
    }
}

static void convolve(const at_winograd *w, at_conv_pass pass, const operands *to, float *scratch)
{
    at_winograd_pass p = pass_of(w, pass);
    assert(w->threads > 0);
    (is_one_chunk(&p) ? convolve_groups : convolve_chunks)(&p, to, scratch, w->threads);
}

void at_winograd_forward(const at_winograd *w, float *y, const float *x, const float *weights,
                         const float *b, float *scratch)
{
    convolve(w, AT_CONV_FORWARD, &(operands){y, x, weights, b}, scratch);
}

void at_winograd_input(const at_winograd *w, float *dx, const float *dy, const float *weights,
                       float *scratch)
{
    convolve(w, AT_CONV_INPUT, &(operands){dx, dy, weights, NULL}, scratch);
}

/* ---- weight gradient ---- */

static at_winograd_cell cell_of(const at_winograd_pass *p, size_t index)
{
    size_t in = index % cells_across(p) * AT_WINOGRAD_CELL_IN;
    size_t out = index / cells_across(p) * AT_WINOGRAD_CELL_OUT;
    return (at_winograd_cell){
        .out = out,
        .out_count = least(at_activation_blocks(&p->out) - out, AT_WINOGRAD_CELL_OUT),
        .in = in,
        .in_count = least(at_activation_blocks(&p->in) - in, AT_WINOGRAD_CELL_IN)};
}

/* v, d <- a chunk of the images and of the output gradient. */
static void read_chunk(const at_winograd_pass *p, float *v, float *d, float *db, const float *x,
                       const float *dy, size_t first, int threads)
{
    const at_winograd_kernels *k = kernels_for(p->in.block);
    size_t in = at_activation_blocks(&p->in), out = at_activation_blocks(&p->out);
    size_t count = least(p->chunk, p->tiles - first);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < in + out; i++)
        if (i < in)
            k->read_tiles(p, v, x, i, first, count);
        else
            k->spread_tiles(p, d, db, dy, i - in, first, count);
}

/* Adds a chunk to all cells, each by one thread; after the last chunk they are written to dw. */
static void add_chunk(const at_winograd_pass *p, float *dw, float *scratch, size_t first,
                      int threads)
{
    const at_winograd_kernels *k = kernels_for(p->in.block);
    size_t                     cells = cells_of(p), count = least(p->chunk, p->tiles - first);
    const float               *v = scratch;
    const float               *d = v + tiles_size(p, at_activation_blocks(&p->in));
    float                     *sums = scratch + sizes_of(p, AT_CONV_WEIGHT).shared;
    if (!is_one_chunk(p)) sums -= cells * cell_size(p);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t i = 0; i < cells; i++) {
        at_winograd_cell cell = cell_of(p, i);
        float           *s =
            is_one_chunk(p) ? own_scratch(p, AT_CONV_WEIGHT, scratch) : sums + i * cell_size(p);
        k->multiply_cell(p, s, v, d, &cell, count, first > 0);
        if (first + count == p->tiles) k->write_cell(p, dw, s, &cell);
    }
}

void at_winograd_weight(const at_winograd *w, float *dw, float *db, const float *dy, const float *x,
                        float *scratch)
{
    at_winograd_pass p = pass_of(w, AT_CONV_WEIGHT);
    float           *d = scratch + tiles_size(&p, at_activation_blocks(&p.in));
    assert(w->threads > 0);
    if (db) memset(db, 0, at_activation_blocks(&p.out) * p.out.block * sizeof *db);
    for (size_t first = 0; first < p.tiles; first += p.chunk) {
        read_chunk(&p, scratch, d, db, x, dy, first, w->threads);
        add_chunk(&p, dw, scratch, first, w->threads);
    }
}

/* ---- costs ---- */

/* Costs in vector multiplications, fitted to measurements of about 25 convolutions on Sapphire
 * Rapids with AVX2 and AVX-512. Transforms are bound by memory more than by arithmetic. */
typedef struct costs {
    double tile;   /* a transform of the inputs or outputs of a tile, per block */
    double weight; /* a transform of the window of one channel and one block of the other */
} costs;

static costs costs_of(const at_winograd_pass *p)
{
    static const costs table[2][2] = {{{350, 600}, {850, 1100}}, {{650, 900}, {1250, 1800}}};
    return table[p->in.block == 16][p->window == 5];
}

/* Direct sums skip a part of the padding. */
static double direct_cost(const at_winograd *w)
{
    const at_conv_spec *spec = w->spec;
    double              inside = (double)at_window_products(&spec->window, &spec->in, &spec->out);
    double all = (double)at_activation_area(&spec->out) * spec->window.height * spec->window.width;
    return (inside * 5 < all * 3 ? inside * 5 / 3 : all) * w->rows *
           (double)at_activation_blocks(&spec->in) * (double)at_activation_blocks(&spec->out) *
           spec->in.block;
}

static double winograd_cost(const at_winograd *w, at_conv_pass pass)
{
    const double     speed = 0.8; /* of the products, relative to direct sums */
    at_winograd_pass p = pass_of(w, pass);
    costs            cost = costs_of(&p);
    double           in = (double)at_activation_blocks(&p.in);
    double           out = (double)at_activation_blocks(&p.out);
    return (double)p.tiles * in * out * p.in.block * (double)at_winograd_points(&p) / speed +
           (double)p.tiles * (in + out) * cost.tile + in * out * p.in.block * cost.weight;
}

bool at_winograd_is_faster(const at_winograd *w, at_conv_pass pass)
{
    assert(w->rows > 0);
    return winograd_cost(w, pass) < 0.9 * direct_cost(w);
}
