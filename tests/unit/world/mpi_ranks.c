/* The exchange among equal ranks, over an MPI that is simulated here: this program defines what
 * mpi_comm.h declares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_mpi.h"
#include "world/mpi/mpi_ranks.h"

enum { CALLS_MAX = 64, RANKS = 4, ME = 0 };

/* A call, with what its message was when it was sent. */
typedef struct open_call {
    bool        is_open, sends;
    uint32_t    rank;
    const void *bytes;
    uint32_t    word;
} open_call;

struct at_mpi_calls {
    open_call   call[CALLS_MAX];
    at_mpi_done done;
    bool        is_done;
    at_fail     fail;
};

static void *collected;

/* Collective calls in the order in which they were started: the first float of a sum, or -1. */
static long collective[64];
static int  collectives;

at_mpi_calls *at_mpi_calls_new(uint32_t count)
{
    assert_true(count <= CALLS_MAX);
    return calloc(1, sizeof(at_mpi_calls));
}

at_err at_mpi_calls_check(const at_mpi_calls *calls, at_fail *fail)
{
    if (calls->fail.err) *fail = calls->fail;
    return calls->fail.err;
}

/* What is sent is never received. */
void at_mpi_send(at_mpi_calls *calls, uint32_t call, const void *bytes, size_t units, uint32_t rank,
                 at_mpi_tag tag)
{
    (void)tag;
    assert_false(calls->call[call].is_open);
    assert_int_equal(units, 1);
    calls->call[call] = (open_call){.is_open = true, .sends = true, .rank = rank, .bytes = bytes};
    memcpy(&calls->call[call].word, bytes, sizeof(uint32_t));
}

void at_mpi_receive(at_mpi_calls *calls, uint32_t call, void *bytes, size_t units, uint32_t rank,
                    at_mpi_tag tag)
{
    (void)units;
    (void)tag;
    assert_false(calls->call[call].is_open);
    calls->call[call] = (open_call){.is_open = true, .rank = rank, .bytes = bytes};
}

/* The rank whose bytes arrive with a wrong one; RANKS: none. */
static uint32_t faulty = RANKS;

/* All ranks send what we send, and the call ends at once. */
void at_mpi_gather_all(at_mpi_calls *calls, uint32_t call, const void *mine, void *all,
                       size_t units)
{
    (void)calls;
    (void)call;
    collected = all;
    if (collectives < 64) collective[collectives++] = -1;
    for (uint32_t i = 0; i < RANKS; i++)
        memcpy((unsigned char *)all + i * units * AT_MESSAGE_UNIT, mine, units * AT_MESSAGE_UNIT);
    if (faulty < RANKS) ((unsigned char *)all)[faulty * units * AT_MESSAGE_UNIT] ^= 1;
}

void at_mpi_sum_all(at_mpi_calls *calls, uint32_t call, float *floats, size_t count)
{
    (void)calls;
    (void)call;
    assert_true(count >= 1);
    if (collectives < 64) collective[collectives++] = (long)floats[0];
}

void at_mpi_broadcast(at_mpi_calls *calls, uint32_t call, float *floats, size_t count,
                      uint32_t root)
{
    (void)root;
    at_mpi_sum_all(calls, call, floats, count);
}

bool at_mpi_is_open(const at_mpi_calls *calls, uint32_t call)
{
    assert_true(call < CALLS_MAX);
    return calls->call[call].is_open;
}

void at_mpi_cancel(at_mpi_calls *calls, uint32_t call)
{
    calls->call[call].is_open = false;
}

uint32_t at_mpi_poll(at_mpi_calls *calls, const at_mpi_done **done)
{
    bool has = calls->is_done;
    calls->is_done = false;
    if (has) calls->call[calls->done.call].is_open = false;
    *done = &calls->done;
    return has;
}

/* ---- tests --------------------------------------------------------------------------------- */

static const at_launcher launcher = {.name = "test", .rank = ME, .size = RANKS};

static void open_ranks(at_mpi_ranks *ranks)
{
    at_worker_note hello = {.kind = AT_WORKER_NOTE_HELLO, .pid = 1, .host = "elsewhere"};
    at_fail        fail = {0};
    if (at_mpi_ranks_open(ranks, &launcher, &hello, 2, 0, 0, &fail)) fail_msg("%s", fail.text);
    assert_non_null(collected);
}

static void close_ranks(at_mpi_ranks *ranks)
{
    at_mpi_calls_free(ranks->calls);
    free(ranks->hello);
    free(ranks->near);
    free(ranks->turn);
}

/* A notice arrives from a rank: `units` of these bytes. */
static void deliver(at_mpi_ranks *ranks, uint32_t rank, const void *bytes, size_t units)
{
    uint32_t call = 0;
    at_mpi_ranks_settle(ranks);
    while (!ranks->calls->call[call].is_open || ranks->calls->call[call].sends) call++;
    memcpy(&ranks->notice, bytes, units * AT_MESSAGE_UNIT);
    ranks->calls->done = (at_mpi_done){.call = call, .rank = rank, .units = units};
    ranks->calls->is_done = true;
    at_mpi_ranks_settle(ranks);
}

/* A request is under way to a rank that does not receive it, when another rank is lost. */
static void what_is_being_sent_does_not_change(void **state)
{
    (void)state;
    at_mpi_ranks ranks;
    uint32_t     sends = 0, lost = 2;
    open_ranks(&ranks);
    at_mpi_ranks_ask(&ranks, 1);
    deliver(&ranks, 3, &lost, 1);
    assert_true(ranks.broken);
    assert_int_equal(ranks.lost, lost);
    assert_false(at_mpi_ranks_part(&ranks));
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        const open_call *call = &ranks.calls->call[i];
        if (!call->is_open || !call->sends) continue;
        assert_memory_equal(call->bytes, &call->word, sizeof call->word);
        sends++;
    }
    assert_int_equal(sends, 3); /* the request, and the loss to ranks 1 and 3 */
    close_ranks(&ranks);
}

static void a_notice_of_a_rank_that_does_not_exist_names_its_sender(void **state)
{
    (void)state;
    at_mpi_ranks ranks;
    uint32_t     lost = 77;
    open_ranks(&ranks);
    deliver(&ranks, 3, &lost, 1);
    assert_true(ranks.broken);
    assert_int_equal(ranks.lost, 3);
    assert_non_null(strstr(ranks.fail.text, "rank 3 on elsewhere"));
    close_ranks(&ranks);
}

static void a_failed_exchange_ends_with_a_sentence(void **state)
{
    (void)state;
    at_mpi_ranks ranks;
    open_ranks(&ranks);
    at_mpi_ranks_settle(&ranks);
    ranks.calls->done = (at_mpi_done){.error = 16};
    ranks.calls->is_done = true;
    assert_false(at_mpi_ranks_settle(&ranks));
    assert_int_equal(ranks.fail.err, AT_ERR_FAILED);
    assert_int_equal(ranks.lost, UINT32_MAX);
    close_ranks(&ranks);
}

static void a_malformed_turn_names_its_rank(void **state)
{
    (void)state;
    at_mpi_ranks    ranks;
    at_turn_message turn = {.now = 5, .trace = 7};
    open_ranks(&ranks);
    assert_true(at_mpi_ranks_take_turns(&ranks, &turn, &(at_mpi_sum){0}));
    for (uint32_t i = 0; i < RANKS; i++) assert_int_equal(ranks.turn[i].trace, 7);
    faulty = 2;
    bool all = at_mpi_ranks_take_turns(&ranks, &turn, &(at_mpi_sum){0});
    faulty = RANKS;
    assert_false(all);
    assert_true(ranks.broken);
    assert_int_equal(ranks.lost, 2);
    assert_non_null(strstr(ranks.fail.text, "rank 2 on elsewhere: its message is malformed"));
    close_ranks(&ranks);
}

enum { CHUNK = 1 << 18, CHUNKS = 5 };

/* One exchange; early: it begins while the gradient is computed, layer by layer. */
static int exchange(at_mpi_sum *sum, bool early, long order[64])
{
    at_mpi_ranks    ranks;
    at_turn_message turn = {.now = 5};
    open_ranks(&ranks);
    collectives = 0;
    for (size_t from = sum->trained; early && from >= CHUNK / 2; from -= CHUNK / 2) {
        at_mpi_ranks_sum_early(&ranks, sum, from);
        for (int i = 0; i < collectives; i++) assert_true((size_t)collective[i] >= from);
    }
    if (early) assert_true(collectives > 0);
    assert_true(at_mpi_ranks_take_turns(&ranks, &turn, sum));
    memcpy(order, collective, sizeof collective);
    close_ranks(&ranks);
    return collectives;
}

/* MPI pairs collective calls by their order: ranks that sum early must not differ from others. */
static void sums_are_in_the_same_order_whether_they_begin_early_or_not(void **state)
{
    (void)state;
    size_t count = CHUNKS * CHUNK - 100;
    float *floats = calloc(count, sizeof *floats);
    assert_non_null(floats);
    for (size_t i = 0; i < count; i += CHUNK) floats[i] = (float)i;
    for (size_t statistics = 0; statistics <= CHUNK; statistics += CHUNK / 2) {
        at_mpi_sum sum = {floats, count, count - statistics};
        long       early[64], late[64];
        int        n = exchange(&sum, true, early);
        assert_int_equal(n, exchange(&sum, false, late));
        assert_int_equal(n, CHUNKS + 1);
        assert_memory_equal(early, late, (size_t)n * sizeof *early);
        assert_int_equal(early[n - 1], -1);
    }
    free(floats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_being_sent_does_not_change),
        cmocka_unit_test(a_notice_of_a_rank_that_does_not_exist_names_its_sender),
        cmocka_unit_test(a_failed_exchange_ends_with_a_sentence),
        cmocka_unit_test(a_malformed_turn_names_its_rank),
        cmocka_unit_test(sums_are_in_the_same_order_whether_they_begin_early_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
