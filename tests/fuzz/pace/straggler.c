/* Fuzz target: any text as a straggler model, its scale and a law of round sizes, one per line, and
 * after a zero byte the file of a trace, which the texts call `@`. A pace that is accepted gives
 * sleeps and factors within its bounds, and the same ones again. */
#include <math.h>
#include <string.h>

#include "../folder.h"
#include "pace/pace.h"
#include "pace/round_size.h"

enum { TEXT_MAX = 512, WORKERS = 3, ROUNDS = 8, ORDERED = 64 };

static const double YEAR = 365.25 * 24 * 3600 * 1e9;

static void check_round(const at_pace *pace, const at_pace *again, uint32_t worker, uint64_t round)
{
    at_ns  nap = at_pace_sleep(pace, worker, round);
    double factor = at_pace_factor(pace, worker, round);
    assert(nap >= 0 && (double)nap <= YEAR);
    assert(isfinite(factor) && factor >= 0);
    assert(at_pace_sleep(again, worker, round) == nap);
    assert(at_pace_factor(again, worker, round) == factor);
}

static void try_model(const char *model, const char *scale, at_ns round_ns)
{
    at_pace_options options = {.model = model,
                               .scale = scale,
                               .seed = 7,
                               .workers = WORKERS,
                               .round_ns_mean = round_ns,
                               .rounds_per_epoch = 2};
    at_pace        *pace = NULL, *again = NULL;
    at_fail         fail = {0};
    at_err          err = at_pace_new(&options, &pace, &fail);
    assert(err ? !pace && fail.err == err && fail.text[0] : pace && !fail.text[0]);
    if (err) return;
    err = at_pace_new(&options, &again, &fail);
    assert(!err);
    for (uint32_t worker = 1; worker <= WORKERS; worker++)
        for (uint64_t round = 0; round < ROUNDS; round++) {
            check_round(pace, again, worker, round);
            check_round(pace, again, worker, UINT64_MAX - round);
        }
    at_pace_free(pace);
    at_pace_free(again);
}

static void try_size(const char *text)
{
    at_round_size size;
    at_fail       fail = {0};
    at_err        err = at_round_size_parse(text, 7, WORKERS, &size, &fail);
    assert(!err == !fail.text[0]);
    for (uint32_t worker = 1; !err && worker <= WORKERS; worker++)
        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint32_t drawn = at_round_size_draw(&size, worker, round, ORDERED);
            assert(drawn >= 1 && drawn <= at_round_size_max(&size, ORDERED));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char           text[TEXT_MAX + 1] = "", model[TEXT_MAX + 256], *rest = text;
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    size_t         length = end ? (size_t)(end - data) : size;
    if (length > TEXT_MAX) return 0;
    if (length > 0) memcpy(text, data, length);
    const uint8_t *trace = end ? end + 1 : data;
    const char    *straggler = strsep(&rest, "\n"), *scale = strsep(&rest, "\n");
    fuzz_put_path(model, sizeof model, straggler,
                  fuzz_file("trace", trace, end ? size - length - 1 : 0, NULL, 0));
    try_model(model, scale, AT_MS(20));
    try_model(model, scale, 0);
    if (rest) try_size(rest);
    return 0;
}
