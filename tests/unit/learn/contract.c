/* The contract of at_model_gradient: sums over calls equal sums of vectors, bit for bit. */
#include "fixture.h"
#include "learn/engines/kernels.h"

typedef struct job {
    const char *name;
    at_shape    shape;
    uint32_t    rows;
} job;

static const job jobs[] = {
    {"softmax", {.features = 784, .classes = 10}, 32},
    {"softmax", {.features = 13, .classes = 3}, 9},
    {"softmax", {.features = 50, .classes = 100}, 20},
    {"mlp:300,100", {.features = 784, .classes = 10}, 32},
    {"mlp:37,41", {.features = 29, .classes = 33}, 400},
    {"mlp:64", {.features = 20, .classes = 5}, 1000},
    {"mlp:300", {.features = 784, .classes = 40}, 64},
    {"mlp:33,7,35", {.features = 30, .classes = 12}, 131},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* Call sizes to try: all small ones, then strides that hit odd and even numbers, then rows. */
static uint32_t next_count(uint32_t count, uint32_t rows)
{
    if (count == rows) return 0;
    uint32_t next = count < 34 ? count + 1 : count + count / 5;
    return next < rows ? next : rows;
}

/* Three calls into one vector against three vectors summed in the same order. */
static void check_sum_of_calls(fixture *f, uint32_t count, float *one, float *two)
{
    size_t size = f->params * sizeof(float);
    memset(one, 0, size);
    memset(two, 0, size);
    for (uint32_t call = 0; call < 3; call++) {
        double loss_one = at_model_gradient(f->model, one, f->w, f->x, f->labels, count);
        memset(f->g, 0, size);
        double loss_two = at_model_gradient(f->model, f->g, f->w, f->x, f->labels, count);
        assert_true(loss_one == loss_two);
        for (size_t i = 0; i < f->params; i++) two[i] += f->g[i];
        for (size_t i = 0; i < f->params; i++) f->w[i] *= 0.75f; /* so that calls differ */
    }
    assert_memory_equal(one, two, size);
}

static void n_calls_into_one_vector_equal_n_vectors_summed_in_order(void **state)
{
    (void)state;
    for (size_t j = 0; j < JOBS; j++)
        for (int engine = AT_ENGINE_FAST; engine <= AT_ENGINE_REF; engine++) {
            if (engine == AT_ENGINE_REF && jobs[j].shape.features > 500) continue; /* slow */
            fixture f = fixture_new(jobs[j].name, jobs[j].shape, (at_engine)engine, jobs[j].rows);
            float  *one = floats(f.params), *two = floats(f.params);
            for (uint32_t n = 1; n; n = next_count(n, f.rows)) check_sum_of_calls(&f, n, one, two);
            free(one);
            free(two);
            fixture_free(&f);
        }
}

static void gradient_set_equals_zeroing_and_adding(void **state)
{
    (void)state;
    for (size_t j = 0; j < JOBS; j++) {
        fixture f = fixture_new(jobs[j].name, jobs[j].shape, AT_ENGINE_FAST, jobs[j].rows);
        size_t  size = f.params * sizeof(float);
        float  *set = floats(f.params);
        memset(f.x, 0, (size_t)f.rows * f.shape.features / 3 * sizeof(float)); /* make zero sums */
        for (uint32_t n = 1; n; n = next_count(n, f.rows)) {
            memset(set, 0x7f, size); /* previous content must not matter */
            memset(f.g, 0, size);
            double loss_set = at_model_gradient_set(f.model, set, f.w, f.x, f.labels, n);
            double loss_add = at_model_gradient(f.model, f.g, f.w, f.x, f.labels, n);
            assert_true(loss_set == loss_add);
            assert_memory_equal(set, f.g, size);
        }
        free(set);
        fixture_free(&f);
    }
}

/* dw set and then added to, against dw computed twice and summed here. */
static void check_table(const at_kernels *k, size_t B, size_t I, size_t O)
{
    at_rng rng = at_rng_stream(2, 0, AT_RNG_PURPOSE_TEST, B);
    size_t n = I * O;
    float *x = floats(B * I), *dy = floats(B * O), *sum = floats(n), *one = floats(n);
    float *scratch = floats((k->dense_scratch ? k->dense_scratch(B, I, O) : 0) + 1);
    fill(x, B * I, 1, &rng);
    fill(dy, B * O, 1, &rng);
    fill(sum, n, 1, &rng); /* must not matter */
    k->dense_weight(sum, dy, x, B, I, O, AT_WRITE_SET, scratch);
    memcpy(one, sum, n * sizeof(float));
    for (int call = 0; call < 2; call++) {
        for (size_t i = 0; i < B * O; i++) dy[i] = -1.37f * dy[i];
        float *more = floats(n);
        k->dense_weight(sum, dy, x, B, I, O, AT_WRITE_ADD, scratch);
        k->dense_weight(more, dy, x, B, I, O, AT_WRITE_ADD, scratch);
        for (size_t i = 0; i < n; i++) one[i] += more[i];
        free(more);
        assert_memory_equal(sum, one, n * sizeof(float));
    }
    float *all[] = {x, dy, sum, one, scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void every_engine_adds_a_finished_sum_once(void **state)
{
    (void)state;
    static const at_kernels *const tables[] = {&at_kernels_ref, &at_kernels_portable,
                                               &at_kernels_blas};
    const at_kernels              *wide = at_kernels_dense(AT_ENGINE_FAST, 100, 100);
    for (size_t B = 1; B < 500; B += 1 + B / 9) {
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
            check_table(tables[t], B, 30, 33);
        check_table(&at_kernels_blas, B, 130, 45);
        check_table(at_kernels_elementwise(AT_ENGINE_FAST), B, 43, 12);
        check_table(wide, B, 37, 40);
    }
    check_table(&at_kernels_blas, 128, 784, 300);
    check_table(wide, 32, 784, 300);
}

static void the_same_call_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t j = 0; j < JOBS; j++) {
        fixture a = fixture_new(jobs[j].name, jobs[j].shape, AT_ENGINE_FAST, jobs[j].rows);
        fixture b = fixture_new(jobs[j].name, jobs[j].shape, AT_ENGINE_FAST, jobs[j].rows);
        double  loss_a = at_model_gradient(a.model, a.g, a.w, a.x, a.labels, a.rows);
        double  loss_b = at_model_gradient(b.model, b.g, b.w, b.x, b.labels, b.rows);
        assert_true(loss_a == loss_b);
        assert_memory_equal(a.g, b.g, a.params * sizeof(float));
        fixture_free(&a);
        fixture_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(n_calls_into_one_vector_equal_n_vectors_summed_in_order),
        cmocka_unit_test(gradient_set_equals_zeroing_and_adding),
        cmocka_unit_test(every_engine_adds_a_finished_sum_once),
        cmocka_unit_test(the_same_call_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
