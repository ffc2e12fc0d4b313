/* idx.h - the IDX format of MNIST and its successors, raw or gzipped.
 *
 *     00 00 TT DD   TT: type of an element (08: byte), DD: number of dimensions
 *     DD times u32  big endian, the slowest dimension first
 *     elements      as many as the product of the dimensions, nothing after them
 *
 * A header is never believed: its sizes are multiplied with care and compared with what the file
 * can hold before any memory is reserved for them.
 */
#ifndef AT_DATA_FORMATS_IDX_H
#define AT_DATA_FORMATS_IDX_H

#include <stdbool.h>

#include "data/files/source.h"
#include "data/set/store.h"

enum { AT_IDX_DIMS_MAX = 8 };

typedef struct at_idx {
    uint32_t dims;                    /* 1 .. AT_IDX_DIMS_MAX */
    uint32_t extent[AT_IDX_DIMS_MAX]; /* extent[0]: the number of samples, at least 1 */
    uint32_t features;                /* product of the other extents, at least 1 */
    size_t   payload_size;            /* bytes behind the header */
} at_idx;

/* Reads the header; the source then stands at the first element. */
at_err at_idx_read_header(at_idx *idx, at_source *source, at_fail *fail);

/* Fills a zeroed set from a file of images and one of labels; classes becomes the largest label
 * plus one. Images of (height, width), (height, width, channel) or (channel, height, width) with
 * 1 or 3 channels become pictures, others stay lines of numbers. */
at_err at_idx_read_pair(at_dataset *set, at_source *images, at_source *labels, at_fail *fail);

/* Reads a whole file and counts each value of its bytes. */
at_err at_idx_scan(const char *path, at_idx *idx, uint64_t histogram[256], at_fail *fail);

/* The number of classes in a file of labels: the largest label plus one. */
at_err at_idx_scan_classes(const char *path, uint32_t *classes, at_fail *fail);

/* True when the file begins like IDX, raw or gzipped. */
bool at_idx_is_file(const char *path);

/* "28x28": the extents of one sample, or "1" where a sample is a single byte. */
void at_idx_shape(const at_idx *idx, char *text, size_t size);

#endif
