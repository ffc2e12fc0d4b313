/* Fuzz target: any text as the description of samples that is kept with the weights of a model, and
 * after a zero byte a CSV file that is read as such samples. */
#include "data/set/inputs.h"

#include <string.h>

#include "../folder.h"
#include "data/formats/csv_columns.h"
#include "data/set/set_pair.h"
#include "data/set/store.h"

enum { FEATURES_MAX = 1 << 20 }; /* more only cost memory */

/* The columns of a table are parsed when other rows are read. */
static void parse_columns(const char *text)
{
    at_csv_columns columns;
    at_fail        fail = {0};
    at_err         err = at_csv_columns_parse(&columns, text, &fail);
    assert(!err == !fail.text[0]);
    at_csv_columns_deinit(&columns);
}

/* What is accepted can be written and read again. */
static void repeat(const at_dataset *set)
{
    at_dataset *again = NULL;
    at_fail     fail = {0};
    char       *text = at_inputs_text(set);
    assert(text);
    at_err err = at_inputs_open(text, &again, &fail);
    assert(!err && at_dataset_match(set, again, &fail) == AT_OK);
    at_dataset_free(again);
    free(text);
}

static void read_rows(const char *text, const uint8_t *rows, size_t size)
{
    char        name[300];
    at_set_pair pair;
    at_fail     fail = {0};
    snprintf(name, sizeof name, "csv:%s", fuzz_file("rows.csv", rows, size, NULL, 0));
    at_err err = at_set_pair_open_inputs(&pair, text, name, &(at_read_options){0}, &fail);
    assert(err ? fail.text[0] : at_store_is_valid(pair.test));
    if (!err) at_set_pair_close(&pair);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char       *text = calloc(1, size + 1);
    at_dataset *set = NULL;
    at_fail     fail = {0};
    assert(text);
    memcpy(text, data, size);
    at_err err = at_inputs_open(text, &set, &fail);
    assert(err ? fail.text[0] && !set : set != NULL);
    if (set && at_dataset_features(set) <= FEATURES_MAX) {
        if (set->columns) parse_columns(set->columns);
        repeat(set);
        size_t length = strlen(text);
        if (length < size) read_rows(text, data + length + 1, size - length - 1);
    }
    json_decref(at_inputs_class_names(text));
    at_dataset_free(set);
    free(text);
    return 0;
}
