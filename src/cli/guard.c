#include "cli/guard.h"

#include <assert.h>
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world/process/child.h"

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};
enum { PASSED_ON = sizeof passed_on / sizeof *passed_on, NAME_SIZE = 256 };

static volatile pid_t        hub;   /* 0: none */
static volatile sig_atomic_t asked; /* the last signal that asks for the end; 0: none */

static bool asks_to_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

/* What the terminal sends to the whole group reaches the hub twice; it takes both for one. */
static void pass_on(int number)
{
    int before = errno;
    if (asks_to_end(number)) asked = number;
    if (hub > 0) kill(hub, number);
    errno = before;
}

/* An ignored SIGHUP stays ignored: that is what `nohup` is for. */
static void set_handlers(void (*handler)(int), sigset_t *all)
{
    struct sigaction action = {.sa_handler = handler}, before;
    sigemptyset(all);
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < PASSED_ON; i++) {
        sigaction(passed_on[i], NULL, &before);
        bool keeps = passed_on[i] == SIGHUP && before.sa_handler == SIG_IGN;
        if (!keeps) sigaction(passed_on[i], &action, NULL);
        sigaddset(all, passed_on[i]);
    }
}

static void become_hub(pid_t parent, const sigset_t *mask)
{
    sigset_t all;
    hub = 0;
    set_handlers(SIG_DFL, &all);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) raise(SIGKILL); /* it died before the prctl */
    sigprocmask(SIG_SETMASK, mask, NULL);
}

/* 0 in the hub. No signal is lost in between. */
static pid_t start(void)
{
    sigset_t all, before;
    pid_t    parent = getpid();
    fflush(NULL); /* or the hub would write our buffered text a second time */
    set_handlers(pass_on, &all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        become_hub(parent, &before);
        return 0;
    }
    hub = pid;
    if (pid > 0 && asked) kill(pid, asked); /* it came when there was no hub */
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static int await(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    hub = 0;
    return status;
}

/* The name of the newest checkpoint of the folder; "": it has none. */
static void find_checkpoint(const char *folder, char *name, size_t size)
{
    char   pattern[4200];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/checkpoint/step-*.safetensors", folder);
    name[0] = '\0';
    if (glob(pattern, 0, NULL, &found) != 0) return;
    snprintf(name, size, "%s", strrchr(found.gl_pathv[found.gl_pathc - 1], '/') + 1);
    globfree(&found);
}

/* Ends this process in the way the hub has ended, for the shell that waits for it. */
static at_err end_like(int signal_number)
{
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    return (at_err)(128 + signal_number); /* process 1 of a container has no default actions */
}

static at_err stopped(const at_guarded *g, const char *how, at_fail *fail)
{
    char hint[300];
    snprintf(hint, sizeof hint, "resume with: anytime run --resume %.240s -- COMMAND", g->folder);
    return at_fail_set(fail, AT_ERR_STOPPED, hint, "the hub was %s when it had been told to stop",
                       how);
}

/* Counts a death of the hub; AT_OK: it is to be started again. */
static at_err count_death(const at_guarded *g, int status, char *seen, unsigned *in_a_row,
                          at_fail *fail)
{
    char how[64], newest[NAME_SIZE];
    at_child_status(status, how, sizeof how);
    find_checkpoint(g->folder, newest, sizeof newest);
    *in_a_row = strcmp(newest, seen) == 0 ? *in_a_row + 1 : 1;
    snprintf(seen, NAME_SIZE, "%s", newest);
    if (!*newest)
        return at_fail_set(fail, AT_ERR_FAILED, "use a shorter --checkpoint-every",
                           "the hub was %s before its first checkpoint", how);
    if (asked) return stopped(g, how, fail);
    if (*in_a_row > g->restarts)
        return at_fail_set(fail, AT_ERR_FAILED, NULL,
                           "the hub was %s, %u times in a row without a new checkpoint", how,
                           *in_a_row);
    fprintf(stderr, "anytime: the hub was %s; starting it again from its last checkpoint\n", how);
    return AT_OK;
}

at_err at_guard(const at_guarded *g, bool *is_hub, at_fail *fail)
{
    char     seen[NAME_SIZE];
    unsigned in_a_row = 0;
    assert(g->run);
    find_checkpoint(g->folder, seen, sizeof seen);
    for (bool again = false;; again = true) {
        pid_t pid = start();
        *is_hub = pid == 0;
        if (pid == 0) return g->run(g->self, again, fail);
        if (pid < 0)
            return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot start the hub: %s",
                               strerror(errno));
        int status = await(pid);
        if (WIFEXITED(status)) return (at_err)WEXITSTATUS(status);
        if (asks_to_end(WTERMSIG(status))) return end_like(WTERMSIG(status));
        AT_TRY(count_death(g, status, seen, &in_a_row, fail));
    }
}
