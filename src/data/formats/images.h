/* images.h - which image files belong to a set, and reading them all; for images_format.c.
 *
 *     FOLDER/train/CLASS/NAME.jpg     training
 *     FOLDER/test/CLASS/NAME.jpg      testing; the folder may also be called val or validation
 *     FOLDER/CLASS/NAME.jpg           or both splits together: every fifth file is for testing
 *
 * Classes count from 0 in the order of their names, byte by byte. Which file is a fifth one depends
 * on a hash of its name alone, so a set that grows moves no image from one split to the other.
 */
#ifndef AT_DATA_FORMATS_IMAGES_H
#define AT_DATA_FORMATS_IMAGES_H

#include <stdbool.h>

#include "data/files/file_list.h"
#include "data/formats/image.h"
#include "data/set/store.h"

typedef struct at_images {
    at_files  classes; /* names */
    at_files  files;   /* paths of one split */
    uint32_t *labels;  /* (files.count) */
} at_images;

/* True when the folder has images below it in one of the two ways. */
bool at_images_are_in(const char *folder);

/* Whether there are images of that split. */
bool at_images_has(const char *folder, at_split split);

/* Lists the images of a split. AT_ERR_MISSING when there are none, AT_ERR_FORMAT when the test set
 * has a class that the train set lacks. To be deinited whatever happens. */
at_err at_images_list(at_images *images, const char *folder, at_split split, at_fail *fail);

/* Releases the lists; accepts a zeroed one. */
void at_images_deinit(at_images *images);

/* Reads one image file into a row (3, side, side). */
at_err at_images_read_one(const char *path, at_image_fitting how, uint32_t side, unsigned char *row,
                          at_fail *fail);

/* Reads all images into the rows of a reserved set, on all cores. When several are broken the first
 * one of the list is named. */
at_err at_images_read(const at_images *images, at_image_fitting how, uint32_t side, at_dataset *set,
                      at_fail *fail);

#endif
