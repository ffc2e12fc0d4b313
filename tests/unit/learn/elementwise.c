/* Layers without weights that add, clip, reorder or resize, against plain loops. */
#include "learn/engines/activation_kernels.h"

#include "stage.h"

static void in_place(stage *s)
{
    memcpy(s->pass.y, s->pass.x, SAMPLES * at_activation_size(&s->layer.in) * sizeof(float));
    free(stage_x(s));
    s->pass.x = s->pass.y;
}

static void check_relu(at_activation in, bool shared)
{
    stage *s = stage_new((at_layer_spec){.kind = &at_layer_relu}, in, in.block);
    float *dx = s->pass.dx;
    if (shared) in_place(s);
    for (size_t i = 0; i < s->ins; i++) {
        s->plain_y[i] = s->plain_x[i] < 0 ? 0 : s->plain_x[i];
        s->plain_dx[i] = s->plain_y[i] > 0 ? s->plain_dy[i] : 0;
    }
    forward(s);
    assert_same(&in, s->pass.y, s->plain_y);
    backward(s);
    assert_same(&in, dx, s->plain_dx);
    s->pass.dx_write = AT_WRITE_ADD;
    backward(s);
    for (size_t i = 0; i < s->ins; i++) s->plain_dx[i] *= 2;
    assert_same(&in, dx, s->plain_dx);
    s->pass.dx_write = AT_WRITE_SET;
    s->pass.dx = s->pass.dy;
    backward(s);
    for (size_t i = 0; i < s->ins; i++) s->plain_dx[i] *= 0.5f;
    assert_same(&in, s->pass.dy, s->plain_dx);
    s->pass.dx = dx;
    if (shared) s->pass.x = NULL;
    stage_free(s);
}

static void relu_works_in_place_and_elsewhere(void **state)
{
    (void)state;
    for (size_t b = 0; b < BLOCKS; b++) {
        check_relu((at_activation){21, 5, 3, BLOCK[b]}, false);
        check_relu((at_activation){21, 5, 3, BLOCK[b]}, true);
    }
}

static void check_add(at_activation in, bool relu, bool relu_done, bool shared)
{
    at_layer_spec spec = {.kind = &at_layer_add, .relu = relu};
    stage        *s = stage_new(spec, in, in.block);
    at_rng        rng = at_rng_stream(5, 0, AT_RNG_PURPOSE_TEST, 0);
    float        *plain = floats(s->ins), *other = floats(SAMPLES * at_activation_size(&in));
    fill(plain, s->ins, 1.0, &rng);
    to_blocks(&in, other, plain);
    s->pass.other = other;
    s->layer.relu_done = relu_done;
    if (shared) in_place(s);
    for (size_t i = 0; i < s->ins; i++) {
        float sum = s->plain_x[i] + plain[i];
        s->plain_y[i] = relu && sum < 0 ? 0 : sum;
        if (relu && !relu_done && !(sum > 0)) s->plain_dy[i] = 0;
    }
    forward(s);
    assert_same(&in, s->pass.y, s->plain_y);
    backward(s);
    assert_same(&in, s->pass.dy, s->plain_dy);
    if (shared) s->pass.x = NULL;
    stage_free(s), free(plain), free(other);
}

static void add_sums_and_clips_and_masks_in_place(void **state)
{
    (void)state;
    for (size_t b = 0; b < BLOCKS; b++)
        for (unsigned bits = 0; bits < 8; bits++)
            check_add((at_activation){21, 7, 5, BLOCK[b]}, bits & 1, bits & 2, bits & 4);
}

static void adding_an_input_to_itself_doubles_it(void **state)
{
    (void)state;
    at_activation in = {3, 7, 5, 8};
    stage        *s = stage_new((at_layer_spec){.kind = &at_layer_add}, in, in.block);
    in_place(s);
    s->pass.other = s->pass.y;
    for (size_t i = 0; i < s->ins; i++) s->plain_y[i] = 2 * s->plain_x[i];
    forward(s);
    assert_same(&in, s->pass.y, s->plain_y);
    s->pass.x = NULL;
    stage_free(s);
}

/* Forward and backward restore the input, and the plain side is in plain order. */
static void check_orders(at_activation blocked)
{
    at_activation plain = blocked;
    plain.block = 1;
    stage *flatten = stage_new((at_layer_spec){.kind = &at_layer_flatten}, blocked, 1);
    stage *reorder = stage_new((at_layer_spec){.kind = &at_layer_reorder}, plain, blocked.block);
    assert_int_equal(flatten->layer.out.channels, at_activation_numbers(&blocked));
    assert_int_equal(at_activation_area(&flatten->layer.out), 1);
    forward(flatten), backward(flatten);
    forward(reorder), backward(reorder);
    assert_same(&flatten->layer.out, flatten->pass.y, flatten->plain_x);
    assert_same(&blocked, flatten->pass.dx, flatten->plain_dy);
    assert_same(&blocked, reorder->pass.y, reorder->plain_x);
    assert_same(&plain, reorder->pass.dx, reorder->plain_dy);
    stage_free(flatten), stage_free(reorder);
}

static void images_flatten_and_back(void **state)
{
    (void)state;
    for (size_t b = 0; b < BLOCKS; b++) {
        check_orders((at_activation){3, 9, 11, BLOCK[b]});
        check_orders((at_activation){32, 4, 4, BLOCK[b]});
        check_orders((at_activation){41, 7, 5, BLOCK[b]});
        check_orders((at_activation){48, 1, 1, BLOCK[b]});
        check_orders((at_activation){41, 1, 1, BLOCK[b]});
    }
}

/* Processors without AVX2 use plain loops for all blocks. */
static void plain_loops_reorder_a_block_equally(void **state)
{
    (void)state;
    enum { AREA = 15, BLOCK_MAX = 16, USED = 11 };
    float plain[USED * AREA], blocked[BLOCK_MAX * AREA], back[USED * AREA];
    for (size_t i = 0; i < USED * AREA; i++) plain[i] = (float)i;
    for (size_t i = 0; i < BLOCK_MAX * AREA; i++) blocked[i] = NAN;
    at_reorder_plain.from_plain(blocked, plain, AREA, BLOCK_MAX, USED);
    for (size_t i = 0; i < BLOCK_MAX * AREA; i++) {
        size_t channel = i % BLOCK_MAX, place = i / BLOCK_MAX;
        assert_true(blocked[i] == (channel < USED ? plain[channel * AREA + place] : 0));
    }
    at_reorder_plain.to_plain(back, blocked, AREA, BLOCK_MAX, USED);
    assert_memory_equal(back, plain, sizeof plain);
}

static void a_flat_vector_reshapes_to_an_image_of_equal_size(void **state)
{
    (void)state;
    at_fail       fail = {0};
    at_layer_spec spec = {.kind = &at_layer_reshape, .units = 2, .height = 3, .width = 5};
    stage        *s = stage_new(spec, (at_activation){30, 1, 1, 1}, 1);
    forward(s);
    assert_int_equal(s->layer.out.width, 5);
    assert_same(&s->layer.out, s->pass.y, s->plain_x);
    backward(s);
    assert_same(&s->layer.in, s->pass.dx, s->plain_dy);
    stage_free(s);
    assert_null(stage_try(spec, (at_activation){31, 1, 1, 1}, 1, &fail));
    assert_string_equal(fail.text, "31 values (31x1x1) cannot be reshaped to 2x3x5");
    spec.units = spec.height = spec.width = UINT32_MAX;
    assert_null(stage_try(spec, (at_activation){31, 1, 1, 1}, 1, &fail));
}

static void check_resized(const float *x, at_activation in, uint32_t height, uint32_t width,
                          const float *wanted)
{
    at_layer_spec spec = {.kind = &at_layer_resize, .height = height, .width = width};
    stage        *s = stage_new(spec, in, 1);
    size_t        area = (size_t)height * width;
    for (size_t i = 0; i < s->ins; i++) stage_x(s)[i] = x[i % at_activation_area(&in)];
    forward(s);
    for (size_t i = 0; i < s->outs; i++)
        assert_true(fabsf(s->pass.y[i] - wanted[i % area]) <= 1e-6f * fabsf(wanted[i % area]));
    stage_free(s);
}

/* Expected values are those of PyTorch's interpolate(mode="bilinear", align_corners=False). */
static void resizing_is_bilinear_between_pixel_centers(void **state)
{
    (void)state;
    const float small[] = {0, 1, 2, 3, 5, 4};
    const float grown[] = {0, 0.4f, 1, 1.6f, 2, 1.5f, 2.1f, 3, 3, 3, 3, 3.8f, 5, 4.4f, 4};
    const float shrunk[] = {3.8333337f, 12.5f, 46.5f, 76.5f, 142.5f, 193.83334f};
    float       squares[16];
    for (size_t i = 0; i < 16; i++) squares[i] = (float)(i * i);
    check_resized(small, (at_activation){2, 2, 3, 1}, 3, 5, grown);
    check_resized(squares, (at_activation){1, 4, 4, 1}, 3, 2, shrunk);
    check_resized(squares, (at_activation){3, 4, 4, 1}, 4, 4, squares);
}

static void gray_images_get_three_equal_channels(void **state)
{
    (void)state;
    at_fail       fail = {0};
    at_layer_spec spec = {.kind = &at_layer_rgb};
    for (uint32_t channels = 1; channels <= 3; channels += 2) {
        stage *s = stage_new(spec, (at_activation){channels, 4, 5, 1}, 1);
        assert_int_equal(s->layer.out.channels, 3);
        forward(s);
        for (size_t i = 0; i < s->outs; i++) {
            size_t n = i / 60, rest = channels == 1 ? i % 20 : i % 60;
            assert_true(s->pass.y[i] == s->plain_x[n * 20 * channels + rest]);
        }
        stage_free(s);
    }
    assert_null(stage_try(spec, (at_activation){4, 4, 5, 1}, 1, &fail));
    assert_string_equal(fail.text, "4x4x5 has 4 channels; only 1 or 3 can be converted to 3x4x5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relu_works_in_place_and_elsewhere),
        cmocka_unit_test(add_sums_and_clips_and_masks_in_place),
        cmocka_unit_test(adding_an_input_to_itself_doubles_it),
        cmocka_unit_test(images_flatten_and_back),
        cmocka_unit_test(plain_loops_reorder_a_block_equally),
        cmocka_unit_test(a_flat_vector_reshapes_to_an_image_of_equal_size),
        cmocka_unit_test(resizing_is_bilinear_between_pixel_centers),
        cmocka_unit_test(gray_images_get_three_equal_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
