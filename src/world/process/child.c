#include "world/process/child.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine.h"
#include "world/process/backoff.h"

enum { READY_MS_MAX = 1000 }; /* do not wait longer for a child that is not scheduled */

static const at_ns END_MAX = AT_SEC(2), STOP_MAX = AT_SEC(5);

void *at_child_share(size_t size, at_fail *fail)
{
    assert(size > 0);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) return memory;
    at_fail_set(fail, AT_ERR_FAILED, "use fewer workers or a smaller model",
                "cannot map %zu MB of shared memory: %s", (size + (1 << 20) - 1) >> 20,
                strerror(errno));
    return NULL;
}

static int withheld = -1;

void at_child_withhold(int fd)
{
    assert(fd >= -1);
    withheld = fd;
}

static void become_child(pid_t parent)
{
    assert(parent > 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1L);                  /* padded computation needs precise sleeps */
    if (getppid() != parent) _exit(AT_ERR_FAILED); /* the parent died before the prctl */
    if (withheld >= 0) close(withheld);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
}

/* Waits until the child has set its death signal, which it reports by closing its end of the pipe.
 * From then on a process that learns the child's pid may stop it without ever orphaning it. */
static void await_ready(int end)
{
    assert(end >= 0);
    struct pollfd ready = {.fd = end, .events = POLLIN};
    while (poll(&ready, 1, READY_MS_MAX) < 0 && errno == EINTR) continue;
}

/* Of a fork that failed nothing may be left: a pid of -1 would stand for every process in kill and
 * wait, and each attempt would cost two descriptors. */
static at_err fork_failed(int error, pid_t *pid, at_fail *fail)
{
    assert(error != 0);
    *pid = 0;
    bool files = error == EMFILE || error == ENFILE;
    return at_fail_set(fail, AT_ERR_FAILED,
                       files ? "use fewer workers, or raise the limit of open files (ulimit -n)"
                             : "use fewer workers, or raise the limit of processes (ulimit -u)",
                       "cannot start another process: %s", strerror(error));
}

at_err at_child_fork(int (*main)(void *self), void *self, pid_t *pid, at_fail *fail)
{
    pid_t parent = getpid();
    int   ready[2];
    assert(main);
    fflush(NULL); /* or the child would write our buffered text a second time */
    if (pipe2(ready, O_CLOEXEC) != 0) return fork_failed(errno, pid, fail);
    *pid = fork();
    if (*pid < 0) {
        int error = errno;
        close(ready[0]);
        close(ready[1]);
        return fork_failed(error, pid, fail);
    }
    if (*pid == 0) {
        become_child(parent);
        close(ready[0]);
        close(ready[1]);
        _exit(main(self));
    }
    close(ready[1]);
    await_ready(ready[0]);
    close(ready[0]);
    return AT_OK;
}

void at_child_background(const char *name)
{
    assert(name);
    prctl(PR_SET_NAME, name);
    at_machine_pin(-1); /* the hub may be pinned to a core that it shares with its worker */
    signal(SIGTERM, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
}

/* A policy belongs to a thread, and engines may have several. */
static bool set_policy(pid_t pid, int policy)
{
    struct sched_param none = {0};
    char               path[64];
    assert(pid > 0);
    snprintf(path, sizeof path, "/proc/%lld/task", (long long)pid);
    bool all = sched_setscheduler(pid, policy, &none) == 0;
    DIR *threads = opendir(path);
    if (!threads) return all;
    for (const struct dirent *entry; (entry = readdir(threads));) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);
        if (thread > 0 && thread != pid)
            all = sched_setscheduler(thread, policy, &none) == 0 && all;
    }
    closedir(threads);
    return all;
}

void at_child_idle(void)
{
    pid_t self = getpid();
    assert(self > 0);
    set_policy(self, SCHED_IDLE); /* if refused, normal priority remains */
}

bool at_child_hurry(pid_t pid)
{
    assert(pid > 0);
    return set_policy(pid, SCHED_OTHER);
}

void at_child_lower(pid_t pid)
{
    assert(pid > 0);
    set_policy(pid, SCHED_IDLE);
}

static bool ends_by(pid_t pid, at_ns until)
{
    at_backoff backoff = {0};
    pid_t      ended;
    while ((ended = waitpid(pid, NULL, WNOHANG)) == 0 && at_clock_now() < until)
        at_backoff_nap(&backoff, until);
    return ended != 0;
}

/* A process that dies still needs a core, which at idle priority it may not get for long. */
void at_child_end(pid_t pid)
{
    assert(pid > 0);
    at_child_hurry(pid);
    kill(pid, SIGKILL);
    (void)ends_by(pid, at_clock_now() + END_MAX);
}

void at_child_stop(pid_t pid)
{
    assert(pid > 0);
    kill(pid, SIGTERM);
    if (!ends_by(pid, at_clock_now() + STOP_MAX)) at_child_end(pid);
}

const char *at_child_status(int status, char *text, size_t size)
{
    assert(text && size > 0);
    if (WIFSIGNALED(status))
        snprintf(text, size, "killed by signal %d", WTERMSIG(status));
    else
        snprintf(text, size, "exited with %d", WEXITSTATUS(status));
    return text;
}
