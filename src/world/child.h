/* child.h - processes that cannot outlive us, and memory shared with them that cannot leak. */
#ifndef AT_WORLD_CHILD_H
#define AT_WORLD_CHILD_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Anonymous shared memory, zeroed; NULL and *fail when there is not enough. Ends with munmap, or by
 * itself with the last process that has it. */
void *at_child_share(size_t size, at_fail *fail);

/* Forks a child that runs main(self) and ends with its result as exit code. The child dies with its
 * parent, ignores Ctrl-C (which the terminal sends to everybody; the parent decides what it means)
 * and has the default answer to all other signals. */
at_err at_child_fork(int (*main)(void *self), void *self, pid_t *pid, at_fail *fail);

/* Makes this process one that works beside the training: at idle priority, under a name for people
 * who look at a list of processes (15 letters at most are kept), and deaf to the signals that
 * launchers send to whole groups. It ends with its parent. */
void at_child_beside(const char *name);

/* Kills and reaps a child, also a stopped one. */
void at_child_end(pid_t pid);

/* How a child ended, for people: "killed by signal 9", "exited with 1". */
const char *at_child_status(int status, char *text, size_t size);

#endif
