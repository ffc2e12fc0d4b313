/* What `anytime link` measured: tables for people, or JSON. */
#include <assert.h>
#include <stdio.h>

#include "cli/link.h"
#include "cli/print.h"

static double bytes_of(size_t floats)
{
    return (double)floats * sizeof(float);
}

/* What part of a limit was reached. */
static double share(double limit, double seconds)
{
    assert(limit >= 0);
    return seconds > 0 ? limit / seconds : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *place_json(double seconds, double limit, size_t floats)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "round_seconds", seconds, "rounds_per_second",
                     share(1, seconds), "bytes_per_second", share(bytes_of(floats), seconds),
                     "share", share(limit, seconds));
}

static json_t *size_json(const at_link_size *s, const char *world)
{
    return json_pack(
        "{s:I, s:I, s:o, s:o, s:o}", "parameters", (json_int_t)s->floats, "bytes",
        (json_int_t)bytes_of(s->floats), "loops", place_json(s->loops, s->loops, s->floats), "solo",
        place_json(s->solo, s->loops, s->floats), world, place_json(s->world, s->loops, s->floats));
}

json_t *at_link_json(const at_link_report *r)
{
    json_t *sizes = json_array(), *crowds = json_array();
    for (uint32_t i = 0; i < r->sizes; i++)
        json_array_append_new(sizes, size_json(&r->size[i], r->world));
    for (uint32_t i = 0; i < r->crowds; i++)
        json_array_append_new(crowds, json_pack("{s:I, s:f, s:f, s:f}", "workers",
                                                (json_int_t)r->crowd[i].workers, "round_seconds",
                                                r->crowd[i].round, "rounds_per_second",
                                                share(1, r->crowd[i].round), "worker_seconds",
                                                r->crowd[i].round / r->crowd[i].workers));
    return json_pack("{s:s, s:I, s:{s:f, s:f}, s:o, s:{s:I, s:o}}", "world", r->world, "cores",
                     (json_int_t)r->cores, "ring", "awake_seconds", r->ring_awake, "asleep_seconds",
                     r->ring_asleep, "sizes", sizes, "crowd", "parameters",
                     (json_int_t)r->crowd_floats, "workers", crowds);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void add_bytes(at_table *table, double bytes)
{
    if (bytes >= 1e6)
        at_table_add(table, "%.3g MB", bytes / 1e6);
    else
        at_table_add(table, "%.3g kB", bytes / 1e3);
}

static void add_time(at_table *table, double seconds)
{
    if (seconds >= 1e-3)
        at_table_add(table, "%.3g ms", seconds * 1e3);
    else
        at_table_add(table, "%.3g us", seconds * 1e6);
}

static at_err print_sizes(const at_link_report *r, at_fail *fail)
{
    const at_column columns[] = {{"round of", AT_ALIGN_RIGHT},  {"loops", AT_ALIGN_RIGHT},
                                 {"0 workers", AT_ALIGN_RIGHT}, {"", AT_ALIGN_RIGHT},
                                 {"1 worker", AT_ALIGN_RIGHT},  {"", AT_ALIGN_RIGHT},
                                 {"rounds/s", AT_ALIGN_RIGHT},  {"GB/s", AT_ALIGN_RIGHT}};
    at_table       *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; table && i < r->sizes; i++) {
        const at_link_size *s = &r->size[i];
        add_bytes(table, bytes_of(s->floats));
        add_time(table, s->loops);
        add_time(table, s->solo);
        at_table_add(table, "%.0f %%", 100 * share(s->loops, s->solo));
        add_time(table, s->world);
        at_table_add(table, "%.0f %%", 100 * share(s->loops, s->world));
        at_table_add(table, "%.0f", share(1, s->world));
        at_table_add(table, "%.3g", share(bytes_of(s->floats), s->world) / 1e9);
    }
    return at_print_table_take(table, fail);
}

static at_err print_crowds(const at_link_report *r, at_fail *fail)
{
    const at_column columns[] = {{"workers", AT_ALIGN_RIGHT},
                                 {"round", AT_ALIGN_RIGHT},
                                 {"rounds/s", AT_ALIGN_RIGHT},
                                 {"a worker", AT_ALIGN_RIGHT}};
    at_table       *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; table && i < r->crowds; i++) {
        const at_link_crowd *c = &r->crowd[i];
        at_table_add(table, "%u", c->workers);
        add_time(table, c->round);
        at_table_add(table, "%.0f", share(1, c->round));
        add_time(table, c->round / c->workers);
    }
    return at_print_table_take(table, fail);
}

at_err at_link_print(const at_link_report *r, at_fail *fail)
{
    printf(
        "%s, %u cores; a message of nothing, there and back: %.3g us, or %.3g us to sleepers\n\n",
        r->world, r->cores, r->ring_awake * 1e6, r->ring_asleep * 1e6);
    AT_TRY(print_sizes(r, fail));
    printf("\nas workers grow in number, with %.3g kB:\n\n", bytes_of(r->crowd_floats) / 1e3);
    return print_crowds(r, fail);
}
