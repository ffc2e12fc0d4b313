/* Rounds of a seat: the functions of anytime.h over the driver of all workers. */
#include <assert.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine.h"
#include "base/rng.h"
#include "data/draw/sampler.h"
#include "world/local/local.h"
#include "world/seat/seat_client.h"

static const at_ns SLICE = AT_MS(50); /* how often a waiting seat looks whether its hub lives */

/* ---- transport ------------------------------------------------------------------------------- */

static uint32_t heard(void *self)
{
    at_seat *s = self;
    if (!s->link) return at_bell_heard(&at_seat_bells_of(s)->cast);
    at_seat_pump(s);
    return s->arrivals;
}

static bool is_over(const at_seat *s)
{
    return s->lost || atomic_load_explicit(&at_seat_slot_of(s)->evicted, memory_order_acquire);
}

/* Something for others (s->inbox) that nobody waits for is not the hub's fault: it came late. */
static void wait_for_link(at_seat *s, uint32_t heard_before, at_ns until)
{
    at_ns slice = at_clock_now() + SLICE;
    if (s->arrivals != heard_before || s->lost) return;
    s->interrupted = false;
    at_link_await(s->link, until < slice ? until : slice, &s->interrupted);
    at_seat_pump(s);
}

/* True when the connection has ended: a hub on another machine is noticed by reading. */
static bool is_hub_gone(const at_seat *s)
{
    return s->link ? s->lost : at_seat_hung_up(s->fd);
}

/* Waking a sleeping core takes longer than the hub does, so a seat that waits keeps its core for a
 * while, but lets the hub and other seats run there. Time that they take does not count. When some
 * other program took the core, sleeping is better for a while: sleepers are preferred when they are
 * woken, and who yields is not. True: something came. */
static bool spin(at_seat *s, uint32_t heard_before)
{
    enum { SPINS_SKIPPED = 256 };
    const at_ns alone = AT_US(5), taken = AT_MS(2);
    at_ns       spent = 0, now = at_clock_now();
    if (s->spins_skipped > 0) s->spins_skipped--;
    while (at_bell_heard(&at_seat_bells_of(s)->cast) == heard_before) {
        if (spent >= s->spin_ns || s->spins_skipped > 0) return false;
        sched_yield();
        at_ns before = now;
        now = at_clock_now();
        if (now - before < alone) spent += now - before;
        if (now - before > taken) s->spins_skipped = SPINS_SKIPPED;
    }
    return true;
}

/* The hub follows the only seat to its core (world/seat/seat_world.c), where this stays from its
 * report until the answer has come: with the hub at work there, the scheduler would move it. Only
 * this thread stays, and only for that time: the program may have others. True: it has begun to. */
static bool stay(at_seat *s)
{
    bool turns = atomic_load_explicit(&at_seat_board_of(s)->turns, memory_order_relaxed);
    if (!turns || s->cores.known) return false;
    s->cores = at_machine_stay();
    return s->cores.known;
}

static void unstay(at_seat *s)
{
    at_machine_unstay(&s->cores);
    s->cores.known = false;
}

static void wait(void *self, uint32_t heard_before, at_ns until)
{
    at_seat *s = self;
    if (s->link) {
        wait_for_link(s, heard_before, until);
        return;
    }
    at_ns now = at_clock_now(), slice = now + SLICE, limit = until < slice ? until : slice;
    bool  stays = stay(s), spins = !s->cores.known && limit - now > 10 * s->spin_ns;
    s->interrupted = false;
    if (spins && spin(s, heard_before)) return;
    s->interrupted = at_bell_wait(&at_seat_bells_of(s)->cast, heard_before, 1,
                                  at_bell_mask(s->rank + 1), limit, 0);
    if (stays) unstay(s);
    if (at_clock_now() >= slice && at_seat_hung_up(s->fd)) s->lost = true;
}

static bool interrupted(void *self)
{
    return ((at_seat *)self)->interrupted;
}

static bool leaves(void *self)
{
    at_seat *s = self;
    return atomic_load_explicit(&at_seat_slot_of(s)->leave, memory_order_acquire) || is_over(s);
}

static bool take_order(void *self, at_order *order)
{
    at_seat      *s = self;
    at_seat_slot *slot = at_seat_slot_of(s);
    for (;;) {
        uint64_t before = atomic_load_explicit(&slot->order_lock, memory_order_acquire);
        if (before == s->order_seen) return false;
        if (before % 2 == 0) {
            *order = slot->order;
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(&slot->order_lock, memory_order_relaxed) == before) {
                s->order_seen = before;
                return true;
            }
        } else if (is_hub_gone(s)) { /* it was killed in the middle of writing */
            s->lost = true;
            return false;
        }
        sched_yield();
    }
}

static uint64_t newest(void *self)
{
    return atomic_load_explicit(&at_seat_board_of(self)->version, memory_order_relaxed);
}

/* As in world/local: copied under a sequence lock, or read where they are. */
static uint64_t fetch(void *self)
{
    at_seat             *s = self;
    const at_seat_board *board = at_seat_board_of(s);
    for (;;) {
        uint64_t before = atomic_load_explicit(&board->params_lock, memory_order_acquire);
        if (before % 2 == 0) {
            uint64_t version = atomic_load_explicit(&board->version, memory_order_relaxed);
            if (s->overlay)
                at_seat_overlay_renew(s->copy, s->spec.floats);
            else if (s->copy && !s->spec.at_workers)
                memcpy(s->copy, s->newest, s->spec.floats * sizeof(float));
            atomic_thread_fence(memory_order_acquire);
            if (atomic_load_explicit(&board->params_lock, memory_order_relaxed) == before)
                return version;
        } else if (is_hub_gone(s)) {
            s->lost = true;
            return atomic_load_explicit(&board->version, memory_order_relaxed);
        }
        sched_yield();
    }
}

static const float *install(void *self)
{
    at_seat *s = self;
    return s->copy ? s->copy : s->newest;
}

static float *gradient(void *self, uint32_t slot)
{
    at_seat *s = self;
    return at_seat_slot_gradient(&s->slot_file, s->spec.floats, slot);
}

static bool send_report(void *self, const at_report *report)
{
    at_seat      *s = self;
    at_seat_slot *slot = at_seat_slot_of(s);
    uint64_t      sent = atomic_load_explicit(&slot->sent, memory_order_relaxed);
    if (is_over(s)) return true; /* nobody reads it */
    if (s->link) return at_seat_link_report(s, report);
    if (atomic_load(&slot->taken) < sent && !atomic_load(&slot->leave)) return false;
    at_seat_mail *mail = &slot->mail[sent % AT_SEAT_GRADIENTS];
    mail->report = *report;
    memcpy(mail->group, s->group, s->spec.groups * sizeof *s->group);
    atomic_store(&slot->sent, sent + 1);
    stay(s);
    at_bell_ring(&at_seat_bells_of(s)->hub);
    return true;
}

/* Where seats update, the hub keeps the parameters that a joiner begins with. */
static bool take_kept_params(at_seat *s)
{
    return at_seat_state_get(s, AT_SEAT_PARAMS_NAME, s->copy, s->spec.floats) ==
           (int64_t)s->spec.floats;
}

at_transport at_seat_transport(at_seat *s)
{
    return (at_transport){.self = s,
                          .heard = heard,
                          .wait = wait,
                          .leaves = leaves,
                          .take_order = take_order,
                          .newest = newest,
                          .fetch = fetch,
                          .install = install,
                          .gradient = gradient,
                          .send = send_report,
                          .interrupted = interrupted};
}

bool at_seat_begin(at_seat *s, const at_seat_welcome *welcome)
{
    assert(s->slot_file.memory);
    at_driver_options options = {.context = &s->context,
                                 .transport = at_seat_transport(s),
                                 .id = s->rank + 1,
                                 .incarnation = (uint32_t)welcome->incarnation,
                                 .slots = (uint32_t)welcome->slots,
                                 .sequence = (uint64_t)welcome->sequence,
                                 .drawn = &at_seat_slot_of(s)->drawn,
                                 .redrawn = (uint64_t)welcome->redrawn,
                                 .asks_to_report = true};
    at_driver_init(&s->driver, &options);
    s->closed = s->version = AT_VERSION_NONE;
    if (s->spec.at_workers) return take_kept_params(s);
    if (s->installs) fetch(s); /* everybody begins with the parameters of the first */
    return true;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Tells the hub that flags in the slot have changed. */
static void tell_flags(at_seat *s)
{
    if (s->link)
        at_seat_link_word(s, NULL);
    else
        at_bell_ring_loud(&at_seat_bells_of(s)->hub, AT_BELL_ALL);
}

/* Tells the hub that nothing more will come. */
static void say_left(at_seat *s)
{
    atomic_store(&at_seat_slot_of(s)->left, true);
    tell_flags(s);
}

/* What to do before computing, or at the end, where seats update. */
static void describe_update(at_seat *s, at_seat_order *order, uint64_t version)
{
    uint64_t asked = atomic_load(&at_seat_slot_of(s)->publish);
    if (!s->spec.at_workers) return;
    order->install = !s->installed;
    order->apply = version != s->applied;
    order->publish = asked != s->publish_seen;
    s->installed = true;
    s->applied = version;
    s->publish_seen = asked;
    s->publishing = order->publish;
}

/* Tells the hub that it has all tensors of this version. */
static void announce(at_seat *s)
{
    at_fail fail;
    if (!s->publishing) return;
    s->publishing = false;
    if (at_seat_tell(s, AT_SEAT_PUBLISHED, (at_seat_part){&s->applied, sizeof s->applied},
                     (at_seat_part){0}, at_clock_now() + AT_SEC(60), &fail))
        s->lost = true;
}

/* The hub orders its workers to leave after its last update, so the newest parameters are final. */
static int end(at_seat *s, at_seat_order *order)
{
    bool evicted = atomic_load(&at_seat_slot_of(s)->evicted);
    announce(s);
    s->ended = s->lost ? AT_SEAT_LOST : evicted ? AT_SEAT_EVICTED : AT_SEAT_DONE;
    s->stage = AT_SEAT_STAGE_OVER;
    s->in_micro = false;
    if (s->ended != AT_SEAT_DONE) return s->ended;
    s->version = fetch(s);
    s->driver.params = install(s);
    if (order) order->version = s->version;
    if (order) describe_update(s, order, s->version);
    /* The first seat may evaluate the final parameters before it leaves. */
    if (atomic_load(&at_seat_board_of(s)->first_rank) == s->rank) {
        atomic_store(&at_seat_slot_of(s)->aside, true);
        if (s->link) tell_flags(s);
    } else {
        say_left(s);
    }
    return s->ended;
}

/* The program keeps the parameters it has. While it is in a round the hub writes none; one that
 * leaves while it waits may have to look twice. */
static void keep_params(at_seat *s)
{
    enum { TRIES = 100 };
    if (!s->overlay) return;
    const _Atomic uint64_t *lock = &at_seat_board_of(s)->params_lock;
    for (int i = 0; s->overlay; i++) {
        uint64_t before = atomic_load_explicit(lock, memory_order_acquire);
        at_seat_overlay_keep(s->copy, s->spec.floats);
        atomic_thread_fence(memory_order_acquire);
        bool same = atomic_load_explicit(lock, memory_order_relaxed) == before;
        if ((same && before % 2 == 0) || i == TRIES || at_seat_hung_up(s->fd)) s->overlay = false;
        if (s->overlay) at_seat_overlay_renew(s->copy, s->spec.floats);
    }
}

void at_seat_leave(at_seat **seat)
{
    at_seat *s = *seat;
    *seat = NULL;
    if (!s) return;
    if (s->stage == AT_SEAT_STAGE_SEATED && s->in_micro) at_driver_return_micro(&s->driver);
    unstay(s);
    keep_params(s);
    if (s->stage >= AT_SEAT_STAGE_SEATED && s->slot_file.memory) {
        announce(s);
        say_left(s);
    }
    if (s->fd >= 0) close(s->fd);
    at_link_free(s->link);
    free(s->packed_params);
    free(s->packed_gradient);
    free(s->residual);
    at_tls_free(s->tls);
    at_seat_inbox_deinit(&s->inbox);
    at_seat_file_close(&s->incoming_file);
    at_seat_file_close(&s->params_file);
    at_seat_file_close(&s->bells_file);
    at_seat_file_close(&s->slot_file);
    at_pace_free(s->pace);
    at_spec_deinit(&s->spec);
    if (!s->installs) free(s->copy);
    free(s);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static at_ns wait_until(const at_seat *s)
{
    return s->wait_ms > 0 ? at_clock_now() + AT_MS(s->wait_ms) : AT_NEVER;
}

static void describe_order(at_seat *s, at_seat_order *order)
{
    uint64_t version = s->driver.version;
    *order = (at_seat_order){.version = version,
                             .position = s->micro.draw.position,
                             .samples_max = s->driver.machine.cut.samples_max,
                             .updated = s->closed != AT_VERSION_NONE && version != s->closed};
    s->closed = s->version = version;
    describe_update(s, order, version);
}

/* A joiner may wait for our parameters while we wait for an order. */
static bool is_asked_while_idle(const at_seat *s)
{
    return s->spec.at_workers && s->installed && s->driver.machine.state == AT_WORKER_WAITING &&
           atomic_load(&at_seat_slot_of(s)->publish) != s->publish_seen &&
           !leaves((void *)(uintptr_t)s);
}

static int next_round(at_seat *s, at_seat_order *order)
{
    *order = (at_seat_order){0};
    if (!s->rejoining) announce(s);
    if (s->stage == AT_SEAT_STAGE_OVER) return s->ended;
    for (at_ns until = wait_until(s); !s->in_micro;) {
        int joined = s->rejoining ? at_seat_rejoin(s) : AT_SEAT_JOINED;
        if (joined != AT_SEAT_JOINED) return joined;
        if (is_asked_while_idle(s)) {
            order->version = newest(s);
            describe_update(s, order, order->version);
            return AT_SEAT_AGAIN;
        }
        at_ns slice = s->spec.at_workers ? at_clock_now() + SLICE : AT_NEVER;
        switch (at_driver_turn(&s->driver, &s->micro, slice < until ? slice : until)) {
        case AT_DRIVER_MICRO: s->in_micro = true; break;
        case AT_DRIVER_ABANDONED: break;                     /* before its first micro-batch */
        case AT_DRIVER_ROUND_OVER: at_seat_report(s); break; /* the caller forgot it */
        case AT_DRIVER_FINISHED:
            if (!at_seat_comes_back(s)) return end(s, order);
            at_seat_rejoin_begin(s);
            break;
        case AT_DRIVER_WAITING:
            if (s->wait_ms > 0 && (s->interrupted || at_clock_now() >= until)) return AT_SEAT_AGAIN;
            break;
        }
    }
    if (!s->overwrites) memset(s->micro.gradient, 0, s->spec.floats * sizeof(float));
    describe_order(s, order);
    return AT_SEAT_WORK;
}

int at_seat_next(at_seat *s, at_seat_order *order)
{
    assert(s->stage >= AT_SEAT_STAGE_SEATED || s->rejoining);
    int status = next_round(s, order);
    unstay(s);
    return status;
}

const float *at_seat_params(const at_seat *s)
{
    return s->driver.params ? s->driver.params : s->copy ? s->copy : s->newest;
}

float *at_seat_gradient(const at_seat *s)
{
    return s->driver.gradient;
}

/* Where seats update, the last update is described by an order: at_seat_next says DONE. */
static int finish_round(at_seat *s)
{
    if (s->spec.at_workers && !is_over(s)) return AT_SEAT_ABANDON;
    if (!at_seat_comes_back(s)) return end(s, NULL);
    at_seat_rejoin_begin(s);
    return AT_SEAT_ABANDON;
}

int at_seat_more(at_seat *s, uint32_t samples, double loss_sum)
{
    if (s->stage == AT_SEAT_STAGE_OVER) return s->ended;
    if (s->rejoining) return AT_SEAT_ABANDON;
    if (s->in_micro) {
        assert(samples >= 1);
        announce(s);
        at_driver_done(&s->driver, samples, loss_sum);
        s->in_micro = false;
    }
    switch (at_driver_turn(&s->driver, &s->micro, wait_until(s))) {
    case AT_DRIVER_MICRO: break;
    case AT_DRIVER_ABANDONED: return AT_SEAT_ABANDON;
    case AT_DRIVER_ROUND_OVER: return AT_SEAT_REPORT;
    case AT_DRIVER_FINISHED: return finish_round(s);
    case AT_DRIVER_WAITING: return AT_SEAT_AGAIN;
    }
    bool refreshed = s->driver.version != s->version;
    s->in_micro = true;
    s->version = s->driver.version;
    return refreshed ? AT_SEAT_REFRESHED : AT_SEAT_MORE;
}

/* The hub divides by samples, which makes the mean of the buffers weighted by them. */
static void weigh_buffers(at_seat *s)
{
    float samples = (float)s->driver.machine.work.samples, *values = s->driver.gradient;
    for (size_t i = s->spec.trained; i < s->spec.floats; i++) values[i] *= samples;
}

void at_seat_report(at_seat *s)
{
    if (s->stage != AT_SEAT_STAGE_SEATED || s->in_micro) return;
    weigh_buffers(s);
    at_driver_report(&s->driver);
}

/* ---- facts ----------------------------------------------------------------------------------- */

void at_seat_facts_get(const at_seat *s, at_seat_facts *facts)
{
    assert(s->slot_file.memory);
    const at_seat_board *board = at_seat_board_of(s);
    *facts = (at_seat_facts){.rank = s->rank,
                             .workers = atomic_load(&board->present),
                             .workers_start = s->workers_start,
                             .first = atomic_load(&board->first_rank) == s->rank,
                             .version = atomic_load(&board->version),
                             .seed = s->seed,
                             .samples_used = atomic_load(&board->samples_used),
                             .samples = s->spec.samples,
                             .floats = s->spec.floats,
                             .drawn = atomic_load(&at_seat_slot_of(s)->drawn)};
}

uint64_t at_seat_random(const at_seat *s, uint64_t position)
{
    at_rng rng = at_rng_stream(s->seed, s->rank + 1, AT_RNG_PURPOSE_NOISE, position);
    return at_rng_next(&rng);
}

uint64_t at_seat_sample(const at_seat *s, uint64_t position, uint64_t samples)
{
    at_sampler sampler;
    at_fail    fail;
    assert(samples >= 1);
    at_err err =
        at_sampler_init(&sampler, s->seed, s->rank + 1, s->workers_start, samples, false, &fail);
    assert(!err); /* only shards can be too small */
    return at_sampler_index(&sampler, position);
}

/* ---- beside the gradients -------------------------------------------------------------------- */

void at_seat_group_set(at_seat *s, uint32_t group, const at_seat_group *values)
{
    at_torch_kind kind = at_spec_kind(s->spec.optimizer);
    if (group < s->spec.groups && at_seat_group_valid(kind, values)) s->group[group] = *values;
}

/* When the hub has not read the earlier ones, this one is dropped. */
void at_seat_evaluated(at_seat *s, uint64_t version, double accuracy, double loss)
{
    at_seat_slot *slot = at_seat_slot_of(s);
    uint64_t      sent = atomic_load_explicit(&slot->scores_sent, memory_order_relaxed);
    if (sent - atomic_load(&slot->scores_taken) >= AT_SEAT_SCORES) return;
    slot->score[sent % AT_SEAT_SCORES] = (at_seat_score){version, accuracy, loss};
    atomic_store(&slot->scores_sent, sent + 1);
    if (s->link) {
        at_seat_link_word(s, &slot->score[sent % AT_SEAT_SCORES]);
        return;
    }
    at_bell_ring_loud(&at_seat_bells_of(s)->hub, AT_BELL_ALL);
}

void at_seat_aside(at_seat *s, int begins)
{
    at_ns now = at_clock_now();
    if (begins && s->aside_since == 0) {
        s->aside_since = now;
        atomic_store(&at_seat_slot_of(s)->aside, true);
        tell_flags(s);
    } else if (!begins && s->aside_since > 0) {
        if (s->stage == AT_SEAT_STAGE_SEATED) at_driver_shift(&s->driver, now - s->aside_since);
        s->aside_since = 0;
        atomic_store(&at_seat_slot_of(s)->aside, false);
        if (s->link) tell_flags(s);
    }
}

const float *at_seat_mean(const at_seat *s)
{
    return s->newest;
}

void at_seat_publish(at_seat *s, const float *params)
{
    (void)at_seat_state_put(s, AT_SEAT_PARAMS_NAME, params, s->spec.floats);
}
