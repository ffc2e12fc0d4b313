#include "record/log/json_fields.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

json_t *at_json_field_get(const at_json_field *field, const void *base)
{
    const char *place = (const char *)base + field->offset;
    uint32_t    u32;
    int64_t     wide;
    double      real;
    bool        flag;
    switch (field->type) {
    case AT_JSON_U32: memcpy(&u32, place, sizeof u32); return json_integer(u32);
    case AT_JSON_U64:
    case AT_JSON_COUNT: memcpy(&wide, place, sizeof wide); return json_integer(wide);
    case AT_JSON_REAL:
    case AT_JSON_REAL_OR_NAN:
        memcpy(&real, place, sizeof real);
        return isfinite(real) ? json_real(real) : json_null();
    case AT_JSON_FLAG: memcpy(&flag, place, sizeof flag); return json_boolean(flag);
    }
    assert(!"unreachable");
    return NULL;
}

bool at_json_field_set(const at_json_field *field, const json_t *value, void *base)
{
    char    *place = (char *)base + field->offset;
    int64_t  wide = json_integer_value(value);
    uint32_t u32 = (uint32_t)wide;
    double   real = json_is_null(value) ? NAN : json_number_value(value);
    bool     flag = json_is_true(value);
    switch (field->type) {
    case AT_JSON_U32: memcpy(place, &u32, sizeof u32); return json_is_integer(value) && wide == u32;
    case AT_JSON_U64: memcpy(place, &wide, sizeof wide); return json_is_integer(value);
    case AT_JSON_COUNT:
        memcpy(place, &wide, sizeof wide);
        return json_is_integer(value) && wide >= 0;
    case AT_JSON_REAL:
        memcpy(place, &real, sizeof real);
        return json_is_number(value) && isfinite(real);
    case AT_JSON_REAL_OR_NAN:
        memcpy(place, &real, sizeof real);
        return json_is_null(value) || json_is_number(value);
    case AT_JSON_FLAG: memcpy(place, &flag, sizeof flag); return json_is_boolean(value);
    }
    assert(!"unreachable");
    return false;
}

void at_json_fields_write(const at_json_field *fields, size_t count, const void *base,
                          json_t *object)
{
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, fields[i].name, at_json_field_get(&fields[i], base));
}

const char *at_json_fields_read(const at_json_field *fields, size_t count, const json_t *object,
                                void *base)
{
    for (size_t i = 0; i < count; i++)
        if (!at_json_field_set(&fields[i], json_object_get(object, fields[i].name), base))
            return fields[i].name;
    return NULL;
}
