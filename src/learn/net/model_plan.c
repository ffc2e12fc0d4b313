/* Builds models and describes them: layers, tensors and their positions in the flat vector, initial
 * parameters. Nothing here runs a model. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/isa.h"
#include "base/text.h"
#include "learn/net/model_parts.h"

enum { NET_FILE_MAX = 1 << 20 };

static at_err unknown_model(const char *name, at_fail *fail)
{
    enum { NAMES_MAX = 128 };
    const char *names[NAMES_MAX];
    size_t      count = 0;
    assert(at_model_families_count + at_net_builtins_count <= NAMES_MAX);
    for (size_t i = 0; i < at_model_families_count; i++) names[count++] = at_model_families[i].name;
    for (size_t i = 0; i < at_net_builtins_count; i++) names[count++] = at_net_builtins[i].name;
    const char *hint = "`anytime models list` shows all; the name of a model file ends with .net";
    const char *nearest = at_text_nearest(name, names, count);
    if (!nearest) return at_fail_set(fail, AT_ERR_USAGE, hint, "unknown model \"%s\"", name);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "unknown model \"%s\"; did you mean %s?", name,
                       nearest);
}

static bool is_file_name(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && !strcmp(name + length - 4, ".net");
}

static at_err build_file(at_net *net, const char *path, at_fail *fail)
{
    char *text;
    AT_TRY(at_file_read_text(path, NET_FILE_MAX, &text, fail));
    at_err err = at_net_parse(net, path, text, fail);
    free(text);
    return err;
}

/* NAME[:ARGS] is a family, NAME a built-in net, NAME.net a file, unless its text is known. */
static at_err build(at_net *net, const char *text, const char *known, at_fail *fail)
{
    if (known) return at_net_parse(net, text, known, fail);
    if (is_file_name(text)) return build_file(net, text, fail);
    for (size_t i = 0; i < at_net_builtins_count; i++)
        if (!strcmp(text, at_net_builtins[i].name))
            return at_net_parse(net, text, at_net_builtins[i].text, fail);
    char        name[64];
    const char *colon = strchr(text, ':');
    size_t      length = colon ? (size_t)(colon - text) : strlen(text);
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
    for (size_t i = 0; i < at_model_families_count; i++) {
        if (strcmp(name, at_model_families[i].name) != 0) continue;
        AT_TRY(at_model_families[i].build(net, colon ? colon + 1 : NULL, fail));
        return at_net_finish(net, fail);
    }
    return unknown_model(name, fail);
}

static at_err build_net(const char *name, const char *text, at_shape shape, at_engine engine,
                        uint32_t rows, bool reference_conv, at_net **net, at_fail *fail)
{
    *net = at_net_new(engine, shape, rows, reference_conv);
    if (!*net) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the model");
    at_err err = build(*net, name, text, fail);
    if (!err) return AT_OK;
    at_net_free(*net);
    *net = NULL;
    return err;
}

static at_err check_labels(const char *name, uint32_t classes, at_fail *fail)
{
    bool regression = at_model_is_regression(name);
    if (regression && classes > 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use --model softmax, or data with real labels",
                           "model %s predicts real numbers, and the data have %u classes", name,
                           classes);
    if (!regression && classes == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "use --model linear, or data with classes",
                           "model %s predicts classes, and the labels of the data are real numbers",
                           name);
    if (regression || classes >= 2) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, "use data with at least two classes",
                       "training needs at least two classes (the data have %u)", classes);
}

at_err at_model_plan(const char *name, at_shape shape, at_engine engine, uint32_t rows,
                     at_model **model, at_fail *fail)
{
    return at_model_plan_text(name, NULL, shape, engine, rows, model, fail);
}

at_err at_model_plan_text(const char *name, const char *text, at_shape shape, at_engine engine,
                          uint32_t rows, at_model **model, at_fail *fail)
{
    *model = NULL;
    AT_TRY(at_isa_check_environment(fail));
    AT_TRY(check_labels(name, shape.classes, fail));
    at_model *m = calloc(1, sizeof *m);
    if (!m) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the model");
    at_err err = build_net(name, text, shape, engine, rows, false, &m->net, fail);
    /* Convolutions that the fast engine does not have run on the reference engine. */
    if (err == AT_ERR_FAILED) err = build_net(name, text, shape, engine, rows, true, &m->net, fail);
    if (err) {
        free(m);
        return err;
    }
    *model = m;
    return AT_OK;
}

at_err at_model_new(const char *name, at_shape shape, at_engine engine, uint32_t rows_max,
                    at_model **model, at_fail *fail)
{
    AT_TRY(at_model_plan(name, shape, engine, rows_max, model, fail));
    at_err err = at_model_allocate(*model, rows_max, AT_USE_TRAIN, fail);
    if (!err) return AT_OK;
    at_model_free(*model);
    *model = NULL;
    return err;
}

void at_model_free(at_model *model)
{
    if (!model) return;
    at_model_release(model);
    at_net_free(model->net);
    free(model);
}

size_t at_model_floats(const at_model *model)
{
    return model->net->flat;
}

size_t at_model_trained(const at_model *model)
{
    return model->net->trained;
}

const at_net *at_model_net(const at_model *model)
{
    assert(model->net);
    return model->net;
}

size_t at_model_params(const at_model *model)
{
    return model->net->params;
}

size_t at_model_plain(const at_model *model)
{
    return model->net->params + model->net->stats;
}

static uint64_t layer_mults(const at_layer *layer)
{
    return layer->kind->mults ? layer->kind->mults(layer) : 0;
}

uint64_t at_model_mults(const at_model *model)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < model->net->count; i++) sum += layer_mults(&model->net->layer[i]);
    return sum;
}

static const char *layer_engine(const at_layer *layer)
{
    return layer->kind == &at_layer_conv ? layer->conv->name : layer->kernels->name;
}

/* The engine of the layer with the most multiply-adds. */
const char *at_model_engine(const at_model *model)
{
    const at_net   *net = model->net;
    const at_layer *most = &net->layer[0];
    assert(net->count > 0);
    for (size_t i = 1; i < net->count; i++)
        if (layer_mults(&net->layer[i]) > layer_mults(most)) most = &net->layer[i];
    return layer_engine(most);
}

bool at_model_has_batch_norm(const at_model *model)
{
    for (size_t i = 0; i < model->net->count; i++)
        if (model->net->layer[i].kind == &at_layer_bn) return true;
    return false;
}

const at_param_groups *at_model_groups(const at_model *model)
{
    return &model->net->groups;
}

/* A tensor with its positions in both vectors. */
typedef struct placed {
    const at_layer *layer;
    at_layer_tensor tensor;
    size_t          numbers;     /* without padding */
    size_t          flat, plain; /* positions in the flat and the plain vector */
} placed;

typedef void visitor(void *context, const placed *tensor);

static size_t numbers_of(const at_layer_tensor *tensor)
{
    size_t numbers = 1;
    for (uint32_t d = 0; d < tensor->dims; d++) numbers *= tensor->shape[d];
    return numbers;
}

/* Visits the tensors of one layer: those that are trained, or the statistics. */
static void visit_layer(const at_net *net, const at_layer *layer, bool stats, size_t *plain,
                        visitor *visit, void *context)
{
    at_layer_tensor rows[AT_LAYER_TENSORS_MAX];
    size_t          count = layer->kind->tensors ? layer->kind->tensors(layer, rows) : 0;
    size_t          flat = stats ? net->trained + layer->stats_at : layer->params_at;
    for (size_t i = 0; i < count; i++) {
        if ((rows[i].role == AT_ROLE_STAT) != stats) continue;
        placed one = {.layer = layer,
                      .tensor = rows[i],
                      .numbers = numbers_of(&rows[i]),
                      .flat = flat,
                      .plain = *plain};
        visit(context, &one);
        flat += rows[i].layout ? rows[i].layout->floats : one.numbers;
        *plain += one.numbers;
    }
}

/* Visits all tensors in the order of the plain vector. */
static void visit_all(const at_net *net, visitor *visit, void *context)
{
    size_t plain = 0;
    for (size_t i = 0; i < net->count; i++)
        visit_layer(net, &net->layer[i], false, &plain, visit, context);
    assert(plain == net->params);
    for (size_t i = 0; i < net->count; i++)
        visit_layer(net, &net->layer[i], true, &plain, visit, context);
    assert(plain == net->params + net->stats);
}

typedef struct vectors {
    float       *to;
    const float *from;
} vectors;

static void to_plain(void *context, const placed *t)
{
    vectors *v = context;
    if (t->tensor.layout)
        at_weight_layout_to_plain(t->tensor.layout, v->to + t->plain, v->from + t->flat);
    else
        memcpy(v->to + t->plain, v->from + t->flat, t->numbers * sizeof(float));
}

void at_model_to_plain(const at_model *model, float *plain, const float *flat)
{
    vectors v = {.to = plain, .from = flat};
    visit_all(model->net, to_plain, &v);
}

static void from_plain(void *context, const placed *t)
{
    vectors *v = context;
    if (t->tensor.layout)
        at_weight_layout_from_plain(t->tensor.layout, v->to + t->flat, v->from + t->plain);
    else
        memcpy(v->to + t->flat, v->from + t->plain, t->numbers * sizeof(float));
}

void at_model_from_plain(const at_model *model, float *flat, const float *plain)
{
    vectors v = {.to = flat, .from = plain};
    memset(flat, 0, model->net->flat * sizeof *flat);
    visit_all(model->net, from_plain, &v);
}

typedef struct name_list {
    at_tensor *rows;
    size_t     count, max;
} name_list;

static void add_name(void *context, const placed *t)
{
    name_list *n = context;
    char       layer[AT_LAYER_NAME_SIZE];
    if (n->count < n->max) {
        at_tensor *row = &n->rows[n->count];
        *row = (at_tensor){.dims = t->tensor.dims, .at = t->plain};
        memcpy(row->shape, t->tensor.shape, sizeof row->shape);
        at_net_layer_name(t->layer, layer);
        snprintf(row->name, sizeof row->name, "%.30s.%s", layer, t->tensor.name);
    }
    n->count++;
}

size_t at_model_tensors(const at_model *model, at_tensor *tensors, size_t max)
{
    if (max) assert(tensors);
    name_list n = {.rows = tensors, .max = max};
    visit_all(model->net, add_name, &n);
    return n.count;
}

typedef struct range_list {
    const at_param_groups *groups;
    at_param_range        *rows;
    size_t                 count, max;
} range_list;

static int32_t group_index(const at_param_groups *groups, const char *name)
{
    for (uint32_t i = 0; i < groups->count; i++)
        if (!strcmp(groups->group[i].name, name)) return (int32_t)i;
    return -1;
}

/* The group with settings that the tensor belongs to; groups->count when there is none. */
static int32_t group_of(const at_param_groups *groups, const placed *t)
{
    static const char *const by_role[] = {
        [AT_ROLE_WEIGHT] = "weights", [AT_ROLE_BIAS] = "biases", [AT_ROLE_NORM] = "norms"};
    const char *own = t->layer->spec.group;
    int32_t     index = own ? group_index(groups, own) : -1;
    if (index < 0) index = group_index(groups, by_role[t->tensor.role]);
    return index < 0 ? (int32_t)groups->count : index;
}

/* Merges neighbors with equal settings into one range, including the padding between them. */
static void add_range(void *context, const placed *t)
{
    range_list     *s = context;
    bool            stats = t->tensor.role == AT_ROLE_STAT;
    size_t          floats = t->tensor.layout ? t->tensor.layout->floats : t->numbers;
    at_param_range  next = {.at = t->flat,
                            .count = floats,
                            .group = stats ? -1 : group_of(s->groups, t),
                            .keep = stats ? (float)t->layer->spec.momentum : 0};
    at_param_range *last = s->count && s->count <= s->max ? &s->rows[s->count - 1] : NULL;
    if (last && last->group == next.group && last->keep == next.keep) {
        assert(next.at >= last->at + last->count);
        last->count = next.at + next.count - last->at;
        return;
    }
    if (s->count < s->max) s->rows[s->count] = next;
    s->count++;
}

size_t at_model_param_ranges(const at_model *model, at_param_range *ranges, size_t max)
{
    assert(ranges && max);
    range_list s = {.groups = &model->net->groups, .rows = ranges, .max = max};
    visit_all(model->net, add_range, &s);
    return s.count;
}

/* Numbers of all tensors of a layer. */
static size_t layer_numbers(const at_layer *layer, bool stats)
{
    at_layer_tensor rows[AT_LAYER_TENSORS_MAX];
    size_t          count = layer->kind->tensors ? layer->kind->tensors(layer, rows) : 0, sum = 0;
    for (size_t i = 0; i < count; i++)
        if (stats || rows[i].role != AT_ROLE_STAT) sum += numbers_of(&rows[i]);
    return sum;
}

/* Each layer has its own random stream, so that changing one layer does not change the others. */
static void init_layer(const at_layer *layer, float *plain, uint64_t seed, uint64_t number)
{
    at_rng rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_INIT, number);
    layer->kind->init(layer, plain, &rng);
}

/* A layer initializes all its tensors in a row; the plain vector has statistics at the end. */
typedef struct initial {
    const float *plain;
    float       *flat;
    size_t       done;
} initial;

static void copy_initial(void *context, const placed *t)
{
    initial     *s = context;
    const float *from = s->plain + s->done;
    if (t->tensor.layout)
        at_weight_layout_from_plain(t->tensor.layout, s->flat + t->flat, from);
    else
        memcpy(s->flat + t->flat, from, t->numbers * sizeof *from);
    s->done += t->numbers;
}

at_err at_model_init(const at_model *model, float *params, uint64_t seed, at_fail *fail)
{
    const at_net *net = model->net;
    uint64_t      number = 0;
    assert(params);
    memset(params, 0, net->flat * sizeof *params);
    for (size_t i = 0; i < net->count; i++) {
        const at_layer *layer = &net->layer[i];
        size_t          numbers = layer_numbers(layer, true), plain_at = 0;
        if (!layer->kind->init || !numbers) continue;
        float *plain = malloc(numbers * sizeof *plain);
        if (!plain)
            return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory to initialize the model");
        initial s = {.plain = plain, .flat = params};
        init_layer(layer, plain, seed, number++);
        visit_layer(net, layer, false, &plain_at, copy_initial, &s);
        visit_layer(net, layer, true, &plain_at, copy_initial, &s);
        free(plain);
    }
    return AT_OK;
}

/* Its settings in short: "5x5x32 /2 relu". */
static void describe(const at_layer *layer, char *detail, size_t size)
{
    const at_layer_spec *spec = &layer->spec;
    at_text              text = at_text_in(detail, size);
    if (spec->window.height) at_text_add(&text, "%ux%u", spec->window.height, spec->window.width);
    if (spec->units) at_text_add(&text, spec->window.height ? "x%u" : "%u", spec->units);
    if (spec->window.stride > 1) at_text_add(&text, " /%u", spec->window.stride);
    if (spec->groups) at_text_add(&text, "%u groups", spec->groups);
    if (spec->keep > 0) at_text_add(&text, "keep %g", spec->keep);
    if (spec->relu) at_text_add(&text, "%srelu", text.used ? " " : "");
}

size_t at_model_layers(const at_model *model, at_layer_info *rows, size_t max)
{
    if (max) assert(rows);
    for (size_t i = 0; i < model->net->count && i < max; i++) {
        const at_layer *layer = &model->net->layer[i];
        at_layer_info  *row = &rows[i];
        *row = (at_layer_info){.in = {layer->in.channels, layer->in.height, layer->in.width},
                               .out = {layer->out.channels, layer->out.height, layer->out.width},
                               .params = layer_numbers(layer, false),
                               .mults = layer_mults(layer)};
        snprintf(row->kind, sizeof row->kind, "%s", layer->kind->name);
        snprintf(row->engine, sizeof row->engine, "%s", layer_engine(layer));
        describe(layer, row->detail, sizeof row->detail);
    }
    return model->net->count;
}

size_t at_model_widest(const at_model *model)
{
    size_t most = 0;
    for (size_t i = 0; i < model->net->count; i++) {
        size_t size = at_activation_size(&model->net->layer[i].out);
        if (size > most) most = size;
    }
    return most;
}

size_t at_model_scratch(const at_model *model)
{
    size_t sum = 3 * at_model_widest(model); /* gradient buffers, which are reused */
    for (size_t i = 0; i < model->net->count; i++)
        sum += at_activation_size(&model->net->layer[i].out);
    return sum;
}

void at_model_threads(uint32_t threads)
{
    assert(threads > 0);
    at_onednn_threads((int)threads);
}
