/* split_files.h - the train and test files a path stands for, in formats of one or many files.
 *
 *     a9a              train: a9a              test: a9a.t beside it (or packed), if present
 *     train.tsv.gz     train: train.tsv.gz     test: test.tsv.gz beside it, if present
 *     FOLDER           train: its files        test: those with "test" in the name or ending in .t
 */
#ifndef AT_DATA_FILES_SPLIT_FILES_H
#define AT_DATA_FILES_SPLIT_FILES_H

#include <stdbool.h>

#include "data/files/folder.h"
#include "data/set/dataset.h"

/* Whether a file has the content of the format; errors mean false. */
typedef bool at_split_file_test(const char *path);

/* Whether the path is such a file, or a folder with such files. */
bool at_split_files_claim(const char *path, at_split_file_test *is_ours);

/* Whether the path has that split. A file without a test file beside it is the train set. */
bool at_split_files_has(const char *path, at_split split, at_split_file_test *is_ours);

/* Adds the files of the split, sorted by name. A file without a test file beside it serves as
 * either split. AT_ERR_MISSING when there is none. */
at_err at_split_files_list(const char *path, at_split split, at_split_file_test *is_ours,
                           at_file_list *files, at_fail *fail);

#endif
