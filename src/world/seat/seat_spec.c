#include "world/seat/seat_spec.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"

/* PyTorch's defaults; sgd has none for the learning rate. */
static at_seat_group common_values(const char *optimizer)
{
    bool adam = strncmp(optimizer, "adam", 4) == 0, adagrad = strcmp(optimizer, "adagrad") == 0;
    return (at_seat_group){.lr = adam ? 0.001 : 0.01,
                           .weight_decay = strcmp(optimizer, "adamw") == 0 ? 0.01 : 0,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = adagrad ? 1e-10 : 1e-8,
                           .alpha = 0.99};
}

at_torch_kind at_spec_kind(const char *optimizer)
{
    int kind = 0;
    while (kind < AT_TORCH_COUNT && strcasecmp(optimizer, at_torch_name[kind]) != 0) kind++;
    return (at_torch_kind)kind;
}

at_torch_group at_spec_group(const at_seat_group *g)
{
    return (at_torch_group){.lr = g->lr,
                            .weight_decay = g->weight_decay,
                            .momentum = g->momentum,
                            .nesterov = g->nesterov != 0,
                            .beta1 = g->beta1,
                            .beta2 = g->beta2,
                            .alpha = g->alpha,
                            .eps = g->eps,
                            .lr_decay = g->lr_decay};
}

bool at_seat_group_valid(at_torch_kind kind, const at_seat_group *g)
{
    at_fail        fail;
    at_torch_group group = at_spec_group(g);
    bool           start = isfinite(g->accumulator) && g->accumulator >= 0;
    return kind < AT_TORCH_COUNT && start && at_torch_group_check(kind, &group, &fail) == AT_OK;
}

/* ---- checking -------------------------------------------------------------------------------- */

static at_err wrong(at_fail *fail, const char *name, const char *what)
{
    return at_fail_set(fail, AT_ERR_USAGE, "see at_seat_spec in anytime.h", "tensor '%.100s' %s",
                       name ? name : "", what);
}

static at_err copy_shape(const at_seat_tensor *given, at_tensor *tensor, size_t *floats,
                         at_fail *fail)
{
    *floats = 1;
    tensor->dims = given->dims;
    for (uint32_t i = 0; i < given->dims; i++) {
        if (given->shape[i] < 1 || given->shape[i] > UINT32_MAX)
            return wrong(fail, given->name, "has a dimension that is 0 or too large");
        tensor->shape[i] = (uint32_t)given->shape[i];
        if (!at_size_product(*floats, tensor->shape[i], floats))
            return wrong(fail, given->name, "is too large");
    }
    return AT_OK;
}

bool at_spec_is_utf8(const char *name)
{
    json_t *text = json_string(name);
    bool    valid = text != NULL;
    json_decref(text);
    return valid;
}

/* Long names are cut, between two characters. */
static void copy_model(at_spec *spec, const char *model)
{
    size_t size = strnlen(model, sizeof spec->model - 1);
    while (size > 0 && ((unsigned char)model[size] & 0xc0) == 0x80) size--;
    memcpy(spec->model, model, size);
    spec->model[size] = '\0';
}

static at_err copy_tensor(at_spec *spec, const at_seat_tensor *given, uint32_t index, at_fail *fail)
{
    at_tensor      *tensor = &spec->tensors[index];
    at_param_range *range = &spec->ranges[index];
    bool            buffer = given->role == AT_SEAT_BUFFER;
    size_t          floats;
    size_t          length = given->name ? strnlen(given->name, AT_TENSOR_NAME_SIZE) : 0;
    if (length == 0 || length == AT_TENSOR_NAME_SIZE)
        return wrong(fail, given->name, "has no name, or one of more than 199 characters");
    if (!at_spec_is_utf8(given->name))
        return wrong(fail, given->name, "has a name that is not UTF-8");
    if (given->dims > AT_SEAT_DIMS_MAX) return wrong(fail, given->name, "has too many dimensions");
    if (given->role > AT_SEAT_BUFFER) return wrong(fail, given->name, "has an unknown role");
    if (!buffer && given->group >= spec->groups)
        return wrong(fail, given->name, "is in a group that does not exist");
    if (!buffer && spec->trained < spec->floats)
        return wrong(fail, given->name, "is a parameter behind a buffer");
    AT_TRY(copy_shape(given, tensor, &floats, fail));
    memcpy(tensor->name, given->name, length + 1);
    tensor->at = spec->floats;
    *range = (at_param_range){
        .at = spec->floats, .count = floats, .group = buffer ? -1 : (int32_t)given->group};
    if (floats > SIZE_MAX / 64 - spec->floats) return wrong(fail, given->name, "is too large");
    spec->floats += floats;
    if (!buffer) spec->trained = spec->floats;
    return AT_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static at_err check_names(const at_spec *spec, at_fail *fail)
{
    const char **names = calloc(spec->count, sizeof *names);
    if (!names) return at_fail_memory(fail);
    for (uint32_t i = 0; i < spec->count; i++) names[i] = spec->tensors[i].name;
    qsort(names, spec->count, sizeof *names, by_name);
    at_err err = AT_OK;
    for (uint32_t i = 1; i < spec->count && !err; i++)
        if (strcmp(names[i - 1], names[i]) == 0) err = wrong(fail, names[i], "is listed twice");
    free(names);
    return err;
}

static at_err copy_groups(const at_seat_spec *given, at_spec *spec, at_fail *fail)
{
    at_torch_kind kind = at_spec_kind(spec->optimizer);
    if (kind == AT_TORCH_COUNT && !spec->at_workers)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "use sgd, adam, adamw, rmsprop or adagrad, or update at the workers",
                           "the hub has no optimizer '%s'", spec->optimizer);
    spec->groups = given->groups ? given->groups_count : 1;
    if (spec->groups < 1 || spec->groups > AT_SEAT_GROUPS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL,
                           "%u groups of hyper-parameters: expected 1 to %d", spec->groups,
                           AT_SEAT_GROUPS_MAX);
    for (uint32_t i = 0; i < spec->groups; i++) {
        if (spec->at_workers) continue; /* they have their own */
        spec->group[i] = given->groups ? given->groups[i] : common_values(spec->optimizer);
        if (!at_seat_group_valid(kind, &spec->group[i]))
            return at_fail_set(fail, AT_ERR_USAGE, "see at_seat_group in anytime.h",
                               "group %u has hyper-parameters that are out of range", i);
    }
    return AT_OK;
}

static at_err copy_all(const at_seat_spec *given, at_spec *spec, at_fail *fail)
{
    const char *model = given->model ? given->model : "seat";
    const char *optimizer = given->optimizer ? given->optimizer : "sgd";
    if (strlen(optimizer) >= sizeof spec->optimizer || given->update > AT_SEAT_UPDATE_WORKER)
        return at_fail_set(fail, AT_ERR_USAGE, "see at_seat_spec in anytime.h",
                           "the optimizer or the place of the update is unknown");
    if (!at_spec_is_utf8(model) || !at_spec_is_utf8(optimizer))
        return at_fail_set(fail, AT_ERR_USAGE, "see at_seat_spec in anytime.h",
                           "the name of the model or optimizer is not UTF-8");
    copy_model(spec, model);
    snprintf(spec->optimizer, sizeof spec->optimizer, "%s", optimizer);
    spec->at_workers = given->update == AT_SEAT_UPDATE_WORKER;
    spec->batch = given->batch > 0 ? given->batch : 1;
    spec->samples = given->samples;
    AT_TRY(copy_groups(given, spec, fail));
    spec->tensors = calloc(given->tensors_count, sizeof *spec->tensors);
    spec->ranges = calloc(given->tensors_count, sizeof *spec->ranges);
    if (!spec->tensors || !spec->ranges) return at_fail_memory(fail);
    for (uint32_t i = 0; i < given->tensors_count; i++)
        AT_TRY(copy_tensor(spec, &given->tensors[i], i, fail));
    spec->count = given->tensors_count;
    if (spec->trained == 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "there is no parameter to train");
    return check_names(spec, fail);
}

at_err at_spec_new(const at_seat_spec *given, at_spec *spec, at_fail *fail)
{
    *spec = (at_spec){0};
    if (given->tensors_count < 1 || given->tensors_count > AT_SPEC_TENSORS_MAX || !given->tensors)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "%u tensors: expected 1 to %d",
                           given->tensors_count, AT_SPEC_TENSORS_MAX);
    if (given->batch > INT32_MAX || given->samples > INT64_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "batch or samples are too large");
    at_err err = copy_all(given, spec, fail);
    if (err) at_spec_deinit(spec);
    return err;
}

void at_spec_deinit(at_spec *spec)
{
    free(spec->tensors);
    free(spec->ranges);
    *spec = (at_spec){0};
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *write_group(const at_seat_group *g)
{
    return json_pack("[f,f,f,f,f,f,f,f,f,i]", g->lr, g->weight_decay, g->momentum, g->beta1,
                     g->beta2, g->eps, g->alpha, g->lr_decay, g->accumulator, (int)g->nesterov);
}

static json_t *write_tensor(const at_spec *spec, uint32_t i)
{
    const at_tensor *tensor = &spec->tensors[i];
    json_t          *shape = json_array();
    for (uint32_t d = 0; d < tensor->dims; d++)
        json_array_append_new(shape, json_integer(tensor->shape[d]));
    return json_pack("[s,i,o]", tensor->name, (int)spec->ranges[i].group, shape);
}

json_t *at_spec_write(const at_spec *spec)
{
    assert(spec->count >= 1);
    json_t *tensors = json_array(), *groups = json_array();
    for (uint32_t i = 0; i < spec->count; i++)
        json_array_append_new(tensors, write_tensor(spec, i));
    for (uint32_t i = 0; i < spec->groups; i++)
        json_array_append_new(groups, write_group(&spec->group[i]));
    return json_pack("{s:s, s:s, s:b, s:I, s:I, s:o, s:o}", "model", spec->model, "optimizer",
                     spec->optimizer, "at_workers", (int)spec->at_workers, "batch",
                     (json_int_t)spec->batch, "samples", (json_int_t)spec->samples, "tensors",
                     tensors, "groups", groups);
}

static bool read_group(json_t *json, at_seat_group *g)
{
    int nesterov;
    *g = (at_seat_group){0};
    if (json_unpack(json, "[F,F,F,F,F,F,F,F,F,i]", &g->lr, &g->weight_decay, &g->momentum,
                    &g->beta1, &g->beta2, &g->eps, &g->alpha, &g->lr_decay, &g->accumulator,
                    &nesterov) != 0)
        return false;
    g->nesterov = nesterov;
    return true;
}

static bool read_tensor(json_t *json, at_seat_tensor *t)
{
    json_t *shape;
    int     group;
    *t = (at_seat_tensor){0};
    if (json_unpack(json, "[s,i,o]", &t->name, &group, &shape) != 0) return false;
    t->role = group < 0 ? (uint32_t)AT_SEAT_BUFFER : (uint32_t)AT_SEAT_TRAINED;
    t->group = group < 0 ? 0 : (uint32_t)group;
    if (!json_is_array(shape) || json_array_size(shape) > AT_SEAT_DIMS_MAX) return false;
    t->dims = (uint32_t)json_array_size(shape);
    for (uint32_t d = 0; d < t->dims; d++) {
        json_int_t extent = json_integer_value(json_array_get(shape, d));
        if (extent < 1) return false;
        t->shape[d] = (uint64_t)extent;
    }
    return true;
}

static at_err malformed(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same version of anytime everywhere",
                       "the spec of a seat cannot be read");
}

at_err at_spec_read(const json_t *json, at_spec *spec, at_fail *fail)
{
    at_seat_spec  given = {0};
    at_seat_group group[AT_SEAT_GROUPS_MAX];
    json_t       *tensors, *groups;
    int           at_workers;
    json_int_t    batch, samples;
    *spec = (at_spec){0};
    if (json_unpack((json_t *)(uintptr_t)json, "{s:s, s:s, s:b, s:I, s:I, s:o, s:o}", "model",
                    &given.model, "optimizer", &given.optimizer, "at_workers", &at_workers, "batch",
                    &batch, "samples", &samples, "tensors", &tensors, "groups", &groups) != 0 ||
        batch < 1 || batch > INT32_MAX || samples < 0 ||
        json_array_size(groups) > AT_SEAT_GROUPS_MAX ||
        json_array_size(tensors) > AT_SPEC_TENSORS_MAX)
        return malformed(fail);
    at_seat_tensor *list = calloc(json_array_size(tensors) + 1, sizeof *list);
    if (!list) return at_fail_memory(fail);
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(tensors); i++)
        ok = read_tensor(json_array_get(tensors, i), &list[i]);
    for (size_t i = 0; ok && i < json_array_size(groups); i++)
        ok = read_group(json_array_get(groups, i), &group[i]);
    given.update = at_workers ? (uint32_t)AT_SEAT_UPDATE_WORKER : (uint32_t)AT_SEAT_UPDATE_HUB;
    given.batch = (uint32_t)batch;
    given.samples = (uint64_t)samples;
    given.tensors = list;
    given.tensors_count = (uint32_t)json_array_size(tensors);
    given.groups = group;
    given.groups_count = (uint32_t)json_array_size(groups);
    at_err err = ok ? at_spec_new(&given, spec, fail) : malformed(fail);
    free(list);
    return err;
}

/* ---- messages -------------------------------------------------------------------------------- */

at_err at_spec_packings(const at_spec *spec, at_compress compress, at_packings *packings,
                        at_fail *fail)
{
    at_compress none = {.kind = AT_COMPRESS_NONE};
    /* Seats that update themselves get mean gradients instead of parameters. What these lack would
     * be missing for ever, since nobody keeps a residual of them. */
    at_compress down = spec->at_workers ? none : compress;
    assert(spec->trained <= spec->floats);
    return at_packings_of(packings, down, compress, spec->floats, spec->floats - spec->trained,
                          fail);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static at_err differs(at_fail *fail, const char *what)
{
    return at_fail_set(fail, AT_ERR_USAGE, "start the same program with the same settings",
                       "this worker trains something else than the first one: %s", what);
}

at_err at_spec_compare(const at_spec *first, const at_spec *other, at_fail *fail)
{
    char what[300];
    if (first->count != other->count) return differs(fail, "another number of tensors");
    for (uint32_t i = 0; i < first->count; i++) {
        const at_tensor *a = &first->tensors[i], *b = &other->tensors[i];
        bool             same = strcmp(a->name, b->name) == 0 && a->dims == b->dims &&
                    first->ranges[i].group == other->ranges[i].group &&
                    memcmp(a->shape, b->shape, sizeof a->shape) == 0;
        if (same) continue;
        snprintf(what, sizeof what,
                 "tensor %u is %.100s here and %.100s there, or its shape differs", i, b->name,
                 a->name);
        return differs(fail, what);
    }
    if (first->at_workers != other->at_workers) return differs(fail, "the place of the update");
    if (strcmp(first->optimizer, other->optimizer) != 0 || first->groups != other->groups)
        return differs(fail, "another optimizer");
    if (first->samples != other->samples) return differs(fail, "samples per epoch");
    return AT_OK;
}
