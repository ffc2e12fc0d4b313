/* What a worker sends to its hub while it computes, and what it accepts from it, over an MPI that
 * is simulated here: this program defines what mpi_comm.h declares. */
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
    at_mpi_done  mail; /* the next message to this rank, if `has_mail` */
    bool         has_mail;
    void        *inbox; /* where the last receive puts its message */
    at_fail      fail;
};

static at_mpi_calls *last_calls;

at_mpi_calls *at_mpi_calls_new(uint32_t count)
{
    assert_true(count <= CALLS_MAX);
    last_calls = calloc(1, sizeof(at_mpi_calls));
    return last_calls;
}

at_err at_mpi_calls_check(const at_mpi_calls *calls, at_fail *fail)
{
    if (calls->fail.err) *fail = calls->fail;
    return calls->fail.err;
}

void at_mpi_send(at_mpi_calls *calls, uint32_t call, const void *bytes, size_t units, uint32_t rank,
                 at_mpi_tag tag)
{
    assert_true(rank == 0 || tag == AT_MPI_TAG_VECTOR);
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
    (void)units;
    (void)rank;
    (void)tag;
    calls->is_open[call] = true;
    calls->inbox = bytes;
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
    bool has = calls->has_mail;
    calls->has_mail = false;
    if (has) calls->is_open[calls->mail.call] = false;
    *done = &calls->mail;
    return has;
}

/* ---- tests --------------------------------------------------------------------------------- */

typedef struct fixture {
    at_plan          plan;
    at_task          task;
    at_learning      learning;
    at_world_context context;
    at_mpi_transport worker;
    at_mpi_calls    *neighbors; /* calls of its gossip */
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

/* ---- what the hub says ----------------------------------------------------------------------- */

/* A seat for a small model, with this strategy. */
static void sit_down_under(fixture *f, const char *strategy)
{
    at_fail         fail = {0};
    at_plan_options o = {.strategy = strategy, .workers = 3, .batch = 8, .time_limit = "auto"};
    *f = (fixture){.task = {.params = 4, .trained = 4}};
    if (at_plan_resolve(&o, &f->plan, &fail)) fail_msg("%s", fail.text);
    f->learning.optim = at_optim_find("sgd");
    f->learning.trained = f->task.params;
    if (at_schedule_parse("const", 0.1, 100, 0, &f->learning.rate[0].schedule, &fail))
        fail_msg("%s", fail.text);
    f->context = (at_world_context){.plan = &f->plan, .task = &f->task, .learning = &f->learning};
    at_mpi_transport *w = &f->worker;
    *w = (at_mpi_transport){.context = &f->context, .id = 1, .slots = 1, .buffers = 2};
    w->open = w->fresh = w->aside = w->installed = AT_MPI_NO_BUFFER;
    w->params_version = AT_VERSION_NONE;
    if (at_packings_init(&w->packings, &f->context, &fail)) fail_msg("%s", fail.text);
    if (at_mpi_gossip_new(&f->context, 1, &w->gossip, &fail)) fail_msg("%s", fail.text);
    f->neighbors = last_calls;
    w->mail_size = 1024;
    for (int i = 0; i < w->buffers; i++) w->buffer[i].bytes = aligned_alloc(64, w->mail_size);
    w->report[0] = aligned_alloc(64, 1024);
    w->calls = at_mpi_calls_new(AT_MPI_CALL_PART);
    memset(w->report[0], 0, 1024);
    at_mpi_transport_poll(w); /* it listens */
}

static void stand_up_under(fixture *f)
{
    for (int i = 0; i < f->worker.buffers; i++) free(f->worker.buffer[i].bytes);
    at_mpi_gossip_free(f->worker.gossip);
    stand_up(f);
}

/* The worker receives the first `size` bytes of its open buffer; why it gives up, or "". */
static const char *receive_mail(fixture *f, size_t size)
{
    f->worker.calls->mail =
        (at_mpi_done){.call = AT_MPI_CALL_MAIL, .units = size / AT_MESSAGE_UNIT};
    f->worker.calls->has_mail = true;
    at_mpi_transport_poll(&f->worker);
    return f->worker.fail.err ? f->worker.fail.text : "";
}

/* The same with parameters of that version and, if it has a worker, an order. */
static const char *receive_work(fixture *f, uint64_t version, at_order_message order)
{
    unsigned char *bytes = f->worker.buffer[f->worker.open].bytes;
    size_t         size = AT_HUB_MESSAGE_HEAD + f->worker.packings.params.size;
    memset(bytes, 0, f->worker.mail_size);
    at_hub_message_write(bytes, &(at_hub_message){.kind = AT_HUB_MESSAGE_WORK,
                                                  .version = version,
                                                  .base = AT_VERSION_NONE});
    if (order.worker > 0) at_order_message_write(bytes + size, &order);
    return receive_mail(f, size + (order.worker > 0 ? AT_ORDER_MESSAGE : 0));
}

static const at_order_message no_order = {0};

static void a_worker_with_one_place_for_gradients_makes_no_rounds_of_its_own(void **state)
{
    (void)state;
    fixture          f;
    at_order_message order = {.worker = 1, .order = {.samples_max = 8, .time_limit = AT_NEVER}};
    sit_down_under(&f, "fmb");
    order.order.position = AT_POSITION_OWN;
    assert_string_equal(receive_work(&f, 0, order), "");
    order.order.again = true;
    assert_non_null(strstr(receive_work(&f, 1, order), "malformed"));
    assert_true(f.worker.leaves);
    stand_up_under(&f);
}

static void gossip_refuses_parameters_that_are_older_than_its_own(void **state)
{
    (void)state;
    fixture f;
    sit_down_under(&f, "fmb-gossip:ring,1");
    assert_string_equal(receive_work(&f, 5, no_order), "");
    assert_string_equal(receive_work(&f, 5, no_order), "");
    assert_non_null(strstr(receive_work(&f, 4, no_order), "older than those before"));
    assert_int_equal(at_mpi_gossip_version(f.worker.gossip), 5);
    stand_up_under(&f);
}

/* A worker that waits for the vectors of two neighbors. */
static void sit_down_to_average(fixture *f)
{
    const bool     present[3] = {true, true, true};
    at_hub_message mix = {.kind = AT_HUB_MESSAGE_MIX, .version = 6, .used = 8, .lr_factor = 1};
    sit_down_under(f, "fmb-gossip:ring,1");
    assert_string_equal(receive_work(f, 5, no_order), "");
    at_mix_message_write(f->worker.buffer[f->worker.open].bytes, &mix, present, 3);
    assert_string_equal(receive_mail(f, at_mix_message_size(3)), "");
    assert_true(at_mpi_gossip_averages(f->worker.gossip));
}

static void gossip_does_not_go_on_with_a_neighbor_that_sends_nonsense(void **state)
{
    (void)state;
    enum { RECEIVES_FROM_SECOND = 5 };
    fixture f;
    size_t  size = AT_VECTOR_MESSAGE_HEAD + 4 * sizeof(float);
    sit_down_to_average(&f);
    at_vector_message_write(f.neighbors->inbox,
                            &(at_vector_message){.version = 7, .round = 1, .floats = 4});
    f.neighbors->mail =
        (at_mpi_done){.call = RECEIVES_FROM_SECOND, .units = size / AT_MESSAGE_UNIT};
    f.neighbors->has_mail = true;
    at_mpi_transport_poll(&f.worker);
    assert_non_null(strstr(f.worker.fail.text, "worker 3"));
    assert_non_null(strstr(f.worker.fail.text, "a vector of another step (7)"));
    assert_true(f.worker.leaves);
    stand_up_under(&f);
}

static void gossip_refuses_parameters_while_it_averages(void **state)
{
    (void)state;
    fixture f;
    sit_down_to_average(&f);
    assert_non_null(strstr(receive_work(&f, 7, no_order), "while this worker averages"));
    stand_up_under(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_sent_as_soon_as_they_are_final_and_the_rest_with_the_report),
        cmocka_unit_test(a_round_that_is_abandoned_has_short_parts),
        cmocka_unit_test(a_worker_with_one_place_for_gradients_makes_no_rounds_of_its_own),
        cmocka_unit_test(gossip_refuses_parameters_that_are_older_than_its_own),
        cmocka_unit_test(gossip_refuses_parameters_while_it_averages),
        cmocka_unit_test(gossip_does_not_go_on_with_a_neighbor_that_sends_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
