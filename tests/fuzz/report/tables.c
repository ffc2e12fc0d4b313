/* Fuzz target: any bytes as the files of a run without event logs: result.json, master_stats.csv
 * and collect_stats.csv, with a zero byte between them. */
#include "report/summary/run_summary.h"

#include <string.h>

#include "../folder.h"

/* Large summaries only take time. */
static const at_run_summary_options small = {.points = 16, .cells = 1024, .lines = 16};

static bool has_many_workers(const uint8_t *data, size_t size)
{
    json_t *result = json_loadb((const char *)data, size, 0, NULL);
    bool    many = json_integer_value(json_object_get(result, "workers")) > 64;
    json_decref(result);
    return many;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"result.json", "master_stats.csv", "collect_stats.csv"};
    at_run_summary          *summary = NULL;
    at_fail                  fail = {0};
    for (int i = 0; i < 3; i++) {
        const uint8_t *end = i < 2 && size > 0 ? memchr(data, 0, size) : NULL;
        size_t         part = end ? (size_t)(end - data) : size;
        if (i == 0 && has_many_workers(data, part)) return 0;
        fuzz_file(names[i], data, part, NULL, 0);
        data += end ? part + 1 : part;
        size -= end ? part + 1 : part;
    }
    at_err err = at_run_summary_read(fuzz_folder(), &small, &summary, &fail);
    assert(!err == !fail.text[0]);
    if (err) return 0;
    json_t *json = at_run_summary_json(summary, 0);
    char   *text = json_dumps(json, AT_RUN_SUMMARY_JSON_FLAGS);
    assert(json && text);
    free(text);
    json_decref(json);
    at_run_summary_free(summary);
    return 0;
}
