/* Fuzz target: any file as a trace of faults or availability, and any text as --faults. */
#include "world/sim/fault_trace.h"

#include "world/sim/faults.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const at_fault_options options = {.workers = 3, .workers_max = 6};

static void check(const at_fault *faults, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert(faults[i].worker >= 1 && faults[i].worker <= options.workers_max);
        assert(faults[i].at >= 0 && faults[i].lasts >= 0);
        assert(i == 0 || faults[i].at >= faults[i - 1].at);
    }
}

static void try_trace(const uint8_t *data, size_t size)
{
    char             path[64];
    at_fail          fail = {0};
    at_fault        *faults = NULL;
    size_t           count = 0;
    at_fault_options o = options;
    int              fd = memfd_create("input", 0);
    assert(fd >= 0);
    assert(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    o.respawn = size % 2;
    at_err err = at_fault_trace_read(path, &o, &faults, &count, &fail);
    if (err) assert(fail.err == err && fail.text[0]);
    check(faults, count);
    free(faults);
    close(fd);
}

/* Text of its own is never the path of a trace. */
static void try_text(const uint8_t *data, size_t size)
{
    char     *text = calloc(1, size + 1);
    at_fault *faults = calloc(AT_FAULTS_MAX, sizeof *faults);
    at_fail   fail = {0};
    size_t    count = 0;
    assert(text && faults);
    memcpy(text, data, size);
    at_err err = at_faults_parse(text, options.workers_max, faults, &count, &fail);
    assert(!err == !fail.text[0]);
    if (!err) {
        check(faults, count);
        err = at_faults_check(faults, count, options.workers, size % 2, &fail);
        assert(!err == !fail.text[0]);
        for (at_node worker = 1; worker <= options.workers_max; worker++)
            (void)at_faults_joined(faults, count, worker, size % 2, AT_SEC(5));
    }
    free(faults);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_trace(data, size);
    try_text(data, size);
    return 0;
}
