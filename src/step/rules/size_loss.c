/* Size rule `loss`: after each epoch the batch doubles, halves or stays, by how the epoch went.
 *
 *     score = 0.8 L/L' + 0.2 t/t'       L: mean loss of the epoch's samples, t: its time,
 *                                       L', t': those of the epoch before
 *     score < 0.9   n doubles           it went clearly better
 *     score > 1.1   n halves            it went clearly worse
 *
 * within batch_min .. batch_max. The rule it stands for (COMS 6998, SPEC 1.3) adds nats to seconds
 * and compares the sum with 10, so its answer depends on the machine and on the length of an epoch;
 * here both are ratios and 10 means 10 %. The time is that of an epoch's worth of samples: the step
 * that ends an epoch may reach into the next one. The learning rate follows with --lr-scale linear,
 * and is left alone otherwise. Each epoch is one decision however long its steps are.
 */
#include <assert.h>
#include <math.h>

#include "step/rules/sizes.h"

static const double LOSS_PART = 0.8, TIME_PART = 0.2, BETTER = 0.9, WORSE = 1.1;

typedef struct memory {
    uint64_t epochs;            /* that have ended */
    double   loss_sum, samples; /* of the epoch under way */
    at_ns    began;             /* it, since the first order */
    double   loss_before, time_before;
    uint32_t batch;
} memory;

size_t at_size_loss_state(const at_plan *plan)
{
    (void)plan;
    return sizeof(memory);
}

bool at_size_loss_sound(const void *state, const at_plan *plan, uint64_t samples_used)
{
    (void)samples_used;
    const memory *m = state;
    return isfinite(m->loss_sum) && isfinite(m->samples) && m->samples >= 0 && m->began >= 0 &&
           isfinite(m->loss_before) && isfinite(m->time_before) && m->batch > 0 &&
           at_size_is_batch(plan, m->batch);
}

static double score(const memory *m, double loss, double time)
{
    double loss_ratio = m->loss_before > 0 ? loss / m->loss_before : 1;
    double time_ratio = m->time_before > 0 ? time / m->time_before : 1;
    return LOSS_PART * loss_ratio + TIME_PART * time_ratio;
}

static void end_epoch(memory *m, const at_plan *plan, at_ns elapsed)
{
    assert(m->samples > 0);
    double loss = m->loss_sum / m->samples;
    double time = (double)(elapsed - m->began) / m->samples;
    bool   first = m->time_before <= 0 && m->loss_before <= 0;
    double went = first ? 1 : score(m, loss, time);
    if (went < BETTER) m->batch = at_size_clamp(plan, 2.0 * m->batch);
    if (went > WORSE) m->batch = at_size_clamp(plan, 0.5 * m->batch);
    m->loss_before = loss;
    m->time_before = time;
    m->loss_sum = m->samples = 0;
    m->began = elapsed;
}

void at_size_loss_decide(void *state, const at_plan *plan, at_share *shares,
                         const at_progress *progress)
{
    memory *m = state;
    if (progress->steps == 0) m->batch = plan->batch;
    m->loss_sum += progress->loss_sum;
    m->samples += (double)progress->samples;
    uint64_t epochs = at_size_epochs(plan, progress->samples_used);
    if (epochs > m->epochs) end_epoch(m, plan, progress->elapsed);
    m->epochs = epochs;
    at_size_all(plan, shares, m->batch);
}
