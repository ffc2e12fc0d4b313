/* xz, by liblzma. */
#include "data/files/unpack.h"

#include <assert.h>
#include <lzma.h>
#include <stdlib.h>

enum {
    /* The longest match is 273 bytes and takes 14 decisions, each of which costs at least
     * log2(2048 / 2017) = 0.022 bits: 7090 bytes from one. */
    EXPANSION_MAX = 8192,
    MEMORY_MAX = 128 << 20, /* `xz -9` needs 65 MiB; a hostile header may ask for 4 GiB */
};

static void *start(void)
{
    lzma_stream *xz = malloc(sizeof *xz);
    if (!xz) return NULL;
    *xz = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(xz, MEMORY_MAX, 0) == LZMA_OK) return xz;
    free(xz);
    return NULL;
}

static const char *explain(lzma_ret code)
{
    if (code == LZMA_FORMAT_ERROR) return "not an xz header";
    if (code == LZMA_OPTIONS_ERROR) return "a kind of xz that cannot be read";
    return "wrong data";
}

static at_unpack_turn turn(void *state, at_unpack_flow *flow, const char **why)
{
    assert(state && flow && why);
    lzma_stream *xz = state;
    xz->next_in = flow->in;
    xz->avail_in = flow->in_left;
    xz->next_out = flow->out;
    xz->avail_out = flow->out_left;
    lzma_ret code = lzma_code(xz, LZMA_RUN);
    assert(xz->avail_in <= flow->in_left && xz->avail_out <= flow->out_left);
    *flow = (at_unpack_flow){xz->next_in, xz->avail_in, xz->next_out, xz->avail_out};
    if (code == LZMA_STREAM_END) return AT_UNPACK_END;
    if (code == LZMA_OK || code == LZMA_BUF_ERROR) return AT_UNPACK_MORE;
    if (code == LZMA_MEM_ERROR) return AT_UNPACK_NO_MEMORY;
    *why = explain(code);
    if (code != LZMA_MEMLIMIT_ERROR) return AT_UNPACK_DAMAGED;
    *why = "unpack it first with `xz -d -M 0`";
    return AT_UNPACK_TOO_LARGE;
}

static void stop(void *state)
{
    if (state) lzma_end(state);
    free(state);
}

const at_unpack at_unpack_xz = {
    .name = "xz",
    .suffix = ".xz",
    .magic = "\xfd"
             "7zXZ",
    .magic_size = 6, /* the zero byte behind the letters belongs to it */
    .padded = true,
    .expansion_max = EXPANSION_MAX,
    .start = start,
    .turn = turn,
    .stop = stop,
};
