/* A built-in model on a data set. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "learn/net/net.h"
#include "learn/sparse/auc.h"
#include "model_io/safetensors.h"
#include "world/tasks/tasks.h"

enum {
    SCORE_ROWS_MAX = 256,
    SCORE_FLOATS_MAX = 1 << 24, /* activations; large ones mean fewer test samples at a time */
    RANGES_MAX = 4096,
};

typedef struct net_task {
    at_task_net_options options;
    at_feed            *feed;
    at_shape            shape;
    uint32_t            score_rows; /* test samples evaluated at a time */
    char               *net_text;   /* if the model is a file */
    at_model           *model; /* equipped by open in each process; the hub only uses its sizes */
    at_param_range     *ranges;
    size_t              ranges_count;
    at_point            point; /* installed in the model of this process, if `pointed` */
    bool                pointed;
    /* Two classes: for the AUC over all test samples; allocated by open if this process scores. */
    float    *margins;
    uint32_t *labels;
    uint64_t  tests; /* number of test samples to score */
} net_task;

/* Reads the whole plain vector before it changes *params. */
static at_err init_from_file(net_task *t, float *params, at_fail *fail)
{
    assert(t->options.init);
    size_t     count = at_model_tensors(t->model, NULL, 0);
    at_tensor *rows = calloc(count, sizeof *rows);
    float     *plain = calloc(at_model_plain(t->model), sizeof *plain);
    at_err     err = rows && plain ? AT_OK : AT_ERR_FAILED;
    if (err) at_fail_set(fail, err, NULL, "not enough memory to read %s", t->options.init);
    if (!err) at_model_tensors(t->model, rows, count);
    if (!err) err = at_safetensors_read(t->options.init, rows, count, plain, fail);
    if (!err) at_model_from_plain(t->model, params, plain);
    free(rows);
    free(plain);
    return err;
}

static at_err init(void *self, float *params, uint64_t seed, at_fail *fail)
{
    net_task *t = self;
    assert(t->model);
    if (t->options.init) return init_from_file(t, params, fail);
    return at_model_init(t->model, params, seed, fail);
}

static void close_task(net_task *t)
{
    if (t->model) at_model_release(t->model);
    if (t->feed) at_feed_free_buffers(t->feed);
    t->pointed = false;
    free(t->margins);
    free(t->labels);
    t->margins = NULL;
    t->labels = NULL;
}

/* If memory is short, only the AUC is missing. */
static void open_ranking(net_task *t)
{
    assert(!t->margins);
    assert(!t->labels);
    uint64_t tests = at_feed_count(t->feed, AT_SPLIT_TEST);
    if (t->shape.classes != 2) return;
    t->margins = calloc(tests, sizeof *t->margins);
    t->labels = calloc(tests, sizeof *t->labels);
}

static at_err open_task(void *self, at_node worker, at_fail *fail)
{
    net_task                  *t = self;
    const at_task_net_options *o = &t->options;
    close_task(t); /* the parent may have opened it for itself */
    assert(t->score_rows >= 1);
    assert(t->score_rows <= SCORE_ROWS_MAX);
    bool     scores = worker == 0 || worker == AT_NODE_ALL;
    uint32_t rows = scores && o->micro_batch < t->score_rows ? t->score_rows : o->micro_batch;
    if (scores) open_ranking(t);
    at_model_threads(o->threads);
    AT_TRY(at_model_allocate(t->model, rows, worker == 0 ? AT_USE_SCORE : AT_USE_TRAIN, fail));
    return at_feed_alloc_buffers(t->feed, rows, fail);
}

static const char *engine(void *self)
{
    net_task *t = self;
    return at_model_engine(t->model);
}

/* Installs the parameters in the model if they have changed since the last call. */
static void install(net_task *t, at_point point)
{
    assert(point.params);
    if (t->pointed && t->point.params == point.params && t->point.version == point.version) return;
    at_model_install(t->model, point.params);
    t->point = point;
    t->pointed = true;
}

/* The same random numbers for the same samples, in every world and every process. */
static uint64_t noise_of(const net_task *t, const at_feed_draw *draw)
{
    at_rng rng =
        at_rng_stream(t->options.feed.seed, draw->walk, AT_RNG_PURPOSE_NOISE, draw->position);
    return at_rng_next(&rng);
}

static double gradient(void *self, float *g, bool first, at_point point, const at_draw *draw)
{
    net_task *t = self;
    assert(draw->count >= 1);
    assert(draw->count <= t->options.micro_batch);
    at_feed_draw which = {draw->common ? 0 : draw->worker, draw->position, draw->count};
    at_feed_rows rows = at_feed_train(t->feed, &which, t->options.micro_batch);
    assert(rows.x);
    assert(rows.labels);
    install(t, point);
    at_model_noise(t->model, noise_of(t, &which));
    return first
               ? at_model_gradient_set(t->model, g, point.params, rows.x, rows.labels, draw->count)
               : at_model_gradient(t->model, g, point.params, rows.x, rows.labels, draw->count);
}

static void watch(void *self, at_gradient_watch watch)
{
    net_task *t = self;
    at_model_watch(t->model, watch);
}

static void score(void *self, at_score *sum, const float *params, uint64_t first, uint64_t count)
{
    net_task *t = self;
    assert(t->score_rows >= 1);
    assert(first + count <= t->tests);
    for (uint64_t done = 0; done < count;) {
        uint64_t     left = count - done;
        uint32_t     some = left < t->score_rows ? (uint32_t)left : t->score_rows;
        at_feed_rows rows = at_feed_test(t->feed, first + done, some);
        bool         ranks = t->margins && t->labels;
        sum->margins = ranks ? t->margins + first + done : NULL;
        at_model_score(t->model, sum, params, rows.x, rows.labels, some);
        if (ranks) memcpy(t->labels + first + done, rows.labels, some * sizeof *t->labels);
        done += some;
    }
    sum->margins = NULL;
    sum->auc = NAN;
    if (t->margins && t->labels && first + count == t->tests)
        sum->auc = at_auc(t->margins, t->labels, t->tests);
}

static void predict(void *self, float *probabilities, const float *params, uint64_t first,
                    uint64_t count)
{
    net_task *t = self;
    uint64_t  outputs = t->shape.classes ? t->shape.classes : 1;
    assert(t->score_rows >= 1);
    assert(first + count <= at_feed_count(t->feed, AT_SPLIT_TEST));
    for (uint64_t done = 0; done < count;) {
        uint64_t     left = count - done;
        uint32_t     some = left < t->score_rows ? (uint32_t)left : t->score_rows;
        at_feed_rows rows = at_feed_test(t->feed, first + done, some);
        at_model_predict(t->model, probabilities + done * outputs, params, rows.x, some);
        done += some;
    }
}

static size_t tensors(void *self, at_tensor *rows, size_t max)
{
    assert(rows || max == 0);
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
    free(t->net_text);
    free(t->ranges);
    at_feed_free(t->feed);
    free(t);
}

static at_err list_ranges(net_task *t, at_fail *fail)
{
    assert(!t->ranges);
    t->ranges = calloc(RANGES_MAX, sizeof *t->ranges);
    if (!t->ranges) return at_fail_memory(fail);
    t->ranges_count = at_model_param_ranges(t->model, t->ranges, RANGES_MAX);
    assert(t->ranges_count <= RANGES_MAX); /* two per layer */
    return AT_OK;
}

at_shape at_task_shape(at_image_shape image, uint32_t classes)
{
    uint32_t features = image.channels * image.height * image.width;
    bool     flat = image.channels == 1 && image.height == 1;
    if (flat) return (at_shape){.features = features, .classes = classes};
    return (at_shape){.features = features,
                      .classes = classes,
                      .channels = image.channels,
                      .height = image.height,
                      .width = image.width};
}

/* The text of a file is kept with the weights, so that they can be used without it. */
static at_err read_net(net_task *t, at_fail *fail)
{
    const char *name = t->options.model, *end = strrchr(name, '.');
    if (!end || strcmp(end, ".net") != 0) return AT_OK;
    if (!t->options.net_text) return at_net_text_find(name, &t->net_text, fail);
    t->net_text = strdup(t->options.net_text);
    return t->net_text ? AT_OK : at_fail_memory(fail);
}

static at_err load(net_task *t, at_fail *fail)
{
    assert(!t->feed);
    assert(!t->model);
    at_task_net_options *o = &t->options;
    AT_TRY(at_feed_new(&o->feed, &t->feed, fail));
    t->shape = at_task_shape(at_feed_shape(t->feed), at_feed_classes(t->feed));
    if (t->shape.classes == 0 && o->real_model) o->model = o->real_model;
    AT_TRY(read_net(t, fail));
    AT_TRY(at_model_plan_text(o->model, t->net_text, t->shape, o->engine, o->micro_batch, &t->model,
                              fail));
    at_model_smooth_labels(t->model, o->smoothing);
    size_t widest = at_model_widest(t->model), rows = SCORE_FLOATS_MAX / widest;
    t->score_rows = rows > SCORE_ROWS_MAX ? SCORE_ROWS_MAX : rows < 1 ? 1 : (uint32_t)rows;
    return list_ranges(t, fail);
}

/* A micro-batch of samples and its activations. */
static size_t scratch_size(const net_task *t)
{
    assert(t->model);
    size_t row = (t->shape.features + at_model_scratch(t->model)) * sizeof(float), size;
    return at_size_product(row, t->options.micro_batch, &size) ? size : SIZE_MAX / 2;
}

at_err at_task_net(const at_task_net_options *options, at_task *task, at_fail *fail)
{
    assert(options->micro_batch >= 1);
    net_task *t = calloc(1, sizeof *t);
    if (!t) return at_fail_memory(fail);
    t->options = *options;
    at_err err = load(t, fail);
    if (err) {
        free_task(t);
        return err;
    }
    uint64_t tests = at_feed_count(t->feed, AT_SPLIT_TEST);
    if (options->eval_size > 0 && options->eval_size < tests) tests = options->eval_size;
    t->tests = tests;
    *task = (at_task){.self = t,
                      .model = t->options.model,
                      .data = options->feed.data,
                      .notes = at_feed_notes(t->feed),
                      .net = t->model,
                      .sample_form = at_feed_form(t->feed),
                      .prep = at_feed_steps(t->feed),
                      .net_text = t->net_text,
                      .inputs = at_feed_inputs(t->feed),
                      .prep_fitted = at_feed_prep(t->feed),
                      .params = at_model_floats(t->model),
                      .slot_floats = at_model_floats(t->model),
                      .slot_likely = at_model_floats(t->model),
                      .trained = at_model_trained(t->model),
                      .parameters = at_model_params(t->model),
                      .plain = at_model_plain(t->model),
                      .samples = at_feed_count(t->feed, AT_SPLIT_TRAIN),
                      .test_samples = tests,
                      .fingerprint = at_feed_fingerprint(t->feed),
                      .classes = t->shape.classes,
                      .regression = t->shape.classes == 0,
                      .mults = at_model_mults(t->model),
                      .threads = options->threads,
                      .smoothing = options->smoothing,
                      .scratch_size = scratch_size(t),
                      .wants_large_batches = at_model_has_batch_norm(t->model),
                      .ranges = t->ranges,
                      .ranges_count = t->ranges_count,
                      .groups = at_model_groups(t->model),
                      .init = init,
                      .open = open_task,
                      .engine = engine,
                      .gradient = gradient,
                      .watch = watch,
                      .score = score,
                      .predict = predict,
                      .to_plain = to_plain,
                      .from_plain = from_plain,
                      .tensors = tensors,
                      .free = free_task};
    assert(task->trained <= task->params);
    assert(task->parameters <= task->trained);
    return AT_OK;
}
