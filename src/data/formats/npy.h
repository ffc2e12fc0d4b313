/* npy.h - reads arrays in the .npy format of NumPy.
 *
 *     93 'NUMPY' version   a dictionary as text: type, order, shape   elements
 *
 * Supports unsigned bytes and 4- and 8-byte floats and signed integers, little endian, in C order;
 * anything else is an error. The bytes come from a file or from an entry of a zip archive.
 */
#ifndef AT_DATA_FORMATS_NPY_H
#define AT_DATA_FORMATS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "data/set/store.h"

enum { AT_NPY_DIMS_MAX = 8 };

/* The source of the bytes. */
typedef struct at_npy_input {
    /* Fills bytes; *got is smaller only at the end. */
    at_err (*read)(void *self, void *bytes, size_t size, size_t *got, at_fail *fail);
    void       *self;
    const char *name;     /* for messages */
    uint64_t    size_max; /* upper bound on the bytes available */
    uint64_t    position; /* bytes read so far; starts at 0 */
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
    uint32_t    extent[AT_NPY_DIMS_MAX]; /* of all dimensions */
    uint64_t    count;                   /* the first extent: number of samples, at least 1 */
    uint32_t    features;                /* product of the others, at least 1 */
    uint64_t    header_size;             /* bytes before the first element */
} at_npy;

/* Reads the header and checks that its elements fit into the input. */
at_err at_npy_read_header(at_npy *npy, at_npy_input *input, at_fail *fail);

/* The element type in a set: bytes stay bytes, everything else becomes floats. */
at_element at_npy_element(const at_npy *npy);

/* Reads all elements into `rows` (count, features); numbers must be finite. */
at_err at_npy_read_rows(const at_npy *npy, at_npy_input *input, unsigned char *rows, at_fail *fail);

/* Reads all elements as labels, integers from 0 to 2^31-1; features MUST be 1. */
at_err at_npy_read_labels(const at_npy *npy, at_npy_input *input, uint32_t *labels, at_fail *fail);

/* The same as real numbers, which must be finite (base/label.h). */
at_err at_npy_read_real_labels(const at_npy *npy, at_npy_input *input, uint32_t *labels,
                               at_fail *fail);

#endif
