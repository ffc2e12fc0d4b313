/* Fuzz target: any bytes as a config file, for training and for comparing. */
#include "cli/options/options.h"

#include <string.h>

#include "../folder.h"

static void try_verb(const char *path, unsigned verb)
{
    const char *arguments[] = {"--config", path};
    at_parsed   parsed;
    at_fail     fail = {0};
    at_err      err = at_options_init(&parsed, &fail);
    assert(!err);
    err = at_options_parse(&parsed, verb, 2, arguments, &fail);
    assert(!err == !fail.text[0]);
    at_options_deinit(&parsed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s", fuzz_file("input.conf", data, size, NULL, 0));
    try_verb(path, AT_FOR_TRAIN);
    try_verb(path, AT_FOR_COMPARE);
    return 0;
}
