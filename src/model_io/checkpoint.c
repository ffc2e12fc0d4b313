#include "model_io/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/atomic_file.h"
#include "base/disk.h"
#include "base/file.h"
#include "model_io/safetensors.h"
#include "record/log/snapshot_json.h"

enum { OWN_MAX = 16 };
enum { NAME_SIZE = 64, LIST_MAX = 4096, TENSORS_MAX = 4096, PIECE_SIZE = 1 << 18 };

static const char NAME_PATTERN[] = "step-%012llu.safetensors";
static const char MOMENT_NAME[] = "anytime.optimizer.%u", SEAL_NAME[] = "anytime.seal";
static const char OWN_NAME[] = "anytime.worker.%u.%u";
static const char EXTRA_PREFIX[] = "anytime.state.";

/* ---- folder ---------------------------------------------------------------------------------- */

/* Steps of the existing files, newest first. File names must match NAME_PATTERN exactly. */
typedef struct list {
    uint64_t step[LIST_MAX];
    size_t   count;
} list;

static bool is_ours(const char *name, uint64_t *step)
{
    char               again[NAME_SIZE];
    unsigned long long number;
    if (sscanf(name, "step-%llu.", &number) != 1) return false;
    snprintf(again, sizeof again, NAME_PATTERN, number);
    *step = number;
    return strcmp(name, again) == 0;
}

static int newest_first(const void *a, const void *b)
{
    uint64_t one, other;
    memcpy(&one, a, sizeof one);
    memcpy(&other, b, sizeof other);
    return one < other ? 1 : one > other ? -1 : 0;
}

static void note_file(void *self, const char *name)
{
    list *files = self;
    if (files->count < LIST_MAX && is_ours(name, &files->step[files->count])) files->count++;
}

static void list_files(const char *folder, list *files)
{
    files->count = 0;
    at_disk->list(folder, note_file, files);
    qsort(files->step, files->count, sizeof *files->step, newest_first);
}

static void path_of(const char *folder, uint64_t step, char path[4096])
{
    int used = snprintf(path, 4096, "%s/", folder);
    assert(used > 0 && used < 4096 - NAME_SIZE);
    snprintf(path + used, NAME_SIZE, NAME_PATTERN, (unsigned long long)step);
}

/* Later steps than the one just written are from before the run was resumed from an earlier one,
 * because they could not be read: they are not of this run any more, and must not count among the
 * checkpoints that are kept. */
static void remove_others(const char *folder, uint64_t written)
{
    static list files;
    char        path[4096];
    size_t      kept = 0;
    list_files(folder, &files);
    for (size_t i = 0; i < files.count; i++) {
        if (files.step[i] <= written && kept++ < AT_CHECKPOINTS_KEPT) continue;
        path_of(folder, files.step[i], path);
        at_disk->unlink(path);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Appends a tensor of one dimension to the header; returns its end offset. */
static json_int_t append_tensor(json_t *header, const char *name, const char *type, size_t count,
                                size_t width, json_int_t first)
{
    json_int_t end = first + (json_int_t)(count * width);
    json_object_set_new(header, name,
                        json_pack("{s:s, s:[I], s:[I, I]}", "dtype", type, "shape",
                                  (json_int_t)count, "data_offsets", first, end));
    return end;
}

static json_t *header_of(const at_checkpoint_parts *parts)
{
    json_t    *header = at_safetensors_header(parts->task);
    json_t    *metadata = json_object_get(header, "__metadata__");
    size_t     plain = parts->task->plain;
    json_int_t end = (json_int_t)(plain * sizeof(float));
    for (uint32_t i = 0; i < parts->moments; i++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof name, MOMENT_NAME, i);
        end = append_tensor(header, name, "F32", plain, sizeof(float), end);
    }
    for (uint32_t i = 0; i < parts->own_workers * parts->own_vectors; i++) {
        char name[NAME_SIZE];
        snprintf(name, sizeof name, OWN_NAME, i / parts->own_vectors, i % parts->own_vectors);
        end = append_tensor(header, name, "F32", plain, sizeof(float), end);
    }
    for (uint32_t i = 0; i < parts->extras; i++) {
        char name[sizeof EXTRA_PREFIX + AT_CHECKPOINT_NAME_SIZE];
        snprintf(name, sizeof name, "%s%s", EXTRA_PREFIX, parts->extra[i].name);
        end = append_tensor(header, name, "F32", parts->extra[i].count, sizeof(float), end);
    }
    append_tensor(header, SEAL_NAME, "U8", AT_ATOMIC_FILE_SEAL, 1, end);
    json_object_set_new(metadata, "checkpoint", json_string(parts->state));
    json_object_set_new(metadata, "checkpoint_format", json_sprintf("%d", AT_CHECKPOINT_FORMAT));
    return header;
}

/* `scratch` has space for one plain vector. */
static void put_vectors(at_atomic_file *draft, const at_checkpoint_parts *parts, float *scratch)
{
    const at_task *task = parts->task;
    size_t         size = task->plain * sizeof(float);
    for (uint32_t i = 0; i <= parts->moments; i++) {
        const float *vector = i == 0 ? parts->params : parts->moment[i - 1];
        bool         converts = task->to_plain && (i == 0 || !task->sparse);
        if (converts) task->to_plain(task->self, scratch, vector);
        at_atomic_file_put(draft, converts ? scratch : vector, size);
    }
    for (size_t i = 0; i < (size_t)parts->own_workers * parts->own_vectors; i++) {
        const float *vector = parts->own + i * task->params;
        if (task->to_plain) task->to_plain(task->self, scratch, vector);
        at_atomic_file_put(draft, task->to_plain ? scratch : vector, size);
    }
    for (uint32_t i = 0; i < parts->extras; i++)
        at_atomic_file_put(draft, parts->extra[i].values, parts->extra[i].count * sizeof(float));
}

at_err at_checkpoint_write(const char *folder, const at_checkpoint_parts *parts, at_fail *fail)
{
    char           path[4096];
    at_atomic_file draft;
    assert(parts->moments <= AT_CHECKPOINT_MOMENTS);
    float *scratch = malloc(parts->task->plain * sizeof *scratch);
    if (!scratch) return at_fail_memory_for(fail, "for a checkpoint");
    path_of(folder, parts->step, path);
    json_t *header = header_of(parts);
    at_err  err = at_safetensors_begin(path, header, true, &draft, fail);
    json_decref(header);
    if (!err) {
        put_vectors(&draft, parts, scratch);
        at_atomic_file_seal(&draft);
        err = at_atomic_file_commit(&draft, fail);
    }
    free(scratch);
    if (!err) remove_others(folder, parts->step);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

static at_err broken(const char *path, const char *what, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "no checkpoint of this run is valid: use another run",
                       "%s: %s", path, what);
}

/* Adds the next `size` bytes to the digest. */
static at_err digest(FILE *file, const char *path, long size, unsigned char *buffer,
                     at_digest *hash, at_fail *fail)
{
    for (long left = size; left > 0;) {
        size_t piece = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
        if (fread(buffer, 1, piece, file) != piece) return broken(path, "cannot be read", fail);
        at_digest_add(hash, buffer, piece);
        left -= (long)piece;
    }
    return AT_OK;
}

static at_err check_seal(FILE *file, const char *path, unsigned char *buffer, at_fail *fail)
{
    unsigned char seal[AT_ATOMIC_FILE_SEAL], found[AT_ATOMIC_FILE_SEAL];
    if (fseek(file, 0, SEEK_END)) return broken(path, "cannot be read", fail);
    long size = ftell(file);
    if (size < AT_ATOMIC_FILE_SEAL)
        return broken(path, "truncated: too short for its checksum (anytime.seal)", fail);
    rewind(file);
    at_digest hash;
    if (!at_digest_begin(&hash)) return at_fail_memory_for(fail, "for %s", path);
    at_err err = digest(file, path, size - AT_ATOMIC_FILE_SEAL, buffer, &hash, fail);
    at_digest_end(&hash, seal);
    AT_TRY(err);
    if (fread(found, 1, sizeof found, file) != sizeof found)
        return broken(path, "cannot be read", fail);
    return memcmp(seal, found, sizeof seal) == 0
               ? AT_OK
               : broken(path, "truncated or modified: its checksum (anytime.seal) does not match",
                        fail);
}

static at_err check_file(const char *path, at_fail *fail)
{
    FILE *file = at_disk->stream(path);
    if (!file) return at_file_error("read", path, errno, fail);
    unsigned char *buffer = malloc(PIECE_SIZE);
    at_err         err = AT_ERR_FAILED;
    if (buffer)
        err = check_seal(file, path, buffer, fail);
    else
        at_fail_memory_for(fail, "for %s", path);
    free(buffer);
    fclose(file);
    return err;
}

/* The first version wrote no format. */
static at_err check_format(const char *path, at_fail *fail)
{
    char *text = NULL, *end = NULL;
    AT_TRY(at_safetensors_text(path, "checkpoint_format", &text, fail));
    long format = text ? strtol(text, &end, 10) : 1;
    bool number = !text || (end > text && !*end);
    free(text);
    if (number && format == AT_CHECKPOINT_FORMAT) return AT_OK;
    if (!number) return broken(path, "not a checkpoint of a run", fail);
    bool is_old = format < AT_CHECKPOINT_FORMAT;
    return at_fail_set(fail, AT_ERR_FORMAT,
                       "resume with that version, or start a new run from its parameters with "
                       "--init FILE",
                       "%s: written by %s; the checkpoint has format %ld, this version reads "
                       "format %d",
                       path, is_old ? "anytime 0.1" : "a newer version of anytime", format,
                       AT_CHECKPOINT_FORMAT);
}

static at_err read_state(at_checkpoint *c, at_fail *fail)
{
    char *text = NULL;
    AT_TRY(check_file(c->path, fail));
    AT_TRY(check_format(c->path, fail));
    AT_TRY(at_safetensors_text(c->path, "checkpoint", &text, fail));
    c->state = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    if (!json_is_object(c->state)) return broken(c->path, "not a checkpoint of a run", fail);
    return at_snapshot_read(json_object_get(c->state, "image"), &c->snapshot, fail);
}

/* Tries the newest first; reports the first damaged one. */
static at_err open_newest(at_checkpoint *c, const char *folder, const list *files, at_fail *fail)
{
    at_fail first = {0}, next;
    for (size_t i = 0; i < files->count; i++) {
        path_of(folder, files->step[i], c->path);
        at_err err = read_state(c, i == 0 ? &first : &next);
        if (!err && i > 0)
            snprintf(c->damaged, sizeof c->damaged, "%.400s; resuming from step %llu", first.text,
                     (unsigned long long)files->step[i]);
        if (!err) return AT_OK;
        at_checkpoint_close(c);
    }
    *fail = first;
    return first.err;
}

at_err at_checkpoint_open(const char *run, at_checkpoint *checkpoint, at_fail *fail)
{
    static list files;
    char        folder[4096 - NAME_SIZE];
    *checkpoint = (at_checkpoint){0};
    int used = snprintf(folder, sizeof folder, "%s/checkpoint", run);
    if (used < 0 || (size_t)used >= sizeof folder)
        return at_fail_set(fail, AT_ERR_USAGE, "use a shorter path",
                           "the path of the run folder is too long: %zu bytes", strlen(run));
    list_files(folder, &files);
    if (files.count > 0) return open_newest(checkpoint, folder, &files, fail);
    return at_fail_set(fail, AT_ERR_MISSING, "use the folder of a run that wrote checkpoints",
                       "%s: no checkpoint found", folder);
}

void at_checkpoint_close(at_checkpoint *checkpoint)
{
    json_decref(checkpoint->state);
    free(checkpoint->snapshot);
    *checkpoint = (at_checkpoint){0};
}

static at_err read_vector(const at_checkpoint *c, const at_task *task, const at_tensor *tensors,
                          size_t count, bool converts, float *vector, at_fail *fail)
{
    float *plain = converts ? malloc(task->plain * sizeof *plain) : vector;
    if (!plain) return at_fail_memory_for(fail, "for %s", c->path);
    at_err err = at_safetensors_read(c->path, tensors, count, plain, fail);
    if (converts) {
        if (!err) task->from_plain(task->self, vector, plain);
        free(plain);
    }
    return err;
}

at_err at_checkpoint_params(const at_checkpoint *checkpoint, const at_task *task, float *params,
                            at_fail *fail)
{
    static at_tensor tensors[TENSORS_MAX];
    size_t           count = at_safetensors_tensors(task, tensors, TENSORS_MAX);
    return read_vector(checkpoint, task, tensors, count, task->from_plain, params, fail);
}

at_err at_checkpoint_moment(const at_checkpoint *checkpoint, const at_task *task, uint32_t which,
                            float *moment, at_fail *fail)
{
    assert(which < AT_CHECKPOINT_MOMENTS);
    at_tensor tensor = {.dims = 1, .shape = {(uint32_t)task->plain}};
    snprintf(tensor.name, sizeof tensor.name, MOMENT_NAME, which);
    bool converts = task->from_plain && !task->sparse;
    return read_vector(checkpoint, task, &tensor, 1, converts, moment, fail);
}

void at_checkpoint_own_count(const at_checkpoint *checkpoint, uint32_t *workers, uint32_t *vectors)
{
    const json_t *own = json_object_get(checkpoint->state, "own");
    json_int_t    many = json_integer_value(json_object_get(own, "workers"));
    json_int_t    each = json_integer_value(json_object_get(own, "vectors"));
    bool          sane = many >= 1 && many <= AT_WORKERS_MAX && each >= 1 && each <= OWN_MAX;
    *workers = sane ? (uint32_t)many : 0;
    *vectors = sane ? (uint32_t)each : 0;
}

at_err at_checkpoint_own(const at_checkpoint *checkpoint, const at_task *task, uint32_t worker,
                         uint32_t which, float *vector, at_fail *fail)
{
    at_tensor tensor = {.dims = 1, .shape = {(uint32_t)task->plain}};
    assert(!task->sparse);
    snprintf(tensor.name, sizeof tensor.name, OWN_NAME, worker, which);
    return read_vector(checkpoint, task, &tensor, 1, task->from_plain, vector, fail);
}

at_err at_checkpoint_extras(const at_checkpoint *checkpoint, at_safetensors_take take, void *self,
                            at_fail *fail)
{
    assert(take);
    return at_safetensors_each(checkpoint->path, EXTRA_PREFIX, take, self, fail);
}
