#include "model_io/onnx.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "model_io/onnx_graph.h"
#include "model_io/safetensors.h"

enum {
    IR_VERSION = 7, /* version of the file format that introduced this operator set */
    ENTRIES_MAX = 16,
    DIMS_MAX = 4,
};

/* The messages around the graph. */
typedef struct file_parts {
    Onnx__ModelProto                  model;
    Onnx__GraphProto                  graph;
    Onnx__OperatorSetIdProto          opset, *opsets[1];
    Onnx__StringStringEntryProto      entry[ENTRIES_MAX], *entries[ENTRIES_MAX];
    Onnx__ValueInfoProto              value[2], *values[2]; /* input, output */
    Onnx__TypeProto                   type[2];
    Onnx__TypeProto__Tensor           tensor[2];
    Onnx__TensorShapeProto            shape[2];
    Onnx__TensorShapeProto__Dimension dim[2][DIMS_MAX], *dims[2][DIMS_MAX];
} file_parts;

static char INPUT[] = "input", LOGITS[] = "logits", PREDICTION[] = "prediction", BATCH[] = "batch",
            PRODUCER[] = "anytime", VERSION[] = ANYTIME_VERSION, DOMAIN[] = "";

/* ---- graph ----------------------------------------------------------------------------------- */

static char *output_name(const at_onnx_graph *g)
{
    return g->net->shape.classes > 0 ? LOGITS : PREDICTION;
}

/* Renames a value wherever it is used. */
static void rename_value(at_onnx_graph *g, const char *from, char *to)
{
    for (size_t n = 0; n < g->nodes; n++) {
        Onnx__NodeProto *node = g->node[n];
        for (size_t i = 0; i < node->n_input; i++)
            if (strcmp(node->input[i], from) == 0) node->input[i] = to;
        for (size_t i = 0; i < node->n_output; i++)
            if (strcmp(node->output[i], from) == 0) node->output[i] = to;
    }
}

static at_err write_layers(at_onnx_graph *g, at_fail *fail)
{
    const at_net *net = g->net;
    g->input = (at_onnx_value){INPUT, net->shape.channels == 0};
    for (size_t i = 0; i < net->count; i++) AT_TRY(at_onnx_layer(g, i, fail));
    const at_layer *last = &net->layer[net->count - 1];
    at_onnx_value   logits = at_onnx_flatten(g, last, g->value[net->count - 1]);
    assert(g->nodes > 0);
    rename_value(g, logits.name, output_name(g));
    return AT_OK;
}

/* ---- model ----------------------------------------------------------------------------------- */

/* Declares an input or output of shape (batch, extents); the batch size is left open. */
static void set_value(file_parts *f, int i, char *name, const int64_t *extents, size_t count)
{
    onnx__value_info_proto__init(&f->value[i]);
    onnx__type_proto__init(&f->type[i]);
    onnx__type_proto__tensor__init(&f->tensor[i]);
    onnx__tensor_shape_proto__init(&f->shape[i]);
    assert(count + 1 <= DIMS_MAX);
    for (size_t d = 0; d <= count; d++) {
        onnx__tensor_shape_proto__dimension__init(&f->dim[i][d]);
        f->dims[i][d] = &f->dim[i][d];
        if (d == 0) f->dim[i][d].dim_param = BATCH;
        f->dim[i][d].has_dim_value = d > 0;
        if (d > 0) f->dim[i][d].dim_value = extents[d - 1];
    }
    f->shape[i].dim = f->dims[i];
    f->shape[i].n_dim = count + 1;
    f->tensor[i].has_elem_type = true;
    f->tensor[i].elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    f->tensor[i].shape = &f->shape[i];
    f->type[i].tensor_type = &f->tensor[i];
    f->value[i].name = name;
    f->value[i].type = &f->type[i];
    f->values[i] = &f->value[i];
}

static void set_graph(file_parts *f, const at_onnx_graph *g)
{
    const at_shape *s = &g->net->shape;
    at_activation   out = at_net_output(g->net);
    int64_t         numbers = s->features, image[] = {s->channels, s->height, s->width};
    int64_t         logits = (int64_t)at_activation_numbers(&out);
    onnx__graph_proto__init(&f->graph);
    set_value(f, 0, INPUT, s->channels ? image : &numbers, s->channels ? 3 : 1);
    set_value(f, 1, output_name(g), &logits, 1);
    f->graph.name = PRODUCER;
    f->graph.n_node = g->nodes;
    f->graph.node = g->node;
    f->graph.n_initializer = g->initializers;
    f->graph.initializer = g->initializer;
    f->graph.n_input = f->graph.n_output = 1;
    f->graph.input = &f->values[0];
    f->graph.output = &f->values[1];
}

/* Borrows the strings of `metadata`. */
static void set_metadata(file_parts *f, json_t *metadata)
{
    const char *key;
    json_t     *value;
    size_t      count = 0;
    json_object_foreach(metadata, key, value)
    {
        Onnx__StringStringEntryProto *entry = &f->entry[count];
        assert(count < ENTRIES_MAX);
        onnx__string_string_entry_proto__init(entry);
        entry->key = (char *)(uintptr_t)key; /* packing only reads it */
        entry->value = (char *)(uintptr_t)json_string_value(value);
        f->entries[count++] = entry;
    }
    f->model.n_metadata_props = count;
    f->model.metadata_props = f->entries;
}

static void set_model(file_parts *f, json_t *metadata, char *about)
{
    onnx__model_proto__init(&f->model);
    onnx__operator_set_id_proto__init(&f->opset);
    f->opset.domain = DOMAIN;
    f->opset.has_version = true;
    f->opset.version = AT_ONNX_OPSET;
    f->opsets[0] = &f->opset;
    f->model.n_opset_import = 1;
    f->model.opset_import = f->opsets;
    f->model.has_ir_version = true;
    f->model.ir_version = IR_VERSION;
    f->model.producer_name = PRODUCER;
    f->model.producer_version = VERSION;
    f->model.doc_string = about;
    f->model.graph = &f->graph;
    set_metadata(f, metadata);
}

/* What a user of the file must know: preprocessing and output. In new memory. */
static char *describe(const at_task *task)
{
    char       *text = NULL;
    size_t      size;
    FILE       *to = open_memstream(&text, &size);
    const char *form = task->sample_form ? task->sample_form : "floats";
    bool        bytes = strstr(form, "bytes") != NULL;
    if (!to) return NULL;
    fprintf(to, "%s, trained by anytime %s on %s.\n", task->model, ANYTIME_VERSION, task->data);
    fprintf(to, "Input: float32, channels first. Samples of the data set are %s.", form);
    bool raw = task->prep_fitted && strncmp(task->prep_fitted, "raw", 3) == 0;
    if (bytes) fputs(raw ? " Bytes stay 0 to 255." : " Divide bytes by 255.", to);
    if (task->prep_fitted)
        fprintf(to,
                " Then apply these steps in this order: %s. Crop from the center and do not flip; "
                "normalise is (x - mean) / standard deviation.",
                task->prep_fitted);
    if (task->regression)
        fputs("\nOutput: prediction, the predicted label.\n", to);
    else
        fprintf(to,
                "\nOutput: logits; their softmax gives the probabilities of the %" PRIu32
                " classes.\n",
                task->classes);
    if (fclose(to) == 0) return text;
    free(text);
    return NULL;
}

/* ---- packing --------------------------------------------------------------------------------- */

static at_err no_memory(at_fail *fail)
{
    return at_fail_memory_for(fail, "for the ONNX file");
}

static at_err pack_model(const file_parts *f, unsigned char **bytes, size_t *size, at_fail *fail)
{
    *size = onnx__model_proto__get_packed_size(&f->model);
    if (*size > INT_MAX) /* LIMIT: of protobuf messages */
        return at_fail_set(fail, AT_ERR_USAGE, "export it as safetensors",
                           "the model takes %.1f GB, too large for an ONNX file (at most 2 GB)",
                           (double)*size / 1e9);
    *bytes = malloc(*size);
    if (!*bytes) return no_memory(fail);
    size_t packed = onnx__model_proto__pack(&f->model, *bytes);
    assert(packed == *size);
    return AT_OK;
}

static at_err pack_graph(const at_onnx_graph *g, const at_task *task, unsigned char **bytes,
                         size_t *size, at_fail *fail)
{
    file_parts f;
    char      *text = describe(task);
    json_t    *metadata = at_safetensors_metadata(task);
    at_err     err = text && metadata ? AT_OK : no_memory(fail);
    if (!err) {
        set_graph(&f, g);
        set_model(&f, metadata, text);
        err = pack_model(&f, bytes, size, fail);
    }
    json_decref(metadata);
    free(text);
    return err;
}

static at_err list_tensors(const at_model *model, at_tensor **rows, size_t *count, at_fail *fail)
{
    *count = at_model_tensors(model, NULL, 0);
    *rows = calloc(*count, sizeof **rows);
    if (!*rows) return no_memory(fail);
    at_model_tensors(model, *rows, *count);
    return AT_OK;
}

at_err at_onnx_pack(const at_task *task, const float *plain, unsigned char **bytes, size_t *size,
                    at_fail *fail)
{
    *bytes = NULL;
    if (!task->net)
        return at_fail_set(fail, AT_ERR_USAGE, "export it as safetensors",
                           "cannot write %s as an ONNX file, which is for nets only", task->model);
    at_onnx_graph *g = calloc(1, sizeof *g);
    at_tensor     *tensors = NULL;
    at_err         err = g ? at_onnx_graph_init(g, at_model_net(task->net), fail) : no_memory(fail);
    if (!err) err = list_tensors(task->net, &tensors, &g->tensors_count, fail);
    if (!err) {
        g->tensors = tensors;
        g->plain = plain;
        err = write_layers(g, fail);
    }
    if (!err) err = pack_graph(g, task, bytes, size, fail);
    free(tensors);
    if (g) at_onnx_graph_deinit(g);
    free(g);
    return err;
}

at_err at_onnx_write(const char *path, const at_task *task, const float *plain, at_fail *fail)
{
    unsigned char *bytes;
    size_t         size;
    AT_TRY(at_onnx_pack(task, plain, &bytes, &size, fail));
    at_err err = at_file_write(path, bytes, size, fail);
    free(bytes);
    return err;
}
