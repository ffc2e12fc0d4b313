#include "data/set/inputs.h"

#include "base/json_text.h"
#include "data/formats/format.h"
#include "data/set/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MAX = 1 << 20 };

/* The names in the set, or those that the catalog has for it. */
static json_t *class_names(const at_dataset *set)
{
    const char *name = set->classes > 0 ? at_store_name(set, 0) : NULL;
    if (!name && !set->class_names) return json_null();
    json_t *names = json_array();
    for (uint32_t c = 0; c < set->classes; c++) {
        json_array_append_new(names, at_text_to_json(name ? name : set->class_names[c]));
        if (name) name += strlen(name) + 1;
    }
    return names;
}

char *at_inputs_text(const at_dataset *set)
{
    at_image_shape p = at_dataset_shape(set);
    json_t        *columns = set->columns ? json_loads(set->columns, 0, NULL) : json_null();
    json_t        *shape =
        json_pack("[I, I, I]", (json_int_t)p.channels, (json_int_t)p.height, (json_int_t)p.width);
    json_t *object = json_pack(
        "{s:s, s:s, s:o, s:b, s:b, s:I, s:I, s:o, s:o}", "format", set->format_name, "form",
        set->form, "shape", shape, "bytes", set->element == AT_ELEMENT_BYTE, "sparse",
        set->starts != NULL, "index_base", (json_int_t)set->index_base, "classes",
        (json_int_t)set->classes, "class_names", class_names(set), "columns", columns);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

static at_err damaged(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "train the model again",
                       "the description of the model's samples is damaged");
}

static bool get_uint(const json_t *json, uint64_t max, uint32_t *value)
{
    json_int_t number = json_is_integer(json) ? json_integer_value(json) : -1;
    *value = (uint32_t)number;
    return number >= 0 && (uint64_t)number <= max;
}

static at_image_shape get_shape(const json_t *json, bool *good)
{
    at_image_shape p = {0};
    *good = get_uint(json_array_get(json, 0), UINT32_MAX, &p.channels) &&
            get_uint(json_array_get(json, 1), UINT32_MAX, &p.height) &&
            get_uint(json_array_get(json, 2), UINT32_MAX, &p.width);
    double size = (double)p.channels * p.height * p.width;
    *good = *good && size >= 1 && size <= (double)UINT32_MAX;
    return p;
}

/* The names, zero-terminated one after the other; returns their size. `to` NULL: only the size. */
static size_t put_names(const json_t *names, char *to)
{
    size_t        used = 0, i;
    const json_t *name;
    json_array_foreach(names, i, name)
    {
        char  *text = at_text_of_json(name);
        size_t size = text ? strlen(text) + 1 : 0;
        if (to && text) memcpy(to + used, text, size);
        used += size;
        free(text);
    }
    return used;
}

static const char *format_name(const char *name)
{
    for (size_t i = 0; name && at_formats[i]; i++)
        if (strcmp(at_formats[i]->name, name) == 0) return at_formats[i]->name;
    return NULL;
}

static at_err fill(at_dataset *set, const json_t *json, at_fail *fail)
{
    bool           good, sparse = json_is_true(json_object_get(json, "sparse"));
    at_image_shape p = get_shape(json_object_get(json, "shape"), &good);
    const json_t  *names = json_object_get(json, "class_names"),
                 *columns = json_object_get(json, "columns");
    const char *form = json_string_value(json_object_get(json, "form"));
    at_element  element =
        json_is_true(json_object_get(json, "bytes")) ? AT_ELEMENT_BYTE : AT_ELEMENT_FLOAT;
    set->format_name = format_name(json_string_value(json_object_get(json, "format")));
    good = good && form && strlen(form) < sizeof set->form && set->format_name &&
           get_uint(json_object_get(json, "classes"), CLASSES_MAX, &set->classes) &&
           get_uint(json_object_get(json, "index_base"), 1, &set->index_base) &&
           (!json_is_array(names) || json_array_size(names) == set->classes);
    if (!good) return damaged(fail);
    uint32_t features = p.channels * p.height * p.width;
    set->names_size = json_is_array(names) ? put_names(names, NULL) : 0;
    AT_TRY(sparse ? at_store_reserve_sparse(set, 1, 0, features, fail)
                  : at_store_reserve(set, 1, features, element, fail));
    put_names(names, set->names);
    memcpy(set->form, form, strlen(form) + 1);
    if (p.channels != 1 || p.height != 1) set->shape = p;
    if (json_is_object(columns)) set->columns = json_dumps(columns, JSON_COMPACT);
    return at_store_is_valid(set) ? at_store_seal(set, fail) : damaged(fail);
}

at_err at_inputs_open(const char *text, at_dataset **out, at_fail *fail)
{
    assert(text && out);
    *out = NULL;
    json_t     *json = json_loads(text, 0, NULL);
    at_dataset *set = json ? calloc(1, sizeof *set) : NULL;
    at_err      err = set ? fill(set, json, fail) : damaged(fail);
    json_decref(json);
    if (err)
        at_dataset_free(set);
    else
        *out = set;
    return err;
}

json_t *at_inputs_class_names(const char *text)
{
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    json_t *names = json_object_get(json, "class_names");
    names = json_is_array(names) ? json_incref(names) : NULL;
    json_decref(json);
    return names;
}
