/* TFRecord files of tf.train.Example. */
#include "open_sets.h"

#include "base/crc32c.h"

#include <sys/stat.h>

/* ---- a small writer -------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char at[8192];
    size_t        size;
} bytes;

static void put(bytes *b, const void *from, size_t size)
{
    assert_true(b->size + size <= sizeof b->at);
    if (size > 0) memcpy(b->at + b->size, from, size);
    b->size += size;
}

static void put_varint(bytes *b, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) put(b, &(unsigned char){(unsigned char)(value | 0x80)}, 1);
    put(b, &(unsigned char){(unsigned char)value}, 1);
}

static void put_message(bytes *b, unsigned field, const bytes *inner)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, inner->size);
    put(b, inner->at, inner->size);
}

/* Adds a feature to the map of an Example. */
static void put_feature(bytes *features, const char *name, unsigned kind, const bytes *list)
{
    bytes entry = {0}, feature = {0}, key = {0};
    put(&key, name, strlen(name));
    put_message(&feature, kind, list);
    put_message(&entry, 1, &key);
    put_message(&entry, 2, &feature);
    put_message(features, 1, &entry);
}

static void put_ints(bytes *features, const char *name, const int64_t *values, size_t count,
                     bool packed)
{
    bytes list = {0}, all = {0};
    for (size_t i = 0; i < count; i++) {
        if (!packed) put_varint(&list, 1 << 3);
        put_varint(packed ? &all : &list, (uint64_t)values[i]);
    }
    if (packed) put_message(&list, 1, &all);
    put_feature(features, name, 3, &list);
}

static void put_floats(bytes *features, const char *name, const float *values, size_t count)
{
    bytes list = {0}, all = {0};
    put(&all, values, count * sizeof *values); /* little endian, like this machine */
    put_message(&list, 1, &all);
    put_feature(features, name, 2, &list);
}

static void put_blob(bytes *features, const char *name, const void *blob, size_t size)
{
    bytes list = {0}, all = {0};
    put(&all, blob, size);
    put_message(&list, 1, &all);
    put_feature(features, name, 1, &list);
}

static void put_u32(bytes *b, uint32_t value)
{
    for (int i = 0; i < 4; i++) put(b, &(unsigned char){(unsigned char)(value >> (8 * i))}, 1);
}

/* A record around any bytes. */
static void put_record(bytes *file, const bytes *message)
{
    size_t start = file->size;
    put_u32(file, (uint32_t)message->size);
    put_u32(file, 0);
    put_u32(file, at_crc32c_masked(file->at + start, 8));
    put(file, message->at, message->size);
    put_u32(file, at_crc32c_masked(message->at, message->size));
}

static void put_example(bytes *file, const bytes *features)
{
    bytes example = {0};
    put_message(&example, 1, features);
    put_record(file, &example);
}

static void put_click(bytes *file, int64_t label, const int64_t *indices, const float *values,
                      size_t count)
{
    bytes features = {0};
    put_ints(&features, "label", &label, 1, true);
    put_ints(&features, "index", indices, count, true);
    if (values) put_floats(&features, "value", values, count);
    put_example(file, &features);
}

/* ---- clicks ---------------------------------------------------------------------------------- */

static void clicks_are_read(void **state)
{
    (void)state;
    bytes file = {0};
    put_click(&file, -1, (int64_t[]){0, 5, 9}, (float[]){1, 0.5f, -2}, 3);
    put_click(&file, 1, (int64_t[]){7, 3}, (float[]){4, 5}, 2); /* sorted when read */
    put_click(&file, 1, (int64_t[]){2}, NULL, 1);
    put_click(&file, 1, NULL, NULL, 0);
    write_raw("clicks.tfrecord", file.at, file.size);
    at_dataset *set = open_sparse("clicks.tfrecord", AT_SPLIT_TRAIN);
    assert_string_equal(at_dataset_format(set), "tfrecord");
    assert_int_equal(at_dataset_count(set), 4);
    assert_int_equal(at_dataset_features(set), 10);
    assert_int_equal(at_dataset_classes(set), 2);
    check_row(set, 0, 0, "0:1 5:0.5 9:-2");
    check_row(set, 1, 1, "3:5 7:4");
    check_row(set, 2, 1, "2:1");
    check_row(set, 3, 1, "");
    at_dataset_free(set);
}

static void numbers_may_be_unpacked(void **state)
{
    (void)state;
    bytes file = {0}, features = {0};
    put_ints(&features, "index", (int64_t[]){33762577, 1}, 2, false);
    put_ints(&features, "label", (int64_t[]){1}, 1, false);
    put_ints(&features, "something else", (int64_t[]){1, 2, 3}, 3, true);
    put_example(&file, &features);
    write_gz("clicks.gz", file.at, file.size);
    at_dataset *set = open_sparse("clicks.gz", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_features(set), 33762578);
    check_row(set, 0, 1, "1:1 33762577:1");
    at_dataset_free(set);
}

static void files_of_a_folder_are_joined_in_order(void **state)
{
    (void)state;
    mkdir("set", 0700);
    for (int i = 0; i < 3; i++) {
        bytes file = {0};
        char  path[64];
        put_click(&file, i % 2, (int64_t[]){i}, NULL, 1);
        snprintf(path, sizeof path, i < 2 ? "set/tfrecords%02d" : "set/test%02d", i);
        write_raw(path, file.at, file.size);
    }
    at_dataset *train = open_sparse("set", AT_SPLIT_TRAIN);
    at_dataset *test = open_sparse("set", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_count(train), 2);
    check_row(train, 1, 1, "1:1");
    assert_int_equal(at_dataset_count(test), 1);
    at_dataset_free(train);
    at_dataset_free(test);
}

static void many_rows_fill_many_builders(void **state)
{
    (void)state;
    enum { ROWS = 70000 };
    FILE *out = fopen("clicks", "wb");
    for (int i = 0; i < ROWS; i++) {
        bytes file = {0};
        put_click(&file, i % 2, (int64_t[]){i, i + 1}, NULL, 2);
        fwrite(file.at, 1, file.size, out);
    }
    fclose(out);
    at_dataset *set = open_sparse("clicks", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_count(set), ROWS);
    for (uint64_t i = 0; i < ROWS; i++) {
        at_sparse_row row = at_dataset_sparse_row(set, i);
        assert_int_equal(row.count, 2);
        assert_int_equal(row.indices[0], i);
        assert_int_equal(at_dataset_label(set, i), i % 2);
    }
    at_dataset_free(set);
}

/* ---- images ---------------------------------------------------------------------------------- */

static void put_raw(bytes *file, int64_t label, int64_t height, int64_t width, size_t size)
{
    bytes         features = {0};
    unsigned char pixels[64];
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (unsigned char)(i + (size_t)label);
    put_blob(&features, "image_raw", pixels, size);
    put_ints(&features, "label", &label, 1, true);
    put_ints(&features, "height", &height, 1, true);
    put_ints(&features, "width", &width, 1, true);
    put_example(file, &features);
}

static void raw_images_are_deinterleaved(void **state)
{
    (void)state;
    bytes file = {0};
    put_raw(&file, 0, 2, 3, 18);
    put_raw(&file, 4, 2, 3, 18);
    write_raw("images", file.at, file.size);
    at_dataset    *set = open_set_as("images", AT_SPLIT_TRAIN, NULL);
    at_image_shape shape = at_dataset_shape(set);
    float          x[18];
    uint32_t       label;
    assert_int_equal(shape.channels, 3);
    assert_int_equal(shape.height, 2);
    assert_int_equal(at_dataset_classes(set), 5);
    at_dataset_rows(set, x, &label, (uint64_t[]){1}, 1);
    assert_int_equal(label, 4);
    assert_true(x[0] == (float)4 * (1.0f / 255.0f));
    assert_true(x[1] == (float)7 * (1.0f / 255.0f)); /* red of the second pixel */
    at_dataset_free(set);

    put_raw(&file, 1, 3, 2, 18);
    write_raw("images", file.at, file.size);
    refuse_set("images", "record 3");
    refuse_set("images", "the image is 3x2x3, but the first one was 2x3x3");
}

/* ---- invalid files --------------------------------------------------------------------------- */

static void invalid_records_are_reported_with_their_position(void **state)
{
    (void)state;
    static const struct {
        int64_t     label, indices[2];
        float       values[2];
        const char *word;
    } cases[] = {
        {1, {3, 3}, {1, 1}, "index 3 occurs twice"},
        {1, {-1, 3}, {1, 1}, "index -1 is out of range"},
        {1, {1, (int64_t)1 << 31}, {1, 1}, "out of range"},
        {1, {1, 2}, {1, 1.0f / 0.0f}, "is not finite"},
        {(int64_t)1 << 40, {1, 2}, {1, 1}, "label 1099511627776 is out of range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes file = {0};
        put_click(&file, 1, (int64_t[]){0}, NULL, 1);
        size_t first = file.size;
        char   place[64];
        put_click(&file, cases[i].label, cases[i].indices, cases[i].values, 2);
        write_raw("clicks", file.at, file.size);
        snprintf(place, sizeof place, "record 2 at byte %zu", first);
        refuse_set("clicks", place);
        refuse_set("clicks", cases[i].word);
    }
}

static void damaged_files_are_reported_with_their_position(void **state)
{
    (void)state;
    bytes file = {0};
    put_click(&file, 1, (int64_t[]){0, 1}, (float[]){1, 2}, 2);
    size_t one = file.size;
    put_click(&file, 0, (int64_t[]){0, 1}, (float[]){1, 2}, 2);
    for (size_t cut = one + 1; cut < file.size; cut++) {
        write_raw("clicks", file.at, cut);
        refuse_set("clicks", "the file ends within the record");
    }
    for (size_t i = 0; i < file.size; i++) {
        file.at[i] ^= 0x10;
        write_raw("clicks", file.at, file.size);
        refuse_set("tfrecord:clicks", i < one ? "record 1 at byte 0" : "record 2 at byte");
        file.at[i] ^= 0x10;
    }
    bytes huge = {0};
    put_u32(&huge, 0);
    put_u32(&huge, 1);
    put_u32(&huge, at_crc32c_masked(huge.at, 8));
    write_raw("clicks", huge.at, huge.size);
    refuse_set("clicks", "the record has 4294967296 bytes");
}

/* Messages with correct checksums but invalid content. */
static void invalid_messages_are_refused(void **state)
{
    (void)state;
    static const unsigned char bad[][12] = {
        {0x0a, 0x7f},                               /* longer than the message */
        {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f}, /* much longer */
        {0x0b},                                     /* a group, which is never used */
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bytes message = {0}, file = {0};
        put(&message, bad[i], sizeof bad[i]);
        put_record(&file, &message);
        write_raw("clicks", file.at, file.size);
        refuse_set("clicks", "record 1");
    }
    bytes file = {0}, features = {0};
    put_ints(&features, "index", (int64_t[]){1}, 1, true);
    put_example(&file, &features);
    write_raw("clicks", file.at, file.size);
    refuse_set("clicks", "no label");
    memset(&features, 0, sizeof features);
    memset(&file, 0, sizeof file);
    put_ints(&features, "label", (int64_t[]){1}, 1, true);
    put_example(&file, &features);
    write_raw("images", file.at, file.size);
    refuse_set("images", "no image");
    put_floats(&features, "value", (float[]){1, 2}, 2);
    memset(&file, 0, sizeof file);
    put_example(&file, &features);
    write_raw("clicks", file.at, file.size);
    refuse_set("clicks", "0 indices but 2 values");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(clicks_are_read, empty_home),
        cmocka_unit_test_setup(numbers_may_be_unpacked, empty_home),
        cmocka_unit_test_setup(files_of_a_folder_are_joined_in_order, empty_home),
        cmocka_unit_test_setup(many_rows_fill_many_builders, empty_home),
        cmocka_unit_test_setup(raw_images_are_deinterleaved, empty_home),
        cmocka_unit_test_setup(invalid_records_are_reported_with_their_position, empty_home),
        cmocka_unit_test_setup(damaged_files_are_reported_with_their_position, empty_home),
        cmocka_unit_test_setup(invalid_messages_are_refused, empty_home),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
