/* parts.h - which files a path stands for, in formats whose sets are one file or many.
 *
 *     a9a              train: a9a              test: a9a.t beside it (also packed), if there
 *     train.tsv.gz     train: train.tsv.gz     test: test.tsv.gz beside it, if there
 *     FOLDER           train: its files        test: those named test or ending in .t
 */
#ifndef AT_DATA_FILES_PARTS_H
#define AT_DATA_FILES_PARTS_H

#include <stdbool.h>

#include "data/files/file_list.h"
#include "data/set/dataset.h"

/* Whether a file looks like one of the format; errors mean false. */
typedef bool at_parts_test(const char *path);

/* Whether the path is such a file, or a folder with such files. */
bool at_parts_claim(const char *path, at_parts_test *is_ours);

/* Whether the path has that split. A file without a test file beside it is the train set. */
bool at_parts_hold(const char *path, at_split split, at_parts_test *is_ours);

/* Adds the files of the split, in the order of their names. A file that has no test file beside it
 * is itself either split. AT_ERR_MISSING when there is none. */
at_err at_parts_find(const char *path, at_split split, at_parts_test *is_ours, at_files *files,
                     at_fail *fail);

#endif
