/* Fuzz target: any bytes as a log of step times, read at once and in two pieces. */
#include "pace/step_log.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static at_err read_parts(const uint8_t *data, size_t first, size_t size, at_step_log *log,
                         at_fail *fail)
{
    at_step_log_reader *reader;
    at_step_log_options options = {.unit = 1e-3};
    if (at_step_log_reader_new(&options, &reader, fail)) return fail->err;
    at_err err = at_step_log_feed(reader, data, first, fail);
    if (!err) err = at_step_log_feed(reader, data + first, size - first, fail);
    if (!err) err = at_step_log_end(reader, log, fail);
    at_step_log_reader_free(reader);
    return err;
}

/* An accepted log is a complete table of times above 0. */
static void check(const at_step_log *log)
{
    assert(log->workers >= 1 && log->steps >= 3);
    for (size_t i = 0; i < (size_t)log->steps * log->workers; i++) {
        assert(log->seconds[i] > 0);
        assert(!log->samples || log->samples[i] > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_step_log whole = {0}, parts = {0};
    at_fail     fail = {0};
    at_err      err = read_parts(data, size, size, &whole, &fail);
    if (err) assert(fail.err == err && fail.text[0]);
    if (!err) check(&whole);
    assert(read_parts(data, size / 3, size, &parts, &fail) == err);
    if (!err) assert(parts.steps == whole.steps && parts.workers == whole.workers);
    at_step_log_deinit(&whole);
    at_step_log_deinit(&parts);
    return 0;
}
