#include "model_io/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/json_text.h"
#include "model_io/checkpoint.h"

enum { TENSORS_MAX = 4096, HEAD_SIZE = 8, ALIGN = 8 };
static const uint64_t HEADER_MAX = 100u << 20; /* the format's own limit */

/* ---- writing --------------------------------------------------------------------------------- */

static void add_tensor(json_t *header, const at_tensor *tensor)
{
    json_t *shape = json_array();
    size_t  floats = 1;
    for (uint32_t i = 0; i < tensor->dims; i++) {
        json_array_append_new(shape, json_integer(tensor->shape[i]));
        floats *= tensor->shape[i];
    }
    json_int_t first = (json_int_t)(tensor->at * sizeof(float));
    json_int_t end = first + (json_int_t)(floats * sizeof(float));
    json_object_set_new(header, tensor->name,
                        json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape,
                                  "data_offsets", first, end));
}

size_t at_safetensors_tensors(const at_task *task, at_tensor *tensors, size_t max)
{
    if (task->tensors) return task->tensors(task->self, tensors, max);
    assert(max >= 1);
    assert(task->plain <= UINT32_MAX);
    tensors[0] = (at_tensor){.name = "params", .dims = 1, .shape = {(uint32_t)task->plain}};
    return 1;
}

json_t *at_safetensors_metadata(const at_task *task)
{
    const struct {
        const char *key, *value;
    } rows[] = {{"anytime", ANYTIME_VERSION},
                {"model", task->model_path ? task->model_path : task->model},
                {"data", task->data_path ? task->data_path : task->data},
                {"samples", task->sample_form},
                {"prep", task->prep},
                {"prep_fitted", task->prep_fitted},
                {"net", task->net_text},
                {"inputs", task->inputs}};
    json_t *metadata = json_object();
    assert(task->model && task->data);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value)
            json_object_set_new(metadata, rows[i].key, at_text_to_json(rows[i].value));
    return metadata;
}

json_t *at_safetensors_header(const at_task *task)
{
    static at_tensor tensors[TENSORS_MAX];
    json_t          *header = json_object();
    size_t           count = at_safetensors_tensors(task, tensors, TENSORS_MAX);
    assert(count <= TENSORS_MAX);
    json_object_set_new(header, "__metadata__", at_safetensors_metadata(task));
    for (size_t i = 0; i < count; i++) add_tensor(header, &tensors[i]);
    return header;
}

at_err at_safetensors_begin(const char *path, const json_t *header, bool sealed,
                            at_atomic_file *draft, at_fail *fail)
{
    char *text = json_dumps(header, JSON_COMPACT);
    if (!text) return at_fail_memory_for(fail, "for %s", path);
    size_t        length = strlen(text), padded = (length + ALIGN - 1) / ALIGN * ALIGN;
    unsigned char head[HEAD_SIZE];
    at_err        err = at_atomic_file_begin(draft, path, sealed, fail);
    for (int i = 0; i < HEAD_SIZE; i++) head[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    if (!err) {
        at_atomic_file_put(draft, head, sizeof head);
        at_atomic_file_put(draft, text, length);
        at_atomic_file_put(draft, "        ", padded - length);
    }
    free(text);
    return err;
}

at_err at_safetensors_write(const char *path, const at_task *task, const float *plain,
                            at_fail *fail)
{
    at_atomic_file draft;
    size_t         size;
    json_t        *header = at_safetensors_header(task);
    bool           fits = at_size_product(task->plain, sizeof(float), &size);
    assert(fits);
    at_err err = at_safetensors_begin(path, header, false, &draft, fail);
    json_decref(header);
    AT_TRY(err);
    at_atomic_file_put(&draft, plain, size);
    return at_atomic_file_commit(&draft, fail);
}

/* ---- newest file of a run -------------------------------------------------------------------- */

static at_err too_long(const char *path, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE, "use a shorter path",
                       "the path is too long: %zu bytes, at most %d", strlen(path),
                       AT_SAFETENSORS_PATH_SIZE - (int)sizeof "/model.safetensors");
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec) return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
    return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* A run that ends writes both with the same weights; then model.safetensors is used. */
static at_err choose(const char *run, char path[AT_SAFETENSORS_PATH_SIZE],
                     const at_checkpoint *saved, char note[AT_SAFETENSORS_NOTE_SIZE], at_fail *fail)
{
    struct stat model, checkpoint;
    int         length = snprintf(path, AT_SAFETENSORS_PATH_SIZE, "%s/model.safetensors", run);
    if (length < 0 || length >= AT_SAFETENSORS_PATH_SIZE) return too_long(run, fail);
    bool exists = at_disk->stat(path, &model) == 0;
    if (!saved->path[0] || at_disk->stat(saved->path, &checkpoint) != 0) return AT_OK;
    if (exists && !is_newer(&checkpoint, &model)) return AT_OK;
    snprintf(path, AT_SAFETENSORS_PATH_SIZE, "%s", saved->path);
    if (note) snprintf(note, AT_SAFETENSORS_NOTE_SIZE, "%s", saved->damaged);
    return AT_OK;
}

at_err at_safetensors_newest(const char *source, char path[AT_SAFETENSORS_PATH_SIZE],
                             char note[AT_SAFETENSORS_NOTE_SIZE], at_fail *fail)
{
    struct stat   status;
    at_checkpoint saved;
    at_fail       none = {0};
    assert(source && path);
    if (note) note[0] = '\0';
    if (strlen(source) >= AT_SAFETENSORS_PATH_SIZE) return too_long(source, fail);
    if (at_disk->stat(source, &status) != 0 || !S_ISDIR(status.st_mode)) {
        snprintf(path, AT_SAFETENSORS_PATH_SIZE, "%s", source);
        return AT_OK;
    }
    at_err found = at_checkpoint_open(source, &saved, &none);
    at_err err = choose(source, path, &saved, note, fail);
    bool   lacks = !err && at_disk->stat(path, &status) != 0;
    if (lacks && found == AT_ERR_FORMAT) {
        if (fail) *fail = none; /* all checkpoints are damaged */
        err = found;
    } else if (lacks) {
        err = at_fail_set(fail, AT_ERR_MISSING,
                          "a run writes them at its end, and with --record none not at all",
                          "%s: the run folder has no weights", source);
    }
    at_checkpoint_close(&saved);
    return err;
}

/* ---- reading ---------------------------------------------------------------------------------
 *
 * The file is not trusted: the length of its header is checked before it is read, and every offset
 * is checked against the size of the file. */

typedef struct reader {
    const char *path;
    FILE       *file;
    uint64_t    data_at, data_size; /* of the tensors, in bytes */
    json_t     *header;
    at_fail    *fail;
} reader;

static at_err damaged(const reader *r, const char *what)
{
    return at_fail_set(r->fail, AT_ERR_FORMAT, "copy or export the file again",
                       "%s: not a valid safetensors file: %s", r->path, what);
}

static at_err open_file(reader *r, char path[AT_SAFETENSORS_PATH_SIZE])
{
    struct stat status;
    AT_TRY(at_safetensors_newest(r->path, path, NULL, r->fail));
    r->path = path;
    r->file = at_disk->stream(r->path);
    if (!r->file && errno == ENOENT)
        return at_fail_set(r->fail, AT_ERR_MISSING, "use a .safetensors file or a run folder",
                           "%s: no such file", r->path);
    if (!r->file) return at_file_error("read", r->path, errno, r->fail);
    if (at_disk->stat(r->path, &status) || !S_ISREG(status.st_mode))
        return at_fail_set(r->fail, AT_ERR_IO, "use a .safetensors file or a run folder",
                           "%s: not a regular file", r->path);
    r->data_size = (uint64_t)status.st_size;
    return AT_OK;
}

static at_err read_header(reader *r)
{
    unsigned char head[HEAD_SIZE];
    uint64_t      length = 0;
    if (fread(head, 1, HEAD_SIZE, r->file) != HEAD_SIZE) return damaged(r, "shorter than 8 bytes");
    for (int i = HEAD_SIZE; i-- > 0;) length = length << 8 | head[i];
    if (length > HEADER_MAX || length > r->data_size - HEAD_SIZE)
        return damaged(r, "byte 0: the header is longer than the file");
    char *text = malloc(length + 1);
    if (!text) return at_fail_memory_for(r->fail, "for %s", r->path);
    bool         whole = fread(text, 1, length, r->file) == length;
    json_error_t error;
    r->header = whole ? json_loadb(text, length, JSON_REJECT_DUPLICATES, &error) : NULL;
    free(text);
    if (!json_is_object(r->header)) return damaged(r, "byte 8: the header is not a JSON object");
    r->data_at = HEAD_SIZE + length;
    r->data_size -= r->data_at;
    return AT_OK;
}

typedef struct span {
    json_int_t first, end;
} span;

static int by_place(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Bytes that belong to two tensors are either a mistake or an attempt to confuse readers. */
static at_err check_extents(const reader *r)
{
    const char *name;
    json_t     *entry;
    size_t      count = 0;
    span       *list = malloc((json_object_size(r->header) + 1) * sizeof *list);
    if (!list) return at_fail_memory_for(r->fail, "for %s", r->path);
    json_object_foreach(r->header, name, entry)
    {
        const json_t *offsets = json_object_get(entry, "data_offsets");
        if (strcmp(name, "__metadata__") == 0) continue;
        list[count].first = json_integer_value(json_array_get(offsets, 0));
        list[count++].end = json_integer_value(json_array_get(offsets, 1));
    }
    qsort(list, count, sizeof *list, by_place);
    bool overlap = false;
    for (size_t i = 1; i < count; i++) overlap = overlap || list[i].first < list[i - 1].end;
    free(list);
    return overlap ? damaged(r, "two tensors overlap") : AT_OK;
}

static bool same_shape(const json_t *shape, const at_tensor *tensor)
{
    if (!json_is_array(shape) || json_array_size(shape) != tensor->dims) return false;
    for (uint32_t i = 0; i < tensor->dims; i++) {
        const json_t *extent = json_array_get(shape, i);
        if (!json_is_integer(extent) || json_integer_value(extent) != tensor->shape[i])
            return false;
    }
    return true;
}

static at_err wrong_shape(const reader *r, const json_t *shape, const at_tensor *tensor)
{
    char  expected[12 * AT_TENSOR_DIMS_MAX] = "";
    char *found = shape ? json_dumps(shape, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    for (uint32_t i = 0, used = 0; i < tensor->dims; i++)
        used += (uint32_t)snprintf(expected + used, sizeof expected - used, i ? ",%u" : "%u",
                                   tensor->shape[i]);
    at_fail_set(r->fail, AT_ERR_FORMAT, "use weights of the same model and number of classes",
                "%s: tensor %s has shape %.60s, expected [%s]", r->path, tensor->name,
                found ? found : "(none)", expected);
    free(found);
    return AT_ERR_FORMAT;
}

static size_t numbers(const at_tensor *tensor)
{
    size_t n = 1;
    for (uint32_t i = 0; i < tensor->dims; i++) n *= tensor->shape[i];
    return n;
}

/* The bytes of a tensor, which must be `size`. */
static at_err read_bytes(reader *r, const json_t *entry, const char *name, void *bytes, size_t size)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    json_int_t    first = json_integer_value(json_array_get(offsets, 0));
    json_int_t    end = json_integer_value(json_array_get(offsets, 1));
    if (json_array_size(offsets) != 2 || first < 0 || end < first || (uint64_t)end > r->data_size ||
        (uint64_t)(end - first) != size)
        return damaged(r, "the offsets of a tensor do not fit its shape or the file");
    if (fseeko(r->file, (off_t)(r->data_at + (uint64_t)first), SEEK_SET) ||
        fread(bytes, 1, size, r->file) != size)
        return at_fail_set(r->fail, AT_ERR_IO, "copy or export the file again",
                           "%s: cannot read tensor %s", r->path, name);
    return AT_OK;
}

static at_err read_tensor(reader *r, const at_tensor *tensor, float *plain)
{
    const json_t *entry = json_object_get(r->header, tensor->name);
    const json_t *shape = json_object_get(entry, "shape");
    const char   *type = json_string_value(json_object_get(entry, "dtype"));
    if (!entry)
        return at_fail_set(r->fail, AT_ERR_FORMAT,
                           "see docs/reference/models.md for the names of tensors",
                           "%s: tensor %s is missing", r->path, tensor->name);
    if (!type || strcmp(type, "F32") != 0)
        return at_fail_set(r->fail, AT_ERR_FORMAT, "convert it to 32-bit floats",
                           "%s: tensor %s has type %.20s, expected F32", r->path, tensor->name,
                           type ? type : "(none)");
    if (!same_shape(shape, tensor)) return wrong_shape(r, shape, tensor);
    return read_bytes(r, entry, tensor->name, plain + tensor->at, numbers(tensor) * sizeof(float));
}

static at_err open_weights(reader *r, char path[AT_SAFETENSORS_PATH_SIZE])
{
    assert(r->path && !r->file);
    AT_TRY(open_file(r, path));
    AT_TRY(read_header(r));
    return check_extents(r);
}

static void close_weights(reader *r)
{
    json_decref(r->header);
    if (r->file) fclose(r->file);
}

at_err at_safetensors_read(const char *path, const at_tensor *tensors, size_t count, float *plain,
                           at_fail *fail)
{
    char   buffer[AT_SAFETENSORS_PATH_SIZE];
    reader r = {.path = path, .fail = fail};
    assert(tensors && plain);
    at_err err = open_weights(&r, buffer);
    for (size_t i = 0; !err && i < count; i++) err = read_tensor(&r, &tensors[i], plain);
    close_weights(&r);
    return err;
}

/* Numbers of a vector of 32-bit floats that the file has; false: it is something else. */
static bool is_vector(const reader *r, const json_t *entry, size_t *count)
{
    const json_t *shape = json_object_get(entry, "shape");
    const char   *type = json_string_value(json_object_get(entry, "dtype"));
    json_int_t    numbers = json_integer_value(json_array_get(shape, 0));
    *count = (size_t)numbers;
    return type && strcmp(type, "F32") == 0 && json_array_size(shape) == 1 && numbers >= 0 &&
           (uint64_t)numbers <= r->data_size / sizeof(float);
}

static at_err take_vector(reader *r, const json_t *entry, const char *name,
                          at_safetensors_take take, void *self)
{
    size_t count;
    if (!is_vector(r, entry, &count)) return damaged(r, "a saved state is not a vector of floats");
    float *values = malloc(count * sizeof *values + 1);
    if (!values) return at_fail_memory_for(r->fail, "for %s", r->path);
    at_err err = read_bytes(r, entry, name, values, count * sizeof *values);
    if (!err) err = take(self, name, values, count, r->fail);
    free(values);
    return err;
}

at_err at_safetensors_each(const char *path, const char *prefix, at_safetensors_take take,
                           void *self, at_fail *fail)
{
    char        buffer[AT_SAFETENSORS_PATH_SIZE];
    reader      r = {.path = path, .fail = fail};
    const char *name;
    json_t     *entry;
    size_t      length = strlen(prefix);
    at_err      err = open_weights(&r, buffer);
    if (!err) {
        json_object_foreach(r.header, name, entry)
        {
            if (strncmp(name, prefix, length) != 0) continue;
            err = take_vector(&r, entry, name + length, take, self);
            if (err) break;
        }
    }
    close_weights(&r);
    return err;
}

/* Strings longer than any that anytime writes are ignored. */
static void copy_text(char *to, size_t size, const json_t *metadata, const char *key)
{
    char *text = at_text_of_json(json_object_get(metadata, key));
    to[0] = '\0';
    if (text && strlen(text) < size) memcpy(to, text, strlen(text) + 1);
    free(text);
}

at_err at_safetensors_about_read(const char *path, at_safetensors_about *about, at_fail *fail)
{
    char   buffer[AT_SAFETENSORS_PATH_SIZE];
    reader r = {.path = path, .fail = fail};
    at_err err = open_weights(&r, buffer);
    if (!err) {
        const json_t *metadata = json_object_get(r.header, "__metadata__");
        copy_text(about->model, sizeof about->model, metadata, "model");
        copy_text(about->data, sizeof about->data, metadata, "data");
        copy_text(about->prep, sizeof about->prep, metadata, "prep");
    }
    close_weights(&r);
    return err;
}

at_err at_safetensors_text(const char *path, const char *key, char **text, at_fail *fail)
{
    char   buffer[AT_SAFETENSORS_PATH_SIZE];
    reader r = {.path = path, .fail = fail};
    *text = NULL;
    at_err err = open_weights(&r, buffer);
    if (!err) {
        const json_t *metadata = json_object_get(r.header, "__metadata__");
        *text = at_text_of_json(json_object_get(metadata, key));
    }
    close_weights(&r);
    return err;
}
