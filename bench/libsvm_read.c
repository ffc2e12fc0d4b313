/* Reads one LIBSVM file with our reader and prints how long it took; see libsvm_speed.py. */
#include "base/clock.h"
#include "data/formats/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    at_fail     fail = {0};
    at_dataset *set = calloc(1, sizeof *set);
    if (count != 2 || !set) return fprintf(stderr, "usage: libsvm_read FILE\n"), 2;
    at_ns  begin = at_clock_now();
    at_err err = at_format_libsvm.load(set, words[1], AT_SPLIT_TRAIN, &fail);
    at_ns  end = at_clock_now();
    if (err) return fprintf(stderr, "%s (%s)\n", fail.text, fail.hint), err;
    double sum = 0.0;
    for (uint64_t i = 0; i < set->starts[set->count]; i++) sum += (double)set->values[i];
    printf("{\"seconds\": %.6f, \"rows\": %" PRIu64 ", \"numbers\": %" PRIu64 ", \"sum\": %.17g}\n",
           (double)(end - begin) * 1e-9, set->count, set->starts[set->count], sum);
    at_dataset_free(set);
    return 0;
}
