/* The built-in nets: sizes, names, input shapes, initial loss. */
#include "fixture.h"
#include "learn/net/net.h"

#include <math.h>

/* Parameters for the published number of classes, batch-norm statistics, and multiply-adds per
 * sample. The parameters of toy-fc, toy-conv, linear1, mnist-cnn, cifar10-cnn, lenet, mnistnet,
 * wrn-28-2, alexnet and alexnet-256 are published; all other numbers are those of the same nets
 * written as PyTorch modules. */
static const struct size {
    const char *name;
    size_t      params, stats;
    double      mults; /* in millions */
} sizes[] = {
    {"toy-fc", 1057010, 0, 1.055},
    {"toy-conv", 57866, 0, 1.366},
    {"linear1", 397510, 0, 0.397},
    {"mnist-cnn", 3274634, 0, 13.884},
    {"cifar10-cnn", 4607178, 3712, 125.933},
    {"cifar10-cnn-gn", 4607178, 0, 125.933},
    {"lenet", 431080, 0, 2.293},
    {"mnistnet", 21840, 0, 0.480},
    {"wrn-28-2", 1595320, 3616, 214.480},
    {"wrn-28-2-gn", 1595320, 0, 214.480},
    {"wrn-28-2-8", 103608, 544, 4.516},
    {"wrn-28-2-16", 415160, 1568, 35.826},
    {"wrn-28-2-64", 6183864, 7712, 1142.876},
    {"resnet18", 11173962, 9600, 555.423},
    {"resnet18-gn", 11173962, 0, 555.423},
    {"resnet18-224", 11181642, 9600, 1813.566},
    {"resnet101", 42512970, 105344, 2509.984},
    {"resnet101-gn", 42512970, 0, 2509.984},
    {"alexnet", 62376968, 0, 1135.256},
    {"alexnet-256", 61100840, 0, 843.476},
};
enum { SIZES = sizeof sizes / sizeof *sizes };

static at_net_info info(const at_net_builtin *net)
{
    at_net_info info;
    at_fail     fail = {0};
    if (at_net_info_parse(net->name, net->text, &info, &fail)) fail_msg("%s", fail.text);
    return info;
}

/* The shape it was published for. */
static at_shape shape_of(const char *name)
{
    for (size_t i = 0; i < at_net_builtins_count; i++) {
        if (strcmp(at_net_builtins[i].name, name) != 0) continue;
        at_net_info a = info(&at_net_builtins[i]);
        bool        line = a.height * a.width == 1;
        return (at_shape){a.channels * a.height * a.width, a.classes, line ? 0 : a.channels,
                          a.height, a.width};
    }
    fail_msg("no net %s", name);
    return (at_shape){0};
}

static at_model *plan(const char *name, at_shape shape)
{
    at_fail   fail = {0};
    at_model *model = NULL;
    if (at_model_plan(name, shape, AT_ENGINE_FAST, 16, &model, &fail)) fail_msg("%s", fail.text);
    return model;
}

static void sizes_match_the_published_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        at_model *model = plan(sizes[i].name, shape_of(sizes[i].name));
        assert_int_equal(at_model_params(model), sizes[i].params);
        assert_int_equal(at_model_plain(model) - at_model_params(model), sizes[i].stats);
        assert_true(fabs((double)at_model_mults(model) / 1e6 - sizes[i].mults) < 0.001);
        assert_int_equal(at_model_has_batch_norm(model), sizes[i].stats > 0);
        at_model_free(model);
    }
}

static void every_net_has_a_summary_and_a_size_here(void **state)
{
    (void)state;
    assert_int_equal(at_net_builtins_count, SIZES);
    for (size_t i = 0; i < at_net_builtins_count; i++) {
        at_net_info a = info(&at_net_builtins[i]);
        assert_true(strlen(a.summary) > 20);
        assert_true(strlen(a.summary) < sizeof a.summary - 1); /* not truncated */
        assert_true(a.channels * a.height * a.width >= 100);
        assert_true(a.classes >= 10);
    }
}

static void the_last_layer_follows_the_classes_of_the_data(void **state)
{
    (void)state;
    at_model *model = plan("mnist-cnn", (at_shape){784, 26, 1, 28, 28});
    assert_int_equal(at_model_params(model), 3274634 + 16 * 1025);
    at_model_free(model);
    model = plan("wrn-28-2", (at_shape){3072, 10, 3, 32, 32});
    assert_int_equal(at_model_params(model), 1595320 - 990 * 129);
    at_model_free(model);
}

static void flat_samples_are_reshaped_to_matching_images(void **state)
{
    (void)state;
    static const at_shape lines[] = {{784, 10, 0, 0, 0}, {784, 10, 1, 1, 784}};
    for (size_t i = 0; i < 2; i++) {
        at_model *model = plan("mnist-cnn", lines[i]);
        assert_int_equal(at_model_params(model), 3274634);
        at_model_free(model);
    }
    at_model *model = plan("toy-conv", (at_shape){100, 10, 1, 1, 100});
    assert_int_equal(at_model_params(model), 57866);
    at_model_free(model);
}

static void images_of_another_size_fit_or_are_refused_with_line_and_shape(void **state)
{
    (void)state;
    at_model *model = plan("resnet18", (at_shape){784, 10, 1, 28, 28});
    at_fail   fail = {0};
    at_model_free(model);
    model = plan("resnet18-224",
                 (at_shape){3 * 40 * 50, 5, 3, 40, 50}); /* color images stay unchanged */
    at_model_free(model);
    assert_int_equal(
        at_model_plan("alexnet", (at_shape){784, 10, 1, 28, 28}, AT_ENGINE_FAST, 4, &model, &fail),
        AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "alexnet line "));
    assert_null(model);
}

static void names_of_tensors_are_the_documented_ones(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t    dims, shape[4];
    } first[] = {{"conv1.weight", 4, {64, 3, 3, 3}},
                 {"bn1.weight", 1, {64}},
                 {"bn1.bias", 1, {64}},
                 {"conv2.weight", 4, {128, 64, 3, 3}}};
    at_tensor tensor[64];
    at_model *model = plan("cifar10-cnn", shape_of("cifar10-cnn"));
    size_t    count = at_model_tensors(model, tensor, 64);
    assert_int_equal(count, 4 + 8 + 7 * 4);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        assert_string_equal(tensor[i].name, first[i].name);
        assert_int_equal(tensor[i].dims, first[i].dims);
        for (uint32_t d = 0; d < first[i].dims; d++)
            assert_int_equal(tensor[i].shape[d], first[i].shape[d]);
    }
    assert_string_equal(tensor[count - 1].name, "bn7.running_var");
    at_model_free(model);
}

static void names_of_tensors_are_unique(void **state)
{
    (void)state;
    enum { TENSORS_MAX = 1024 };
    at_tensor *tensor = calloc(TENSORS_MAX, sizeof *tensor);
    assert_non_null(tensor);
    for (size_t i = 0; i < SIZES; i++) {
        at_model *model = plan(sizes[i].name, shape_of(sizes[i].name));
        size_t    count = at_model_tensors(model, tensor, TENSORS_MAX);
        assert_true(count <= TENSORS_MAX);
        for (size_t a = 0; a < count; a++)
            for (size_t b = 0; b < a; b++) assert_string_not_equal(tensor[a].name, tensor[b].name);
        at_model_free(model);
    }
    free(tensor);
}

static void biases_of_alexnet_256_learn_by_their_own_rate(void **state)
{
    (void)state;
    at_model              *model = plan("alexnet-256", shape_of("alexnet-256"));
    const at_param_groups *groups = at_model_groups(model);
    at_param_range         range[32];
    assert_int_equal(groups->count, 2);
    assert_string_equal(groups->group[1].name, "biases");
    assert_true(groups->group[1].lr == 2);
    assert_true(groups->group[1].decay == 0);
    assert_true(groups->group[1].momentum == 0.9);
    assert_string_equal(groups->group[1].schedule, "stairs:2,10");
    assert_int_equal(at_model_param_ranges(model, range, 32), 16);
    for (size_t i = 0; i < 16; i++) assert_int_equal(range[i].group, i % 2);
    at_model_free(model);
}

/* Small nets only: the others consist of the same layers. */
static void initial_loss_is_that_of_equal_classes(void **state)
{
    (void)state;
    static const char *const names[] = {"toy-fc",   "toy-conv",   "mnist-cnn",   "lenet",
                                        "mnistnet", "wrn-28-2-8", "wrn-28-2-gn", "cifar10-cnn-gn"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        at_shape shape = shape_of(names[i]);
        fixture  f = fixture_new(names[i], shape, AT_ENGINE_FAST, 4);
        at_score score = {0};
        assert_int_equal(at_model_init(f.model, f.w, 1, NULL), AT_OK);
        at_model_install(f.model, f.w);
        double loss = at_model_gradient(f.model, f.g, f.w, f.x, f.labels, 4) / 4;
        assert_true(loss > 0 && loss < 4 * log(shape.classes));
        for (size_t k = 0; k < at_model_trained(f.model); k++) assert_true(isfinite(f.g[k]));
        at_model_score(f.model, &score, f.w, f.x, f.labels, 4);
        assert_true(isfinite(score.loss_sum));
        fixture_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_match_the_published_ones),
        cmocka_unit_test(every_net_has_a_summary_and_a_size_here),
        cmocka_unit_test(the_last_layer_follows_the_classes_of_the_data),
        cmocka_unit_test(flat_samples_are_reshaped_to_matching_images),
        cmocka_unit_test(images_of_another_size_fit_or_are_refused_with_line_and_shape),
        cmocka_unit_test(names_of_tensors_are_the_documented_ones),
        cmocka_unit_test(names_of_tensors_are_unique),
        cmocka_unit_test(biases_of_alexnet_256_learn_by_their_own_rate),
        cmocka_unit_test(initial_loss_is_that_of_equal_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
