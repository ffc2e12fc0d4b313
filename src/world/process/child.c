#include "world/process/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine.h"

enum { PROMISE_MS_MAX = 1000 }; /* a child that nobody schedules must not hold us up */

void *at_child_share(size_t size, at_fail *fail)
{
    assert(size > 0);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) return memory;
    at_fail_set(fail, AT_ERR_FAILED, "use fewer workers or a smaller model",
                "cannot share %zu MB with the workers: %s", size >> 20, strerror(errno));
    return NULL;
}

static void become_child(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1L);                  /* padded compute sleeps by the microsecond */
    if (getppid() != parent) _exit(AT_ERR_FAILED); /* it died before we asked to die with it */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
}

/* Waits until the child has asked to die with us, which it tells by closing its end of the pipe.
 * Whoever learns its pid from us can then freeze it without making an orphan of it one day. */
static void await_promise(int end)
{
    struct pollfd promise = {.fd = end, .events = POLLIN};
    while (poll(&promise, 1, PROMISE_MS_MAX) < 0 && errno == EINTR) continue;
}

at_err at_child_fork(int (*main)(void *self), void *self, pid_t *pid, at_fail *fail)
{
    pid_t parent = getpid();
    int   promise[2];
    fflush(NULL); /* or the child would write our buffered text once more */
    *pid = pipe2(promise, O_CLOEXEC) == 0 ? fork() : -1;
    if (*pid < 0)
        return at_fail_set(fail, AT_ERR_FAILED, "use fewer workers, or raise ulimit -u",
                           "cannot start another process: %s", strerror(errno));
    if (*pid == 0) {
        become_child(parent);
        close(promise[0]);
        close(promise[1]);
        _exit(main(self));
    }
    close(promise[1]);
    await_promise(promise[0]);
    close(promise[0]);
    return AT_OK;
}

void at_child_beside(const char *name)
{
    prctl(PR_SET_NAME, name);
    at_machine_pin(-1); /* the hub may share one core with its worker; we do not */
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
}

void at_child_idle(void)
{
    struct sched_param none = {0};
    sched_setscheduler(0, SCHED_IDLE, &none); /* refused somewhere? then at normal priority */
}

bool at_child_hurry(pid_t pid)
{
    struct sched_param none = {0};
    assert(pid > 0);
    return sched_setscheduler(pid, SCHED_OTHER, &none) == 0;
}

void at_child_end(pid_t pid)
{
    assert(pid > 0);
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

const char *at_child_status(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d", WTERMSIG(status));
    else
        snprintf(text, size, "exited with %d", WEXITSTATUS(status));
    return text;
}
