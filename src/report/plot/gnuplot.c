#include "report/plot/gnuplot.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sets up the child's files: a pipe for all output, and empty input. This order works even when we
 * were started without file descriptors 0 to 2 and the pipe is one of them. */
static int arrange_files(posix_spawn_file_actions_t *actions, const char *folder, int output)
{
    assert(output >= 0);
    int error = posix_spawn_file_actions_adddup2(actions, output, 1);
    if (!error) error = posix_spawn_file_actions_adddup2(actions, output, 2);
    if (!error) error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_addchdir_np(actions, folder);
    return error;
}

/* `gnuplot -d SCRIPT...` as arguments of posix_spawn. */
typedef struct command {
    char  program[8], defaults[3];
    char  script[AT_GNUPLOT_SCRIPTS_MAX][256];
    char *argument[AT_GNUPLOT_SCRIPTS_MAX + 3];
} command;

static void make_command(command *c, const char *const *names, size_t count)
{
    assert(count >= 1 && count <= AT_GNUPLOT_SCRIPTS_MAX);
    *c = (command){.program = "gnuplot", .defaults = "-d", .argument = {c->program, c->defaults}};
    for (size_t i = 0; i < count; i++) {
        assert(names[i][0] != '-'); /* it would be an option */
        int size = snprintf(c->script[i], sizeof c->script[i], "%s.gp", names[i]);
        assert(size > 0 && (size_t)size < sizeof c->script[i]);
        c->argument[i + 2] = c->script[i];
    }
}

static int start(const char *folder, command *c, int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int                        error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = arrange_files(&actions, folder, output);
    if (!error) error = posix_spawnp(pid, c->program, &actions, NULL, c->argument, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Reads all output, so that the child never blocks, and keeps the beginning. */
static void read_output(int input, char *text, size_t size)
{
    size_t used = 0;
    char   chunk[512];
    for (;;) {
        ssize_t got = read(input, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        for (ssize_t i = 0; i < got && used + 1 < size; i++)
            text[used++] = isspace((unsigned char)chunk[i]) ? ' ' : chunk[i];
    }
    assert(used < size);
    text[used] = '\0';
}

/* True when the child exited with code 0. */
static bool wait_for(pid_t pid)
{
    assert(pid > 0);
    int   status;
    pid_t ended;
    do ended = waitpid(pid, &status, 0);
    while (ended < 0 && errno == EINTR);
    return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static at_err explain_start(const char *folder, int error, at_fail *fail)
{
    assert(error);
    if (error == ENOENT && access(folder, X_OK) == 0)
        return at_fail_set(fail, AT_ERR_MISSING,
                           "install it (Debian: apt-get install gnuplot-nox); data and scripts "
                           "are written and can be drawn later",
                           "gnuplot is not installed, so no plots were drawn");
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: cannot start gnuplot: %s", folder,
                       strerror(error));
}

at_err at_gnuplot_run(const char *folder, const char *const *names, size_t count, at_fail *fail)
{
    assert(folder);
    int     pipe_ends[2];
    pid_t   pid;
    char    output[400];
    command c;
    make_command(&c, names, count);
    if (pipe2(pipe_ends, O_CLOEXEC)) return explain_start(folder, errno, fail);
    int error = start(folder, &c, pipe_ends[1], &pid);
    close(pipe_ends[1]);
    if (!error) read_output(pipe_ends[0], output, sizeof output);
    close(pipe_ends[0]);
    if (error) return explain_start(folder, error, fail);
    if (wait_for(pid)) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: gnuplot failed: %s", folder, output);
}
