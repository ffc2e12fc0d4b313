#include "model_io/safetensors.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { TENSORS_MAX = 4096, HEAD_SIZE = 8, ALIGN = 8 };

static void name_tensor(json_t *header, const at_tensor *tensor)
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
    } rows[] = {{"anytime", ANYTIME_VERSION}, {"model", task->model},
                {"data", task->data},         {"samples", task->sample_form},
                {"prep", task->prep},         {"prep_fitted", task->prep_fitted}};
    json_t *metadata = json_object();
    assert(task->model && task->data);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value) json_object_set_new(metadata, rows[i].key, json_string(rows[i].value));
    return metadata;
}

json_t *at_safetensors_header(const at_task *task)
{
    static at_tensor tensors[TENSORS_MAX];
    json_t          *header = json_object();
    size_t           count = at_safetensors_tensors(task, tensors, TENSORS_MAX);
    assert(count <= TENSORS_MAX);
    json_object_set_new(header, "__metadata__", at_safetensors_metadata(task));
    for (size_t i = 0; i < count; i++) name_tensor(header, &tensors[i]);
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
