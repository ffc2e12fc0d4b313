/* arrays.h - an array of samples and one of labels, wherever they are; for npy_format.c.
 *
 * Both are in one .npz archive under one of the usual pairs of names, or in two .npy files.
 */
#ifndef AT_DATA_FORMATS_ARRAYS_H
#define AT_DATA_FORMATS_ARRAYS_H

#include <limits.h>

#include "data/files/zip.h"
#include "data/formats/npy.h"

/* Two arrays that belong together. */
typedef struct at_arrays {
    char   path[2][PATH_MAX]; /* of the samples, of the labels; the same for an archive */
    char   inside[2][32];     /* names in the archive; empty: the file itself is the array */
    at_npy samples, labels;   /* headers, filled by at_arrays_measure */
} at_arrays;

/* The names under which samples and labels of both splits lie in an archive or, as files, in a
 * folder. Only one split: the names of the test split are NULL. The last row has no names. */
typedef struct at_arrays_names {
    const char *samples[2], *labels[2]; /* by at_split, with .npy */
} at_arrays_names;
extern const at_arrays_names at_arrays_usual[];

/* The usual names that an archive has, or NULL. */
const at_arrays_names *at_arrays_in(const at_zip *zip);

/* Reads both headers and compares the numbers of samples. */
at_err at_arrays_measure(at_arrays *arrays, at_fail *fail);

/* Reads the samples of measured arrays into rows (count, features). */
at_err at_arrays_read_samples(const at_arrays *arrays, unsigned char *rows, at_fail *fail);

/* Reads the labels of measured arrays (count). */
at_err at_arrays_read_labels(const at_arrays *arrays, uint32_t *labels, at_fail *fail);

#endif
