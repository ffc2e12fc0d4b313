/* Workers that are about to join when their hub ends are told so, in whatever stage they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "world/net/net_seat.h"
#include "world/seat/seat_hub.h"

enum { OVER = 42, ASKS_AGAIN = 43 };

/* A hub, and a worker in a process of its own. */
typedef struct stage {
    char        folder[64];
    at_seat_hub hub;
    at_net_join join;
} stage;

static void open_stage(stage *s)
{
    at_fail             fail = {0};
    at_seat_hub_options options = {.folder = s->folder,
                                   .command = {.ranks = 1, .ranks_max = 1},
                                   .join_timeout = AT_SEC(60),
                                   .listen = "127.0.0.1:0"};
    snprintf(s->folder, sizeof s->folder, "/tmp/anytime-over-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_int_equal(at_seat_hub_open(&options, &s->hub, &fail), AT_OK);
    s->hub.job = "{}";
    s->join = (at_net_join){.hub = s->hub.address, .token_file = s->hub.token_path};
}

static void close_stage(stage *s)
{
    char token[sizeof s->hub.token_path];
    memcpy(token, s->hub.token_path, sizeof token);
    at_seat_hub_close(&s->hub);
    unlink(token);
    assert_int_equal(rmdir(s->folder), 0);
}

/* Starts a process that exits with what `work` returns; the hub is not part of it. */
static pid_t start(const stage *s, int (*work)(const at_net_join *join))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(work(&s->join));
    return pid;
}

static bool has_ended(pid_t pid, int *code)
{
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == 0) return false;
    assert_true(WIFEXITED(status));
    *code = WEXITSTATUS(status);
    return true;
}

static int ask_job(const at_net_join *join)
{
    at_fail fail = {0};
    json_t *job;
    at_err  err = at_net_ask_job(join, &job, &fail);
    return err ? (int)err : job ? ASKS_AGAIN : OVER;
}

static void a_job_is_not_told_after_the_run(void **state)
{
    (void)state;
    stage s;
    int   code = 0;
    open_stage(&s);
    at_seat_hub_dismiss(&s.hub);
    for (pid_t worker = start(&s, ask_job); !has_ended(worker, &code);) at_seat_hub_poll(&s.hub);
    assert_int_equal(code, OVER);
    close_stage(&s);
}

static void a_job_is_told_during_the_run(void **state)
{
    (void)state;
    stage s;
    int   code = 0;
    open_stage(&s);
    for (pid_t worker = start(&s, ask_job); !has_ended(worker, &code);) at_seat_hub_poll(&s.hub);
    assert_int_equal(code, ASKS_AGAIN);
    close_stage(&s);
}

/* Has proven its token, and waits for what the hub says. */
static int wait_silently(const at_net_join *join)
{
    at_fail  fail = {0};
    at_seat *seat = calloc(1, sizeof *seat);
    if (!seat || at_net_open_seat(join, seat, &fail)) return 1;
    at_err err = at_net_hear(seat, AT_SEAT_WELCOME, AT_SEC(300), &fail);
    bool   over = at_seat_hears_refusal(seat) && strstr(fail.text, AT_SEAT_OVER);
    at_seat_leave(&seat);
    return err == AT_ERR_USAGE && over ? OVER : 2;
}

static bool has_guest(const at_seat_hub *hub, at_guest_stage wanted)
{
    for (uint32_t i = 0; i < hub->guests_max; i++)
        if (hub->guest[i].stage == wanted) return true;
    return false;
}

static void who_waits_for_a_seat_is_dismissed_at_the_end(void **state)
{
    (void)state;
    stage s;
    int   code = 0;
    open_stage(&s);
    pid_t worker = start(&s, wait_silently);
    while (!has_guest(&s.hub, AT_GUEST_PROVEN)) at_seat_hub_poll(&s.hub);
    at_seat_hub_dismiss(&s.hub);
    assert_false(has_guest(&s.hub, AT_GUEST_PROVEN));
    close_stage(&s); /* the sentence arrives although the hub is gone */
    while (!has_ended(worker, &code)) at_clock_sleep_until(at_clock_now() + AT_MS(1));
    assert_int_equal(code, OVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_not_told_after_the_run),
        cmocka_unit_test(a_job_is_told_during_the_run),
        cmocka_unit_test(who_waits_for_a_seat_is_dismissed_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
