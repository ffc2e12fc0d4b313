/* Times the steps. For each micro-batch size, sets up a workspace and times all batches that are
 * split into micro-batches of this size. The next repeat uses the opposite order, so that a slow
 * phase of the machine does not affect the same point in all repeats. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/launch.h"
#include "cli/verbs/slices.h"
#include "data/draw/sampler.h"
#include "data/set/dataset.h"
#include "learn/net/model.h"
#include "learn/optim/optim.h"
#include "world/process/signals.h"
#include "world/tasks/tasks.h"

enum { RANGES_MAX = 4096 };

static const at_ns  LONG_ENOUGH = AT_MS(100); /* total time of the steps of one timing */
static const double LR_DEFAULT = 1e-4;        /* as published; small enough not to diverge */
static const double MEMORY_SHARE = 0.9;       /* of the available memory */

/* What all micro-batch sizes share. */
typedef struct bench {
    at_slices      *slices;
    at_dataset     *set;
    at_shape        shape;
    at_engine       engine;
    const at_optim *optim;
    double          number[AT_OPTIM_NUMBERS_MAX]; /* of the optimizer */
    at_sampler      walk;
    uint64_t        position; /* of the next sample in the permutation */
    at_ns           began;
    uint32_t       *size; /* the distinct micro-batch sizes, ascending */
    uint32_t        sizes, sizes_done;
} bench;

/* Model and buffers for micro-batches of one size. */
typedef struct workspace {
    at_model              *model;
    uint32_t               rows;
    at_arena               arena;
    float                 *x, *w, *gradient, *state[2];
    uint32_t              *labels;
    uint64_t              *indices;
    at_param_range        *ranges;
    at_param_range_update *updates;
    size_t                 updates_count;
    uint64_t               step;
} workspace;

/* ---- one micro-batch size -------------------------------------------------------------------- */

/* Approximate bytes for the vectors, a micro-batch and the activations. */
static double bytes_needed(const bench *b, const workspace *s)
{
    double vectors = (2.0 + b->optim->states) * (double)at_model_floats(s->model);
    double row = (double)at_model_scratch(s->model) + b->shape.features;
    return sizeof(float) * (vectors + row * s->rows);
}

static bool fits(const bench *b, const workspace *s)
{
    double   needed = bytes_needed(b, s);
    uint64_t available = at_machine_memory().available;
    if (available == 0 || needed <= MEMORY_SHARE * (double)available) return true;
    fprintf(stderr,
            "anytime: note: micro-batches of %u samples are left out: they need %.1f GB, but "
            "only %.1f GB are available\n",
            s->rows, needed / 1e9, (double)available / 1e9);
    return false;
}

static at_err reserve(const bench *b, workspace *s, at_fail *fail)
{
    size_t floats = at_model_floats(s->model), x_floats, states = b->optim->states;
    bool   enough = at_size_product(s->rows, b->shape.features, &x_floats);
    size_t size = ((2 + states) * floats + x_floats) * sizeof(float) +
                  s->rows * (sizeof *s->labels + sizeof *s->indices) + 16 * 64;
    if (!enough || x_floats > SIZE_MAX / 16 || !at_arena_init(&s->arena, size))
        return at_fail_set(fail, AT_ERR_FAILED, "use smaller --batches",
                           "not enough memory for micro-batches of %u samples", s->rows);
    s->x = at_arena_get(&s->arena, x_floats, sizeof *s->x);
    s->w = at_arena_get(&s->arena, floats, sizeof *s->w);
    s->gradient = at_arena_get(&s->arena, floats, sizeof *s->gradient);
    s->labels = at_arena_get(&s->arena, s->rows, sizeof *s->labels);
    s->indices = at_arena_get(&s->arena, s->rows, sizeof *s->indices);
    for (size_t i = 0; i < states; i++) {
        s->state[i] = at_arena_get(&s->arena, floats, sizeof *s->w);
        for (size_t j = 0; j < floats; j++) s->state[i][j] = b->optim->state_start;
    }
    assert(s->x && s->w && s->gradient && s->labels && s->indices);
    return AT_OK;
}

/* Lists how each parameter range is updated. */
static at_err list_updates(const bench *b, workspace *s, at_fail *fail)
{
    const at_settings     *set = &b->slices->parsed->settings;
    const at_param_groups *groups = at_model_groups(s->model);
    s->ranges = calloc(RANGES_MAX, sizeof *s->ranges);
    s->updates = calloc(RANGES_MAX, sizeof *s->updates);
    if (!s->ranges || !s->updates) return at_fail_memory(fail);
    s->updates_count = at_model_param_ranges(s->model, s->ranges, RANGES_MAX);
    assert(s->updates_count <= RANGES_MAX); /* two per layer, and there are fewer layers */
    for (size_t i = 0; i < s->updates_count; i++) {
        const at_param_range *range = &s->ranges[i];
        s->updates[i] = (at_param_range_update){.at = range->at, .count = range->count};
        s->updates[i].statistics = range->group < 0;
        s->updates[i].keep = range->keep;
        if (range->group < 0) continue;
        const at_param_group *group = &groups->group[range->group];
        double                lr = set->lr > 0 ? set->lr : LR_DEFAULT;
        s->updates[i].how = (at_update){.lr = (float)(lr * group->lr),
                                        .weight_decay = (float)(set->weight_decay * group->decay),
                                        .momentum = (float)group->momentum,
                                        .number = b->number};
    }
    return AT_OK;
}

static void close_workspace(workspace *s)
{
    at_model_free(s->model);
    at_arena_deinit(&s->arena);
    free(s->ranges);
    free(s->updates);
    *s = (workspace){0};
}

/* Sets *left_out, and allocates nothing, if it does not fit into memory. */
static at_err open_workspace(const bench *b, workspace *s, uint32_t rows, bool *left_out,
                             at_fail *fail)
{
    const at_settings *set = &b->slices->parsed->settings;
    *s = (workspace){.rows = rows};
    AT_TRY(at_model_plan(set->model, b->shape, b->engine, rows, &s->model, fail));
    *left_out = !fits(b, s);
    if (*left_out) return AT_OK;
    AT_TRY(at_model_allocate(s->model, rows, AT_USE_TRAIN, fail));
    AT_TRY(reserve(b, s, fail));
    AT_TRY(list_updates(b, s, fail));
    return at_model_init(s->model, s->w, (uint64_t)set->seed, fail);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void micro_batch(bench *b, workspace *s, bool first)
{
    at_sampler_indices(&b->walk, b->position, s->indices, s->rows);
    at_dataset_rows(b->set, s->x, s->labels, s->indices, s->rows);
    at_model_noise(s->model, b->position);
    b->position += s->rows;
    if (first)
        at_model_gradient_set(s->model, s->gradient, s->w, s->x, s->labels, s->rows);
    else
        at_model_gradient(s->model, s->gradient, s->w, s->x, s->labels, s->rows);
}

/* False if a signal requested a stop. */
static bool step(bench *b, workspace *s, uint32_t slices)
{
    const float *gradient = s->gradient;
    assert(slices >= 1);
    at_model_install(s->model, s->w);
    for (uint32_t i = 0; i < slices; i++) {
        if (at_signals_stop()) return false;
        micro_batch(b, s, i == 0);
    }
    s->step++;
    for (size_t i = 0; i < s->updates_count; i++) {
        s->updates[i].how.scale = 1.0f / (float)((uint64_t)slices * s->rows);
        s->updates[i].how.step = s->step;
    }
    at_optim_apply_ranges(b->optim, s->w, s->state[0], s->state[1], &gradient, NULL, 1, s->updates,
                          s->updates_count);
    return true;
}

/* One thread is timed by what the processor did for it, so that other programs matter little. */
static at_ns read_clock(const bench *b)
{
    return b->slices->parsed->settings.threads == 1 ? at_clock_processor() : at_clock_now();
}

/* Records the mean time of the steps within LONG_ENOUGH. */
static bool time_point(bench *b, workspace *s, at_slices_point *point)
{
    uint32_t steps = 0;
    at_ns    begin = read_clock(b), now = begin;
    assert(point->micro_batch == s->rows);
    for (; now - begin < LONG_ENOUGH; steps++) {
        if (!step(b, s, point->slices)) return false;
        now = read_clock(b);
    }
    point->seconds[b->slices->done] = at_seconds(now - begin) / steps;
    return true;
}

/* ---- all sizes ------------------------------------------------------------------------------- */

/* "slices: repeat 2 of 3, micro-batch 64, about 12.3s left" */
static void print_progress(const bench *b, uint32_t rows)
{
    const at_slices *all = b->slices;
    char             left[32];
    bool             terminal = isatty(STDERR_FILENO);
    if (all->parsed->settings.quiet || (!terminal && b->sizes_done % b->sizes)) return;
    fprintf(stderr, "%sslices: repeat %u of %u", terminal ? "\r\033[K" : "", all->done + 1,
            all->repeats);
    if (terminal) fprintf(stderr, ", micro-batch %u", rows);
    if (all->done > 0) {
        at_ns each = (at_clock_now() - b->began) / b->sizes_done;
        fprintf(stderr, ", about %s left",
                at_text_show_duration(left, sizeof left,
                                      each * (all->repeats * b->sizes - b->sizes_done)));
    }
    fputs(terminal ? "" : "\n", stderr);
    fflush(stderr);
}

static void leave_out(at_slices *all, uint32_t rows)
{
    for (uint32_t i = 0; i < all->points; i++)
        if (all->point[i].micro_batch == rows) all->point[i].left_out = true;
}

static bool is_left_out(const at_slices *all, uint32_t rows)
{
    for (uint32_t i = 0; i < all->points; i++)
        if (all->point[i].micro_batch == rows) return all->point[i].left_out;
    return false;
}

static at_err time_all(bench *b, workspace *s, at_fail *fail)
{
    at_slices *all = b->slices;
    bool       on = step(b, s, 1); /* warm-up: touches all memory, not timed */
    for (uint32_t i = 0; i < all->points && on; i++)
        if (all->point[i].micro_batch == s->rows) on = time_point(b, s, &all->point[i]);
    if (on) return AT_OK;
    return at_fail_set(fail, AT_ERR_STOPPED, NULL, "stopped by a signal after %u of %u repeats",
                       all->done, all->repeats);
}

static at_err measure_size(bench *b, uint32_t rows, at_fail *fail)
{
    workspace s;
    bool      left_out = false;
    at_err    err = AT_OK;
    print_progress(b, rows);
    b->sizes_done++;
    if (is_left_out(b->slices, rows)) return AT_OK;
    err = open_workspace(b, &s, rows, &left_out, fail);
    if (!err && left_out) {
        leave_out(b->slices, rows);
    } else if (!err) {
        at_text engine = at_text_in(b->slices->engine, sizeof b->slices->engine);
        at_text_add(&engine, "%s", at_model_engine(s.model));
        b->slices->parameters = at_model_params(s.model);
        err = time_all(b, &s, fail);
    }
    close_workspace(&s);
    return err;
}

static at_err measure_all(bench *b, at_fail *fail)
{
    at_slices *all = b->slices;
    for (; all->done < all->repeats; all->done++)
        for (uint32_t i = 0; i < b->sizes; i++)
            AT_TRY(measure_size(b, b->size[all->done % 2 ? b->sizes - 1 - i : i], fail));
    return AT_OK;
}

static int compare_sizes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static at_err list_sizes(bench *b, at_fail *fail)
{
    const at_slices *all = b->slices;
    b->size = calloc(all->points, sizeof *b->size);
    if (!b->size) return at_fail_memory(fail);
    for (uint32_t i = 0; i < all->points; i++) b->size[i] = all->point[i].micro_batch;
    qsort(b->size, all->points, sizeof *b->size, compare_sizes);
    for (uint32_t i = 0; i < all->points; i++)
        if (b->sizes == 0 || b->size[b->sizes - 1] != b->size[i]) b->size[b->sizes++] = b->size[i];
    return AT_OK;
}

static at_err open_bench(bench *b, at_fail *fail)
{
    const at_settings *set = &b->slices->parsed->settings;
    AT_TRY(at_launch_engine(set->engine, &b->engine, fail));
    AT_TRY(at_optim_parse(set->optimizer ? set->optimizer : "sgd", &b->optim, b->number, fail));
    AT_TRY(at_dataset_open(set->data, AT_SPLIT_TRAIN, &b->set, fail));
    b->shape = at_task_shape(at_dataset_shape(b->set), at_dataset_classes(b->set));
    AT_TRY(at_sampler_init(&b->walk, (uint64_t)set->seed, 0, 1, at_dataset_count(b->set), false,
                           fail));
    at_model_threads((uint32_t)set->threads);
    return list_sizes(b, fail);
}

at_err at_slices_measure(at_slices *all, at_fail *fail)
{
    at_bell bell = {0};
    bench   b = {.slices = all};
    at_err  err = open_bench(&b, fail);
    if (!err) {
        b.began = at_clock_now();
        at_signals_open(&bell);
        err = measure_all(&b, fail);
        at_signals_close();
        if (isatty(STDERR_FILENO) && !all->parsed->settings.quiet) fputs("\r\033[K", stderr);
    }
    at_dataset_free(b.set);
    free(b.size);
    return err;
}
