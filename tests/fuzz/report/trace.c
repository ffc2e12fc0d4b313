/* Fuzz target: any bytes as the event log of a run; its trace must be valid JSON. */
#include "report/trace/trace.h"

#include <jansson.h>

#include "../event_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char             trace[256];
    at_fail          fail = {0};
    at_trace_options options = {.events_max = 5000};
    snprintf(trace, sizeof trace, "%s/trace.json", fuzz_folder());
    fuzz_log(data, size);
    at_err err = at_trace_write(fuzz_folder(), trace, &options, NULL, &fail);
    if (err) assert(fail.err == err && fail.text[0]);
    if (!err || access(trace, F_OK) == 0) {
        json_t *document = json_load_file(trace, JSON_DECODE_INT_AS_REAL, NULL);
        assert(document);
        json_decref(document);
    }
    unlink(trace);
    return 0;
}
