/* supervisor.h - child processes that are watched, reaped and started again.
 *
 *     at_supervisor_start(s, 2, main, self, &fail)       fork; error and exit code come back
 *     on SIGCHLD: while (at_supervisor_reap(s, &death))  each child that has ended, once
 *         at_supervisor_ready_at(s, death.child)         when to start it again, with back-off
 *     at_supervisor_well(s, 2)                           it works: its failures are forgotten
 *
 * Children are numbered 0 .. children-1; each number has at most one process at a time. Only these
 * processes are ever waited for, so other children of the program are not affected. What goes wrong
 * in a child before it works (an at_fail) is handed to its parent through shared memory.
 */
#ifndef AT_WORLD_PROCESS_SUPERVISOR_H
#define AT_WORLD_PROCESS_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/time.h"

typedef struct at_supervisor at_supervisor;

/* Runs in the child and returns its exit code. A child that cannot do its work describes why in
 * *fail. */
typedef int (*at_supervised_main)(void *self, at_fail *fail);

/* A child that has ended. */
typedef struct at_death {
    uint32_t      child;
    pid_t         pid;
    int           status; /* of wait4, see at_child_status */
    struct rusage rusage;
    at_fail       fail; /* what it said; err is AT_OK when it said nothing */
} at_death;

/* A supervisor of this many children, none of which has a process yet. */
at_err at_supervisor_open(uint32_t children, at_supervisor **supervisor, at_fail *fail);

/* Kills and reaps all children; accepts NULL. */
void at_supervisor_close(at_supervisor *supervisor);

/* Forks a child, which MUST have no process. The child dies with its parent and ignores SIGINT and
 * SIGTERM: terminals, `timeout` and batch systems send them to a whole process group, and the
 * parent decides what becomes of its children. When the fork fails, nothing of it is left, and it
 * counts as a failure of this child. */
at_err at_supervisor_start(at_supervisor *supervisor, uint32_t child, at_supervised_main main,
                           void *self, at_fail *fail);

/* Reaps one child that has ended; false: there is none. */
bool at_supervisor_reap(at_supervisor *supervisor, at_death *death);

/* The process of a child; 0: it has none. */
pid_t at_supervisor_pid(const at_supervisor *supervisor, uint32_t child);

/* Failures in a row: ends and failed forks since the child last worked. */
uint32_t at_supervisor_failures(const at_supervisor *supervisor, uint32_t child);

/* The child does its work. */
void at_supervisor_well(at_supervisor *supervisor, uint32_t child);

/* When it should be started again at the earliest: at once after the first failure in a row, then
 * after 1, 2, 4, at most 8 seconds. A fork that failed or a child that said why it failed does not
 * get better at once: those wait for a second the first time, too. */
at_ns at_supervisor_ready_at(const at_supervisor *supervisor, uint32_t child);

/* When one that was given up after `patience` failures in a row should be tried again: half a
 * minute after the last of them, after the next one a minute, then 2, 4, at most 32 minutes. */
at_ns at_supervisor_retry_at(const at_supervisor *supervisor, uint32_t child, uint32_t patience);

/* Kills a child, even a stopped one; at_supervisor_reap reports it. Without a process: nothing. */
void at_supervisor_kill(at_supervisor *supervisor, uint32_t child);

/* Kills and reaps a child, which does not count as a failure. Without a process: nothing. */
void at_supervisor_end(at_supervisor *supervisor, uint32_t child);

#endif
