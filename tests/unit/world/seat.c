/* Specs, messages and shared memory of seats. What comes from a peer may be anything. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "world/seat/seat_client.h"
#include "world/seat/seat_memory.h"
#include "world/seat/seat_spec.h"
#include "world/seat/seat_wire.h"

static at_seat_tensor tensors[] = {
    {.name = "a.weight", .shape = {3, 4}, .dims = 2},
    {.name = "a.bias", .dims = 0, .group = 1},
    {.name = "norm.mean", .shape = {5}, .dims = 1, .role = AT_SEAT_BUFFER}};
static at_seat_group groups[] = {{.lr = 0.1, .momentum = 0.9, .nesterov = 1}, {.lr = 0.01}};

static at_seat_spec good(void)
{
    return (at_seat_spec){.model = "toy",
                          .tensors = tensors,
                          .tensors_count = 3,
                          .groups = groups,
                          .groups_count = 2,
                          .batch = 32,
                          .samples = 1000};
}

/* ---- specs ----------------------------------------------------------------------------------- */

static void a_spec_survives_its_way_to_the_hub(void **state)
{
    (void)state;
    at_fail      fail = {0};
    at_seat_spec given = good();
    at_spec      spec, back;
    assert_int_equal(at_spec_new(&given, &spec, &fail), AT_OK);
    assert_int_equal(spec.floats, 12 + 1 + 5);
    assert_int_equal(spec.trained, 13);
    assert_int_equal(spec.ranges[2].group, -1);
    json_t *json = at_spec_write(&spec);
    assert_int_equal(at_spec_read(json, &back, &fail), AT_OK);
    assert_int_equal(at_spec_compare(&spec, &back, &fail), AT_OK);
    assert_memory_equal(spec.group, back.group, sizeof spec.group);
    assert_int_equal(back.samples, 1000);
    json_decref(json);
    at_spec_deinit(&spec);
    at_spec_deinit(&back);
}

static void refuse(at_seat_spec given, const char *words)
{
    at_fail fail = {0};
    at_spec spec;
    assert_int_equal(at_spec_new(&given, &spec, &fail), AT_ERR_USAGE);
    if (!strstr(fail.text, words)) fail_msg("'%s' is not in: %s", words, fail.text);
}

static void a_wrong_spec_is_refused_with_a_sentence(void **state)
{
    (void)state;
    at_seat_spec   spec = good();
    at_seat_tensor wrong[3];
    at_seat_group  bad = {.lr = NAN};
    spec.tensors_count = 0;
    refuse(spec, "0 tensors");
    spec = good();
    spec.optimizer = "lbfgs";
    refuse(spec, "no optimizer 'lbfgs'");
    spec = good();
    spec.groups = &bad;
    refuse(spec, "out of range");
    spec = good();
    spec.tensors = wrong;
    memcpy(wrong, tensors, sizeof wrong);
    wrong[1].name = "a.weight";
    refuse(spec, "listed twice");
    wrong[1].name = "";
    refuse(spec, "has no name");
    memcpy(wrong, tensors, sizeof wrong);
    wrong[0].role = AT_SEAT_BUFFER;
    refuse(spec, "behind a buffer");
    memcpy(wrong, tensors, sizeof wrong);
    wrong[0].shape[0] = wrong[0].shape[1] = UINT32_MAX;
    wrong[0].shape[2] = UINT32_MAX;
    wrong[0].dims = 3;
    refuse(spec, "too large");
    memcpy(wrong, tensors, sizeof wrong);
    wrong[0].group = 2;
    refuse(spec, "does not exist");
    memcpy(wrong, tensors, sizeof wrong);
    wrong[2].name = "norm\xff";
    refuse(spec, "not UTF-8");
    spec = good();
    spec.model = "toy\xff";
    refuse(spec, "not UTF-8");
}

static void a_long_name_of_a_model_is_cut_between_characters(void **state)
{
    (void)state;
    char         name[AT_SPEC_MODEL_SIZE + 8] = "";
    at_fail      fail = {0};
    at_seat_spec given = good();
    at_spec      spec;
    for (size_t i = 0; i < 34; i++) memcpy(name + 2 * i, "\xc3\xa9", 3);
    given.model = name;
    assert_int_equal(at_spec_new(&given, &spec, &fail), AT_OK);
    assert_int_equal(strlen(spec.model), AT_SPEC_MODEL_SIZE - 2);
    json_t *json = at_spec_write(&spec);
    assert_non_null(json);
    json_decref(json);
    at_spec_deinit(&spec);
}

static void seats_that_train_something_else_are_told_what(void **state)
{
    (void)state;
    at_fail        fail = {0};
    at_seat_spec   given = good();
    at_seat_tensor other[3];
    at_spec        first, second;
    assert_int_equal(at_spec_new(&given, &first, &fail), AT_OK);
    memcpy(other, tensors, sizeof other);
    other[0].shape[0] = 4;
    given.tensors = other;
    assert_int_equal(at_spec_new(&given, &second, &fail), AT_OK);
    assert_int_equal(at_spec_compare(&first, &second, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "a.weight"));
    at_spec_deinit(&second);
    at_spec_deinit(&first);
}

static void json_of_a_peer_may_be_anything(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"model\":1}",
        "{\"model\":\"m\",\"optimizer\":\"sgd\",\"at_workers\":false,\"batch\":0,\"samples\":1,"
        "\"tensors\":[],\"groups\":[]}",
        "{\"model\":\"m\",\"optimizer\":\"sgd\",\"at_workers\":false,\"batch\":1,\"samples\":1,"
        "\"tensors\":[[\"a\",0,[-3]]],\"groups\":[[1,0,0,0,0,0,0,0,0,0]]}",
        "{\"model\":\"m\",\"optimizer\":\"sgd\",\"at_workers\":false,\"batch\":1,\"samples\":1,"
        "\"tensors\":[[\"a\",7,[3]]],\"groups\":[[1,0,0,0,0,0,0,0,0,0]]}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        at_fail fail = {0};
        at_spec spec;
        json_t *json = json_loads(texts[i], 0, NULL);
        assert_non_null(json);
        assert_int_not_equal(at_spec_read(json, &spec, &fail), AT_OK);
        assert_true(fail.text[0]);
        json_decref(json);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void a_message_arrives_whole_with_its_descriptors(void **state)
{
    (void)state;
    int     ends[2], files[AT_SEAT_FDS];
    at_fail fail = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    for (int i = 0; i < AT_SEAT_FDS; i++) files[i] = open("/dev/null", O_RDONLY);
    at_ns until = at_clock_now() + AT_SEC(60);
    assert_int_equal(at_seat_send(ends[0], AT_SEAT_WELCOME, (at_seat_part){"hel", 3},
                                  (at_seat_part){"lo", 2}, files, until, &fail),
                     AT_OK);
    assert_int_equal(at_seat_send(ends[0], AT_SEAT_PUT, (at_seat_part){0}, (at_seat_part){0}, NULL,
                                  until, &fail),
                     AT_OK);
    at_seat_inbox inbox = {.size_max = 100};
    assert_int_equal(at_seat_inbox_read(&inbox, ends[1], &fail), AT_OK);
    assert_true(inbox.complete);
    assert_int_equal(inbox.kind, AT_SEAT_WELCOME);
    assert_string_equal((const char *)inbox.bytes, "hello");
    assert_int_equal(inbox.fds, AT_SEAT_FDS);
    assert_true(fcntl(inbox.fd[0], F_GETFD) & FD_CLOEXEC);
    at_seat_inbox_next(&inbox);
    assert_int_equal(at_seat_inbox_read(&inbox, ends[1], &fail), AT_OK);
    assert_true(inbox.complete && inbox.size == 0);
    at_seat_inbox_next(&inbox);
    assert_int_equal(at_seat_inbox_read(&inbox, ends[1], &fail), AT_OK);
    assert_false(inbox.complete);
    assert_false(at_seat_hung_up(ends[1]));
    close(ends[0]);
    assert_true(at_seat_hung_up(ends[1]));
    assert_int_equal(at_seat_inbox_read(&inbox, ends[1], &fail), AT_ERR_MISSING);
    at_seat_inbox_deinit(&inbox);
    close(ends[1]);
    for (int i = 0; i < AT_SEAT_FDS; i++) close(files[i]);
}

static void bytes_of_a_peer_are_refused_or_incomplete_but_never_believed(void **state)
{
    (void)state;
    at_rng rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, 0);
    for (int round = 0; round < 200; round++) {
        int           ends[2];
        unsigned char bytes[64];
        at_fail       fail = {0};
        at_seat_inbox inbox = {.size_max = 32};
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)at_rng_next(&rng);
        if (round % 2) memcpy(bytes, "ANTS\2\0\0\0", 8); /* a size of many bytes follows */
        assert_int_equal(write(ends[0], bytes, sizeof bytes), sizeof bytes);
        assert_int_equal(at_seat_inbox_read(&inbox, ends[1], &fail), AT_ERR_FORMAT);
        assert_false(inbox.complete);
        at_seat_inbox_deinit(&inbox);
        close(ends[0]);
        close(ends[1]);
    }
}

static void a_peer_that_does_not_read_is_given_up(void **state)
{
    (void)state;
    enum { SIZE = 8 << 20 };
    int     ends[2];
    at_fail fail = {0};
    char   *bytes = calloc(1, SIZE);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    assert_int_equal(at_seat_send(ends[0], AT_SEAT_PUT, (at_seat_part){bytes, SIZE},
                                  (at_seat_part){0}, NULL, at_clock_now() + AT_MS(20), &fail),
                     AT_ERR_MISSING);
    free(bytes);
    close(ends[0]);
    close(ends[1]);
}

static void a_proof_needs_the_token_and_the_number(void **state)
{
    (void)state;
    unsigned char nonce[AT_SEAT_NONCE] = {1}, other[AT_SEAT_NONCE] = {2};
    unsigned char a[AT_SEAT_DIGEST], b[AT_SEAT_DIGEST];
    char token[AT_TOKEN_SIZE] = "0123456789abcdef", wrong[AT_TOKEN_SIZE] = "0123456789abcdeg";
    at_seat_prove(token, nonce, false, a);
    at_seat_prove(token, nonce, false, b);
    assert_memory_equal(a, b, sizeof a);
    at_seat_prove(wrong, nonce, false, b);
    assert_memory_not_equal(a, b, sizeof a);
    at_seat_prove(token, other, false, b);
    assert_memory_not_equal(a, b, sizeof a);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void seats_can_read_the_parameters_but_neither_write_nor_shrink_them(void **state)
{
    (void)state;
    at_fail      fail = {0};
    at_seat_file hub, seat;
    size_t       size;
    assert_true(at_seat_params_size(1000, &size));
    assert_int_equal(at_seat_file_new("test", size, true, &hub, &fail), AT_OK);
    at_seat_floats(&hub)[999] = 42;
    assert_true((uintptr_t)at_seat_floats(&hub) % 64 == 0);
    assert_int_equal(at_seat_file_map(dup(hub.fd), size, false, &seat, &fail), AT_OK);
    assert_true(at_seat_floats(&seat)[999] == 42);
    assert_int_not_equal(mprotect(seat.memory, size, PROT_READ | PROT_WRITE), 0);
    assert_int_not_equal(ftruncate(seat.fd, 0), 0);
    assert_int_equal(write(seat.fd, "x", 1), -1);
    at_seat_file_close(&seat);
    assert_int_equal(at_seat_file_map(dup(hub.fd), size, true, &seat, &fail), AT_ERR_FAILED);
    assert_int_equal(at_seat_file_map(dup(hub.fd), size + 1, false, &seat, &fail), AT_ERR_FORMAT);
    at_seat_file_close(&hub);
}

static void mapped_parameters_show_what_the_hub_writes_until_they_are_kept(void **state)
{
    enum { FLOATS = 5000, PAGE_FLOATS = 1024 }; /* five pages */
    (void)state;
    at_fail      fail = {0};
    at_seat_file hub, seat;
    size_t       size;
    float       *own = aligned_alloc(4096, (FLOATS + PAGE_FLOATS - 1) / PAGE_FLOATS * 4096);
    assert_true(at_seat_params_size(FLOATS, &size));
    assert_int_equal(at_seat_file_new("test", size, true, &hub, &fail), AT_OK);
    assert_int_equal(at_seat_file_map(dup(hub.fd), size, false, &seat, &fail), AT_OK);
    assert_false(at_seat_overlay(&seat, FLOATS, own + 1)); /* not whole pages */
    assert_true(at_seat_overlay(&seat, FLOATS, own));
    for (int i = 0; i < FLOATS; i++) at_seat_floats(&hub)[i] = (float)i;
    own[1500] = own[4999] = -1; /* the second page and the last */
    at_seat_floats(&hub)[4000] = 7;
    assert_true(own[0] == 0 && own[1500] == -1 && own[4000] == 7 && own[4999] == -1);
    assert_true(at_seat_floats(&hub)[1500] == 1500);
    at_seat_overlay_renew(own, FLOATS);
    assert_true(own[1500] == 1500 && own[4000] == 7 && own[4999] == 4999);
    at_seat_overlay_keep(own, FLOATS);
    memset(at_seat_floats(&hub), 0, FLOATS * sizeof(float));
    for (int i = 0; i < FLOATS; i++) assert_true(own[i] == (i == 4000 ? 7 : (float)i));
    at_seat_file_close(&seat);
    at_seat_file_close(&hub);
    assert_true(own[4999] == 4999); /* the mapping outlives its descriptors */
    free(own);
}

static void sizes_are_checked_before_they_are_multiplied(void **state)
{
    (void)state;
    size_t size;
    assert_false(at_seat_params_size(SIZE_MAX / 2, &size));
    assert_false(at_seat_slot_size(SIZE_MAX / 8, 2, &size));
    assert_true(at_seat_slot_size(17, 2, &size));
    assert_true(size >= sizeof(at_seat_slot) + 2 * 32 * sizeof(float));
}

/* A hub that comes back may have other rules, and the memory of the first seat is used again. */
static void the_memory_of_a_seat_has_room_for_every_welcome(void **state)
{
    (void)state;
    at_seat seat = {.fd = -1, .in_place = true};
    at_fail fail = {0};
    size_t  most;
    seat.spec.floats = 3000;
    assert_true(at_seat_slot_size(seat.spec.floats, AT_SEAT_GRADIENTS, &most));
    assert_int_equal(at_seat_link_memory(&seat, &fail), AT_OK);
    assert_true(seat.slot_file.size >= most);
    assert_null(seat.incoming);
    seat.in_place = false;
    assert_int_equal(at_seat_link_memory(&seat, &fail), AT_OK);
    assert_non_null(seat.incoming);
    at_seat_file_close(&seat.incoming_file);
    at_seat_file_close(&seat.params_file);
    at_seat_file_close(&seat.bells_file);
    at_seat_file_close(&seat.slot_file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_survives_its_way_to_the_hub),
        cmocka_unit_test(a_wrong_spec_is_refused_with_a_sentence),
        cmocka_unit_test(a_long_name_of_a_model_is_cut_between_characters),
        cmocka_unit_test(seats_that_train_something_else_are_told_what),
        cmocka_unit_test(json_of_a_peer_may_be_anything),
        cmocka_unit_test(a_message_arrives_whole_with_its_descriptors),
        cmocka_unit_test(bytes_of_a_peer_are_refused_or_incomplete_but_never_believed),
        cmocka_unit_test(a_peer_that_does_not_read_is_given_up),
        cmocka_unit_test(a_proof_needs_the_token_and_the_number),
        cmocka_unit_test(seats_can_read_the_parameters_but_neither_write_nor_shrink_them),
        cmocka_unit_test(mapped_parameters_show_what_the_hub_writes_until_they_are_kept),
        cmocka_unit_test(sizes_are_checked_before_they_are_multiplied),
        cmocka_unit_test(the_memory_of_a_seat_has_room_for_every_welcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
