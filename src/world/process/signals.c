#include "world/process/signals.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { WATCHED = 8, STOPS = 3 }; /* the first three request a stop */
static const int   watched[WATCHED] = {SIGINT,  SIGTERM, SIGHUP,  SIGCHLD,
                                       SIGUSR1, SIGUSR2, SIGCONT, SIGIO};
static const at_ns AGAIN_AFTER = AT_MS(500);

/* Global, because a signal handler has no user argument. */
static struct {
    at_bell         *bell;
    atomic_bool      stop, child, save, continued, io;
    atomic_uint      joins;
    _Atomic at_ns    stop_at; /* of the first signal */
    const char      *notice;  /* NULL: none */
    size_t           notice_size;
    struct sigaction before[WATCHED];
    bool             held; /* also while there is no bell: */
    struct sigaction before_held[STOPS];
} state;

static void say_notice(void)
{
    if (!state.notice) return;
    ssize_t written = write(STDERR_FILENO, state.notice, state.notice_size);
    (void)written; /* nobody reads it, which is no reason not to stop */
}

static bool requests_stop(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP;
}

/* `timeout` and some batch systems send a signal to the process and to its group, which is one
 * request that arrives twice. A terminal that is closed may send more, and nobody is there who is
 * in a hurry. */
static void on_stop(int number)
{
    at_ns now = at_clock_now(); /* may be read in a handler */
    assert(requests_stop(number));
    if (!atomic_load(&state.stop)) {
        atomic_store(&state.stop_at, now);
        atomic_store(&state.stop, true);
        say_notice();
    } else if (number != SIGHUP && now - atomic_load(&state.stop_at) >= AGAIN_AFTER) {
        if (getpid() == 1) _exit(128 + number); /* of a container; it has no default actions */
        signal(number, SIG_DFL);
        raise(number); /* takes effect when the handler returns */
    }
}

static void on_signal(int number)
{
    int interrupted = errno;
    assert(state.bell);
    if (number == SIGCHLD)
        atomic_store(&state.child, true);
    else if (number == SIGUSR1)
        atomic_store(&state.save, true);
    else if (number == SIGUSR2)
        atomic_fetch_add(&state.joins, 1);
    else if (number == SIGIO)
        atomic_store(&state.io, true);
    else if (number == SIGCONT)
        atomic_store(&state.continued, true);
    else
        on_stop(number);
    at_bell_ring_loud(state.bell, AT_BELL_ALL);
    errno = interrupted;
}

/* An ignored SIGHUP stays ignored: that is what `nohup` is for. */
static void take(int number, struct sigaction action, struct sigaction *before)
{
    sigaction(number, NULL, before);
    if (number == SIGHUP && before->sa_handler == SIG_IGN) return;
    sigaction(number, &action, NULL);
    if (before->sa_handler == on_stop && !state.held) before->sa_handler = SIG_DFL;
}

void at_signals_open(at_bell *bell)
{
    assert(!state.bell);
    state.bell = bell;
    if (!state.held) atomic_store(&state.stop, false);
    atomic_store(&state.child, false);
    atomic_store(&state.save, false);
    atomic_store(&state.continued, false);
    atomic_store(&state.io, false);
    atomic_store(&state.joins, 0);
    for (int i = 0; i < WATCHED; i++)
        take(watched[i], (struct sigaction){.sa_handler = on_signal}, &state.before[i]);
}

/* What a stop signal does from now on. The second half of one request may come when the run has
 * stopped already, and must not end the program before it has written its result. */
static void restore(int number, struct sigaction action)
{
    if (requests_stop(number) && atomic_load(&state.stop) && action.sa_handler == SIG_DFL)
        action.sa_handler = on_stop;
    sigaction(number, &action, NULL);
}

void at_signals_close(void)
{
    assert(state.bell);
    for (int i = 0; i < WATCHED; i++) restore(watched[i], state.before[i]);
    state.bell = NULL;
}

void at_signals_hold(void)
{
    assert(!state.bell && !state.held);
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    atomic_store(&state.stop, false);
    for (int i = 0; i < STOPS; i++) take(watched[i], action, &state.before_held[i]);
    state.held = true;
}

void at_signals_release(void)
{
    assert(!state.bell && state.held);
    for (int i = 0; i < STOPS; i++) restore(watched[i], state.before_held[i]);
    state.held = false;
}

void at_signals_notice(const char *text)
{
    state.notice = NULL; /* a signal may come in between */
    state.notice_size = text ? strlen(text) : 0;
    state.notice = text;
}

bool at_signals_stop(void)
{
    return atomic_load(&state.stop);
}

bool at_signals_child(void)
{
    return atomic_exchange(&state.child, false);
}

bool at_signals_save(void)
{
    return atomic_exchange(&state.save, false);
}

unsigned at_signals_joins(void)
{
    return atomic_exchange(&state.joins, 0);
}

bool at_signals_continued(void)
{
    if (!atomic_load_explicit(&state.continued, memory_order_relaxed)) return false;
    return atomic_exchange(&state.continued, false);
}

bool at_signals_io(void)
{
    if (!atomic_load_explicit(&state.io, memory_order_relaxed)) return false;
    return atomic_exchange(&state.io, false);
}
