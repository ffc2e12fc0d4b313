#include "cli/resource_table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { ROWS_ALL = 12 }; /* up to this many workers all have a row */

/* What is known of a process: key in result.json; heading, unit and digits on the screen. */
typedef enum field { CPU, SHARE, MEMORY, SENT, RECEIVED, READ, WRITTEN, FIELDS } field;
static const char unknown[] = "-";
static const struct {
    const char *key, *head, *unit;
    int         digits;
    double      factor;
} fields[FIELDS] = {[CPU] = {"cpu_seconds", "CPU", "s", 2, 1},
                    [SHARE] = {"cpu_share", "of a core", "%", 0, 100},
                    [MEMORY] = {"peak_bytes", "memory", "MB", 1, 1e-6},
                    [SENT] = {"sent_bytes", "sent", "MB", 1, 1e-6},
                    [RECEIVED] = {"received_bytes", "received", "MB", 1, 1e-6},
                    [READ] = {"read_bytes", "disk read", "MB", 1, 1e-6},
                    [WRITTEN] = {"write_bytes", "disk write", "MB", 1, 1e-6}};

/* One process, or the mean of some; NAN: unknown. */
typedef struct usage {
    double value[FIELDS];
} usage;

static double number_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static usage usage_of(const json_t *object)
{
    usage it;
    for (int i = 0; i < FIELDS; i++) it.value[i] = number_at(object, fields[i].key);
    return it;
}

/* The mean of those that are known. */
static usage mean_of(const usage *all, size_t count)
{
    usage mean;
    for (int i = 0; i < FIELDS; i++) {
        double sum = 0, known = 0;
        for (size_t k = 0; k < count; k++) {
            if (isnan(all[k].value[i])) continue;
            sum += all[k].value[i];
            known++;
        }
        mean.value[i] = known > 0 ? sum / known : NAN;
    }
    return mean;
}

static json_t *usage_json(const usage *it)
{
    json_t *object = json_object();
    for (int i = 0; i < FIELDS; i++) {
        double value = it->value[i];
        json_object_set_new(object, fields[i].key, isnan(value) ? json_null() : json_real(value));
    }
    return object;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* The share of a core that the system's numbers of a process mean. */
static usage sampled(const json_t *result, const json_t *resources)
{
    usage it = usage_of(resources);
    it.value[SHARE] = it.value[CPU] / number_at(result, "wall_seconds");
    return it;
}

/* What the hub sends, its workers receive. */
static usage hub_of(const json_t *result)
{
    const json_t *messages = json_object_get(result, "messages");
    usage it = sampled(result, json_object_get(json_object_get(result, "resources"), "hub"));
    it.value[SENT] = number_at(messages, "to_workers_bytes");
    it.value[RECEIVED] = number_at(messages, "to_hub_bytes");
    return it;
}

static usage worker_of(const json_t *result, size_t i)
{
    const json_t *workers = json_object_get(json_object_get(result, "resources"), "worker");
    const json_t *row = json_array_get(json_object_get(result, "worker"), i);
    usage         it = sampled(result, json_array_get(workers, i));
    it.value[SENT] = number_at(row, "sent_bytes");
    it.value[RECEIVED] = number_at(row, "received_bytes");
    return it;
}

static usage mean_worker(const json_t *result)
{
    size_t count = json_array_size(json_object_get(result, "worker"));
    usage *all = calloc(count + 1, sizeof *all);
    usage  mean = usage_of(NULL);
    if (!all) return mean;
    for (size_t i = 0; i < count; i++) all[i] = worker_of(result, i);
    mean = mean_of(all, count);
    free(all);
    return mean;
}

static usage evaluator_of(const json_t *result)
{
    return sampled(result, json_object_get(json_object_get(result, "resources"), "evaluator"));
}

json_t *at_resources_of(const json_t *result)
{
    usage hub = hub_of(result), worker = mean_worker(result), evaluator = evaluator_of(result);
    return json_pack("{s:o, s:o, s:o}", "hub", usage_json(&hub), "worker", usage_json(&worker),
                     "evaluator", usage_json(&evaluator));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool is_known(const usage *it)
{
    for (int i = 0; i < FIELDS; i++)
        if (!isnan(it->value[i])) return true;
    return false;
}

static at_table *open_table(const char *first)
{
    at_column columns[2 + FIELDS];
    size_t    count = 0;
    if (first) columns[count++] = (at_column){first, AT_ALIGN_LEFT};
    columns[count++] = (at_column){"process", AT_ALIGN_LEFT};
    for (int i = 0; i < FIELDS; i++) columns[count++] = (at_column){fields[i].head, AT_ALIGN_RIGHT};
    return at_table_new(columns, count);
}

/* One more digit for less than a megabyte. */
static int digits_of(int i, double value)
{
    return fields[i].digits + (fields[i].factor < 1 && value * fields[i].factor < 1 ? 1 : 0);
}

static void add_usage(at_table *table, const usage *it)
{
    for (int i = 0; i < FIELDS; i++) {
        if (isnan(it->value[i]))
            at_table_add(table, "%s", unknown);
        else
            at_table_add(table, "%.*f %s", digits_of(i, it->value[i]),
                         it->value[i] * fields[i].factor, fields[i].unit);
    }
}

static void add_workers(at_table *table, const json_t *result)
{
    size_t count = json_array_size(json_object_get(result, "worker"));
    for (size_t i = 0; i < count && count <= ROWS_ALL; i++) {
        usage one = worker_of(result, i);
        at_table_add(table, "worker %lld", (long long)(i + 1));
        add_usage(table, &one);
    }
    if (count <= ROWS_ALL) return;
    usage mean = mean_worker(result);
    at_table_add(table, "%zu workers, each", count);
    add_usage(table, &mean);
}

at_table *at_resource_table(const json_t *result)
{
    at_table *table = open_table(NULL);
    usage     hub = hub_of(result), evaluator = evaluator_of(result);
    if (!table) return NULL;
    at_table_add(table, "hub");
    add_usage(table, &hub);
    add_workers(table, result);
    if (is_known(&evaluator)) {
        at_table_add(table, "evaluator");
        add_usage(table, &evaluator);
    }
    at_table_drop_columns(table, unknown);
    return table;
}

static const struct {
    const char *key, *name;
} processes[] = {{"hub", "hub"}, {"worker", "worker (mean)"}, {"evaluator", "evaluator"}};
enum { PROCESSES = sizeof processes / sizeof *processes };

/* The mean of one process over repeated runs. */
static usage mean_over(const json_t *runs, const char *process)
{
    size_t count = json_array_size(runs);
    usage *all = calloc(count + 1, sizeof *all);
    usage  mean = usage_of(NULL);
    if (!all) return mean;
    for (size_t i = 0; i < count; i++) {
        const json_t *resources = json_object_get(json_array_get(runs, i), "resources");
        all[i] = usage_of(json_object_get(resources, process));
    }
    mean = mean_of(all, count);
    free(all);
    return mean;
}

bool at_resources_known(const json_t *runs)
{
    for (size_t p = 0; p < PROCESSES; p++) {
        usage mean = mean_over(runs, processes[p].key);
        if (is_known(&mean)) return true;
    }
    return false;
}

at_table *at_resources_table(const char *head, const char *const *label, const json_t *const *runs,
                             size_t count)
{
    at_table *table = open_table(head);
    for (size_t i = 0; table && i < count; i++) {
        for (size_t p = 0; p < PROCESSES; p++) {
            usage mean = mean_over(runs[i], processes[p].key);
            if (!is_known(&mean)) continue;
            at_table_add(table, "%s", label[i]);
            at_table_add(table, "%s", processes[p].name);
            add_usage(table, &mean);
        }
    }
    if (table) at_table_drop_columns(table, unknown);
    return table;
}
