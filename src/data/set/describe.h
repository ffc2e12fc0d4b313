/* describe.h - collects the facts that `anytime data info NAME` prints about a data set. */
#ifndef AT_DATA_SET_DESCRIBE_H
#define AT_DATA_SET_DESCRIBE_H

#include "data/set/dataset.h"

/* Real-valued labels. */
typedef struct at_label_range {
    double min, max, mean, deviation;
} at_label_range;

typedef struct at_description {
    const char    *format;    /* "idx", "synthetic" */
    const char    *summary;   /* of a named set, else of the format */
    const char    *license;   /* of a named set, else NULL: unknown */
    char           form[64];  /* of one sample: "28x28 bytes" */
    uint32_t       features;  /* per sample */
    uint32_t       classes;   /* 0: labels are real numbers, or it is a single file of images */
    uint64_t       count[2];  /* samples by at_split; 0: no such split */
    bool           cached[2]; /* loaded from the cache (cache.h) */
    uint64_t      *labels[2]; /* (classes) samples per label; NULL without classes */
    bool           real_labels;
    at_label_range real[2]; /* by at_split; with real_labels only */
} at_description;

/* Describes a named set, a folder, a pair of files or a single IDX file. Reads all data that is not
 * cached, so damaged files are found. `options` NULL: defaults. The description MUST be deinited
 * after success. Errors as at_dataset_open. */
at_err at_describe(const char *name, const at_read_options *options, at_description *description,
                   at_fail *fail);

/* Releases the counts; accepts a zeroed description. */
void at_describe_deinit(at_description *description);

#endif
