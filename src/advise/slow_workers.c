#include "advise/slow_workers.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/summary/stats.h"

enum { PART_MIN = 4, PARTS_MAX = 64, WORKERS_MIN = 3 };
static const double SLOW = 1.13;      /* ratio to the median from which a period is slow */
static const double COST_MIN = 0.005; /* time lost to it, in mean steps per step, to be named */
static const double NOISE_MIN = 0.005;

typedef struct search {
    const at_measured *m;
    double            *median;  /* (steps) of the workers */
    double            *ratio;   /* (steps) logarithm, of one worker */
    double            *sum;     /* (steps + 1) of ratio */
    double            *scratch; /* (max of steps and workers) */
    double             penalty; /* what a further change point must explain, */
    double             chance;  /* and a slow period: of many workers, some seem slow */
} search;

static double median_of(double *values, size_t count)
{
    at_stats_sort(values, count);
    return at_stats_percentile(values, count, 50);
}

static void find_medians(search *s)
{
    uint32_t workers = s->m->log.workers;
    for (uint32_t step = 0; step < s->m->log.steps; step++) {
        memcpy(s->scratch, s->m->round_s + (size_t)step * workers, workers * sizeof(double));
        s->median[step] = median_of(s->scratch, workers);
    }
}

/* The ratios of a worker, their sums, and what must be explained. */
static void load_worker(search *s, uint32_t worker)
{
    uint32_t workers = s->m->log.workers, steps = s->m->log.steps;
    for (uint32_t i = 0; i < steps; i++) {
        s->ratio[i] = log(s->m->round_s[(size_t)i * workers + worker] / s->median[i]);
        s->sum[i + 1] = s->sum[i] + s->ratio[i];
    }
    for (uint32_t i = 0; i + 1 < steps; i++) s->scratch[i] = fabs(s->ratio[i + 1] - s->ratio[i]);
    double noise = fmax(median_of(s->scratch, steps - 1) / (0.6745 * M_SQRT2), NOISE_MIN);
    double mean = s->sum[steps] / steps, square = 0;
    for (uint32_t i = 0; i < steps; i++) square += (s->ratio[i] - mean) * (s->ratio[i] - mean);
    /* Rare long pauses do not show in the median difference. They are not changes either. */
    double product = 0;
    for (uint32_t i = 0; i + 1 < steps; i++)
        product += (s->ratio[i] - mean) * (s->ratio[i + 1] - mean);
    double persistence = square > 0 ? fmin(fmax(product / square, 0), 1) : 0;
    double independent = square / steps * (1 - persistence);
    double variance = fmax(noise * noise, independent);
    s->penalty = 4 * variance * log((double)steps);
    s->chance = 4 * variance * log((double)steps * workers);
}

/* Where splitting steps begin .. end-1 explains most; `end` when nothing is explained enough. */
static uint32_t find_split(const search *s, uint32_t begin, uint32_t end)
{
    uint32_t best = end;
    double   most = s->penalty, whole = s->sum[end] - s->sum[begin];
    for (uint32_t i = begin + PART_MIN; i + PART_MIN <= end; i++) {
        double left = s->sum[i] - s->sum[begin], right = s->sum[end] - s->sum[i];
        double explained =
            left * left / (i - begin) + right * right / (end - i) - whole * whole / (end - begin);
        if (explained <= most) continue;
        most = explained;
        best = i;
    }
    return best;
}

/* Splits until nothing more is explained. Returns the number of parts; their ends are in order. */
static uint32_t find_parts(const search *s, uint32_t *ends)
{
    uint32_t count = 1;
    ends[0] = s->m->log.steps;
    for (uint32_t i = 0; i < count;) {
        uint32_t begin = i > 0 ? ends[i - 1] : 0, split = find_split(s, begin, ends[i]);
        if (split == ends[i] || count == PARTS_MAX) {
            i++;
            continue;
        }
        memmove(ends + i + 1, ends + i, (count - i) * sizeof *ends);
        ends[i] = split;
        count++;
    }
    return count;
}

static double part_ratio(const search *s, uint32_t begin, uint32_t end)
{
    assert(begin < end);
    memcpy(s->scratch, s->ratio + begin, (end - begin) * sizeof *s->scratch);
    return exp(median_of(s->scratch, end - begin));
}

/* Whether these steps are slower than some worker's would be by chance. */
static bool stands_out(const search *s, uint32_t begin, uint32_t end)
{
    double sum = s->sum[end] - s->sum[begin];
    assert(begin < end);
    return sum > 0 && sum * sum / (end - begin) > s->chance;
}

/* The slow period of the loaded worker that costs most; neighboring slow parts are one period. */
static at_slow_worker slowest_period(const search *s, const uint32_t *ends, uint32_t count)
{
    at_slow_worker best = {0};
    double         most = 0;
    uint32_t       first = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t begin = i > 0 ? ends[i - 1] : 0;
        bool     slow = part_ratio(s, begin, ends[i]) > SLOW;
        bool     before = i > 0 && part_ratio(s, i > 1 ? ends[i - 2] : 0, begin) > SLOW;
        if (!slow) continue;
        if (!before) first = begin;
        double factor = part_ratio(s, first, ends[i]), cost = (factor - 1) * (ends[i] - first);
        if (cost <= most || !stands_out(s, first, ends[i])) continue;
        most = cost;
        best = (at_slow_worker){.begin = first, .end = ends[i], .factor = factor};
    }
    return best;
}

/* mean(slowest), as if the marked workers had taken the median time whenever they were slower. */
static double slowest_without(const search *s, const bool *replaced)
{
    uint32_t workers = s->m->log.workers, steps = s->m->log.steps;
    double   sum = 0;
    for (uint32_t step = 0; step < steps; step++) {
        double slowest = 0;
        for (uint32_t w = 0; w < workers; w++) {
            double t = s->m->round_s[(size_t)step * workers + w];
            slowest = fmax(slowest, replaced[w] ? fmin(t, s->median[step]) : t);
        }
        sum += slowest;
    }
    return sum / steps;
}

/* Inserts in descending order of gain; the last one falls out when the list is full. */
static void keep(at_slow_workers *slow, const at_slow_worker *found)
{
    uint32_t at = slow->count < AT_SLOW_WORKERS_MAX ? slow->count : AT_SLOW_WORKERS_MAX - 1;
    if (slow->count == AT_SLOW_WORKERS_MAX && slow->worker[at].gain >= found->gain) return;
    for (; at > 0 && slow->worker[at - 1].gain < found->gain; at--)
        slow->worker[at] = slow->worker[at - 1];
    slow->worker[at] = *found;
    if (slow->count < AT_SLOW_WORKERS_MAX) slow->count++;
}

/* What replacing each worker gives, and all together: when several are slow at the same time,
 * replacing one alone gives nothing. */
static void weigh(const search *s, bool *replaced, at_slow_workers *slow)
{
    double slowest = at_measured_slowest(s->m);
    for (uint32_t i = 0; i < slow->count; i++) {
        at_slow_worker *found = &slow->worker[i];
        replaced[found->worker] = true;
        found->gain = slowest / slowest_without(s, replaced);
        replaced[found->worker] = false;
    }
    for (uint32_t i = 0; i < slow->count; i++) replaced[slow->worker[i].worker] = true;
    slow->gain = slowest / slowest_without(s, replaced);
}

static void find_all(search *s, bool *replaced, at_slow_workers *slow)
{
    find_medians(s);
    for (uint32_t w = 0; w < s->m->log.workers; w++) {
        uint32_t ends[PARTS_MAX];
        load_worker(s, w);
        at_slow_worker found = slowest_period(s, ends, find_parts(s, ends));
        found.worker = w;
        found.gain = (found.factor - 1) * (found.end - found.begin); /* first: the time it costs */
        if (found.gain >= COST_MIN * s->m->log.steps) keep(slow, &found);
    }
    weigh(s, replaced, slow);
}

at_err at_slow_workers_find(const at_measured *measured, at_slow_workers *slow, at_fail *fail)
{
    uint32_t workers = measured->log.workers, steps = measured->log.steps;
    search   s = {.m = measured};
    *slow = (at_slow_workers){.gain = 1};
    if (workers < WORKERS_MIN || steps < 2 * PART_MIN) return AT_OK; /* no majority, no history */
    s.median = calloc(steps, sizeof(double));
    s.ratio = calloc(steps, sizeof(double));
    s.sum = calloc((size_t)steps + 1, sizeof(double));
    s.scratch = calloc(steps > workers ? steps : workers, sizeof(double));
    bool *replaced = calloc(workers, sizeof *replaced);
    bool  allocated = s.median && s.ratio && s.sum && s.scratch && replaced;
    if (allocated) find_all(&s, replaced, slow);
    free(s.median);
    free(s.ratio);
    free(s.sum);
    free(s.scratch);
    free(replaced);
    return allocated ? AT_OK : at_fail_memory_for(fail, "to look for slow workers");
}
