/* format.h - the interface of data formats. A new format is one file and one line in dataset.c. */
#ifndef AT_DATA_FORMATS_FORMAT_H
#define AT_DATA_FORMATS_FORMAT_H

#include <stdbool.h>

#include "data/files/split_files.h"
#include "data/set/store.h"

typedef struct at_format {
    const char *name;
    const char *summary;
    /* Optional: the files it looks for, for the message that nothing was found:
     * "train-images*, train-labels*". */
    const char *expects;
    /* The train and test files of a folder have fixed names, so a missing test part is an error. */
    bool fixed_names;
    /* Reading takes much longer than copying (text, images), so the result is worth caching.
     * Packed files are cached in any case. */
    bool slow_to_read;
    /* Reads real-valued labels when set->read_options.real_labels is set. */
    bool reads_real_labels;
    /* Generated from the numbers in the name, "NAME:..", of which claims, has_split and load get
     * the whole text. Other formats get only the path of FORMAT:PATH. */
    bool synthetic;
    /* Sets of one or many files (split_files.h) define how their files are recognized, and how a
     * list of files is read, instead of claims, has_split, load and source_files. */
    at_split_file_test *is_split_file;
    at_err (*load_files)(at_dataset *set, const char *name, const at_file_list *files,
                         at_fail *fail);
    /* True when `name` (a path, a list of paths, a word with numbers) is in this format. May look
     * at file names and at the first bytes of files; errors mean false. */
    bool (*claims)(const char *name);
    /* Optional: whether the claimed name has that split; by default it has both. */
    bool (*has_split)(const char *name, at_split split);
    /* Reserves and fills *set, which is zeroed, and sets classes and form; does not seal it. On
     * failure the caller frees what was reserved. classes stays 0 if labels are real numbers. */
    at_err (*load)(at_dataset *set, const char *name, at_split split, at_fail *fail);
    /* Optional: adds every file that `load` would read, for checking cache entries; by default the
     * name itself. AT_ERR_FAILED when memory runs out; unreadable files are skipped. */
    at_err (*source_files)(const char *name, at_split split, at_file_list *files, at_fail *fail);
    /* Optional: whether samples are larger than the pictures they are made of although nobody has
     * asked for that size; *before is that of the first picture, *after that of samples. */
    bool (*enlarges)(const char *name, at_image_shape *before, at_image_shape *after);
    /* Optional: whether the format chooses the test part among all samples, because the data has
     * none. */
    bool (*divides)(const char *name);
} at_format;

extern const at_format at_format_synthetic;
extern const at_format at_format_idx;
extern const at_format at_format_cifar;
extern const at_format at_format_images;
extern const at_format at_format_pictures;
extern const at_format at_format_npy;
extern const at_format at_format_libsvm;
extern const at_format at_format_criteo;
extern const at_format at_format_tfrecord;
extern const at_format at_format_csv;
extern const at_format at_format_synthetic_clicks;
extern const at_format at_format_synthetic_linear;

/* In the order in which they are tried; ends with NULL. */
extern const at_format *const at_formats[];

/* The operations of a format, by its own functions or those of split_files.h. */
bool   at_format_claims(const at_format *format, const char *name);
bool   at_format_has_split(const at_format *format, const char *name, at_split split);
at_err at_format_load(const at_format *format, at_dataset *set, const char *name, at_split split,
                      at_fail *fail);
at_err at_format_source_files(const at_format *format, const char *name, at_split split,
                              at_file_list *files, at_fail *fail);

#endif
