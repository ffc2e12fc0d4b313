/* --model sparse-lr: logistic regression on sparse rows of two classes; --model sparse-linear:
 * linear regression on sparse rows with real-valued labels. Gradients are lists of (index, value),
 * computed without a copy of the parameters: a micro-batch reads the weights it needs from the
 * hub's vector, and reads again if the hub was writing meanwhile. */
#include <assert.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/label.h"
#include "data/draw/sampler.h"
#include "data/prep/sparse_prep.h"
#include "data/set/inputs.h"
#include "data/set/set_pair.h"
#include "learn/sparse/auc.h"
#include "learn/sparse/hogwild.h"
#include "model_io/safetensors.h"
#include "world/process/child.h"
#include "world/tasks/tasks.h"

enum {
    SCORE_ROWS = 1024, /* test samples evaluated at a time */
    WINDOW = 4096,     /* positions of a sample sequence computed at a time in sequential access */
    READS_MAX = 200,   /* attempts to read weights while the hub writes; then the last is used */
    HOT_ONE_IN = 100   /* a feature is hot when more than one in this many rows has it */
};

/* One row per model. */
typedef struct sparse_model {
    const char    *name;
    at_sparse_loss loss;
    const char    *dense; /* the same model for dense rows */
} sparse_model;

static const sparse_model models[] = {{"sparse-lr", AT_SPARSE_LOGISTIC, "softmax"},
                                      {"sparse-linear", AT_SPARSE_SQUARED, "linear"}};

static const sparse_model *find_model(const char *name)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(name, models[i].name) == 0) return &models[i];
    return NULL;
}

/* The rows at `count` positions of a worker's sample sequence. */
typedef struct window {
    at_sampler walk;
    bool       walking; /* `walk` is valid */
    uint64_t   first;
    uint32_t   count, size;
    uint64_t  *row; /* (size) */
} window;

typedef struct sparse_task {
    at_task_sparse_options options;
    const sparse_model    *model;
    at_set_pair            sets;
    char                   notes[2048]; /* about the data */
    char                  *inputs, *steps, *fitted;
    at_shards              shards;
    at_csr                 rows, tests;
    uint64_t               dimension, numbers; /* numbers: in all training rows */
    uint64_t               longest;            /* row of either set */
    uint64_t               test_count;
    at_hot_features        hot;     /* what several hogwild workers do not share */
    float                 *squares; /* AdaGrad's state, which they do share; NULL: none */
    /* Private to a process, created by open. */
    window     window;
    float     *margins, *coefs;
    float     *test_margins; /* of all test samples, for the AUC */
    uint64_t  *test_row;     /* (SCORE_ROWS) */
    at_hogwild hogwild;
} sparse_task;

bool at_task_is_sparse(const char *model)
{
    return find_model(model) != NULL;
}

bool at_task_is_regression(const char *model)
{
    const sparse_model *sparse = find_model(model);
    return sparse ? sparse->loss == AT_SPARSE_SQUARED : at_model_is_regression(model);
}

static bool is_regression(const sparse_task *t)
{
    return t->model->loss == AT_SPARSE_SQUARED;
}

/* ---- in the hub, before the fork ------------------------------------------------------------- */

static at_err init_from_file(const sparse_task *t, float *params, at_fail *fail);

static at_err init(void *self, float *params, uint64_t seed, at_fail *fail)
{
    sparse_task *t = self;
    assert(t->dimension >= 1);
    (void)seed; /* the loss is convex: every run starts from zero */
    if (t->options.init) return init_from_file(t, params, fail);
    at_sparse_init(params, t->dimension);
    return AT_OK;
}

static size_t tensors(void *self, at_tensor *rows, size_t max)
{
    assert(rows || max == 0);
    const sparse_task *t = self;
    if (max >= 1)
        rows[0] = (at_tensor){
            .name = "linear.weight", .dims = 1, .shape = {(uint32_t)t->dimension}, .at = 0};
    if (max >= 2)
        rows[1] =
            (at_tensor){.name = "linear.bias", .dims = 1, .shape = {1}, .at = (size_t)t->dimension};
    return 2;
}

static at_err init_from_file(const sparse_task *t, float *params, at_fail *fail)
{
    assert(t->options.init);
    at_tensor rows[2];
    float    *plain = calloc(t->dimension + 1, sizeof *plain);
    if (!plain) return at_fail_memory_for(fail, "to read %s", t->options.init);
    tensors((void *)(uintptr_t)t, rows, 2);
    at_err err = at_safetensors_read(t->options.init, rows, 2, plain, fail);
    if (!err) at_sparse_from_plain(params, plain, t->dimension);
    free(plain);
    return err;
}

static void to_plain(void *self, float *plain, const float *params)
{
    at_sparse_to_plain(plain, params, ((sparse_task *)self)->dimension);
}

static void from_plain(void *self, float *params, const float *plain)
{
    at_sparse_from_plain(params, plain, ((sparse_task *)self)->dimension);
}

static at_csr csr_of(const at_dataset *set, at_sparse_loss loss)
{
    assert(at_dataset_is_sparse(set));
    at_sparse_rows rows = at_dataset_sparse_rows(set);
    return (at_csr){rows.starts, rows.indices, rows.values, rows.labels, loss};
}

static uint64_t longest_of(const at_csr *rows, uint64_t count, uint64_t longest)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length = rows->starts[i + 1] - rows->starts[i];
        if (length > longest) longest = length;
    }
    return longest;
}

static at_err check_set(const sparse_model *model, const at_dataset *set, const char *name,
                        at_fail *fail)
{
    char     hint[80];
    uint32_t classes = at_dataset_classes(set);
    snprintf(hint, sizeof hint, "use --model %s, which is the same model for dense rows",
             model->dense);
    if (!at_dataset_is_sparse(set))
        return at_fail_set(fail, AT_ERR_USAGE, hint, "%s has dense rows, and %s needs sparse ones",
                           name, model->name);
    if (model->loss == AT_SPARSE_LOGISTIC && classes != 2)
        return at_fail_set(fail, AT_ERR_USAGE, "use --model softmax for more classes",
                           "%s has %u classes, and %s needs exactly two", name, classes,
                           model->name);
    assert(model->loss != AT_SPARSE_SQUARED || classes == 0); /* as it was asked to read it */
    return AT_OK;
}

static at_err find_hot(sparse_task *t, at_fail *fail)
{
    assert(t->options.updates_in_place);
    uint64_t count = at_dataset_count(t->sets.train);
    if (at_hot_features_find(&t->hot, &t->rows, count, t->dimension, HOT_ONE_IN)) return AT_OK;
    return at_fail_memory(fail);
}

static size_t squares_size(const sparse_task *t)
{
    return ((size_t)t->dimension + 1) * sizeof *t->squares;
}

static at_err open_sets(sparse_task *t, at_fail *fail)
{
    const at_feed_options *o = &t->options.feed;
    at_text                notes = at_text_in(t->notes, sizeof t->notes);
    if (o->inputs)
        return at_set_pair_open_inputs(&t->sets, o->inputs, o->test_data, &o->read_options, fail);
    AT_TRY(
        at_set_pair_open(&t->sets, o->data, o->test_data, o->test_split, &o->read_options, fail));
    at_set_pair_note(&t->sets, o->data, &notes);
    at_prep_note(o->prep, &t->sets, o->data, &notes);
    return AT_OK;
}

/* Scales the rows as --prep says. */
static at_err prepare(sparse_task *t, at_fail *fail)
{
    t->inputs = at_inputs_text(t->sets.train);
    if (!t->inputs) return at_fail_memory(fail);
    const char *steps = at_prep_choose(t->options.feed.prep, t->sets.train);
    if (!steps) return AT_OK;
    t->steps = strdup(steps);
    if (!t->steps) return at_fail_memory(fail);
    return at_sparse_prep(&t->sets, steps, &t->fitted, fail);
}

static at_err load(sparse_task *t, at_fail *fail)
{
    assert(!t->sets.train);
    assert(!t->sets.test);
    const at_feed_options *o = &t->options.feed;
    AT_TRY(open_sets(t, fail));
    AT_TRY(check_set(t->model, t->sets.train, o->data, fail));
    AT_TRY(check_set(t->model, t->sets.test, o->test_data ? o->test_data : o->data, fail));
    AT_TRY(prepare(t, fail));
    uint64_t count = at_dataset_count(t->sets.train);
    t->test_count = at_dataset_count(t->sets.test);
    t->rows = csr_of(t->sets.train, t->model->loss);
    t->tests = csr_of(t->sets.test, t->model->loss);
    t->dimension = at_dataset_features(t->sets.train);
    t->numbers = t->rows.starts[count] - t->rows.starts[0];
    t->longest = longest_of(&t->tests, t->test_count, longest_of(&t->rows, count, 1));
    AT_TRY(at_shards_init(&t->shards, o->shard, t->sets.train, count, o->workers, fail));
    assert(t->longest >= 1);
    return t->options.updates_in_place && o->workers > 1 ? find_hot(t, fail) : AT_OK;
}

/* Zeros that all processes share; pages are allocated when first written. */
static at_err share_squares(sparse_task *t, at_fail *fail)
{
    assert(t->dimension >= 1);
    if (!t->options.updates_in_place || t->options.squares_start <= 0) return AT_OK;
    t->squares = at_child_share(squares_size(t), fail);
    return t->squares ? AT_OK : fail->err;
}

/* ---- in each process ------------------------------------------------------------------------- */

static void close_task(sparse_task *t)
{
    free(t->window.row);
    free(t->margins);
    free(t->coefs);
    free(t->test_margins);
    free(t->test_row);
    t->window = (window){0};
    t->hogwild.copied = false;
    t->margins = t->coefs = t->test_margins = NULL;
    t->test_row = NULL;
}

static bool open_training(sparse_task *t)
{
    assert(!t->window.row);
    assert(t->options.micro_batch >= 1);
    uint32_t rows = t->options.micro_batch;
    t->hogwild.hot = t->hot.count > 0 ? &t->hot : NULL;
    t->hogwild.part = 1.0f / (float)t->options.feed.workers;
    t->hogwild.squares = t->squares;
    t->hogwild.start = t->options.squares_start;
    t->window.size = rows + AT_SPARSE_AHEAD > WINDOW ? rows + AT_SPARSE_AHEAD : WINDOW;
    t->window.row = calloc(t->window.size, sizeof *t->window.row);
    t->margins = calloc(rows, sizeof *t->margins);
    t->coefs = calloc(rows, sizeof *t->coefs);
    return t->window.row && t->margins && t->coefs;
}

static bool open_scoring(sparse_task *t)
{
    assert(!t->test_margins);
    assert(!t->test_row);
    t->test_margins = calloc(t->test_count, sizeof *t->test_margins);
    t->test_row = calloc(SCORE_ROWS, sizeof *t->test_row);
    return t->test_margins && t->test_row;
}

static at_err open_task(void *self, at_node worker, at_fail *fail)
{
    sparse_task *t = self;
    close_task(t); /* the parent may have opened it for itself */
    bool scores = worker == 0 || worker == AT_NODE_ALL, trains = worker != 0;
    if ((!trains || open_training(t)) && (!scores || open_scoring(t))) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, "use a smaller --micro-batch",
                       "not enough memory for micro-batches of %u samples", t->options.micro_batch);
}

static const char *engine(void *self)
{
    (void)self;
    return "sparse";
}

/* The rows of a draw and the ones after it. In sequential access many positions are computed at
 * once; in a simulation workers alternate, so only the requested ones are. */
static at_csr_list list_of(sparse_task *t, const at_draw *draw)
{
    window  *w = &t->window;
    uint64_t walk = draw->common ? 0 : draw->worker, end = w->first + w->count;
    uint32_t wanted = draw->count + AT_SPARSE_AHEAD;
    bool     same = w->walking && w->walk.worker == walk;
    bool     inside = same && draw->position >= w->first && draw->position + wanted <= end;
    assert(wanted <= w->size);
    if (!inside) {
        bool sequential = same && draw->position >= w->first && draw->position <= end;
        if (!same) at_sampler_init_shards(&w->walk, t->options.feed.seed, walk, &t->shards);
        w->walking = true;
        w->first = draw->position;
        w->count = sequential ? w->size : wanted;
        at_sampler_indices(&w->walk, w->first, w->row, w->count);
    }
    assert(draw->position >= w->first);
    assert(draw->position + wanted <= w->first + w->count);
    return (at_csr_list){w->row + (draw->position - w->first), draw->count, AT_SPARSE_AHEAD};
}

/* Reads weights that the hub may be writing. Strategies with a barrier never need a second read;
 * the others accept a mixture of versions if the hub writes all the time. */
static void read_margins(sparse_task *t, const at_csr_list *list, at_point point)
{
    assert(t->margins);
    assert(point.params);
    for (int reads = 0;; reads++) {
        uint64_t before = point.lock ? atomic_load_explicit(point.lock, memory_order_acquire) : 0;
        if (before % 2 == 0 || reads == READS_MAX) {
            at_sparse_margins(t->margins, &t->rows, list, point.params, t->dimension);
            if (!point.lock || reads == READS_MAX) return;
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(point.lock, memory_order_relaxed) == before) return;
        }
        sched_yield();
    }
}

static double gradient(void *self, float *g, bool first, at_point point, const at_draw *draw)
{
    sparse_task *t = self;
    at_pairs    *pairs = (at_pairs *)(void *)g;
    assert(draw->count >= 1);
    assert(draw->count <= t->options.micro_batch);
    at_csr_list list = list_of(t, draw);
    if (first) pairs->count = 0;
    assert(pairs->count + draw->count * (t->longest + 1) <=
           t->options.samples_max * (t->longest + 1));
    read_margins(t, &list, point);
    double loss = at_sparse_losses(t->coefs, &t->rows, &list, t->margins);
    at_sparse_emit(pairs, &t->rows, &list, t->coefs, t->dimension);
    return loss;
}

static double descend(void *self, float *params, const at_draw *draw)
{
    sparse_task *t = self;
    assert(t->options.updates_in_place);
    assert(draw->count >= 1);
    assert(draw->count <= t->options.micro_batch);
    at_csr_list list = list_of(t, draw);
    return at_hogwild_rows(&t->hogwild, &t->rows, &list, params, t->dimension);
}

static void score_some(sparse_task *t, at_score *sum, const float *params, uint64_t first,
                       uint32_t count)
{
    float *margins = t->test_margins + first;
    assert(first + count <= t->test_count);
    assert(count <= SCORE_ROWS);
    for (uint32_t i = 0; i < count; i++) t->test_row[i] = first + i;
    at_csr_list list = {t->test_row, count, 0};
    at_sparse_margins(margins, &t->tests, &list, params, t->dimension);
    sum->loss_sum += at_sparse_losses(NULL, &t->tests, &list, margins);
    const uint32_t *labels = t->tests.labels + first;
    for (uint32_t i = 0; !is_regression(t) && i < count; i++)
        sum->correct += (margins[i] > 0) == (labels[i] == 1);
    for (uint32_t i = 0; is_regression(t) && i < count; i++) {
        double label = (double)at_label_real(labels[i]);
        sum->label_sum += label;
        sum->label_squares += label * label;
    }
    sum->count += count;
}

static void score(void *self, at_score *sum, const float *params, uint64_t first, uint64_t count)
{
    sparse_task *t = self;
    uint64_t     end = first + count;
    assert(t->test_margins);
    assert(end <= t->test_count);
    for (uint64_t at = first; at < end; at += SCORE_ROWS)
        score_some(t, sum, params, at, end - at < SCORE_ROWS ? (uint32_t)(end - at) : SCORE_ROWS);
    sum->regression = is_regression(t);
    sum->classes = is_regression(t) ? 0 : 2;
    sum->auc = NAN;
    if (!is_regression(t) && end == t->test_count)
        sum->auc = at_auc(t->test_margins, t->tests.labels, t->test_count);
}

static void predict(void *self, float *probabilities, const float *params, uint64_t first,
                    uint64_t count)
{
    sparse_task *t = self;
    assert(t->test_row);
    assert(first + count <= t->test_count);
    for (uint64_t done = 0; done < count; done += SCORE_ROWS) {
        uint32_t    some = count - done < SCORE_ROWS ? (uint32_t)(count - done) : SCORE_ROWS;
        at_csr_list list = {.row = t->test_row, .count = some};
        for (uint32_t i = 0; i < some; i++) t->test_row[i] = first + done + i;
        at_sparse_margins(t->test_margins, &t->tests, &list, params, t->dimension);
        if (is_regression(t))
            memcpy(probabilities + done, t->test_margins, some * sizeof *probabilities);
        for (uint32_t i = 0; !is_regression(t) && i < some; i++) {
            float second = (float)(1 / (1 + exp(-(double)t->test_margins[i])));
            probabilities[2 * (done + i)] = 1 - second;
            probabilities[2 * (done + i) + 1] = second;
        }
    }
}

/* ---- creation -------------------------------------------------------------------------------- */

static void free_task(void *self)
{
    sparse_task *t = self;
    if (!t) return;
    close_task(t);
    at_hot_features_deinit(&t->hot);
    if (t->squares) munmap(t->squares, squares_size(t));
    at_shards_deinit(&t->shards);
    at_set_pair_close(&t->sets);
    free(t->inputs);
    free(t->steps);
    free(t->fitted);
    free(t);
}

/* Floats of a gradient of this many samples, each with a pair for the bias; an upper bound. */
static bool slot_floats(uint64_t samples, double numbers, size_t *floats)
{
    assert(samples >= 1);
    assert(numbers >= 0);
    double all = ((double)samples * (numbers + 1)) * 2 + 16;
    *floats = all < (double)(SIZE_MAX / 64) ? (size_t)all : 0;
    return *floats > 0;
}

static size_t scratch_size(const sparse_task *t)
{
    size_t rows = (size_t)t->options.micro_batch + AT_SPARSE_AHEAD;
    return (rows > WINDOW ? rows : WINDOW) * sizeof(uint64_t) + 2 * rows * sizeof(float);
}

static at_err describe(const sparse_task *t, at_task *task, at_fail *fail)
{
    uint64_t count = at_dataset_count(t->sets.train);
    assert(count >= 1);
    double mean = (double)t->numbers / (double)count;
    *task = (at_task){.model = t->model->name,
                      .data = t->options.feed.data,
                      .notes = t->notes,
                      .prep = t->steps,
                      .prep_fitted = t->fitted,
                      .inputs = t->inputs,
                      .params = at_sparse_floats(t->dimension),
                      .trained = (size_t)t->dimension + 1,
                      .parameters = (size_t)t->dimension + 1,
                      .plain = (size_t)t->dimension + 1,
                      .samples = count,
                      .test_samples = t->test_count,
                      .fingerprint = at_dataset_fingerprint(t->sets.train),
                      .classes = is_regression(t) ? 0 : 2,
                      .regression = is_regression(t),
                      .mults = (uint64_t)(mean + 1),
                      .scratch_size = scratch_size(t),
                      .sparse = true,
                      .shared_state = t->squares,
                      .sample_bytes = (mean + 1) * sizeof(at_pair),
                      .init = init,
                      .open = open_task,
                      .engine = engine,
                      .gradient = gradient,
                      .descend = descend,
                      .score = score,
                      .predict = predict,
                      .to_plain = to_plain,
                      .from_plain = from_plain,
                      .tensors = tensors,
                      .free = free_task};
    uint64_t samples = t->options.samples_max;
    if (slot_floats(samples, mean, &task->slot_likely) &&
        slot_floats(samples, (double)t->longest, &task->slot_floats))
        return AT_OK;
    return at_fail_set(
        fail, AT_ERR_USAGE, "use a smaller --batch",
        "gradients of %llu samples with up to %llu numbers each do not fit in memory",
        (unsigned long long)samples, (unsigned long long)t->longest);
}

at_err at_task_sparse(const at_task_sparse_options *options, at_task *task, at_fail *fail)
{
    assert(options->micro_batch >= 1);
    assert(options->samples_max >= options->micro_batch);
    sparse_task *t = calloc(1, sizeof *t);
    if (!t) return at_fail_memory(fail);
    t->options = *options;
    t->model = find_model(options->model);
    assert(t->model);
    at_err err = load(t, fail);
    if (!err) err = share_squares(t, fail);
    if (!err && options->eval_size > 0 && options->eval_size < t->test_count)
        t->test_count = options->eval_size;
    if (!err) err = describe(t, task, fail);
    if (err)
        free_task(t);
    else
        task->self = t;
    return err;
}
