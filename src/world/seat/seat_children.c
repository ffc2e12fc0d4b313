#include "world/seat/seat_children.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/machine.h"
#include "world/process/child.h"
#include "world/process/supervisor.h"

enum { STREAMS = 2, LINE_MAX_SIZE = 4096, PATH_SIZE = 4096, PAUSE_MS = 10 };

typedef struct rank_state {
    int   fd[STREAMS]; /* where stdout and stderr go */
    int   code;        /* of its last process */
    pid_t group;       /* of its last process; 0: none, or everything in it has ended */
} rank_state;

typedef struct stream {
    char   line[LINE_MAX_SIZE];
    size_t used;
} stream;

struct at_seat_children {
    at_seat_command command;
    at_supervisor  *supervisor;
    rank_state     *rank;             /* ranks_max */
    at_supervisor  *relay;            /* of one process; NULL: there are log files */
    struct pollfd  *reading;          /* the relay's; the next one needs them if it dies */
    stream         *stream;           /* of each of these */
    char (*last)[AT_SEAT_LINE_SIZE];  /* shared with the relay */
    char     line[AT_SEAT_LINE_SIZE]; /* of a log file */
    uint32_t starting;
};

/* ---- relay: one process that reads all pipes ------------------------------------------------- */

static void write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return; /* nobody reads it: training goes on */
        bytes += wrote;
        size -= (size_t)wrote;
    }
}

static void put_line(const at_seat_children *c, uint32_t index, stream *s)
{
    char     text[LINE_MAX_SIZE + 32];
    uint32_t rank = index / STREAMS;
    bool     error = index % STREAMS == 1;
    int      used = snprintf(text, sizeof text, "[%u] %.*s\n", rank, (int)s->used, s->line);
    if (error && s->used > 0)
        snprintf(c->last[rank], AT_SEAT_LINE_SIZE, "%.*s", (int)s->used, s->line);
    write_all(error || c->command.no_stdout ? STDERR_FILENO : STDOUT_FILENO, text, (size_t)used);
    s->used = 0;
}

/* Lines longer than the buffer are printed in parts. */
static void take_bytes(const at_seat_children *c, uint32_t index, stream *s, const char *bytes,
                       size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != '\n') s->line[s->used++] = bytes[i];
        if (bytes[i] == '\n' || s->used == sizeof s->line) put_line(c, index, s);
    }
}

static int relay_main(void *self, at_fail *fail)
{
    (void)fail;
    static char             bytes[1 << 16];
    const at_seat_children *c = self;
    struct pollfd          *polls = c->reading;
    uint32_t                count = c->command.ranks_max * STREAMS, open_count = count;
    at_child_background("anytime-output");
    for (uint32_t i = 0; i < count; i++)
        close(c->rank[i / STREAMS].fd[i % STREAMS]); /* or its end would never be seen */
    while (open_count > 0) {
        if (poll(polls, count, -1) < 0 && errno != EINTR) break;
        for (uint32_t i = 0; i < count; i++) {
            if (polls[i].fd < 0 || polls[i].revents == 0) continue;
            ssize_t got = read(polls[i].fd, bytes, sizeof bytes);
            if (got < 0 && errno == EINTR) continue;
            if (got > 0) take_bytes(c, i, &c->stream[i], bytes, (size_t)got);
            if (got > 0) continue;
            if (c->stream[i].used > 0) put_line(c, i, &c->stream[i]);
            polls[i].fd = -1;
            open_count--;
        }
    }
    return 0;
}

static at_err no_output(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FAILED,
                       "use --log-dir, fewer workers, or raise the limit of open files (ulimit -n)",
                       "cannot create pipes for the output of the workers: %s", strerror(errno));
}

static at_err open_relay(at_seat_children *c, at_fail *fail)
{
    uint32_t count = c->command.ranks_max * STREAMS;
    c->reading = calloc(count, sizeof *c->reading);
    c->stream = calloc(count, sizeof *c->stream);
    if (!c->reading || !c->stream) return at_fail_memory(fail);
    for (uint32_t i = 0; i < count; i++)
        c->reading[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    for (uint32_t i = 0; i < count; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return no_output(fail);
        c->reading[i].fd = ends[0];
        c->rank[i / STREAMS].fd[i % STREAMS] = ends[1];
    }
    AT_TRY(at_supervisor_open(1, &c->relay, fail));
    return at_supervisor_start(c->relay, 0, relay_main, c, fail);
}

/* When something has killed the relay, another one goes on with the pipes. We have their read ends,
 * so that nobody gets SIGPIPE in between. */
static void mend_relay(at_seat_children *c)
{
    at_death death;
    at_fail  fail;
    if (!c->relay) return;
    (void)at_supervisor_reap(c->relay, &death);
    if (at_supervisor_pid(c->relay, 0) == 0)
        (void)at_supervisor_start(c->relay, 0, relay_main, c, &fail); /* else tried again */
}

/* ---- log files ------------------------------------------------------------------------------- */

static const char *const stream_name[STREAMS] = {"out", "err"};

static at_err open_logs(at_seat_children *c, at_fail *fail)
{
    char path[PATH_SIZE];
    AT_TRY(at_file_make_folder(c->command.log_dir, fail));
    for (uint32_t i = 0; i < c->command.ranks_max * STREAMS; i++) {
        if (i / STREAMS >= c->command.ranks) break; /* others have a file when they start */
        snprintf(path, sizeof path, "%s/rank-%u.%s", c->command.log_dir, i / STREAMS,
                 stream_name[i % STREAMS]);
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0) return at_file_error("write", path, errno, fail);
        c->rank[i / STREAMS].fd[i % STREAMS] = fd;
    }
    return AT_OK;
}

static at_err open_log_of(at_seat_children *c, uint32_t rank, at_fail *fail)
{
    char path[PATH_SIZE];
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (c->rank[rank].fd[i] >= 0) continue;
        snprintf(path, sizeof path, "%s/rank-%u.%s", c->command.log_dir, rank, stream_name[i]);
        c->rank[rank].fd[i] = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (c->rank[rank].fd[i] < 0) return at_file_error("write", path, errno, fail);
    }
    return AT_OK;
}

/* The last line that is not empty, from the end of the file. */
static void read_last_line(at_seat_children *c, uint32_t rank)
{
    char  tail[4096];
    off_t size = lseek(c->rank[rank].fd[1], 0, SEEK_END);
    off_t first = size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0;
    c->line[0] = '\0';
    if (size <= 0) return;
    ssize_t got = pread(c->rank[rank].fd[1], tail, (size_t)(size - first), first);
    while (got > 0 && (tail[got - 1] == '\n' || tail[got - 1] == '\0')) got--;
    ssize_t start = got;
    while (start > 0 && tail[start - 1] != '\n') start--;
    if (got > start) snprintf(c->line, sizeof c->line, "%.*s", (int)(got - start), tail + start);
}

/* ---- life ------------------------------------------------------------------------------------ */

at_err at_seat_children_open(const at_seat_command *command, at_seat_children **children,
                             at_fail *fail)
{
    assert(command->ranks >= 1 && command->ranks <= command->ranks_max);
    at_seat_children *c = calloc(1, sizeof *c);
    *children = c;
    if (!c) return at_fail_memory(fail);
    c->command = *command;
    c->rank = calloc(command->ranks_max, sizeof *c->rank);
    if (!c->rank) return at_fail_memory(fail);
    for (uint32_t i = 0; i < command->ranks_max; i++) c->rank[i] = (rank_state){.fd = {-1, -1}};
    c->last = at_child_share(command->ranks_max * sizeof *c->last, fail);
    if (!c->last) return fail->err;
    if (command->words) AT_TRY(command->log_dir ? open_logs(c, fail) : open_relay(c, fail));
    return at_supervisor_open(command->ranks_max, &c->supervisor, fail);
}

static void end_group(rank_state *r)
{
    if (r->group > 0) kill(-r->group, SIGKILL);
    r->group = 0;
}

/* The relay ends by itself when nobody has the other ends of its pipes any more. Something that a
 * script left running in another session must not keep us: its output is given up after a while. */
static void end_relay(at_seat_children *c)
{
    enum { TRIES = 200 };
    at_death death;
    if (!c->relay) return;
    for (int i = 0; i < TRIES && at_supervisor_pid(c->relay, 0) > 0; i++)
        if (!at_supervisor_reap(c->relay, &death)) poll(NULL, 0, PAUSE_MS);
    at_supervisor_close(c->relay);
}

void at_seat_children_close(at_seat_children *c)
{
    if (!c) return;
    for (uint32_t i = 0; c->rank && i < c->command.ranks_max; i++) end_group(&c->rank[i]);
    at_supervisor_close(c->supervisor);
    for (uint32_t i = 0; c->rank && i < c->command.ranks_max * STREAMS; i++) {
        int fd = c->rank[i / STREAMS].fd[i % STREAMS];
        if (fd >= 0) close(fd);
        if (c->reading && c->reading[i].fd >= 0) close(c->reading[i].fd);
    }
    end_relay(c);
    if (c->last) munmap(c->last, c->command.ranks_max * sizeof *c->last);
    free(c->reading);
    free(c->stream);
    free(c->rank);
    free(c);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* The library beside the program, or where an installed program has it. */
static void set_library(void)
{
    static const char *const places[] = {"", "/../lib"};
    char                     folder[PATH_SIZE], path[PATH_SIZE + 64];
    ssize_t                  length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    if (length <= 0 || getenv("ANYTIME_LIBRARY")) return;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s/libanytime.so", folder, places[i]);
        if (access(path, R_OK) != 0) continue;
        setenv("ANYTIME_LIBRARY", path, 1);
        return;
    }
}

static void set_environment(const at_seat_children *c)
{
    char number[16];
    setenv("ANYTIME_HUB", c->command.hub, 1);
    setenv("ANYTIME_TOKEN_FILE", c->command.token, 1);
    snprintf(number, sizeof number, "%u", c->starting);
    setenv("ANYTIME_RANK", number, 1);
    snprintf(number, sizeof number, "%u", c->command.ranks);
    setenv("ANYTIME_WORKERS", number, 1);
    setenv("OMP_NUM_THREADS", "1", 0);
    /* Tensors come and go with every batch. Without this, libc gives their memory back and the
     * kernel clears it again: a tenth of the time of a small convolutional net. */
    setenv("MALLOC_MMAP_THRESHOLD_", "1073741824", 0);
    setenv("MALLOC_TRIM_THRESHOLD_", "1073741824", 0);
    set_library();
}

static int start_command(void *self, at_fail *fail)
{
    static const int  numbers[] = {SIGINT, SIGTERM, SIGPIPE, SIGIO, SIGUSR1, SIGUSR2, SIGXFSZ};
    at_seat_children *c = self;
    const rank_state *r = &c->rank[c->starting];
    int               nothing = open("/dev/null", O_RDONLY);
    setpgid(0, 0);
    at_machine_pin(-1); /* the hub may share a core with its only seat */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], SIG_DFL);
    prctl(PR_SET_TIMERSLACK, 0L); /* the default */
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    dup2(r->fd[0], STDOUT_FILENO);
    dup2(r->fd[1], STDERR_FILENO);
    set_environment(c);
    execvp(c->command.words[0], (char *const *)(uintptr_t)c->command.words);
    return (int)at_fail_set(fail, AT_ERR_USAGE, "is it installed and executable?",
                            "cannot start %.300s: %s", c->command.words[0], strerror(errno));
}

at_err at_seat_children_start(at_seat_children *c, uint32_t rank, at_fail *fail)
{
    assert(rank < c->command.ranks_max);
    if (c->command.log_dir) AT_TRY(open_log_of(c, rank, fail));
    end_group(&c->rank[rank]); /* what its predecessor has left running */
    c->starting = rank;
    c->last[rank][0] = '\0';
    AT_TRY(at_supervisor_start(c->supervisor, rank, start_command, c, fail));
    c->rank[rank].group = at_supervisor_pid(c->supervisor, rank);
    setpgid(c->rank[rank].group, c->rank[rank].group); /* whoever comes first */
    return AT_OK;
}

/* ---- end ------------------------------------------------------------------------------------- */

bool at_seat_children_reap(at_seat_children *c, at_seat_end *end)
{
    at_death death;
    mend_relay(c);
    if (!at_supervisor_reap(c->supervisor, &death)) return false;
    rank_state *r = &c->rank[death.child];
    int         status = death.status;
    *end = (at_seat_end){.rank = death.child,
                         .pid = death.pid,
                         .status = status,
                         .well = WIFEXITED(status) && WEXITSTATUS(status) == 0,
                         .rusage = death.rusage};
    at_child_status(status, end->text, sizeof end->text);
    if (death.fail.err) snprintf(c->last[end->rank], AT_SEAT_LINE_SIZE, "%.250s", death.fail.text);
    r->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (kill(-r->group, 0) != 0) r->group = 0; /* empty: strangers may get its number */
    uint32_t failures = at_supervisor_failures(c->supervisor, end->rank);
    end->returns = !end->well && !death.fail.err && failures <= c->command.restarts;
    return true;
}

at_ns at_seat_children_ready_at(const at_seat_children *c, uint32_t rank)
{
    return at_supervisor_ready_at(c->supervisor, rank);
}

bool at_seat_children_command(const at_seat_children *c)
{
    return c->command.words != NULL;
}

pid_t at_seat_children_pid(const at_seat_children *c, uint32_t rank)
{
    return rank < c->command.ranks_max ? at_supervisor_pid(c->supervisor, rank) : 0;
}

uint32_t at_seat_children_running(const at_seat_children *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->command.ranks_max; i++)
        count += at_supervisor_pid(c->supervisor, i) > 0;
    return count;
}

void at_seat_children_well(at_seat_children *c, uint32_t rank)
{
    at_supervisor_well(c->supervisor, rank);
}

void at_seat_children_signal(at_seat_children *c, uint32_t rank, int number)
{
    pid_t pid = at_seat_children_pid(c, rank);
    if (pid > 0) kill(-pid, number);
}

/* The relay may still be busy with what a process printed before it ended. */
const char *at_seat_children_last_line(at_seat_children *c, uint32_t rank)
{
    enum { TRIES = 30 };
    assert(rank < c->command.ranks_max);
    for (int i = 0; c->relay && !c->last[rank][0] && i < TRIES; i++) poll(NULL, 0, PAUSE_MS);
    if (c->last[rank][0] || !c->command.log_dir) return c->last[rank];
    read_last_line(c, rank);
    return c->line;
}

int at_seat_children_code(const at_seat_children *c, uint32_t rank)
{
    assert(rank < c->command.ranks_max);
    return c->rank[rank].code;
}

void at_seat_children_forgive(at_seat_children *c, uint32_t rank)
{
    assert(rank < c->command.ranks_max);
    c->rank[rank].code = 0;
}
