/* Batch norm and group norm against plain loops in double precision and their finite differences,
 * for every layout of activations. */
#include "rig.h"

#include <math.h>

/* The values that share mean and variance with value i. */
static size_t family(const rig *r, size_t i)
{
    size_t area = at_activation_area(&r->layer.in), channels = r->layer.in.channels;
    size_t c = i / area % channels, n = i / area / channels;
    if (r->layer.kind == &at_layer_bn) return c;
    return n * r->layer.spec.groups + c / (channels / r->layer.spec.groups);
}

enum { FAMILIES = 2048 };

static void moments(const rig *r, double *mean, double *variance)
{
    double *n = doubles(FAMILIES);
    memset(mean, 0, FAMILIES * sizeof *mean);
    memset(variance, 0, FAMILIES * sizeof *variance);
    for (size_t i = 0; i < r->numbers; i++) n[family(r, i)] += 1;
    for (size_t i = 0; i < r->numbers; i++) mean[family(r, i)] += r->x[i] / n[family(r, i)];
    for (size_t i = 0; i < r->numbers; i++)
        variance[family(r, i)] += pow(r->x[i] - mean[family(r, i)], 2) / n[family(r, i)];
    free(n);
}

static double output(const rig *r, size_t i, const double *mean, const double *variance)
{
    size_t c = i / at_activation_area(&r->layer.in) % r->layer.in.channels, f = family(r, i);
    double z = (r->x[i] - mean[f]) / sqrt(variance[f] + r->layer.spec.epsilon);
    double y = z * r->weight[c] + r->bias[c];
    return r->layer.spec.relu && y < 0 ? 0 : y;
}

static double loss(const rig *r)
{
    static double mean[FAMILIES], variance[FAMILIES];
    double        sum = 0;
    moments(r, mean, variance);
    for (size_t i = 0; i < r->numbers; i++) sum += r->r[i] * output(r, i, mean, variance);
    return sum;
}

static double slope(const rig *r, double *at)
{
    const double h = 1e-5, was = *at;
    *at = was + h;
    double above = loss(r);
    *at = was - h;
    double below = loss(r);
    *at = was;
    return (above - below) / (2 * h);
}

static void assert_near(double got, double wanted, double tolerance)
{
    if (fabs(got - wanted) <= tolerance * (1 + fabs(wanted))) return;
    print_message("%.9g is not %.9g\n", got, wanted);
    fail();
}

static const at_activation shapes[] = {
    {5, 1, 1, 1}, {40, 1, 1, 1}, {6, 2, 3, 1},   {3, 5, 7, 1},
    {4, 3, 3, 8}, {12, 3, 5, 8}, {10, 2, 2, 16}, {20, 3, 3, 16},
};
enum { FORMS = sizeof shapes / sizeof *shapes };

static at_layer_spec spec_of(const at_layer_kind *kind, const at_activation *shape, bool relu)
{
    uint32_t groups = shape->channels % 4 ? shape->channels % 3 ? 1 : 3 : 4;
    if (groups == 1 && shape->channels % 5 == 0) groups = 5;
    if (at_activation_area(shape) == 1) groups = 1; /* a single value has no deviation */
    return (at_layer_spec){.kind = kind, .relu = relu, .epsilon = 1e-4, .groups = groups};
}

static const at_layer_kind *const norms[] = {&at_layer_bn, &at_layer_gn};

/* Calls check for both norms, all layouts, with and without ReLU. */
static void for_all(void (*check)(rig *r), size_t count)
{
    for (size_t k = 0; k < 2; k++)
        for (size_t f = 0; f < FORMS; f++)
            for (int relu = 0; relu < 2; relu++) {
                at_layer_spec spec = spec_of(norms[k], &shapes[f], relu);
                rig           r = rig_new(&spec, shapes[f], count, 0.3);
                rig_pass(&r);
                check(&r);
                rig_free(&r);
            }
}

static void check_forward(rig *r)
{
    static double mean[FAMILIES], variance[FAMILIES];
    moments(r, mean, variance);
    r->layer.kind->forward(&r->layer, &r->pass);
    for (size_t i = 0; i < r->numbers; i++)
        assert_near(r->fy[weights(&r->layer.in, i)], output(r, i, mean, variance), 3e-6);
}

static void forward_matches_the_formula_for_every_layout(void **state)
{
    (void)state;
    for_all(check_forward, 1);
    for_all(check_forward, 3);
    for_all(check_forward, 70);
}

static void check_backward(rig *r)
{
    size_t channels = r->layer.in.channels;
    r->layer.kind->forward(&r->layer, &r->pass);
    r->layer.kind->backward(&r->layer, &r->pass);
    for (size_t i = 0; i < r->numbers; i++)
        assert_near(r->fdx[weights(&r->layer.in, i)], slope(r, &r->x[i]), 2e-5);
    for (size_t c = 0; c < channels; c++) {
        assert_near(r->gradient[c], slope(r, &r->weight[c]), 2e-5);
        assert_near(r->gradient[channels + c], slope(r, &r->bias[c]), 2e-5);
    }
}

static void backward_matches_differences_for_every_layout(void **state)
{
    (void)state;
    for_all(check_backward, 4);
}

/* The padding of the last block. */
static void check_padding(rig *r)
{
    const at_activation *shape = &r->layer.in;
    size_t               area = at_activation_area(shape), size = at_activation_size(shape);
    r->layer.kind->forward(&r->layer, &r->pass);
    r->layer.kind->backward(&r->layer, &r->pass);
    for (size_t i = 0; i < r->floats; i++) {
        size_t c = i % size / (shape->block * area) * shape->block + i % shape->block;
        if (shape->block == 1 || c < shape->channels) continue;
        assert_true(r->fy[i] == 0);
        assert_true(r->fdx[i] == 0);
    }
}

static void padding_stays_zero(void **state)
{
    (void)state;
    for_all(check_padding, 2);
}

static void check_writes(rig *r)
{
    at_rng rng = at_rng_stream(12, 0, AT_RNG_PURPOSE_TEST, 0);
    size_t params = 2 * (size_t)r->layer.in.channels;
    float  zeros[128] = {0}, zero_sums[128] = {0}, some[128], some_sums[128];
    float *dx = floats(r->floats), *more = floats(r->floats);
    fill(more, r->floats, 1, &rng);
    fill(some, 128, 1, &rng);
    fill(some_sums, 128, 1, &rng);
    memset(r->gradient, 0x7f, sizeof r->gradient); /* to be overwritten */
    memset(r->sums, 0x7f, sizeof r->sums);
    r->layer.kind->forward(&r->layer, &r->pass);
    r->layer.kind->backward(&r->layer, &r->pass);
    if (r->layer.kind == &at_layer_gn) memset(r->sums, 0, sizeof r->sums);

    at_layer_pass add = r->pass;
    add.write = add.dx_write = AT_WRITE_ADD;
    add.gradient = zeros;
    add.stats_sums = zero_sums;
    add.dx = dx;
    memcpy(dx, more, r->floats * sizeof *dx);
    r->layer.kind->backward(&r->layer, &add);
    assert_memory_equal(zeros, r->gradient, params * sizeof *zeros);
    if (r->layer.kind == &at_layer_bn)
        assert_memory_equal(zero_sums, r->sums, params * sizeof *zero_sums);
    for (size_t i = 0; i < r->floats; i++) assert_true(dx[i] == more[i] + r->fdx[i]);

    float was[128], was_sums[128];
    memcpy(was, some, sizeof was);
    memcpy(was_sums, some_sums, sizeof was_sums);
    add.gradient = some;
    add.stats_sums = some_sums;
    add.dx = NULL;
    r->layer.kind->backward(&r->layer, &add);
    for (size_t i = 0; i < params; i++) {
        assert_true(some[i] == was[i] + r->gradient[i]);
        assert_true(some_sums[i] == was_sums[i] + r->sums[i]);
    }
    free(dx);
    free(more);
}

static void adding_equals_setting_plus_one_addition(void **state)
{
    (void)state;
    for_all(check_writes, 3);
}

/* When the next layer masks for it, dy is already masked, and backward does not change it. */
static void check_relu_done(rig *r)
{
    float *masked = floats(r->floats), *dx = floats(r->floats);
    r->layer.kind->forward(&r->layer, &r->pass);
    for (size_t i = 0; i < r->floats; i++)
        masked[i] = r->layer.spec.relu && !(r->fy[i] > 0) ? 0.0f : r->fdy[i];
    r->layer.kind->backward(&r->layer, &r->pass);
    at_layer_pass done = r->pass;
    done.dy = masked;
    done.dx = dx;
    r->layer.relu_done = true;
    r->layer.kind->backward(&r->layer, &done);
    assert_memory_equal(dx, r->fdx, r->floats * sizeof *dx);
    r->layer.masks_input = true;
    r->layer.kind->backward(&r->layer, &done);
    for (size_t i = 0; i < r->floats; i++)
        assert_true(r->fx[i] > 0 ? dx[i] == r->fdx[i] : dx[i] == 0);
    free(masked);
    free(dx);
}

static void masking_relu_here_or_in_the_next_layer_is_equal(void **state)
{
    (void)state;
    for_all(check_relu_done, 3);
}

/* Sums of statistics over some samples of the rig. */
static void statistics(rig *r, size_t first, size_t count, at_write write)
{
    size_t        size = at_activation_size(&r->layer.in);
    at_layer_pass part = r->pass;
    part.count = count;
    part.x += first * size;
    part.write = write;
    part.dx = NULL;
    r->layer.kind->forward(&r->layer, &part);
    r->layer.kind->backward(&r->layer, &part);
}

static void statistics_are_sums_weighted_by_samples(void **state)
{
    (void)state;
    const size_t        parts[2] = {3, 9};
    const at_activation shape = {20, 3, 3, 16};
    at_layer_spec       spec = spec_of(&at_layer_bn, &shape, false);
    rig                 r = rig_new(&spec, shape, 12, 0.7);
    double              mean[20] = {0}, variance[20] = {0};
    rig_pass(&r);
    for (size_t h = 0, first = 0; h < 2; first += parts[h++]) {
        double n = (double)(parts[h] * 9), share = (double)parts[h] / 12;
        statistics(&r, first, parts[h], h ? AT_WRITE_ADD : AT_WRITE_SET);
        for (size_t c = 0; c < 20; c++) {
            double m = 0, v = 0;
            for (size_t s = first; s < first + parts[h]; s++)
                for (size_t p = 0; p < 9; p++) m += r.x[(s * 20 + c) * 9 + p] / n;
            for (size_t s = first; s < first + parts[h]; s++)
                for (size_t p = 0; p < 9; p++) v += pow(r.x[(s * 20 + c) * 9 + p] - m, 2) / (n - 1);
            mean[c] += share * m;
            variance[c] += share * v;
        }
    }
    for (size_t c = 0; c < 20; c++) {
        assert_near(r.sums[c] / 12, mean[c], 1e-6);
        assert_near(r.sums[20 + c] / 12, variance[c], 1e-6);
    }
    rig_free(&r);
}

static void a_single_value_has_variance_zero_and_no_gradient(void **state)
{
    (void)state;
    at_layer_spec spec = spec_of(&at_layer_bn, &shapes[0], false);
    rig           r = rig_new(&spec, shapes[0], 1, 0.7);
    rig_pass(&r);
    r.layer.kind->forward(&r.layer, &r.pass);
    r.layer.kind->backward(&r.layer, &r.pass);
    for (size_t c = 0; c < 5; c++) {
        assert_true(r.fy[c] == r.params[5 + c]);
        assert_true(r.sums[c] == r.fx[c]);
        assert_true(r.sums[5 + c] == 0);
        assert_true(fabsf(r.fdx[c]) < 1e-5f);
    }
    rig_free(&r);
}

static void scoring_uses_the_running_statistics(void **state)
{
    (void)state;
    for (size_t f = 0; f < FORMS; f++) {
        at_layer_spec  spec = spec_of(&at_layer_bn, &shapes[f], true);
        rig            r = rig_new(&spec, shapes[f], 2, 0.7);
        double         mean[64], variance[64];
        at_layer_pass *pass = rig_pass(&r);
        void          *keep = pass->saved;
        for (size_t c = 0; c < shapes[f].channels; c++) {
            r.stats[c] = (float)(mean[c] = 0.25 * (double)c - 1);
            r.stats[shapes[f].channels + c] = (float)(variance[c] = 0.5 + (double)c);
        }
        pass->training = false;
        pass->saved = NULL;
        r.layer.kind->forward(&r.layer, pass);
        for (size_t i = 0; i < r.numbers; i++)
            assert_near(r.fy[weights(&shapes[f], i)], output(&r, i, mean, variance), 3e-6);
        pass->saved = keep;
        rig_free(&r);
    }
}

static void group_norm_scores_as_it_trains(void **state)
{
    (void)state;
    at_layer_spec  spec = spec_of(&at_layer_gn, &shapes[7], true);
    rig            r = rig_new(&spec, shapes[7], 3, 0.7);
    at_layer_pass *pass = rig_pass(&r), score = *pass;
    float         *y = floats(r.floats);
    r.layer.kind->forward(&r.layer, pass);
    score.training = false;
    score.saved = NULL;
    score.y = y;
    r.layer.kind->forward(&r.layer, &score);
    assert_memory_equal(y, r.fy, r.floats * sizeof *y);
    free(y);
    rig_free(&r);
}

/* A mean far from zero and many positions, where a plain sum of squares in float fails. */
static void large_images_far_from_zero_keep_precision(void **state)
{
    (void)state;
    static const uint32_t blocks[] = {1, 8, 16};
    static double         mean[FAMILIES], variance[FAMILIES];
    for (size_t b = 0; b < 3; b++) {
        at_activation shape = {16, 32, 32, blocks[b]};
        at_layer_spec spec = spec_of(&at_layer_bn, &shape, false);
        rig           r = rig_new(&spec, shape, 32, 1000);
        rig_pass(&r);
        moments(&r, mean, variance);
        r.layer.kind->forward(&r.layer, &r.pass);
        r.layer.kind->backward(&r.layer, &r.pass);
        for (size_t c = 0; c < 16; c++) {
            double sum = 0;
            for (size_t i = 0; i < r.numbers; i++)
                if (family(&r, i) == c) sum += r.r[i];
            assert_near(r.sums[c] / 32, mean[c], 1e-7);
            assert_near(r.sums[16 + c] / 32, variance[c] * 32768 / 32767, 5e-7);
            assert_near(r.gradient[16 + c], sum, 1e-6);
        }
        rig_free(&r);
    }
}

static void initial_values_are_the_identity(void **state)
{
    (void)state;
    at_layer        layer = {.kind = &at_layer_bn, .in = {3, 1, 1, 1}};
    at_layer_tensor rows[AT_LAYER_TENSORS_MAX];
    float           plain[12];
    assert_int_equal(at_layer_bn.tensors(&layer, rows), 4);
    assert_string_equal(rows[3].name, "running_var");
    assert_int_equal(rows[2].role, AT_ROLE_STAT);
    at_layer_bn.init(&layer, plain, NULL);
    for (size_t i = 0; i < 12; i++) assert_true(plain[i] == (i < 3 || i >= 9));
    assert_int_equal(at_layer_gn.tensors(&layer, rows), 2);
    assert_int_equal(rows[1].role, AT_ROLE_NORM);
    at_layer_gn.init(&layer, plain, NULL);
    for (size_t i = 0; i < 6; i++) assert_true(plain[i] == (i < 3));
}

static void groups_must_divide_the_channels(void **state)
{
    (void)state;
    at_fail  fail = {0};
    at_layer layer = {.spec = {.epsilon = 1e-5, .groups = 3}, .in = {32, 4, 4, 8}};
    assert_int_equal(at_layer_gn.shape(&layer, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "32 channels"));
    layer.spec.groups = 0;
    assert_int_equal(at_layer_gn.shape(&layer, &fail), AT_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_matches_the_formula_for_every_layout),
        cmocka_unit_test(backward_matches_differences_for_every_layout),
        cmocka_unit_test(padding_stays_zero),
        cmocka_unit_test(adding_equals_setting_plus_one_addition),
        cmocka_unit_test(masking_relu_here_or_in_the_next_layer_is_equal),
        cmocka_unit_test(statistics_are_sums_weighted_by_samples),
        cmocka_unit_test(a_single_value_has_variance_zero_and_no_gradient),
        cmocka_unit_test(scoring_uses_the_running_statistics),
        cmocka_unit_test(group_norm_scores_as_it_trains),
        cmocka_unit_test(large_images_far_from_zero_keep_precision),
        cmocka_unit_test(initial_values_are_the_identity),
        cmocka_unit_test(groups_must_divide_the_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
