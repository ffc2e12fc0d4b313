/* json_text.h - texts of any bytes as JSON strings, which must be UTF-8. */
#ifndef AT_BASE_JSON_TEXT_H
#define AT_BASE_JSON_TEXT_H

#include <jansson.h>

/* The text as a JSON string. If it is not UTF-8, each byte becomes a character, after a character 1
 * that says so. NULL when memory runs out. */
json_t *at_text_to_json(const char *text);

/* The text of such a string, to be freed by the caller; NULL if it is none. */
char *at_text_of_json(const json_t *json);

/* For people: the text, or if it is not UTF-8, with question marks for all non-ASCII bytes. JSON
 * null for NULL; NULL when memory runs out. */
json_t *at_text_to_json_shown(const char *text);

#endif
