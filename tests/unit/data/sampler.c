#include "data/draw/sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static at_sampler make(uint64_t seed, uint64_t worker, uint64_t samples)
{
    at_sampler sampler;
    assert_int_equal(at_sampler_init(&sampler, seed, worker, 8, samples, false, NULL), AT_OK);
    return sampler;
}

static uint64_t *walk(const at_sampler *sampler, uint64_t position, uint32_t count)
{
    uint64_t *indices = malloc(count * sizeof *indices);
    assert_non_null(indices);
    at_sampler_indices(sampler, position, indices, count);
    return indices;
}

static bool is_permutation(const uint64_t *indices, uint64_t first, uint64_t count)
{
    unsigned char *seen = calloc(count, 1);
    bool           good = true;
    for (uint64_t i = 0; i < count && good; i++) {
        uint64_t offset = indices[i] - first;
        good = offset < count && !seen[offset];
        if (good) seen[offset] = 1;
    }
    free(seen);
    return good;
}

static void every_epoch_visits_every_sample_once(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1,   2,   3,    4,    5,    7,     16,    17,
                                     100, 255, 1000, 1024, 6000, 50000, 60000, 65536};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint64_t pass = 0; pass < 3; pass++) {
            at_sampler sampler = make(pass + s, s % 9, sizes[s]);
            uint64_t  *order = walk(&sampler, pass * sizes[s], (uint32_t)sizes[s]);
            assert_true(is_permutation(order, 0, sizes[s]));
            free(order);
        }
}

static void workers_beyond_the_shards_draw_from_the_whole_set(void **state)
{
    (void)state;
    for (uint64_t worker = 9; worker < 30; worker += 10) {
        at_sampler sampler;
        assert_int_equal(at_sampler_init(&sampler, 3, worker, 8, 1000, true, NULL), AT_OK);
        uint64_t *order = walk(&sampler, 0, 1000);
        assert_true(is_permutation(order, 0, 1000));
        free(order);
    }
}

static void workers_beyond_those_expected_start_between_two_others(void **state)
{
    (void)state;
    static const uint64_t starts[] = {0, 250, 500, 750, 125, 375, 625, 875, 125};
    for (uint64_t worker = 1; worker <= sizeof starts / sizeof *starts; worker++) {
        at_sampler sampler;
        assert_int_equal(at_sampler_init(&sampler, 3, worker, 4, 1000, false, NULL), AT_OK);
        assert_int_equal(sampler.start, starts[worker - 1]);
    }
}

static void small_sizes_are_all_permuted(void **state)
{
    (void)state;
    for (uint64_t size = 1; size <= 300; size++) {
        at_sampler sampler = make(7, 1, size);
        uint64_t  *order = walk(&sampler, 12 * size, (uint32_t)size);
        assert_true(is_permutation(order, 0, size));
        free(order);
    }
}

static void indices_of_huge_sets_stay_in_range(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {(uint64_t)1 << 40, ((uint64_t)1 << 62) + 12345, UINT64_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        at_sampler sampler = make(1, 1, sizes[s]);
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t position = sizes[s] - 1 - i * 977;
            assert_true(at_sampler_index(&sampler, position) < sizes[s]);
        }
    }
}

static void epochs_workers_and_seeds_have_different_orders(void **state)
{
    (void)state;
    enum { SIZE = 1000 };
    at_sampler base = make(1, 1, SIZE), worker = make(1, 2, SIZE), seed = make(2, 1, SIZE);
    uint64_t  *orders[] = {walk(&base, 0, SIZE), walk(&base, SIZE, SIZE), walk(&worker, 0, SIZE),
                           walk(&seed, 0, SIZE)};
    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++) {
            int equal = 0;
            for (int i = 0; i < SIZE; i++) equal += orders[a][i] == orders[b][i];
            assert_true(equal < 15); /* unrelated orders have one equal position on average */
        }
    for (int a = 0; a < 4; a++) free(orders[a]);
}

static void a_position_always_has_the_same_sample(void **state)
{
    (void)state;
    enum { SIZE = 777, COUNT = 2500 };
    at_sampler sampler = make(3, 4, SIZE);
    uint64_t  *whole = walk(&sampler, 100, COUNT);
    uint64_t   parts[COUNT];
    for (uint32_t done = 0, step = 1; done < COUNT; done += step, step = step * 3 % 101 + 1) {
        if (step > COUNT - done) step = COUNT - done;
        at_sampler_indices(&sampler, 100 + done, parts + done, step);
    }
    assert_memory_equal(parts, whole, sizeof parts);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(at_sampler_index(&sampler, 100 + i), whole[i]);
    free(whole);
}

/* Chi-square of pairs (a[i], b[i]) in 16 x 16 boxes, as a multiple of its deviation. */
static double surprise(const uint64_t *a, const uint64_t *b, uint64_t count, uint64_t samples)
{
    enum { SIDE = 16 };
    double boxes[SIDE][SIDE] = {{0}}, sum = 0.0;
    double expected = (double)count / (SIDE * SIDE), freedom = (SIDE - 1) * (SIDE - 1);
    for (uint64_t i = 0; i < count; i++) boxes[a[i] * SIDE / samples][b[i] * SIDE / samples]++;
    for (int x = 0; x < SIDE; x++)
        for (int y = 0; y < SIDE; y++)
            sum += (boxes[x][y] - expected) * (boxes[x][y] - expected) / expected;
    return (sum - freedom) / sqrt(2.0 * freedom);
}

static void an_order_looks_random(void **state)
{
    (void)state;
    enum { SIZE = 60000, EPOCHS = 20 };
    uint64_t *positions = malloc(SIZE * sizeof *positions);
    double    place = 0.0, neighbor = 0.0, column = 0.0, epoch_to_epoch = 0.0;
    for (uint64_t i = 0; i < SIZE; i++) positions[i] = i;
    for (uint64_t pass = 0; pass < EPOCHS; pass++) {
        at_sampler sampler = make(1, 1 + pass % 2, SIZE);
        uint64_t  *order = walk(&sampler, pass * SIZE, SIZE);
        uint64_t  *next = walk(&sampler, (pass + 1) * SIZE, SIZE);
        uint64_t   step = sampler.columns;
        place += surprise(positions, order, SIZE, SIZE);
        neighbor += surprise(order, order + 1, SIZE - 1, SIZE);
        column += surprise(order, order + step, SIZE - step, SIZE);
        epoch_to_epoch += surprise(order, next, SIZE, SIZE);
        free(order);
        free(next);
    }
    /* Sums of EPOCHS numbers of deviation 1; four rounds instead of six would fail the third. */
    assert_true(fabs(place) < 4.0 * sqrt(EPOCHS));
    assert_true(fabs(neighbor) < 4.0 * sqrt(EPOCHS));
    assert_true(fabs(column) < 4.0 * sqrt(EPOCHS));
    assert_true(fabs(epoch_to_epoch) < 4.0 * sqrt(EPOCHS));
    free(positions);
}

static void shards_divide_the_set_evenly(void **state)
{
    (void)state;
    static const uint64_t cases[][2] = {{1, 1}, {10, 3}, {7, 7}, {60000, 11}, {1000, 999}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        uint64_t samples = cases[c][0], workers = cases[c][1], next = 0;
        for (uint64_t w = 1; w <= workers; w++) {
            at_sampler sampler;
            assert_int_equal(at_sampler_init(&sampler, 1, w, workers, samples, true, NULL), AT_OK);
            assert_int_equal(sampler.first, next);
            assert_in_range(sampler.count, samples / workers, samples / workers + 1);
            uint64_t *order = walk(&sampler, 5 * sampler.count, (uint32_t)sampler.count);
            assert_true(is_permutation(order, sampler.first, sampler.count));
            free(order);
            next += sampler.count;
        }
        assert_int_equal(next, samples);
    }
}

static void in_order_workers_start_evenly_spaced_and_wrap(void **state)
{
    (void)state;
    at_sampler sampler;
    for (uint64_t w = 1; w <= 4; w++) {
        assert_int_equal(at_sampler_init(&sampler, 1, w, 4, 10, false, NULL), AT_OK);
        sampler.in_order = true;
        static const uint64_t starts[] = {0, 3, 6, 8};
        uint64_t             *order = walk(&sampler, 0, 25);
        for (uint64_t i = 0; i < 25; i++) {
            assert_int_equal(order[i], (starts[w - 1] + i) % 10);
            assert_int_equal(at_sampler_index(&sampler, i), order[i]);
            assert_int_equal(at_sampler_run(&sampler, i), 10 - order[i]);
        }
        free(order);
    }
}

static void a_run_in_order_stays_inside_the_shard(void **state)
{
    (void)state;
    at_sampler sampler;
    assert_int_equal(at_sampler_init(&sampler, 1, 2, 3, 10, true, NULL), AT_OK);
    sampler.in_order = true;
    assert_int_equal(sampler.first, 4);
    assert_int_equal(at_sampler_run(&sampler, 0), 3);
    assert_int_equal(at_sampler_index(&sampler, 2), 6);
    assert_int_equal(at_sampler_run(&sampler, 2), 1);
    assert_int_equal(at_sampler_index(&sampler, 3), 4);
    sampler.in_order = false;
    assert_int_equal(at_sampler_run(&sampler, 0), 1);
}

/* Samples 0 .. count-1 of a synthetic set have the labels 0 1 2 .. 0 1 2 .. */
static at_dataset *open_set(const char *name)
{
    at_dataset *set;
    assert_int_equal(at_dataset_open(name, AT_SPLIT_TRAIN, &set, NULL), AT_OK);
    return set;
}

static void by_class_every_sample_has_one_owner(void **state)
{
    (void)state;
    static const uint32_t workers[] = {1, 2, 3, 7, 10};
    at_dataset           *set = open_set("synthetic:1003,2,10");
    for (size_t n = 0; n < sizeof workers / sizeof *workers; n++) {
        at_shards      shards;
        unsigned char *seen = calloc(1003, 1);
        assert_int_equal(at_shards_init(&shards, AT_SHARD_BY_CLASS, set, 1003, workers[n], NULL),
                         AT_OK);
        for (uint32_t w = 1; w <= workers[n]; w++) {
            at_sampler sampler;
            at_sampler_init_shards(&sampler, 1, w, &shards);
            uint64_t *order = walk(&sampler, 3 * sampler.count, (uint32_t)sampler.count);
            for (uint64_t i = 0; i < sampler.count; i++) {
                assert_int_equal(at_dataset_label(set, order[i]) % workers[n], w - 1);
                assert_false(seen[order[i]]++);
                assert_int_equal(at_sampler_index(&sampler, 3 * sampler.count + i), order[i]);
            }
            free(order);
        }
        for (int i = 0; i < 1003; i++) assert_true(seen[i]);
        free(seen);
        at_shards_deinit(&shards);
    }
    at_dataset_free(set);
}

static void the_shared_walk_ignores_shards(void **state)
{
    (void)state;
    at_dataset *set = open_set("synthetic:50,2,5");
    at_shards   shards;
    at_sampler  common, plain = make(1, 0, 50);
    assert_int_equal(at_shards_init(&shards, AT_SHARD_BY_CLASS, set, 50, 5, NULL), AT_OK);
    at_sampler_init_shards(&common, 1, 0, &shards);
    for (uint64_t i = 0; i < 120; i++)
        assert_int_equal(at_sampler_index(&common, i), at_sampler_index(&plain, i));
    at_shards_deinit(&shards);
    at_dataset_free(set);
}

static void an_empty_shard_is_refused_and_names_its_worker(void **state)
{
    (void)state;
    at_dataset *set = open_set("synthetic:100,2,10");
    at_shards   shards;
    at_fail     fail = {0};
    assert_int_equal(at_shards_init(&shards, AT_SHARD_BY_CLASS, set, 100, 12, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "worker 11 of 12"));
    assert_non_null(strstr(fail.text, "10 classes"));
    assert_null(shards.list);
    assert_int_equal(at_shards_init(&shards, AT_SHARD_BY_CLASS, NULL, 100, 2, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "classes"));
    assert_int_equal(at_shards_init(&shards, AT_SHARD_YES, NULL, 4, 5, &fail), AT_ERR_USAGE);
    assert_int_equal(at_shards_init(&shards, AT_SHARD_NO, NULL, 4, 5, &fail), AT_OK);
    at_dataset_free(set);
}

/* More workers than samples, and more positions than both. */
static void a_tiny_set_is_repeated(void **state)
{
    (void)state;
    at_shards shards;
    assert_int_equal(at_shards_init(&shards, AT_SHARD_NO, NULL, 3, 8, NULL), AT_OK);
    for (uint32_t w = 1; w <= 8; w++) {
        at_sampler sampler;
        at_sampler_init_shards(&sampler, 1, w, &shards);
        uint64_t *order = walk(&sampler, 0, 300);
        for (int i = 0; i < 300; i += 3) assert_true(is_permutation(order + i, 0, 3));
        free(order);
    }
}

static void impossible_settings_are_refused(void **state)
{
    (void)state;
    at_sampler sampler;
    at_fail    fail = {0};
    assert_int_equal(at_sampler_init(&sampler, 1, 1, 1, 0, false, &fail), AT_ERR_USAGE);
    assert_int_equal(at_sampler_init(&sampler, 1, 1, 5, 4, true, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "4 samples"));
    assert_int_equal(at_sampler_init(&sampler, 1, 5, 5, 4, false, &fail), AT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_epoch_visits_every_sample_once),
        cmocka_unit_test(small_sizes_are_all_permuted),
        cmocka_unit_test(workers_beyond_the_shards_draw_from_the_whole_set),
        cmocka_unit_test(workers_beyond_those_expected_start_between_two_others),
        cmocka_unit_test(indices_of_huge_sets_stay_in_range),
        cmocka_unit_test(epochs_workers_and_seeds_have_different_orders),
        cmocka_unit_test(a_position_always_has_the_same_sample),
        cmocka_unit_test(an_order_looks_random),
        cmocka_unit_test(shards_divide_the_set_evenly),
        cmocka_unit_test(in_order_workers_start_evenly_spaced_and_wrap),
        cmocka_unit_test(a_run_in_order_stays_inside_the_shard),
        cmocka_unit_test(by_class_every_sample_has_one_owner),
        cmocka_unit_test(the_shared_walk_ignores_shards),
        cmocka_unit_test(an_empty_shard_is_refused_and_names_its_worker),
        cmocka_unit_test(a_tiny_set_is_repeated),
        cmocka_unit_test(impossible_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
