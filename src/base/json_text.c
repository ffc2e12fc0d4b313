#include "base/json_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

json_t *at_text_to_json(const char *text)
{
    json_t *whole = json_string(text);
    if (whole) return whole;
    char *wide = calloc(2 * strlen(text) + 2, 1), *to = wide;
    if (!wide) return NULL;
    *to++ = '\x01'; /* says that it is so */
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte >= 0x80) *to++ = (char)(0xc0 | byte >> 6);
        *to++ = byte >= 0x80 ? (char)(0x80 | (byte & 0x3f)) : (char)byte;
    }
    whole = json_string(wide);
    free(wide);
    return whole;
}

char *at_text_of_json(const json_t *json)
{
    const char *from = json_string_value(json);
    char       *text = from ? strdup(from) : NULL, *to = text;
    if (!text || text[0] != '\x01') return text;
    for (const unsigned char *c = (const unsigned char *)from + 1; *c; c++) {
        bool wide = (*c == 0xc2 || *c == 0xc3) && c[1];
        *to++ = wide ? (char)((*c & 3) << 6 | (c[1] & 0x3f)) : (char)*c;
        c += wide;
    }
    *to = '\0';
    return text;
}

json_t *at_text_to_json_shown(const char *text)
{
    if (!text) return json_null();
    json_t *value = json_string(text);
    char   *plain = value ? NULL : strdup(text);
    if (!plain) return value;
    for (char *c = plain; *c; c++)
        if ((unsigned char)*c >= 0x80) *c = '?';
    value = json_string(plain);
    free(plain);
    return value;
}
