/* Pools in blocks of 1, 8 and 16 channels, against plain loops channel by channel; and gradients of
 * layers without weights. */
#include "learn/engines/pool_kernels.h"

#include "stage.h"

/* The positions of one window. */
typedef struct under {
    size_t best, count; /* the first maximum; how many there are */
    float  sum;
} under;

static under look(const stage *s, const float *x, size_t oh, size_t ow)
{
    const at_activation *in = &s->layer.in;
    const at_window     *w = &s->layer.spec.window;
    under                u = {0};
    for (size_t r = 0; r < w->height; r++)
        for (size_t c = 0; c < w->width; c++) {
            size_t h = oh * w->stride + r, v = ow * w->stride + c;
            if (h < w->top || v < w->left) continue;
            if (h - w->top >= in->height || v - w->left >= in->width) continue;
            size_t argmax = (h - w->top) * in->width + v - w->left;
            if (u.count == 0 || x[argmax] > x[u.best]) u.best = argmax;
            u.sum += x[argmax];
            u.count++;
        }
    return u;
}

/* Adds the shares of one dy to dx. */
static void give(const stage *s, float *dx, const float *x, size_t oh, size_t ow, float dy)
{
    const at_activation *in = &s->layer.in;
    const at_window     *w = &s->layer.spec.window;
    under                u = look(s, x, oh, ow);
    if (s->layer.kind == &at_layer_maxpool) {
        dx[u.best] += !s->layer.masks_input || x[u.best] > 0 ? dy : 0;
        return;
    }
    for (size_t h = 0; h < in->height; h++)
        for (size_t v = 0; v < in->width; v++) {
            size_t row = h + w->top - oh * w->stride, column = v + w->left - ow * w->stride;
            if (row < w->height && column < w->width) dx[h * in->width + v] += dy / (float)u.count;
        }
}

/* Computes plain_y, and adds to plain_dx. */
static void pool_naively(stage *s)
{
    const at_activation *in = &s->layer.in, *out = &s->layer.out;
    for (size_t c = 0; c < SAMPLES * (size_t)in->channels; c++)
        for (size_t oh = 0; oh < out->height; oh++)
            for (size_t ow = 0; ow < out->width; ow++) {
                size_t       at = (c * out->height + oh) * out->width + ow;
                const float *x = s->plain_x + c * at_activation_area(in);
                under        u = look(s, x, oh, ow);
                s->plain_y[at] =
                    s->layer.kind == &at_layer_maxpool ? x[u.best] : u.sum / (float)u.count;
                give(s, s->plain_dx + c * at_activation_area(in), x, oh, ow, s->plain_dy[at]);
            }
}

/* Adding to dx is one addition per element. */
static void expect_added(stage *s)
{
    size_t size = SAMPLES * at_activation_size(&s->layer.in);
    float *before = floats(s->ins);
    at_rng rng = at_rng_stream(4, 0, AT_RNG_PURPOSE_TEST, 0);
    fill(before, s->ins, 1.0, &rng);
    to_blocks(&s->layer.in, s->pass.dx, before);
    s->pass.dx_write = AT_WRITE_ADD;
    backward(s);
    for (size_t i = 0; i < s->ins; i++) before[i] += s->plain_dx[i];
    assert_same(&s->layer.in, s->pass.dx, before);
    memset(s->pass.dx, 0, size * sizeof *before);
    backward(s);
    assert_same(&s->layer.in, s->pass.dx, s->plain_dx);
    free(before);
}

/* Processors without AVX2 use plain loops for all blocks. */
static void expect_plain_loops(stage *s)
{
    const at_layer_pass   *p = &s->pass;
    const at_pool_kernels *k = &at_pools_plain;
    at_pool pool = {.in = s->layer.in, .out = s->layer.out, .window = s->layer.spec.window};
    bool    largest = s->layer.kind == &at_layer_maxpool;
    memset(p->y, 0, SAMPLES * at_activation_size(&pool.out) * sizeof(float));
    if (largest) {
        k->max_forward(&pool, p->y, p->saved, p->x, SAMPLES, s->layer.masks_input);
        k->max_backward(&pool, p->dx, p->dy, p->saved, SAMPLES, AT_WRITE_SET);
    } else {
        k->avg_forward(&pool, p->y, p->x, SAMPLES);
        k->avg_backward(&pool, p->dx, p->dy, SAMPLES, AT_WRITE_SET, p->scratch);
    }
    assert_same(&pool.out, p->y, s->plain_y);
    assert_same(&pool.in, p->dx, s->plain_dx);
}

static void check_pool(const at_layer_kind *kind, at_activation in, at_window window, bool same,
                       bool masks)
{
    at_layer_spec spec = {.kind = kind, .window = window, .same = same};
    stage        *s = stage_new(spec, in, in.block);
    s->layer.masks_input = masks;
    if (masks) { /* then x comes from a ReLU */
        for (size_t i = 0; i < s->ins; i++) s->plain_x[i] = fmaxf(s->plain_x[i], 0);
        to_blocks(&in, stage_x(s), s->plain_x);
    }
    pool_naively(s);
    forward(s);
    assert_same(&s->layer.out, s->pass.y, s->plain_y);
    backward(s);
    assert_same(&s->layer.in, s->pass.dx, s->plain_dx);
    expect_added(s);
    expect_plain_loops(s);
    void *keep = s->pass.saved;
    s->pass.training = false;
    s->pass.saved = NULL; /* scoring has none */
    memset(s->pass.y, 0, SAMPLES * at_activation_size(&s->layer.out) * sizeof(float));
    forward(s);
    assert_same(&s->layer.out, s->pass.y, s->plain_y);
    s->pass.saved = keep;
    stage_free(s);
}

typedef struct pool_case {
    uint32_t  height, width;
    at_window window;
    bool      same;
} pool_case;

static const pool_case POOLS[] = {
    {8, 8, {.height = 2, .width = 2, .stride = 2}, false},
    {9, 7, {.height = 2, .width = 2, .stride = 2}, false},
    {9, 7, {.height = 2, .width = 2, .stride = 2}, true},
    {8, 10, {.height = 3, .width = 3, .stride = 2}, false},
    {8, 10, {.height = 3, .width = 3, .stride = 2}, true},
    {9, 11, {.height = 3, .width = 3, .stride = 2}, true},
    {7, 8, {3, 3, 2, 1, 1, 1, 1}, false},
    {8, 7, {3, 3, 2, 1, 1, 0, 0}, false},
    {3, 3, {.height = 3, .width = 3, .stride = 2}, false},
    {1, 2, {.height = 3, .width = 3, .stride = 2}, true},
    {6, 9, {.height = 3, .width = 2, .stride = 1}, false},
    {11, 9, {5, 4, 3, 2, 1, 3, 3}, false},
    {5, 6, {.height = 1, .width = 1, .stride = 2}, false},
    {8, 9, {.height = 2, .width = 2, .stride = 3}, false},
    {6, 6, {.height = 3, .width = 3, .stride = 2}, false},
    {6, 6, {3, 3, 3, 1, 1, 1, 1}, false},
    {6, 6, {2, 2, 2, 1, 1, 1, 1}, false},
    {4, 5, {0}, false},
    {15, 17, {0}, false},
    {1, 1, {0}, false},
};

static void check_pools(const at_layer_kind *kind, bool masks)
{
    static const uint32_t channels[] = {3, 16, 21};
    for (size_t i = 0; i < sizeof POOLS / sizeof *POOLS; i++)
        for (size_t b = 0; b < BLOCKS; b++)
            for (size_t c = 0; c < 3; c++)
                check_pool(kind,
                           (at_activation){channels[c], POOLS[i].height, POOLS[i].width, BLOCK[b]},
                           POOLS[i].window, POOLS[i].same, masks);
}

static void max_pools_equal_plain_loops_bit_for_bit(void **state)
{
    (void)state;
    check_pools(&at_layer_maxpool, false);
}

static void max_pools_mask_the_gradient_of_a_relu_before_them(void **state)
{
    (void)state;
    check_pools(&at_layer_maxpool, true);
}

static void average_pools_equal_plain_loops_bit_for_bit(void **state)
{
    (void)state;
    check_pools(&at_layer_avgpool, false);
}

static void the_first_of_equal_values_gets_the_gradient(void **state)
{
    (void)state;
    for (size_t b = 0; b < BLOCKS; b++) {
        at_layer_spec spec = {.kind = &at_layer_maxpool, .window = {3, 3, 2, 1, 1, 0, 0}};
        stage        *s = stage_new(spec, (at_activation){1, 2, 2, BLOCK[b]}, BLOCK[b]);
        const float   x[4] = {-1, -1, -1, -1}, *dx = s->pass.dx;
        for (size_t i = 0; i < 4; i++) s->plain_x[i] = x[i];
        to_blocks(&s->layer.in, stage_x(s), s->plain_x);
        forward(s);
        backward(s);
        assert_true(s->pass.y[0] == -1);
        assert_true(dx[0] == s->pass.dy[0]);
        for (size_t i = 1; i < 4; i++) assert_true(dx[i * BLOCK[b]] == 0);
        stage_free(s);
    }
}

/* The sum of y weighted by dy, whose gradient is dx. */
static double weighed(stage *s)
{
    double sum = 0;
    forward(s);
    for (size_t i = 0; i < SAMPLES * at_activation_size(&s->layer.out); i++)
        sum += (double)s->pass.y[i] * (double)s->plain_dy[i];
    return sum;
}

/* Compares dx with finite differences; x are nonzero multiples of 1/4, all different in a window,
 * so that no step of 1/16 reaches a kink. */
static void check_differences(at_layer_spec spec, at_activation in, uint32_t block_out)
{
    const float step = 0.0625f;
    stage      *s = stage_new(spec, in, block_out);
    size_t      size = SAMPLES * at_activation_size(&in),
           outs = SAMPLES * at_activation_size(&s->layer.out);
    float *x = stage_x(s), *other = floats(size);
    for (size_t i = 0; i < s->ins; i++) s->plain_x[i] = 0.25f * (float)((i * 37) % 101) - 12.375f;
    to_blocks(&in, x, s->plain_x);
    if (spec.kind->has_other) s->pass.other = other;
    free(s->plain_dy);
    s->plain_dy = floats(outs); /* in the layout of y, here */
    memcpy(s->plain_dy, s->pass.dy, outs * sizeof(float));
    forward(s);
    backward(s);
    const float *dx = spec.kind->has_other ? s->pass.dy : s->pass.dx;
    for (size_t i = 0; i < size; i += 1 + size / 200) {
        float was = x[i];
        if (was == 0) continue; /* padding of a block */
        x[i] = was + step;
        double more = weighed(s);
        x[i] = was - step;
        double less = weighed(s);
        x[i] = was;
        assert_true(fabs((more - less) / (2 * (double)step) - (double)dx[i]) < 1e-4);
    }
    stage_free(s), free(other);
}

static void gradients_match_finite_differences(void **state)
{
    (void)state;
    for (size_t b = 0; b < BLOCKS; b++) {
        uint32_t      block = BLOCK[b];
        at_activation in = {11, 6, 7, block}, line = {66, 1, 1, 1}, plain = {11, 6, 7, 1};
        at_window     three = {3, 3, 2, 1, 1, 1, 1};
        check_differences((at_layer_spec){.kind = &at_layer_maxpool, .window = three}, in, block);
        check_differences((at_layer_spec){.kind = &at_layer_avgpool, .window = three}, in, block);
        check_differences((at_layer_spec){.kind = &at_layer_avgpool}, in, block);
        check_differences((at_layer_spec){.kind = &at_layer_relu}, in, block);
        check_differences((at_layer_spec){.kind = &at_layer_add}, in, block);
        check_differences((at_layer_spec){.kind = &at_layer_add, .relu = true}, in, block);
        check_differences((at_layer_spec){.kind = &at_layer_flatten}, in, 1);
        check_differences((at_layer_spec){.kind = &at_layer_reorder}, plain, block);
        check_differences(
            (at_layer_spec){.kind = &at_layer_reshape, .units = 11, .height = 2, .width = 3}, line,
            1);
    }
}

static void assert_refused(at_layer_spec spec, at_activation in, const char *text)
{
    at_fail fail = {0};
    assert_null(stage_try(spec, in, in.block, &fail));
    assert_int_equal(fail.err, AT_ERR_USAGE);
    assert_string_equal(fail.text, text);
}

static void windows_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    at_activation small = {4, 3, 3, 1}, large = {4, 32, 32, 1};
    at_layer_spec pool = {.kind = &at_layer_maxpool, .window = {.height = 5, .width = 5}};
    assert_refused(pool, small, "a window of 5x5 cannot have stride 0");
    pool.window.stride = 1;
    assert_refused(pool, small, "a window of 5x5 does not fit into 3x3");
    pool.kind = &at_layer_avgpool;
    assert_refused(pool, small, "a window of 5x5 does not fit into 3x3");
    pool.window.top = 1;
    assert_refused(pool, small, "a window of 5x5 does not fit into 3x3 with its padding");
    pool.window = (at_window){2, 2, 1, 2, 0, 0, 0};
    assert_refused(pool, small, "a window of 2x2 would cover only padding around 3x3");
    pool.window = (at_window){0};
    pool.kind = &at_layer_maxpool;
    assert_refused(pool, large,
                   "a window of 32x32 over 32x32 is too large (at most 255 positions)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_pools_equal_plain_loops_bit_for_bit),
        cmocka_unit_test(max_pools_mask_the_gradient_of_a_relu_before_them),
        cmocka_unit_test(average_pools_equal_plain_loops_bit_for_bit),
        cmocka_unit_test(the_first_of_equal_values_gets_the_gradient),
        cmocka_unit_test(gradients_match_finite_differences),
        cmocka_unit_test(windows_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
