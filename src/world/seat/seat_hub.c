#include "world/seat/seat_hub.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "world/core/job_parts.h"
#include "world/process/signals.h"

enum {
    GUESTS_EXTRA = 32,    /* connections that have no seat */
    UNPROVEN_MAX = 64,    /* bytes of a message before the proof */
    HELLO_MAX = 16 << 20, /* bytes of a spec */
    KEPT_MAX = 16384,     /* tensors kept for the seats */
    READ_MAX = 64 << 10   /* bytes of messages from another machine in one go, and one message */
};
static const at_ns SEND_TIME = AT_SEC(5);
static const at_ns PROOF_TIME = AT_SEC(10);
static const at_ns STALL_TIME = AT_SEC(60); /* without a byte of the parameters it was asked for */
static const at_ns FIRST_TIME = AT_SEC(10); /* how long the others wait for rank 0 */
static const at_ns LOOK_EVERY = AT_SEC(1);

static const at_seat_part nothing = {0};

/* ---- opening --------------------------------------------------------------------------------- */

static at_err set_paths(at_seat_hub *h, const char *folder, const char *token_file, at_fail *fail)
{
    char full[4000];
    if (!realpath(folder, full) || strlen(full) > sizeof full - 32)
        return at_fail_set(fail, AT_ERR_IO, NULL, "%.300s: cannot find its full path", folder);
    snprintf(h->socket_path, sizeof h->socket_path, "%s/hub", full);
    snprintf(h->token_path, sizeof h->token_path, "%s/token", full);
    if (!token_file) return at_token_file(h->token_path, h->token, fail);
    AT_TRY(at_token_file(token_file, h->token, fail));
    h->keeps_token = true;
    snprintf(h->token_path, sizeof h->token_path, "%s", token_file);
    return AT_OK;
}

void at_seat_make_loud(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETOWN, getpid());
    fcntl(fd, F_SETFL, flags | O_ASYNC | O_NONBLOCK);
}

at_err at_seat_hub_start(at_seat_hub *h, uint32_t rank, at_fail *fail)
{
    assert(rank < h->ranks_max);
    h->sat[rank] = false;
    h->restart_at[rank] = AT_NEVER;
    return at_seat_children_start(h->children, rank, fail);
}

void at_seat_hub_ended(at_seat_hub *h, uint32_t rank)
{
    assert(rank < h->ranks_max);
    if (!h->sat[rank]) at_seat_children_forgive(h->children, rank);
}

static at_err start_all(at_seat_hub *h, at_fail *fail)
{
    for (uint32_t i = 0; i < h->ranks; i++) AT_TRY(at_seat_hub_start(h, i, fail));
    return AT_OK;
}

/* In a folder that was renamed; its name may be that of another run now. */
static bool is_elsewhere(const at_seat_hub *h)
{
    struct stat there;
    if (lstat(h->socket_path, &there)) return true;
    return there.st_dev != h->socket_device || there.st_ino != h->socket_number;
}

static at_err listen_here(at_seat_hub *h, at_fail *fail)
{
    struct stat made;
    AT_TRY(at_seat_listen(h->socket_path, &h->fd, fail));
    if (lstat(h->socket_path, &made)) return at_file_error("find", h->socket_path, errno, fail);
    h->socket_device = made.st_dev;
    h->socket_number = made.st_ino;
    at_seat_make_loud(h->fd);
    return AT_OK;
}

static at_err open_hub(const at_seat_hub_options *o, at_seat_hub *h, at_fail *fail)
{
    AT_TRY(set_paths(h, o->folder, o->token_file, fail));
    AT_TRY(at_seat_file_new("anytime-bells", at_seat_bells_size(), false, &h->bells, fail));
    h->guests_max = o->command.ranks_max + GUESTS_EXTRA;
    h->guest = calloc(h->guests_max, sizeof *h->guest);
    h->restart_at = calloc(h->ranks_max, sizeof *h->restart_at);
    h->sat = calloc(h->ranks_max, sizeof *h->sat);
    if (!h->guest || !h->restart_at || !h->sat) return at_fail_memory(fail);
    for (uint32_t i = 0; i < h->ranks_max; i++) h->restart_at[i] = AT_NEVER;
    signal(SIGIO, SIG_IGN);
    AT_TRY(listen_here(h, fail));
    h->keeps_token = h->keeps_token || o->listen; /* others have copies, for a resumed run, too */
    if (o->listen) AT_TRY(at_seat_net_open(h, o->listen, fail));
    at_seat_command command = o->command;
    command.hub = h->socket_path;
    command.token = h->token_path;
    AT_TRY(at_seat_children_open(&command, &h->children, fail));
    if (!command.words) return AT_OK; /* others start the workers */
    return start_all(h, fail);
}

at_err at_seat_hub_open(const at_seat_hub_options *o, at_seat_hub *h, at_fail *fail)
{
    *h = (at_seat_hub){.fd = -1,
                       .net_fd = -1,
                       .epoll = -1,
                       .join_timeout = o->join_timeout,
                       .few_is_fine = o->few_is_fine,
                       .ranks = o->command.ranks,
                       .ranks_max = o->command.ranks_max};
    h->bells.fd = -1;
    at_err err = open_hub(o, h, fail);
    if (err) at_seat_hub_close(h);
    return err;
}

void at_seat_hub_close(at_seat_hub *h)
{
    at_seat_children_close(h->children);
    for (uint32_t i = 0; i < h->guests_max && h->guest; i++) at_seat_hub_forget(&h->guest[i]);
    if (h->fd >= 0 && h->socket_path[0]) {
        close(h->fd);
        bool moved = is_elsewhere(h);
        if (!moved) unlink(h->socket_path);
        if (!moved && !h->keeps_token) unlink(h->token_path);
    }
    at_seat_net_close(h);
    for (uint32_t i = 0; i < h->kept_count; i++) free(h->kept[i].values);
    free(h->kept);
    free(h->guest);
    free(h->restart_at);
    free(h->sat);
    free(h->params);
    at_spec_deinit(&h->spec);
    at_seat_file_close(&h->bells);
    *h = (at_seat_hub){.fd = -1, .net_fd = -1, .epoll = -1};
}

/* ---- guests ---------------------------------------------------------------------------------- */

void at_seat_hub_forget(at_guest *g)
{
    if (g->stage == AT_GUEST_NONE) return;
    at_remote_deinit(&g->remote);
    if (g->fd >= 0) close(g->fd);
    at_seat_inbox_deinit(&g->inbox);
    at_spec_deinit(&g->spec);
    *g = (at_guest){.stage = AT_GUEST_NONE};
}

at_err at_seat_hub_send(at_guest *g, at_seat_message_kind kind, at_seat_part first,
                        at_seat_part second, const int *fds, at_fail *fail)
{
    at_link *link = g->remote.link;
    if (!link)
        return at_seat_send(g->fd, kind, first, second, fds, at_clock_now() + SEND_TIME, fail);
    AT_TRY(at_link_post(link, kind, first.bytes, first.size, second.bytes, second.size, fail));
    AT_TRY(at_link_flush(link, fail));
    return at_link_detach(link, fail);
}

at_err at_seat_hub_answer(at_guest *g, at_seat_message_kind kind, at_seat_part first,
                          at_seat_part second, at_fail *fail)
{
    const at_link *link = g->remote.link;
    if (link && link->sent < g->answered)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL,
                           "a question before the last answer could be sent");
    AT_TRY(at_seat_hub_send(g, kind, first, second, NULL, fail));
    g->answered = link ? link->posted : 0;
    return AT_OK;
}

void at_seat_hub_refuse(at_seat_hub *h, at_guest *g, const char *why)
{
    at_fail ignored;
    assert(h->known || g->stage != AT_GUEST_NONE);
    (void)at_seat_hub_send(g, AT_SEAT_REFUSED, (at_seat_part){why, strlen(why)}, nothing, NULL,
                           &ignored);
    if (g->remote.link)
        snprintf(h->refused, sizeof h->refused, "refused %.100s: %.250s", g->peer, why);
    at_seat_hub_forget(g);
}

static void refuse_for(at_seat_hub *h, at_guest *g, const at_fail *fail)
{
    char text[sizeof fail->text + sizeof fail->hint + 8];
    snprintf(text, sizeof text, "%s%s%s", fail->text, fail->hint[0] ? "; " : "", fail->hint);
    at_seat_hub_refuse(h, g, text);
}

/* `nonce`: of a guest on another machine, which wants a proof, too. */
static at_err challenge(at_seat_hub *h, at_guest *g, const unsigned char *nonce)
{
    at_fail           fail = {0};
    at_seat_challenge hello = {.protocol = AT_SEAT_PROTOCOL};
    bool              random = RAND_bytes(g->nonce, sizeof g->nonce) == 1;
    memcpy(hello.nonce, g->nonce, sizeof hello.nonce);
    if (nonce) at_seat_prove(h->token, nonce, true, hello.proof);
    at_err err = at_seat_hub_send(g, AT_SEAT_CHALLENGE, (at_seat_part){&hello, sizeof hello},
                                  nothing, NULL, &fail);
    if (random && !err) return AT_OK;
    return at_fail_set(&fail, AT_ERR_MISSING, NULL, "it is gone");
}

at_guest *at_seat_hub_place(at_seat_hub *h)
{
    for (uint32_t i = 0; i < h->guests_max; i++)
        if (h->guest[i].stage == AT_GUEST_NONE) return &h->guest[i];
    return NULL;
}

static void accept_guests(at_seat_hub *h)
{
    for (;;) {
        struct ucred peer = {0};
        socklen_t    size = sizeof peer;
        int          fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) return;
        at_guest *g = at_seat_hub_place(h);
        if (!g || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
            close(fd);
            continue;
        }
        *g = (at_guest){.stage = AT_GUEST_NEW,
                        .fd = fd,
                        .pid = peer.pid,
                        .since = at_clock_now(),
                        .inbox = {.size_max = UNPROVEN_MAX},
                        .rank = -1,
                        .child = -1};
        at_seat_make_loud(fd);
        if (challenge(h, g, NULL)) at_seat_hub_forget(g);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

void at_seat_hub_allow(at_guest *g, size_t size_max)
{
    g->inbox.size_max = size_max;
    if (g->remote.link) g->remote.link->receiver.size_max = size_max;
}

static at_err take_greeting(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    at_seat_challenge greeting;
    if (g->inbox.kind != AT_SEAT_GREETING || g->inbox.size != sizeof greeting)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message");
    memcpy(&greeting, g->inbox.bytes, sizeof greeting);
    if (greeting.protocol != AT_SEAT_PROTOCOL)
        return at_fail_set(fail, AT_ERR_USAGE, "use the same version of anytime everywhere",
                           "the worker speaks protocol %u, the hub %d", greeting.protocol,
                           AT_SEAT_PROTOCOL);
    g->stage = AT_GUEST_NEW;
    return challenge(h, g, greeting.nonce) ? AT_ERR_MISSING : AT_OK;
}

static at_err take_proof(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    unsigned char digest[AT_SEAT_DIGEST];
    at_seat_prove(h->token, g->nonce, false, digest);
    bool right = g->inbox.kind == AT_SEAT_PROOF && g->inbox.size == sizeof digest &&
                 CRYPTO_memcmp(digest, g->inbox.bytes, sizeof digest) == 0;
    if (!right)
        return at_fail_set(fail, AT_ERR_USAGE, "set ANYTIME_TOKEN_FILE to the file RUN/token",
                           "the token is not that of this run");
    g->stage = AT_GUEST_PROVEN;
    at_seat_hub_allow(g, HELLO_MAX);
    return AT_OK;
}

/* Our processes lead their groups, so that also what they start is recognized. */
static int64_t child_of(const at_seat_hub *h, const at_guest *g)
{
    pid_t group = g->pid > 0 ? getpgid(g->pid) : 0;
    for (uint32_t i = 0; i < h->ranks_max && group > 0; i++)
        if (at_seat_children_pid(h->children, i) == group) return i;
    return -1;
}

/* One of our own workers asks what it shall load. */
static at_err tell_job(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    if (h->over) return at_fail_set(fail, AT_ERR_USAGE, NULL, AT_SEAT_OVER);
    if (!h->job)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "start the hub with --model, or programs with ANYTIME_HUB",
                           "this hub waits for programs, not for `anytime work`");
    return at_seat_hub_answer(g, AT_SEAT_JOB, (at_seat_part){h->job, strlen(h->job)}, nothing,
                              fail);
}

static at_err take_own_hello(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    at_worker_note note;
    int32_t        rank;
    if (!h->job || g->inbox.size < AT_WORKER_NOTE + sizeof rank)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message");
    AT_TRY(at_worker_note_read(g->inbox.bytes, AT_WORKER_NOTE, &note, fail));
    if (note.kind != AT_WORKER_NOTE_HELLO)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message");
    AT_TRY(at_job_compare(&note, h->part, fail));
    memcpy(&rank, g->inbox.bytes + AT_WORKER_NOTE, sizeof rank);
    g->rank = rank;
    at_link_name_set(g->host, note.host);
    g->stage = AT_GUEST_READY;
    return AT_OK;
}

static at_err take_engine(at_seat_hub *h, const at_guest *g, at_fail *fail)
{
    at_worker_note note;
    AT_TRY(at_worker_note_read(g->inbox.bytes, g->inbox.size, &note, fail));
    if (note.kind == AT_WORKER_NOTE_READY) memcpy(h->engine, note.engine, sizeof h->engine);
    return AT_OK;
}

static at_err take_hello(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    if (g->inbox.kind == AT_SEAT_ASK_JOB) return tell_job(h, g, fail);
    if (g->inbox.kind == AT_SEAT_PROBE) return at_seat_net_answer(g, fail);
    if (g->inbox.kind == AT_SEAT_OWN_HELLO) return take_own_hello(h, g, fail);
    if (h->job)
        return at_fail_set(fail, AT_ERR_USAGE,
                           "join it with `anytime work`, or start it without "
                           "--model",
                           "this hub waits for `anytime work`, not for programs");
    if (g->inbox.kind != AT_SEAT_HELLO)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message");
    json_t *json = json_loadb((const char *)g->inbox.bytes, g->inbox.size, 0, NULL);
    json_t *rank = json_object_get(json, "rank");
    at_err  err = json_is_integer(rank) ? at_spec_read(json, &g->spec, fail)
                                        : at_fail_set(fail, AT_ERR_FORMAT, NULL,
                                                      "the greeting of a seat cannot be read");
    g->rank = json_integer_value(rank);
    const char *host = json_string_value(json_object_get(json, "host"));
    at_link_name_set(g->host, host ? host : "");
    json_decref(json);
    AT_TRY(err);
    g->child = child_of(h, g);
    if (h->first_hello == 0) h->first_hello = at_clock_now();
    if (h->known) AT_TRY(at_spec_compare(&h->spec, &g->spec, fail));
    g->stage = AT_GUEST_READY;
    return AT_OK;
}

static at_err take_params(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    size_t size = g->spec.floats * sizeof(float);
    if (g->inbox.kind != AT_SEAT_PARAMS || g->inbox.size != size)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message");
    h->params = malloc(size);
    if (!h->params) return at_fail_memory(fail);
    memcpy(h->params, g->inbox.bytes, size);
    h->spec = g->spec;
    h->known = true;
    g->spec = (at_spec){0};
    g->stage = AT_GUEST_READY;
    at_seat_hub_allow(g, HELLO_MAX);
    if (!h->spec.at_workers) return AT_OK;
    return at_seat_hub_keep(h, AT_SEAT_PARAMS_NAME, h->params, size, fail);
}

/* ---- tensors that are kept ------------------------------------------------------------------- */

static at_kept_tensor *find_kept(at_seat_hub *h, const char *name)
{
    for (uint32_t i = 0; i < h->kept_count; i++)
        if (strcmp(h->kept[i].name, name) == 0) return &h->kept[i];
    return NULL;
}

static at_kept_tensor *add_kept(at_seat_hub *h, const char *name)
{
    if (h->kept_count == KEPT_MAX) return NULL;
    at_kept_tensor *more = realloc(h->kept, (h->kept_count + 1) * sizeof *more);
    if (!more) return NULL;
    h->kept = more;
    at_kept_tensor *tensor = &h->kept[h->kept_count++];
    *tensor = (at_kept_tensor){0};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    return tensor;
}

at_err at_seat_hub_keep(at_seat_hub *h, const char *name, const void *values, size_t size,
                        at_fail *fail)
{
    at_kept_tensor *tensor = find_kept(h, name);
    float          *copy = malloc(size + 1);
    if (!tensor && copy) tensor = add_kept(h, name);
    if (!tensor || !copy) {
        free(copy);
        return at_fail_memory(fail);
    }
    memcpy(copy, values, size);
    free(tensor->values);
    h->kept_size += size - tensor->count * sizeof(float);
    tensor->values = copy;
    tensor->count = size / sizeof(float);
    return AT_OK;
}

/* Whoever has a seat shall not fill the memory of the hub. */
static bool has_room(at_seat_hub *h, const char *name, size_t size)
{
    enum { BEYOND_CHECKPOINTS = 4 }; /* more than can be saved is no mistake yet */
    const at_kept_tensor *before = find_kept(h, name);
    size_t                replaced = before ? before->count * sizeof(float) : 0;
    return h->kept_size - replaced + size <= BEYOND_CHECKPOINTS * at_seat_hub_kept_max(h);
}

/* The message is the name in AT_SEAT_NAME_SIZE bytes, then the floats. */
static at_err take_put(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    const char *name = (const char *)g->inbox.bytes;
    size_t      size = g->inbox.size - AT_SEAT_NAME_SIZE;
    if (g->inbox.size < AT_SEAT_NAME_SIZE || !memchr(name, 0, AT_SEAT_NAME_SIZE) || !*name ||
        size % sizeof(float) != 0)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "a malformed tensor");
    bool params = strcmp(name, AT_SEAT_PARAMS_NAME) == 0;
    if (params && size != h->spec.floats * sizeof(float))
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "parameters of another size");
    if (!at_spec_is_utf8(name)) /* it becomes a key in checkpoints */
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "the name of a tensor is not UTF-8");
    if (g->id != h->first_id) return AT_OK; /* only the first seat's are kept */
    if (!has_room(h, name, size))
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "more tensors than the hub can keep");
    return at_seat_hub_keep(h, name, g->inbox.bytes + AT_SEAT_NAME_SIZE, size, fail);
}

static at_err take_published(at_seat_hub *h, const at_guest *g, at_fail *fail)
{
    uint64_t version;
    if (g->inbox.size != sizeof version)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message");
    memcpy(&version, g->inbox.bytes, sizeof version);
    if (version > h->newest)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "parameters of a step that was not made");
    if (g->id == h->first_id) h->base = version;
    return AT_OK;
}

/* An answer is a name (empty: there is no such tensor) and, after GET, its floats. */
static at_err answer(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    const char     *text = (const char *)g->inbox.bytes;
    at_kept_tensor *tensor = NULL;
    char            name[AT_SEAT_NAME_SIZE] = "";
    if (g->inbox.kind == AT_SEAT_NAME) {
        unsigned long index = strtoul(text, NULL, 10) + h->spec.at_workers; /* 0: parameters */
        if (index < h->kept_count) tensor = &h->kept[index];
    } else {
        tensor = find_kept(h, text);
    }
    if (tensor) memcpy(name, tensor->name, sizeof name);
    at_seat_part values = {0};
    if (tensor && g->inbox.kind == AT_SEAT_GET)
        values = (at_seat_part){tensor->values, tensor->count * sizeof(float)};
    return at_seat_hub_answer(g, AT_SEAT_VALUE, (at_seat_part){name, sizeof name}, values, fail);
}

static at_err take_message(at_seat_hub *h, at_guest *g, at_fail *fail)
{
    switch (g->stage) {
    case AT_GUEST_CALLING: return take_greeting(h, g, fail);
    case AT_GUEST_NEW: return take_proof(h, g, fail);
    case AT_GUEST_PROVEN: return take_hello(h, g, fail);
    case AT_GUEST_ASKED: return take_params(h, g, fail);
    case AT_GUEST_SEATED:
        if (g->inbox.kind == AT_SEAT_READY) return take_engine(h, g, fail);
        if (h->job) break; /* only programs keep tensors here */
        if (g->inbox.kind == AT_SEAT_PUT) return take_put(h, g, fail);
        if (g->inbox.kind == AT_SEAT_PUBLISHED) return take_published(h, g, fail);
        if (g->inbox.kind == AT_SEAT_GET || g->inbox.kind == AT_SEAT_NAME)
            return answer(h, g, fail);
        break;
    case AT_GUEST_READY:
    case AT_GUEST_NONE: break;
    }
    return at_fail_set(fail, AT_ERR_FORMAT, NULL, "an unexpected message");
}

/* Who has a seat is only marked: the world tells the state machine. */
static void lose(at_seat_hub *h, at_guest *g, const at_fail *fail)
{
    bool left = fail->err == AT_ERR_MISSING;
    if (g->stage == AT_GUEST_SEATED) {
        g->hung_up = true;
        if (!left) snprintf(g->why, sizeof g->why, "was disconnected: %.170s", fail->text);
    } else if (left) {
        at_seat_hub_forget(g);
    } else {
        refuse_for(h, g, fail);
    }
}

static uint64_t received_from(const at_guest *g)
{
    return g->remote.link ? g->remote.link->received : g->inbox.received;
}

/* A guest that never stops sending shall not keep the hub from everything else. Of a process on
 * this machine all that has arrived is read, because its report in shared memory may follow these
 * messages; one byte more tells whether it has closed the connection. */
static uint64_t most_of(const at_guest *g)
{
    int size = 0;
    if (g->remote.link) return READ_MAX;
    return ioctl(g->fd, FIONREAD, &size) == 0 && size > 0 ? (uint64_t)size + 1 : 1;
}

/* A message before the proof must be complete in time; the parameters of a large model over a slow
 * network may take long, but not without a sign. Others would wait for them. */
static bool is_slow(at_guest *g)
{
    uint64_t received = received_from(g);
    if (g->stage == AT_GUEST_ASKED && received != g->received) g->since = at_clock_now();
    g->received = received;
    at_ns silent = at_clock_now() - g->since;
    if (g->stage == AT_GUEST_ASKED) return silent > STALL_TIME;
    return g->stage >= AT_GUEST_CALLING && g->stage <= AT_GUEST_PROVEN && silent > PROOF_TIME;
}

static void read_guest(at_seat_hub *h, at_guest *g)
{
    at_fail  fail = {0};
    uint64_t end = received_from(g) + most_of(g);
    while (g->stage != AT_GUEST_NONE && !g->hung_up && received_from(g) < end) {
        at_err err = g->remote.link ? at_seat_net_read(g, end, &fail)
                                    : at_seat_inbox_read(&g->inbox, g->fd, &fail);
        if (!err && !g->inbox.complete) break;
        if (!err) err = take_message(h, g, &fail);
        if (err) {
            lose(h, g, &fail);
            return;
        }
        if (g->stage > AT_GUEST_NEW) g->since = at_clock_now();
        at_seat_inbox_next(&g->inbox);
    }
    if (is_slow(g)) at_seat_hub_forget(g);
}

void at_seat_hub_poll(at_seat_hub *h)
{
    assert(h->guest);
    accept_guests(h);
    h->unread = false;
    at_seat_net_poll(h);
    for (uint32_t i = 0; i < h->guests_max; i++) {
        at_guest *g = &h->guest[i];
        if (g->stage != AT_GUEST_NONE) read_guest(h, g);
        if (g->remote.link && g->ready && !g->hung_up) h->unread = true;
    }
    if (h->unread) at_bell_ring_loud(at_seat_hub_bell(h), AT_BELL_ALL);
}

/* ---- what is trained ------------------------------------------------------------------------- */

/* The guest whose spec counts: rank 0 or, when it has not come in time, the lowest. */
static at_guest *choose_first(at_seat_hub *h)
{
    at_guest *lowest = NULL;
    for (uint32_t i = 0; i < h->guests_max; i++) {
        at_guest *g = &h->guest[i];
        if (g->stage == AT_GUEST_ASKED) return NULL; /* one was chosen */
        if (g->stage != AT_GUEST_READY) continue;
        bool lower = !lowest || (g->rank >= 0 && (lowest->rank < 0 || g->rank < lowest->rank));
        if (lower) lowest = g;
    }
    if (!lowest || lowest->rank == 0) return lowest;
    bool zero_comes = at_seat_children_pid(h->children, 0) > 0 || h->restart_at[0] != AT_NEVER;
    bool in_time = at_clock_now() - h->first_hello < FIRST_TIME;
    return zero_comes && in_time ? NULL : lowest;
}

static void ask_first(at_seat_hub *h)
{
    at_fail   fail = {0};
    at_guest *g = choose_first(h);
    size_t    size;
    if (!g) return;
    if (!at_size_product(g->spec.floats, sizeof(float), &size)) {
        at_seat_hub_refuse(h, g, "the model is too large");
        return;
    }
    g->stage = AT_GUEST_ASKED;
    at_seat_hub_allow(g, size > HELLO_MAX ? size : HELLO_MAX);
    if (at_seat_hub_send(g, AT_SEAT_ASK_PARAMS, nothing, nothing, NULL, &fail))
        at_seat_hub_forget(g);
}

static void compare_others(at_seat_hub *h)
{
    for (uint32_t i = 0; i < h->guests_max; i++) {
        at_guest *g = &h->guest[i];
        at_fail   fail = {0};
        bool      same = g->stage != AT_GUEST_READY || g->spec.count == 0 ||
                    at_spec_compare(&h->spec, &g->spec, &fail) == AT_OK;
        if (!same) refuse_for(h, g, &fail);
    }
}

/* ---- processes ------------------------------------------------------------------------------- */

static at_err ended_early(at_seat_hub *h, const at_seat_end *end, at_fail *fail)
{
    const char *line = at_seat_children_last_line(h->children, end->rank);
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "rank %u %s before it joined%s%s", end->rank,
                       end->text, *line ? ": " : "", line);
}

static at_err reap_early(at_seat_hub *h, at_fail *fail)
{
    at_seat_end end;
    while (at_seat_children_reap(h->children, &end)) {
        if (!end.well && !end.returns) return ended_early(h, &end, fail);
        h->restart_at[end.rank] =
            end.returns ? at_seat_children_ready_at(h->children, end.rank) : AT_NEVER;
    }
    for (uint32_t i = 0; i < h->ranks_max; i++) {
        if (h->restart_at[i] > at_clock_now()) continue;
        AT_TRY(at_seat_hub_start(h, i, fail));
    }
    return AT_OK;
}

static bool anybody_may_come(const at_seat_hub *h)
{
    for (uint32_t i = 0; i < h->ranks_max; i++)
        if (h->restart_at[i] != AT_NEVER) return true;
    return at_seat_children_running(h->children) > 0 || h->net_fd >= 0;
}

static at_err nobody_came(at_seat_hub *h, at_fail *fail)
{
    if (h->net_fd >= 0)
        return at_fail_set(fail, AT_ERR_FAILED,
                           "start workers (`anytime work`, or programs with ANYTIME_HUB and "
                           "ANYTIME_TOKEN_FILE); --join-timeout sets how long to wait",
                           "no worker joined at %s within %g s", h->address,
                           at_seconds(h->join_timeout));
    uint32_t rank = 0;
    while (rank + 1 < h->ranks_max && at_seat_children_pid(h->children, rank) == 0) rank++;
    const char *line = at_seat_children_last_line(h->children, rank);
    return at_fail_set(fail, AT_ERR_FAILED,
                       "does the program call at_seat_join (or anytime.Optimizer)? "
                       "--join-timeout says how long to wait",
                       "no worker joined within %g s%s%s", at_seconds(h->join_timeout),
                       *line ? "; the last line of errors: " : "", line);
}

static bool has_candidate(const at_seat_hub *h)
{
    for (uint32_t i = 0; i < h->guests_max; i++)
        if (h->guest[i].stage == AT_GUEST_ASKED || h->guest[i].stage == AT_GUEST_READY) return true;
    return false;
}

static at_err gather(at_seat_hub *h, at_fail *fail)
{
    at_ns    alone = at_clock_now(); /* since then */
    at_bell *bell = at_seat_hub_bell(h);
    for (;;) {
        uint32_t heard = at_bell_heard(bell);
        if (at_signals_stop())
            return at_fail_set(fail, AT_ERR_STOPPED, NULL, "stopped by a signal before step 1");
        at_seat_hub_poll(h);
        if (h->known) break;
        ask_first(h);
        AT_TRY(reap_early(h, fail));
        if (!anybody_may_come(h)) return AT_OK;
        at_ns now = at_clock_now();
        if (has_candidate(h)) alone = now;
        if (now - alone >= h->join_timeout) return nobody_came(h, fail);
        at_bell_wait(bell, heard, 1, AT_BELL_ALL, now + AT_MS(200), 0);
    }
    compare_others(h);
    return AT_OK;
}

at_err at_seat_hub_gather(at_seat_hub *h, at_fail *fail)
{
    at_signals_open(at_seat_hub_bell(h));
    at_err err = gather(h, fail);
    at_signals_close();
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int worst_code(const at_seat_hub *h, uint32_t *rank)
{
    int worst = 0;
    for (uint32_t i = 0; i < h->ranks_max; i++) {
        int code = at_seat_children_code(h->children, i);
        if (code <= worst) continue;
        worst = code;
        *rank = i;
    }
    return worst;
}

/* To all of them, or only to those that have never had a seat. */
static void signal_all(at_seat_hub *h, int number, bool strangers)
{
    for (uint32_t i = 0; i < h->ranks_max; i++)
        if (!strangers || !h->sat[i]) at_seat_children_signal(h->children, i, number);
}

/* Programs may work on after the run; those that never took part in it have nothing to finish. A
 * signal asks all of them to end. */
static void hurry(at_seat_hub *h, at_ns now, at_ns *asked)
{
    static const at_ns PATIENCE = AT_SEC(10); /* between SIGTERM and SIGKILL */
    bool               stop = at_signals_stop();
    if (*asked == AT_NEVER) signal_all(h, SIGTERM, true);
    if (*asked == AT_NEVER || (stop && !h->stopping)) {
        *asked = now;
        if (stop) signal_all(h, SIGTERM, false);
    }
    h->stopping = stop;
    if (now - *asked > PATIENCE) signal_all(h, SIGKILL, !stop);
}

void at_seat_hub_dismiss(at_seat_hub *h)
{
    h->over = true;
    at_seat_hub_poll(h);
    for (uint32_t i = 0; i < h->guests_max; i++) {
        at_guest *g = &h->guest[i];
        bool      waits = g->stage >= AT_GUEST_NEW && g->stage <= AT_GUEST_READY;
        if (waits) at_seat_hub_refuse(h, g, AT_SEAT_OVER);
    }
}

int at_seat_hub_wait(at_seat_hub *h, at_fail *fail)
{
    at_bell *bell = at_seat_hub_bell(h);
    at_ns    asked = AT_NEVER;
    at_signals_open(bell);
    for (;;) {
        uint32_t    heard = at_bell_heard(bell);
        at_seat_end end;
        at_seat_hub_dismiss(h);
        while (at_seat_children_reap(h->children, &end)) at_seat_hub_ended(h, end.rank);
        if (at_seat_children_running(h->children) == 0) break;
        at_ns now = at_clock_now();
        hurry(h, now, &asked);
        at_bell_wait(bell, heard, 1, AT_BELL_ALL, now + LOOK_EVERY, 0);
    }
    at_signals_close();
    uint32_t rank = 0;
    int      code = worst_code(h, &rank);
    if (code == 0) return 0;
    const char *line = at_seat_children_last_line(h->children, rank);
    at_fail_set(fail, (at_err)code, NULL, "rank %u ended with code %d%s%s", rank, code,
                *line ? ": " : "", line);
    return code;
}

/* An optimizer has a few vectors as large as the parameters, and the model some buffers. */
size_t at_seat_hub_kept_max(const at_seat_hub *h)
{
    enum { VECTORS = 4, MORE = 32 << 20 };
    size_t bytes;
    bool   fits = at_size_product(h->spec.floats, VECTORS * sizeof(float), &bytes);
    return fits && bytes < SIZE_MAX / 8 ? bytes + MORE : MORE;
}

const float *at_seat_hub_params(at_seat_hub *h)
{
    const at_kept_tensor *tensor = find_kept(h, AT_SEAT_PARAMS_NAME);
    assert(tensor && tensor->count == h->spec.floats);
    return tensor->values;
}
