/* npy.h - arrays as NumPy writes them.
 *
 *     93 'NUMPY' version   a dictionary as text: type, order, shape   elements
 *
 * Read are unsigned bytes, 4- and 8-byte floats and signed integers, little endian, the last index
 * fastest; everything else is refused with a sentence. The bytes come from a file or from an entry
 * of a zip archive, whoever gives the input.
 */
#ifndef AT_DATA_FORMATS_NPY_H
#define AT_DATA_FORMATS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "data/set/store.h"

enum { AT_NPY_DIMS_MAX = 8 };

/* Where bytes come from. */
typedef struct at_npy_input {
    /* Fills bytes; *got is smaller only at the end. */
    at_err (*read)(void *self, void *bytes, size_t size, size_t *got, at_fail *fail);
    void       *self;
    const char *name;     /* for messages */
    uint64_t    size_max; /* no more than so many bytes can come */
    uint64_t    position; /* bytes that have come; begins with 0 */
} at_npy_input;

typedef enum at_npy_type {
    AT_NPY_BYTE,
    AT_NPY_FLOAT,
    AT_NPY_DOUBLE,
    AT_NPY_INT,
    AT_NPY_LONG
} at_npy_type;

typedef struct at_npy {
    at_npy_type type;
    uint32_t    dims;                    /* 1 .. AT_NPY_DIMS_MAX */
    uint32_t    extent[AT_NPY_DIMS_MAX]; /* behind the first one */
    uint64_t    count;                   /* the first extent: how many samples, at least 1 */
    uint32_t    features;                /* product of the others, at least 1 */
    uint64_t    header_size;             /* bytes before the first element */
} at_npy;

/* Reads the header; the elements that it promises fit into the input. */
at_err at_npy_read_header(at_npy *npy, at_npy_input *input, at_fail *fail);

/* What rows of that array become in a set: bytes stay bytes, all else becomes floats. */
at_element at_npy_element(const at_npy *npy);

/* All elements into `rows` (count, features); a number that is not finite is refused. */
at_err at_npy_read_rows(const at_npy *npy, at_npy_input *input, unsigned char *rows, at_fail *fail);

/* All elements as labels; features MUST be 1. One that is no whole number of 0 to 2^31-1 is
 * refused. */
at_err at_npy_read_labels(const at_npy *npy, at_npy_input *input, uint32_t *labels, at_fail *fail);

#endif
