#include "message/compress.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "message/compress_kernels.h"
#include "message/compress_topk.h"

static const double SHARE_MAX = 0.5; /* above, bf16 is as small */

static const at_compress_kernels *kernels(void)
{
    return at_compress_kernels_for(at_isa_here());
}

/* ---- the option ------------------------------------------------------------------------------ */

static const char *const names[] = {"none", "fp16", "bf16", "topk:F"};

at_err at_compress_read(const char *text, at_compress *compress, at_fail *fail)
{
    static const char topk[] = "topk:";
    *compress = (at_compress){.kind = AT_COMPRESS_NONE};
    if (!text) return AT_OK;
    for (int i = AT_COMPRESS_NONE; i <= AT_COMPRESS_BF16; i++) {
        compress->kind = (at_compress_kind)i;
        if (strcmp(text, names[i]) == 0) return AT_OK;
    }
    compress->kind = AT_COMPRESS_TOPK;
    if (strcmp(text, "topk") != 0 && strncmp(text, topk, sizeof topk - 1) != 0)
        return at_text_unknown("--compress", text, names, sizeof names / sizeof *names, fail);
    bool number = text[sizeof topk - 2] && at_text_real(text + sizeof topk - 1, &compress->share);
    if (number && compress->share > 0 && compress->share <= SHARE_MAX) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE,
                       "write the share of the values to send, for example topk:0.01",
                       "--compress %s: the share must be above 0 and at most %g", text, SHARE_MAX);
}

const char *at_compress_text(at_compress compress, char text[AT_COMPRESS_TEXT_SIZE])
{
    assert(compress.kind <= AT_COMPRESS_TOPK);
    if (compress.kind == AT_COMPRESS_TOPK) /* with all digits: sizes follow from them */
        snprintf(text, AT_COMPRESS_TEXT_SIZE, "topk:%.17g", compress.share);
    else
        snprintf(text, AT_COMPRESS_TEXT_SIZE, "%s", names[compress.kind]);
    return text;
}

/* ---- packings -------------------------------------------------------------------------------- */

/* Every one of the values sent takes four bytes: half of them for its position. */
static bool topk_size(at_packing *packing, double share, size_t *size)
{
    size_t blocks = at_topk_blocks(packing->packed), units;
    assert(share > 0 && share <= SHARE_MAX);
    if (packing->packed > UINT32_MAX) return false;
    double kept = (double)packing->packed * share;
    packing->kept = (size_t)kept;
    if ((double)packing->kept < kept || packing->kept == 0) packing->kept++;
    if (packing->kept > packing->packed) packing->kept = packing->packed;
    units = blocks + packing->kept;
    return at_size_product(units, sizeof(uint32_t), size);
}

static bool pack_of(at_compress compress, size_t floats, size_t exact, at_packing *packing)
{
    size_t size, full;
    assert(exact <= floats);
    *packing = (at_packing){.kind = compress.kind, .floats = floats, .packed = floats - exact};
    if (!at_size_product(floats, sizeof(float), &full) || full > SIZE_MAX / 2) return false;
    switch (compress.kind) {
    case AT_COMPRESS_NONE: size = packing->packed * sizeof(float); break;
    case AT_COMPRESS_FP16:
    case AT_COMPRESS_BF16: size = (packing->packed + 1) / 2 * sizeof(uint32_t); break;
    case AT_COMPRESS_TOPK:
        if (!topk_size(packing, compress.share, &size)) return false;
        break;
    }
    packing->size = size + exact * sizeof(float);
    return true;
}

bool at_packing_of_gradient(at_compress compress, size_t floats, size_t exact, at_packing *packing)
{
    return pack_of(compress, floats, exact, packing);
}

bool at_packing_of_params(at_compress compress, size_t floats, size_t exact, at_packing *packing)
{
    bool full = compress.kind == AT_COMPRESS_TOPK;
    return pack_of(full ? (at_compress){.kind = AT_COMPRESS_NONE} : compress, floats, exact,
                   packing);
}

/* ---- encoding -------------------------------------------------------------------------------- */

static size_t packed_size(const at_packing *packing)
{
    size_t exact = packing->floats - packing->packed;
    assert(packing->size >= exact * sizeof(float));
    return packing->size - exact * sizeof(float);
}

static void pack_rest(const at_packing *packing, void *bytes, const float *vector)
{
    size_t exact = packing->floats - packing->packed;
    assert(packing->packed <= packing->floats);
    memcpy((char *)bytes + packed_size(packing), vector + packing->packed, exact * sizeof(float));
}

/* An odd number of halves leaves two bytes. */
static void pad(const at_packing *packing, void *bytes)
{
    uint16_t *half = bytes;
    assert((uintptr_t)bytes % sizeof(uint32_t) == 0);
    if (packing->packed % 2) half[packing->packed] = 0;
}

const at_packing *at_packing_used(const at_packing *packing)
{
    assert(packing->size > 0);
    return packing->kind == AT_COMPRESS_NONE ? NULL : packing;
}

void at_pack(const at_packing *packing, void *bytes, const float *vector)
{
    assert((uintptr_t)bytes % sizeof(uint32_t) == 0);
    switch (packing->kind) {
    case AT_COMPRESS_NONE: memcpy(bytes, vector, packing->packed * sizeof(float)); break;
    case AT_COMPRESS_FP16:
        kernels()->fp16.narrow(bytes, vector, packing->packed);
        pad(packing, bytes);
        break;
    case AT_COMPRESS_BF16:
        kernels()->bf16.narrow(bytes, vector, packing->packed);
        pad(packing, bytes);
        break;
    case AT_COMPRESS_TOPK: assert(!"topk needs a residual"); break;
    }
    pack_rest(packing, bytes, vector);
}

void at_pack_with_residual(const at_packing *packing, void *bytes, const float *vector,
                           float *residual)
{
    size_t packed = packing->packed;
    assert((uintptr_t)bytes % sizeof(uint32_t) == 0);
    switch (packing->kind) {
    case AT_COMPRESS_NONE: memcpy(bytes, vector, packed * sizeof(float)); break;
    case AT_COMPRESS_FP16:
        kernels()->fp16.narrow_with_residual(bytes, vector, residual, packed);
        pad(packing, bytes);
        break;
    case AT_COMPRESS_BF16:
        kernels()->bf16.narrow_with_residual(bytes, vector, residual, packed);
        pad(packing, bytes);
        break;
    case AT_COMPRESS_TOPK:
        at_topk_add(residual, vector, packed);
        at_topk_pack(kernels(), bytes, residual, packed, packing->kept);
        break;
    }
    pack_rest(packing, bytes, vector);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static at_err malformed(const char *what, at_fail *fail)
{
    assert(what);
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                       "its message is malformed: %s", what);
}

at_err at_unpack(const at_packing *packing, float *vector, const void *bytes, size_t size,
                 at_fail *fail)
{
    size_t packed = packing->packed, exact = packing->floats - packed;
    assert((uintptr_t)bytes % sizeof(uint32_t) == 0);
    if (size != packing->size) return malformed("a compressed vector of another length", fail);
    switch (packing->kind) {
    case AT_COMPRESS_NONE: memcpy(vector, bytes, packed * sizeof(float)); break;
    case AT_COMPRESS_FP16: kernels()->fp16.widen(vector, bytes, packed); break;
    case AT_COMPRESS_BF16: kernels()->bf16.widen(vector, bytes, packed); break;
    case AT_COMPRESS_TOPK:
        if (!at_topk_unpack(vector, packed, bytes, packing->kept))
            return malformed("positions of a sparse gradient that do not exist", fail);
        break;
    }
    memcpy(vector + packed, (const char *)bytes + packed_size(packing), exact * sizeof(float));
    return AT_OK;
}
