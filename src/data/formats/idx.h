/* idx.h - reads the IDX format of MNIST and its successors, raw or gzipped.
 *
 *     00 00 TT DD   TT: element type (08: byte), DD: number of dimensions
 *     DD times u32  big endian, the slowest dimension first
 *     elements      as many as the product of the dimensions, nothing after them
 *
 * A header is not trusted: its sizes are multiplied with overflow checks and compared with the file
 * size before memory is reserved.
 */
#ifndef AT_DATA_FORMATS_IDX_H
#define AT_DATA_FORMATS_IDX_H

#include <stdbool.h>

#include "data/files/source.h"
#include "data/set/store.h"

enum { AT_IDX_DIMS_MAX = 8 };

typedef struct at_idx {
    uint32_t dims;                    /* 1 .. AT_IDX_DIMS_MAX */
    uint32_t extent[AT_IDX_DIMS_MAX]; /* extent[0]: number of samples, at least 1 */
    uint32_t features;                /* product of the other extents, at least 1 */
    size_t   payload_size;            /* bytes after the header */
} at_idx;

/* Fills a zeroed set from a file of images and a file of labels; classes becomes the largest label
 * plus one. Samples of (height, width), (height, width, channel) or (channel, height, width) with
 * 1 or 3 channels are images, others feature vectors. */
at_err at_idx_read_pair(at_dataset *set, at_source *images, at_source *labels, at_fail *fail);

/* Reads a whole file and counts each value of its bytes. */
at_err at_idx_scan(const char *path, at_idx *idx, uint64_t histogram[256], at_fail *fail);

/* True when the file begins with an IDX header, raw or gzipped. */
bool at_idx_is_file(const char *path);

/* Writes the extents of a sample, "28x28", or "1" for a single byte. */
void at_idx_shape(const at_idx *idx, char *text, size_t size);

#endif
