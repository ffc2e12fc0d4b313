/* child.h - child processes that die with their parent, and shared memory that cannot leak. */
#ifndef AT_WORLD_PROCESS_CHILD_H
#define AT_WORLD_PROCESS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* Maps anonymous shared memory, zeroed; NULL and *fail when it cannot be had. Released by munmap,
 * or with the last process that has it mapped. */
void *at_child_share(size_t size, at_fail *fail);

/* Forks a child that runs main(self) and exits with its result. The child dies with its parent,
 * ignores Ctrl-C (the terminal sends it to the whole group; the parent decides what to do) and has
 * default handlers for all other signals. When that fails, *pid is 0 and nothing is left of it. For
 * children that are to be replaced when they die, see supervisor.h. */
at_err at_child_fork(int (*main)(void *self), void *self, pid_t *pid, at_fail *fail);

/* Children do not inherit this descriptor from now on; -1: none is withheld. The port of a hub that
 * was killed would otherwise stay taken until its slowest child is gone. */
void at_child_withhold(int fd);

/* Turns this process into a background helper of the training: sets the name that ps shows (15
 * characters are kept) and ignores signals sent to the whole process group. */
void at_child_background(const char *name);

/* Lowers this process to idle priority. Going back may not be permitted; then a replacement must be
 * started at normal priority. */
void at_child_idle(void);

/* Lowers a child to idle priority. */
void at_child_lower(pid_t pid);

/* Raises a child back to normal priority; false when that is not permitted. */
bool at_child_hurry(pid_t pid);

/* Kills and reaps a child, even a stopped one. One that hangs in the kernel (a disk that does not
 * answer) is not waited for longer than two seconds; it ends when the kernel lets it. */
void at_child_end(pid_t pid);

/* Asks a child to end (SIGTERM) and reaps it. It is killed if that takes longer than five
 * seconds. */
void at_child_stop(pid_t pid);

/* How a child ended, as text: "killed by signal 9", "exited with 1". */
const char *at_child_status(int status, char *text, size_t size);

#endif
