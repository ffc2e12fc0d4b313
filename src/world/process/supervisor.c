#include "world/process/supervisor.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/arena.h"
#include "base/clock.h"
#include "world/process/child.h"

enum {
    PAUSES_MAX = 4,  /* the pause doubles up to 2^(PAUSES_MAX-1) seconds */
    RETRIES_MAX = 6, /* .. and that of retries up to 2^RETRIES_MAX of these: */
};
static const at_ns RETRY = AT_SEC(30);

typedef struct supervised {
    pid_t    pid; /* 0: no process */
    uint32_t failures;
    at_ns    failed_at, ready_at;
} supervised;

struct at_supervisor {
    uint32_t    children;
    supervised *child;
    at_fail    *said; /* of each child; shared with it */
    size_t      said_size;
};

/* What a new process needs; it reads this from its copy of the parent's stack. */
typedef struct birth {
    at_supervised_main main;
    void              *self;
    at_fail           *said;
    sigset_t           mask; /* of the parent, before the fork */
} birth;

at_err at_supervisor_open(uint32_t children, at_supervisor **supervisor, at_fail *fail)
{
    assert(children >= 1);
    *supervisor = NULL;
    at_supervisor *s = calloc(1, sizeof *s);
    if (!s || !at_size_product(children, sizeof(at_fail), &s->said_size)) {
        free(s);
        return at_fail_memory(fail);
    }
    s->children = children;
    s->child = calloc(children, sizeof *s->child);
    s->said = s->child ? at_child_share(s->said_size, fail) : NULL;
    if (!s->said) {
        at_err err = s->child ? fail->err : at_fail_memory(fail);
        free(s->child);
        free(s);
        return err;
    }
    *supervisor = s;
    return AT_OK;
}

void at_supervisor_close(at_supervisor *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->children; i++) at_supervisor_kill(s, i);
    for (uint32_t i = 0; i < s->children; i++) at_supervisor_end(s, i);
    munmap(s->said, s->said_size);
    free(s->child);
    free(s);
}

static supervised *child_of(const at_supervisor *s, uint32_t child)
{
    assert(s);
    assert(child < s->children);
    return &s->child[child];
}

/* ---- start ----------------------------------------------------------------------------------- */

static int supervised_main(void *self)
{
    const birth *b = self;
    assert(b->main && b->said);
    signal(SIGTERM, SIG_IGN);
    sigprocmask(SIG_SETMASK, &b->mask, NULL);
    return b->main(b->self, b->said);
}

static at_ns pause_after(uint32_t failures, bool at_once)
{
    assert(failures >= 1);
    uint32_t doublings = at_once ? failures - 1 : failures;
    if (doublings == 0) return 0;
    return AT_SEC(1) << ((doublings < PAUSES_MAX ? doublings : PAUSES_MAX) - 1);
}

static void note_failure(supervised *c, bool at_once)
{
    assert(c->pid == 0);
    c->failures++;
    c->failed_at = at_clock_now();
    c->ready_at = c->failed_at + pause_after(c->failures, at_once);
}

/* A SIGTERM between the fork and the moment at which the child ignores it waits until then. */
at_err at_supervisor_start(at_supervisor *s, uint32_t child, at_supervised_main main, void *self,
                           at_fail *fail)
{
    supervised *c = child_of(s, child);
    birth       b = {.main = main, .self = self, .said = &s->said[child]};
    sigset_t    held;
    assert(c->pid == 0);
    *b.said = (at_fail){0};
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigprocmask(SIG_BLOCK, &held, &b.mask);
    at_err err = at_child_fork(supervised_main, &b, &c->pid, fail);
    sigprocmask(SIG_SETMASK, &b.mask, NULL);
    if (err) note_failure(c, false);
    return err;
}

/* ---- end ------------------------------------------------------------------------------------- */

bool at_supervisor_reap(at_supervisor *s, at_death *death)
{
    assert(s);
    for (uint32_t i = 0; i < s->children; i++) {
        supervised *c = &s->child[i];
        if (c->pid == 0 || wait4(c->pid, &death->status, WNOHANG, &death->rusage) != c->pid)
            continue;
        death->child = i;
        death->pid = c->pid;
        death->fail = s->said[i];
        c->pid = 0;
        note_failure(c, death->fail.err == AT_OK);
        return true;
    }
    return false;
}

void at_supervisor_kill(at_supervisor *s, uint32_t child)
{
    pid_t pid = child_of(s, child)->pid;
    assert(pid >= 0); /* kill(-1) would end everything that we may signal */
    if (pid > 0) kill(pid, SIGKILL);
}

void at_supervisor_end(at_supervisor *s, uint32_t child)
{
    supervised *c = child_of(s, child);
    assert(c->pid >= 0);
    if (c->pid > 0) at_child_end(c->pid);
    c->pid = 0;
}

/* ---- state ----------------------------------------------------------------------------------- */

pid_t at_supervisor_pid(const at_supervisor *s, uint32_t child)
{
    return child_of(s, child)->pid;
}

uint32_t at_supervisor_failures(const at_supervisor *s, uint32_t child)
{
    return child_of(s, child)->failures;
}

void at_supervisor_well(at_supervisor *s, uint32_t child)
{
    child_of(s, child)->failures = 0;
}

at_ns at_supervisor_ready_at(const at_supervisor *s, uint32_t child)
{
    return child_of(s, child)->ready_at;
}

at_ns at_supervisor_retry_at(const at_supervisor *s, uint32_t child, uint32_t patience)
{
    const supervised *c = child_of(s, child);
    assert(c->failures >= patience);
    uint32_t doublings = c->failures - patience;
    return c->failed_at + (RETRY << (doublings < RETRIES_MAX ? doublings : RETRIES_MAX));
}
