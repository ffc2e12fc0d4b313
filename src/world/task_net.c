/* A built-in model on a data set. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "world/task.h"

enum { SCORE_ROWS = 256 }; /* test samples evaluated at a time */

typedef struct net_task {
    at_task_net_options options;
    at_dataset         *train, *test;
    at_shape            shape;
    at_model           *plan_model; /* knows sizes only; the hub never computes with it */
    /* Private to a process, made by open. */
    at_model  *model;
    at_sampler own, common;
    at_arena   arena;
    float     *x;           /* (rows, features) */
    uint32_t  *labels;      /* (rows) */
    uint64_t  *now, *ahead; /* (rows) indices of this micro-batch and of the one after */
    at_draw    ahead_draw;  /* what `ahead` was computed for; count 0: nothing */
} net_task;

static void init(void *self, float *params, uint64_t seed)
{
    net_task *t = self;
    at_model_init(t->plan_model, params, seed);
}

static at_err reserve(net_task *t, uint32_t rows, at_fail *fail)
{
    size_t x_size;
    bool   fits = at_size_product(rows, t->shape.features * sizeof(float), &x_size);
    size_t rest = rows * (sizeof(uint32_t) + 2 * sizeof(uint64_t)) + 4 * 64;
    if (!fits || x_size > SIZE_MAX - rest || !at_arena_init(&t->arena, x_size + rest))
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller --micro-batch",
                           "not enough memory for a micro-batch of %u samples", rows);
    t->x = at_arena_get(&t->arena, 1, x_size);
    t->labels = at_arena_get(&t->arena, rows, sizeof *t->labels);
    t->now = at_arena_get(&t->arena, rows, sizeof *t->now);
    t->ahead = at_arena_get(&t->arena, rows, sizeof *t->ahead);
    assert(t->x && t->labels && t->now && t->ahead);
    return AT_OK;
}

static void close_task(net_task *t)
{
    at_model_free(t->model);
    at_arena_deinit(&t->arena);
    t->model = NULL;
    t->ahead_draw = (at_draw){0};
}

static at_err open_task(void *self, at_node worker, at_fail *fail)
{
    net_task                  *t = self;
    const at_task_net_options *o = &t->options;
    close_task(t); /* what the process we were forked from had opened for itself */
    bool     scores = worker == 0 || worker == AT_NODE_ALL;
    uint32_t rows = scores && o->micro_batch < SCORE_ROWS ? SCORE_ROWS : o->micro_batch;
    AT_TRY(at_model_new(o->model, t->shape, o->engine, rows, &t->model, fail));
    AT_TRY(reserve(t, rows, fail));
    if (worker == 0) return AT_OK;
    uint64_t samples = at_dataset_count(t->train);
    AT_TRY(at_sampler_init(&t->common, o->seed, 0, o->workers, samples, false, fail));
    at_node first = worker == AT_NODE_ALL ? 1 : worker;
    return at_sampler_init(&t->own, o->seed, first, o->workers, samples, o->shard, fail);
}

static const char *engine(void *self)
{
    net_task *t = self;
    return at_model_engine(t->model ? t->model : t->plan_model);
}

/* A process that computes for everybody changes the walk it holds with the worker. */
static const at_sampler *walk_of(net_task *t, const at_draw *draw)
{
    const at_task_net_options *o = &t->options;
    if (draw->common) return &t->common;
    if (t->own.worker != draw->worker) {
        uint64_t samples = at_dataset_count(t->train);
        at_err   err =
            at_sampler_init(&t->own, o->seed, draw->worker, o->workers, samples, o->shard, NULL);
        assert(!err); /* the first one was fine, and the others differ only in the worker */
    }
    return &t->own;
}

/* The indices of this draw were worked out, and their rows asked for, while the one before was
 * computed; unless this draw is not the one that was expected. */
static void indices_of(net_task *t, const at_draw *draw)
{
    const at_draw *a = &t->ahead_draw;
    bool           expected = a->position == draw->position && a->count >= draw->count &&
                    a->common == draw->common && a->worker == draw->worker && a->count > 0;
    if (expected) {
        uint64_t *swap = t->now;
        t->now = t->ahead;
        t->ahead = swap;
    } else {
        at_sampler_indices(walk_of(t, draw), draw->position, t->now, draw->count);
    }
    t->ahead_draw = (at_draw){.worker = draw->worker,
                              .position = draw->position + draw->count,
                              .count = t->options.micro_batch,
                              .common = draw->common};
    at_sampler_indices(walk_of(t, draw), t->ahead_draw.position, t->ahead, t->ahead_draw.count);
}

static double gradient(void *self, float *g, bool first, const float *params, const at_draw *draw)
{
    net_task *t = self;
    assert(draw->count >= 1);
    assert(draw->count <= t->options.micro_batch);
    indices_of(t, draw);
    at_dataset_rows(t->train, t->x, t->labels, t->now, draw->count);
    at_dataset_prefetch(t->train, t->ahead, t->ahead_draw.count);
    return first ? at_model_gradient_set(t->model, g, params, t->x, t->labels, draw->count)
                 : at_model_gradient(t->model, g, params, t->x, t->labels, draw->count);
}

static void score(void *self, at_score *sum, const float *params, uint64_t first, uint64_t count)
{
    net_task *t = self;
    for (uint64_t done = 0; done < count;) {
        uint64_t left = count - done;
        uint32_t rows = left < SCORE_ROWS ? (uint32_t)left : SCORE_ROWS;
        for (uint32_t i = 0; i < rows; i++) t->now[i] = first + done + i;
        at_dataset_rows(t->test, t->x, t->labels, t->now, rows);
        at_model_score(t->model, sum, params, t->x, t->labels, rows);
        done += rows;
    }
}

enum { LAYERS_MAX = 256 };

/* dense1.weight (out, in), dense1.bias (out), dense2.weight, .. */
static size_t tensors(void *self, at_tensor *rows, size_t max)
{
    net_task     *t = self;
    at_layer_info layer[LAYERS_MAX];
    size_t        layers = at_model_layers(t->plan_model, layer, LAYERS_MAX), count = 0;
    uint32_t      number = 0;
    assert(layers <= LAYERS_MAX);
    for (size_t i = 0; i < layers && count + 2 <= max; i++) {
        const at_layer_info *l = &layer[i];
        if (l->params == 0) continue;
        size_t weights = (size_t)l->out * l->in;
        assert(l->params == weights + l->out);
        at_tensor weight = {.dims = 2, .shape = {l->out, l->in}, .at = l->params_at};
        at_tensor bias = {.dims = 1, .shape = {l->out}, .at = l->params_at + weights};
        snprintf(weight.name, sizeof weight.name, "%.12s%u.weight", l->kind, ++number);
        snprintf(bias.name, sizeof bias.name, "%.12s%u.bias", l->kind, number);
        rows[count++] = weight;
        rows[count++] = bias;
    }
    return count;
}

static void free_task(void *self)
{
    net_task *t = self;
    if (!t) return;
    close_task(t);
    at_model_free(t->plan_model);
    at_dataset_free(t->train);
    at_dataset_free(t->test);
    free(t);
}

static at_err load(net_task *t, at_fail *fail)
{
    const at_task_net_options *o = &t->options;
    const char                *test = o->test_data ? o->test_data : o->data;
    AT_TRY(at_dataset_open(o->data, AT_SPLIT_TRAIN, &t->train, fail));
    AT_TRY(at_dataset_open(test, AT_SPLIT_TEST, &t->test, fail));
    t->shape = (at_shape){at_dataset_features(t->train), at_dataset_classes(t->train)};
    AT_TRY(at_dataset_agree(t->train, t->test, fail));
    if (o->shard && at_dataset_count(t->train) < o->workers)
        return at_fail_set(fail, AT_ERR_USAGE, "use fewer workers", "--shard leaves workers empty");
    return at_model_new(o->model, t->shape, AT_ENGINE_FAST, 1, &t->plan_model, fail);
}

/* A micro-batch, and about as much again for what the layers make of it. */
static size_t scratch_size(const net_task *t)
{
    size_t row = t->shape.features * sizeof(float), size;
    return at_size_product(2 * row, t->options.micro_batch, &size) ? size : SIZE_MAX / 2;
}

at_err at_task_net(const at_task_net_options *options, at_task *task, at_fail *fail)
{
    assert(options->micro_batch >= 1);
    net_task *t = calloc(1, sizeof *t);
    if (!t) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    t->options = *options;
    at_err err = load(t, fail);
    if (err) {
        free_task(t);
        return err;
    }
    uint64_t tests = at_dataset_count(t->test);
    if (options->eval_size > 0 && options->eval_size < tests) tests = options->eval_size;
    *task = (at_task){.self = t,
                      .model = options->model,
                      .data = options->data,
                      .params = at_model_params(t->plan_model),
                      .samples = at_dataset_count(t->train),
                      .test_samples = tests,
                      .classes = t->shape.classes,
                      .mults = at_model_mults(t->plan_model),
                      .scratch_size = scratch_size(t),
                      .init = init,
                      .open = open_task,
                      .engine = engine,
                      .gradient = gradient,
                      .score = score,
                      .tensors = tensors,
                      .free = free_task};
    return AT_OK;
}
