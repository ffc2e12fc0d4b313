/* print.h - results on stdout, for people or as one JSON document. */
#ifndef AT_CLI_PRINT_H
#define AT_CLI_PRINT_H

#include <jansson.h>

#include "base/err.h"
#include "report/summary/table.h"

/* Prints a JSON document and a line end. */
at_err at_print_json(const json_t *document, at_fail *fail);

/* The same for a document that is released afterwards, whatever happens; NULL means that it could
 * not be made. */
at_err at_print_json_take(json_t *document, at_fail *fail);

/* Prints the scores of a test set (the "test" of result.json) in a line for people. */
void at_print_test(const json_t *test);

/* Prints a table and releases it, whatever happens; NULL as above. */
at_err at_print_table_take(at_table *table, at_fail *fail);

#endif
