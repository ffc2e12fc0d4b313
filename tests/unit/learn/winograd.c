/* Winograd convolutions: errors against double precision, and when they are chosen. */
#include "learn/engines/winograd.h"

#include "conv_bench.h"

#include "base/isa.h"

/* Largest error relative to the largest value, for y, dx and dw, in millionths; about twice what
 * was measured. Inputs are like those after a ReLU, whose nonzero mean has to cancel out. */
typedef struct bounds {
    double y, dx, dw;
} bounds;

/* The layers of the built-in models that may use it (square images with padding), and uneven
 * numbers of channels, rows, columns and samples, without padding too. */
static const struct layer_case {
    conv_case shape;
    uint32_t  rows;
    bounds    most;
} LAYERS[] = {
    {{"resnet18 2", 64, 32, 64, 3, 1, 1}, 2, {2, 3, 2.5}},
    {{"resnet18 4", 128, 16, 128, 3, 1, 1}, 3, {2, 3, 2.5}},
    {{"resnet18 6", 256, 8, 256, 3, 1, 1}, 5, {2, 3, 2.5}},
    {{"resnet18 8", 512, 4, 512, 3, 1, 1}, 5, {2, 3, 2.5}},
    {{"wrn-28-2 2", 16, 32, 32, 3, 1, SAME}, 3, {2, 3, 2.5}},
    {{"alexnet 227 3", 192, 13, 384, 3, 1, SAME}, 1, {2, 3, 2.5}},
    {{"mnist-cnn 2", 32, 14, 64, 5, 1, SAME}, 8, {7, 12, 12}},
    {{"cifar10-cnn 3", 128, 8, 256, 5, 1, SAME}, 3, {7, 12, 12}},
    {{"cifar10-cnn 4", 256, 4, 512, 5, 1, SAME}, 3, {7, 12, 12}},
    {{"alexnet 227 2", 64, 27, 192, 5, 1, SAME}, 1, {7, 12, 12}},
    {{"lenet 2", 20, 12, 50, 5, 1, 0}, 33, {7, 12, 12}},
    {{"one channel", 1, 9, 1, 3, 1, SAME}, 5, {2, 3, 2.5}},
    {{"7 to 33 on 5x5", 7, 5, 33, 3, 1, SAME}, 33, {2, 3, 2.5}},
    {{"33 to 7 on 6x6", 33, 6, 7, 3, 1, 0}, 17, {2, 3, 2.5}},
    {{"17 to 25 on 11x11", 17, 11, 25, 3, 1, 2}, 13, {2, 3, 2.5}},
    {{"9 to 40 on 3x3", 9, 3, 40, 3, 1, SAME}, 2, {2, 3, 2.5}},
    {{"24 to 24 on 1x1", 24, 1, 24, 3, 1, SAME}, 3, {2, 3, 2.5}},
    {{"5x5, 7 to 33 on 7x7", 7, 7, 33, 5, 1, SAME}, 19, {7, 12, 12}},
    {{"5x5, 40 to 9 on 5x5", 40, 5, 9, 5, 1, 0}, 6, {7, 12, 12}},
    {{"5x5, 17 to 17 on 2x2", 17, 2, 17, 5, 1, SAME}, 3, {7, 12, 12}},
    {{"5x5, 24 to 72 on 10x10", 24, 10, 72, 5, 1, 1}, 7, {7, 12, 12}},
};
enum { LAYERS_COUNT = sizeof LAYERS / sizeof *LAYERS };

/* The blocked convolution, of any number of channels. */
static bench blocked_of(const conv_case *s, uint32_t rows, bool relu)
{
    uint32_t     block = at_conv_onednn.block();
    at_layer     layer = layer_of(s, block, block);
    at_conv_spec spec = spec_of(&layer);
    spec.relu = relu;
    return bench_new(&at_conv_onednn, &spec, rows);
}

static at_winograd winograd_of(const bench *t, int threads)
{
    return (at_winograd){&t->spec, &t->layout, t->rows, threads};
}

/* All passes. b and db have the padding of the last block. */
static void run(bench *t, int threads)
{
    at_winograd w = winograd_of(t, threads);
    size_t      most = 0, blocks = at_activation_blocks(&t->spec.out) * t->spec.out.block;
    float      *b = floats(blocks), *db = floats(blocks);
    assert_true(at_winograd_supports(&w));
    for (at_conv_pass pass = 0; pass < AT_CONV_PASSES; pass++)
        if (at_winograd_scratch(&w, pass) > most) most = at_winograd_scratch(&w, pass);
    float *scratch = floats(most / sizeof *scratch);
    memset(scratch, 0xff, most); /* NaN: scratch that is read before it is written shows */
    memset(t->y, 0xff, t->out * sizeof *t->y);
    memset(t->dx, 0xff, t->in * sizeof *t->dx);
    memset(t->dw, 0xff, t->layout.floats * sizeof *t->dw);
    memcpy(b, t->b, t->spec.out.channels * sizeof *b);
    at_winograd_forward(&w, t->y, t->x, t->w, b, scratch);
    at_winograd_input(&w, t->dx, t->dy, t->w, scratch);
    at_winograd_weight(&w, t->dw, db, t->dy, t->x, scratch);
    memcpy(t->db, db, t->spec.out.channels * sizeof *db);
    free(b), free(db), free(scratch);
}

static double error_of(const float *got, const float *want, size_t n)
{
    double most = 0, diff = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs(want[i]));
        diff = fmax(diff, fabs((double)got[i] - want[i]));
        if (!isfinite(got[i])) return INFINITY;
    }
    return most > 0 ? diff / most * 1e6 : diff;
}

/* Prints and checks the errors of one layer. */
static void check_errors(const struct layer_case *c, const bench *t, const bench *ref)
{
    float *y = floats(ref->out), *dx = floats(ref->in), *dw = floats(ref->layout.floats);
    reorder(&t->spec.out, t->rows, t->y, y, true);
    reorder(&t->spec.in, t->rows, t->dx, dx, true);
    at_weight_layout_to_plain(&t->layout, dw, t->dw);
    double at_y = error_of(y, ref->y, ref->out), at_dx = error_of(dx, ref->dx, ref->in);
    double at_dw = error_of(dw, ref->dw, ref->layout.floats);
    print_message("%-24s %2u samples: y %5.2f, dx %5.2f, dw %5.2f millionths\n", c->shape.name,
                  c->rows, at_y, at_dx, at_dw);
    assert_true(at_y <= c->most.y);
    assert_true(at_dx <= c->most.dx);
    assert_true(at_dw <= c->most.dw);
    assert_true(error_of(t->db, ref->db, ref->spec.out.channels) <= 5);
    free(y), free(dx), free(dw);
}

static bench reference_with(const struct layer_case *c, bool relu)
{
    bench ref = reference_of(&c->shape, c->rows, relu);
    for (size_t i = 0; i < ref.in; i++) ref.x[i] = ref.x[i] > 0 ? ref.x[i] : 0;
    return ref;
}

static void errors_against_double_precision_are_bounded(void **state)
{
    (void)state;
    for (size_t j = 0; j < LAYERS_COUNT && block_here(); j++) {
        bench ref = reference_with(&LAYERS[j], j % 2);
        bench t = blocked_of(&LAYERS[j].shape, LAYERS[j].rows, j % 2);
        copy_numbers(&t, &ref);
        bench_run(&ref);
        run(&t, 1);
        check_errors(&LAYERS[j], &t, &ref);
        bench_free(&ref);
        bench_free(&t);
    }
}

/* Samples are independent, so y and dx of a batch are those of its samples, bit for bit, wherever
 * chunks of tiles begin and end. */
static void check_batches(const conv_case *s)
{
    enum { ROWS_MAX = 33 };
    bench  ref = reference_of(s, ROWS_MAX, true), all = blocked_of(s, ROWS_MAX, true);
    size_t in = all.in / ROWS_MAX, out = all.out / ROWS_MAX;
    copy_numbers(&all, &ref);
    run(&all, 1);
    for (uint32_t rows = 1; rows < ROWS_MAX; rows++) {
        bench t = blocked_of(s, rows, true);
        memcpy(t.x, all.x, rows * in * sizeof *t.x);
        memcpy(t.dy, all.dy, rows * out * sizeof *t.dy);
        memcpy(t.w, all.w, t.layout.floats * sizeof *t.w);
        memcpy(t.b, all.b, t.spec.out.channels * sizeof *t.b);
        run(&t, 1);
        assert_memory_equal(t.y, all.y, rows * out * sizeof *t.y);
        assert_memory_equal(t.dx, all.dx, rows * in * sizeof *t.dx);
        bench_free(&t);
    }
    bench_free(&ref);
    bench_free(&all);
}

static void samples_do_not_depend_on_their_batch(void **state)
{
    (void)state;
    if (!block_here()) return;
    check_batches(&(conv_case){"3x3", 20, 9, 40, 3, 1, SAME});
    check_batches(&(conv_case){"3x3, no padding", 8, 14, 8, 3, 1, 0});
    check_batches(&(conv_case){"3x3, few tiles", 80, 4, 96, 3, 1, SAME});
    check_batches(&(conv_case){"5x5", 33, 7, 20, 5, 1, SAME});
}

static void threads_do_not_change_bits(void **state)
{
    (void)state;
    for (size_t j = 0; j < LAYERS_COUNT && block_here(); j += 3) {
        bench ref = reference_with(&LAYERS[j], true);
        bench one = blocked_of(&LAYERS[j].shape, LAYERS[j].rows, true);
        bench three = blocked_of(&LAYERS[j].shape, LAYERS[j].rows, true);
        copy_numbers(&one, &ref);
        copy_numbers(&three, &ref);
        run(&one, 1);
        run(&three, 3);
        assert_memory_equal(one.y, three.y, one.out * sizeof *one.y);
        assert_memory_equal(one.dx, three.dx, one.in * sizeof *one.dx);
        assert_memory_equal(one.dw, three.dw, one.layout.floats * sizeof *one.dw);
        assert_memory_equal(one.db, three.db, one.spec.out.channels * sizeof *one.db);
        bench_free(&ref);
        bench_free(&one);
        bench_free(&three);
    }
}

/* ---- when it is chosen ---- */

static void check_choice(const conv_case *s, uint32_t rows, bool forward, bool input, bool weight)
{
    bool        want[AT_CONV_PASSES] = {forward, input, weight};
    bench       t = blocked_of(s, rows, true);
    at_winograd w = winograd_of(&t, 1);
    for (at_conv_pass pass = 0; pass < AT_CONV_PASSES; pass++)
        if ((at_winograd_supports(&w) && at_winograd_is_faster(&w, pass)) != want[pass])
            fail_msg("%s with %u samples: pass %d is%s chosen", s->name, rows, pass,
                     want[pass] ? " not" : "");
    bench_free(&t);
}

static void large_layers_use_it_and_small_ones_do_not(void **state)
{
    (void)state;
    if (!block_here()) return;
    check_choice(&(conv_case){"resnet18 2", 64, 32, 64, 3, 1, 1}, 32, true, true, true);
    check_choice(&(conv_case){"resnet18 2", 64, 32, 64, 3, 1, 1}, 1, true, true, true);
    check_choice(&(conv_case){"resnet18 8", 512, 4, 512, 3, 1, 1}, 32, true, true, true);
    check_choice(&(conv_case){"resnet18 8", 512, 4, 512, 3, 1, 1}, 1, false, false, false);
    check_choice(&(conv_case){"mnist-cnn 2", 32, 14, 64, 5, 1, SAME}, 64, true, true, true);
    check_choice(&(conv_case){"cifar10-cnn 4", 256, 4, 512, 5, 1, SAME}, 64, true, true, true);
    check_choice(&(conv_case){"5x5 on 2x2", 64, 2, 64, 5, 1, SAME}, 64, false, false, false);
    check_choice(&(conv_case){"stride 2", 64, 32, 128, 3, 2, 1}, 32, false, false, false);
    check_choice(&(conv_case){"1x1", 64, 32, 256, 1, 1, 0}, 32, false, false, false);
    check_choice(&(conv_case){"few channels", 4, 32, 4, 3, 1, SAME}, 1, false, false, false);
}

static void the_exact_engine_never_uses_it(void **state)
{
    (void)state;
    uint32_t block = block_here();
    if (!block) return;
    const conv_case *s = &LAYERS[0].shape;
    at_layer         layer = layer_of(s, block, block);
    at_conv_spec     spec = spec_of(&layer);
    bench            ref = reference_of(s, 1, true);
    setenv("ANYTIME_CONV", "winograd", 1);
    bench exact = bench_new(&at_conv_exact, &spec, 1), forced = blocked_of(s, 1, true);
    setenv("ANYTIME_CONV", "direct", 1);
    bench direct = blocked_of(s, 1, true);
    unsetenv("ANYTIME_CONV");
    bench *all[] = {&exact, &forced, &direct};
    for (size_t i = 0; i < 3; i++) copy_numbers(all[i], &ref), bench_run(all[i]);
    assert_memory_equal(exact.y, direct.y, direct.out * sizeof *direct.y);
    assert_memory_equal(exact.dx, direct.dx, direct.in * sizeof *direct.dx);
    assert_memory_equal(exact.dw, direct.dw, direct.layout.floats * sizeof *direct.dw);
    assert_memory_not_equal(exact.y, forced.y, direct.out * sizeof *direct.y);
    for (size_t i = 0; i < 3; i++) bench_free(all[i]);
    bench_free(&ref);
}

static void a_missing_instruction_set_is_refused(void **state)
{
    (void)state;
    char    kept[16] = "";
    at_fail fail = {0};
    if (getenv("ANYTIME_ISA")) snprintf(kept, sizeof kept, "%s", getenv("ANYTIME_ISA"));
    at_isa here = at_isa_here();
    setenv("ANYTIME_ISA", "mmx", 1);
    assert_int_equal(at_isa_check_environment(&fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "ANYTIME_ISA=mmx"));
    assert_non_null(strstr(fail.hint, "avx512"));
    setenv("ANYTIME_ISA", "", 1);
    assert_int_equal(at_isa_check_environment(&fail), AT_OK);
    setenv("ANYTIME_ISA", "avx2", 1);
    assert_int_equal(at_isa_check_environment(&fail), here >= AT_ISA_AVX2 ? AT_OK : AT_ERR_USAGE);
    setenv("ANYTIME_ISA", kept, 1);
    if (!*kept) unsetenv("ANYTIME_ISA");
    if (strcmp(kept, "avx2") == 0 && here >= AT_ISA_AVX2) assert_int_equal(here, AT_ISA_AVX2);
    if (here == AT_ISA_AVX2 && block_here()) assert_int_equal(at_conv_onednn.block(), 8);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_against_double_precision_are_bounded),
        cmocka_unit_test(samples_do_not_depend_on_their_batch),
        cmocka_unit_test(threads_do_not_change_bits),
        cmocka_unit_test(large_layers_use_it_and_small_ones_do_not),
        cmocka_unit_test(the_exact_engine_never_uses_it),
        cmocka_unit_test(a_missing_instruction_set_is_refused),
    };
    (void)argc;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : once_more(argv);
}
