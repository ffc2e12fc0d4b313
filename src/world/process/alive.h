/* alive.h - is a process still there, as far as this machine can tell? */
#ifndef AT_WORLD_PROCESS_ALIVE_H
#define AT_WORLD_PROCESS_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

/* When the process began, in the kernel's count since the machine was started; 0 when there is no
 * such process, or only the remains of one. A pid alone may be given to another process one day,
 * and means nothing in another container; the two together name one process for good. */
uint64_t at_alive_born(int64_t pid);

/* Is the process that began then still there? */
bool at_alive(int64_t pid, uint64_t born);

#endif
