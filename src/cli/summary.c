#include "cli/summary.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/time.h"
#include "cli/output.h"
#include "cli/resource_table.h"
#include "report/summary/table.h"

enum {
    ROWS_ALL = 12, /* up to this many workers all have a row */
    ROWS_ENDS = 4, /* with more rows: only this many of the slowest and of the fastest */
    COLUMNS = 7
};

/* One worker, or the sum of all. */
typedef struct row {
    long long id;
    double    rounds, used, dropped; /* as a file has them, so that a sum is too large at worst */
    double    compute, sleep, idle;  /* seconds */
} row;

static double real_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static long long whole_at(const json_t *object, const char *key)
{
    return (long long)json_integer_value(json_object_get(object, key));
}

static row read_row(const json_t *worker)
{
    return (row){.id = whole_at(worker, "id"),
                 .rounds = real_at(worker, "rounds"),
                 .used = real_at(worker, "used"),
                 .dropped = real_at(worker, "dropped"),
                 .compute = real_at(worker, "compute_seconds"),
                 .sleep = real_at(worker, "sleep_seconds"),
                 .idle = real_at(worker, "idle_seconds") + real_at(worker, "send_seconds")};
}

static row sum_of(const row *rows, size_t count)
{
    row sum = {0};
    for (size_t i = 0; i < count; i++) {
        sum.rounds += rows[i].rounds;
        sum.used += rows[i].used;
        sum.dropped += rows[i].dropped;
        sum.compute += rows[i].compute;
        sum.sleep += rows[i].sleep;
        sum.idle += rows[i].idle;
    }
    return sum;
}

/* Mean seconds per round; infinite without a finished round. */
static double slowness(const row *it)
{
    return it->rounds > 0 ? (it->compute + it->sleep) / it->rounds : INFINITY;
}

/* Slowest first; equal ones by number. */
static int compare_slowness(const void *left, const void *right)
{
    const row *a = left, *b = right;
    double     x = slowness(a), y = slowness(b);
    if (x != y) return x > y ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static void add_share(at_table *table, double part, double whole)
{
    if (part >= 0 && part <= whole && whole > 0)
        at_table_add(table, "%.0f %%", 100 * part / whole);
    else
        at_table_add(table, " ");
}

static void add_row(at_table *table, const row *it, const char *name)
{
    double whole = it->compute + it->sleep + it->idle;
    at_table_add(table, "%s", name);
    at_table_add(table, "%.0f", it->rounds);
    at_table_add(table, "%.0f", it->used);
    at_table_add(table, "%.0f", it->dropped);
    add_share(table, it->compute, whole);
    add_share(table, it->sleep, whole);
    add_share(table, it->idle, whole);
}

static void add_worker(at_table *table, const row *it)
{
    char name[32];
    snprintf(name, sizeof name, "%lld", it->id);
    add_row(table, it, name);
}

static void add_gap(at_table *table, size_t count)
{
    assert(count > 0);
    at_table_add(table, ".. %zu more", count);
    for (int i = 1; i < COLUMNS; i++) at_table_add(table, " ");
}

static at_table *workers_table(row *rows, size_t count)
{
    static const at_column columns[COLUMNS] = {
        {"worker", AT_ALIGN_LEFT},   {"rounds", AT_ALIGN_RIGHT},  {"used", AT_ALIGN_RIGHT},
        {"dropped", AT_ALIGN_RIGHT}, {"compute", AT_ALIGN_RIGHT}, {"sleep", AT_ALIGN_RIGHT},
        {"idle", AT_ALIGN_RIGHT}};
    row       all = sum_of(rows, count);
    bool      is_short = count > ROWS_ALL;
    at_table *table = at_table_new(columns, COLUMNS);
    if (!table) return NULL;
    if (is_short) qsort(rows, count, sizeof *rows, compare_slowness);
    for (size_t i = 0; i < count; i++) {
        bool is_middle = is_short && i >= ROWS_ENDS && i < count - ROWS_ENDS;
        if (!is_middle) add_worker(table, &rows[i]);
        if (is_middle && i == ROWS_ENDS) add_gap(table, count - 2 * ROWS_ENDS);
    }
    if (count > 1) add_row(table, &all, "all");
    return table;
}

static at_err print_workers(const json_t *result, at_fail *fail)
{
    const json_t *workers = json_object_get(result, "worker");
    size_t        count = json_array_size(workers);
    row          *rows = calloc(count + 1, sizeof *rows);
    if (!rows) return at_fail_memory_for(fail, "for a table");
    for (size_t i = 0; i < count; i++) rows[i] = read_row(json_array_get(workers, i));
    puts("");
    if (count > ROWS_ALL) puts("Slowest and fastest workers:");
    at_err err = at_print_table_take(workers_table(rows, count), fail);
    puts("");
    free(rows);
    return err;
}

static void add_connection(at_table *table, const json_t *worker, const json_t *link)
{
    const json_t *trip = json_object_get(link, "round_trip_seconds");
    const char   *host = json_string_value(json_object_get(link, "host"));
    at_table_add(table, "%lld", whole_at(worker, "id"));
    at_table_add(table, "%s", host && *host ? host : " ");
    at_table_add(table, "%s", json_string_value(json_object_get(link, "address")));
    at_table_add(table, "%lld", whole_at(worker, "incarnations"));
    at_table_add(table, "%lld", whole_at(link, "losses"));
    if (json_is_number(trip))
        at_table_add(table, "%.3f ms", 1e3 * json_number_value(trip));
    else
        at_table_add(table, " ");
    at_table_add(table, "%.1f MB", real_at(link, "sent_bytes") / 1e6);
    at_table_add(table, "%.1f MB", real_at(link, "received_bytes") / 1e6);
}

/* Workers on other machines: from where they came, and how good their connections were. */
static at_err print_connections(const json_t *result, at_fail *fail)
{
    static const at_column columns[] = {
        {"worker", AT_ALIGN_LEFT},      {"host", AT_ALIGN_LEFT},     {"address", AT_ALIGN_LEFT},
        {"joins", AT_ALIGN_RIGHT},      {"losses", AT_ALIGN_RIGHT},  {"round trip", AT_ALIGN_RIGHT},
        {"sent to it", AT_ALIGN_RIGHT}, {"received", AT_ALIGN_RIGHT}};
    const json_t *workers = json_object_get(result, "worker"), *worker;
    size_t        i, count = 0;
    at_table     *table = at_table_new(columns, sizeof columns / sizeof *columns);
    json_array_foreach(workers, i, worker)
    {
        const json_t *link = json_object_get(worker, "connection");
        if (!table || !link) continue;
        if (++count <= ROWS_ALL) add_connection(table, worker, link);
    }
    if (count == 0) {
        at_table_free(table);
        return AT_OK;
    }
    at_err err = at_print_table_take(table, fail);
    if (count > ROWS_ALL) printf(".. %zu more in result.json\n", count - ROWS_ALL);
    puts("");
    return err;
}

/* What the processes used, where that was sampled or counted. */
static at_err print_resources(const json_t *result, at_fail *fail)
{
    json_t *runs = json_pack("[{s:o}]", "resources", at_resources_of(result));
    bool    known = at_resources_known(runs);
    json_decref(runs);
    if (!known) return AT_OK;
    AT_TRY(at_print_table_take(at_resource_table(result), fail));
    puts("");
    return AT_OK;
}

static bool is_virtual(const json_t *result)
{
    const char *world = json_string_value(json_object_get(result, "world"));
    return world && strcmp(world, "sim") == 0;
}

/* "3.21 s", "43.9 ms" */
static const char *show_seconds(char *buffer, size_t size, double seconds)
{
    if (seconds < 0.1)
        snprintf(buffer, size, "%.3g ms", 1e3 * seconds);
    else
        snprintf(buffer, size, "%.2f s", seconds);
    return buffer;
}

/* "target accuracy 0.85: reached after 3.21 s, step 140", or that it was missed. */
static void print_targets(const json_t *result)
{
    const json_t *targets = json_object_get(result, "targets"), *target;
    char          shown[32];
    size_t        i;
    json_array_foreach(targets, i, target)
    {
        at_print("target %s %.4g: ", json_string_value(json_object_get(target, "metric")),
                 real_at(target, "value"));
        if (json_is_number(json_object_get(target, "seconds")))
            printf("reached after %s, step %lld\n",
                   show_seconds(shown, sizeof shown, real_at(target, "seconds")),
                   whole_at(target, "step"));
        else
            printf("missed\n");
    }
}

static void print_totals(const json_t *result)
{
    const json_t *test = json_object_get(result, "test");
    const json_t *samples = json_object_get(result, "samples");
    char          shown[32];
    at_print("%s: %lld steps in %s%s, %.0f samples/s, %.0f %% of the workers' time useful\n",
             json_string_value(json_object_get(result, "strategy")), whole_at(result, "steps"),
             show_seconds(shown, sizeof shown, real_at(result, "seconds")),
             is_virtual(result) ? " of virtual time" : "", real_at(result, "samples_per_second"),
             100 * real_at(result, "useful_fraction"));
    printf("samples: %lld drawn = %lld used + %lld dropped\n", whole_at(samples, "drawn"),
           whole_at(samples, "used"), whole_at(samples, "dropped"));
    if (json_is_number(json_object_get(test, "loss")) ||
        json_is_number(json_object_get(test, "accuracy")))
        at_print_test(test);
    print_targets(result);
}

at_err at_summary_print(const json_t *result, const char *folder, bool brief, at_fail *fail)
{
    assert(json_is_object(result));
    print_totals(result);
    at_err err = brief ? AT_OK : print_workers(result, fail);
    if (!err && !brief) err = print_connections(result, fail);
    if (!err && !brief) err = print_resources(result, fail);
    at_print("written to %s\n", folder);
    return err;
}

/* ---- a simulation beside its original -------------------------------------------------------- */

static void add_cell(at_table *table, const char *format, const json_t *number)
{
    char text[48];
    if (!json_is_number(number)) {
        at_table_add(table, "-");
        return;
    }
    snprintf(text, sizeof text, format, json_number_value(number));
    at_table_add(table, "%s", text);
}

static void add_time(at_table *table, const json_t *seconds)
{
    char text[32];
    if (json_is_number(seconds))
        at_text_show_duration(text, sizeof text, AT_SEC(json_number_value(seconds)));
    at_table_add(table, "%s", json_is_number(seconds) ? text : "-");
}

static void add_run(at_table *table, const char *name, const json_t *result)
{
    const json_t *test = json_object_get(result, "test");
    at_table_add(table, "%s", name);
    at_table_add(table, "%s", json_string_value(json_object_get(result, "strategy")));
    add_cell(table, "%.0f", json_object_get(result, "steps"));
    add_time(table, json_object_get(json_object_get(result, "step_seconds"), "mean"));
    add_cell(table, "%.0f", json_object_get(result, "samples_per_second"));
    add_time(table, json_object_get(result, "seconds"));
    add_cell(table, "%.4g", json_object_get(test, "loss"));
    add_cell(table, "%.4g", json_object_get(test, "accuracy"));
}

at_err at_summary_beside(const char *from, const json_t *result, at_fail *fail)
{
    static const at_column columns[] = {
        {"run", AT_ALIGN_LEFT},        {"strategy", AT_ALIGN_LEFT},   {"steps", AT_ALIGN_RIGHT},
        {"step", AT_ALIGN_RIGHT},      {"samples/s", AT_ALIGN_RIGHT}, {"time", AT_ALIGN_RIGHT},
        {"test loss", AT_ALIGN_RIGHT}, {"accuracy", AT_ALIGN_RIGHT}};
    char path[4096 + 16];
    snprintf(path, sizeof path, "%s/result.json", from);
    json_t   *original = json_load_file(path, 0, NULL);
    at_table *table = original ? at_table_new(columns, sizeof columns / sizeof *columns) : NULL;
    if (!original) return AT_OK; /* it was killed: there is only its log */
    if (table) {
        add_run(table, "original", original);
        add_run(table, "simulated", result);
    }
    json_decref(original);
    printf("\n");
    return at_print_table_take(table, fail);
}

/* ---- explosions ------------------------------------------------------------------------------ */

/* A loss of 50 is that of a class which was given a probability of 1e-22; an R2 of -1 is twice the
 * error of the mean. */
void at_warn_of_explosion(const json_t *result)
{
    const json_t *test = json_object_get(result, "test");
    const json_t *r2 = json_object_get(test, "r2"), *loss = json_object_get(test, "loss");
    const json_t *accuracy = json_object_get(test, "accuracy");
    double        found = json_number_value(loss);
    bool          is_bad =
        json_is_number(r2) ? json_number_value(r2) < -1 : json_is_number(accuracy) && found > 50;
    if (!is_bad) return;
    fprintf(
        stderr,
        "anytime: warning: the loss has exploded (%.4g on test samples); use a smaller --lr, or "
        "scale the data with --prep normalise\n",
        json_number_value(loss));
}
