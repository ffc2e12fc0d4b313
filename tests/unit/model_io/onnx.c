/* What is in an ONNX file: nodes that read only what is there, weights under their own names. */
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

static const at_shape PICTURE = {
    .features = 3 * 32 * 32, .classes = 10, .channels = 3, .height = 32, .width = 32};
static const at_shape GREY = {
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

/* Every net that is part of the program, with a shape it takes. */
static at_shape shape_for(const char *name)
{
    at_net_info about;
    at_fail     fail = {0};
    assert_int_equal(at_net_info_find(name, &about, &fail), AT_OK);
    uint32_t classes = about.classes ? about.classes : 10;
    if (about.channels == 0) return GREY;
    bool line = about.height <= 1 && about.width <= 1;
    return (at_shape){.features = about.channels * about.height * about.width,
                      .classes = classes,
                      .channels = line ? 0 : about.channels,
                      .height = line ? 0 : about.height,
                      .width = line ? 0 : about.width};
}

static bool is_weight(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(graph->initializer[i]->name, name) == 0) return true;
    return false;
}

/* By the input, or by one of the first `before` nodes. */
static bool is_made(const Onnx__GraphProto *graph, size_t before, const char *name)
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
        assert_false(is_made(graph, n, node->output[0]));
        for (size_t i = 0; i < node->n_input; i++) {
            const char *name = node->input[i];
            if (*name && !is_weight(graph, name) && !is_made(graph, n, name))
                fail_msg("%s reads %s, which is not there yet", node->name, name);
        }
    }
    assert_true(is_made(graph, graph->n_node, graph->output[0]->name));
}

static void every_net_is_written_in_an_order_in_which_it_can_be_computed(void **state)
{
    (void)state;
    for (size_t i = 0; i < at_net_builtins_count; i++) {
        const char *name = at_net_builtins[i].name;
        if (strncmp(name, "alexnet", 7) == 0) continue; /* 250 MB for nothing new */
        packed p = pack(name, shape_for(name));
        check_order(p.file->graph);
        drop(&p);
    }
}

static void weights_have_the_names_shapes_and_numbers_of_the_plain_vector(void **state)
{
    (void)state;
    at_tensor rows[64];
    packed    p = pack("cifar10-cnn", PICTURE);
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

static void only_what_a_scored_model_computes_is_in_it(void **state)
{
    (void)state;
    packed p = pack("cifar10-cnn", PICTURE); /* four convolutions, four dense layers, dropout */
    assert_int_equal(count_op(p.file->graph, "Conv"), 4);
    assert_int_equal(count_op(p.file->graph, "Gemm"), 4);
    assert_int_equal(count_op(p.file->graph, "Relu"), 7);
    assert_int_equal(count_op(p.file->graph, "Dropout"), 0);
    assert_int_equal(count_op(p.file->graph, "Softmax"), 0);
    drop(&p);
}

static void pictures_become_lines_where_a_dense_layer_reads_them(void **state)
{
    (void)state;
    packed p = pack("softmax", GREY);
    assert_int_equal(p.file->graph->n_node, 2);
    assert_string_equal(p.file->graph->node[0]->op_type, "Flatten");
    drop(&p);
    p = pack("softmax", (at_shape){.features = 5, .classes = 3});
    assert_int_equal(p.file->graph->n_node, 1);
    assert_string_equal(p.file->graph->node[0]->op_type, "Gemm");
    drop(&p);
}

static void the_file_says_which_version_of_the_format_it_has(void **state)
{
    (void)state;
    packed p = pack("softmax", GREY);
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

static void what_is_no_net_is_refused_in_a_sentence(void **state)
{
    (void)state;
    at_fail        fail = {0};
    unsigned char *bytes;
    size_t         size;
    at_task        task = {.model = "sparse-lr", .data = "clicks"};
    assert_int_equal(at_onnx_pack(&task, NULL, &bytes, &size, &fail), AT_ERR_USAGE);
    assert_null(bytes);
    assert_non_null(strstr(fail.text, "sparse-lr is not a net"));
    assert_non_null(strstr(fail.hint, "safetensors"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_net_is_written_in_an_order_in_which_it_can_be_computed),
        cmocka_unit_test(weights_have_the_names_shapes_and_numbers_of_the_plain_vector),
        cmocka_unit_test(only_what_a_scored_model_computes_is_in_it),
        cmocka_unit_test(pictures_become_lines_where_a_dense_layer_reads_them),
        cmocka_unit_test(the_file_says_which_version_of_the_format_it_has),
        cmocka_unit_test(what_is_no_net_is_refused_in_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
