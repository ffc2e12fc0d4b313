/* Taking a seat: connection, proof, spec, memory. */
#include <assert.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "net/address.h"
#include "world/seat/seat_client.h"

enum { TOKEN_FILE_MAX = 4096, MESSAGE_MAX = 1 << 20, PATH_SIZE = 4096 };
static const at_ns SEND_TIME = AT_SEC(30);
static const at_ns PARAMS_TIME = AT_SEC(600); /* a large model over a slow network */
static const at_ns RECONNECT_TIME = AT_SEC(60);
static const at_ns JOIN_TIME = AT_SEC(600); /* a hub that answers has its own, shorter limits */

static at_seat_part text_part(const char *text)
{
    return (at_seat_part){text, strlen(text)};
}

static const at_seat_part nothing = {0};

static at_err tell(at_seat *s, at_seat_message_kind kind, at_seat_part part, at_fail *fail)
{
    return at_seat_tell(s, kind, part, nothing, at_clock_now() + SEND_TIME, fail);
}

/* ---- token ----------------------------------------------------------------------------------- */

static at_err token_path(const char *hub, char path[PATH_SIZE], at_fail *fail)
{
    const char *given = getenv("ANYTIME_TOKEN_FILE"), *slash = strrchr(hub, '/');
    if (at_net_is_address(hub) && (!given || !*given))
        return at_fail_set(fail, AT_ERR_USAGE, "set ANYTIME_TOKEN_FILE to a copy of RUN/token",
                           "the hub at %.200s needs a token", hub);
    int length = slash ? (int)(slash - hub) + 1 : 0;
    int used = given && *given ? snprintf(path, PATH_SIZE, "%s", given)
                               : snprintf(path, PATH_SIZE, "%.*stoken", length, hub);
    if (used > 0 && used < PATH_SIZE) return AT_OK;
    return at_fail_set(fail, AT_ERR_USAGE, NULL, "the path of the token is too long");
}

/* Unlike at_token_file this never creates one. */
static at_err read_token(const char *hub, char token[AT_TOKEN_SIZE], at_fail *fail)
{
    char path[PATH_SIZE];
    AT_TRY(token_path(hub, path, fail));
    if (access(path, R_OK) == 0) return at_token_file(path, token, fail);
    return at_fail_set(fail, AT_ERR_USAGE, "set ANYTIME_TOKEN_FILE to the file RUN/token",
                       "%s: cannot read the token of the hub", path);
}

/* ---- messages -------------------------------------------------------------------------------- */

at_err at_seat_answer(at_seat *s, at_fail *fail)
{
    at_seat_challenge challenge;
    unsigned char     digest[AT_SEAT_DIGEST];
    if (s->inbox.kind != AT_SEAT_CHALLENGE || s->inbox.size != sizeof challenge)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "this is not a hub");
    memcpy(&challenge, s->inbox.bytes, sizeof challenge);
    if (challenge.protocol != AT_SEAT_PROTOCOL)
        return at_fail_set(fail, AT_ERR_USAGE, "use the same version of anytime everywhere",
                           "the hub speaks protocol %u, this library %d", challenge.protocol,
                           AT_SEAT_PROTOCOL);
    at_seat_prove(s->token, s->nonce, true, digest);
    if (s->link && CRYPTO_memcmp(digest, challenge.proof, sizeof digest) != 0)
        return at_fail_set(fail, AT_ERR_USAGE, "set ANYTIME_TOKEN_FILE to a copy of RUN/token",
                           "the hub does not have the same token");
    at_seat_prove(s->token, challenge.nonce, false, digest);
    return tell(s, AT_SEAT_PROOF, (at_seat_part){digest, sizeof digest}, fail);
}

static at_err greet(at_seat *s, at_fail *fail)
{
    json_t *hello = at_spec_write(&s->spec);
    char    host[AT_LINK_NAME_SIZE] = "", name[AT_LINK_NAME_SIZE];
    if (!hello) return at_fail_memory(fail);
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    at_link_name_set(name, host); /* JSON takes only UTF-8 */
    json_object_set_new(hello, "rank", json_integer(s->rank_wanted));
    json_object_set_new(hello, "host", json_string(name));
    char *text = json_dumps(hello, JSON_COMPACT);
    json_decref(hello);
    if (!text) return at_fail_memory(fail);
    at_err err = tell(s, AT_SEAT_HELLO, text_part(text), fail);
    free(text);
    return err;
}

static at_err send_params(at_seat *s, at_fail *fail)
{
    float *zeros = s->given ? NULL : calloc(s->spec.floats, sizeof *zeros);
    if (!s->given && !zeros) return at_fail_memory(fail);
    at_seat_part params = {s->given ? s->given : zeros, s->spec.floats * sizeof(float)};
    at_err       err =
        at_seat_tell(s, AT_SEAT_PARAMS, nothing, params, at_clock_now() + PARAMS_TIME, fail);
    free(zeros);
    return err;
}

/* ---- welcome --------------------------------------------------------------------------------- */

static at_err bad_welcome(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "use the same version of anytime everywhere",
                       "the hub's welcome cannot be read");
}

at_err at_seat_welcome_read(json_t *json, at_seat_welcome *w, at_fail *fail)
{
    int failed = json_unpack(
        json,
        "{s:I, s:i, s:i, s:I, s:i, s:I, s:i, s:b, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, "
        "s:F, s:I, s:I, s:s, s:o}",
        "rank", &w->rank, "workers", &w->workers, "workers_max", &w->workers_max, "seed", &w->seed,
        "incarnation", &w->incarnation, "sequence", &w->sequence, "slots", &w->slots, "cut_after",
        &w->cut_after, "micro_batch", &w->micro, "sample_time", &w->sample_time, "round_ns",
        &w->round_ns, "rounds", &w->rounds, "spin", &w->spin, "floats", &w->floats, "base",
        &w->base, "straggler", &w->straggler, "scale", &w->scale, "trace_scale", &w->trace_scale,
        "drawn", &w->drawn, "redrawn", &w->redrawn, "compress", &w->compress, "rules", &w->rules);
    if (failed) return bad_welcome(fail);
    bool ok = w->rank >= 0 && w->rank < w->workers_max && w->workers >= 1 &&
              w->workers <= w->workers_max && w->workers_max <= AT_WORKERS_MAX && w->micro >= 1 &&
              w->incarnation >= 1 && w->slots >= 1 && w->slots <= AT_SEAT_GRADIENTS &&
              w->sequence >= 0 && w->sample_time >= 0 && w->base >= 0 && w->round_ns >= 0 &&
              w->rounds >= 1 && w->spin >= 0 && w->trace_scale >= 0 && w->drawn >= 0 &&
              w->redrawn >= 0 && w->redrawn <= w->drawn;
    return ok ? AT_OK : bad_welcome(fail);
}

static at_err take_rules(at_plan *plan, const json_t *rules, at_fail *fail)
{
    for (size_t i = 0; i < AT_SEAT_RULES; i++) {
        const char *text = json_string_value(json_array_get(rules, i));
        if (!text || at_plan_read_rule(plan, at_seat_rules[i], text, fail))
            return bad_welcome(fail);
    }
    return AT_OK;
}

static at_err take_settings(at_seat *s, const at_seat_welcome *w, at_fail *fail)
{
    s->rank = (uint32_t)w->rank;
    s->workers_start = (uint32_t)w->workers;
    s->seed = (uint64_t)w->seed;
    s->spin_ns = w->spin;
    s->plan = (at_plan){.workers = (uint32_t)w->workers,
                        .workers_max = (uint32_t)w->workers_max,
                        .micro_batch = (uint32_t)w->micro,
                        .batch = (uint32_t)w->micro,
                        .cut_after = w->cut_after,
                        .own_batches = true};
    AT_TRY(take_rules(&s->plan, w->rules, fail));
    s->in_place = at_plan_reads_in_place(&s->plan);
    at_pace_options pace = {.model = w->straggler,
                            .scale = w->scale,
                            .seed = s->seed,
                            .workers = (uint32_t)w->workers_max,
                            .round_ns_mean = w->round_ns,
                            .rounds_per_epoch = (uint64_t)w->rounds,
                            .trace_scale = w->trace_scale};
    at_pace_free(s->pace); /* of an earlier seat */
    s->pace = NULL;
    AT_TRY(at_pace_new(&pace, &s->pace, fail));
    s->context = (at_world_context){
        .plan = &s->plan, .pace = s->pace, .seed = s->seed, .sample_time = w->sample_time};
    return AT_OK;
}

static at_err take_memory(at_seat *s, uint32_t slots, at_fail *fail)
{
    size_t params, slot;
    if (s->link) return at_seat_link_memory(s, fail);
    if (s->inbox.fds != AT_SEAT_FDS || !at_seat_params_size(s->spec.floats, &params) ||
        !at_seat_slot_size(s->spec.floats, slots, &slot))
        return bad_welcome(fail);
    int fd[AT_SEAT_FDS];
    memcpy(fd, s->inbox.fd, sizeof fd);
    s->inbox.fds = 0; /* mapping takes them over, one after the other */
    at_err err = at_seat_file_map(fd[0], params, false, &s->params_file, fail);
    if (err) {
        close(fd[1]);
        close(fd[2]);
        return err;
    }
    err = at_seat_file_map(fd[1], at_seat_bells_size(), true, &s->bells_file, fail);
    if (err) {
        close(fd[2]);
        return err;
    }
    s->newest = at_seat_floats(&s->params_file);
    return at_seat_file_map(fd[2], slot, true, &s->slot_file, fail);
}

/* Parameters that a script may write to, or that change while it computes, are a copy. Small ones
 * are copied faster than pages are looked at. */
static at_err new_copy(at_seat *s, at_fail *fail)
{
    enum { OVERLAY_MIN = 64 << 10 };
    if (s->installs) {
        s->copy = s->given;
        s->overlay = !s->link && s->whole_pages && s->in_place && !s->spec.at_workers &&
                     s->spec.floats >= OVERLAY_MIN &&
                     at_seat_overlay(&s->params_file, s->spec.floats, s->copy);
    } else if (s->copy) {
        return AT_OK; /* of an earlier seat */
    } else if (!s->in_place || s->spec.at_workers) {
        s->copy = aligned_alloc(64, (s->spec.floats * sizeof(float) + 63) / 64 * 64);
        if (!s->copy) return at_fail_memory(fail);
    }
    return AT_OK;
}

at_err at_seat_await_params(at_seat *s, at_fail *fail)
{
    at_ns until = at_clock_now() + PARAMS_TIME;
    while (s->link && !s->has_params) {
        AT_TRY(at_seat_hear(s, until, NULL, fail));
        if (!s->has_params && (s->inbox.complete || at_clock_now() >= until))
            return at_fail_set(fail, AT_ERR_MISSING, NULL, "the hub sends no parameters");
    }
    return AT_OK;
}

/* Messages are compressed as the hub says. */
static at_err take_packings(at_seat *s, const char *compress, at_fail *fail)
{
    at_packings packings;
    at_compress how;
    if (!s->link) return AT_OK;
    if (at_compress_read(compress, &how, fail)) return bad_welcome(fail);
    AT_TRY(at_spec_packings(&s->spec, how, &packings, fail));
    return at_seat_link_pack(s, &packings, fail);
}

static at_err enter(at_seat *s, json_t *json, at_fail *fail)
{
    at_seat_welcome w = {0};
    AT_TRY(at_seat_welcome_read(json, &w, fail));
    if ((size_t)w.floats != s->spec.floats) return bad_welcome(fail);
    AT_TRY(take_settings(s, &w, fail));
    AT_TRY(take_memory(s, (uint32_t)w.slots, fail));
    AT_TRY(take_packings(s, w.compress, fail));
    AT_TRY(new_copy(s, fail));
    at_seat_inbox_next(&s->inbox); /* `w` is a copy, but for texts that were used */
    s->stage = AT_SEAT_STAGE_SEATED;
    s->applied = (uint64_t)w.base;
    if (s->link) atomic_store(&at_seat_slot_of(s)->drawn, (uint64_t)w.drawn);
    AT_TRY(at_seat_await_params(s, fail));
    if (at_seat_begin(s, &w)) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING, NULL, "the hub is gone");
}

static at_err take_welcome(at_seat *s, at_fail *fail)
{
    json_t *json = json_loadb((const char *)s->inbox.bytes, s->inbox.size, 0, NULL);
    at_err  err = json ? enter(s, json, fail) : bad_welcome(fail);
    json_decref(json);
    return err;
}

/* ---- stages ---------------------------------------------------------------------------------- */

static at_err take_message(at_seat *s, at_fail *fail)
{
    if (s->inbox.kind == AT_SEAT_REFUSED)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the hub refused: %.500s", s->inbox.bytes);
    if (s->stage == AT_SEAT_STAGE_NEW) {
        AT_TRY(at_seat_answer(s, fail));
        s->stage = AT_SEAT_STAGE_GREETED;
        return greet(s, fail);
    }
    if (s->inbox.kind == AT_SEAT_ASK_PARAMS) return send_params(s, fail);
    if (s->inbox.kind == AT_SEAT_WELCOME) return take_welcome(s, fail);
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message from the hub");
}

/* A hub that closes the connection may have said why, while we were still sending. */
static at_err hear_refusal(at_seat *s, at_fail *fail)
{
    return at_seat_hears_refusal(s) ? take_message(s, fail) : AT_ERR_MISSING;
}

static at_err dial(at_seat *s, const char *hub, at_fail *fail)
{
    const char *time = getenv("ANYTIME_RECONNECT");
    s->reconnect = RECONNECT_TIME;
    if (time && !at_text_duration(time, &s->reconnect))
        return at_fail_set(fail, AT_ERR_USAGE, "write it as 60s or 5min, or 0 for never",
                           "ANYTIME_RECONNECT='%s' is not a duration", time);
    if (strlen(hub) >= sizeof s->hub)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the address of the hub is too long");
    snprintf(s->hub, sizeof s->hub, "%s", hub);
    return at_seat_dial(s, hub, fail);
}

static at_err new_seat(at_seat **seat, const char *hub, const at_seat_spec *spec, at_fail *fail)
{
    const char *rank = getenv("ANYTIME_RANK");
    int64_t     number = -1;
    if (spec->rank < 0 && rank &&
        (!at_text_whole(rank, &number) || number < 0 || number >= AT_WORKERS_MAX))
        return at_fail_set(fail, AT_ERR_USAGE, "leave it out for any free rank",
                           "ANYTIME_RANK='%s' is not a rank", rank);
    if (spec->installs && !spec->params)
        return at_fail_set(fail, AT_ERR_USAGE, "see at_seat_spec in anytime.h",
                           "installs needs params to write to");
    at_seat *s = calloc(1, sizeof *s);
    if (!s) return at_fail_memory(fail);
    s->fd = -1;
    s->rank_wanted = spec->rank >= 0 ? spec->rank : (int)number;
    s->wait_ms = spec->wait_ms;
    s->given = spec->params;
    s->installs = spec->installs != 0;
    s->whole_pages = spec->installs == 2;
    s->overwrites = spec->overwrites != 0;
    s->inbox.size_max = MESSAGE_MAX;
    *seat = s;
    AT_TRY(at_spec_new(spec, &s->spec, fail));
    memcpy(s->group, s->spec.group, sizeof s->group);
    AT_TRY(read_token(hub, s->token, fail));
    if (at_net_is_address(hub)) return dial(s, hub, fail);
    return at_seat_connect(hub, &s->fd, fail);
}

static void explain(at_seat_why *why, const at_fail *fail)
{
    why->code = fail->err == AT_ERR_USAGE ? AT_ERR_USAGE : AT_ERR_FAILED;
    snprintf(why->message, sizeof why->message, "%s%s%s", fail->text,
             fail->hint[0] ? "; hint: " : "", fail->hint);
}

int at_seat_proceed(at_seat *s, at_ns until, at_fail *fail)
{
    at_ns slice = at_clock_now() + AT_MS(s->wait_ms);
    if (s->wait_ms > 0 && slice < until) until = slice;
    while (s->stage != AT_SEAT_STAGE_SEATED) {
        bool   interrupted = false;
        at_err err = at_seat_hear(s, until, s->wait_ms > 0 ? &interrupted : NULL, fail);
        bool   late = !err && !s->inbox.complete;
        if (late && s->wait_ms > 0) return AT_SEAT_AGAIN;
        if (late) {
            at_fail_set(fail, AT_ERR_FAILED, NULL, "the hub does not answer");
            return AT_SEAT_FAILED;
        }
        if (!err) err = take_message(s, fail);
        if (err == AT_ERR_MISSING) err = hear_refusal(s, fail);
        if (err) return err == AT_ERR_MISSING ? AT_SEAT_LOST : AT_SEAT_FAILED;
        if (s->inbox.complete) at_seat_inbox_next(&s->inbox);
    }
    return AT_SEAT_JOINED;
}

int at_seat_join(at_seat **seat, const char *hub, const at_seat_spec *spec, at_seat_why *why)
{
    at_fail     fail = {0};
    at_seat_why unused;
    if (!why) why = &unused;
    *why = (at_seat_why){0};
    if (!hub) hub = getenv("ANYTIME_HUB");
    if (!hub || !*hub) return AT_SEAT_ALONE;
    at_err err = *seat ? AT_OK : new_seat(seat, hub, spec, &fail);
    int    status = err == AT_OK ? at_seat_proceed(*seat, at_clock_now() + JOIN_TIME, &fail)
                    : err == AT_ERR_MISSING ? AT_SEAT_LOST
                                            : AT_SEAT_FAILED;
    if (status == AT_SEAT_LOST || status == AT_SEAT_FAILED) {
        explain(why, &fail);
        at_seat_leave(seat);
    }
    return status;
}
