/* `anytime models`: lists models; shows one as a .net text, with shapes and sizes in comments. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/options/subcommands.h"
#include "cli/output.h"
#include "cli/verbs/verbs.h"
#include "data/set/dataset.h"
#include "learn/net/model.h"
#include "learn/net/net.h"
#include "world/tasks/tasks.h"

enum { ROWS = 32, /* the usual micro-batch, for which layouts are chosen */ FORM_SIZE = 40 };

/* "3x32x32" for an image, the number of features for a flat vector. */
static const char *show_form(char *text, const uint32_t form[3])
{
    if (form[1] == 1 && form[2] == 1)
        snprintf(text, FORM_SIZE, "%u", form[0]);
    else
        snprintf(text, FORM_SIZE, "%ux%ux%u", form[0], form[1], form[2]);
    return text;
}

static json_t *form_json(const uint32_t form[3])
{
    return json_pack("[I, I, I]", (json_int_t)form[0], (json_int_t)form[1], (json_int_t)form[2]);
}

/* The shape a model was made for; features are 0 if it does not say. */
static at_shape published_shape(const at_net_info *about)
{
    bool image = (uint64_t)about->height * about->width > 1;
    return (at_shape){.features = about->channels * about->height * about->width,
                      .classes = about->classes,
                      .channels = image ? about->channels : 0,
                      .height = image ? about->height : 0,
                      .width = image ? about->width : 0};
}

/* ---- list ------------------------------------------------------------------------------------ */

/* A built-in model with its published size. */
typedef struct entry {
    const char *name;
    at_net_info about;
    size_t      params;
    uint64_t    mults;
} entry;

static at_err measure(const at_net_builtin *net, entry *e, at_fail *fail)
{
    at_model *model;
    *e = (entry){.name = net->name};
    AT_TRY(at_net_info_parse(net->name, net->text, &e->about, fail));
    AT_TRY(
        at_model_plan(net->name, published_shape(&e->about), AT_ENGINE_FAST, ROWS, &model, fail));
    e->params = at_model_params(model);
    e->mults = at_model_mults(model);
    at_model_free(model);
    return AT_OK;
}

static json_t *entry_json(const entry *e)
{
    const uint32_t form[3] = {e->about.channels, e->about.height, e->about.width};
    return json_pack("{s:s, s:s, s:s, s:o, s:I, s:I, s:I}", "name", e->name, "usage", e->name,
                     "summary", e->about.summary, "input", form_json(form), "classes",
                     (json_int_t)e->about.classes, "parameters", (json_int_t)e->params,
                     "multiply_adds", (json_int_t)e->mults);
}

/* Models without layers. */
static const at_model_family sparse[] = {
    {.name = "sparse-lr", .usage = "sparse-lr", .summary = "logistic regression on sparse rows"},
    {.name = "sparse-linear",
     .usage = "sparse-linear",
     .summary = "linear regression on sparse rows",
     .regression = true}};

enum { SPARSE = sizeof sparse / sizeof *sparse };

static json_t *family_json(const at_model_family *family)
{
    return json_pack("{s:s, s:s, s:s}", "name", family->name, "usage", family->usage, "summary",
                     family->summary);
}

static at_err list_json(at_fail *fail)
{
    json_t *list = json_array();
    for (size_t i = 0; i < at_model_families_count; i++)
        json_array_append_new(list, family_json(&at_model_families[i]));
    for (size_t i = 0; i < SPARSE; i++) json_array_append_new(list, family_json(&sparse[i]));
    for (size_t i = 0; i < at_net_builtins_count; i++) {
        entry  e;
        at_err err = measure(&at_net_builtins[i], &e, fail);
        if (err) {
            json_decref(list);
            return err;
        }
        json_array_append_new(list, entry_json(&e));
    }
    return at_print_json_take(list, fail);
}

static void add_family(at_table *table, const at_model_family *family, const char *classes)
{
    if (family->regression) classes = "none";
    at_table_add(table, "%s", family->usage);
    at_table_add(table, "any");
    at_table_add(table, "%s", classes);
    at_table_add(table, " ");
    at_table_add(table, "%s", family->summary);
}

static void add_entry(at_table *table, const entry *e)
{
    char form[FORM_SIZE];
    at_table_add(table, "%s", e->name);
    at_table_add(
        table, "%s",
        show_form(form, (uint32_t[3]){e->about.channels, e->about.height, e->about.width}));
    at_table_add(table, "%u", e->about.classes);
    at_table_add(table, "%zu", e->params);
    at_table_add(table, "%s", e->about.summary);
}

static at_err list(const at_parsed *parsed, const char *none, at_fail *fail)
{
    static const at_column columns[] = {{"model", AT_ALIGN_LEFT},
                                        {"input", AT_ALIGN_RIGHT},
                                        {"classes", AT_ALIGN_RIGHT},
                                        {"parameters", AT_ALIGN_RIGHT},
                                        {"description", AT_ALIGN_LEFT}};
    assert(!none);
    if (parsed->settings.json) return list_json(fail);
    at_table *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; table && i < at_model_families_count; i++)
        add_family(table, &at_model_families[i], "any");
    for (size_t i = 0; table && i < SPARSE; i++) add_family(table, &sparse[i], "2");
    for (size_t i = 0; table && i < at_net_builtins_count; i++) {
        entry  e;
        at_err err = measure(&at_net_builtins[i], &e, fail);
        if (err) {
            at_table_free(table);
            return err;
        }
        add_entry(table, &e);
    }
    return at_print_table_take(table, fail);
}

/* ---- show ------------------------------------------------------------------------------------ */

/* A model built for some data. */
typedef struct built_model {
    const char   *name, *data; /* data NULL: the shape the model was made for */
    at_net_info   about;
    at_shape      shape;
    at_model     *model;
    at_layer_info layer[AT_NET_LAYERS_MAX];
    size_t        layers;
} built_model;

static at_err shape_of_data(built_model *s, at_fail *fail)
{
    at_dataset     *set;
    at_read_options options = {.real_labels = at_model_is_regression(s->name)};
    AT_TRY(at_dataset_open_as(s->data, AT_SPLIT_TRAIN, &options, &set, fail));
    at_image_shape image = at_dataset_shape(set);
    s->shape = (at_shape){.features = at_dataset_features(set), .classes = at_dataset_classes(set)};
    if (image.width != s->shape.features) { /* otherwise a flat vector */
        s->shape.channels = image.channels;
        s->shape.height = image.height;
        s->shape.width = image.width;
    }
    at_dataset_free(set);
    return AT_OK;
}

/* Uses the shape of --data, else of the model, else of the default data set, which is built in
 * because the set may not have been downloaded. */
static at_err find_shape(const at_parsed *parsed, built_model *s, at_fail *fail)
{
    if (at_task_is_sparse(s->name))
        return at_fail_set(fail, AT_ERR_USAGE, "see docs/guide/sparse.md",
                           "%s has no layers, only one weight per feature and a bias", s->name);
    AT_TRY(at_net_info_find(s->name, &s->about, fail));
    s->data = parsed->settings.data;
    if (at_options_given(parsed, "data")) return shape_of_data(s, fail);
    s->shape = published_shape(&s->about);
    const char *end = strrchr(s->name, '.');
    bool        file = end && !strcmp(end, ".net");
    if (s->shape.features && s->shape.classes)
        s->data = NULL;
    else if (file)
        return at_fail_set(fail, AT_ERR_USAGE, "give --data, or write `input` and `classes` lines",
                           "%s does not state its input shape and classes", s->name);
    else
        s->shape = (at_shape){.features = 784, .classes = 10};
    if (at_model_is_regression(s->name)) {
        s->shape.classes = 0;
        s->data = "synthetic-linear:10000,784,0.1";
    }
    return AT_OK;
}

static json_t *layer_json(const at_layer_info *l)
{
    return json_pack("{s:s, s:s, s:o, s:o, s:I, s:I, s:s}", "kind", l->kind, "detail", l->detail,
                     "in", form_json(l->in), "out", form_json(l->out), "parameters",
                     (json_int_t)l->params, "multiply_adds", (json_int_t)l->mults, "engine",
                     l->engine);
}

static json_t *show_json(const built_model *s)
{
    json_t *layers = json_array();
    size_t  params = at_model_params(s->model);
    for (size_t i = 0; i < s->layers; i++) json_array_append_new(layers, layer_json(&s->layer[i]));
    return json_pack("{s:s, s:s?, s:I, s:I, s:o, s:I, s:I, s:I, s:s, s:o}", "model", s->name,
                     "data", s->data, "features", (json_int_t)s->shape.features, "classes",
                     (json_int_t)s->shape.classes, "input", form_json(s->layer[0].in), "parameters",
                     (json_int_t)params, "statistics",
                     (json_int_t)(at_model_plain(s->model) - params), "multiply_adds",
                     (json_int_t)at_model_mults(s->model), "engine", at_model_engine(s->model),
                     "layers", layers);
}

static void add_numbers(at_table *table, size_t params, uint64_t mults)
{
    at_table_add(table, "%zu", params);
    at_table_add(table, "%llu", (unsigned long long)mults);
}

static void add_layer(at_table *table, size_t number, const at_layer_info *l)
{
    char in[FORM_SIZE], out[FORM_SIZE];
    at_table_add(table, "%zu %s %s", number, l->kind, l->detail);
    at_table_add(table, "%s", show_form(in, l->in));
    at_table_add(table, "%s", show_form(out, l->out));
    add_numbers(table, l->params, l->mults);
    at_table_add(table, "%s", l->engine);
}

static void print_head(FILE *file, const built_model *s)
{
    size_t stats = at_model_plain(s->model) - at_model_params(s->model);
    fprintf(file, "%s on %s: %u features, ", s->name, s->data ? s->data : "its published shape",
            s->shape.features);
    if (s->shape.classes > 0)
        fprintf(file, "%u classes, ", s->shape.classes);
    else
        fprintf(file, "real-valued labels, ");
    fprintf(file, "engine %s\n", at_model_engine(s->model));
    if (stats)
        fprintf(file, "not counted as parameters: %zu running statistics of batch normalization\n",
                stats);
    fprintf(file, "\n");
}

static at_table *layers_table(const built_model *s)
{
    static const at_column columns[] = {
        {"layer", AT_ALIGN_LEFT},          {"in", AT_ALIGN_RIGHT},
        {"out", AT_ALIGN_RIGHT},           {"parameters", AT_ALIGN_RIGHT},
        {"multiply-adds", AT_ALIGN_RIGHT}, {"engine", AT_ALIGN_LEFT}};
    char      in[FORM_SIZE];
    at_table *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; table && i < s->layers; i++) add_layer(table, i + 1, &s->layer[i]);
    if (!table) return NULL;
    at_table_add(table, "total");
    at_table_add(table, "%s", show_form(in, s->layer[0].in));
    at_table_add(table, "%u", s->shape.classes ? s->shape.classes : 1);
    add_numbers(table, at_model_params(s->model), at_model_mults(s->model));
    at_table_add(table, "%s", at_model_engine(s->model));
    return table;
}

/* Prints the lines as comments of a .net text. */
static void print_commented(const char *lines)
{
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        at_print("#%s%.*s\n", length ? " " : "", (int)length, lines);
    }
}

static at_err print_table(const built_model *s, at_fail *fail)
{
    char     *text = NULL;
    size_t    size;
    FILE     *file = open_memstream(&text, &size);
    at_table *table = layers_table(s);
    size_t    columns = at_table_columns(stdout);
    at_err    err = file && table ? AT_OK : at_fail_memory_for(fail, "for a table");
    if (!err) {
        print_head(file, s);
        err = at_table_print_in(table, file, columns > 2 ? columns - 2 : 0, fail);
    }
    if (file) fclose(file);
    if (!err) print_commented(text);
    at_table_free(table);
    free(text);
    return err;
}

/* The layers of a family as lines of a .net text. */
static at_err print_family(const built_model *s, at_fail *fail)
{
    const at_model_family *family = at_model_family_find(s->name);
    const char            *colon = strchr(s->name, ':');
    char                   form[FORM_SIZE];
    assert(family);
    printf("# %s\n", family->summary);
    if (!family->write) {
        printf("# (a .net file cannot express it: nets are for classes)\n");
        return AT_OK;
    }
    char   *buffer = malloc(AT_NET_TEXT_MAX);
    at_text text = at_text_in(buffer, buffer ? AT_NET_TEXT_MAX : 0);
    if (!buffer) return at_fail_memory(fail);
    family->write(colon ? colon + 1 : NULL, &text);
    printf("input %s\nclasses %u\n\n%s", show_form(form, s->layer[0].in), s->shape.classes, buffer);
    free(buffer);
    return AT_OK;
}

/* The text of the model, which is a .net file, and below it as comments what was made of it. */
static at_err show_text(const built_model *s, at_fail *fail)
{
    char *text;
    AT_TRY(at_net_text_find(s->name, &text, fail));
    if (text)
        at_print("%s%s", text, *text && text[strlen(text) - 1] != '\n' ? "\n" : "");
    else
        AT_TRY(print_family(s, fail));
    free(text);
    printf("\n");
    return print_table(s, fail);
}

static at_err show(const at_parsed *parsed, const char *name, at_fail *fail)
{
    built_model s = {.name = name};
    AT_TRY(find_shape(parsed, &s, fail));
    AT_TRY(at_model_plan(name, s.shape, AT_ENGINE_FAST, ROWS, &s.model, fail));
    s.layers = at_model_layers(s.model, s.layer, AT_NET_LAYERS_MAX);
    assert(s.layers > 0 && s.layers <= AT_NET_LAYERS_MAX);
    at_err err =
        parsed->settings.json ? at_print_json_take(show_json(&s), fail) : show_text(&s, fail);
    at_model_free(s.model);
    return err;
}

at_err at_verb_models(at_parsed *parsed, const char *command, at_fail *fail)
{
    static const at_subcommand subcommands[] = {{"list", NULL, list}, {"show", "NAME", show}, {0}};
    (void)command;
    return at_subcommand_run("models", subcommands, parsed, fail);
}
