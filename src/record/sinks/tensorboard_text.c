#include "record/sinks/tensorboard_text.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes that Markdown or its table would take for its own are written as what they are; those that
 * are no text at all become '?'. */
static void write_cell(FILE *out, const char *text)
{
    static const char special[] = "|`*_<>[]\\&";
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        bool          is_special = false;
        for (const char *c = special; *c; c++) is_special = is_special || *c == *text;
        if (is_special)
            fprintf(out, "&#%d;", byte);
        else
            fputc(byte < ' ' || byte == 0x7f ? '?' : byte, out);
    }
}

static void write_row(FILE *out, const char *name, const char *value)
{
    assert(name);
    fputs("| ", out);
    write_cell(out, name);
    fputs(" | ", out);
    write_cell(out, value ? value : "");
    fputs(" |\n", out);
}

static void write_number(FILE *out, const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    write_row(out, name, text);
}

static void write_run(FILE *out, const at_run_info *info)
{
    char text[64];
    assert(info->plan);
    write_row(out, "anytime", ANYTIME_VERSION);
    write_row(out, "command", info->command);
    write_row(out, "world", info->world);
    write_row(out, "model", info->model);
    write_number(out, "parameters", info->parameters);
    write_row(out, "data", info->data);
    write_number(out, "samples", info->samples_epoch);
    if (info->plan->strategy) write_row(out, "strategy", info->plan->strategy->name);
    for (int i = 0; info->plan->work && i < AT_FAMILY_COUNT; i++)
        write_row(out, at_family_name[i],
                  at_plan_rule_text(info->plan, (enum at_family)i, text, sizeof text));
    write_number(out, "workers", info->plan->workers);
    write_number(out, "seed", info->seed);
}

/* Options that were neither given nor decided have no value to tell. */
static void write_options(FILE *out, const json_t *options)
{
    void *object = (void *)options; /* jansson's iterators want to be able to change it */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        const json_t *value = json_object_iter_value(i);
        char          name[80];
        snprintf(name, sizeof name, "--%s", json_object_iter_key(i));
        if (json_is_null(value)) continue;
        if (json_is_string(value)) {
            write_row(out, name, json_string_value(value));
            continue;
        }
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
        write_row(out, name, text);
        free(text);
    }
}

char *at_tensorboard_settings(const at_run_info *info)
{
    char  *text = NULL;
    size_t size;
    FILE  *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fputs("| setting | value |\n|---|---|\n", out);
    write_run(out, info);
    if (info->options) write_options(out, info->options);
    bool failed = ferror(out);
    if (fclose(out) || failed) {
        free(text);
        return NULL;
    }
    return text;
}
