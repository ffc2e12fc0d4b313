/* Deadlines of connections, with a real server and a client in one thread: each has its turn. */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "serve/server_state.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

enum { TURNS = 1000 }; /* without progress: nothing more can happen */
static const at_ns later = AT_SEC(60);

static at_server *server;
static int        client;

static int open_both(void **state)
{
    (void)state;
    const char        *folder = "missing";
    at_server_options  options = {.token = TOKEN, .folders = &folder, .count = 1};
    struct sockaddr_in address = {.sin_family = AF_INET};
    int                small = 4096;
    at_fail            fail;
    assert_int_equal(at_address_parse("127.0.0.1:0", &options.address, &fail), AT_OK);
    assert_int_equal(at_server_open(&options, &server, &fail), AT_OK);
    address.sin_port = htons(server->address.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    close(client);
    at_server_close(server);
    return 0;
}

/* Sends requests and reads no answer, until the server does not take more. */
static void send_until_full(const char *request)
{
    size_t size = strlen(request), at = 0;
    for (int idle = 0; idle < TURNS; idle++) {
        ssize_t sent = send(client, request + at, size - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) at = (at + (size_t)sent) % size, idle = 0;
        assert_int_equal(MHD_run(server->daemon), MHD_YES);
    }
}

/* Reads what there is; true when the server has closed the connection. */
static bool is_closed(void)
{
    char bytes[65536];
    for (int idle = 0; idle < TURNS; idle++) {
        ssize_t got = recv(client, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
        assert_int_equal(MHD_run(server->daemon), MHD_YES);
    }
    return false;
}

static void half_a_request_has_a_deadline(void **state)
{
    (void)state;
    assert_true(send(client, "GET / HT", 8, MSG_NOSIGNAL) == 8);
    assert_false(is_closed());
    at_clients_check(&server->clients, at_clock_now() + later);
    assert_true(is_closed());
}

static void who_does_not_read_has_a_deadline_without_the_token(void **state)
{
    static const char *const requests[] = {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                           "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        send_until_full(requests[i]);
        assert_true(at_clients_check(&server->clients, at_clock_now()) < AT_NEVER);
        at_clients_check(&server->clients, at_clock_now() + later);
        assert_true(is_closed());
        close_both(state);
        open_both(state);
    }
}

static void who_has_the_token_may_read_slowly(void **state)
{
    (void)state;
    send_until_full("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " TOKEN "\r\n\r\n");
    assert_true(at_clients_check(&server->clients, at_clock_now() + later) == AT_NEVER);
    assert_int_equal(server->clients.waiting, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(half_a_request_has_a_deadline, open_both, close_both),
        cmocka_unit_test_setup_teardown(who_does_not_read_has_a_deadline_without_the_token,
                                        open_both, close_both),
        cmocka_unit_test_setup_teardown(who_has_the_token_may_read_slowly, open_both, close_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
