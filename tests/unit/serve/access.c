#include "serve/access.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "serve/address.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static const at_access local = {.token = TOKEN, .cookie = "anytime_8080"};
static const at_access open_to_all = {.token = TOKEN, .cookie = "anytime_8080", .name = "node7"};

/* An allowed request, for tests to modify. */
static at_request good(void)
{
    return (at_request){
        .method = "GET", .path = "/api/runs", .host = "127.0.0.1:8080", .cookie = TOKEN};
}

static unsigned check(const at_access *access, at_request request)
{
    at_access_decision decision = at_access_check(access, &request);
    if (decision.status != 200) assert_non_null(decision.text);
    return decision.status;
}

static void a_token_is_accepted_as_cookie_query_or_bearer(void **state)
{
    (void)state;
    at_request request = good();
    assert_int_equal(check(&local, request), 200);
    request.cookie = NULL;
    assert_int_equal(check(&local, request), 401);
    request.token = TOKEN;
    assert_int_equal(check(&local, request), 200);
    request.token = NULL;
    request.authorization = "Bearer " TOKEN;
    assert_int_equal(check(&local, request), 200);
    request.authorization = "bearer " TOKEN;
    assert_int_equal(check(&local, request), 200);
    request.authorization = "Basic " TOKEN;
    assert_int_equal(check(&local, request), 401);
}

static void anything_but_the_exact_token_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "0",
                                        "0123456789abcdef0123456789abcde",
                                        "0123456789abcdef0123456789abcdef0",
                                        "0123456789ABCDEF0123456789ABCDEF",
                                        "x123456789abcdef0123456789abcdef"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at_request request = good();
        request.cookie = request.token = wrong[i];
        assert_int_equal(check(&local, request), 401);
    }
}

static void healthz_needs_no_token_but_an_allowed_host(void **state)
{
    (void)state;
    at_request request = {.method = "GET", .path = "/healthz", .host = "localhost"};
    assert_int_equal(check(&local, request), 200);
    request.host = "evil.example";
    assert_int_equal(check(&local, request), 403);
}

static void only_get_and_head_are_allowed(void **state)
{
    (void)state;
    static const char *const methods[] = {"POST",  "PUT", "DELETE", "OPTIONS",
                                          "PATCH", "get", "TRACE"};
    at_request               request = good();
    request.method = "HEAD";
    assert_int_equal(check(&local, request), 200);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        request.method = methods[i];
        assert_int_equal(check(&local, request), 405);
    }
}

static void host_names_open_to_dns_rebinding_are_refused(void **state)
{
    (void)state;
    static const char *const right[] = {"127.0.0.1:8080", "localhost:9999", "LOCALHOST",
                                        "[::1]:8080",     "10.1.2.3:8080",  "[fe80::1]"};
    static const char *const wrong[] = {"evil.example:8080",
                                        "127.0.0.1.evil.example",
                                        "localhost.evil.example:8080",
                                        "",
                                        ":8080",
                                        "[::1",
                                        "::1",
                                        "localhost:80x",
                                        "node7:8080",
                                        "1.2.3"};
    at_request               request = good();
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        request.host = right[i];
        assert_int_equal(check(&local, request), 200);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        request.host = wrong[i];
        assert_int_equal(check(&local, request), 403);
    }
    request.host = NULL;
    assert_int_equal(check(&local, request), 403);
}

static void a_server_on_a_network_accepts_its_host_name(void **state)
{
    (void)state;
    at_request request = good();
    request.host = "node7:8080";
    assert_int_equal(check(&open_to_all, request), 200);
    request.host = "node77:8080";
    assert_int_equal(check(&open_to_all, request), 403);
}

static void scripts_of_other_sites_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "null", "http://evil.example", "http://127.0.0.1", "http://127.0.0.1:80800", "file://", ""};
    at_request request = good();
    request.origin = "http://127.0.0.1:8080";
    assert_int_equal(check(&local, request), 200);
    request.origin = "https://127.0.0.1:8080";
    assert_int_equal(check(&local, request), 200);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        request.origin = wrong[i];
        assert_int_equal(check(&local, request), 403);
    }
}

static void cross_site_links_reach_only_the_page(void **state)
{
    (void)state;
    at_request request = good();
    request.site = "cross-site";
    assert_int_equal(check(&local, request), 403);
    request.path = "/";
    assert_int_equal(check(&local, request), 200);
    request.path = "/metrics";
    request.site = "none";
    assert_int_equal(check(&local, request), 200);
}

static void valid_addresses_are_parsed(void **state)
{
    (void)state;
    at_address address;
    at_fail    fail = {0};
    assert_int_equal(at_address_parse("127.0.0.1:8080", &address, &fail), AT_OK);
    assert_true(address.loopback && !address.ipv6 && address.port == 8080);
    assert_int_equal(at_address_parse("8080", &address, &fail), AT_OK);
    assert_string_equal(address.host, "127.0.0.1");
    assert_int_equal(at_address_parse(":0", &address, &fail), AT_OK);
    assert_true(address.loopback && address.port == 0);
    assert_int_equal(at_address_parse("localhost:1", &address, &fail), AT_OK);
    assert_true(address.loopback);
    assert_int_equal(at_address_parse("[::1]:8080", &address, &fail), AT_OK);
    assert_true(address.loopback && address.ipv6);
    assert_int_equal(at_address_parse("0.0.0.0:8080", &address, &fail), AT_OK);
    assert_false(address.loopback);
    assert_int_equal(at_address_parse("[::]:8080", &address, &fail), AT_OK);
    assert_false(address.loopback);
}

static void invalid_addresses_are_rejected(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "x",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "127.0.0.1:65536",
                                        "127.0.0.1:-1",
                                        "evil.example:80",
                                        "::1:80",
                                        "[::1]",
                                        "[]:80",
                                        "[127.0.0.1]:80",
                                        "[::1]x:80"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at_address address;
        at_fail    fail = {0};
        assert_int_equal(at_address_parse(wrong[i], &address, &fail), AT_ERR_USAGE);
        assert_true(fail.hint[0]);
    }
}

static void tokens_are_long_and_unique(void **state)
{
    (void)state;
    char a[AT_TOKEN_SIZE], b[AT_TOKEN_SIZE];
    assert_int_equal(at_token_make(a, NULL), AT_OK);
    assert_int_equal(at_token_make(b, NULL), AT_OK);
    assert_int_equal(strlen(a), 32);
    assert_int_equal(strspn(a, "0123456789abcdef"), 32);
    assert_string_not_equal(a, b);
    assert_true(at_token_equal(a, a));
    assert_false(at_token_equal(a, b));
    assert_false(at_token_equal(a, NULL));
}

static void a_token_file_is_created_once_with_private_permissions(void **state)
{
    (void)state;
    char folder[] = "/tmp/anytime-token-XXXXXX", path[64], a[AT_TOKEN_SIZE], b[AT_TOKEN_SIZE];
    struct stat about;
    at_fail     fail = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/token", folder);
    assert_int_equal(at_token_file(path, a, &fail), AT_OK);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(at_token_file(path, b, &fail), AT_OK);
    assert_string_equal(a, b);
    assert_int_equal(at_file_write(path, "my-own_token-0123456789\n", 24, &fail), AT_OK);
    assert_int_equal(at_token_file(path, b, &fail), AT_OK);
    assert_string_equal(b, "my-own_token-0123456789");
    static const char *const wrong[] = {"", "short", "with blanks in it, and long",
                                        "two lines are not a token\nindeed"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(at_file_write(path, wrong[i], strlen(wrong[i]), &fail), AT_OK);
        assert_int_equal(at_token_file(path, b, &fail), AT_ERR_FORMAT);
    }
    unlink(path);
    rmdir(folder);
}

static void half_a_token_is_not_left_behind(void **state)
{
    (void)state;
    char          folder[] = "/tmp/anytime-token-XXXXXX", path[64], token[AT_TOKEN_SIZE];
    at_fail       fail;
    struct rlimit before;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/token", folder);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit few = {.rlim_cur = 20, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
    at_err err = at_token_file(path, token, &fail);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(err, AT_ERR_IO);
    assert_int_equal(at_token_file(path, token, &fail), AT_OK);
    assert_int_equal(strlen(token), 32);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Reads or creates the token in a process of its own, once `begin` is closed, and writes it to
 * `to`. */
static void ask_for_token(const char *path, const int begin[2], int to)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return;
    char    token[AT_TOKEN_SIZE] = "", none;
    at_fail fail;
    close(begin[1]);
    ssize_t got = read(begin[0], &none, 1);
    at_err  err = at_token_file(path, token, &fail);
    _exit(got != 0 || err || write(to, token, sizeof token) != sizeof token);
}

static void processes_that_create_a_token_at_the_same_time_get_the_same_one(void **state)
{
    (void)state;
    enum { ROUNDS = 150, PROCESSES = 8 };
    char folder[] = "/tmp/anytime-token-XXXXXX", path[64];
    int  ends[2], begin[2];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/token", folder);
    assert_int_equal(pipe(ends), 0);
    for (int round = 0; round < ROUNDS; round++) {
        char token[PROCESSES][AT_TOKEN_SIZE];
        assert_int_equal(pipe(begin), 0);
        for (int i = 0; i < PROCESSES; i++) ask_for_token(path, begin, ends[1]);
        close(begin[0]);
        close(begin[1]);
        for (int i = 0, status; i < PROCESSES; i++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
        assert_int_equal(read(ends[0], token, sizeof token), sizeof token);
        for (int i = 1; i < PROCESSES; i++) assert_string_equal(token[i], token[0]);
        assert_int_equal(unlink(path), 0);
    }
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_accepted_as_cookie_query_or_bearer),
        cmocka_unit_test(anything_but_the_exact_token_is_refused),
        cmocka_unit_test(healthz_needs_no_token_but_an_allowed_host),
        cmocka_unit_test(only_get_and_head_are_allowed),
        cmocka_unit_test(host_names_open_to_dns_rebinding_are_refused),
        cmocka_unit_test(a_server_on_a_network_accepts_its_host_name),
        cmocka_unit_test(scripts_of_other_sites_are_refused),
        cmocka_unit_test(cross_site_links_reach_only_the_page),
        cmocka_unit_test(valid_addresses_are_parsed),
        cmocka_unit_test(invalid_addresses_are_rejected),
        cmocka_unit_test(tokens_are_long_and_unique),
        cmocka_unit_test(a_token_file_is_created_once_with_private_permissions),
        cmocka_unit_test(processes_that_create_a_token_at_the_same_time_get_the_same_one),
        cmocka_unit_test(half_a_token_is_not_left_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
