/* Dropout: the fraction kept, its scale, and which calls draw the same mask. */
#include "rig.h"

#include <math.h>

static rig dropout_rig(double keep, uint32_t width, size_t count)
{
    at_layer_spec spec = {.kind = &at_layer_dropout, .keep = keep};
    at_activation shape = {width, 1, 1, 1};
    return rig_new(&spec, shape, count, 5);
}

static void dropout_keeps_the_requested_fraction_and_scales_it(void **state)
{
    (void)state;
    static const double shares[] = {0.05, 0.5, 0.7, 0.75, 1};
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        rig            r = dropout_rig(shares[s], 64, 4000);
        at_layer_pass *pass = rig_pass(&r);
        size_t         stayed = 0, pairs = 0, both = 0;
        r.layer.kind->forward(&r.layer, pass);
        r.layer.kind->backward(&r.layer, pass);
        for (size_t i = 0; i < r.floats; i++) {
            bool kept = r.fy[i] != 0;
            assert_true(!kept || r.fy[i] == r.fx[i] * (float)(1 / shares[s]));
            assert_true(r.fdx[i] == (kept ? r.fdy[i] * (float)(1 / shares[s]) : 0));
            stayed += kept;
            if (i >= 64) pairs++, both += kept && r.fy[i - 64] != 0; /* the sample before */
        }
        double deviation = sqrt(shares[s] * (1 - shares[s]) * (double)r.floats);
        assert_true(fabs((double)stayed - shares[s] * (double)r.floats) <= 4 * deviation);
        double of_both = shares[s] * shares[s];
        assert_true(fabs((double)both - of_both * (double)pairs) <=
                    6 * sqrt(of_both * (1 - of_both) * (double)pairs));
        rig_free(&r);
    }
}

/* The fraction in which two masks agree. */
static size_t agreeing(uint64_t noise_a, uint32_t number_a, uint64_t noise_b, uint32_t number_b)
{
    rig    a = dropout_rig(0.5, 50, 400), b = dropout_rig(0.5, 50, 400);
    size_t same = 0;
    rig_pass(&a)->noise = noise_a;
    rig_pass(&b)->noise = noise_b;
    a.layer.number = number_a;
    b.layer.number = number_b;
    a.layer.kind->forward(&a.layer, &a.pass);
    b.pass.y = b.fx; /* in place */
    b.layer.kind->forward(&b.layer, &b.pass);
    for (size_t i = 0; i < a.floats; i++) same += (a.fy[i] != 0) == (b.fx[i] != 0);
    rig_free(&a);
    rig_free(&b);
    return same;
}

static void masks_depend_on_seed_and_layer(void **state)
{
    (void)state;
    assert_int_equal(agreeing(5, 1, 5, 1), 20000);
    for (uint64_t key = 6; key < 20; key++) assert_in_range(agreeing(5, 1, key, 1), 9600, 10400);
    for (uint32_t number = 2; number < 16; number++)
        assert_in_range(agreeing(5, 1, 5, number), 9600, 10400);
    assert_in_range(agreeing(5, 1, 5 + (UINT64_C(1) << 32), 1), 9600, 10400);
}

static void dropout_is_inactive_when_scoring(void **state)
{
    (void)state;
    rig            r = dropout_rig(0.5, 33, 3);
    at_layer_pass *pass = rig_pass(&r);
    pass->training = false;
    r.layer.kind->forward(&r.layer, pass);
    assert_memory_equal(r.fy, r.fx, r.floats * sizeof(float));
    rig_free(&r);
}

static void dropout_masks_for_the_relu_before_it(void **state)
{
    (void)state;
    rig            r = dropout_rig(0.5, 33, 30);
    at_layer_pass *pass = rig_pass(&r);
    size_t         masked = 0;
    for (size_t i = 0; i < r.floats; i += 3) r.fx[i] = 0;
    float *dx = floats(r.floats);
    r.layer.kind->forward(&r.layer, pass);
    r.layer.kind->backward(&r.layer, pass);
    memcpy(dx, r.fdx, r.floats * sizeof *dx);
    r.layer.masks_input = true;
    r.layer.kind->forward(&r.layer, pass);
    r.layer.kind->backward(&r.layer, pass);
    for (size_t i = 0; i < r.floats; i++) {
        assert_true(r.fdx[i] == (i % 3 ? dx[i] : 0));
        masked += r.fdx[i] != dx[i];
    }
    assert_true(masked > 0);
    free(dx);
    rig_free(&r);
}

static void keep_must_be_a_probability(void **state)
{
    (void)state;
    at_fail  fail = {0};
    at_layer layer = {.in = {32, 4, 4, 8}};
    for (double keep = 0; keep < 2; keep += 1.5) {
        layer.spec.keep = keep;
        assert_int_equal(at_layer_dropout.shape(&layer, &fail), AT_ERR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout_keeps_the_requested_fraction_and_scales_it),
        cmocka_unit_test(masks_depend_on_seed_and_layer),
        cmocka_unit_test(dropout_is_inactive_when_scoring),
        cmocka_unit_test(dropout_masks_for_the_relu_before_it),
        cmocka_unit_test(keep_must_be_a_probability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
