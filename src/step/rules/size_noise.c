/* Size rule `noise`: the total batch follows the gradient noise scale (McCandlish et al., arXiv
 * 1812.06162).
 *
 * The mean gradient g_b over b samples has E|g_b|^2 = |G|^2 + S / b: G is the true gradient, S the
 * sum of the variances of a single sample's gradient. A step measures that twice, over its pieces
 * of b_i samples and over all B of them:
 *
 *     small = mean of |g_i|^2,   1/b = mean of 1/b_i,   big = |g|^2
 *     S     = (small - big) / (1/b - 1/B)
 *     |G|^2 = big - S / B
 *
 * Both are unbiased, but noisy, and the ratio of noisy numbers is biased; so each is averaged over
 * about AVERAGE_STEPS steps first. Their ratio B_simple = S / |G|^2 is the batch at which noise and
 * gradient are equally large: below it more samples pay in full, above they hardly do.
 *
 * After every DECIDE_STEPS steps the batch of each worker becomes B_simple / workers that are
 * there, changed at most by a factor of two at a time, within batch_min .. batch_max. A step of one
 * piece cannot tell the two apart and is skipped. When |G|^2 is not above 0, all is noise: n grows.
 */
#include <assert.h>
#include <math.h>

#include "step/rules/sizes.h"

enum { AVERAGE_STEPS = 32, DECIDE_STEPS = 16 };

typedef struct memory {
    uint64_t seen; /* steps that went into the averages */
    double   noise, signal;
    uint32_t batch;
} memory;

size_t at_size_noise_state(const at_plan *plan)
{
    (void)plan;
    return sizeof(memory);
}

bool at_size_noise_sound(const void *state, const at_plan *plan, uint64_t samples_used)
{
    (void)samples_used;
    const memory *m = state;
    return isfinite(m->noise) && isfinite(m->signal) && m->batch > 0 &&
           at_size_is_batch(plan, m->batch);
}

static void learn(memory *m, const at_progress *p)
{
    double all = 1.0 / (double)p->samples;
    double noise = (p->norm2_piece - p->norm2_step) / (p->inverse_mean - all);
    double signal = p->norm2_step - noise * all;
    /* The mean of what there is until there is enough of it. */
    double move = m->seen < AVERAGE_STEPS ? 1.0 / (double)(m->seen + 1) : 1.0 / AVERAGE_STEPS;
    m->noise += move * (noise - m->noise);
    m->signal += move * (signal - m->signal);
    m->seen++;
}

static uint32_t workers_there(const at_plan *plan, const at_member *member)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->workers; i++) count += member[i].state != AT_MEMBER_AWAY;
    return count;
}

static uint32_t follow(const memory *m, const at_plan *plan, uint32_t workers)
{
    double most = 2.0 * m->batch, least = 0.5 * m->batch, wanted = most;
    if (m->noise <= 0)
        wanted = least;
    else if (m->signal > 0)
        wanted = m->noise / m->signal / workers;
    if (wanted > most) wanted = most;
    if (wanted < least) wanted = least;
    return at_size_clamp(plan, wanted);
}

void at_size_noise_decide(void *state, const at_plan *plan, at_share *shares,
                          const at_progress *progress)
{
    memory *m = state;
    if (progress->steps == 0) m->batch = plan->batch;
    uint32_t workers = workers_there(plan, progress->member);
    bool     tells = progress->pieces > 1 && progress->norm2_piece > 0;
    if (tells) learn(m, progress);
    if (tells && workers > 0 && m->seen % DECIDE_STEPS == 0) m->batch = follow(m, plan, workers);
    at_size_all(plan, shares, m->batch);
}
