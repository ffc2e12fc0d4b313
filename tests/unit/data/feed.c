/* The samples of a run. */
#include "data/draw/feed.h"

#include "data/draw/sampler.h"
#include "data/prep/prep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static at_fail fail;

static at_feed_options plain(void)
{
    return (at_feed_options){.data = "synthetic:300,12,6", .seed = 4, .workers = 3};
}

static at_feed *make(const at_feed_options *o, uint32_t rows)
{
    at_feed *feed;
    if (at_feed_new(o, &feed, &fail)) fail_msg("%s (%s)", fail.text, fail.hint);
    assert_int_equal(at_feed_alloc_buffers(feed, rows, &fail), AT_OK);
    return feed;
}

static void refuse(const at_feed_options *o, at_err code, const char *words)
{
    at_feed *feed;
    assert_int_equal(at_feed_new(o, &feed, &fail), code);
    assert_null(feed);
    if (!strstr(fail.text, words)) fail_msg("\"%s\" lacks \"%s\"", fail.text, words);
}

static void a_draw_follows_the_sampler(void **state)
{
    (void)state;
    at_feed_options o = plain();
    at_feed        *feed = make(&o, 16);
    at_dataset     *set;
    at_sampler      sampler;
    assert_int_equal(at_dataset_open(o.data, AT_SPLIT_TRAIN, &set, &fail), AT_OK);
    for (uint64_t walk = 0; walk <= 3; walk++) {
        assert_int_equal(at_sampler_init(&sampler, 4, walk, 3, 300, false, &fail), AT_OK);
        for (uint64_t position = 290; position < 320; position += 10) {
            float        x[10 * 12];
            uint32_t     labels[10];
            uint64_t     indices[10];
            at_feed_rows rows = at_feed_train(feed, &(at_feed_draw){walk, position, 10}, 16);
            at_sampler_indices(&sampler, position, indices, 10);
            at_dataset_rows(set, x, labels, indices, 10);
            assert_memory_equal(rows.x, x, sizeof x);
            assert_memory_equal(rows.labels, labels, sizeof labels);
        }
    }
    assert_int_equal(at_feed_count(feed, AT_SPLIT_TRAIN), 300);
    assert_int_equal(at_feed_count(feed, AT_SPLIT_TEST), 60);
    assert_int_equal(at_feed_classes(feed), 6);
    at_dataset_free(set);
    at_feed_free(feed);
}

/* For any division of a walk into draws, any prefetching, and draws of other workers in between. */
static void a_position_always_gives_the_same_sample(void **state)
{
    (void)state;
    at_feed_options o = plain();
    o.data = "synthetic:300,3x8x8,6";
    o.prep = "pad:2,crop:8,flip,normalise";
    at_feed *a = make(&o, 64), *b = make(&o, 7);
    size_t   size = 3 * 8 * 8;
    for (uint64_t walk = 0; walk <= 3; walk++) {
        at_feed_rows whole = at_feed_train(a, &(at_feed_draw){walk, 280, 64}, 64);
        uint32_t     step = 1;
        for (uint32_t done = 0; done < 64; done += step, step = done % 7 + 1) {
            if (step > 64 - done) step = 64 - done;
            if (done % 3 == 0) at_feed_train(b, &(at_feed_draw){done % 4, done, 2}, 5);
            if (done % 5 == 0) at_feed_test(b, 3, 4);
            at_feed_rows part = at_feed_train(b, &(at_feed_draw){walk, 280 + done, step}, 7);
            assert_memory_equal(part.x, whole.x + done * size, step * size * sizeof(float));
            assert_memory_equal(part.labels, whole.labels + done, step * sizeof(uint32_t));
        }
    }
    at_feed_free(a);
    at_feed_free(b);
}

static void test_samples_are_prepared_without_randomness(void **state)
{
    (void)state;
    at_feed_options o = plain();
    o.data = "synthetic:300,3x8x8,6";
    o.prep = "pad:2,crop:4,flip,grey";
    at_feed     *feed = make(&o, 8);
    float        first[8 * 16];
    at_feed_rows rows = at_feed_test(feed, 10, 8);
    memcpy(first, rows.x, sizeof first);
    o.seed = 99;
    at_feed *other = make(&o, 8);
    assert_memory_equal(at_feed_test(other, 10, 8).x, first, sizeof first);
    at_image_shape p = at_feed_shape(feed);
    assert_true(p.channels == 1 && p.height == 4 && p.width == 4);
    at_feed_free(feed);
    at_feed_free(other);
}

static void shards_by_class_contain_only_their_classes(void **state)
{
    (void)state;
    at_feed_options o = plain();
    o.shard = AT_SHARD_BY_CLASS;
    at_feed *feed = make(&o, 32);
    for (uint64_t walk = 1; walk <= 3; walk++)
        for (uint64_t position = 0; position < 320; position += 32) {
            at_feed_rows rows = at_feed_train(feed, &(at_feed_draw){walk, position, 32}, 32);
            for (int i = 0; i < 32; i++) assert_int_equal(rows.labels[i] % 3, walk - 1);
        }
    at_feed_free(feed);
}

static void impossible_options_are_refused(void **state)
{
    (void)state;
    at_feed_options o = plain();
    o.prep = "crop:4";
    refuse(&o, AT_ERR_USAGE, "crop:4");
    o = plain(), o.shard = AT_SHARD_BY_CLASS, o.workers = 7;
    refuse(&o, AT_ERR_USAGE, "worker 7 of 7");
    o = plain(), o.shard = AT_SHARD_YES, o.workers = 301;
    refuse(&o, AT_ERR_USAGE, "301 workers");
    o = plain(), o.test_data = "synthetic:10,3,2";
    refuse(&o, AT_ERR_FORMAT, "features");
    o = plain(), o.data = "no/such/thing";
    refuse(&o, AT_ERR_MISSING, "no/such/thing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_draw_follows_the_sampler),
        cmocka_unit_test(a_position_always_gives_the_same_sample),
        cmocka_unit_test(test_samples_are_prepared_without_randomness),
        cmocka_unit_test(shards_by_class_contain_only_their_classes),
        cmocka_unit_test(impossible_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
