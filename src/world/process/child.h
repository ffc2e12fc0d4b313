/* child.h - processes that cannot outlive us, and memory shared with them that cannot leak. */
#ifndef AT_WORLD_PROCESS_CHILD_H
#define AT_WORLD_PROCESS_CHILD_H

#include <stdbool.h>
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

/* This process works beside the training: it has a name for people who look at a list of processes
 * (15 letters are kept), and signals to whole groups do not end it. */
void at_child_beside(const char *name);

/* From now on this process takes only what others leave of the processor. It cannot always go back:
 * who waits for it may have to start another one. */
void at_child_idle(void);

/* Somebody waits for this child: it gets its share again. False when that is not permitted. */
bool at_child_hurry(pid_t pid);

/* Kills and reaps a child, also a stopped one. */
void at_child_end(pid_t pid);

/* How a child ended, for people: "killed by signal 9", "exited with 1". */
const char *at_child_status(int status, char *text, size_t size);

#endif
