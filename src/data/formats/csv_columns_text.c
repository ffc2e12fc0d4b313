/* The columns of a table as text (JSON), which is kept with a trained model. */
#include "data/formats/csv_columns.h"

#include "base/json_text.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_name[] = {[AT_CSV_NUMBER] = "number",
                                        [AT_CSV_TEXT] = "text",
                                        [AT_CSV_LABEL] = "label",
                                        [AT_CSV_IGNORED] = "ignored",
                                        [AT_CSV_IDENTIFIER] = "identifier"};

enum { KINDS = sizeof kind_name / sizeof *kind_name };

static json_t *column_json(const at_csv_column *column)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", at_text_to_json(column->name));
    json_object_set_new(object, "kind", json_string(kind_name[column->kind]));
    if (column->missing > 0)
        json_object_set_new(object, "missing", json_integer((json_int_t)column->missing));
    if (isfinite(column->fill)) json_object_set_new(object, "fill", json_real(column->fill));
    if (column->values.count == 0) return object;
    json_t *values = json_array();
    for (uint32_t i = 0; i < column->values.count; i++)
        json_array_append_new(values, at_text_to_json(at_string_table_get(&column->values, i)));
    json_object_set_new(object, "values", values);
    return object;
}

char *at_csv_columns_text(const at_csv_columns *columns)
{
    json_t *list = json_array();
    assert(columns->count > 0);
    for (size_t i = 0; i < columns->count; i++)
        json_array_append_new(list, column_json(&columns->column[i]));
    json_t *object = json_pack("{s:b, s:b, s:o}", "header", !columns->headerless, "real_labels",
                               columns->real, "columns", list);
    char   *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

static at_err damaged(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "train the model again",
                       "the description of the columns of the data is damaged");
}

static at_err parse_values(at_csv_column *column, const json_t *values, at_fail *fail)
{
    const json_t *value;
    size_t        i;
    json_array_foreach(values, i, value)
    {
        char *text = at_text_of_json(value);
        bool  added = text && at_string_table_add(&column->values, text) != UINT32_MAX;
        free(text);
        if (!text || column->values.count != i + 1) return damaged(fail);
        if (!added) return at_fail_memory_for(fail, "for the columns of the data");
    }
    return AT_OK;
}

static at_err parse_column(at_csv_column *column, const json_t *json, at_fail *fail)
{
    const char   *kind = json_string_value(json_object_get(json, "kind"));
    const json_t *fill = json_object_get(json, "fill");
    int           k = 0;
    while (k < KINDS && !(kind && strcmp(kind, kind_name[k]) == 0)) k++;
    column->name = at_text_of_json(json_object_get(json, "name"));
    if (!column->name || k == KINDS) return damaged(fail);
    column->kind = (at_csv_kind)k;
    column->missing = (uint64_t)json_integer_value(json_object_get(json, "missing"));
    column->fill = json_is_number(fill) ? json_number_value(fill) : (double)NAN;
    AT_TRY(parse_values(column, json_object_get(json, "values"), fail));
    return column->kind != AT_CSV_TEXT || column->values.count > 0 ? AT_OK : damaged(fail);
}

static at_err parse_list(at_csv_columns *columns, const json_t *list, at_fail *fail)
{
    size_t count = json_array_size(list), labels = 0;
    if (count < 2 || count > AT_CSV_COLUMNS_MAX) return damaged(fail);
    columns->column = calloc(count, sizeof *columns->column);
    if (!columns->column) return at_fail_memory_for(fail, "for the columns of the data");
    for (size_t i = 0; i < count; i++) {
        at_csv_column *column = &columns->column[columns->count++];
        AT_TRY(parse_column(column, json_array_get(list, i), fail));
        column->feature = columns->features;
        if (column->kind == AT_CSV_NUMBER) columns->features++;
        if (column->kind == AT_CSV_TEXT) columns->features += column->values.count;
        if (column->kind == AT_CSV_TEXT) columns->sparse = true;
        if (column->kind != AT_CSV_LABEL) continue;
        columns->label = i;
        labels++;
    }
    bool classes = columns->column[columns->label].values.count > 0;
    return labels == 1 && columns->features > 0 && classes != columns->real ? AT_OK : damaged(fail);
}

at_err at_csv_columns_parse(at_csv_columns *columns, const char *text, at_fail *fail)
{
    *columns = (at_csv_columns){.known = true};
    json_t *json = json_loads(text, 0, NULL);
    columns->headerless = json_is_false(json_object_get(json, "header"));
    columns->real = json_is_true(json_object_get(json, "real_labels"));
    at_err err = parse_list(columns, json_object_get(json, "columns"), fail);
    json_decref(json);
    return err;
}
