/* Fuzz target: any bytes as the event log of a run; its trace must be valid JSON. */
#include "report/trace/trace.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_log(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert(file);
    assert(fwrite(data, 1, size, file) == size);
    assert(fclose(file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char             folder[] = "/tmp/anytime-fuzz-XXXXXX", log[64], trace[64];
    at_fail          fail = {0};
    at_trace_options options = {.events_max = 5000};
    assert(mkdtemp(folder));
    snprintf(log, sizeof log, "%s/events.bin", folder);
    snprintf(trace, sizeof trace, "%s/trace.json", folder);
    write_log(log, data, size);
    at_err err = at_trace_write(folder, trace, &options, NULL, &fail);
    if (err) assert(fail.err == err && fail.text[0]);
    if (!err || access(trace, F_OK) == 0) {
        json_t *document = json_load_file(trace, JSON_DECODE_INT_AS_REAL, NULL);
        assert(document);
        json_decref(document);
    }
    unlink(log);
    unlink(trace);
    assert(rmdir(folder) == 0); /* no temporary file is left */
    return 0;
}
