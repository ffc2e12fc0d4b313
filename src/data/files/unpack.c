#include "data/files/unpack.h"

#include <assert.h>
#include <limits.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- gzip, by zlib --------------------------------------------------------------------------- */

enum {
    /* The limit of deflate: 258 bytes from two bits. */
    GZIP_EXPANSION_MAX = 1032,
    WINDOW_BITS = 15 + 16, /* zlib: largest window, gzip header expected */
};

static void *gzip_start(void)
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

static at_unpack_status gzip_run(void *state, at_unpack_buffers *buffers, const char **why)
{
    assert(state && buffers && why);
    z_stream *z = state;
    uInt      in = at_most(buffers->in_left), out = at_most(buffers->out_left);
    z->next_in = (Bytef *)(uintptr_t)buffers->in;
    z->avail_in = in;
    z->next_out = buffers->out;
    z->avail_out = out;
    int code = inflate(z, Z_NO_FLUSH);
    assert(z->avail_in <= in && z->avail_out <= out);
    buffers->in = z->next_in;
    buffers->in_left -= in - z->avail_in;
    buffers->out = z->next_out;
    buffers->out_left -= out - z->avail_out;
    if (code == Z_STREAM_END) return AT_UNPACK_END;
    if (code == Z_OK || code == Z_BUF_ERROR) return AT_UNPACK_MORE;
    *why = z->msg ? z->msg : "invalid data";
    return code == Z_MEM_ERROR ? AT_UNPACK_NO_MEMORY : AT_UNPACK_DAMAGED;
}

static void gzip_stop(void *state)
{
    if (state) inflateEnd(state);
    free(state);
}

static const at_unpacker gzip = {
    .name = "gzip",
    .suffix = ".gz",
    .magic = "\x1f\x8b",
    .magic_size = 2,
    .expansion_max = GZIP_EXPANSION_MAX,
    .start = gzip_start,
    .run = gzip_run,
    .stop = gzip_stop,
};

/* ---- xz, by liblzma -------------------------------------------------------------------------- */

enum {
    /* The longest match is 273 bytes and takes 14 decisions, each of which costs at least
     * log2(2048 / 2017) = 0.022 bits: 7090 bytes from one. */
    XZ_EXPANSION_MAX = 8192,
    XZ_MEMORY_MAX = 128 << 20, /* `xz -9` needs 65 MiB; a hostile header may ask for 4 GiB */
};

static void *xz_start(void)
{
    lzma_stream *xz = malloc(sizeof *xz);
    if (!xz) return NULL;
    *xz = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(xz, XZ_MEMORY_MAX, 0) == LZMA_OK) return xz;
    free(xz);
    return NULL;
}

static const char *xz_explain(lzma_ret code)
{
    if (code == LZMA_FORMAT_ERROR) return "not an xz header";
    if (code == LZMA_OPTIONS_ERROR) return "unsupported xz options";
    return "invalid data";
}

static at_unpack_status xz_run(void *state, at_unpack_buffers *buffers, const char **why)
{
    assert(state && buffers && why);
    lzma_stream *xz = state;
    xz->next_in = buffers->in;
    xz->avail_in = buffers->in_left;
    xz->next_out = buffers->out;
    xz->avail_out = buffers->out_left;
    lzma_ret code = lzma_code(xz, LZMA_RUN);
    assert(xz->avail_in <= buffers->in_left && xz->avail_out <= buffers->out_left);
    *buffers = (at_unpack_buffers){xz->next_in, xz->avail_in, xz->next_out, xz->avail_out};
    if (code == LZMA_STREAM_END) return AT_UNPACK_END;
    if (code == LZMA_OK || code == LZMA_BUF_ERROR) return AT_UNPACK_MORE;
    if (code == LZMA_MEM_ERROR) return AT_UNPACK_NO_MEMORY;
    *why = xz_explain(code);
    if (code != LZMA_MEMLIMIT_ERROR) return AT_UNPACK_DAMAGED;
    *why = "unpack it first with `xz -d -M 0`";
    return AT_UNPACK_TOO_LARGE;
}

static void xz_stop(void *state)
{
    if (state) lzma_end(state);
    free(state);
}

static const at_unpacker xz = {
    .name = "xz",
    .suffix = ".xz",
    .magic = "\xfd"
             "7zXZ",
    .magic_size = 6, /* includes the zero byte after the letters */
    .padded = true,
    .expansion_max = XZ_EXPANSION_MAX,
    .start = xz_start,
    .run = xz_run,
    .stop = xz_stop,
};

/* ---- lookup ---------------------------------------------------------------------------------- */

static const at_unpacker *const kinds[] = {
    &gzip,
    &xz,
};

enum { KINDS_COUNT = sizeof kinds / sizeof *kinds };

const at_unpacker *at_unpack_by_magic(const unsigned char *bytes, size_t size)
{
    assert(size == 0 || bytes);
    for (size_t i = 0; i < KINDS_COUNT; i++) {
        size_t needed = kinds[i]->magic_size;
        if (size >= needed && memcmp(bytes, kinds[i]->magic, needed) == 0) return kinds[i];
    }
    return NULL;
}

const at_unpacker *at_unpack_by_suffix(const char *path)
{
    assert(path);
    size_t length = strlen(path);
    for (size_t i = 0; i < KINDS_COUNT; i++) {
        size_t needed = strlen(kinds[i]->suffix);
        if (length >= needed && strcmp(path + length - needed, kinds[i]->suffix) == 0)
            return kinds[i];
    }
    return NULL;
}
