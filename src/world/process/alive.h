/* alive.h - checks whether a process of this machine still runs, safe against reused pids. */
#ifndef AT_WORLD_PROCESS_ALIVE_H
#define AT_WORLD_PROCESS_ALIVE_H

#include <stdbool.h>
#include <stdint.h>

/* Start time of the process in clock ticks since boot; 0 when no such process runs (a zombie does
 * not). A pid may be reused, and means nothing in another container; pid and start time together
 * identify one process. */
uint64_t at_alive_born(int64_t pid);

/* True while the process with this pid and start time runs. */
bool at_alive(int64_t pid, uint64_t born);

#endif
