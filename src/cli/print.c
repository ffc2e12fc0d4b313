#include "cli/print.h"

#include <stdio.h>
#include <stdlib.h>

enum { DIGITS = 9 };

at_err at_print_json(const json_t *document, at_fail *fail)
{
    char *text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS));
    if (!text)
        return at_fail_set(fail, AT_ERR_FAILED, "is there a name in it that is not UTF-8?",
                           "the result cannot be written as JSON");
    puts(text); /* main looks at the stream once for all */
    free(text);
    return AT_OK;
}

at_err at_print_json_take(json_t *document, at_fail *fail)
{
    at_err err = at_print_json(document, fail);
    json_decref(document);
    return err;
}

static double real_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

void at_print_test(const json_t *test)
{
    printf("test: loss %.4f, accuracy %.4f", real_at(test, "loss"), real_at(test, "accuracy"));
    if (json_object_get(test, "auc")) printf(", AUC %.4f", real_at(test, "auc"));
    if (json_object_get(test, "top5")) printf(", top-5 %.4f", real_at(test, "top5"));
    printf(" on %lld samples\n", (long long)json_integer_value(json_object_get(test, "count")));
}

at_err at_print_table_take(at_table *table, at_fail *fail)
{
    if (!table) return at_fail_memory_for(fail, "for a table");
    at_err err = at_table_print(table, stdout, fail);
    at_table_free(table);
    return err;
}
