/* Fuzz target: any text as a result.json, whose options `eval`, `predict` and `export` take. */
#include "cli/options/inherit.h"

#include <string.h>

#include "../folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const except[] = {"run", "resume"};
    at_parsed                parsed;
    at_fail                  fail = {0};
    at_err                   err = at_options_init(&parsed, &fail);
    assert(!err);
    fuzz_file("result.json", data, size, NULL, 0);
    err = at_inherit_run_options(&parsed, fuzz_folder(), except, 2, &fail);
    assert(!err == !fail.text[0]);
    at_options_deinit(&parsed);
    return 0;
}
