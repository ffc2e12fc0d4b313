#include "world/process/signals.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>

enum { WATCHED = 4 };
static const int watched[WATCHED] = {SIGINT, SIGTERM, SIGCHLD, SIGUSR1};

/* Global, because a signal handler has no user argument. */
static struct {
    at_bell         *bell;
    atomic_bool      stop, child, save;
    struct sigaction before[WATCHED];
} state;

static void on_stop(void)
{
    atomic_store(&state.stop, true);
    signal(SIGINT, SIG_DFL); /* the second signal, of either kind, ends the program */
    signal(SIGTERM, SIG_DFL);
}

static void on_signal(int number)
{
    int interrupted = errno;
    if (number == SIGCHLD)
        atomic_store(&state.child, true);
    else if (number == SIGUSR1)
        atomic_store(&state.save, true);
    else
        on_stop();
    at_bell_ring_loud(state.bell, AT_BELL_ALL);
    errno = interrupted;
}

void at_signals_open(at_bell *bell)
{
    assert(!state.bell);
    state.bell = bell;
    atomic_store(&state.stop, false);
    atomic_store(&state.child, false);
    atomic_store(&state.save, false);
    for (int i = 0; i < WATCHED; i++) {
        struct sigaction action = {.sa_handler = on_signal};
        sigaction(watched[i], &action, &state.before[i]);
    }
}

void at_signals_close(void)
{
    assert(state.bell);
    for (int i = 0; i < WATCHED; i++) sigaction(watched[i], &state.before[i], NULL);
    state.bell = NULL;
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
