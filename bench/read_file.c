/* Reads one file of rows with our reader and prints how long that took; see read_speed.py. */
#include "base/clock.h"
#include "data/formats/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Seconds of processor time so far, of all threads. */
static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static const at_format *find_format(const char *name)
{
    size_t i = 0;
    while (at_formats[i] && strcmp(at_formats[i]->name, name) != 0) i++;
    return at_formats[i];
}

int main(int count, char **words)
{
    at_fail          fail = {0};
    at_dataset      *set = calloc(1, sizeof *set);
    const at_format *format = count == 3 ? find_format(words[1]) : NULL;
    if (!format || !set) return fprintf(stderr, "usage: read_file FORMAT FILE\n"), 2;
    double cpu = cpu_seconds();
    at_ns  begin = at_clock_now();
    at_err err = at_format_load(format, set, words[2], AT_SPLIT_TRAIN, &fail);
    at_ns  end = at_clock_now();
    cpu = cpu_seconds() - cpu;
    if (err) return fprintf(stderr, "%s (%s)\n", fail.text, fail.hint), err;
    uint64_t     numbers = set->starts ? set->starts[set->count] : set->count * set->features;
    const float *values = set->starts ? set->values : (const float *)(const void *)set->rows;
    double       sum = 0.0;
    for (uint64_t i = 0; i < numbers; i++) sum += (double)values[i];
    printf("{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"rows\": %" PRIu64 ", \"numbers\": %" PRIu64
           ", \"sum\": %.17g}\n",
           (double)(end - begin) * 1e-9, cpu, set->count, numbers, sum);
    at_dataset_free(set);
    return 0;
}
