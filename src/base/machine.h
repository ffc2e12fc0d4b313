/* machine.h - what this machine has: cores and memory. */
#ifndef AT_BASE_MACHINE_H
#define AT_BASE_MACHINE_H

#include <stdint.h>

/* Cores this process may run on; at least 1. */
uint32_t at_machine_cores(void);

/* Cores of the machine, also those this process may not run on: a launcher may have given each of
 * its processes one. */
uint32_t at_machine_cores_all(void);

/* The core that this thread runs on now; -1: unknown. */
int at_machine_core(void);

/* Keeps this thread on one core; a negative one lets it run wherever it might before. */
void at_machine_stay(int core);

/* Bytes of memory; 0: unknown. */
typedef struct at_memory {
    uint64_t total;
    uint64_t available; /* could be used now without swapping */
} at_memory;

/* What there is and what is left of it. */
at_memory at_machine_memory(void);

#endif
