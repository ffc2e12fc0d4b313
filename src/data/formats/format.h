/* format.h - the family of data formats. A new format is one file and one line in dataset.c. */
#ifndef AT_DATA_FORMATS_FORMAT_H
#define AT_DATA_FORMATS_FORMAT_H

#include <stdbool.h>

#include "data/files/parts.h"
#include "data/set/store.h"

typedef struct at_format {
    const char *name;
    const char *summary;
    /* Optional: what it looks for in a folder or file, for the message that nothing was found:
     * "train-images*, train-labels*". */
    const char *wants;
    /* Whether reading costs much more than a copy (text, pictures), so that what was read is worth
     * a cache. Compressed files are, whatever this says. */
    bool parses;
    /* Nothing is read: the numbers behind the colon of "NAME:.." say it all, and claims, holds and
     * load see the whole text. Other formats see only the path of FORMAT:PATH. */
    bool made_up;
    /* Sets of one file or many (see parts.h) say here what a file of theirs looks like, and how
     * a list of them is read; claims, holds, load and sources then follow by themselves. */
    at_parts_test *is_part;
    at_err (*load_parts)(at_dataset *set, const char *name, const at_files *files, at_fail *fail);
    /* True when `name` (a path, a list of paths, a word with numbers) is for this format. May
     * look at names of files and at their first bytes; errors mean false. */
    bool (*claims)(const char *name);
    /* Optional: whether the claimed name has that split; by default it has both. */
    bool (*holds)(const char *name, at_split split);
    /* Reserves and fills *set, which is zeroed, and sets classes and form. Not sealed yet. On
     * failure the caller frees whatever was reserved. */
    at_err (*load)(at_dataset *set, const char *name, at_split split, at_fail *fail);
    /* Optional: adds every file that `load` would read, so that a cache can tell whether it is
     * still right. By default the name itself, if that is a file; what is nothing but made-up
     * numbers has none. AT_ERR_FAILED when there is no memory, errors of files mean no file. */
    at_err (*sources)(const char *name, at_split split, at_files *files, at_fail *fail);
} at_format;

extern const at_format at_format_synthetic;
extern const at_format at_format_idx;
extern const at_format at_format_cifar;
extern const at_format at_format_images;
extern const at_format at_format_npy;
extern const at_format at_format_libsvm;
extern const at_format at_format_criteo;
extern const at_format at_format_tfrecord;
extern const at_format at_format_csv;
extern const at_format at_format_synthetic_clicks;

/* In the order in which they are asked; ends with NULL. */
extern const at_format *const at_formats[];

/* What a format does with a name, whether by functions of its own or by parts. */
bool   at_format_claims(const at_format *format, const char *name);
bool   at_format_holds(const at_format *format, const char *name, at_split split);
at_err at_format_load(const at_format *format, at_dataset *set, const char *name, at_split split,
                      at_fail *fail);
at_err at_format_sources(const at_format *format, const char *name, at_split split, at_files *files,
                         at_fail *fail);

#endif
