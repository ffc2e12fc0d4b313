/* An update pool gives the same bits as one process, even when members die or freeze in the middle
 * of their slices. */
#include "world/process/update_pool.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "world/process/child.h"

enum { PARAMS = 300001, PIECES = 2, MEMBERS = 4, STEPS = 6, DEADLY = 3 };

/* How a member behaves in step DEADLY. */
typedef enum fate { LIVES, DIES, FREEZES } fate;

typedef struct rig {
    at_learning       learning;
    at_updater        updater;
    at_update_pool   *pool;
    float            *w, *gradient[PIECES]; /* shared */
    at_bell          *bell;                 /* shared */
    _Atomic uint64_t *step;                 /* shared */
    pid_t             pid[MEMBERS];
    fate              fate;
    uint32_t          joined; /* members that take part */
    bool              joins;  /* the hub takes part, too */
    bool              asleep; /* members are stopped before the first step */
    double            clip;
} rig;

typedef struct member {
    rig     *rig;
    uint32_t number;
} member;

/* ---- members --------------------------------------------------------------------------------- */

/* An optimizer that leaves a block half done in step DEADLY. */
static struct {
    const at_optim *real;
    at_optim        deadly;
    fate            fate;
    uint32_t        blocks; /* until then */
} hook;

static void update_or_die(float *w, const float *g, float *s0, float *s1, size_t n,
                          const at_update *how)
{
    bool last = hook.fate != LIVES && hook.blocks-- == 0;
    hook.real->update(w, g, s0, s1, last ? n / 2 : n, how);
    if (last) raise(hook.fate == DIES ? SIGKILL : SIGSTOP);
}

static int member_main(void *self)
{
    const member *m = self;
    rig          *r = m->rig;
    at_bell      *bell = at_update_pool_bell(r->pool);
    bool          met = false;
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        if (r->fate != LIVES && !met && atomic_load(r->step) == DEADLY) {
            met = true;
            hook.fate = r->fate;
            hook.blocks = 3 * m->number;
        }
        if (!at_update_pool_work(r->pool, m->number))
            at_bell_wait(bell, heard, 1, at_bell_mask(m->number), AT_NEVER, 0);
    }
    return 0;
}

static bool is_gone(void *self, uint32_t number)
{
    rig      *r = self;
    siginfo_t info = {0};
    pid_t     pid = r->pid[number - 1];
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
    return info.si_pid == pid;
}

static void end(void *self, uint32_t number)
{
    rig *r = self;
    assert_int_equal(r->fate, FREEZES); /* no other member is killed */
    kill(r->pid[number - 1], SIGKILL);
}

/* ---- hub ------------------------------------------------------------------------------------- */

static void run_pool(void *self, const at_piece *pieces, uint32_t count)
{
    rig     *r = self;
    uint32_t members[MEMBERS], there = 0;
    (void)pieces;
    (void)count;
    for (uint32_t i = 0; i < r->joined; i++)
        if (!is_gone(r, i + 1)) members[there++] = i + 1;
    at_update_pool_run(r->pool, members, there, r->joins);
}

static const float *gradient_at(void *self, at_node worker, uint32_t slot)
{
    const rig *r = self;
    (void)slot;
    return r->gradient[worker - 1];
}

static void *share(size_t size)
{
    void *memory = at_child_share(size, NULL);
    assert_non_null(memory);
    return memory;
}

static void set_up(rig *r, const char *optim)
{
    at_rng rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, 0);
    r->learning = (at_learning){.trained = PARAMS, .clip = r->clip};
    assert_int_equal(at_optim_parse(optim, &hook.real, r->learning.number, NULL), AT_OK);
    hook.deadly = *hook.real;
    hook.deadly.update = update_or_die;
    r->learning.optim = &hook.deadly;
    assert_int_equal(at_schedule_parse("const", 0.01, 100, 0, &r->learning.rate[0].schedule, NULL),
                     AT_OK);
    r->w = share(PARAMS * sizeof(float));
    r->bell = share(sizeof *r->bell);
    r->step = share(sizeof *r->step);
    for (int i = 0; i < PIECES; i++) r->gradient[i] = share(PARAMS * sizeof(float));
    for (size_t i = 0; i < PARAMS; i++) {
        r->w[i] = (float)i / PARAMS;
        for (int k = 0; k < PIECES; k++) r->gradient[k][i] = (float)at_rng_normal(&rng);
    }
    assert_int_equal(at_updater_init_shared(&r->updater, &r->learning, r->w, PARAMS, PIECES, NULL),
                     AT_OK);
}

static void start_members(rig *r, member *members)
{
    at_update_pool_options options = {.updater = &r->updater,
                                      .members = MEMBERS,
                                      .hub_bell = r->bell,
                                      .world = {r, is_gone, end}};
    assert_int_equal(at_update_pool_open(&options, &r->pool, NULL), AT_OK);
    for (uint32_t i = 0; i < r->joined; i++) {
        members[i] = (member){r, i + 1};
        assert_int_equal(at_child_fork(member_main, &members[i], &r->pid[i], NULL), AT_OK);
    }
    r->updater.helpers = (at_update_helpers){r, run_pool};
}

static void tear_down(rig *r)
{
    for (uint32_t i = 0; i < r->joined; i++) at_child_end(r->pid[i]);
    at_update_pool_close(r->pool);
    at_updater_deinit(&r->updater);
    munmap(r->w, PARAMS * sizeof(float));
    munmap(r->bell, sizeof *r->bell);
    munmap(r->step, sizeof *r->step);
    for (int i = 0; i < PIECES; i++) munmap(r->gradient[i], PARAMS * sizeof(float));
}

static void take_steps(rig *r, bool folded)
{
    at_gradients where = {r, gradient_at};
    at_piece     pieces[PIECES] = {{.worker = 1, .samples = 2, .weight = 1},
                                   {.worker = 2, .samples = 3, .weight = 1}};
    for (uint64_t step = 1; step <= STEPS; step++) {
        at_action action = {.kind = AT_ACT_APPLY};
        atomic_store(r->step, step);
        action.as.apply.step = step;
        action.as.apply.samples = 5;
        action.as.apply.pieces = pieces;
        action.as.apply.count = PIECES;
        action.as.apply.folded = folded;
        action.as.apply.lr_factor = 1;
        for (int i = 0; folded && i < PIECES; i++) at_updater_add(&r->updater, &pieces[i], &where);
        at_updater_apply(&r->updater, &action, &where);
    }
}

static void stop(pid_t pid)
{
    siginfo_t info;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
}

/* Compares updates by a pool with those by this process alone. */
static void assert_same(const char *optim, rig pool, bool folded)
{
    static member members[MEMBERS];
    rig           alone = {.clip = pool.clip};
    set_up(&alone, optim);
    take_steps(&alone, folded);
    set_up(&pool, optim);
    start_members(&pool, members);
    for (uint32_t i = 0; pool.asleep && i < pool.joined; i++) stop(pool.pid[i]);
    take_steps(&pool, folded);
    assert_memory_equal(alone.w, pool.w, PARAMS * sizeof(float));
    for (uint32_t i = 0; i < alone.learning.optim->states; i++)
        assert_memory_equal(alone.updater.state[i], pool.updater.state[i], PARAMS * sizeof(float));
    for (uint32_t i = 0; i < pool.joined; i++) {
        bool gone = is_gone(&pool, i + 1); /* a hub that takes part may leave nothing to do */
        assert_true(gone == (pool.fate != LIVES) || (pool.joins && !gone));
    }
    tear_down(&pool);
    tear_down(&alone);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_pool_gives_the_bits_of_one_process(void **state)
{
    (void)state;
    for (const at_optim *const *optim = at_optims; *optim; optim++)
        for (int way = 0; way < 8; way++)
            assert_same((*optim)->name,
                        (rig){.joined = MEMBERS, .joins = way & 1, .clip = way & 4 ? 1 : 0},
                        way & 2);
}

static void one_member_or_none_is_enough(void **state)
{
    (void)state;
    for (uint32_t joined = 0; joined < 2; joined++)
        for (int joins = 0; joins < 2; joins++)
            assert_same("momentum", (rig){.joined = joined, .joins = joins}, false);
}

static void members_that_die_within_a_slice_change_no_bit(void **state)
{
    (void)state;
    for (const at_optim *const *optim = at_optims; *optim; optim++)
        for (int way = 0; way < 8; way++)
            assert_same(
                (*optim)->name,
                (rig){.joined = MEMBERS, .joins = way & 1, .fate = DIES, .clip = way & 4 ? 1 : 0},
                way & 2);
}

static void a_frozen_member_is_killed_and_its_slice_finished(void **state)
{
    (void)state;
    assert_same("adam", (rig){.joined = 2, .fate = FREEZES}, false);
}

static void a_hub_does_not_wait_for_members_that_have_not_begun(void **state)
{
    (void)state;
    assert_same("adam", (rig){.joined = 2, .joins = true, .asleep = true}, false);
}

static void a_member_without_an_assignment_does_nothing(void **state)
{
    rig    r = {.joined = 0};
    member none[1];
    (void)state;
    set_up(&r, "sgd");
    start_members(&r, none);
    assert_false(at_update_pool_work(r.pool, 1));
    tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pool_gives_the_bits_of_one_process),
        cmocka_unit_test(one_member_or_none_is_enough),
        cmocka_unit_test(members_that_die_within_a_slice_change_no_bit),
        cmocka_unit_test(a_frozen_member_is_killed_and_its_slice_finished),
        cmocka_unit_test(a_hub_does_not_wait_for_members_that_have_not_begun),
        cmocka_unit_test(a_member_without_an_assignment_does_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
