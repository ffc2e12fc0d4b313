/* format.h - the family of data formats. A new format is one file and one line in dataset.c. */
#ifndef AT_DATA_FORMAT_H
#define AT_DATA_FORMAT_H

#include <stdbool.h>

#include "data/store.h"

typedef struct at_format {
    const char *name;
    const char *summary;
    /* True when `name` (a path, a list of paths, a word with numbers) is for this format. May
     * look at names of files and at their first bytes; errors mean false. */
    bool (*claims)(const char *name);
    /* Optional: whether the claimed name has that split; by default it has both. */
    bool (*holds)(const char *name, at_split split);
    /* Reserves and fills *set, which is zeroed, and sets classes and form. Not sealed yet. On
     * failure the caller frees whatever was reserved. */
    at_err (*load)(at_dataset *set, const char *name, at_split split, at_fail *fail);
} at_format;

extern const at_format at_format_synthetic;
extern const at_format at_format_idx;

/* In the order in which they are asked; ends with NULL. */
extern const at_format *const at_formats[];

#endif
