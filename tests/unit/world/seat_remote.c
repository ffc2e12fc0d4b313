/* Seats on other machines, as their hub sees them: they get the newest state, however slowly they
 * read, and those that connect again and again do not keep it from its work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "world/seat/seat_hub.h"
#include "world/seat/seat_remote.h"
#include "world/seat/seat_wire.h"

enum { FLOATS = 16, STEPS = 100000, MESSAGE_MAX = 4096, QUEUED_MAX = 8 * MESSAGE_MAX };

typedef struct ends {
    at_seat_board board;
    float         params[FLOATS];
    at_seat_file  file;
    at_remote     hub;
    at_link      *seat;
} ends;

static const void *params_of(void *self)
{
    return ((ends *)self)->params;
}

static void open_ends(ends *e)
{
    int              fd[2];
    size_t           size;
    at_fail          fail;
    at_remote_place  place = {.file = &e->file, .floats = FLOATS, .slots = 1};
    at_link_receiver of_hub = at_remote_receiver(&e->hub, MESSAGE_MAX);
    at_link_receiver of_seat = {.kinds = AT_SEAT_MESSAGE_KINDS, .size_max = MESSAGE_MAX};
    *e = (ends){.file.fd = -1};
    assert_true(at_seat_slot_size(FLOATS, 1, &size));
    assert_int_equal(at_seat_file_private(size, &e->file, &fail), AT_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(at_link_connected(fd[0], NULL, false, &of_hub, &e->hub.link, &fail), AT_OK);
    assert_int_equal(at_link_connected(fd[1], NULL, false, &of_seat, &e->seat, &fail), AT_OK);
    assert_int_equal(at_remote_seat(&e->hub, &place, &fail), AT_OK);
}

static void close_ends(ends *e)
{
    at_remote_deinit(&e->hub);
    at_link_free(e->seat);
    at_seat_file_close(&e->file);
}

/* A step that others have made, and an order as size rules give it. */
static void step(ends *e, bool orders)
{
    at_fail        fail;
    at_seat_slot  *slot = e->file.memory;
    at_remote_view view = {
        .board = &e->board, .params = params_of, .self = e, .params_size = sizeof e->params};
    e->params[0] += 1;
    atomic_fetch_add(&e->board.version, 1);
    atomic_fetch_add(&e->board.samples_used, 10);
    slot->order = (at_order){.round = 7,
                             .version = atomic_load(&e->board.version),
                             .position = AT_POSITION_OWN,
                             .time_limit = AT_NEVER,
                             .samples_max = 1};
    if (orders) atomic_fetch_add(&slot->order_lock, 2);
    assert_int_equal(at_remote_tell(&e->hub, &view, &fail), AT_OK);
    assert_int_equal(at_link_detach(e->hub.link, &fail), AT_OK); /* as before they change */
}

/* Reads all there is, and keeps the last message of each kind. */
static void read_all(ends *e, at_seat_news *news, at_order *order, float *first)
{
    at_fail          fail;
    at_order_message message;
    at_hub_message   head;
    for (;;) {
        assert_int_equal(at_link_receive(e->seat, &fail), AT_OK);
        if (!e->seat->complete) return;
        const at_link_message *m = &e->seat->message;
        if (m->kind == AT_SEAT_NET_NEWS)
            assert_int_equal(at_seat_news_read(m->bytes, m->size, news, &fail), AT_OK);
        if (m->kind == AT_SEAT_NET_ORDER) {
            assert_int_equal(at_order_message_read(m->bytes, m->size, &message, &fail), AT_OK);
            *order = message.order;
        }
        if (m->kind == AT_SEAT_NET_PARAMS) {
            assert_int_equal(at_hub_message_read(m->bytes, AT_HUB_MESSAGE_HEAD, &head, &fail),
                             AT_OK);
            memcpy(first, m->bytes + AT_HUB_MESSAGE_HEAD, sizeof *first);
        }
        at_link_next(e->seat);
    }
}

static void check_slow_reader(bool orders)
{
    static ends  e;
    at_seat_news news = {0};
    at_order     order = {0};
    float        first = 0;
    open_ends(&e);
    for (int i = 0; i < STEPS; i++) {
        step(&e, orders);
        assert_true(e.hub.link->queued < QUEUED_MAX);
    }
    while (!at_link_is_idle(e.hub.link)) {
        at_fail fail;
        read_all(&e, &news, &order, &first);
        assert_int_equal(at_link_flush(e.hub.link, &fail), AT_OK);
    }
    step(&e, orders);
    read_all(&e, &news, &order, &first);
    assert_int_equal(news.samples_used, 10 * (STEPS + 1));
    if (orders) assert_int_equal(order.version, STEPS + 1);
    if (orders) assert_true(first >= STEPS + 1);
    close_ends(&e);
}

static void a_seat_that_does_not_read_costs_no_memory(void **state)
{
    (void)state;
    check_slow_reader(false);
}

static void orders_that_are_not_read_are_replaced_by_newer_ones(void **state)
{
    (void)state;
    check_slow_reader(true);
}

static void connect_to(const at_seat_hub *hub, int *fd)
{
    at_fail        fail;
    at_net_address address;
    bool           loopback;
    assert_int_equal(at_net_address_parse(hub->address, &address, &fail), AT_OK);
    assert_int_equal(at_net_connect(&address, AT_NEVER, NULL, fd, &loopback, &fail), AT_OK);
}

/* A hub with connections to it that say nothing. */
enum { CROWD = 40 };
typedef struct crowd {
    at_seat_hub hub;
    char        folder[32];
    int         fd[CROWD];
} crowd;

static void open_crowd(crowd *c, uint32_t workers_max)
{
    at_fail             fail = {0};
    at_seat_hub_options options = {.folder = c->folder,
                                   .command = {.ranks = 1, .ranks_max = workers_max},
                                   .listen = "127.0.0.1:0"};
    snprintf(c->folder, sizeof c->folder, "/tmp/anytime-remote-XXXXXX");
    assert_non_null(mkdtemp(c->folder));
    assert_int_equal(at_seat_hub_open(&options, &c->hub, &fail), AT_OK);
    for (int i = 0; i < CROWD; i++) connect_to(&c->hub, &c->fd[i]);
}

static void close_crowd(crowd *c)
{
    char token[sizeof c->folder + 8];
    for (int i = 0; i < CROWD; i++) close(c->fd[i]);
    at_seat_hub_close(&c->hub);
    snprintf(token, sizeof token, "%s/token", c->folder);
    assert_int_equal(unlink(token), 0);
    assert_int_equal(rmdir(c->folder), 0);
}

static void many_connections_are_accepted_little_by_little(void **state)
{
    (void)state;
    crowd c;
    open_crowd(&c, 1);
    at_seat_hub_poll(&c.hub);
    assert_true(c.hub.unread);
    at_seat_hub_poll(&c.hub);
    assert_false(c.hub.unread);
    close_crowd(&c);
}

static uint32_t callers(const at_seat_hub *hub)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < hub->guests_max; i++) count += hub->guest[i].stage == AT_GUEST_CALLING;
    return count;
}

static void all_workers_of_a_run_may_call_from_one_machine_at_once(void **state)
{
    (void)state;
    crowd c;
    open_crowd(&c, CROWD);
    for (int i = 0; i < 2; i++) at_seat_hub_poll(&c.hub);
    assert_int_equal(callers(&c.hub), CROWD);
    close_crowd(&c);
    open_crowd(&c, 1); /* others find a place, also beside more of them than there are seats */
    for (int i = 0; i < 2; i++) at_seat_hub_poll(&c.hub);
    assert_true(callers(&c.hub) + 16 <= c.hub.guests_max);
    close_crowd(&c);
}

static void strangers_leave_descriptors_for_the_run(void **state)
{
    (void)state;
    enum { FREE = CROWD - 10 };
    struct rlimit before, few;
    crowd         c;
    open_crowd(&c, CROWD);
    int next = dup(0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)next + FREE;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 2; i++) at_seat_hub_poll(&c.hub);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_in_range(callers(&c.hub), 1, few.rlim_cur / 4);
    close_crowd(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seat_that_does_not_read_costs_no_memory),
        cmocka_unit_test(orders_that_are_not_read_are_replaced_by_newer_ones),
        cmocka_unit_test(many_connections_are_accepted_little_by_little),
        cmocka_unit_test(all_workers_of_a_run_may_call_from_one_machine_at_once),
        cmocka_unit_test(strangers_leave_descriptors_for_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
