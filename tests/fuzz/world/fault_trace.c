/* Fuzz target: any file as a trace of faults or availability. */
#include "world/sim/fault_trace.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char             path[64];
    at_fail          fail = {0};
    at_fault        *faults = NULL;
    size_t           count = 0;
    at_fault_options options = {.workers = 3, .workers_max = 6, .respawn = size % 2};
    int              fd = memfd_create("input", 0);
    assert(fd >= 0);
    assert(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    at_err err = at_fault_trace_read(path, &options, &faults, &count, &fail);
    if (err) assert(fail.err == err && fail.text[0]);
    for (size_t i = 0; i < count; i++) {
        assert(faults[i].worker >= 1 && faults[i].worker <= options.workers_max);
        assert(faults[i].at >= 0 && faults[i].lasts >= 0);
        assert(i == 0 || faults[i].at >= faults[i - 1].at);
    }
    free(faults);
    close(fd);
    return 0;
}
