#include "report/summary/json_value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary/utf8.h"

json_t *at_json_text(const char *text)
{
    if (!text) return json_null();
    json_t *value = json_string(text); /* NULL when it is not UTF-8 */
    char   *copy = value ? NULL : strdup(text);
    if (!copy) return value;
    for (size_t i = 0, size; copy[i]; i += size) {
        uint32_t code;
        size = at_utf8_next(copy + i, &code);
        if (code == '?' && size == 1) copy[i] = '?';
    }
    value = json_string(copy);
    free(copy);
    return value;
}
