/* Reading files: raw, gzip and xz. */
#include "files.h"

#include "data/files/source.h"

#include <lzma.h>

static at_fail fail;

static const char words[] = "one two three four five six seven eight nine ten eleven twelve";

/* Packs the bytes as an xz stream, to be freed. */
static unsigned char *xz_of(const void *bytes, size_t size, uint32_t preset, size_t *packed_size)
{
    size_t         room = lzma_stream_buffer_bound(size);
    unsigned char *packed = malloc(room);
    assert_non_null(packed);
    *packed_size = 0;
    lzma_ret code = lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC64, NULL, bytes, size, packed,
                                            packed_size, room);
    assert_int_equal(code, LZMA_OK);
    return packed;
}

/* Reads a whole file, seven bytes at a time. */
static at_err read_file(const char *path, char *buffer, size_t room, size_t *size)
{
    at_source *source;
    size_t     got = 1;
    at_err     err = at_source_open(path, &source, &fail);
    *size = 0;
    if (err) return err;
    while (!err && got > 0 && *size < room) {
        err = at_source_read(source, buffer + *size, room - *size < 7 ? room - *size : 7, &got,
                             &fail);
        *size += got;
    }
    if (!err) err = at_source_end(source, &fail);
    assert_true(at_source_size_max(source) >= *size);
    at_source_close(source);
    return err;
}

static void check_words(const char *path, int times)
{
    char   buffer[1024];
    size_t size, each = sizeof words - 1;
    at_err err = read_file(path, buffer, sizeof buffer, &size);
    if (err) fail_msg("%s (%s)", fail.text, fail.hint);
    assert_int_equal(size, each * (size_t)times);
    for (int i = 0; i < times; i++) assert_memory_equal(buffer + each * (size_t)i, words, each);
}

static void refuse(const char *path, const char *word)
{
    char   buffer[1024];
    size_t size;
    assert_int_equal(read_file(path, buffer, sizeof buffer, &size), AT_ERR_FORMAT);
    if (!strstr(fail.text, word)) fail_msg("no '%s' in: %s", word, fail.text);
    assert_non_null(strstr(fail.text, path));
    assert_true(fail.hint[0] != '\0');
}

static void xz_is_unpacked_regardless_of_the_name(void **state)
{
    (void)state;
    size_t         size;
    unsigned char *packed = xz_of(words, sizeof words - 1, 6, &size);
    write_raw("words.xz", packed, size);
    write_raw("words", packed, size);
    check_words("words.xz", 1);
    check_words("words", 1);
    free(packed);
}

static void xz_streams_are_joined_and_padding_is_skipped(void **state)
{
    (void)state;
    size_t         size;
    unsigned char *packed = xz_of(words, sizeof words - 1, 6, &size);
    unsigned char  both[1024] = {0};
    assert_true(2 * size + 16 <= sizeof both);
    memcpy(both, packed, size);
    memcpy(both + size + 8, packed, size);
    write_raw("both.xz", both, 2 * size + 16);
    check_words("both.xz", 2);
    both[2 * size + 12] = 'x';
    write_raw("tail.xz", both, 2 * size + 16);
    refuse("tail.xz", "unexpected bytes after the xz stream");
    free(packed);
}

static void damaged_xz_is_refused(void **state)
{
    (void)state;
    size_t         size;
    unsigned char *packed = xz_of(words, sizeof words - 1, 6, &size);
    for (size_t cut = 6; cut < size; cut++) {
        write_raw("cut.xz", packed, cut);
        refuse("cut.xz", "xz stream");
    }
    for (size_t i = 6; i < size; i++) {
        packed[i] ^= 0x55;
        write_raw("bent.xz", packed, size);
        refuse("bent.xz", "xz stream");
        packed[i] ^= 0x55;
    }
    write_raw("text.xz", words, sizeof words - 1);
    refuse("text.xz", "named .xz but not xz");
    free(packed);
}

static void xz_that_needs_much_memory_is_refused(void **state)
{
    (void)state;
    lzma_options_lzma options;
    assert_false(lzma_lzma_preset(&options, 0));
    options.dict_size = 1u << 30;
    lzma_filter   filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    unsigned char packed[1024];
    size_t        size = 0;
    lzma_ret      code =
        lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL, (const uint8_t *)words,
                                  sizeof words - 1, packed, &size, sizeof packed);
    if (code != LZMA_OK) skip(); /* the encoder itself needs many gigabytes */
    write_raw("large.xz", packed, size);
    refuse("large.xz", "too much memory");
    assert_non_null(strstr(fail.hint, "xz -d"));
}

/* Only what was asked for is unpacked, not the gigabyte that a megabyte would become. */
static void an_xz_bomb_is_unpacked_only_as_far_as_it_is_read(void **state)
{
    (void)state;
    size_t         size, raw_size = 64 << 20, got;
    unsigned char *raw = calloc(1, raw_size), bytes[4];
    unsigned char *packed = xz_of(raw, raw_size, 0, &size);
    at_source     *source;
    assert_true(size < raw_size / 1000);
    write_raw("flood.xz", packed, size);
    assert_int_equal(at_source_open("flood.xz", &source, &fail), AT_OK);
    assert_int_equal(at_source_read(source, bytes, sizeof bytes, &got, &fail), AT_OK);
    assert_int_equal(at_source_position(source), sizeof bytes);
    assert_true(at_source_size_max(source) >= raw_size);
    assert_int_equal(at_source_end(source, &fail), AT_ERR_FORMAT);
    at_source_close(source);
    free(raw);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(xz_is_unpacked_regardless_of_the_name, empty_home),
        cmocka_unit_test_setup(xz_streams_are_joined_and_padding_is_skipped, empty_home),
        cmocka_unit_test_setup(damaged_xz_is_refused, empty_home),
        cmocka_unit_test_setup(xz_that_needs_much_memory_is_refused, empty_home),
        cmocka_unit_test_setup(an_xz_bomb_is_unpacked_only_as_far_as_it_is_read, empty_home),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
