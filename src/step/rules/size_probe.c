/* Size rule `probe`: tries 1, 2, 4 and 8 times the batch for an epoch each, and keeps the one with
 * the smallest time per epoch (the smaller one among equals).
 *
 * The time is that of an epoch's worth of samples, because the step that ends an epoch may reach
 * into the next one. Sizes beyond batch_max are not tried. This is about speed alone: nobody asks
 * what the size does to learning.
 */
#include <assert.h>
#include <math.h>

#include "step/rules/sizes.h"

enum { TRIES = 4 };

typedef struct memory {
    uint64_t epochs;     /* that have ended */
    uint32_t tried;      /* sizes that are measured */
    at_ns    began;      /* the present try, since the first order */
    uint64_t used;       /* samples before it */
    double   best_time;  /* a sample */
    uint32_t best_batch; /* 0: none yet */
} memory;

size_t at_size_probe_state(const at_plan *plan)
{
    (void)plan;
    return sizeof(memory);
}

bool at_size_probe_sound(const void *state, const at_plan *plan, uint64_t samples_used)
{
    const memory *m = state;
    return m->tried <= TRIES && m->began >= 0 && isfinite(m->best_time) &&
           m->used <= samples_used && (m->best_batch > 0) == (m->tried > 0) &&
           at_size_is_batch(plan, m->best_batch);
}

/* The size of a try; 0 when there are no more. */
static uint32_t batch_of(const at_plan *plan, uint32_t tries)
{
    uint64_t batch = (uint64_t)plan->batch << tries;
    return tries < TRIES && batch <= plan->batch_max ? (uint32_t)batch : 0;
}

static void end_try(memory *m, const at_plan *plan, const at_progress *progress)
{
    uint64_t samples = progress->samples_used - m->used;
    assert(samples > 0);
    double time = (double)(progress->elapsed - m->began) / (double)samples;
    if (m->best_batch == 0 || time < m->best_time) {
        m->best_time = time;
        m->best_batch = batch_of(plan, m->tried);
    }
    m->tried++;
    m->began = progress->elapsed;
    m->used = progress->samples_used;
}

void at_size_probe_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress)
{
    memory  *m = state;
    uint64_t epochs = at_size_epochs(plan, progress->samples_used);
    if (epochs > m->epochs && batch_of(plan, m->tried) > 0) end_try(m, plan, progress);
    m->epochs = epochs;
    uint32_t next = batch_of(plan, m->tried);
    at_size_all(plan, shares, next > 0 ? next : m->best_batch);
}
