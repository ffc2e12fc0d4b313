#include "world/weights.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"

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

/* A task that does not name its tensors has one. */
static size_t tensors_of(const at_task *task, at_tensor *tensors)
{
    if (task->tensors) return task->tensors(task->self, tensors, TENSORS_MAX);
    assert(task->plain <= UINT32_MAX);
    tensors[0] = (at_tensor){.name = "params", .dims = 1, .shape = {(uint32_t)task->plain}};
    return 1;
}

static char *header_text(const at_task *task)
{
    static at_tensor tensors[TENSORS_MAX];
    json_t          *header = json_object();
    size_t           count = tensors_of(task, tensors);
    assert(count <= TENSORS_MAX);
    json_object_set_new(header, "__metadata__",
                        json_pack("{s:s, s:s, s:s}", "anytime", ANYTIME_VERSION, "model",
                                  task->model, "data", task->data));
    for (size_t i = 0; i < count; i++) name_tensor(header, &tensors[i]);
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

at_err at_weights_write(const char *path, const at_task *task, const float *plain, at_fail *fail)
{
    char  *text = header_text(task);
    size_t length = text ? strlen(text) : 0, padded = (length + ALIGN - 1) / ALIGN * ALIGN, floats;
    bool   fits = at_size_product(task->plain, sizeof(float), &floats);
    unsigned char *bytes = text && fits ? malloc(HEAD_SIZE + padded + floats) : NULL;
    at_err         err = AT_ERR_FAILED;
    if (bytes) {
        for (int i = 0; i < HEAD_SIZE; i++) bytes[i] = (unsigned char)((uint64_t)padded >> (8 * i));
        memcpy(bytes + HEAD_SIZE, text, length);
        memset(bytes + HEAD_SIZE + length, ' ', padded - length);
        memcpy(bytes + HEAD_SIZE + padded, plain, floats);
        err = at_file_write(path, bytes, HEAD_SIZE + padded + floats, fail);
    } else {
        at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory to write %s", path);
    }
    free(bytes);
    free(text);
    return err;
}
