/* Names, sizes, initial values and scores of models. */
#include "fixture.h"

#include <math.h>
#include <stdio.h>

static const at_shape mnist = {.features = 784, .classes = 10};

static at_err try_name(const char *name, at_fail *fail)
{
    at_model *model = NULL;
    at_err    err = at_model_new(name, mnist, AT_ENGINE_FAST, 4, &model, fail);
    assert_true((err == AT_OK) == (model != NULL));
    at_model_free(model);
    return err;
}

static void parameters_and_multiply_adds_are_those_of_the_papers(void **state)
{
    (void)state;
    fixture softmax = fixture_new("softmax", mnist, AT_ENGINE_FAST, 1);
    assert_int_equal(at_model_params(softmax.model), 7850);
    assert_int_equal(at_model_mults(softmax.model), 7840);
    fixture_free(&softmax);
    fixture mlp = fixture_new("mlp:300,100", mnist, AT_ENGINE_FAST, 1);
    assert_int_equal(at_model_params(mlp.model), 266610);
    assert_int_equal(at_model_mults(mlp.model), 266200);
    fixture_free(&mlp);
}

static void layers_are_chained_and_a_relu_is_fused_into_the_one_before(void **state)
{
    (void)state;
    at_layer_info rows[8];
    fixture       f = fixture_new("mlp:300,100", mnist, AT_ENGINE_FAST, 1);
    assert_int_equal(at_model_layers(f.model, NULL, 0), 3);
    assert_int_equal(at_model_layers(f.model, rows, 8), 3);
    size_t sum = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(rows[i].kind, "dense");
        assert_int_equal(strstr(rows[i].detail, "relu") != NULL, i < 2);
        if (i) assert_int_equal(rows[i].in[0], rows[i - 1].out[0]);
        sum += rows[i].params;
    }
    assert_int_equal(sum, at_model_params(f.model));
    fixture_free(&f);
}

static void the_plain_vector_has_no_padding_and_converts_both_ways(void **state)
{
    (void)state;
    at_tensor tensors[8];
    fixture   f =
        fixture_new("mlp:30,20", (at_shape){.features = 50, .classes = 3}, AT_ENGINE_FAST, 1);
    size_t n = at_model_plain(f.model), end = 0;
    float *plain = floats(n), *again = floats(f.params);
    assert_int_equal(at_model_tensors(f.model, tensors, 8), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(tensors[i].at, end);
        end += (size_t)tensors[i].shape[0] * (tensors[i].dims == 2 ? tensors[i].shape[1] : 1);
    }
    assert_int_equal(end, n);
    assert_string_equal(tensors[3].name, "dense2.bias");
    at_model_to_plain(f.model, plain, f.w);
    at_model_from_plain(f.model, again, plain);
    assert_memory_equal(again, f.w, f.params * sizeof *again);
    free(plain);
    free(again);
    fixture_free(&f);
}

static void unknown_names_are_refused_with_the_nearest_one(void **state)
{
    (void)state;
    at_fail fail = {0};
    assert_int_equal(try_name("softmx", &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "did you mean softmax"));
    assert_int_equal(try_name("mpl:300", &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "did you mean mlp"));
    assert_int_equal(try_name("", &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.hint, "models list"));
}

static void malformed_widths_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "softmax:3",  "softmax:",       "mlp",          "mlp:",
        "mlp:0",      "mlp:-3",         "mlp:a",        "mlp:300,",
        "mlp:,300",   "mlp:300,,100",   "mlp:1.5",      "mlp:99999999999999999999",
        "mlp:300:10", "mlp:1000000000", "mlp:16000000", "mlp:300 100",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        at_fail fail = {0};
        assert_int_equal(try_name(wrong[i], &fail), AT_ERR_USAGE);
        assert_true(fail.text[0] != '\0');
    }
}

static void too_many_layers_are_refused(void **state)
{
    (void)state;
    char text[4096] = "mlp:1";
    for (int i = 0; i < 1100; i++) snprintf(text + strlen(text), 3, ",1");
    assert_int_equal(try_name(text, NULL), AT_ERR_USAGE);
}

static void initial_values_depend_only_on_the_seed(void **state)
{
    (void)state;
    fixture a =
        fixture_new("mlp:30,20", (at_shape){.features = 17, .classes = 5}, AT_ENGINE_FAST, 8);
    fixture b =
        fixture_new("mlp:30,20", (at_shape){.features = 17, .classes = 5}, AT_ENGINE_REF, 3);
    assert_int_equal(at_model_init(a.model, a.w, 42, NULL), AT_OK);
    assert_int_equal(at_model_init(b.model, b.w, 42, NULL), AT_OK);
    assert_memory_equal(a.w, b.w, a.params * sizeof(float));
    assert_int_equal(at_model_init(b.model, b.w, 43, NULL), AT_OK);
    assert_memory_not_equal(a.w, b.w, a.params * sizeof(float));
    fixture_free(&a);
    fixture_free(&b);
}

static void softmax_starts_at_zero_and_mlp_within_glorot_limits(void **state)
{
    (void)state;
    fixture softmax = fixture_new("softmax", mnist, AT_ENGINE_FAST, 1);
    assert_int_equal(at_model_init(softmax.model, softmax.w, 1, NULL), AT_OK);
    for (size_t i = 0; i < softmax.params; i++) assert_true(softmax.w[i] == 0.0f);
    fixture_free(&softmax);

    fixture mlp = fixture_new("mlp:300", mnist, AT_ENGINE_FAST, 1);
    double  limit = sqrt(6.0 / 1084), square = 0;
    assert_int_equal(at_model_init(mlp.model, mlp.w, 1, NULL), AT_OK);
    for (size_t i = 0; i < 784 * 300; i++) {
        assert_true(fabs(mlp.w[i]) <= limit);
        square += (double)mlp.w[i] * mlp.w[i];
    }
    assert_true(fabs(square / (784 * 300) * 3 / (limit * limit) - 1) < 0.01);
    for (size_t i = 784 * 300; i < 784 * 300 + 300; i++) assert_true(mlp.w[i] == 0.0f);
    fixture_free(&mlp);
}

/* A softmax model of one feature and six classes whose logits are the weights times x. */
static void score_counts_top_1_and_top_5(void **state)
{
    (void)state;
    fixture f = fixture_new("softmax", (at_shape){.features = 1, .classes = 6}, AT_ENGINE_FAST, 6);
    const float    w[12] = {3, 5, 1, 4, 2, 0};
    const uint32_t labels[6] = {0, 1, 2, 3, 4, 5};
    at_score       score = {0};
    for (size_t n = 0; n < 6; n++) f.x[n] = 1;
    at_model_score(f.model, &score, w, f.x, labels, 6);
    assert_int_equal(score.count, 6);
    assert_int_equal(score.correct, 1);      /* class 1 is on top */
    assert_int_equal(score.correct_top5, 5); /* class 5 is last of six */
    at_model_score(f.model, &score, w, f.x, labels, 2);
    assert_int_equal(score.count, 8);
    assert_int_equal(score.correct, 2);
    fixture_free(&f);
}

static void of_equal_logits_the_first_class_wins(void **state)
{
    (void)state;
    fixture f =
        fixture_new("softmax", (at_shape){.features = 3, .classes = 10}, AT_ENGINE_FAST, 10);
    const uint32_t labels[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    at_score       score = {0};
    memset(f.w, 0, f.params * sizeof(float));
    at_model_score(f.model, &score, f.w, f.x, labels, 10);
    assert_int_equal(score.correct, 1);
    assert_int_equal(score.correct_top5, 5);
    assert_true(fabs(score.loss_sum - 10 * log(10)) < 1e-6);
    fixture_free(&f);
}

static void with_few_classes_top_5_is_everything(void **state)
{
    (void)state;
    fixture f = fixture_new("softmax", (at_shape){.features = 7, .classes = 5}, AT_ENGINE_FAST, 20);
    at_score score = {0};
    at_model_score(f.model, &score, f.w, f.x, f.labels, 20);
    assert_int_equal(score.correct_top5, 20);
    fixture_free(&f);
}

static void a_diverged_model_is_never_right_and_its_loss_is_nan(void **state)
{
    (void)state;
    static const char *const names[] = {"softmax", "mlp:40,9"};
    for (int engine = AT_ENGINE_FAST; engine <= AT_ENGINE_REF; engine++)
        for (size_t k = 0; k < 2; k++) {
            fixture  f = fixture_new(names[k], (at_shape){.features = 12, .classes = 10},
                                     (at_engine)engine, 8);
            at_score score = {0};
            for (size_t i = 0; i < f.params; i++) f.w[i] = NAN;
            at_model_score(f.model, &score, f.w, f.x, f.labels, 8);
            assert_int_equal(score.correct, 0);
            assert_int_equal(score.correct_top5, 0);
            assert_true(isnan(score.loss_sum));
            assert_true(isnan(at_model_gradient(f.model, f.g, f.w, f.x, f.labels, 8)));
            fixture_free(&f);
        }
}

static void score_and_gradient_have_the_same_loss(void **state)
{
    (void)state;
    for (int engine = AT_ENGINE_FAST; engine <= AT_ENGINE_REF; engine++) {
        fixture f =
            fixture_new("mlp:33", (at_shape){.features = 20, .classes = 12}, (at_engine)engine, 9);
        at_score score = {0};
        at_model_score(f.model, &score, f.w, f.x, f.labels, 9);
        double loss = at_model_gradient(f.model, f.g, f.w, f.x, f.labels, 9);
        assert_true(loss == score.loss_sum);
        fixture_free(&f);
    }
}

static void engines_have_names(void **state)
{
    (void)state;
    fixture ref = fixture_new("softmax", mnist, AT_ENGINE_REF, 1);
    fixture fast = fixture_new("mlp:300,100", mnist, AT_ENGINE_FAST, 1);
    assert_string_equal(at_model_engine(ref.model), "ref");
    assert_non_null(strstr(at_model_engine(fast.model), "openblas"));
    fixture_free(&ref);
    fixture_free(&fast);
}

static void families_can_be_listed(void **state)
{
    (void)state;
    assert_true(at_model_families_count >= 2);
    for (size_t i = 0; i < at_model_families_count; i++) {
        assert_true(strlen(at_model_families[i].name) > 0);
        assert_true(strlen(at_model_families[i].summary) > 0);
        assert_ptr_equal(strstr(at_model_families[i].usage, at_model_families[i].name),
                         at_model_families[i].usage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_and_multiply_adds_are_those_of_the_papers),
        cmocka_unit_test(layers_are_chained_and_a_relu_is_fused_into_the_one_before),
        cmocka_unit_test(the_plain_vector_has_no_padding_and_converts_both_ways),
        cmocka_unit_test(unknown_names_are_refused_with_the_nearest_one),
        cmocka_unit_test(malformed_widths_are_refused),
        cmocka_unit_test(too_many_layers_are_refused),
        cmocka_unit_test(initial_values_depend_only_on_the_seed),
        cmocka_unit_test(softmax_starts_at_zero_and_mlp_within_glorot_limits),
        cmocka_unit_test(score_counts_top_1_and_top_5),
        cmocka_unit_test(of_equal_logits_the_first_class_wins),
        cmocka_unit_test(with_few_classes_top_5_is_everything),
        cmocka_unit_test(a_diverged_model_is_never_right_and_its_loss_is_nan),
        cmocka_unit_test(score_and_gradient_have_the_same_loss),
        cmocka_unit_test(engines_have_names),
        cmocka_unit_test(families_can_be_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
