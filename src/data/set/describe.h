/* describe.h - `anytime data info NAME`: what is in a data set. Returns facts, prints nothing. */
#ifndef AT_DATA_SET_DESCRIBE_H
#define AT_DATA_SET_DESCRIBE_H

#include "data/set/dataset.h"

typedef struct at_description {
    const char *format;    /* "idx", "synthetic" */
    const char *summary;   /* of a named set, else of the format */
    const char *licence;   /* of a named set, else NULL: not known */
    char        form[64];  /* of one sample: "28x28 bytes" */
    uint32_t    features;  /* of one sample */
    uint32_t    classes;   /* 0 for a single file of images, which has no labels */
    uint64_t    count[2];  /* samples by at_split; 0 where there is no such split */
    bool        cached[2]; /* it was not read but kept from the last time (cache.h) */
    uint64_t   *labels[2]; /* how often each label occurs (classes of them); NULL without labels */
} at_description;

/* Describes a named set, a folder, a pair of files or a single IDX file; reads all of it, so a
 * damaged file is found. The description MUST be deinited after success. Errors as
 * at_dataset_open. */
at_err at_describe(const char *name, at_description *description, at_fail *fail);

/* The same with other than default answers to readers (NULL: the default ones); what the cache
 * holds is not read again. */
at_err at_describe_as(const char *name, const at_reading *reading, at_description *description,
                      at_fail *fail);

/* Releases the counts; accepts a zeroed description. */
void at_describe_deinit(at_description *description);

#endif
