/* What a worker sends to its hub while it computes, over an MPI that is simulated here: this
 * program defines what mpi_comm.h declares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_mpi.h"
#include "world/mpi/mpi_transport.h"

enum { CALLS_MAX = 64, SENT_MAX = 64, PART = AT_PART_FLOATS_MIN, FRONT = 1000 };
enum { TRAINED = FRONT + 3 * PART, FLOATS = TRAINED + 50 };

typedef struct sent_message {
    at_mpi_tag   tag;
    const float *bytes;
    size_t       units;
} sent_message;

struct at_mpi_calls {
    bool         is_open[CALLS_MAX];
    sent_message sent[SENT_MAX];
    uint32_t     count;
    at_fail      fail;
};

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

void at_mpi_send(at_mpi_calls *calls, uint32_t call, const void *bytes, size_t units, uint32_t rank,
                 at_mpi_tag tag)
{
    assert_int_equal(rank, 0);
    assert_true(units >= 1);
    assert_false(calls->is_open[call]);
    calls->is_open[call] = true;
    if (tag == AT_MPI_TAG_NOTE) return;
    assert_true(calls->count < SENT_MAX);
    calls->sent[calls->count++] = (sent_message){tag, bytes, units};
}

void at_mpi_receive(at_mpi_calls *calls, uint32_t call, void *bytes, size_t units, uint32_t rank,
                    at_mpi_tag tag)
{
    (void)bytes;
    (void)units;
    (void)rank;
    (void)tag;
    calls->is_open[call] = true;
}

bool at_mpi_is_open(const at_mpi_calls *calls, uint32_t call)
{
    assert_true(call < CALLS_MAX);
    return calls->is_open[call];
}

void at_mpi_cancel(at_mpi_calls *calls, uint32_t call)
{
    calls->is_open[call] = false;
}

uint32_t at_mpi_poll(at_mpi_calls *calls, const at_mpi_done **done)
{
    (void)calls;
    *done = NULL;
    return 0;
}

/* ---- tests --------------------------------------------------------------------------------- */

typedef struct fixture {
    at_plan          plan;
    at_task          task;
    at_learning      learning;
    at_world_context context;
    at_mpi_transport worker;
    at_transport     transport;
} fixture;

static void watch(void *self, at_gradient_watch watch)
{
    (void)self;
    (void)watch;
}

static void sit_down(fixture *f)
{
    at_fail         fail = {0};
    at_plan_options o = {.strategy = "fmb", .workers = 2, .batch = 8, .time_limit = "auto"};
    *f = (fixture){.task = {.params = FLOATS, .trained = TRAINED, .watch = watch}};
    if (at_plan_resolve(&o, &f->plan, &fail)) fail_msg("%s", fail.text);
    f->context = (at_world_context){.plan = &f->plan, .task = &f->task, .learning = &f->learning};
    at_mpi_transport *w = &f->worker;
    *w = (at_mpi_transport){.context = &f->context, .id = 1, .slots = 1, .buffers = 1};
    w->open = w->fresh = w->aside = w->installed = AT_MPI_NO_BUFFER;
    w->parts = at_gradient_parts_of(&f->context);
    if (at_packings_init(&w->packings, &f->context, &fail)) fail_msg("%s", fail.text);
    w->calls = at_mpi_calls_new(AT_MPI_CALL_PART + w->parts.count);
    w->report[0] = malloc(AT_REPORT_MESSAGE_HEAD + FLOATS * sizeof(float));
    assert_non_null(w->calls);
    assert_non_null(w->report[0]);
    w->ordered = true; /* the next order is there already */
    f->transport = at_mpi_transport_of(w);
}

static void stand_up(fixture *f)
{
    free(f->worker.report[0]);
    at_mpi_calls_free(f->worker.calls);
}

/* The i-th message was this part of the gradient. */
static void assert_sent(const fixture *f, uint32_t i, at_mpi_tag tag, size_t first, size_t count)
{
    const sent_message *sent = &f->worker.calls->sent[i];
    const float        *vector =
        (const float *)(const void *)(f->worker.report[0] + AT_REPORT_MESSAGE_HEAD);
    assert_int_equal(sent->tag, tag);
    assert_ptr_equal(sent->bytes, vector + first);
    assert_int_equal(sent->units, count);
}

/* The hub has received everything. */
static void receive_all(fixture *f)
{
    memset(f->worker.calls->is_open, 0, sizeof f->worker.calls->is_open);
    f->worker.calls->count = 0;
}

static void parts_are_sent_as_soon_as_they_are_final_and_the_rest_with_the_report(void **state)
{
    (void)state;
    fixture   f;
    at_order  order;
    at_report report = {.sequence = 1, .work = {.samples = 8}};
    sit_down(&f);
    const at_transport *t = &f.transport;
    at_mpi_calls       *calls = f.worker.calls;
    assert_non_null(t->final);
    for (int round = 0; round < 2; round++) {
        t->final(t->self, TRAINED - PART + 1);
        assert_int_equal(calls->count, 0); /* the number at its beginning is not final */
        t->final(t->self, TRAINED - PART);
        assert_int_equal(calls->count, 1);
        assert_sent(&f, 0, AT_MPI_TAG_PART, TRAINED - PART, PART);
        t->final(t->self, 2 * FRONT);
        assert_int_equal(calls->count, 2);
        assert_true(t->send(t->self, &report));
        assert_int_equal(calls->count, 5);
        assert_sent(&f, 1, AT_MPI_TAG_PART, TRAINED - 2 * PART, PART);
        assert_sent(&f, 2, AT_MPI_TAG_PART, FRONT, PART);
        assert_sent(&f, 3, AT_MPI_TAG_PART, TRAINED, FLOATS - TRAINED);
        assert_ptr_equal(calls->sent[4].bytes, f.worker.report[0]);
        assert_int_equal(calls->sent[4].units, AT_REPORT_MESSAGE_HEAD / sizeof(float) + FRONT);
        calls->is_open[0] = false; /* the report was received, a part was not */
        assert_false(t->take_order(t->self, &order));
        receive_all(&f);
        assert_true(t->take_order(t->self, &order));
        f.worker.ordered = true;
    }
    stand_up(&f);
}

static void a_round_that_is_abandoned_has_short_parts(void **state)
{
    (void)state;
    fixture   f;
    at_report report = {.sequence = 1, .work = {.samples = 8, .abandoned = true}};
    sit_down(&f);
    const at_transport *t = &f.transport;
    t->final(t->self, TRAINED - PART);
    assert_true(t->send(t->self, &report));
    assert_int_equal(f.worker.calls->count, 5);
    assert_sent(&f, 0, AT_MPI_TAG_PART, TRAINED - PART, PART);
    for (uint32_t i = 1; i < 4; i++) assert_int_equal(f.worker.calls->sent[i].units, 1);
    assert_int_equal(f.worker.calls->sent[4].units, AT_REPORT_MESSAGE_HEAD / sizeof(float));
    stand_up(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_sent_as_soon_as_they_are_final_and_the_rest_with_the_report),
        cmocka_unit_test(a_round_that_is_abandoned_has_short_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
