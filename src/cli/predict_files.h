/* predict_files.h - the files that `anytime predict RUN FILE ..` names, as one test set. */
#ifndef AT_CLI_PREDICT_FILES_H
#define AT_CLI_PREDICT_FILES_H

#include "cli/options/options.h"

/* Sets --test-data to the files after the first word: pictures (JPEG, PNG, folders of them), or one
 * file of rows; `-` is what comes from stdin. `pictures` lists the pictures, one path per line; it
 * is empty for rows. AT_OK without files. */
at_err at_predict_files(at_parsed *parsed, const char **pictures, at_fail *fail);

#endif
