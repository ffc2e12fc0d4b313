/* A built-in model on a data set. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "world/task.h"
#include "world/weights.h"

enum {
    SCORE_ROWS_MAX = 256,
    SCORE_FLOATS_MAX = 1 << 24, /* fewer test samples at a time when a sample is large inside */
    STRETCHES_MAX = 4096,
};

typedef struct net_task {
    at_task_net_options options;
    at_dataset         *train, *test;
    at_shape            shape;
    uint32_t            score_rows; /* test samples evaluated at a time */
    at_model           *model; /* equipped by open, in each process; the hub only asks for sizes */
    at_stretch         *stretches;
    size_t              stretches_count;
    /* Private to a process, made by open. */
    at_point   point; /* what the model was told about last */
    bool       pointed;
    at_sampler own, common;
    at_arena   arena;
    float     *x;           /* (rows, features) */
    uint32_t  *labels;      /* (rows) */
    uint64_t  *now, *ahead; /* (rows) indices of this micro-batch and of the one after */
    at_draw    ahead_draw;  /* what `ahead` was computed for; count 0: nothing */
} net_task;

/* Starts from a file: a whole plain vector is read before any of it counts. */
static at_err init_from_file(net_task *t, float *params, at_fail *fail)
{
    size_t     count = at_model_tensors(t->model, NULL, 0);
    at_tensor *rows = calloc(count, sizeof *rows);
    float     *plain = calloc(at_model_plain(t->model), sizeof *plain);
    at_err     err = rows && plain ? AT_OK : AT_ERR_FAILED;
    if (err) at_fail_set(fail, err, NULL, "not enough memory to read %s", t->options.init);
    if (!err) at_model_tensors(t->model, rows, count);
    if (!err) err = at_weights_read(t->options.init, rows, count, plain, fail);
    if (!err) at_model_from_plain(t->model, params, plain);
    free(rows);
    free(plain);
    return err;
}

static at_err init(void *self, float *params, uint64_t seed, at_fail *fail)
{
    net_task *t = self;
    if (t->options.init) return init_from_file(t, params, fail);
    return at_model_init(t->model, params, seed, fail);
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
    if (t->model) at_model_strip(t->model);
    at_arena_deinit(&t->arena);
    t->pointed = false;
    t->ahead_draw = (at_draw){0};
}

static at_err open_task(void *self, at_node worker, at_fail *fail)
{
    net_task                  *t = self;
    const at_task_net_options *o = &t->options;
    close_task(t); /* what the process we were forked from had opened for itself */
    bool     scores = worker == 0 || worker == AT_NODE_ALL;
    uint32_t rows = scores && o->micro_batch < t->score_rows ? t->score_rows : o->micro_batch;
    at_model_threads(o->threads);
    AT_TRY(at_model_equip(t->model, rows, worker == 0 ? AT_USE_SCORE : AT_USE_TRAIN, fail));
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
    return at_model_engine(t->model);
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

/* Tells the model when the numbers have changed since its last call. */
static void install(net_task *t, at_point point)
{
    if (t->pointed && t->point.params == point.params && t->point.version == point.version) return;
    at_model_install(t->model, point.params);
    t->point = point;
    t->pointed = true;
}

/* The same random numbers for the same samples, in every world and by whichever process. */
static uint64_t noise_of(const net_task *t, const at_draw *draw)
{
    at_rng rng = at_rng_stream(t->options.seed, draw->common ? 0 : draw->worker, AT_STREAM_NOISE,
                               draw->position);
    return at_rng_next(&rng);
}

static double gradient(void *self, float *g, bool first, at_point point, const at_draw *draw)
{
    net_task *t = self;
    assert(draw->count >= 1);
    assert(draw->count <= t->options.micro_batch);
    indices_of(t, draw);
    at_dataset_rows(t->train, t->x, t->labels, t->now, draw->count);
    at_dataset_prefetch(t->train, t->ahead, t->ahead_draw.count);
    install(t, point);
    at_model_noise(t->model, noise_of(t, draw));
    return first ? at_model_gradient_set(t->model, g, point.params, t->x, t->labels, draw->count)
                 : at_model_gradient(t->model, g, point.params, t->x, t->labels, draw->count);
}

static void score(void *self, at_score *sum, const float *params, uint64_t first, uint64_t count)
{
    net_task *t = self;
    for (uint64_t done = 0; done < count;) {
        uint64_t left = count - done;
        uint32_t rows = left < t->score_rows ? (uint32_t)left : t->score_rows;
        for (uint32_t i = 0; i < rows; i++) t->now[i] = first + done + i;
        at_dataset_rows(t->test, t->x, t->labels, t->now, rows);
        at_model_score(t->model, sum, params, t->x, t->labels, rows);
        done += rows;
    }
}

static size_t tensors(void *self, at_tensor *rows, size_t max)
{
    net_task *t = self;
    return at_model_tensors(t->model, rows, max);
}

static void to_plain(void *self, float *plain, const float *params)
{
    net_task *t = self;
    at_model_to_plain(t->model, plain, params);
}

static void from_plain(void *self, float *params, const float *plain)
{
    net_task *t = self;
    at_model_from_plain(t->model, params, plain);
}

static void free_task(void *self)
{
    net_task *t = self;
    if (!t) return;
    close_task(t);
    at_model_free(t->model);
    free(t->stretches);
    at_dataset_free(t->train);
    at_dataset_free(t->test);
    free(t);
}

static at_err list_stretches(net_task *t, at_fail *fail)
{
    t->stretches = calloc(STRETCHES_MAX, sizeof *t->stretches);
    if (!t->stretches) return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    t->stretches_count = at_model_stretches(t->model, t->stretches, STRETCHES_MAX);
    assert(t->stretches_count <= STRETCHES_MAX); /* two a layer, and layers are fewer */
    return AT_OK;
}

at_shape at_task_shape(const at_dataset *set)
{
    at_picture picture = at_dataset_picture(set);
    at_shape   shape = {.features = at_dataset_features(set), .classes = at_dataset_classes(set)};
    if (picture.width == shape.features) return shape; /* a line of numbers is no picture */
    shape.channels = picture.channels;
    shape.height = picture.height;
    shape.width = picture.width;
    return shape;
}

static at_err load(net_task *t, at_fail *fail)
{
    const at_task_net_options *o = &t->options;
    const char                *test = o->test_data ? o->test_data : o->data;
    AT_TRY(at_dataset_open(o->data, AT_SPLIT_TRAIN, &t->train, fail));
    AT_TRY(at_dataset_open(test, AT_SPLIT_TEST, &t->test, fail));
    t->shape = at_task_shape(t->train);
    AT_TRY(at_dataset_agree(t->train, t->test, fail));
    if (o->shard && at_dataset_count(t->train) < o->workers)
        return at_fail_set(fail, AT_ERR_USAGE, "use fewer workers", "--shard leaves workers empty");
    AT_TRY(at_model_plan(o->model, t->shape, o->engine, o->micro_batch, &t->model, fail));
    size_t widest = at_model_widest(t->model), rows = SCORE_FLOATS_MAX / widest;
    t->score_rows = rows > SCORE_ROWS_MAX ? SCORE_ROWS_MAX : rows < 1 ? 1 : (uint32_t)rows;
    return list_stretches(t, fail);
}

/* A micro-batch of samples, and what the layers make of it. */
static size_t scratch_size(const net_task *t)
{
    size_t row = (t->shape.features + at_model_scratch(t->model)) * sizeof(float), size;
    return at_size_product(row, t->options.micro_batch, &size) ? size : SIZE_MAX / 2;
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
                      .params = at_model_floats(t->model),
                      .trained = at_model_trained(t->model),
                      .parameters = at_model_params(t->model),
                      .plain = at_model_plain(t->model),
                      .samples = at_dataset_count(t->train),
                      .test_samples = tests,
                      .classes = t->shape.classes,
                      .mults = at_model_mults(t->model),
                      .scratch_size = scratch_size(t),
                      .wants_large_batches = at_model_wants_large_batches(t->model),
                      .stretches = t->stretches,
                      .stretches_count = t->stretches_count,
                      .groups = at_model_groups(t->model),
                      .init = init,
                      .open = open_task,
                      .engine = engine,
                      .gradient = gradient,
                      .score = score,
                      .to_plain = to_plain,
                      .from_plain = from_plain,
                      .tensors = tensors,
                      .free = free_task};
    return AT_OK;
}
