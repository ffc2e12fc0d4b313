/* What is known about a model without running it: its layers, its tensors, and where in the flat
 * vector they are. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "learn/engines/onednn.h"
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
    const char *hint = "`anytime models list` shows all; a file's name ends with .net";
    const char *nearest = at_text_nearest(name, names, count);
    if (!nearest) return at_fail_set(fail, AT_ERR_USAGE, hint, "there is no model \"%s\"", name);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "there is no model \"%s\"; did you mean %s?", name,
                       nearest);
}

static bool is_file_name(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && !strcmp(name + length - 4, ".net");
}

static at_err build_file(at_net *net, const char *path, at_fail *fail)
{
    unsigned char *text = NULL;
    size_t         size;
    AT_TRY(at_file_read(path, NET_FILE_MAX, &text, &size, fail));
    at_err err = at_net_read(net, path, (const char *)text, fail);
    free(text);
    return err;
}

/* NAME[:ARGS] is a family, NAME a net of the program, NAME.net a file. */
static at_err build(at_net *net, const char *text, at_fail *fail)
{
    if (is_file_name(text)) return build_file(net, text, fail);
    for (size_t i = 0; i < at_net_builtins_count; i++)
        if (!strcmp(text, at_net_builtins[i].name))
            return at_net_read(net, text, at_net_builtins[i].text, fail);
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

static at_err build_net(const char *name, at_shape shape, at_engine engine, uint32_t rows,
                        bool plain_conv, at_net **net, at_fail *fail)
{
    *net = at_net_new(engine, shape, rows, plain_conv);
    if (!*net) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the model");
    at_err err = build(*net, name, fail);
    if (!err) return AT_OK;
    at_net_free(*net);
    *net = NULL;
    return err;
}

at_err at_model_plan(const char *name, at_shape shape, at_engine engine, uint32_t rows,
                     at_model **model, at_fail *fail)
{
    *model = NULL;
    if (shape.classes < 2)
        return at_fail_set(fail, AT_ERR_USAGE, "use data with at least two classes",
                           "there is nothing to learn from %u class%s", shape.classes,
                           shape.classes == 1 ? "" : "es");
    at_model *m = calloc(1, sizeof *m);
    if (!m) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory for the model");
    at_err err = build_net(name, shape, engine, rows, false, &m->net, fail);
    /* Where the fast engine has nothing fast, the reference convolves, under its own name. */
    if (err == AT_ERR_FAILED) err = build_net(name, shape, engine, rows, true, &m->net, fail);
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
    at_err err = at_model_equip(*model, rows_max, AT_USE_TRAIN, fail);
    if (!err) return AT_OK;
    at_model_free(*model);
    *model = NULL;
    return err;
}

void at_model_free(at_model *model)
{
    if (!model) return;
    at_model_strip(model);
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

/* The engine of the layer with the most work gives the model its name. */
const char *at_model_engine(const at_model *model)
{
    const at_net   *net = model->net;
    const at_layer *most = &net->layer[0];
    assert(net->count > 0);
    for (size_t i = 1; i < net->count; i++)
        if (layer_mults(&net->layer[i]) > layer_mults(most)) most = &net->layer[i];
    return layer_engine(most);
}

bool at_model_wants_large_batches(const at_model *model)
{
    for (size_t i = 0; i < model->net->count; i++)
        if (model->net->layer[i].kind == &at_layer_bn) return true;
    return false;
}

const at_groups *at_model_groups(const at_model *model)
{
    return &model->net->groups;
}

/* A tensor with its place in both vectors. */
typedef struct placed {
    const at_layer *layer;
    at_layer_tensor tensor;
    size_t          numbers;     /* without padding */
    size_t          flat, plain; /* where it begins */
} placed;

typedef void visit(void *self, const placed *tensor);

static size_t numbers_of(const at_layer_tensor *tensor)
{
    size_t numbers = 1;
    for (uint32_t d = 0; d < tensor->dims; d++) numbers *= tensor->shape[d];
    return numbers;
}

/* The tensors of one layer: those that are trained, or the statistics. */
static void visit_layer(const at_net *net, const at_layer *layer, bool stats, size_t *plain,
                        visit *to, void *self)
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
        to(self, &one);
        flat += rows[i].form ? rows[i].form->floats : one.numbers;
        *plain += one.numbers;
    }
}

/* All tensors in the order of the plain vector. */
static void visit_all(const at_net *net, visit *to, void *self)
{
    size_t plain = 0;
    for (size_t i = 0; i < net->count; i++)
        visit_layer(net, &net->layer[i], false, &plain, to, self);
    assert(plain == net->params);
    for (size_t i = 0; i < net->count; i++)
        visit_layer(net, &net->layer[i], true, &plain, to, self);
    assert(plain == net->params + net->stats);
}

typedef struct vectors {
    float       *to;
    const float *from;
} vectors;

static void to_plain(void *self, const placed *t)
{
    vectors *v = self;
    if (t->tensor.form)
        at_conv_form_to_plain(t->tensor.form, v->to + t->plain, v->from + t->flat);
    else
        memcpy(v->to + t->plain, v->from + t->flat, t->numbers * sizeof(float));
}

void at_model_to_plain(const at_model *model, float *plain, const float *flat)
{
    vectors v = {.to = plain, .from = flat};
    visit_all(model->net, to_plain, &v);
}

static void from_plain(void *self, const placed *t)
{
    vectors *v = self;
    if (t->tensor.form)
        at_conv_form_from_plain(t->tensor.form, v->to + t->flat, v->from + t->plain);
    else
        memcpy(v->to + t->flat, v->from + t->plain, t->numbers * sizeof(float));
}

void at_model_from_plain(const at_model *model, float *flat, const float *plain)
{
    vectors v = {.to = flat, .from = plain};
    memset(flat, 0, model->net->flat * sizeof *flat);
    visit_all(model->net, from_plain, &v);
}

typedef struct names {
    at_tensor *rows;
    size_t     count, max;
} names;

static void name(void *self, const placed *t)
{
    names *n = self;
    char   layer[AT_LAYER_NAME_SIZE];
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
    names n = {.rows = tensors, .max = max};
    visit_all(model->net, name, &n);
    return n.count;
}

typedef struct stretching {
    const at_groups *groups;
    at_param_range  *rows;
    size_t           count, max;
} stretching;

static int32_t group_index(const at_groups *groups, const char *name)
{
    for (uint32_t i = 0; i < groups->count; i++)
        if (!strcmp(groups->group[i].name, name)) return (int32_t)i;
    return -1;
}

/* The group that was set for it; the one nobody set, of every tensor else, is behind the others. */
static int32_t group_of(const at_groups *groups, const placed *t)
{
    static const char *const by_role[] = {
        [AT_ROLE_WEIGHT] = "weights", [AT_ROLE_BIAS] = "biases", [AT_ROLE_NORM] = "norms"};
    const char *own = t->layer->spec.group;
    int32_t     index = own ? group_index(groups, own) : -1;
    if (index < 0) index = group_index(groups, by_role[t->tensor.role]);
    return index < 0 ? (int32_t)groups->count : index;
}

/* Neighbours that learn alike become one range, with the gap between them. */
static void range(void *self, const placed *t)
{
    stretching     *s = self;
    bool            stats = t->tensor.role == AT_ROLE_STAT;
    size_t          floats = t->tensor.form ? t->tensor.form->floats : t->numbers;
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
    stretching s = {.groups = &model->net->groups, .rows = ranges, .max = max};
    visit_all(model->net, range, &s);
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

/* Each layer draws from its own stream, so that a change to one leaves the others as they were. */
static void init_layer(const at_layer *layer, float *plain, uint64_t seed, uint64_t number)
{
    at_rng rng = at_rng_stream(seed, 0, AT_RNG_PURPOSE_INIT, number);
    layer->kind->init(layer, plain, &rng);
}

/* A layer starts with all its tensors in a row; in the plain vector statistics come later. */
typedef struct starting {
    const float *plain;
    float       *flat;
    size_t       done;
} starting;

static void start(void *self, const placed *t)
{
    starting    *s = self;
    const float *from = s->plain + s->done;
    if (t->tensor.form)
        at_conv_form_from_plain(t->tensor.form, s->flat + t->flat, from);
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
        if (!plain) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory to start the model");
        starting s = {.plain = plain, .flat = params};
        init_layer(layer, plain, seed, number++);
        visit_layer(net, layer, false, &plain_at, start, &s);
        visit_layer(net, layer, true, &plain_at, start, &s);
        free(plain);
    }
    return AT_OK;
}

/* The numbers of its line that matter, for people: "5x5x32 /2 relu". */
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
    size_t sum = 3 * at_model_widest(model); /* gradients that take turns */
    for (size_t i = 0; i < model->net->count; i++)
        sum += at_activation_size(&model->net->layer[i].out);
    return sum;
}

void at_model_threads(uint32_t threads)
{
    assert(threads > 0);
    at_onednn_threads((int)threads);
}
