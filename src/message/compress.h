/* compress.h - parameters and gradients as fewer bytes (--compress).
 *
 *     fp16, bf16  every float in 16 bits, rounded to the nearest; ties to even
 *     topk:F      of a gradient, the share F of its values with the largest absolute values, in
 *                 bf16 with their positions; parameters are sent in full
 *
 * What a gradient loses is not lost: the sender keeps it (the residual) and adds it to its next
 * gradient, so over many rounds the receiver gets the sum of what was computed (error feedback).
 * Parameters need no residual, since the hub keeps them in full and sends all of them every time.
 *
 * NaN stays NaN and infinity stays infinity, so a run that diverges is seen to diverge. A finite
 * value that is too large for its 16 bits becomes the largest finite one; in a gradient the rest
 * follows with the residual.
 *
 * The last floats of a vector can be excluded: running statistics are sent in full, because they
 * are no gradients, and their sums over samples may exceed fp16.
 *
 * The size of a compressed vector depends on its length only, and is known before. Encoding gives
 * the same bytes on every instruction set. Bytes from a peer may be anything: decoding checks
 * lengths and positions, and a bad vector is an at_err.
 */
#ifndef AT_MESSAGE_COMPRESS_H
#define AT_MESSAGE_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum at_compress_kind {
    AT_COMPRESS_NONE,
    AT_COMPRESS_FP16,
    AT_COMPRESS_BF16,
    AT_COMPRESS_TOPK
} at_compress_kind;

/* The option. */
typedef struct at_compress {
    at_compress_kind kind;
    double           share; /* topk: of the values, which is sent; 0 < share <= 0.5 */
} at_compress;

/* Reads "none", "fp16", "bf16" or "topk:F"; NULL is none. AT_ERR_USAGE for anything else. */
at_err at_compress_read(const char *text, at_compress *compress, at_fail *fail);

enum { AT_COMPRESS_TEXT_SIZE = 40 };

/* Writes it as at_compress_read takes it; returns text. */
const char *at_compress_text(at_compress compress, char text[AT_COMPRESS_TEXT_SIZE]);

/* How a vector of one length is sent. */
typedef struct at_packing {
    at_compress_kind kind;
    size_t           floats; /* of the vector */
    size_t           packed; /* leading ones that are compressed; the others follow in full */
    size_t           kept;   /* topk: how many of these are sent */
    size_t           size;   /* bytes of the message, a multiple of 4 */
} at_packing;

/* The packing of parameters and of gradients with `floats` floats, the last `exact` of which are
 * sent in full. False: the size overflows. */
bool at_packing_of_params(at_compress compress, size_t floats, size_t exact, at_packing *packing);
bool at_packing_of_gradient(at_compress compress, size_t floats, size_t exact, at_packing *packing);

/* The packing, or NULL if a vector is sent as it is. */
const at_packing *at_packing_used(const at_packing *packing);

/* Encodes a vector into packing->size bytes, aligned to 4. topk needs a residual. */
void at_pack(const at_packing *packing, void *bytes, const float *vector);

/* Encodes vector + residual, and sets the residual to what the receiver will lack. It has
 * packing->packed floats, zeros before the first time, and no value of it is ever NaN or infinite.
 */
void at_pack_with_residual(const at_packing *packing, void *bytes, const float *vector,
                           float *residual);

/* Decodes `size` bytes, aligned to 4, into packing->floats floats. AT_ERR_FORMAT when they are not
 * such a vector, which can be told for topk and for wrong sizes only. */
at_err at_unpack(const at_packing *packing, float *vector, const void *bytes, size_t size,
                 at_fail *fail);

#endif
