/* usage.h - what a process has taken from the machine: processor time, memory, disk, network.
 *
 * All numbers are counters since the process (the machine, for the network) began, except memory,
 * which is what it has now. So a rate is the difference of two readings, and one that was missed
 * costs nothing but detail. Times of other processes come in steps of 10 ms while they live.
 *
 * Linux does not count network bytes per process. What is told is all traffic of the machine (of
 * the network namespace, to be exact), and that of the loopback interface apart.
 */
#ifndef AT_BASE_USAGE_H
#define AT_BASE_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/time.h"

/* In place of a number that the system did not tell. */
#define AT_USAGE_UNKNOWN UINT64_MAX

typedef struct at_usage {
    int64_t  pid;
    at_ns    user_ns, system_ns;          /* processor time of all its threads */
    uint64_t rss_bytes;                   /* memory that is present now; 0 when it has ended */
    uint64_t shared_bytes;                /* part of it that others may have mapped, too */
    uint64_t peak_bytes;                  /* most that was ever present */
    uint64_t read_bytes, write_bytes;     /* of disks; what caches answered does not count */
    uint64_t net_in_bytes, net_out_bytes; /* of the machine, without loopback */
    uint64_t loopback_bytes;              /* of the machine: from itself to itself */
} at_usage;

/* Reads all of it from /proc. False when there is no such process (any more); whatever else cannot
 * be read, or makes no sense, is AT_USAGE_UNKNOWN. */
bool at_usage_read(int64_t pid, at_usage *usage);

/* The same without the network, which is the same for all processes of a machine: unknown. */
bool at_usage_read_process(int64_t pid, at_usage *usage);

/* The last words of a process that was waited for: exact times, its peak and its disk blocks. */
void at_usage_ended(int64_t pid, const struct rusage *rusage, at_usage *usage);

/* As at_usage_read, from another folder than /proc. */
bool at_usage_read_from(const char *proc, int64_t pid, at_usage *usage);

/* Processor time, user and system. */
at_ns at_usage_cpu(const at_usage *usage);

#endif
