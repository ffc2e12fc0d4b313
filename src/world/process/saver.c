#include "world/process/saver.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/atomic_file.h"
#include "base/clock.h"
#include "base/disk.h"
#include "base/file.h"
#include "learn/optim/sum.h"
#include "model_io/checkpoint.h"
#include "record/log/snapshot_json.h"
#include "world/process/bell.h"
#include "world/process/child.h"
#include "world/process/supervisor.h"

/* Shared with the saver process. A request or answer is published by its counter. */
typedef struct shared {
    at_bell          bell, done_bell; /* rung for the saver, and by it */
    _Atomic uint64_t asked, answered;
    _Atomic uint64_t newest;
    _Atomic bool     urgent; /* the hub waits for this request */
    uint64_t         step;
    uint32_t         moments, own_workers, extras;
    char             trouble[512]; /* of the last answer; "": written */
} shared;

struct at_saver {
    at_saver_options options;
    char             folder[4000];
    shared          *shared;
    size_t           size; /* of the mapping */
    char            *text; /* the state, as JSON */
    size_t           text_size;
    float           *vector;   /* parameters, the optimizer's state, the vectors of each worker */
    unsigned char   *extra;    /* a table of further vectors, then their values */
    uint64_t         taken;    /* answers fetched */
    at_supervisor   *process;  /* its only child is the saver; NULL: see at_saver_write */
    bool             lowered;  /* the process runs at idle priority */
    bool             given_up; /* it did not finish in time: nothing more is saved */
    char             trouble[600];
};

enum { TEXT_SIZE = 1 << 20, TEXT_SIZE_WORKER = 1024 };

/* ---- saver process --------------------------------------------------------------------------- */

static void write_snapshot(at_saver *s)
{
    const at_task      *task = s->options.task;
    at_checkpoint_parts parts = {.task = task,
                                 .step = s->shared->step,
                                 .params = s->vector,
                                 .moments = s->shared->moments,
                                 .state = s->text,
                                 .extra = (const at_checkpoint_vector *)(const void *)s->extra,
                                 .extras = s->shared->extras};
    assert(parts.moments == s->options.learning->optim->states);
    for (uint32_t i = 0; i < parts.moments; i++)
        parts.moment[i] = s->vector + (i + 1) * task->params;
    parts.own = s->vector + (parts.moments + 1) * task->params;
    parts.own_workers = s->shared->own_workers;
    parts.own_vectors = s->options.own_vectors;
    at_fail fail = {0};
    size_t  floats = (parts.moments + 1) * task->params;
    s->shared->trouble[0] = '\0';
    if (at_first_nonfinite(s->vector, floats) < floats)
        snprintf(s->shared->trouble, sizeof s->shared->trouble,
                 "the weights or the optimizer state of step %llu are not finite; older "
                 "checkpoints are intact",
                 (unsigned long long)parts.step);
    else if (at_checkpoint_write(s->folder, &parts, &fail))
        snprintf(s->shared->trouble, sizeof s->shared->trouble, "%.500s", fail.text);
    else
        atomic_store(&s->shared->newest, parts.step);
}

static void answer(at_saver *s, uint64_t asked)
{
    write_snapshot(s);
    atomic_store(&s->shared->answered, asked);
}

/* Never returns: the hub kills it, or it dies with the hub. */
static int child_main(void *self, at_fail *fail)
{
    (void)fail; /* each answer has its own */
    at_saver *s = self;
    assert(s->shared);
    at_child_background("anytime-saver");
    while (s->shared) {
        uint32_t heard = at_bell_heard(&s->shared->bell);
        uint64_t asked = atomic_load(&s->shared->asked);
        if (asked == atomic_load(&s->shared->answered)) {
            at_bell_wait(&s->shared->bell, heard, 1, AT_BELL_ALL, AT_NEVER, 0);
            continue;
        }
        if (!atomic_load(&s->shared->urgent)) at_child_idle();
        answer(s, asked);
        at_bell_ring_loud(&s->shared->done_bell, AT_BELL_ALL);
    }
    return 0;
}

/* ---- hub side -------------------------------------------------------------------------------- */

/* head │ text │ parameters │ state vectors │ those of the workers │ further ones. Pages are
 * allocated when first written. */
static at_err share(at_saver *s, at_fail *fail)
{
    const at_saver_options *o = &s->options;
    size_t                  head = (sizeof(shared) + 63) / 64 * 64, floats, bytes;
    assert(o->task && o->learning);
    s->text_size = TEXT_SIZE + (size_t)o->workers * TEXT_SIZE_WORKER;
    size_t vectors = 1 + o->learning->optim->states + (size_t)o->workers * o->own_vectors;
    bool   fits = at_size_product(o->task->params, vectors, &floats) &&
                at_size_product(floats, sizeof(float), &bytes) && bytes < SIZE_MAX / 4 &&
                o->extra_size < SIZE_MAX / 4;
    if (!fits) return at_fail_memory_for(fail, "for checkpoints");
    bytes = (bytes + 63) / 64 * 64;
    s->size = head + s->text_size + bytes + o->extra_size;
    s->shared = at_child_share(s->size, fail);
    if (!s->shared) return fail->err;
    s->text = (char *)s->shared + head;
    s->vector = (float *)(void *)(s->text + s->text_size);
    s->extra = (unsigned char *)s->vector + bytes;
    atomic_store(&s->shared->newest, UINT64_MAX);
    return AT_OK;
}

/* What is synced in a folder is lost with it: the names of the folder and of its run must be safe,
 * too, even if an earlier process made them and died before it could sync them. */
static at_err sync_folders(const at_saver *s, at_fail *fail)
{
    int error = at_file_sync_folder(s->folder);
    if (!error) error = at_file_sync_folder(s->options.run);
    return error ? at_file_error("sync the folder of", s->folder, error, fail) : AT_OK;
}

at_err at_saver_open(const at_saver_options *options, at_saver **saver, at_fail *fail)
{
    assert(options->run);
    at_saver *s = calloc(1, sizeof *s);
    *saver = NULL;
    if (!s) return at_fail_memory(fail);
    s->options = *options;
    int    used = snprintf(s->folder, sizeof s->folder, "%s/checkpoint", options->run);
    at_err err = used < 0 || (size_t)used >= sizeof s->folder
                     ? at_fail_set(fail, AT_ERR_USAGE, "choose a shorter run folder",
                                   "the path of the run folder is too long: %zu bytes, at most %zu",
                                   strlen(options->run), sizeof s->folder - sizeof "/checkpoint")
                     : at_file_make_folder(s->folder, fail);
    if (!err) err = sync_folders(s, fail);
    if (!err) at_atomic_file_remove_drafts(s->folder); /* of savers that were killed */
    if (!err) err = share(s, fail);
    bool forks = at_disk == &at_disk_posix; /* another one is this process's own */
    if (!err && forks) err = at_supervisor_open(1, &s->process, fail);
    if (!err && forks) err = at_supervisor_start(s->process, 0, child_main, s, fail);
    if (err) {
        at_supervisor_close(s->process);
        if (s->shared) munmap(s->shared, s->size);
        free(s);
        return err;
    }
    *saver = s;
    return AT_OK;
}

static bool is_busy(const at_saver *s)
{
    assert(s->shared);
    return atomic_load(&s->shared->asked) != atomic_load(&s->shared->answered);
}

void at_saver_write(at_saver *s)
{
    assert(!s->process);
    if (is_busy(s)) answer(s, atomic_load(&s->shared->asked));
}

/* True when the hub may raise the saver to normal priority. */
static bool can_hurry(const at_saver *s)
{
    pid_t pid = at_supervisor_pid(s->process, 0);
    assert(pid >= 0);
    return pid > 0 && at_child_hurry(pid);
}

static void start(at_saver *s)
{
    at_fail fail;
    assert(at_supervisor_pid(s->process, 0) == 0);
    if (at_supervisor_start(s->process, 0, child_main, s, &fail))
        snprintf(s->trouble, sizeof s->trouble,
                 "the process that writes checkpoints is not running: %.500s", fail.text);
}

/* Restarts a saver that has died, after a pause that grows from death to death; it picks up the
 * pending request. */
static void revive(at_saver *s)
{
    at_death death;
    if (!s->process) return;
    if (!is_busy(s)) at_supervisor_well(s->process, 0);
    if (at_supervisor_reap(s->process, &death)) {
        snprintf(s->trouble, sizeof s->trouble,
                 "the process that writes checkpoints died and is started again");
        at_atomic_file_remove_drafts(s->folder); /* its own */
    }
    bool ready = at_clock_now() >= at_supervisor_ready_at(s->process, 0);
    if (at_supervisor_pid(s->process, 0) == 0 && ready) start(s);
}

/* At idle priority the saver may never finish on a busy machine. When the hub waits for it, it is
 * raised to normal priority; where that is not permitted a new process replaces it and the pending
 * request is discarded, because a newer one follows. */
static void hasten(at_saver *s)
{
    assert(!s->given_up);
    if (!s->process || !s->lowered || can_hurry(s)) return;
    at_supervisor_end(s->process, 0);
    s->lowered = false;
    at_atomic_file_remove_drafts(s->folder);
    atomic_store(&s->shared->answered, atomic_load(&s->shared->asked));
    start(s);
}

static void say(const at_saver *s, const char *text)
{
    assert(text[0]);
    if (s->options.say) s->options.say(s->options.self, text);
}

/* Waiting for the disk is announced after two seconds, and ends at a time that a slow disk would
 * not need. */
static void say_waiting(const at_saver *s, at_ns left)
{
    char text[4200];
    snprintf(text, sizeof text,
             "waiting for the checkpoint of step %llu to be written to %.3900s (at most %.0f s)",
             (unsigned long long)s->shared->step, s->folder, at_seconds(left));
    say(s, text);
}

static void give_up(at_saver *s)
{
    char text[4200];
    assert(is_busy(s));
    snprintf(text, sizeof text,
             "gave up the checkpoint of step %llu: %.3900s; older checkpoints are intact",
             (unsigned long long)s->shared->step,
             at_supervisor_pid(s->process, 0) > 0 ? "the disk does not finish writing"
                                                  : "no process can be started to write it");
    s->given_up = true;
    say(s, text);
}

/* Waits for the answer. A saver that dies again and again, or cannot be forked, is not awaited:
 * the next request tries again. */
static void await(at_saver *s)
{
    enum { FAILURES_MAX = 3, BYTES_PER_SECOND = 4 << 20 };
    if (!s->process) {
        at_saver_write(s);
        return;
    }
    bool           said = false;
    const uint32_t failures = at_supervisor_failures(s->process, 0);
    at_ns          waited = 0, now = at_clock_now();
    const at_ns    patience = AT_SAVER_PATIENCE + AT_SEC((double)s->size / BYTES_PER_SECOND);
    assert(patience >= AT_SAVER_PATIENCE);
    while (is_busy(s) && !s->given_up) {
        uint32_t heard = at_bell_heard(&s->shared->done_bell);
        at_ns    before = now;
        now = at_clock_now();
        waited += at_waited(before, now);
        revive(s);
        if (!is_busy(s) || at_supervisor_failures(s->process, 0) - failures >= FAILURES_MAX) break;
        if (waited >= AT_SEC(2) && !said) say_waiting(s, patience - waited);
        said = said || waited >= AT_SEC(2);
        if (waited >= patience)
            give_up(s);
        else
            at_bell_wait(&s->shared->done_bell, heard, 1, AT_BELL_ALL, now + AT_MS(500), 0);
    }
}

static char *state_text(const at_saver *s, const at_snapshot *snapshot, uint32_t own_workers)
{
    json_t *state = json_object();
    json_object_set_new(state, "image", at_snapshot_json(snapshot));
    json_object_set_new(state, "optimizer", json_string(s->options.learning->optim->name));
    if (own_workers > 0)
        json_object_set_new(state, "own",
                            json_pack("{s:I, s:I}", "workers", (json_int_t)own_workers, "vectors",
                                      (json_int_t)s->options.own_vectors));
    if (s->options.describe) s->options.describe(s->options.self, state, snapshot->clock);
    char *text = json_dumps(state, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(state);
    return text;
}

char *at_saver_state(const at_saver *s, const at_snapshot *snapshot)
{
    return state_text(s, snapshot, 0);
}

/* Workers whose own parameters are saved. */
static uint32_t own_workers(const at_saver *s, const at_saver_input *input)
{
    bool own = input->gossip && input->gossip->node && s->options.own_vectors > 0;
    return own ? input->gossip->graph.nodes : 0;
}

/* False when the text does not fit, which takes an absurd number of options. */
static bool put_text(at_saver *s, const at_saver_input *input, const at_snapshot *snapshot)
{
    char       *own = input->state ? NULL : state_text(s, snapshot, own_workers(s, input));
    const char *text = input->state ? input->state : own;
    bool        fits = text && strlen(text) < s->text_size;
    assert(s->text_size > 0);
    if (fits) memcpy(s->text, text, strlen(text) + 1);
    free(own);
    return fits;
}

/* Copies further vectors; their table has the addresses of the copies, which are the same in the
 * saver's process. False: they do not fit. */
static bool put_extra(at_saver *s, const at_saver_input *input)
{
    size_t table = input->extras * sizeof *input->extra, used = table;
    for (uint32_t i = 0; i < input->extras; i++) {
        size_t size;
        if (!at_size_product(input->extra[i].count, sizeof(float), &size)) return false;
        used = size < s->options.extra_size ? used + size : SIZE_MAX / 2;
        if (used > s->options.extra_size) return false;
    }
    at_checkpoint_vector *copy = (at_checkpoint_vector *)(void *)s->extra;
    float                *values = (float *)(void *)(s->extra + table);
    s->shared->extras = input->extras;
    for (uint32_t i = 0; i < input->extras; i++) {
        copy[i] = input->extra[i];
        copy[i].values = values;
        memcpy(values, input->extra[i].values, copy[i].count * sizeof(float));
        values += copy[i].count;
    }
    return true;
}

static void put_vectors(at_saver *s, const at_saver_input *input)
{
    size_t   params = s->options.task->params;
    uint32_t each = s->options.own_vectors;
    float   *to = s->vector;
    memcpy(to, input->params, params * sizeof(float));
    s->shared->moments = s->options.learning->optim->states;
    s->shared->own_workers = own_workers(s, input);
    for (uint32_t i = 0; i < s->shared->moments; i++)
        at_updater_moment(input->updater, i, to += params);
    for (uint32_t i = 0; i < s->shared->own_workers * each; i++)
        at_gossip_vector(input->gossip, i / each, i % each, to += params);
}

void at_saver_save(at_saver *s, const at_saver_input *input, const at_snapshot *snapshot, bool last)
{
    bool wanted = last || s->options.patient || snapshot->version == 0;
    assert(input->updater && input->params);
    if (s->given_up || (is_busy(s) && !wanted)) return;
    if (wanted) hasten(s);
    await(s);
    if (s->given_up) return;
    revive(s);
    if (is_busy(s) || !put_text(s, input, snapshot) || !put_extra(s, input)) {
        snprintf(s->trouble, sizeof s->trouble, "cannot write a checkpoint of step %llu: %s",
                 (unsigned long long)snapshot->version,
                 is_busy(s) ? "the process that writes it does not finish"
                            : "the state of the run is too large");
        return;
    }
    put_vectors(s, input);
    s->shared->step = snapshot->version;
    atomic_store(&s->shared->urgent, wanted);
    s->lowered = s->lowered || !wanted;
    atomic_fetch_add(&s->shared->asked, 1);
    at_bell_ring_loud(&s->shared->bell, AT_BELL_ALL);
    if (last || snapshot->version == 0) await(s);
    if (last && is_busy(s) && !s->given_up) give_up(s); /* there is no next request */
}

const char *at_saver_trouble(at_saver *s)
{
    uint64_t answered = atomic_load(&s->shared->answered);
    assert(s->taken <= answered);
    if (is_busy(s)) revive(s);
    if (answered != s->taken) {
        s->taken = answered;
        if (s->shared->trouble[0])
            snprintf(s->trouble, sizeof s->trouble, "cannot write a checkpoint: %s",
                     s->shared->trouble);
    }
    if (!s->trouble[0]) return NULL;
    static char text[sizeof s->trouble];
    memcpy(text, s->trouble, sizeof text);
    s->trouble[0] = '\0';
    return text;
}

uint64_t at_saver_newest(const at_saver *s)
{
    assert(s->shared);
    return atomic_load(&s->shared->newest);
}

void at_saver_close(at_saver *s)
{
    if (!s) return;
    /* The pending checkpoint is optional: do not wait for it if it may take forever. */
    bool left = s->process && is_busy(s) && s->lowered && !can_hurry(s);
    if (!left) await(s);
    at_supervisor_close(s->process);
    if (left || s->given_up) at_atomic_file_remove_drafts(s->folder);
    munmap(s->shared, s->size);
    free(s);
}
