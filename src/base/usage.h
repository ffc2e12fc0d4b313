/* usage.h - resource usage of a process: CPU time, memory, disk, network.
 *
 * All values except memory are counters since the start of the process (for the network: of the
 * machine), so a rate is the difference of two readings and a missed reading only costs detail. CPU
 * times of other running processes have a resolution of 10 ms.
 *
 * Linux does not count network bytes per process. The values are the traffic of the whole machine
 * (precisely: of the network namespace), with the loopback interface counted separately.
 */
#ifndef AT_BASE_USAGE_H
#define AT_BASE_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/time.h"

/* A value that the system did not provide. */
#define AT_USAGE_UNKNOWN UINT64_MAX

typedef struct at_usage {
    int64_t  pid;
    at_ns    user_ns, system_ns;          /* CPU time of all its threads */
    uint64_t rss_bytes;                   /* resident memory now; 0 when it has ended */
    uint64_t shared_bytes;                /* the part that other processes may share */
    uint64_t peak_bytes;                  /* maximum resident memory so far */
    uint64_t read_bytes, write_bytes;     /* disk I/O; cache hits do not count */
    uint64_t net_in_bytes, net_out_bytes; /* of the machine, without loopback */
    uint64_t loopback_bytes;              /* of the machine, sent over loopback */
} at_usage;

/* Reads all values from /proc. False when the process does not exist; other values that are missing
 * or malformed are AT_USAGE_UNKNOWN. */
bool at_usage_read(int64_t pid, at_usage *usage);

/* The same without the network values, which are the same for all processes of a machine. */
bool at_usage_read_process(int64_t pid, at_usage *usage);

/* Final usage of a process that was waited for: exact times, peak memory and disk blocks. */
void at_usage_ended(int64_t pid, const struct rusage *rusage, at_usage *usage);

/* Like at_usage_read, but from another folder than /proc, for tests. */
bool at_usage_read_from(const char *proc, int64_t pid, at_usage *usage);

/* CPU time, user plus system. */
at_ns at_usage_cpu(const at_usage *usage);

#endif
