/* winograd_kernels.h - the parts of a Winograd convolution that depend on the instruction set,
 * as a table, and the memory layouts they share.
 *
 * An image is cut into tiles of 4x4 outputs. A tile needs points x points inputs, with points =
 * window + 3, and has as many transformed values. Transformed arrays are, with L lanes per vector:
 *
 *     inputs    v[point][block][tile][L]           of one chunk of tiles
 *     weights   u[panel][point][in][2 L]           a panel is two blocks of outputs, or the last
 *     outputs   m[point][block][tile][L]           of one chunk and one group of panels
 *     gradient  s[cell][point][in][3 L]            a cell is 3 blocks of outputs by 16 of inputs
 *
 * so for each point the products are a matrix product whose operands are contiguous. Strides are
 * odd multiples of a cache line or vector: a transform writes one vector per point, and with powers
 * of two these would all fall into the same few sets of the cache.
 */
#ifndef AT_LEARN_ENGINES_WINOGRAD_KERNELS_H
#define AT_LEARN_ENGINES_WINOGRAD_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

#include "learn/engines/activation.h"

enum {
    AT_WINOGRAD_TILE = 4,         /* outputs per axis */
    AT_WINOGRAD_GROUP_BLOCKS = 4, /* blocks of outputs whose products are kept: two panels */
    AT_WINOGRAD_CELL_OUT = 3,     /* blocks of outputs per cell of the weight gradient */
    AT_WINOGRAD_CELL_IN = 16,     /* blocks of inputs per cell */
    AT_WINOGRAD_PAD = 16,         /* floats between the points, a cache line */
};

/* One pass over the images of a micro-batch. */
typedef struct at_winograd_pass {
    at_activation in, out;   /* images read and written; both are read for the weight gradient */
    uint32_t      window;    /* 3 or 5 */
    uint32_t      top, left; /* padding of `in` */
    uint32_t      rows;      /* samples */
    bool          swapped;   /* weights (in, out), turned by 180 degrees: the input gradient */
    bool          relu;
    size_t        weight_stride[2]; /* floats between blocks of the weights' (out, in) */
    size_t        down, across;     /* tiles per image */
    size_t        tiles;            /* of all samples */
    size_t        chunk;            /* tiles transformed at a time */
} at_winograd_pass;

/* Points of a tile, in both dimensions. */
static inline size_t at_winograd_points(const at_winograd_pass *p)
{
    size_t points = p->window + AT_WINOGRAD_TILE - 1;
    return points * points;
}

/* Floats from one block of v, d or m to the next. */
static inline size_t at_winograd_block(const at_winograd_pass *p)
{
    return (p->chunk | 1) * p->in.block;
}

/* Floats from one point to the next, in v, d or m of so many blocks. */
static inline size_t at_winograd_point(const at_winograd_pass *p, size_t blocks)
{
    return blocks * at_winograd_block(p) + AT_WINOGRAD_PAD;
}

/* The same in u. */
static inline size_t at_winograd_panel_point(const at_winograd_pass *p)
{
    size_t L = p->in.block;
    return at_activation_blocks(&p->in) * L * 2 * L + AT_WINOGRAD_PAD;
}

/* The same in s. */
static inline size_t at_winograd_cell_point(const at_winograd_pass *p)
{
    size_t L = p->in.block, blocks = at_activation_blocks(&p->in);
    if (blocks > AT_WINOGRAD_CELL_IN) blocks = AT_WINOGRAD_CELL_IN;
    return blocks * L * AT_WINOGRAD_CELL_OUT * L + AT_WINOGRAD_PAD;
}

/* A part of the weight gradient: blocks of outputs and of inputs. */
typedef struct at_winograd_cell {
    size_t out, out_count; /* first block, and how many */
    size_t in, in_count;
} at_winograd_cell;

typedef struct at_winograd_kernels {
    uint32_t lanes;

    /* v <- one block of tiles first .. first+count-1 of the images x, in p->in. */
    void (*read_tiles)(const at_winograd_pass *p, float *v, const float *x, size_t block,
                       size_t first, size_t count);
    /* u <- one panel of the weights. */
    void (*read_weights)(const at_winograd_pass *p, float *u, const float *w, size_t panel);
    /* m <- products of `count` tiles with a panel of `outs` blocks; m points at its first block. */
    void (*multiply)(const at_winograd_pass *p, float *m, const float *v, const float *u,
                     size_t outs, size_t count);
    /* y <- the tiles of `blocks` blocks from `block` on, plus bias (NULL: none), then ReLU. */
    void (*write_tiles)(const at_winograd_pass *p, float *y, const float *m, const float *bias,
                        size_t block, size_t blocks, size_t first, size_t count);

    /* d <- one block of tiles of the output gradient dy, in p->out; its sums are added to db (NULL:
     * not). */
    void (*spread_tiles)(const at_winograd_pass *p, float *d, float *db, const float *dy,
                         size_t block, size_t first, size_t count);
    /* s (one cell) <- sums over `count` tiles of v and d, or added to it. */
    void (*multiply_cell)(const at_winograd_pass *p, float *s, const float *v, const float *d,
                          const at_winograd_cell *cell, size_t count, bool add);
    /* dw <- the weight gradient of one cell. */
    void (*write_cell)(const at_winograd_pass *p, float *dw, const float *s,
                       const at_winograd_cell *cell);
} at_winograd_kernels;

extern const at_winograd_kernels at_winograd_avx2;   /* winograd_avx2.c: 8 lanes */
extern const at_winograd_kernels at_winograd_avx512; /* winograd_avx512.c: 16 lanes */

#endif
