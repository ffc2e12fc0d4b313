#include "world/mpi/mpi_ranks.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "world/process/alive.h"
#include "world/process/signals.h"

enum {
    CHUNK = 1 << 18, /* floats: large enough for bandwidth, small enough for its ends to be seen */
    WINDOW = 4,      /* chunks that are added up at a time */
    CALL_TURN = WINDOW,
    CALL_OTHERS /* then those of our user, the word that we listen for, and ours to each rank */
};
#define ASKS (UINT32_MAX - 1) /* a word that is no rank's number: answer, please */
static const at_ns WATCH_EVERY = AT_MS(50);
static const at_ns YIELD_MAX = AT_MS(10);

/* A rank computes for a whole round without a word, and how long rounds get is nobody's promise. */
static const at_ns PATIENCE_MIN = AT_SEC(60);
static const at_ns PATIENCE_STOPPED = AT_MS(500);
static const at_ns FAREWELL_MAX = AT_MS(300);
static const at_ns LISTEN_LAST = AT_MS(20);

_Static_assert(sizeof(at_mpi_turn) % AT_MESSAGE_UNIT == 0, "turns move in units");

uint32_t at_mpi_ranks_call(const at_mpi_ranks *r, uint32_t i)
{
    assert(i < r->others);
    return CALL_OTHERS + i;
}

static uint32_t call_word(const at_mpi_ranks *r)
{
    return CALL_OTHERS + r->others;
}

static uint32_t call_to(const at_mpi_ranks *r, uint32_t rank)
{
    assert(rank < r->launcher->size);
    return call_word(r) + 1 + rank;
}

/* ---- who is there ---------------------------------------------------------------------------- */

static void lose(at_mpi_ranks *r, uint32_t rank)
{
    if (!r->broken) r->lost = rank;
    r->broken = true;
}

static bool hear(at_mpi_ranks *r);

/* Somebody who is gone may have left because of another, who is the one that was lost. Before it
 * left it said so, and its word counts for more than what we see. */
static void look_at_processes(at_mpi_ranks *r)
{
    at_ns since = at_clock_now();
    for (uint32_t i = 0; i < r->launcher->size; i++)
        if (r->near[i] && !at_alive(r->hello[i].pid, r->hello[i].born)) lose(r, i);
    while (r->broken && at_clock_now() - since < LISTEN_LAST) {
        hear(r);
        at_backoff_nap(&r->backoff, AT_NEVER);
    }
}

/* Told to end while somebody does not answer: the launcher may be about to end everybody, and there
 * is only a moment left to save what there is. */
static void watch(at_mpi_ranks *r)
{
    at_ns now = at_clock_now(), listened = at_listening_clock_now(&r->ear, now);
    if (now - r->watched_at < WATCH_EVERY) return;
    r->watched_at = now;
    look_at_processes(r);
    at_ns silent = listened - r->detector.heard;
    if (silent > PATIENCE_MIN && at_failure_detector_is_gone(&r->detector, listened))
        lose(r, UINT32_MAX);
    if (silent > PATIENCE_STOPPED && at_signals_stop()) lose(r, UINT32_MAX);
}

/* Once all turns are heard everybody is here, and what we wait for is done by others who need a
 * core for it: ours, if they like. Only when that takes long is somebody in trouble. */
static void nap(at_mpi_ranks *r, bool news)
{
    at_ns now = at_clock_now();
    bool  summing = !at_mpi_is_open(r->calls, CALL_TURN);
    if (news) {
        at_backoff_end(&r->backoff);
        r->news_at = now;
    } else if (summing && now - r->news_at < YIELD_MAX) {
        sched_yield();
    } else {
        at_backoff_nap(&r->backoff, AT_NEVER);
        watch(r);
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Begins to add up the next chunks as far as there are calls for them; returns how far it came. */
static size_t sum_more(at_mpi_ranks *r, float *floats, size_t begun, size_t count)
{
    for (uint32_t i = 0; i < WINDOW && begun < count; i++) {
        if (at_mpi_is_open(r->calls, i)) continue;
        size_t size = count - begun < CHUNK ? count - begun : CHUNK;
        at_mpi_sum_all(r->calls, i, floats + begun, size);
        begun += size;
    }
    return begun;
}

static bool is_any_open(const at_mpi_ranks *r)
{
    for (uint32_t i = 0; i < call_word(r); i++)
        if (at_mpi_is_open(r->calls, i)) return true;
    return false;
}

/* A word about a loss tells what others have seen where we cannot look. Instead of a rank's number
 * it may be a question, or the note of a rank that has failed before it came to us. */
static void heed_word(at_mpi_ranks *r, const at_mpi_done *done)
{
    at_worker_note note;
    uint32_t       lost = done->rank;
    if (done->units == 1) memcpy(&lost, r->word, sizeof lost);
    if (lost == ASKS) {
        r->asker = done->rank;
        return;
    }
    if (done->units > 1 && at_worker_note_read(r->word, &note) && note.fail.err)
        r->hello[done->rank] = note;
    lose(r, lost);
    if (lost != UINT32_MAX) r->lost = lost;
}

/* The others are heard when something ended that all of us had begun. */
static bool hear(at_mpi_ranks *r)
{
    const at_mpi_done *done;
    uint32_t           count = at_mpi_poll(r->calls, &done);
    for (uint32_t i = 0; i < count; i++)
        if (done[i].call == call_word(r)) heed_word(r, &done[i]);
    if (!at_mpi_is_open(r->calls, call_word(r)))
        at_mpi_receive(r->calls, call_word(r), r->word, sizeof r->word / AT_MESSAGE_UNIT,
                       AT_MPI_ANYBODY, AT_MPI_TAG_NOTE);
    if (count > 0) at_failure_detector_beat(&r->detector, r->ear.listened, true);
    return count > 0;
}

/* A question may come before there is somebody to answer it. */
static void answer(at_mpi_ranks *r)
{
    if (r->asker == UINT32_MAX || !r->answer) return;
    r->answer(r->self, r->asker);
    r->asker = UINT32_MAX;
}

/* Waits until all that was begun has ended, and the floats are added up. */
static bool settle(at_mpi_ranks *r, float *floats, size_t count)
{
    size_t begun = 0;
    at_listening_clock_now(&r->ear, at_clock_now());
    do {
        begun = sum_more(r, floats, begun, count);
        bool news = hear(r);
        answer(r);
        if (is_any_open(r)) nap(r, news);
    } while (!r->broken && (begun < count || is_any_open(r)));
    at_backoff_end(&r->backoff);
    return !r->broken;
}

bool at_mpi_ranks_settle(at_mpi_ranks *r)
{
    return settle(r, NULL, 0);
}

static bool gather(at_mpi_ranks *r, const void *mine, void *all, size_t size, float *floats,
                   size_t count)
{
    assert(size % AT_MESSAGE_UNIT == 0);
    at_mpi_gather_all(r->calls, CALL_TURN, mine, all, size / AT_MESSAGE_UNIT);
    return settle(r, floats, count);
}

void at_mpi_ranks_ask(at_mpi_ranks *r, uint32_t rank)
{
    r->said = ASKS;
    at_mpi_send(r->calls, call_to(r, rank), &r->said, 1, rank, AT_MPI_TAG_NOTE);
}

bool at_mpi_ranks_take_turns(at_mpi_ranks *r, const at_mpi_turn *mine, float *floats, size_t count)
{
    /* Both stay where they are for good: after a loss MPI may still use them. */
    static at_mpi_turn  said;
    static at_mpi_turn *heard;
    size_t              size = r->launcher->size * sizeof *heard;
    if (!heard) heard = malloc(size);
    if (!heard) return false;
    said = *mine;
    if (!gather(r, &said, heard, sizeof said, floats, count)) return false;
    memcpy(r->turn, heard, size);
    return true;
}

/* ---- introductions --------------------------------------------------------------------------- */

static at_err check_hello(const at_mpi_ranks *r, uint32_t rank, at_fail *fail)
{
    const at_worker_note *first = &r->hello[0], *hello = &r->hello[rank];
    if (hello->fail.err) {
        *fail = hello->fail;
        if (rank > 0) at_fail_wrap(fail, "rank %u on %s", rank, hello->host);
        return fail->err;
    }
    if (r->broken || hello->fingerprint == first->fingerprint) return AT_OK;
    return at_fail_set(
        fail, AT_ERR_USAGE,
        "use the same anytime, model and data, and machines with the same vector units",
        "rank %u on %s has another program, model or data than rank 0 on %s", rank, hello->host,
        first->host);
}

static at_err introduce(at_mpi_ranks *r, const at_worker_note *hello, at_fail *fail)
{
    static unsigned char mine[AT_WORKER_NOTE];
    unsigned char       *all = malloc((size_t)r->launcher->size * AT_WORKER_NOTE);
    if (!all) return at_fail_memory(fail);
    at_worker_note_write(mine, hello);
    if (!gather(r, mine, all, sizeof mine, NULL, 0)) { /* `all` stays: MPI may still use it */
        if (r->lost != UINT32_MAX) AT_TRY(check_hello(r, r->lost, fail));
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "some ranks have not come");
    }
    for (uint32_t i = 0; i < r->launcher->size; i++) {
        bool valid = at_worker_note_read(all + (size_t)i * AT_WORKER_NOTE, &r->hello[i]);
        assert(valid);
        r->near[i] = strcmp(r->hello[i].host, hello->host) == 0 && i != r->launcher->rank &&
                     at_alive(r->hello[i].pid, r->hello[i].born);
    }
    free(all);
    for (uint32_t i = 0; i < r->launcher->size; i++) AT_TRY(check_hello(r, i, fail));
    return AT_OK;
}

/* The moment in which all have heard all is about the same everywhere. On one machine clocks are
 * the same anyway. */
static at_err compare_clocks(at_mpi_ranks *r, at_fail *fail)
{
    at_mpi_turn mine = {.now = at_clock_now()};
    if (!at_mpi_ranks_take_turns(r, &mine, NULL, 0))
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "a rank was lost before the first step");
    bool here = strcmp(r->hello[0].host, r->hello[r->launcher->rank].host) == 0;
    r->ahead = here ? 0 : r->turn[0].now - mine.now;
    return AT_OK;
}

at_err at_mpi_ranks_open(at_mpi_ranks *r, const at_launcher *launcher, const at_worker_note *hello,
                         uint32_t calls, at_ns spin_ns, at_fail *fail)
{
    *r = (at_mpi_ranks){.launcher = launcher,
                        .others = calls,
                        .backoff = {.spin_ns = spin_ns},
                        .lost = UINT32_MAX,
                        .asker = UINT32_MAX};
    r->calls = at_mpi_calls_new(CALL_OTHERS + calls + 1 + launcher->size);
    r->hello = calloc(launcher->size, sizeof *r->hello);
    r->near = calloc(launcher->size, sizeof *r->near);
    r->turn = calloc(launcher->size, sizeof *r->turn);
    if (!r->calls || !r->hello || !r->near || !r->turn) return at_fail_memory(fail);
    AT_TRY(at_mpi_start(launcher, fail));
    at_failure_detector_init(&r->detector, at_listening_clock_now(&r->ear, at_clock_now()));
    AT_TRY(introduce(r, hello, fail));
    return compare_clocks(r, fail);
}

at_ns at_mpi_ranks_now(const at_mpi_ranks *r)
{
    return at_clock_now() + r->ahead;
}

/* Says who is lost to everybody else, and gives them a moment to hear it; whoever has heard it from
 * another may have left. */
static void spread_word(at_mpi_ranks *r)
{
    at_ns    since = at_clock_now();
    uint32_t size = r->launcher->size;
    bool     heard = false;
    r->said = r->lost;
    for (uint32_t i = 0; i < size; i++)
        if (i != r->launcher->rank && i != r->lost)
            at_mpi_send(r->calls, call_to(r, i), &r->said, 1, i, AT_MPI_TAG_NOTE);
    while (!heard && at_clock_now() - since < FAREWELL_MAX) {
        hear(r);
        heard = true;
        for (uint32_t i = 0; i < size; i++)
            heard = heard && !at_mpi_is_open(r->calls, call_to(r, i));
        if (!heard) at_backoff_nap(&r->backoff, AT_NEVER);
    }
}

bool at_mpi_ranks_part(at_mpi_ranks *r)
{
    if (!r->broken) at_mpi_cancel(r->calls, call_word(r));
    if (r->broken) spread_word(r);
    return !r->broken;
}

bool at_mpi_ranks_is_buried(const at_mpi_ranks *r)
{
    assert(r->broken);
    bool seen = r->lost != UINT32_MAX && r->near[r->lost];
    return seen && !at_alive(r->hello[r->lost].pid, r->hello[r->lost].born);
}
