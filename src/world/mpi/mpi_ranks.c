#include "world/mpi/mpi_ranks.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "world/process/alive.h"
#include "world/process/signals.h"

enum {
    CHUNK = 1 << 18, /* floats: large enough for bandwidth, small enough to show progress */
    WINDOW = 4,      /* chunks summed at a time */
    CALL_TURN = WINDOW,
    CALL_USER /* first user call; then the notice to receive, and those to send to each rank: one
               * call for requests, one for the loss */
};
#define REQUEST (UINT32_MAX - 1) /* a notice that requests an answer, instead of a lost rank */

/* Requests are sent from here, which never changes: one may still be under way when a loss is
 * announced. */
static const uint32_t request_notice = REQUEST;

static const at_ns WATCH_EVERY = AT_MS(50);
static const at_ns YIELD_MAX = AT_MS(10);

/* A rank sends nothing during a whole round, and rounds may take any time. */
static const at_ns PATIENCE_MIN = AT_SEC(60);
static const at_ns PATIENCE_STOPPED = AT_MS(500);
static const at_ns FAREWELL_MAX = AT_MS(300);
static const at_ns FIRST_MAX = AT_SEC(10);
static const at_ns LISTEN_LAST = AT_MS(20);

_Static_assert(AT_TURN_MESSAGE % AT_MESSAGE_UNIT == 0, "turns are whole units");

uint32_t at_mpi_ranks_call(const at_mpi_ranks *r, uint32_t i)
{
    assert(i < r->user_calls);
    return CALL_USER + i;
}

static uint32_t call_notice(const at_mpi_ranks *r)
{
    assert(r->launcher->size >= 1);
    return CALL_USER + r->user_calls;
}

static uint32_t call_to(const at_mpi_ranks *r, uint32_t rank)
{
    assert(rank < r->launcher->size);
    return call_notice(r) + 1 + rank;
}

/* Requests have calls of their own. */
static uint32_t call_ask(const at_mpi_ranks *r, uint32_t rank)
{
    return call_to(r, rank) + r->launcher->size;
}

/* ---- detecting losses ------------------------------------------------------------------------ */

static void lose(at_mpi_ranks *r, uint32_t rank)
{
    assert(rank == UINT32_MAX || rank < r->launcher->size);
    if (!r->broken) r->lost = rank;
    r->broken = true;
}

/* MPI does not work any more, for one call or for all. */
static void lose_mpi(at_mpi_ranks *r, const at_fail *fail)
{
    assert(fail->err);
    if (!r->broken) r->fail = *fail;
    lose(r, UINT32_MAX);
}

void at_mpi_ranks_blame(at_mpi_ranks *r, uint32_t rank, const at_fail *fail)
{
    assert(rank < r->launcher->size);
    if (!r->broken) {
        r->fail = *fail;
        at_fail_wrap(&r->fail, "rank %u on %s", rank, r->hello[rank].host);
    }
    lose(r, rank);
}

static bool receive(at_mpi_ranks *r);

/* A rank that is gone may have left because it lost another one. It announced that rank before it
 * left, and the announcement takes precedence. */
static void check_processes(at_mpi_ranks *r)
{
    at_ns since = at_clock_now();
    assert(r->near);
    for (uint32_t i = 0; i < r->launcher->size; i++)
        if (r->near[i] && !at_alive(r->hello[i].pid, r->hello[i].born)) lose(r, i);
    while (r->broken && at_clock_now() - since < LISTEN_LAST) {
        receive(r);
        at_backoff_nap(&r->backoff, AT_NEVER);
    }
}

/* After a signal to stop, a silent rank counts as lost soon: the launcher may be about to kill all
 * ranks, and a checkpoint must be saved before that. */
static void watch(at_mpi_ranks *r)
{
    at_ns now = at_clock_now(), listened = at_listening_clock_now(&r->clock, now);
    assert(r->calls);
    if (now - r->watched_at < WATCH_EVERY) return;
    r->watched_at = now;
    check_processes(r);
    at_ns silent = listened - r->detector.heard;
    bool  tolerable = r->detector.lease == 0 && silent <= PATIENCE_MIN;
    if (!tolerable && at_failure_detector_is_gone(&r->detector, listened)) lose(r, UINT32_MAX);
    if (silent > PATIENCE_STOPPED && at_signals_stop()) lose(r, UINT32_MAX);
}

/* When all ranks take part they are summing, which takes processor time on every core, so this one
 * is yielded. If it takes long, a rank may be in trouble. */
static void pause_for(at_mpi_ranks *r, bool progress)
{
    at_ns now = at_clock_now();
    assert(r->calls);
    if (progress) {
        at_backoff_end(&r->backoff);
        r->progress_at = now;
    } else if (r->met && now - r->progress_at < YIELD_MAX) {
        sched_yield();
    } else {
        at_backoff_nap(&r->backoff, AT_NEVER);
        watch(r);
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

static size_t chunks_of(const at_mpi_sum *sum)
{
    return (sum->count + CHUNK - 1) / CHUNK;
}

/* Where the i-th chunk begins, in the order in which they become final: from the end of the trained
 * part to its start, then what has statistics. All ranks must follow this order. */
static size_t chunk_at(const at_mpi_sum *sum, size_t i)
{
    size_t trained = sum->trained == sum->count ? chunks_of(sum) : sum->trained / CHUNK;
    assert(sum->trained <= sum->count);
    return (i < trained ? trained - 1 - i : i) * CHUNK;
}

/* Starts to sum the next chunks as far as calls are free and numbers are final: `from` .. trained,
 * or with `from` 0 and `all` everything. */
static void sum_more(at_mpi_ranks *r, const at_mpi_sum *sum, size_t from, bool all)
{
    for (uint32_t i = 0; i < WINDOW && r->begun < chunks_of(sum); i++) {
        size_t first = chunk_at(sum, r->begun), left = sum->count - first;
        size_t size = left < CHUNK ? left : CHUNK;
        bool   final = all || (first >= from && first + size <= sum->trained);
        if (!final) return;
        if (at_mpi_is_open(r->calls, i)) continue;
        at_mpi_sum_all(r->calls, i, sum->floats + first, size);
        r->begun++;
    }
}

static bool is_any_open(const at_mpi_ranks *r)
{
    assert(r->calls);
    for (uint32_t i = 0; i < call_notice(r); i++)
        if (at_mpi_is_open(r->calls, i)) return true;
    return false;
}

/* A notice names a rank that another one has found to be lost, or it is a request. */
static void process_notice(at_mpi_ranks *r, const at_mpi_done *done)
{
    at_fail fail;
    assert(done->rank < r->launcher->size);
    if (done->units == 1 && r->notice == REQUEST) {
        r->requester = done->rank;
    } else if (done->units != 1 || (r->notice != UINT32_MAX && r->notice >= r->launcher->size)) {
        at_fail_set(&fail, AT_ERR_FORMAT, "use the same anytime on all machines",
                    "its message is malformed: it announces the loss of rank %u", r->notice);
        at_mpi_ranks_blame(r, done->rank, &fail);
    } else {
        lose(r, r->notice);
        if (r->notice != UINT32_MAX) r->lost = r->notice;
    }
}

/* The end of any collective call proves that the other ranks are alive. */
static bool receive(at_mpi_ranks *r)
{
    const at_mpi_done *done;
    at_fail            fail;
    uint32_t           count = at_mpi_poll(r->calls, &done);
    assert(r->calls);
    for (uint32_t i = 0; i < count; i++) {
        if (at_mpi_check(done[i].error, "an exchange with the other ranks", &fail))
            lose_mpi(r, &fail);
        else if (done[i].call == call_notice(r))
            process_notice(r, &done[i]);
        else if (done[i].call <= CALL_TURN)
            r->met = true;
    }
    if (at_mpi_calls_check(r->calls, &fail)) lose_mpi(r, &fail);
    if (!at_mpi_is_open(r->calls, call_notice(r)))
        at_mpi_receive(r->calls, call_notice(r), &r->notice, 1, AT_MPI_ANY_RANK, AT_MPI_TAG_NOTE);
    if (count > 0) at_failure_detector_beat(&r->detector, r->clock.listened, true);
    return count > 0;
}

/* A request may arrive before `answer` is set. */
static void answer(at_mpi_ranks *r)
{
    assert(r->launcher);
    if (r->requester == UINT32_MAX || !r->answer) return;
    r->answer(r->self, r->requester);
    r->requester = UINT32_MAX;
}

void at_mpi_ranks_sum_early(at_mpi_ranks *r, const at_mpi_sum *sum, size_t from)
{
    assert(sum->floats && from <= sum->trained);
    if (r->broken) return;
    if (r->begun == 0) r->met = false;
    sum_more(r, sum, from, false);
    receive(r);
}

/* Waits until all calls have ended. */
static bool settle(at_mpi_ranks *r)
{
    at_listening_clock_now(&r->clock, at_clock_now());
    do {
        bool progress = receive(r);
        answer(r);
        if (is_any_open(r)) pause_for(r, progress);
    } while (!r->broken && is_any_open(r));
    at_backoff_end(&r->backoff);
    return !r->broken;
}

bool at_mpi_ranks_settle(at_mpi_ranks *r)
{
    assert(r->calls);
    return settle(r);
}

/* Starts all chunks that were not started early. */
static void sum_rest(at_mpi_ranks *r, const at_mpi_sum *sum)
{
    at_listening_clock_now(&r->clock, at_clock_now());
    for (;;) {
        sum_more(r, sum, 0, true);
        if (r->broken || r->begun == chunks_of(sum)) return;
        bool progress = receive(r);
        answer(r);
        pause_for(r, progress);
    }
}

/* Collective calls have one order on all ranks, however early some of them sum: chunks, then turns.
 */
static bool gather(at_mpi_ranks *r, const void *mine, void *all, size_t size, const at_mpi_sum *sum)
{
    assert(mine && all);
    assert(size % AT_MESSAGE_UNIT == 0);
    if (r->begun == 0) r->met = false;
    sum_rest(r, sum);
    if (r->broken) return false;
    at_mpi_gather_all(r->calls, CALL_TURN, mine, all, size / AT_MESSAGE_UNIT);
    r->begun = 0;
    return settle(r);
}

void at_mpi_ranks_ask(at_mpi_ranks *r, uint32_t rank)
{
    assert(rank != r->launcher->rank);
    if (at_mpi_is_open(r->calls, call_ask(r, rank))) return; /* it will answer the one before */
    at_mpi_send(r->calls, call_ask(r, rank), &request_notice, 1, rank, AT_MPI_TAG_NOTE);
}

/* All ranks read the same bytes, so a malformed turn ends the exchange on all of them. */
static bool read_turns(at_mpi_ranks *r, const unsigned char *received)
{
    at_turn_message turn;
    at_fail         fail;
    assert(!r->broken);
    for (uint32_t i = 0; i < r->launcher->size && !r->broken; i++) {
        if (at_turn_message_read(received + (size_t)i * AT_TURN_MESSAGE, AT_TURN_MESSAGE, &turn,
                                 &fail))
            at_mpi_ranks_blame(r, i, &fail);
        else
            r->turn[i] = turn;
    }
    return !r->broken;
}

bool at_mpi_ranks_take_turns(at_mpi_ranks *r, const at_turn_message *mine, const at_mpi_sum *sum)
{
    /* Never released: after a loss MPI may still use them. */
    static unsigned char  sent[AT_TURN_MESSAGE];
    static unsigned char *received;
    assert(mine);
    if (!received) received = malloc((size_t)r->launcher->size * AT_TURN_MESSAGE);
    if (!received) {
        at_fail fail;
        at_fail_memory(&fail);
        lose_mpi(r, &fail);
        return false;
    }
    at_turn_message_write(sent, mine);
    return gather(r, sent, received, sizeof sent, sum) && read_turns(r, received);
}

/* ---- start and end --------------------------------------------------------------------------- */

/* Why the exchange ended before the first step. */
static at_err stop_with(const at_mpi_ranks *r, at_fail *fail)
{
    assert(r->broken);
    if (!r->fail.err)
        return at_fail_set(fail, AT_ERR_FAILED,
                           "check that all machines are up and reach each other",
                           "a rank was lost before the first step");
    *fail = r->fail;
    return fail->err;
}

static at_err introduce(at_mpi_ranks *r, const at_worker_note *hello, at_fail *fail)
{
    static unsigned char mine[AT_WORKER_NOTE];
    unsigned char       *all = malloc((size_t)r->launcher->size * AT_WORKER_NOTE);
    assert(hello->kind == AT_WORKER_NOTE_HELLO);
    if (!all) return at_fail_memory(fail);
    at_worker_note_write(mine, hello);
    if (!gather(r, mine, all, sizeof mine,
                &(at_mpi_sum){0})) /* `all` leaks: MPI may still use it */
        return stop_with(r, fail);
    for (uint32_t i = 0; i < r->launcher->size; i++) {
        if (at_worker_note_read(all + (size_t)i * AT_WORKER_NOTE, AT_WORKER_NOTE, &r->hello[i],
                                fail) != AT_OK)
            return at_fail_wrap(fail, "rank %u", i);
        r->near[i] = strcmp(r->hello[i].host, hello->host) == 0 && i != r->launcher->rank &&
                     at_alive(r->hello[i].pid, r->hello[i].born);
    }
    free(all);
    return AT_OK;
}

/* Ranks finish the exchange at about the same moment. On one machine the clocks are equal anyway.
 */
static at_err compare_clocks(at_mpi_ranks *r, at_fail *fail)
{
    at_turn_message mine = {.now = at_clock_now()};
    assert(!r->broken);
    if (!at_mpi_ranks_take_turns(r, &mine, &(at_mpi_sum){0})) return stop_with(r, fail);
    bool here = strcmp(r->hello[0].host, r->hello[r->launcher->rank].host) == 0;
    r->ahead = here ? 0 : r->turn[0].now - mine.now;
    return AT_OK;
}

at_err at_mpi_ranks_open(at_mpi_ranks *r, const at_launcher *launcher, const at_worker_note *hello,
                         uint32_t calls, at_ns spin_ns, at_ns lease, at_fail *fail)
{
    assert(launcher->rank < launcher->size);
    *r = (at_mpi_ranks){.launcher = launcher,
                        .user_calls = calls,
                        .backoff = {.spin_ns = spin_ns},
                        .lost = UINT32_MAX,
                        .requester = UINT32_MAX};
    r->calls = at_mpi_calls_new(CALL_USER + calls + 1 + 2 * launcher->size);
    r->hello = calloc(launcher->size, sizeof *r->hello);
    r->near = calloc(launcher->size, sizeof *r->near);
    r->turn = calloc(launcher->size, sizeof *r->turn);
    if (!r->calls || !r->hello || !r->near || !r->turn) return at_fail_memory(fail);
    AT_TRY(at_mpi_start(launcher, fail));
    at_failure_detector_init(&r->detector, at_listening_clock_now(&r->clock, at_clock_now()),
                             lease);
    AT_TRY(introduce(r, hello, fail));
    return compare_clocks(r, fail);
}

at_ns at_mpi_ranks_now(const at_mpi_ranks *r)
{
    return at_clock_now() + r->ahead;
}

/* Sends the number of the lost rank to all others and waits a moment for them to receive it; those
 * that learned of it from another rank may have left. */
static void announce_loss(at_mpi_ranks *r)
{
    at_ns    since = at_clock_now();
    uint32_t size = r->launcher->size;
    bool     heard = false;
    assert(r->calls);
    assert(r->broken);
    r->announced = r->lost;
    for (uint32_t i = 0; i < size; i++)
        if (i != r->launcher->rank && i != r->lost && !at_mpi_is_open(r->calls, call_to(r, i)))
            at_mpi_send(r->calls, call_to(r, i), &r->announced, 1, i, AT_MPI_TAG_NOTE);
    while (!heard && at_clock_now() - since < FAREWELL_MAX) {
        receive(r);
        heard = true;
        for (uint32_t i = 0; i < size; i++)
            heard = heard && !at_mpi_is_open(r->calls, call_to(r, i));
        if (!heard) at_backoff_nap(&r->backoff, AT_NEVER);
    }
}

bool at_mpi_ranks_part(at_mpi_ranks *r)
{
    if (!r->calls) return true; /* it could not be opened */
    if (!r->broken) at_mpi_cancel(r->calls, call_notice(r));
    if (r->broken) announce_loss(r);
    return !r->broken;
}

void at_mpi_ranks_await_first(at_mpi_ranks *r)
{
    at_ns since = at_clock_now();
    assert(r->broken && r->launcher->rank > 0);
    while (r->lost != 0 && at_clock_now() - since < FIRST_MAX) {
        if (r->near[0] && !at_alive(r->hello[0].pid, r->hello[0].born)) return;
        receive(r);
        at_backoff_nap(&r->backoff, AT_NEVER);
    }
}

bool at_mpi_ranks_is_buried(const at_mpi_ranks *r)
{
    assert(r->broken);
    bool seen = r->lost != UINT32_MAX && r->near[r->lost];
    return seen && !at_alive(r->hello[r->lost].pid, r->hello[r->lost].born);
}
