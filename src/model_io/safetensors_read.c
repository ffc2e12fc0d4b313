/* Reading safetensors. The file is taken for hostile: its header is bounded before it is read, and
 * every place it names is checked against the size of the file. */
#include "model_io/safetensors.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD_SIZE = 8 };
static const uint64_t HEADER_MAX = 100u << 20; /* the format's own limit */

typedef struct reader {
    const char *path;
    FILE       *file;
    uint64_t    data_at, data_size; /* where tensors lie, in bytes */
    json_t     *header;
    at_fail    *fail;
} reader;

static at_err damaged(const reader *r, const char *what)
{
    return at_fail_set(r->fail, AT_ERR_FORMAT, "get the file again",
                       "%s: this is not a sound safetensors file: %s", r->path, what);
}

static at_err open_file(reader *r, char path[AT_SAFETENSORS_PATH_SIZE])
{
    struct stat status;
    AT_TRY(at_safetensors_newest(r->path, path, NULL, r->fail));
    r->path = path;
    r->file = fopen(r->path, "rb");
    if (!r->file && errno == ENOENT)
        return at_fail_set(r->fail, AT_ERR_MISSING, "give a .safetensors file or a run's folder",
                           "%s: there is no such file", r->path);
    if (!r->file || fstat(fileno(r->file), &status) || !S_ISREG(status.st_mode))
        return at_fail_set(r->fail, AT_ERR_IO, NULL, "%s: cannot be read", r->path);
    r->data_size = (uint64_t)status.st_size;
    return AT_OK;
}

static at_err read_header(reader *r)
{
    unsigned char head[HEAD_SIZE];
    uint64_t      length = 0;
    if (fread(head, 1, HEAD_SIZE, r->file) != HEAD_SIZE)
        return damaged(r, "it is shorter than 8 bytes");
    for (int i = HEAD_SIZE; i-- > 0;) length = length << 8 | head[i];
    if (length > HEADER_MAX || length > r->data_size - HEAD_SIZE)
        return damaged(r, "byte 0: its header would be longer than the file");
    char *text = malloc(length + 1);
    if (!text) return at_fail_memory_for(r->fail, "for %s", r->path);
    bool         whole = fread(text, 1, length, r->file) == length;
    json_error_t error;
    r->header = whole ? json_loadb(text, length, JSON_REJECT_DUPLICATES, &error) : NULL;
    free(text);
    if (!json_is_object(r->header)) return damaged(r, "byte 8: its header is not a JSON object");
    r->data_at = HEAD_SIZE + length;
    r->data_size -= r->data_at;
    return AT_OK;
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
    char  wanted[64] = "";
    char *found = shape ? json_dumps(shape, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    for (uint32_t i = 0, used = 0; i < tensor->dims; i++)
        used += (uint32_t)snprintf(wanted + used, sizeof wanted - used, i ? ",%u" : "%u",
                                   tensor->shape[i]);
    at_fail_set(r->fail, AT_ERR_FORMAT, "use the weights of the same model and number of classes",
                "%s: tensor %s should be [%s], but is %.60s", r->path, tensor->name, wanted,
                found ? found : "without a shape");
    free(found);
    return AT_ERR_FORMAT;
}

static size_t numbers(const at_tensor *tensor)
{
    size_t n = 1;
    for (uint32_t i = 0; i < tensor->dims; i++) n *= tensor->shape[i];
    return n;
}

static at_err read_tensor(reader *r, const at_tensor *tensor, float *plain)
{
    const json_t *entry = json_object_get(r->header, tensor->name);
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *places = json_object_get(entry, "data_offsets");
    const char   *type = json_string_value(json_object_get(entry, "dtype"));
    if (!entry)
        return at_fail_set(r->fail, AT_ERR_FORMAT, "see docs/reference/models.md for tensor names",
                           "%s: there is no tensor %s in it", r->path, tensor->name);
    if (!type || strcmp(type, "F32") != 0)
        return at_fail_set(r->fail, AT_ERR_FORMAT, "convert it to 32-bit floats",
                           "%s: tensor %s is of type %.20s, not F32", r->path, tensor->name,
                           type ? type : "?");
    if (!same_shape(shape, tensor)) return wrong_shape(r, shape, tensor);
    json_int_t first = json_integer_value(json_array_get(places, 0));
    json_int_t end = json_integer_value(json_array_get(places, 1));
    size_t     size = numbers(tensor) * sizeof(float);
    if (json_array_size(places) != 2 || first < 0 || end < first || (uint64_t)end > r->data_size ||
        (uint64_t)(end - first) != size)
        return damaged(r, "the places in its header do not fit its tensors or its size");
    if (fseeko(r->file, (off_t)(r->data_at + (uint64_t)first), SEEK_SET) ||
        fread(plain + tensor->at, 1, size, r->file) != size)
        return at_fail_set(r->fail, AT_ERR_IO, NULL, "%s: cannot be read", r->path);
    return AT_OK;
}

static at_err open_weights(reader *r, char path[AT_SAFETENSORS_PATH_SIZE])
{
    assert(r->path && !r->file);
    AT_TRY(open_file(r, path));
    return read_header(r);
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

/* A text that is too long is none of ours. */
static void copy_text(char *to, size_t size, const json_t *metadata, const char *key)
{
    const char *text = json_string_value(json_object_get(metadata, key));
    to[0] = '\0';
    if (text && strlen(text) < size) memcpy(to, text, strlen(text) + 1);
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
        const char   *found = json_string_value(json_object_get(metadata, key));
        *text = found ? strdup(found) : NULL;
    }
    close_weights(&r);
    return err;
}
