/* Size rule `auto` in virtual time: finds the time limit for a mean batch, with workers of
 * different speeds that sleep like those of the published experiments. */
#include "scenario_stage.h"

enum { WORKERS = 10, STEPS = 400, STEPS_LEARNING = 20, STEPS_SETTLED = 50 };

/* Statistics of one run. */
typedef struct tally {
    uint64_t samples, rounds; /* after the first steps */
    uint32_t samples_min, samples_max;
    uint64_t steps;
    at_ns    limit;      /* of the last order */
    double   change_max; /* relative, from one decision to the next, when settled */
} tally;

static tally tally_;

static void see_order(const at_order *order)
{
    if (order->leave || order->time_limit == AT_NEVER) return;
    bool   changed = tally_.limit > 0 && tally_.steps > STEPS_SETTLED;
    double change = fabs((double)order->time_limit / (double)tally_.limit - 1);
    if (changed && change > tally_.change_max) tally_.change_max = change;
    tally_.limit = order->time_limit;
}

static void see_apply(const at_action *apply)
{
    tally_.steps = apply->as.apply.step;
    if (apply->as.apply.step <= STEPS_LEARNING) return;
    for (uint32_t i = 0; i < apply->as.apply.count; i++) {
        uint32_t samples = apply->as.apply.pieces[i].samples;
        tally_.samples += samples;
        tally_.rounds++;
        if (samples < tally_.samples_min) tally_.samples_min = samples;
        if (samples > tally_.samples_max) tally_.samples_max = samples;
    }
}

static void see(stage *s, const at_action *action)
{
    (void)s;
    if (action->kind == AT_ACT_SEND) see_order(&action->as.order);
    if (action->kind == AT_ACT_APPLY) see_apply(action);
}

/* The published mixture: 40 % never sleep, 10 % sleep five seconds. */
static at_ns niagara(const stage *s, at_node worker, uint64_t round)
{
    static const struct {
        double below, mean, sd;
    } part[] = {{0.4, 0, 0}, {0.7, 0, 0.4}, {0.9, 2, 0.3}, {1, 5, 0.3}};
    at_rng rng = at_rng_stream(s->seed, worker, AT_RNG_PURPOSE_PACE, round);
    double u = at_rng_uniform(&rng);
    size_t i = 0;
    while (u >= part[i].below) i++;
    return AT_SEC(fabs(part[i].mean + part[i].sd * at_rng_normal(&rng)));
}

typedef struct trial {
    uint32_t    batch, micro_batch, cap;
    const char *cut;
    bool        equal; /* no sleep, equal speeds */
    uint64_t    seed;
} trial;

static tally run(trial t)
{
    static stage s;
    char         work[64];
    at_text      text = at_text_in(work, sizeof work);
    at_text_add(&text, "timed:cut=%s", t.cut ? t.cut : "nearest");
    if (t.cap > 0) at_text_add(&text, ",cap=%u", t.cap);
    at_plan_options o = {.strategy = "amb",
                         .workers = WORKERS,
                         .batch = t.batch,
                         .micro_batch = t.micro_batch,
                         .work = work,
                         .limits = {.steps = STEPS}};
    stage_open(&s, &o);
    tally_ = (tally){.samples_min = UINT32_MAX};
    s.saw_action = see;
    s.sleep = t.equal ? NULL : niagara;
    s.seed = t.seed;
    for (at_node id = 1; id <= WORKERS; id++)
        s.actor[id].sample_ns = t.equal ? AT_MS(15) : AT_MS(10 + id);
    stage_run(&s);
    assert_true(s.finished);
    stage_close(&s);
    return tally_;
}

static void assert_mean(const trial *t, const tally *seen, double tolerance)
{
    double mean = (double)seen->samples / (double)seen->rounds;
    if (fabs(mean / t->batch - 1) > tolerance)
        fail_msg("seed %d: mean batch is %.2f instead of %u", (int)t->seed, mean, t->batch);
}

static void the_mean_batch_is_the_requested_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        trial fine = {.batch = 64, .micro_batch = 4, .seed = seed};
        trial coarse = {.batch = 64, .micro_batch = 32, .seed = seed};
        tally seen_fine = run(fine), seen_coarse = run(coarse);
        assert_mean(&fine, &seen_fine, 0.02);
        assert_mean(&coarse, &seen_coarse, 0.02);
    }
}

static void the_published_cut_is_corrected_for(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        trial t = {.batch = 64, .micro_batch = 32, .cut = "after", .seed = seed};
        tally seen = run(t);
        assert_mean(&t, &seen, 0.02);
    }
}

static void the_time_limit_is_stable(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        tally seen = run((trial){.batch = 64, .micro_batch = 8, .seed = seed});
        assert_true(seen.change_max > 0); /* it is updated .. */
        assert_true(seen.change_max < 0.08);
    }
}

static void equal_workers_get_exactly_the_time_their_batch_takes(void **state)
{
    (void)state;
    const char *const cuts[] = {"nearest", "after"};
    for (int i = 0; i < 2; i++) {
        tally seen = run((trial){.batch = 64, .micro_batch = 32, .cut = cuts[i], .equal = true});
        assert_int_equal(seen.samples_min, 64);
        assert_int_equal(seen.samples_max, 64);
        assert_true(seen.change_max < 1e-6);
    }
}

static void no_round_has_less_than_a_micro_batch_or_more_than_the_cap(void **state)
{
    (void)state;
    tally seen = run((trial){.batch = 64, .micro_batch = 16, .cap = 80, .seed = 1});
    assert_int_equal(seen.samples_min, 16); /* workers that overslept */
    assert_int_equal(seen.samples_max, 80);
    trial t = {.batch = 64};
    assert_mean(&t, &seen, 0.02); /* the cap is taken into account */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_batch_is_the_requested_one),
        cmocka_unit_test(the_published_cut_is_corrected_for),
        cmocka_unit_test(the_time_limit_is_stable),
        cmocka_unit_test(equal_workers_get_exactly_the_time_their_batch_takes),
        cmocka_unit_test(no_round_has_less_than_a_micro_batch_or_more_than_the_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
