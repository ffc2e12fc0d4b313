/* Contents of an ONNX file: nodes in a valid order, weights under their own names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "learn/net/net.h"
#include "model_io/onnx.h"
#include "onnx.pb-c.h"

static const at_shape COLOR = {
    .features = 3 * 32 * 32, .classes = 10, .channels = 3, .height = 32, .width = 32};
static const at_shape GRAY = {
    .features = 28 * 28, .classes = 10, .channels = 1, .height = 28, .width = 28};

typedef struct packed {
    at_model         *model;
    float            *plain;
    Onnx__ModelProto *file;
} packed;

static packed pack(const char *name, at_shape shape)
{
    packed         p;
    at_fail        fail = {0};
    unsigned char *bytes;
    size_t         size;
    assert_int_equal(at_model_plan(name, shape, AT_ENGINE_FAST, 8, &p.model, &fail), AT_OK);
    p.plain = calloc(at_model_plain(p.model), sizeof *p.plain);
    assert_non_null(p.plain);
    for (size_t i = 0; i < at_model_plain(p.model); i++) p.plain[i] = (float)i;
    at_task task = {.model = name, .data = "some", .net = p.model, .classes = shape.classes};
    assert_int_equal(at_onnx_pack(&task, p.plain, &bytes, &size, &fail), AT_OK);
    p.file = onnx__model_proto__unpack(NULL, size, bytes);
    assert_non_null(p.file);
    free(bytes);
    return p;
}

static void drop(packed *p)
{
    onnx__model_proto__free_unpacked(p->file, NULL);
    at_model_free(p->model);
    free(p->plain);
}

/* An input shape for a built-in net. */
static at_shape shape_for(const char *name)
{
    at_net_info about;
    at_fail     fail = {0};
    assert_int_equal(at_net_info_find(name, &about, &fail), AT_OK);
    uint32_t classes = about.classes ? about.classes : 10;
    if (about.channels == 0) return GRAY;
    bool flat = about.height <= 1 && about.width <= 1;
    return (at_shape){.features = about.channels * about.height * about.width,
                      .classes = classes,
                      .channels = flat ? 0 : about.channels,
                      .height = flat ? 0 : about.height,
                      .width = flat ? 0 : about.width};
}

static bool is_weight(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(graph->initializer[i]->name, name) == 0) return true;
    return false;
}

/* True for the input and the outputs of the first `before` nodes. */
static bool is_computed(const Onnx__GraphProto *graph, size_t before, const char *name)
{
    if (strcmp(graph->input[0]->name, name) == 0) return true;
    for (size_t i = 0; i < before; i++)
        if (strcmp(graph->node[i]->output[0], name) == 0) return true;
    return false;
}

static void check_order(const Onnx__GraphProto *graph)
{
    for (size_t n = 0; n < graph->n_node; n++) {
        const Onnx__NodeProto *node = graph->node[n];
        assert_int_equal(node->n_output, 1);
        assert_false(is_computed(graph, n, node->output[0]));
        for (size_t i = 0; i < node->n_input; i++) {
            const char *name = node->input[i];
            if (*name && !is_weight(graph, name) && !is_computed(graph, n, name))
                fail_msg("%s reads %s, which is not computed yet", node->name, name);
        }
    }
    assert_true(is_computed(graph, graph->n_node, graph->output[0]->name));
}

static void nodes_of_every_net_are_in_a_valid_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < at_net_builtins_count; i++) {
        const char *name = at_net_builtins[i].name;
        if (strncmp(name, "alexnet", 7) == 0) continue; /* 250 MB that add nothing */
        packed p = pack(name, shape_for(name));
        check_order(p.file->graph);
        drop(&p);
    }
}

static void weights_have_the_names_shapes_and_values_of_the_plain_vector(void **state)
{
    (void)state;
    at_tensor rows[64];
    packed    p = pack("cifar10-cnn", COLOR);
    size_t    count = at_model_tensors(p.model, rows, 64);
    assert_in_range(count, 1, 64);
    assert_int_equal(p.file->graph->n_initializer, count);
    for (size_t i = 0; i < count; i++) {
        const Onnx__TensorProto *found = NULL;
        for (size_t j = 0; j < count; j++)
            if (!strcmp(p.file->graph->initializer[j]->name, rows[i].name))
                found = p.file->graph->initializer[j];
        assert_non_null(found);
        assert_int_equal(found->n_dims, rows[i].dims);
        for (uint32_t d = 0; d < rows[i].dims; d++)
            assert_int_equal(found->dims[d], rows[i].shape[d]);
        assert_memory_equal(found->raw_data.data, p.plain + rows[i].at, found->raw_data.len);
    }
    drop(&p);
}

static size_t count_op(const Onnx__GraphProto *graph, const char *op)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->n_node; i++) count += !strcmp(graph->node[i]->op_type, op);
    return count;
}

static void the_graph_is_that_of_evaluation(void **state)
{
    (void)state;
    packed p = pack("cifar10-cnn", COLOR); /* four convolutions, four dense layers, dropout */
    assert_int_equal(count_op(p.file->graph, "Conv"), 4);
    assert_int_equal(count_op(p.file->graph, "Gemm"), 4);
    assert_int_equal(count_op(p.file->graph, "Relu"), 7);
    assert_int_equal(count_op(p.file->graph, "Dropout"), 0);
    assert_int_equal(count_op(p.file->graph, "Softmax"), 0);
    drop(&p);
}

static void images_are_flattened_for_a_dense_layer(void **state)
{
    (void)state;
    packed p = pack("softmax", GRAY);
    assert_int_equal(p.file->graph->n_node, 2);
    assert_string_equal(p.file->graph->node[0]->op_type, "Flatten");
    drop(&p);
    p = pack("softmax", (at_shape){.features = 5, .classes = 3});
    assert_int_equal(p.file->graph->n_node, 1);
    assert_string_equal(p.file->graph->node[0]->op_type, "Gemm");
    drop(&p);
}

static void the_file_states_its_format_version_and_shapes(void **state)
{
    (void)state;
    packed p = pack("softmax", GRAY);
    assert_int_equal(p.file->n_opset_import, 1);
    assert_int_equal(p.file->opset_import[0]->version, AT_ONNX_OPSET);
    assert_string_equal(p.file->producer_name, "anytime");
    assert_true(p.file->ir_version > 0);
    assert_string_equal(p.file->graph->input[0]->name, "input");
    assert_string_equal(p.file->graph->output[0]->name, "logits");
    const Onnx__TensorShapeProto *shape = p.file->graph->input[0]->type->tensor_type->shape;
    assert_int_equal(shape->n_dim, 4);
    assert_string_equal(shape->dim[0]->dim_param, "batch");
    assert_false(shape->dim[0]->has_dim_value);
    drop(&p);
}

static void a_task_that_is_not_a_net_is_refused(void **state)
{
    (void)state;
    at_fail        fail = {0};
    unsigned char *bytes;
    size_t         size;
    at_task        task = {.model = "sparse-lr", .data = "clicks"};
    assert_int_equal(at_onnx_pack(&task, NULL, &bytes, &size, &fail), AT_ERR_USAGE);
    assert_null(bytes);
    assert_non_null(strstr(fail.text, "cannot write sparse-lr as an ONNX file"));
    assert_non_null(strstr(fail.hint, "safetensors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_every_net_are_in_a_valid_order),
        cmocka_unit_test(weights_have_the_names_shapes_and_values_of_the_plain_vector),
        cmocka_unit_test(the_graph_is_that_of_evaluation),
        cmocka_unit_test(images_are_flattened_for_a_dense_layer),
        cmocka_unit_test(the_file_states_its_format_version_and_shapes),
        cmocka_unit_test(a_task_that_is_not_a_net_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
