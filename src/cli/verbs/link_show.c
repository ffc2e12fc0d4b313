/* What `anytime link` measured: tables for people, or JSON. */
#include <assert.h>
#include <stdio.h>

#include "cli/print.h"
#include "cli/verbs/link.h"

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

static json_t *size_json(const at_link_report *r, const at_link_size *s)
{
    double  limit = r->mpi ? s->bare : s->loops;
    json_t *row = json_pack("{s:I, s:I, s:o, s:o}", "parameters", (json_int_t)s->floats, "bytes",
                            (json_int_t)bytes_of(s->floats), "loops",
                            place_json(s->loops, limit, s->floats), r->mpi ? "pingpong" : "solo",
                            place_json(r->mpi ? s->trip : s->solo, limit, s->floats));
    if (r->mpi) json_object_set_new(row, "bare", place_json(s->bare, limit, s->floats));
    json_object_set_new(row, r->mpi ? "mpi" : "local", place_json(s->world, limit, s->floats));
    return row;
}

static json_t *crowd_json(const at_link_crowd *c)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "workers", (json_int_t)c->workers, "round_seconds",
                     c->round, "rounds_per_second", share(1, c->round), "worker_seconds",
                     c->round / c->workers);
}

json_t *at_link_json(const at_link_report *r)
{
    json_t *sizes = json_array(), *crowds = json_array();
    for (uint32_t i = 0; i < r->sizes; i++) json_array_append_new(sizes, size_json(r, &r->size[i]));
    for (uint32_t i = 0; i < r->crowds; i++)
        json_array_append_new(crowds, crowd_json(&r->crowd[i]));
    json_t *root =
        json_pack("{s:s, s:I, s:I, s:o}", "world", r->mpi ? "mpi" : "local", "cores",
                  (json_int_t)r->cores, "workers", (json_int_t)r->workers, "sizes", sizes);
    if (!r->mpi)
        json_object_update_new(root, json_pack("{s:{s:f, s:f}, s:{s:I, s:O}}", "ring",
                                               "awake_seconds", r->ring_awake, "asleep_seconds",
                                               r->ring_asleep, "crowd", "parameters",
                                               (json_int_t)r->crowd_floats, "workers", crowds));
    json_decref(crowds);
    return root;
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

static void add_share(at_table *table, double limit, double seconds)
{
    at_table_add(table, "%.0f %%", 100 * share(limit, seconds));
}

static void add_size(at_table *table, const at_link_report *r, const at_link_size *s)
{
    add_bytes(table, bytes_of(s->floats));
    add_time(table, s->loops);
    add_time(table, r->mpi ? s->trip : s->solo);
    if (r->mpi)
        add_time(table, s->bare);
    else
        add_share(table, s->loops, s->solo);
    add_time(table, s->world);
    add_share(table, r->mpi ? s->bare : s->loops, s->world);
    at_table_add(table, "%.0f", share(1, s->world));
    at_table_add(table, "%.3g", share(bytes_of(s->floats), s->world) / 1e9);
}

/* Behind a time, what part of its limit it reaches: of the loops, in one process or over MPI. */
static at_err print_sizes(const at_link_report *r, at_fail *fail)
{
    const at_column local[] = {{"round of", AT_ALIGN_RIGHT},  {"loops", AT_ALIGN_RIGHT},
                               {"0 workers", AT_ALIGN_RIGHT}, {"", AT_ALIGN_RIGHT},
                               {"1 worker", AT_ALIGN_RIGHT},  {"", AT_ALIGN_RIGHT},
                               {"rounds/s", AT_ALIGN_RIGHT},  {"GB/s", AT_ALIGN_RIGHT}};
    const at_column mpi[] = {{"round of", AT_ALIGN_RIGHT},  {"loops", AT_ALIGN_RIGHT},
                             {"ping-pong", AT_ALIGN_RIGHT}, {"bare", AT_ALIGN_RIGHT},
                             {"ours", AT_ALIGN_RIGHT},      {"", AT_ALIGN_RIGHT},
                             {"rounds/s", AT_ALIGN_RIGHT},  {"GB/s", AT_ALIGN_RIGHT}};
    at_table       *table = at_table_new(r->mpi ? mpi : local, sizeof local / sizeof *local);
    _Static_assert(sizeof local == sizeof mpi, "both have as many columns");
    for (uint32_t i = 0; table && i < r->sizes; i++) add_size(table, r, &r->size[i]);
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
    if (r->mpi) {
        printf("mpi: a hub and %u worker%s\n\n", r->workers, r->workers == 1 ? "" : "s");
        return print_sizes(r, fail);
    }
    printf("local, %u cores\n\n", r->cores);
    AT_TRY(print_sizes(r, fail));
    printf("\na message of nothing, there and back: %.3g us, or %.3g us to sleepers\n",
           r->ring_awake * 1e6, r->ring_asleep * 1e6);
    printf("\nas workers grow in number, with %.3g kB:\n\n", bytes_of(r->crowd_floats) / 1e3);
    return print_crowds(r, fail);
}
