/* set_pair.h - the train set and the test set of a run, which match each other.
 *
 * A data set without a test part would be scored on the samples it was trained on, so a part of its
 * rows is held out: always the same rows, whatever the seed, so that a model is never tested on
 * rows that an earlier run has trained on.
 */
#ifndef AT_DATA_SET_SET_PAIR_H
#define AT_DATA_SET_SET_PAIR_H

#include "base/text.h"
#include "data/set/dataset.h"

typedef struct at_set_pair {
    at_dataset *train, *test;
    uint64_t    held_out;       /* rows of the train set that became the test set; 0: none */
    bool        tests_on_train; /* the test set is the train set: there was nothing else */
    bool        divided;        /* the format has chosen the test set among all samples */
    bool        described; /* the train set is only a description: one row of zeros (inputs.h) */
} at_set_pair;

/* Opens both. The test set is `test_data` or, if that is NULL, the test part of `data`; if there is
 * none, the share `test_split` (0 .. 1) of the rows of `data`, with 0 all of them. Errors as
 * at_dataset_open_as and at_dataset_match; AT_ERR_USAGE when no row would be left to train on. */
at_err at_set_pair_open(at_set_pair *pair, const char *data, const char *test_data,
                        double test_split, const at_read_options *options, at_fail *fail);

/* The same without a train set: `inputs` (inputs.h) is what it was. The test set is `test_data` or,
 * if that is NULL, the description itself. */
at_err at_set_pair_open_inputs(at_set_pair *pair, const char *inputs, const char *test_data,
                               const at_read_options *options, at_fail *fail);

/* Releases both; accepts a zeroed one. */
void at_set_pair_close(at_set_pair *pair);

/* Adds a line for each: rows that were held out, or that tests are done on the train set; what was
 * decided about the columns of a table. */
void at_set_pair_note(const at_set_pair *pair, const char *data, at_text *notes);

/* Whether the data has a test part, or should have: then opening it says what is missing. */
bool at_dataset_has_test(const char *data);

/* Moves the share of the rows (at least one), chosen evenly at random but always the same, to a new
 * set. Sealed sets stay sealed. AT_ERR_USAGE when none would be left. */
at_err at_dataset_hold_out(at_dataset *train, double share, at_dataset **test, at_fail *fail);

#endif
