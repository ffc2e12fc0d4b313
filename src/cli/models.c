/* `anytime models`: which nets there are, and what one of them is made of. */
#include <assert.h>
#include <stdio.h>

#include "cli/actions.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "data/dataset.h"
#include "learn/model.h"
#include "learn/net.h"

/* ---- list ------------------------------------------------------------------------------------ */

static at_err list_json(at_fail *fail)
{
    json_t *list = json_array();
    for (size_t i = 0; i < at_model_families_count; i++) {
        const at_model_family *family = &at_model_families[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", family->name, "usage",
                                              family->usage, "summary", family->summary));
    }
    return at_print_json_take(list, fail);
}

static at_err list(const at_parsed *parsed, const char *none, at_fail *fail)
{
    static const at_column columns[] = {{"model", AT_ALIGN_LEFT}, {"what it is", AT_ALIGN_LEFT}};
    assert(!none);
    if (parsed->settings.json) return list_json(fail);
    at_table *table = at_table_new(columns, 2);
    for (size_t i = 0; table && i < at_model_families_count; i++) {
        at_table_add(table, "%s", at_model_families[i].usage);
        at_table_add(table, "%s", at_model_families[i].summary);
    }
    return at_print_table_take(table, fail);
}

/* ---- show ------------------------------------------------------------------------------------ */

/* A model as it would be for some data. */
typedef struct sight {
    const char   *name, *data;
    at_shape      shape;
    at_model     *model;
    at_layer_info layer[AT_NET_LAYERS_MAX];
    size_t        layers;
} sight;

/* The form of the default set is known, so that it need not be on this machine to be talked about;
 * any other set is asked. */
static at_err find_shape(const at_parsed *parsed, sight *s, at_fail *fail)
{
    at_dataset *set;
    s->data = parsed->settings.data;
    s->shape = (at_shape){.features = 784, .classes = 10};
    if (!at_options_given(parsed, "data")) return AT_OK;
    AT_TRY(at_dataset_open(s->data, AT_SPLIT_TRAIN, &set, fail));
    s->shape = (at_shape){at_dataset_features(set), at_dataset_classes(set)};
    at_dataset_free(set);
    return AT_OK;
}

static json_t *show_json(const sight *s)
{
    json_t *layers = json_array();
    for (size_t i = 0; i < s->layers; i++) {
        const at_layer_info *l = &s->layer[i];
        json_array_append_new(layers, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "kind", l->kind,
                                                "in", (json_int_t)l->in, "out", (json_int_t)l->out,
                                                "parameters", (json_int_t)l->params,
                                                "parameters_at", (json_int_t)l->params_at,
                                                "multiply_adds", (json_int_t)l->mults));
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:o}", "model", s->name, "data", s->data,
                     "features", (json_int_t)s->shape.features, "classes",
                     (json_int_t)s->shape.classes, "parameters",
                     (json_int_t)at_model_params(s->model), "multiply_adds",
                     (json_int_t)at_model_mults(s->model), "engine", at_model_engine(s->model),
                     "layers", layers);
}

static void add_numbers(at_table *table, size_t params, uint64_t mults)
{
    at_table_add(table, "%zu", params);
    at_table_add(table, "%llu", (unsigned long long)mults);
}

static at_err show_table(const sight *s, at_fail *fail)
{
    static const at_column columns[] = {{"layer", AT_ALIGN_LEFT},
                                        {"in", AT_ALIGN_RIGHT},
                                        {"out", AT_ALIGN_RIGHT},
                                        {"parameters", AT_ALIGN_RIGHT},
                                        {"multiply-adds", AT_ALIGN_RIGHT}};
    printf("%s on %s: %u features, %u classes, computed by %s\n\n", s->name, s->data,
           s->shape.features, s->shape.classes, at_model_engine(s->model));
    at_table *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; table && i < s->layers; i++) {
        at_table_add(table, "%zu %s", i + 1, s->layer[i].kind);
        at_table_add(table, "%u", s->layer[i].in);
        at_table_add(table, "%u", s->layer[i].out);
        add_numbers(table, s->layer[i].params, s->layer[i].mults);
    }
    if (table) {
        at_table_add(table, "total");
        at_table_add(table, "%u", s->shape.features);
        at_table_add(table, "%u", s->shape.classes);
        add_numbers(table, at_model_params(s->model), at_model_mults(s->model));
    }
    return at_print_table_take(table, fail);
}

static at_err show(const at_parsed *parsed, const char *name, at_fail *fail)
{
    sight s = {.name = name};
    AT_TRY(find_shape(parsed, &s, fail));
    AT_TRY(at_model_new(name, s.shape, AT_ENGINE_FAST, 1, &s.model, fail));
    s.layers = at_model_layers(s.model, s.layer, AT_NET_LAYERS_MAX);
    assert(s.layers <= AT_NET_LAYERS_MAX);
    at_err err =
        parsed->settings.json ? at_print_json_take(show_json(&s), fail) : show_table(&s, fail);
    at_model_free(s.model);
    return err;
}

at_err at_verb_models(at_parsed *parsed, const char *command, at_fail *fail)
{
    static const at_action actions[] = {{"list", NULL, list}, {"show", "NAME", show}, {0}};
    (void)command;
    return at_action_run("models", actions, parsed, fail);
}
