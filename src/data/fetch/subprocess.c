#include "data/fetch/subprocess.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TAIL_SIZE = 400, EXIT_NO_FOLDER = 126, EXIT_NO_PROGRAM = 127 };

/* The end of the output of a program. */
typedef struct output_tail {
    char   bytes[TAIL_SIZE + 1];
    size_t used;
} output_tail;

sigset_t at_subprocess_stop_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    return set;
}

static void tail_add(output_tail *tail, const char *bytes, size_t size)
{
    assert(tail->used <= TAIL_SIZE);
    if (size > TAIL_SIZE) bytes += size - TAIL_SIZE, size = TAIL_SIZE;
    size_t keep = TAIL_SIZE - size < tail->used ? TAIL_SIZE - size : tail->used;
    memmove(tail->bytes, tail->bytes + tail->used - keep, keep);
    memcpy(tail->bytes + keep, bytes, size);
    tail->used = keep + size;
    assert(tail->used <= TAIL_SIZE);
    tail->bytes[tail->used] = '\0';
}

/* Removes lines that say the same as the line after them: retries repeat their errors. */
static void drop_repeated_lines(char *text)
{
    for (char *line = text, *next; (next = strchr(line, '\n')); line = next) {
        size_t size = (size_t)(++next - line), after = strcspn(next, "\n");
        if (after + 1 != size || strncmp(line, next, after) != 0) continue;
        memmove(line, next, strlen(next) + 1);
        next = line;
    }
}

/* Makes one line of it: line ends become bars, other control characters blanks. */
static void tail_flatten(output_tail *tail)
{
    assert(tail->used <= TAIL_SIZE);
    while (tail->used > 0 && (unsigned char)tail->bytes[tail->used - 1] <= ' ') tail->used--;
    tail->bytes[tail->used] = '\0';
    drop_repeated_lines(tail->bytes);
    for (char *c = tail->bytes; *c; c++)
        if ((unsigned char)*c < ' ') *c = *c == '\n' ? '|' : ' ';
}

static void limit_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur <= AT_SUBPROCESS_FILE_MAX) return;
    limit.rlim_cur = AT_SUBPROCESS_FILE_MAX;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* The child after fork. With its own process group its children are stopped with it. */
_Noreturn static void exec_child(const char *const *arguments, const char *folder, int output)
{
    assert(arguments[0]);
    sigset_t stop = at_subprocess_stop_signals();
    int      no_input = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    limit_files();
    dup2(no_input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    if (chdir(folder)) _exit(EXIT_NO_FOLDER);
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(EXIT_NO_PROGRAM);
}

/* Collects the output until it is closed; true when a stop signal arrived. */
static bool read_output(output_tail *tail, int output, int signals, at_subprocess_watch watch)
{
    const int     look_ms = watch.look ? 1000 : -1;
    struct pollfd wait_for[] = {{.fd = output, .events = POLLIN},
                                {.fd = signals, .events = POLLIN}};
    for (;;) {
        char bytes[4096];
        int  ready = poll(wait_for, 2, look_ms);
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0) {
            if (watch.look) watch.look(watch.self);
            continue;
        }
        if (wait_for[1].revents & POLLIN) return true;
        ssize_t got = wait_for[0].revents ? read(output, bytes, sizeof bytes) : 1;
        if (got <= 0) return false;
        if (wait_for[0].revents) tail_add(tail, bytes, (size_t)got);
    }
}

static at_err check_status(const char *program, int status, output_tail *tail, const char *hint,
                           at_fail *fail)
{
    tail_flatten(tail);
    const char *text = tail->used > 0 ? tail->bytes : "no output";
    if (WIFSIGNALED(status)) {
        sigset_t stop = at_subprocess_stop_signals();
        bool     stopped = sigismember(&stop, WTERMSIG(status)) == 1;
        return at_fail_set(fail, stopped ? AT_ERR_STOPPED : AT_ERR_FAILED,
                           "run the same command again", "%s was killed by a signal (%s)", program,
                           strsignal(WTERMSIG(status)));
    }
    assert(WIFEXITED(status));
    switch (WEXITSTATUS(status)) {
    case 0: return AT_OK;
    case EXIT_NO_PROGRAM:
        return at_fail_set(fail, AT_ERR_MISSING, hint, "the program %s is not installed", program);
    default:
        return at_fail_set(fail, AT_ERR_FAILED,
                           "check the network, then run the same command again",
                           "%s failed with exit code %d: %s", program, WEXITSTATUS(status), text);
    }
}

static int reap(pid_t pid)
{
    assert(pid > 0);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return status;
}

/* The parent after fork. */
static at_err wait_for_child(pid_t pid, const char *program, int output, const char *hint,
                             at_subprocess_watch watch, int *code, at_fail *fail)
{
    assert(pid > 0 && program);
    output_tail tail = {.used = 0};
    sigset_t    stop = at_subprocess_stop_signals();
    int         signals = signalfd(-1, &stop, SFD_CLOEXEC);
    bool        stopped = read_output(&tail, output, signals, watch);
    if (stopped) kill(-pid, SIGTERM);
    int status = reap(pid);
    if (code && WIFEXITED(status)) *code = WEXITSTATUS(status);
    if (signals >= 0) close(signals);
    if (!stopped) return check_status(program, status, &tail, hint, fail);
    return at_fail_set(fail, AT_ERR_STOPPED, "run the same command again",
                       "stopped by a signal while %s was running", program);
}

at_err at_subprocess_run(const char *const *arguments, const char *folder, const char *hint,
                         int *code, at_fail *fail)
{
    return at_subprocess_run_watched(arguments, folder, hint, (at_subprocess_watch){0}, code, fail);
}

at_err at_subprocess_run_watched(const char *const *arguments, const char *folder, const char *hint,
                                 at_subprocess_watch watch, int *code, at_fail *fail)
{
    assert(arguments[0]);
    if (code) *code = -1;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot create a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) exec_child(arguments, folder, ends[1]);
    close(ends[1]);
    at_err err = pid < 0 ? at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot start %s: %s",
                                       arguments[0], strerror(errno))
                         : wait_for_child(pid, arguments[0], ends[0], hint, watch, code, fail);
    close(ends[0]);
    return err;
}
