/* machine.h - cores and memory of this machine. */
#ifndef AT_BASE_MACHINE_H
#define AT_BASE_MACHINE_H

#include <stdint.h>

/* Cores this process may run on; at least 1. */
uint32_t at_machine_cores(void);

/* Cores of the machine, including those this process may not run on (a launcher may have bound each
 * process to one core). */
uint32_t at_machine_cores_all(void);

/* The core this thread currently runs on; -1: unknown. */
int at_machine_core(void);

/* Pins this thread to a core; a negative value restores the original affinity. */
void at_machine_pin(int core);

/* Bytes of memory; 0: unknown. */
typedef struct at_memory {
    uint64_t total;
    uint64_t available; /* usable now without swapping */
} at_memory;

/* Total and available memory. */
at_memory at_machine_memory(void);

#endif
