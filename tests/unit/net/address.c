/* Addresses: what is accepted, what is refused, who is on this machine. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/socket.h"

static void hosts_and_ports_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host, *port;
        bool        encrypted;
    } rows[] = {{"127.0.0.1:7000", "127.0.0.1", "7000", false},
                {"[::1]:0", "::1", "0", false},
                {"hub.example.org:65535", "hub.example.org", "65535", false},
                {"tls://[fe80::1]:9", "fe80::1", "9", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        at_net_address address;
        at_fail        fail;
        assert_int_equal(at_net_address_parse(rows[i].text, &address, &fail), AT_OK);
        assert_string_equal(address.host, rows[i].host);
        assert_string_equal(address.port, rows[i].port);
        assert_int_equal(address.encrypted, rows[i].encrypted);
        assert_true(at_net_is_address(rows[i].text));
    }
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           ":7000",       "host",     "host:",     "host:x", "host:-1",
        "host:65536", "host:123456", "::1:7000", "[::1:7000", "[]:1",   "[host]:1",
        "a/b:1",      "tls://:700",  "tls://",   "[::1]7000"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        at_net_address address;
        at_fail        fail = {0};
        assert_int_equal(at_net_address_parse(bad[i], &address, &fail), AT_ERR_USAGE);
        assert_true(fail.text[0] && fail.hint[0]);
    }
}

static void paths_of_sockets_are_no_addresses(void **state)
{
    (void)state;
    assert_false(at_net_is_address("/run/hub"));
    assert_false(at_net_is_address("runs/a:b/hub"));
    assert_false(at_net_is_address("hub"));
}

static void a_list_gives_its_addresses_one_by_one(void **state)
{
    (void)state;
    char        list[AT_NET_LIST_SIZE], one[AT_NET_TEXT_SIZE];
    at_fail     fail = {0};
    const char *rest = list;
    assert_int_equal(at_net_list_read("a:1,tls://[::1]:2", list, &fail), AT_OK);
    rest = at_net_list_next(rest, one);
    assert_string_equal(one, "a:1");
    rest = at_net_list_next(rest, one);
    assert_string_equal(one, "tls://[::1]:2");
    assert_string_equal(rest, "");
    memset(list, 'x', sizeof list - 1);
    list[sizeof list - 1] = '\0';
    char longer[sizeof list + 8];
    snprintf(longer, sizeof longer, "%sxxx", list);
    assert_int_equal(at_net_list_read(longer, list, &fail), AT_ERR_USAGE);
}

static void a_file_has_the_list_on_its_first_line(void **state)
{
    (void)state;
    char    list[AT_NET_LIST_SIZE], path[] = "/tmp/anytime-hub-XXXXXX", text[64];
    at_fail fail = {0};
    int     fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a:1,b:2\nc:3\n", 12), 12);
    close(fd);
    snprintf(text, sizeof text, "file:%s", path);
    assert_true(at_net_is_address(text));
    assert_int_equal(at_net_list_read(text, list, &fail), AT_OK);
    assert_string_equal(list, "a:1,b:2");
    unlink(path);
    assert_int_equal(at_net_list_read(text, list, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.hint, "--hub-file"));
}

static struct sockaddr_storage socket_of(const char *text)
{
    struct sockaddr_storage found = {0};
    if (strchr(text, ':')) {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)&found;
        six->sin6_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
    } else {
        struct sockaddr_in *four = (struct sockaddr_in *)&found;
        four->sin_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, text, &four->sin_addr), 1);
    }
    return found;
}

static void only_this_machine_is_on_its_loopback(void **state)
{
    (void)state;
    static const char *const here[] = {"127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"};
    static const char *const there[] = {"128.0.0.1", "10.0.0.7", "::", "::ffff:10.0.0.1",
                                        "fe80::1"};
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
        struct sockaddr_storage socket = socket_of(here[i]);
        assert_true(at_net_is_loopback(&socket));
    }
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        struct sockaddr_storage socket = socket_of(there[i]);
        assert_false(at_net_is_loopback(&socket));
    }
}

static void a_port_that_is_taken_is_said_to_be_taken(void **state)
{
    (void)state;
    at_net_address address;
    at_fail        fail = {0};
    char           shown[AT_NET_TEXT_SIZE], again[AT_NET_TEXT_SIZE];
    int            first, second;
    assert_int_equal(at_net_address_parse("127.0.0.1:0", &address, &fail), AT_OK);
    assert_int_equal(at_net_listen(&address, 0, &first, shown, &fail), AT_OK);
    assert_int_equal(at_net_address_parse(shown, &address, &fail), AT_OK);
    assert_int_equal(at_net_listen(&address, 0, &second, again, &fail), AT_ERR_IO);
    assert_non_null(strstr(fail.hint, "another port"));
    bool loopback;
    assert_int_equal(
        at_net_connect(&address, at_clock_now() + AT_SEC(60), NULL, &second, &loopback, &fail),
        AT_OK);
    assert_true(loopback);
    close(second);
    close(first);
    assert_int_equal(
        at_net_connect(&address, at_clock_now() + AT_SEC(60), NULL, &second, &loopback, &fail),
        AT_ERR_MISSING);
    assert_true(fail.hint[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_and_ports_are_told_apart),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(paths_of_sockets_are_no_addresses),
        cmocka_unit_test(a_list_gives_its_addresses_one_by_one),
        cmocka_unit_test(a_file_has_the_list_on_its_first_line),
        cmocka_unit_test(only_this_machine_is_on_its_loopback),
        cmocka_unit_test(a_port_that_is_taken_is_said_to_be_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
