#include "step/cut.h"

#include <assert.h>

void at_cut_begin(at_cut *cut, const at_order *order, at_ns deadline, uint32_t micro_batch,
                  bool after)
{
    assert(cut->sample_ns >= 0);
    assert(order->samples_max >= 1);
    assert(micro_batch >= 1);
    double sample_ns = cut->sample_ns;
    *cut = (at_cut){.samples_max = order->samples_max,
                    .micro_batch = micro_batch,
                    .after = after,
                    .deadline = deadline,
                    .sample_ns = sample_ns};
}

void at_cut_own(at_cut *cut)
{
    assert(cut->done == 0);
    cut->own = true;
}

/* Stopping now misses the deadline by (deadline - now), continuing by (now + next - deadline). */
static bool time_for(const at_cut *cut, uint32_t samples, at_ns now)
{
    assert(samples >= 1);
    if (cut->deadline == AT_NEVER) return true;
    if (cut->after) return now < cut->deadline;
    double next_ns = cut->sample_ns * samples;
    return 2.0 * (double)(cut->deadline - now) > next_ns;
}

uint32_t at_cut_next(const at_cut *cut, at_ns now)
{
    assert(cut->samples_max >= 1);
    assert(cut->micro_batch >= 1);
    bool     first = cut->done == 0;
    uint32_t left = cut->done < cut->samples_max ? cut->samples_max - cut->done : 0;
    uint32_t samples = left < cut->micro_batch ? left : cut->micro_batch;
    if (cut->own) samples = first || left >= cut->micro_batch ? cut->micro_batch : 0;
    return first || (samples > 0 && time_for(cut, samples, now)) ? samples : 0;
}

bool at_cut_is_last(const at_cut *cut, uint32_t samples, at_ns now)
{
    at_cut then = *cut;
    assert(samples >= 1);
    then.done += samples;
    return at_cut_next(&then, now + (at_ns)(0.75 * cut->sample_ns * samples)) == 0;
}

void at_cut_rewind(at_cut *cut, double sample_ns)
{
    assert(sample_ns >= 0);
    cut->done = 0;
    cut->sample_ns = sample_ns;
}

void at_cut_done(at_cut *cut, uint32_t samples, at_ns took)
{
    assert(samples >= 1);
    assert(took >= 0);
    cut->done += samples;
    if (cut->own) cut->micro_batch = samples;
    if (took == 0) return;
    double sample_ns = (double)took / samples;
    /* An average over about eight micro-batches follows a changing speed and ignores one hiccup. */
    cut->sample_ns =
        cut->sample_ns > 0 ? cut->sample_ns + (sample_ns - cut->sample_ns) / 8 : sample_ns;
}
