/* A user's own model: a callback over ranges of samples. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "data/draw/sampler.h"
#include "world/tasks/tasks.h"

typedef struct own_task {
    at_task_own_options options;
    at_sampler          own, common; /* created by open */
} own_task;

static at_err init(void *self, float *params, uint64_t seed, at_fail *fail)
{
    own_task *t = self;
    assert(t->options.start);
    (void)seed; /* the user provides the initial parameters */
    (void)fail;
    memcpy(params, t->options.start, t->options.model.parameters * sizeof *params);
    return AT_OK;
}

static at_err open_sampler(own_task *t, at_sampler *sampler, at_node worker, bool shard,
                           at_fail *fail)
{
    assert(t->options.model.samples >= 1);
    assert(t->options.workers >= 1);
    const at_task_own_options *o = &t->options;
    AT_TRY(at_sampler_init(sampler, o->seed, worker, o->workers, o->model.samples, shard, fail));
    sampler->in_order = !o->model.loss_at;
    return AT_OK;
}

static at_err open_task(void *self, at_node worker, at_fail *fail)
{
    own_task *t = self;
    if (worker == 0) return AT_OK;
    at_node first = worker == AT_NODE_ALL ? 1 : worker;
    AT_TRY(open_sampler(t, &t->own, first, t->options.shard, fail));
    return open_sampler(t, &t->common, 0, false, fail);
}

static const char *engine(void *self)
{
    (void)self;
    return "own";
}

/* Samples in the order of the sampler, as many per call as fit into a small table. */
static double gradient_at(const own_task *t, const at_sampler *sampler, float *g,
                          const float *params, const at_draw *draw)
{
    enum { PER_CALL = 1024 };
    const at_own_model *model = &t->options.model;
    uint64_t            index[PER_CALL];
    double              loss = 0;
    assert(model->loss_at);
    for (uint32_t done = 0; done < draw->count;) {
        uint32_t left = draw->count - done, count = left < PER_CALL ? left : PER_CALL;
        at_sampler_indices(sampler, draw->position + done, index, count);
        loss += model->loss_at(model->user, params, g, index, count);
        done += count;
    }
    return loss;
}

static double gradient(void *self, float *g, bool first, at_point point, const at_draw *draw)
{
    assert(draw->count >= 1);
    own_task           *t = self;
    const at_own_model *model = &t->options.model;
    const at_sampler   *sampler = draw->common ? &t->common : &t->own;
    double              loss = 0;
    assert(draw->common || draw->worker >= 1);
    if (!draw->common && t->own.worker != draw->worker)
        (void)open_sampler(t, &t->own, draw->worker, t->options.shard, NULL);
    if (first) memset(g, 0, model->parameters * sizeof *g);
    if (model->loss_at) return gradient_at(t, sampler, g, point.params, draw);
    for (uint32_t done = 0; done < draw->count;) {
        uint64_t position = draw->position + done, index = at_sampler_index(sampler, position);
        uint64_t run = at_sampler_run(sampler, position), left = draw->count - done;
        if (run > left) run = left;
        assert(run >= 1);
        assert(index + run <= model->samples);
        loss += model->loss(model->user, point.params, g, index, index + run);
        done += (uint32_t)run;
    }
    return loss;
}

static void score(void *self, at_score *sum, const float *params, uint64_t first, uint64_t count)
{
    const at_own_model *model = &((own_task *)self)->options.model;
    assert(model->test);
    assert(first + count <= model->test_samples);
    sum->loss_sum += model->test(model->user, params, &sum->correct, first, first + count);
    sum->count += count;
}

at_err at_task_own(const at_task_own_options *options, at_task *task, at_fail *fail)
{
    const at_own_model *model = &options->model;
    if (model->parameters < 1 || model->samples < 1 || (!model->loss && !model->loss_at))
        return at_fail_set(fail, AT_ERR_USAGE, "see anytime.h",
                           "a model needs parameters, samples and a loss function");
    if (model->test_samples > 0 && !model->test)
        return at_fail_set(fail, AT_ERR_USAGE, "see anytime.h",
                           "a model with test samples needs a test function");
    own_task *t = calloc(1, sizeof *t);
    if (!t) return at_fail_memory(fail);
    t->options = *options;
    *task = (at_task){.self = t,
                      .model = model->name ? model->name : "own",
                      .data = "own",
                      .params = model->parameters,
                      .slot_floats = model->parameters,
                      .slot_likely = model->parameters,
                      .trained = model->parameters,
                      .parameters = model->parameters,
                      .plain = model->parameters,
                      .samples = model->samples,
                      .test_samples = model->test_samples,
                      .init = init,
                      .open = open_task,
                      .engine = engine,
                      .gradient = gradient,
                      .score = score,
                      .free = free};
    return AT_OK;
}
