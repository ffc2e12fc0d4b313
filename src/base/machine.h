/* machine.h - cores and memory of this machine. */
#ifndef AT_BASE_MACHINE_H
#define AT_BASE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Cores this process may run on; at least 1. */
uint32_t at_machine_cores(void);

/* Cores of the machine, including those this process may not run on (a launcher may have bound each
 * process to one core). */
uint32_t at_machine_cores_all(void);

/* Threads of this process; at least 1. */
uint32_t at_machine_threads(void);

/* The core this thread currently runs on; -1: unknown. */
int at_machine_core(void);

/* Pins this thread to a core; a negative value restores the original affinity. */
void at_machine_pin(int core);

/* The cores that a thread may run on. */
typedef struct at_cores {
    unsigned long bits[16];
    bool          known;
} at_cores;

/* Keeps this thread on its current core, and gives it its cores back. For the time of a sleep: the
 * scheduler likes to wake a thread on an idle core, far from the data it is woken for. */
at_cores at_machine_stay(void);
void     at_machine_unstay(const at_cores *cores);

/* Bytes of memory; 0: unknown. */
typedef struct at_memory {
    uint64_t total;
    uint64_t available; /* usable now without swapping */
} at_memory;

/* Total and available memory. */
at_memory at_machine_memory(void);

enum { AT_BOOT_ID_SIZE = 36 };

/* A text that is different each time the machine is started; false: unknown. */
bool at_machine_boot_id(char text[AT_BOOT_ID_SIZE + 1]);

/* Makes this thread, and those it starts, treat denormal numbers (below 1e-38 in float) as zero.
 * Processors compute with them many times more slowly, and a confident softmax is full of them.
 * No effect on processors other than x86-64. */
void at_machine_flush_denormals(void);

#endif
