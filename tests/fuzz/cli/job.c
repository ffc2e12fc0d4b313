/* Fuzz target: any bytes as the description of a run that a hub sends to `anytime work`. What is
 * accepted is a set of options, which can be written down and read again. */
#include <jansson.h>

#include "../folder.h"
#include "cli/options/options.h"

static const char *const not_taken[] = {"run", "resume"};

static at_err take(at_parsed *parsed, const json_t *job, at_fail *fail)
{
    at_err err = at_options_inherit(parsed, AT_FOR_TRAIN, job, not_taken, 2, fail);
    return err ? err : at_options_set(parsed, AT_FOR_TRAIN, "world", "net", fail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_parsed parsed, copy;
    at_fail   fail = {0};
    json_t   *job = json_loadb((const char *)data, size, 0, NULL);
    at_err    err = at_options_init(&parsed, &fail);
    assert(!err);
    if (json_is_object(job)) {
        err = take(&parsed, job, &fail);
        assert(!err == !fail.text[0]);
        if (!err && !at_options_copy(&copy, &parsed, &fail)) at_options_deinit(&copy);
    }
    at_options_deinit(&parsed);
    json_decref(job);
    return 0;
}
