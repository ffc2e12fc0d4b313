/* `anytime data`: lists, downloads and describes data sets. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/launch.h"
#include "cli/loading_progress.h"
#include "cli/options/subcommands.h"
#include "cli/output.h"
#include "cli/verbs/verbs.h"
#include "data/fetch/fetch.h"
#include "data/set/describe.h"

/* With more classes than this, only the extremes of the histogram are shown. */
enum { CLASSES_SHOWN_MAX = 64 };

#define SYNTHETIC "synthetic"

static const char *const split_name[] = {[AT_SPLIT_TRAIN] = "train", [AT_SPLIT_TEST] = "test"};

/* ---- list ------------------------------------------------------------------------------------ */

static json_t *row_json(const at_catalog_row *row)
{
    char    folder[PATH_MAX];
    bool    here = at_catalog_locate(row, folder, NULL) == AT_OK;
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:{s:I, s:I}, s:b}", "name", row->name, "summary",
                  row->summary, "licence", row->license, "form", row->form, "classes",
                  (int)row->classes, "samples", "train", (json_int_t)row->samples[AT_SPLIT_TRAIN],
                  "test", (json_int_t)row->samples[AT_SPLIT_TEST], "here", here);
    json_object_set_new(object, "folder", here ? json_string(folder) : json_null());
    return object;
}

static at_err list_json(const at_catalog_row *rows, size_t count, at_fail *fail)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(list, row_json(&rows[i]));
    return at_print_json_take(list, fail);
}

/* Length of a license name without the remarks in parentheses. */
static int license_width(const char *license)
{
    const char *remark = strstr(license, " (");
    return (int)(remark ? (size_t)(remark - license) : strlen(license));
}

static void add_row(at_table *table, const at_catalog_row *row)
{
    char folder[PATH_MAX];
    at_table_add(table, "%s", row->name);
    at_table_add(table, "%llu + %llu", (unsigned long long)row->samples[AT_SPLIT_TRAIN],
                 (unsigned long long)row->samples[AT_SPLIT_TEST]);
    at_table_add(table, "%s", row->form);
    at_table_add(table, "%u", row->classes);
    at_table_add(table, "%.*s", license_width(row->license), row->license);
    if (at_catalog_locate(row, folder, NULL) == AT_OK)
        at_table_add(table, "%s", folder);
    else
        at_table_add(table, "not downloaded (anytime data get %s)", row->name);
}

static void add_synthetic(at_table *table)
{
    static const char *const cells[] = {
        SYNTHETIC ":N,F,C",         "N + N/5", "F floats",    "C",    "none", "generated on use",
        SYNTHETIC ":N,DxHxW,C",     "N + N/5", "DxHxW bytes", "C",    "none", "generated on use",
        SYNTHETIC "-linear:N,F,SD", "N + N/5", "F floats",    "real", "none", "generated on use"};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) at_table_add(table, "%s", cells[i]);
}

/* Prints licenses whose remarks do not fit into the table. */
static void print_notes(const at_catalog_row *rows, size_t count)
{
    printf("\n");
    for (size_t i = 0; i < count; i++)
        if (rows[i].license[license_width(rows[i].license)])
            printf("%s: %s\n", rows[i].name, rows[i].license);
}

static at_err list(const at_parsed *parsed, const char *none, at_fail *fail)
{
    static const at_column columns[] = {{"name", AT_ALIGN_LEFT},    {"samples", AT_ALIGN_RIGHT},
                                        {"form", AT_ALIGN_LEFT},    {"classes", AT_ALIGN_RIGHT},
                                        {"license", AT_ALIGN_LEFT}, {"location", AT_ALIGN_LEFT}};
    size_t                 count;
    const at_catalog_row  *rows = at_catalog_rows(&count);
    assert(!none);
    if (parsed->settings.json) return list_json(rows, count, fail);
    at_table *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; table && i < count; i++) add_row(table, &rows[i]);
    if (table) add_synthetic(table);
    AT_TRY(at_print_table_take(table, fail));
    print_notes(rows, count);
    return AT_OK;
}

/* ---- get ------------------------------------------------------------------------------------- */

/* A new line begins a new part of the work, whose progress is shown on its own. */
static void print_line(void *self, const char *line)
{
    at_loading_line *progress = self;
    at_loading_line_end(progress);
    fprintf(stderr, "anytime: %s\n", line);
    at_loading_line_init(progress, progress->name, false);
    progress->doing = "downloading";
}

static void print_bytes(void *self, uint64_t done, uint64_t total)
{
    at_loading_line *progress = self;
    at_load_progress_report(&progress->loading, done, total);
}

static at_err get(const at_parsed *parsed, const char *name, at_fail *fail)
{
    bool              quiet = parsed->settings.quiet;
    at_loading_line   line;
    at_fetch_progress progress = {
        .report = quiet ? NULL : print_line, .bytes = quiet ? NULL : print_bytes, .self = &line};
    char folder[PATH_MAX];
    if (strncmp(name, SYNTHETIC, strlen(SYNTHETIC)) == 0)
        return at_fail_set(
            fail, AT_ERR_USAGE, "use it: anytime train --data " SYNTHETIC,
            "synthetic data sets are generated on use; there is nothing to download");
    at_loading_line_init(&line, name, quiet);
    at_err err = at_fetch(name, &progress, fail);
    at_loading_line_end(&line);
    if (err) return err;
    AT_TRY(at_catalog_locate(at_catalog_find(name), folder, fail));
    if (parsed->settings.json)
        return at_print_json_take(json_pack("{s:s, s:s}", "name", name, "folder", folder), fail);
    at_print("%s is in %s\n", name, folder);
    return AT_OK;
}

/* ---- info ------------------------------------------------------------------------------------ */

static json_t *split_json(const at_description *d, at_split split)
{
    if (d->count[split] == 0) return json_null();
    if (d->real_labels) {
        const at_label_range *real = &d->real[split];
        return json_pack("{s:I, s:{s:f, s:f, s:f, s:f}}", "samples", (json_int_t)d->count[split],
                         "labels", "min", real->min, "max", real->max, "mean", real->mean,
                         "deviation", real->deviation);
    }
    json_t *labels = d->labels[split] ? json_array() : json_null();
    for (uint32_t c = 0; d->labels[split] && c < d->classes; c++)
        json_array_append_new(labels, json_integer((json_int_t)d->labels[split][c]));
    return json_pack("{s:I, s:o}", "samples", (json_int_t)d->count[split], "labels", labels);
}

/* Whether all of it came from the cache. */
static bool is_cached(const at_description *d)
{
    bool train = d->count[AT_SPLIT_TRAIN] > 0, test = d->count[AT_SPLIT_TEST] > 0;
    return (!train || d->cached[AT_SPLIT_TRAIN]) && (!test || d->cached[AT_SPLIT_TEST]);
}

static at_err info_json(const char *name, const at_description *d, at_fail *fail)
{
    json_t *object = json_pack("{s:s, s:s, s:s?, s:s?, s:s, s:I, s:I, s:b, s:o, s:o}", "name", name,
                               "format", d->format, "summary", d->summary, "licence", d->license,
                               "form", d->form, "features", (json_int_t)d->features, "classes",
                               (json_int_t)d->classes, "cached", is_cached(d), "train",
                               split_json(d, AT_SPLIT_TRAIN), "test", split_json(d, AT_SPLIT_TEST));
    return at_print_json_take(object, fail);
}

/* Prints one line per label. */
static at_err print_labels(const at_description *d, at_fail *fail)
{
    static const at_column columns[] = {
        {"label", AT_ALIGN_RIGHT}, {"train", AT_ALIGN_RIGHT}, {"test", AT_ALIGN_RIGHT}};
    bool      test = d->labels[AT_SPLIT_TEST] != NULL;
    at_table *table = at_table_new(columns, test ? 3 : 2);
    for (uint32_t c = 0; table && c < d->classes; c++) {
        at_table_add(table, "%u", c);
        for (int split = 0; split <= (test ? AT_SPLIT_TEST : AT_SPLIT_TRAIN); split++)
            at_table_add(table, "%llu",
                         d->labels[split] ? (unsigned long long)d->labels[split][c] : 0);
    }
    printf("\n");
    return at_print_table_take(table, fail);
}

static void print_extremes(const at_description *d)
{
    for (int split = AT_SPLIT_TRAIN; split <= AT_SPLIT_TEST; split++) {
        const uint64_t *labels = d->labels[split];
        if (!labels) continue;
        uint64_t least = labels[0], most = labels[0];
        for (uint32_t c = 1; c < d->classes; c++) {
            if (labels[c] < least) least = labels[c];
            if (labels[c] > most) most = labels[c];
        }
        printf("%-9s %llu to %llu samples per class\n", split_name[split],
               (unsigned long long)least, (unsigned long long)most);
    }
}

static void print_real_labels(const at_description *d)
{
    for (int split = AT_SPLIT_TRAIN; split <= AT_SPLIT_TEST; split++)
        if (d->count[split] > 0)
            printf("%-9s real numbers in the %s set: %.6g to %.6g, mean %.6g, deviation %.6g\n",
                   "labels", split_name[split], d->real[split].min, d->real[split].max,
                   d->real[split].mean, d->real[split].deviation);
}

static void print_fact(const char *name, const char *text)
{
    int indent = printf("%-9s ", name);
    at_table_print_wrapped(stdout, text, (size_t)indent, at_table_columns(stdout));
}

static void print_facts(const char *name, const at_description *d)
{
    print_fact("name", name);
    if (d->summary) print_fact("content", d->summary);
    print_fact("format", d->format);
    print_fact("license", d->license ? d->license : "unknown");
    printf("%-9s %s, %u features\n", "form", d->form, d->features);
    for (int split = AT_SPLIT_TRAIN; split <= AT_SPLIT_TEST; split++)
        if (d->count[split] > 0)
            printf("%-9s %llu samples%s\n", split_name[split], (unsigned long long)d->count[split],
                   d->cached[split] ? " (from the cache)" : "");
    if (d->classes > 0) printf("%-9s %u\n", "classes", d->classes);
    if (d->real_labels) print_real_labels(d);
}

/* Files whose labels cannot be classes may be for regression. */
static at_err describe(const char *name, at_read_options *reading, at_description *d, at_fail *fail)
{
    at_fail ignored;
    at_err  err = at_describe(name, reading, d, fail);
    if (err != AT_ERR_FORMAT) return err;
    reading->real_labels = true;
    return at_describe(name, reading, d, &ignored) ? err : AT_OK;
}

static at_err info(const at_parsed *parsed, const char *name, at_fail *fail)
{
    at_description  d;
    at_loading_line line;
    at_loading_line_init(&line, name, parsed->settings.quiet);
    at_read_options reading;
    AT_TRY(at_launch_reading(&parsed->settings, &reading, fail));
    reading.any_labels = true;
    reading.progress = &line.loading;
    at_err err = describe(name, &reading, &d, fail);
    at_loading_line_end(&line);
    if (err) return err;
    if (parsed->settings.json) {
        err = info_json(name, &d, fail);
    } else {
        print_facts(name, &d);
        if (d.classes > CLASSES_SHOWN_MAX)
            print_extremes(&d);
        else if (d.classes > 0)
            err = print_labels(&d, fail);
    }
    at_describe_deinit(&d);
    return err;
}

at_err at_verb_data(at_parsed *parsed, const char *command, at_fail *fail)
{
    static const at_subcommand subcommands[] = {
        {"list", NULL, list}, {"get", "NAME", get}, {"info", "NAME or PATH", info}, {0}};
    (void)command;
    return at_subcommand_run("data", subcommands, parsed, fail);
}
