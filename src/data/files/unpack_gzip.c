/* gzip, by zlib. */
#include "data/files/unpack.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

enum {
    /* A deflate stream cannot expand more than this: 258 bytes from two bits. */
    EXPANSION_MAX = 1032,
    WINDOW_BITS = 15 + 16, /* zlib's way to say: the largest window, gzip header expected */
};

static void *start(void)
{
    z_stream *z = calloc(1, sizeof *z);
    if (z && inflateInit2(z, WINDOW_BITS) == Z_OK) return z;
    free(z);
    return NULL;
}

static uInt at_most(size_t size)
{
    return size < UINT_MAX ? (uInt)size : UINT_MAX;
}

static at_unpack_turn turn(void *state, at_unpack_flow *flow, const char **why)
{
    assert(state && flow && why);
    z_stream *z = state;
    uInt      in = at_most(flow->in_left), out = at_most(flow->out_left);
    z->next_in = (Bytef *)(uintptr_t)flow->in;
    z->avail_in = in;
    z->next_out = flow->out;
    z->avail_out = out;
    int code = inflate(z, Z_NO_FLUSH);
    assert(z->avail_in <= in && z->avail_out <= out);
    flow->in = z->next_in;
    flow->in_left -= in - z->avail_in;
    flow->out = z->next_out;
    flow->out_left -= out - z->avail_out;
    if (code == Z_STREAM_END) return AT_UNPACK_END;
    if (code == Z_OK || code == Z_BUF_ERROR) return AT_UNPACK_MORE;
    *why = z->msg ? z->msg : "wrong data";
    return code == Z_MEM_ERROR ? AT_UNPACK_NO_MEMORY : AT_UNPACK_DAMAGED;
}

static void stop(void *state)
{
    if (state) inflateEnd(state);
    free(state);
}

const at_unpack at_unpack_gzip = {
    .name = "gzip",
    .suffix = ".gz",
    .magic = "\x1f\x8b",
    .magic_size = 2,
    .expansion_max = EXPANSION_MAX,
    .start = start,
    .turn = turn,
    .stop = stop,
};
