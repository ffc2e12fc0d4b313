/* Checkpoints: a written state is read back exactly, and a damaged file is never loaded. */
#include "model_io/checkpoint.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/rng.h"
#include "record/log/snapshot_json.h"

enum { FLOATS = 1000, WORKERS = 3, SIZE_MAX_FILE = 1 << 20 };

typedef struct fixture {
    char                 run[64], folder[96];
    at_task              task;
    float                params[FLOATS], moment[2][FLOATS];
    at_snapshot          snapshot;
    char                 state[1024];
    at_checkpoint_vector extra[2];
    uint32_t             extras, taken;
    uint64_t             memory[WORKERS * sizeof(at_member_snapshot) / 8];
    unsigned char       *bytes; /* of the newest file */
    size_t               size;
    char                 path[4096];
} fixture;

static fixture d;

static void write_step(uint64_t step)
{
    at_fail fail = {0};
    d.snapshot.version = step;
    json_t *snapshot = at_snapshot_json(&d.snapshot),
           *state = json_pack("{s:o}", "image", snapshot);
    char *text = json_dumps(state, JSON_COMPACT);
    json_decref(state);
    at_checkpoint_parts parts = {.task = &d.task,
                                 .step = step,
                                 .params = d.params,
                                 .moment = {d.moment[0], d.moment[1]},
                                 .moments = 2,
                                 .state = text,
                                 .extra = d.extra,
                                 .extras = d.extras};
    assert_int_equal(at_checkpoint_write(d.folder, &parts, &fail), AT_OK);
    free(text);
    snprintf(d.path, sizeof d.path, "%s/step-%012llu.safetensors", d.folder,
             (unsigned long long)step);
}

static int begin(void **state)
{
    (void)state;
    at_fail fail;
    memset(&d, 0, sizeof d);
    snprintf(d.run, sizeof d.run, "/tmp/anytime-checkpoint-XXXXXX");
    if (!mkdtemp(d.run)) return -1;
    snprintf(d.folder, sizeof d.folder, "%s/checkpoint", d.run);
    if (at_file_make_folder(d.folder, &fail)) return -1;
    d.task = (at_task){.model = "m", .data = "d", .params = FLOATS, .plain = FLOATS};
    for (int i = 0; i < FLOATS; i++) {
        d.params[i] = (float)i / 7;
        d.moment[0][i] = -(float)i;
        d.moment[1][i] = 1 / (float)(i + 1);
    }
    d.snapshot = (at_snapshot){.workers = WORKERS, .member = (void *)d.memory, .trace = 1ull << 63};
    for (int i = 0; i < WORKERS; i++)
        d.snapshot.member[i] =
            (at_member_snapshot){.used = 10, .share = {.samples = 5, .time_limit = 9}};
    d.snapshot.samples_used = 30;
    d.snapshot.size.bytes = d.state;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    return remove(path);
}

static int end(void **state)
{
    (void)state;
    free(d.bytes);
    return nftw(d.run, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static at_err read_with_target(const char *entry)
{
    at_snapshot *snapshot = NULL;
    at_fail      fail = {0};
    json_t      *object = at_snapshot_json(&d.snapshot);
    json_t      *target = json_loads(entry, 0, NULL);
    assert_non_null(object);
    assert_non_null(target);
    json_array_set_new(json_object_get(object, "targets"), 0, target);
    at_err err = at_snapshot_read(object, &snapshot, &fail);
    assert_int_equal(err == AT_OK, snapshot != NULL);
    json_decref(object);
    free(snapshot);
    return err;
}

static void targets_out_of_range_are_refused(void **state)
{
    (void)state;
    assert_int_equal(read_with_target("[true, 3, 1000]"), AT_OK);
    assert_int_equal(read_with_target("[true, -1, 1000]"), AT_ERR_FORMAT);
    assert_int_equal(read_with_target("[true, 3, -1]"), AT_ERR_FORMAT);
    assert_int_equal(read_with_target("[false, -1, 0]"), AT_ERR_FORMAT);
}

static void a_written_state_is_read_back(void **state)
{
    (void)state;
    at_checkpoint c;
    at_fail       fail = {0};
    float         vector[FLOATS];
    write_step(42);
    assert_int_equal(at_checkpoint_open(d.run, &c, &fail), AT_OK);
    assert_string_equal(c.path, d.path);
    assert_string_equal(c.damaged, "");
    assert_int_equal(c.snapshot->version, 42);
    assert_true(c.snapshot->trace == 1ull << 63);
    assert_int_equal(c.snapshot->workers, WORKERS);
    assert_memory_equal(c.snapshot->member, d.snapshot.member, WORKERS * sizeof *d.snapshot.member);
    assert_int_equal(at_checkpoint_params(&c, &d.task, vector, &fail), AT_OK);
    assert_memory_equal(vector, d.params, sizeof vector);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(at_checkpoint_moment(&c, &d.task, i, vector, &fail), AT_OK);
        assert_memory_equal(vector, d.moment[i], sizeof vector);
    }
    at_checkpoint_close(&c);
}

static at_err compare_extra(void *self, const char *name, const float *values, size_t count,
                            at_fail *fail)
{
    const at_checkpoint_vector *vector = &d.extra[strcmp(name, d.extra[0].name) == 0 ? 0 : 1];
    assert_ptr_equal(self, &d);
    assert_string_equal(name, vector->name);
    assert_int_equal(count, vector->count);
    assert_memory_equal(values, vector->values, count * sizeof *values);
    d.taken++;
    return d.taken == 3 ? at_fail_memory(fail) : AT_OK;
}

static void state_of_programs_is_read_back_by_name(void **state)
{
    (void)state;
    at_fail       fail;
    at_checkpoint saved;
    static float  momentum[] = {1, 2, 3}, step = 7;
    d.extra[0] = (at_checkpoint_vector){"optimizer.conv.weight.momentum", momentum, 3};
    d.extra[1] = (at_checkpoint_vector){.values = &step, .count = 1};
    memset(d.extra[1].name, 'n', sizeof d.extra[1].name - 1); /* the longest name */
    d.extras = 2;
    write_step(5);
    assert_int_equal(at_checkpoint_open(d.run, &saved, &fail), AT_OK);
    assert_int_equal(at_checkpoint_extras(&saved, compare_extra, &d, &fail), AT_OK);
    assert_int_equal(d.taken, 2);
    assert_int_equal(at_checkpoint_extras(&saved, compare_extra, &d, &fail), AT_ERR_FAILED);
    assert_int_equal(d.taken, 3); /* an error ends it */
    at_checkpoint_close(&saved);
}

static void another_model_is_refused(void **state)
{
    (void)state;
    at_checkpoint c;
    at_fail       fail = {0};
    float         vector[FLOATS];
    write_step(1);
    assert_int_equal(at_checkpoint_open(d.run, &c, &fail), AT_OK);
    at_task other = d.task;
    other.plain = other.params = FLOATS - 1;
    assert_int_equal(at_checkpoint_params(&c, &other, vector, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_checkpoint_moment(&c, &other, 0, vector, &fail), AT_ERR_FORMAT);
    at_checkpoint_close(&c);
}

static void the_newest_two_are_kept(void **state)
{
    (void)state;
    for (uint64_t step = 0; step < 5; step++) write_step(step);
    for (uint64_t step = 0; step < 5; step++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/step-%012llu.safetensors", d.folder,
                 (unsigned long long)step);
        assert_int_equal(access(path, F_OK), step < 3 ? -1 : 0);
    }
}

/* A run that goes on from an earlier step, because the later ones cannot be read, keeps its own. */
static void a_checkpoint_replaces_those_of_later_steps(void **state)
{
    (void)state;
    at_checkpoint c;
    at_fail       fail = {0};
    for (uint64_t step = 8; step < 10; step++) {
        write_step(step);
        assert_int_equal(truncate(d.path, 100), 0);
    }
    write_step(5);
    assert_int_equal(at_checkpoint_open(d.run, &c, &fail), AT_OK);
    assert_int_equal(c.snapshot->version, 5);
    assert_string_equal(c.damaged, "");
    at_checkpoint_close(&c);
}

static void read_newest(void)
{
    at_fail fail;
    free(d.bytes);
    assert_int_equal(at_file_read(d.path, SIZE_MAX_FILE, &d.bytes, &d.size, &fail), AT_OK);
}

/* Replaces the file by these bytes; it must be refused. */
static void assert_refused(const unsigned char *bytes, size_t size)
{
    at_checkpoint c;
    at_fail       fail = {0};
    FILE         *file = fopen(d.path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    assert_int_equal(at_checkpoint_open(d.run, &c, &fail), AT_ERR_FORMAT);
    assert_null(c.state);
}

static size_t header_size(void)
{
    uint64_t length = 0;
    for (int i = 8; i-- > 0;) length = length << 8 | d.bytes[i];
    return 8 + (size_t)length;
}

static void a_truncated_file_is_never_loaded(void **state)
{
    (void)state;
    at_rng rng = at_rng_stream(1, 1, AT_RNG_PURPOSE_TEST, 0);
    write_step(7);
    read_newest();
    size_t header = header_size();
    assert_true(header < d.size);
    for (size_t cut = 0; cut <= header; cut++) assert_refused(d.bytes, cut);
    for (int i = 0; i < 1000; i++)
        assert_refused(d.bytes, header + at_rng_below(&rng, (uint32_t)(d.size - header)));
}

static void a_file_with_a_flipped_bit_is_never_loaded(void **state)
{
    (void)state;
    at_rng rng = at_rng_stream(1, 2, AT_RNG_PURPOSE_TEST, 0);
    write_step(7);
    read_newest();
    size_t header = header_size();
    for (size_t i = 0; i < header + 1000; i++) {
        size_t at = i < header ? i : header + at_rng_below(&rng, (uint32_t)(d.size - header));
        unsigned char bit = (unsigned char)(1u << at_rng_below(&rng, 8));
        d.bytes[at] ^= bit;
        assert_refused(d.bytes, d.size);
        d.bytes[at] ^= bit;
    }
}

static void bytes_after_the_checksum_are_refused(void **state)
{
    (void)state;
    write_step(7);
    read_newest();
    assert_refused(d.bytes, d.size + 1); /* at_file_read left a zero there */
}

static void a_damaged_checkpoint_is_reported_and_the_previous_one_used(void **state)
{
    (void)state;
    at_checkpoint c;
    at_fail       fail = {0};
    write_step(7);
    write_step(8);
    assert_int_equal(truncate(d.path, 100), 0);
    assert_int_equal(at_checkpoint_open(d.run, &c, &fail), AT_OK);
    assert_int_equal(c.snapshot->version, 7);
    assert_non_null(strstr(c.damaged, "step-000000000008"));
    at_checkpoint_close(&c);
}

/* The checksum protects against accidents, not against forgery. */
static void a_valid_checksum_with_an_invalid_state_is_refused(void **state)
{
    (void)state;
    static const char *const absurd[] = {
        "{}",
        "{\"image\": 3}",
        "{\"image\": {\"members\": [], \"size_state\": {\"bytes\": \"\"}}}",
        "{\"image\": {\"members\": [[1,2,3,4,5,6,7,8.0]], \"size_state\": {\"bytes\": \"abc\"}}}",
        "not JSON",
    };
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        at_checkpoint       c;
        at_fail             fail = {0};
        at_checkpoint_parts parts = {
            .task = &d.task, .step = 3, .params = d.params, .state = absurd[i]};
        assert_int_equal(at_checkpoint_write(d.folder, &parts, &fail), AT_OK);
        assert_int_equal(at_checkpoint_open(d.run, &c, &fail), AT_ERR_FORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_written_state_is_read_back, begin, end),
        cmocka_unit_test_setup_teardown(targets_out_of_range_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(state_of_programs_is_read_back_by_name, begin, end),
        cmocka_unit_test_setup_teardown(another_model_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(the_newest_two_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(a_checkpoint_replaces_those_of_later_steps, begin, end),
        cmocka_unit_test_setup_teardown(a_truncated_file_is_never_loaded, begin, end),
        cmocka_unit_test_setup_teardown(a_file_with_a_flipped_bit_is_never_loaded, begin, end),
        cmocka_unit_test_setup_teardown(bytes_after_the_checksum_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_damaged_checkpoint_is_reported_and_the_previous_one_used,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_valid_checksum_with_an_invalid_state_is_refused, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
