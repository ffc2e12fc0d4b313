/* json_fields.h - fields of a struct as JSON, described by one table for writing and reading. */
#ifndef AT_RECORD_LOG_JSON_FIELDS_H
#define AT_RECORD_LOG_JSON_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum at_json_type {
    AT_JSON_U32,
    AT_JSON_U64,         /* JSON integers are signed: numbers past 2^63 keep their bits */
    AT_JSON_COUNT,       /* uint64_t or at_ns, 0 .. 2^63 - 1 */
    AT_JSON_REAL,        /* finite */
    AT_JSON_REAL_OR_NAN, /* null: NAN */
    AT_JSON_FLAG
} at_json_type;

typedef struct at_json_field {
    const char  *name;
    at_json_type type;
    size_t       offset;
} at_json_field;

/* The value of a field of *base. */
json_t *at_json_field_get(const at_json_field *field, const void *base);

/* Sets a field of *base; false when the value has another type or is out of range. */
bool at_json_field_set(const at_json_field *field, const json_t *value, void *base);

/* The same for all fields of an object. Reading returns the name of the first field that is missing
 * or invalid, NULL when there is none. */
void        at_json_fields_write(const at_json_field *fields, size_t count, const void *base,
                                 json_t *object);
const char *at_json_fields_read(const at_json_field *fields, size_t count, const json_t *object,
                                void *base);

#endif
