/* Every built-in model in both engines. The reference needs seconds for the large ones. */
#include "engines.h"

#include "learn/net/net.h"

/* Multiply-adds that the reference engine does in some seconds, here and under a sanitizer. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const uint64_t MULTS_MAX = 30 * 1000 * 1000ull;
#else
static const uint64_t MULTS_MAX = 4000 * 1000 * 1000ull;
#endif
static const uint64_t MULTS_LARGE = 300 * 1000 * 1000ull; /* one sample is enough */

static at_shape shape_of(const at_net_builtin *model)
{
    at_net_info info;
    assert_int_equal(at_net_info_parse(model->name, model->text, &info, NULL), AT_OK);
    return (at_shape){.features = info.channels * info.height * info.width,
                      .classes = info.classes,
                      .channels = info.channels,
                      .height = info.height,
                      .width = info.width};
}

static void start_as_published(fixture *f)
{
    at_fail fail;
    assert_int_equal(at_model_init(f->model, f->w, 5, &fail), AT_OK);
    at_model_noise(f->model, 3);
    for (size_t i = 0; i < (size_t)f->rows * f->shape.features; i++)
        f->x[i] = (float)(i * 2654435761u % 256) / 255; /* in the range of images */
}

static void check_model(const at_net_builtin *model)
{
    at_model *plan;
    at_shape  shape = shape_of(model);
    assert_int_equal(at_model_plan(model->name, shape, AT_ENGINE_FAST, 1, &plan, NULL), AT_OK);
    uint64_t mults = at_model_mults(plan);
    at_model_free(plan);
    if (mults > MULTS_MAX) return;
    uint32_t rows = mults > MULTS_LARGE ? 1 : 2;
    fixture  fast = fixture_new(model->name, shape, AT_ENGINE_FAST, rows);
    fixture  ref = fixture_new(model->name, shape, AT_ENGINE_REF, rows);
    start_as_published(&fast);
    start_as_published(&ref);
    /* With one sample deep batch norms have only sixteen values, which amplifies rounding. */
    check_engines(model->name, &fast, &ref, rows == 1 ? 0.2 : 0.05);
    fixture_free(&ref);
    fixture_free(&fast);
}

static void every_model_agrees_in_both_engines(void **state)
{
    (void)state;
    assert_true(at_net_builtins_count >= 19);
    for (size_t i = 0; i < at_net_builtins_count; i++) check_model(&at_net_builtins[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_agrees_in_both_engines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
