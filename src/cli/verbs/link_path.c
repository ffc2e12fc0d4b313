/* `anytime link ADDRESS:PORT`: measures the path to a hub and shows what it suits.
 *
 *     round trip, bytes per second each way (world/net/net_probe.h); packing on this machine
 *     ─► what a step costs for models of several sizes, plain and compressed
 *
 * A step costs a round trip, the parameters to all workers and the gradients back. All of them
 * share the connection of the hub, so with N workers N of each pass through it.
 */
#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/output.h"
#include "cli/verbs/link.h"
#include "message/compress.h"
#include "world/net/net_probe.h"

static const char  SIZES[] = "31.4k,1M,10M,100M";
static const at_ns DURATION = AT_SEC(1);
static const at_ns RECONNECT = AT_SEC(10);

enum { PACKED_FLOATS = 1 << 20, REPEATS = 3, PLAIN = 0, BF16 = 1, TOPK = 2, WAYS = 3 };

static const at_compress how[WAYS] = {{.kind = AT_COMPRESS_NONE},
                                      {.kind = AT_COMPRESS_BF16},
                                      {.kind = AT_COMPRESS_TOPK, .share = 0.01}};

typedef struct path_report {
    const char *address;
    at_net_path path;
    uint32_t    workers;
    double      pack[WAYS]; /* seconds to pack and unpack a float of a gradient */
    size_t      floats[AT_LINK_SIZES_MAX];
    uint32_t    sizes;
} path_report;

/* ---- what a step costs ----------------------------------------------------------------------- */

static at_err time_packing(at_compress compress, float *vector, float *residual, double *per_float,
                           at_fail *fail)
{
    at_packing packing;
    at_ns      best = AT_NEVER;
    bool       fits = at_packing_of_gradient(compress, PACKED_FLOATS, 0, &packing);
    assert(fits);
    (void)fits;
    void *bytes = malloc(packing.size);
    if (!bytes) return at_fail_memory(fail);
    at_err err = AT_OK;
    for (int i = 0; i < REPEATS && !err; i++) {
        at_ns begin = at_clock_now();
        at_pack_with_residual(&packing, bytes, vector, residual);
        err = at_unpack(&packing, vector, bytes, packing.size, fail);
        at_ns took = at_clock_now() - begin;
        if (took < best) best = took;
    }
    free(bytes);
    *per_float = at_seconds(best) / PACKED_FLOATS;
    return err;
}

static at_err measure_packing(path_report *r, at_fail *fail)
{
    float *vector = calloc(PACKED_FLOATS, sizeof *vector);
    float *residual = calloc(PACKED_FLOATS, sizeof *residual);
    at_err err = vector && residual ? AT_OK : at_fail_memory(fail);
    for (int way = BF16; way < WAYS && !err; way++) {
        for (uint32_t i = 0; i < PACKED_FLOATS; i++) vector[i] = (float)((i * 2654435761u) >> 8);
        err = time_packing(how[way], vector, residual, &r->pack[way], fail);
    }
    free(vector);
    free(residual);
    return err;
}

static double step_seconds(const path_report *r, int way, size_t floats)
{
    at_packing params, gradient;
    double     n = r->workers;
    bool       fits = at_packing_of_params(how[way], floats, 0, &params) &&
                at_packing_of_gradient(how[way], floats, 0, &gradient);
    assert(fits); /* --sizes has a limit */
    if (!fits) return 0;
    return r->path.trip_seconds + n * (double)params.size / r->path.down +
           n * (double)gradient.size / r->path.up + (1 + n) * r->pack[way] * (double)floats;
}

/* Rounds that are this long spend a tenth of the time on messages. */
static double round_seconds(double step)
{
    return 9 * step;
}

/* The longer a step takes, the fewer a run should make. */
static const char *suits(double step)
{
    static const struct {
        double      most;
        const char *text;
    } rows[] = {{0.01, "every strategy"},
                {0.1, "fmb, amb, backup"},
                {1, "amb, local-sgd"},
                {HUGE_VAL, "local-sgd, diloco"}};
    size_t i = 0;
    while (step > rows[i].most) i++;
    return rows[i].text;
}

/* The way that is fastest for the largest model. */
static int best_way(const path_report *r)
{
    size_t floats = r->floats[r->sizes - 1];
    int    best = PLAIN;
    assert(r->sizes >= 1);
    for (int way = BF16; way < WAYS; way++)
        if (step_seconds(r, way, floats) < 0.9 * step_seconds(r, best, floats)) best = way;
    return best;
}

static void advise(const path_report *r, char *text, size_t size)
{
    static const char *const option[WAYS] = {"", "bf16", "topk:0.01"};
    size_t                   floats = r->floats[r->sizes - 1];
    int                      way = best_way(r);
    double                   gain = step_seconds(r, PLAIN, floats) / step_seconds(r, way, floats);
    if (way == PLAIN)
        snprintf(text, size,
                 "Compression does not pay on this path: packing takes as long as it "
                 "saves.");
    else
        snprintf(
            text, size,
            "Compression pays: with --compress %s a step of the largest model is %.1f times as "
            "fast.",
            option[way], gain);
}

/* ---- output ---------------------------------------------------------------------------------- */

static json_t *size_json(const path_report *r, size_t floats)
{
    double plain = step_seconds(r, PLAIN, floats);
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:s}", "parameters", (json_int_t)floats,
                     "bytes", (json_int_t)(floats * sizeof(float)), "step_seconds", plain,
                     "step_seconds_bf16", step_seconds(r, BF16, floats), "step_seconds_topk",
                     step_seconds(r, TOPK, floats), "round_seconds", round_seconds(plain), "suits",
                     suits(plain));
}

static json_t *report_json(const path_report *r)
{
    char    text[200];
    json_t *sizes = json_array();
    advise(r, text, sizeof text);
    for (uint32_t i = 0; i < r->sizes; i++)
        json_array_append_new(sizes, size_json(r, r->floats[i]));
    return json_pack("{s:s, s:s, s:b, s:I, s:f, s:{s:f, s:f}, s:f, s:f, s:o, s:s}", "world", "net",
                     "address", r->address, "encrypted", (int)r->path.encrypted, "workers",
                     (json_int_t)r->workers, "join_seconds", r->path.join_seconds,
                     "round_trip_seconds", "p50", r->path.trip_seconds, "min",
                     r->path.trip_min_seconds, "up_bytes_per_second", r->path.up,
                     "down_bytes_per_second", r->path.down, "sizes", sizes, "advice", text);
}

static at_err print_sizes(const path_report *r, at_fail *fail)
{
    const at_column columns[] = {{"model", AT_ALIGN_RIGHT},     {"step", AT_ALIGN_RIGHT},
                                 {"bf16", AT_ALIGN_RIGHT},      {"topk:0.01", AT_ALIGN_RIGHT},
                                 {"rounds of", AT_ALIGN_RIGHT}, {"suits", AT_ALIGN_LEFT}};
    at_table       *table = at_table_new(columns, sizeof columns / sizeof *columns);
    for (uint32_t i = 0; table && i < r->sizes; i++) {
        double plain = step_seconds(r, PLAIN, r->floats[i]);
        at_link_add_bytes(table, (double)r->floats[i] * sizeof(float));
        for (int way = PLAIN; way < WAYS; way++)
            at_link_add_time(table, step_seconds(r, way, r->floats[i]));
        at_link_add_time(table, round_seconds(plain));
        at_table_add(table, "%s", suits(plain));
    }
    return at_print_table_take(table, fail);
}

static at_err print_report(const path_report *r, at_fail *fail)
{
    const at_net_path *p = &r->path;
    char               text[200];
    printf("Path to %s, %s\n\n", r->address, p->encrypted ? "TLS 1.3" : "not encrypted");
    printf("round trip    %.3g ms (fastest %.3g ms)\n", 1e3 * p->trip_seconds,
           1e3 * p->trip_min_seconds);
    printf("to the hub    %.4g MB/s\n", p->up / 1e6);
    printf("from the hub  %.4g MB/s\n", p->down / 1e6);
    printf("joining       %.3g ms\n", 1e3 * p->join_seconds);
    printf("\nMessages of a step with %u worker%s at this hub, and the length of rounds from which "
           "on they take\nless than a tenth of the time:\n\n",
           r->workers, r->workers == 1 ? "" : "s");
    AT_TRY(print_sizes(r, fail));
    advise(r, text, sizeof text);
    printf("\n%s\n", text);
    return AT_OK;
}

/* ---- the verb -------------------------------------------------------------------------------- */

at_err at_link_path(const at_parsed *parsed, at_fail *fail)
{
    const at_settings *s = &parsed->settings;
    path_report        r = {.address = parsed->word[0],
                            .workers = s->workers > 0 ? (uint32_t)s->workers : 1};
    at_net_join        join = {.hub = r.address,
                               .token_file = s->token ? s->token : getenv("ANYTIME_TOKEN_FILE"),
                               .reconnect = RECONNECT};
    if (parsed->words > 1)
        return at_fail_set(fail, AT_ERR_USAGE, "give one ADDRESS:PORT", "unexpected argument '%s'",
                           parsed->word[1]);
    if (!join.token_file)
        return at_fail_set(fail, AT_ERR_USAGE, "use --token FILE with a copy of RUN/token",
                           "no token was given");
    at_warn_exposed_token(join.token_file);
    AT_TRY(at_link_sizes(s->sizes ? s->sizes : SIZES, r.floats, &r.sizes, fail));
    AT_TRY(at_net_measure(&join, s->seconds > 0 ? s->seconds : DURATION, &r.path, fail));
    AT_TRY(measure_packing(&r, fail));
    return s->json ? at_print_json_take(report_json(&r), fail) : print_report(&r, fail);
}
