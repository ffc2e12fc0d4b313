/* NumPy arrays, alone and in archives. */
#include "open_sets.h"

#include "data/set/dataset.h"
#include "data/set/store.h"

#include <sys/stat.h>

/* ---- writing arrays and archives ------------------------------------------------------------- */

typedef struct bytes {
    unsigned char data[1 << 15];
    size_t        size;
} bytes;

static void put(bytes *to, const void *data, size_t size)
{
    assert_true(size <= sizeof to->data - to->size);
    memcpy(to->data + to->size, data, size);
    to->size += size;
}

static void put_number(bytes *to, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++) {
        unsigned char byte = (unsigned char)(value >> 8 * i);
        put(to, &byte, 1);
    }
}

/* An array with that type and shape, as NumPy writes it, and these elements. */
static void make_npy(bytes *npy, const char *descr, const char *shape, const void *elements,
                     size_t size)
{
    char text[256];
    int  length = snprintf(text, sizeof text,
                           "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    while ((10 + length) % 64 != 63) text[length++] = ' ';
    text[length++] = '\n';
    npy->size = 0;
    put(npy, "\x93NUMPY\1\0", 8);
    put_number(npy, (uint64_t)length, 2);
    put(npy, text, (size_t)length);
    put(npy, elements, size);
}

/* Archives are made in memory: the entries, then the directory. */
typedef struct archive {
    bytes    entries, directory;
    unsigned count;
} archive;

static size_t deflate_raw(const bytes *from, unsigned char *to, size_t room)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)from->data;
    z.avail_in = (unsigned)from->size;
    z.next_out = to;
    z.avail_out = (unsigned)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t size = room - z.avail_out;
    deflateEnd(&z);
    return size;
}

/* NumPy writes a zip64 field before every entry; sizes are in the directory. */
static void add_entry(archive *zip, const char *name, const bytes *content, bool packed)
{
    static unsigned char body[1 << 15];
    size_t               size = content->size, offset = zip->entries.size;
    if (packed)
        size = deflate_raw(content, body, sizeof body);
    else
        memcpy(body, content->data, size);
    uint64_t crc = crc32(0, content->data, (unsigned)content->size);
    put(&zip->entries, "PK\3\4\x2d\0\0\0", 8);
    put_number(&zip->entries, packed ? 8 : 0, 2);
    put_number(&zip->entries, 0, 4);
    put_number(&zip->entries, crc, 4);
    put_number(&zip->entries, UINT64_MAX, 8);
    put_number(&zip->entries, strlen(name), 2);
    put_number(&zip->entries, 20, 2);
    put(&zip->entries, name, strlen(name));
    put_number(&zip->entries, 0x00100001, 4);
    put_number(&zip->entries, content->size, 8);
    put_number(&zip->entries, size, 8);
    put(&zip->entries, body, size);
    put(&zip->directory, "PK\1\2\x2d\x03\x2d\0\0\0", 10);
    put_number(&zip->directory, packed ? 8 : 0, 2);
    put_number(&zip->directory, 0, 4);
    put_number(&zip->directory, crc, 4);
    put_number(&zip->directory, size, 4);
    put_number(&zip->directory, content->size, 4);
    put_number(&zip->directory, strlen(name), 2);
    put_number(&zip->directory, 0, 2 + 2 + 2 + 2);
    put_number(&zip->directory, 0, 4);
    put_number(&zip->directory, offset, 4);
    put(&zip->directory, name, strlen(name));
    zip->count++;
}

static void write_archive(const char *path, const archive *zip)
{
    static bytes all;
    all.size = 0;
    put(&all, zip->entries.data, zip->entries.size);
    put(&all, zip->directory.data, zip->directory.size);
    put(&all, "PK\5\6\0\0\0\0", 8);
    put_number(&all, zip->count, 2);
    put_number(&all, zip->count, 2);
    put_number(&all, zip->directory.size, 4);
    put_number(&all, zip->entries.size, 4);
    put_number(&all, 0, 2);
    write_raw(path, all.data, all.size);
}

/* `count` samples of 192 bytes (3x8x8) that count up, and labels first, first + 1, ... */
static void write_images(const char *path, unsigned count, unsigned first, bool packed)
{
    static archive zip;
    static bytes   array;
    unsigned char  pixels[8 * 192];
    int64_t        labels[8];
    char           shape[32];
    zip.count = 0, zip.entries.size = zip.directory.size = 0;
    for (unsigned i = 0; i < count * 192; i++) pixels[i] = (unsigned char)(first + i);
    for (unsigned i = 0; i < count; i++) labels[i] = first + i;
    snprintf(shape, sizeof shape, "(%u, 192)", count);
    make_npy(&array, "|u1", shape, pixels, count * 192);
    add_entry(&zip, "data.npy", &array, packed);
    snprintf(shape, sizeof shape, "(%u,)", count);
    make_npy(&array, "<i8", shape, labels, count * sizeof *labels);
    add_entry(&zip, "labels.npy", &array, packed);
    make_npy(&array, "<f8", "(1,)", &(double){0.5}, 8);
    add_entry(&zip, "mean.npy", &array, packed);
    write_archive(path, &zip);
}

/* ---- reading --------------------------------------------------------------------------------- */

static at_dataset *open_npy(const char *name, at_split split)
{
    at_dataset *set = open_set(name, split);
    assert_string_equal(at_dataset_format(set), "npy");
    return set;
}

static void an_archive_of_images_is_read(void **state)
{
    for (int packed = 0; packed < 2; packed++) {
        empty_home(state);
        write_images("set.npz", 4, 0, packed);
        at_dataset *set = open_npy("set.npz", AT_SPLIT_TRAIN);
        assert_int_equal(at_dataset_count(set), 4);
        assert_int_equal(at_dataset_classes(set), 4);
        assert_shape(set, 3, 8, 8);
        assert_string_equal(at_dataset_form(set), "3x8x8 bytes");
        for (unsigned i = 0; i < 4 * 192; i++) assert_int_equal(set->rows[i], i % 256);
        for (unsigned i = 0; i < 4; i++) assert_int_equal(at_dataset_label(set, i), i);
        assert_false(at_dataset_has("set.npz", AT_SPLIT_TEST));
        at_dataset_free(set);
    }
}

/* Downsampled ImageNet: labels 1 to 1000 in several files; the test set may lack the first. */
static void batches_with_labels_from_one_on_are_joined(void **state)
{
    (void)state;
    assert_int_equal(mkdir("set", 0777), 0);
    write_images("set/train_data_batch_1.npz", 4, 1, true);
    write_images("set/train_data_batch_2.npz", 3, 5, true);
    write_images("set/val_data.npz", 2, 3, true);
    at_dataset *train = open_npy("set", AT_SPLIT_TRAIN), *test = open_npy("set", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_count(train), 7);
    assert_int_equal(at_dataset_classes(train), 7);
    assert_int_equal(at_dataset_label(train, 0), 0);
    assert_int_equal(at_dataset_label(train, 6), 6);
    assert_int_equal(at_dataset_classes(test), 7);
    assert_int_equal(at_dataset_label(test, 0), 2);
    at_dataset_free(train);
    at_dataset_free(test);
    write_images("set/val_data.npz", 2, 7, true);
    assert_int_equal(at_dataset_open("set", AT_SPLIT_TEST, &test, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "labels are 7 to 8, but train labels are 1 to 7"));
}

static void every_element_type_is_read(void **state)
{
    (void)state;
    static const float   f4[] = {0.5f, -1.0f, 2.0f, 3.25f};
    static const double  f8[] = {0.5, -1.0, 2.0, 3.25};
    static const int32_t i4[] = {0, -1, 2, 300};
    static const int64_t i8[] = {0, -1, 2, 300};
    static const struct {
        const char *descr;
        const void *elements;
        size_t      size;
        float       second, last;
    } rows[] = {{"<f4", f4, sizeof f4, -1.0f, 3.25f},
                {"<f8", f8, sizeof f8, -1.0f, 3.25f},
                {"<i4", i4, sizeof i4, -1.0f, 300.0f},
                {"<i8", i8, sizeof i8, -1.0f, 300.0f}};
    static bytes array;
    make_npy(&array, "<f4", "(2, 1)", (float[]){1, 0}, 8);
    write_raw("y.npy", array.data, array.size);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float    x[4];
        uint32_t labels[2];
        make_npy(&array, rows[i].descr, "(2, 2)", rows[i].elements, rows[i].size);
        write_raw("x.npy", array.data, array.size);
        at_dataset *set = open_npy("x.npy,y.npy", AT_SPLIT_TRAIN);
        at_dataset_rows(set, x, labels, (uint64_t[]){0, 1}, 2);
        assert_true(x[1] == rows[i].second && x[3] == rows[i].last);
        assert_true(labels[0] == 1 && labels[1] == 0);
        assert_shape(set, 1, 1, 2);
        assert_string_equal(at_dataset_form(set), "2 floats");
        at_dataset_free(set);
    }
}

static void extents_define_image_shapes(void **state)
{
    (void)state;
    static bytes array;
    float        pixels[12];
    for (int i = 0; i < 12; i++) pixels[i] = (float)i;
    make_npy(&array, "<i4", "(1,)", (int32_t[]){0}, 4);
    write_raw("y.npy", array.data, array.size);
    make_npy(&array, "<f4", "(1, 2, 2, 3)", pixels, sizeof pixels);
    write_raw("x.npy", array.data, array.size);
    at_dataset *set = open_npy("x.npy,y.npy", AT_SPLIT_TRAIN);
    assert_shape(set, 3, 2, 2);
    const float *row = (const float *)(const void *)set->rows;
    assert_true(row[1] == 3.0f && row[4] == 1.0f && row[11] == 11.0f);
    at_dataset_free(set);
    make_npy(&array, "<f4", "(1, 3, 2, 2)", pixels, sizeof pixels);
    write_raw("x.npy", array.data, array.size);
    set = open_npy("x.npy,y.npy", AT_SPLIT_TRAIN);
    assert_shape(set, 3, 2, 2);
    row = (const float *)(const void *)set->rows;
    assert_true(row[1] == 1.0f);
    at_dataset_free(set);
}

static void a_folder_may_have_both_splits_as_arrays(void **state)
{
    (void)state;
    static bytes array;
    assert_int_equal(mkdir("set", 0777), 0);
    make_npy(&array, "|u1", "(2, 2)", "abcd", 4);
    write_raw("set/x_train.npy", array.data, array.size);
    make_npy(&array, "|u1", "(2,)", "\0\1", 2);
    write_raw("set/y_train.npy", array.data, array.size);
    assert_true(at_dataset_has("set", AT_SPLIT_TRAIN));
    make_npy(&array, "|u1", "(1, 2)", "xy", 2);
    write_raw("set/x_test.npy", array.data, array.size);
    make_npy(&array, "|u1", "(1,)", "\1", 1);
    write_gz("set/y_test.npy", array.data, array.size);
    at_dataset *test = open_npy("set", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_count(test), 1);
    assert_int_equal(at_dataset_label(test, 0), 1); /* labels do not count from 1 here */
    assert_int_equal(at_dataset_classes(test), 2);
    at_dataset_free(test);
}

/* ---- invalid files --------------------------------------------------------------------------- */

/* x.npy with that header and two valid labels is refused. */
static void refuse_samples(const char *descr, const char *shape, size_t size, const char *words,
                           const char *hint)
{
    static bytes array;
    static float elements[64];
    make_npy(&array, "|u1", "(2,)", "\0\1", 2);
    write_raw("y.npy", array.data, array.size);
    make_npy(&array, descr, shape, elements, size);
    write_raw("x.npy", array.data, array.size);
    refuse("x.npy,y.npy", AT_ERR_FORMAT, words, hint);
    assert_non_null(strstr(fail.text, "x.npy"));
}

static void unsupported_arrays_are_refused(void **state)
{
    (void)state;
    refuse_samples(">f4", "(2, 2)", 16, "element type >f4", "astype");
    refuse_samples("<c8", "(2, 2)", 32, "element type <c8", "astype");
    refuse_samples("<f4", "(2, 2)", 15, "claims 16 bytes after byte 128",
                   "download the file again");
    refuse_samples("<f4", "(2, 2)", 17, "x.npy: extra bytes after byte 144", "");
    refuse_samples("<f4", "(3, 2)", 24, "3 samples", "same data set");
    refuse_samples("<f4", "()", 4, "single number", "numpy.save");
    refuse_samples("<f4", "(0, 2)", 0, "no elements", "numpy.save");
    refuse_samples("<f4", "(4294967295, 4294967295, 4294967295)", 4, "too many", "");
    refuse_samples("<f4", "(2, 99999999999999999999)", 4, "shape too large", "");
    refuse_samples("<f4", "(2, -2)", 4, "invalid shape", "");
    refuse_samples("<f4", "(1,1,1,1,1,1,1,1,1)", 4, "invalid shape", "");
    refuse_samples("<f4", "2", 4, "no shape", "");
    refuse_samples("<f4', 'fortran_order': True, 'x': '", "(2, 2)", 16, "Fortran order",
                   "ascontiguousarray");
}

static void invalid_numbers_are_refused(void **state)
{
    (void)state;
    static bytes array;
    float        x[4] = {0.0f, 1.0f, 2.0f, 3.0f};
    float        labels[2] = {0.0f, 0.5f};
    make_npy(&array, "<f4", "(2, 2)", x, sizeof x);
    write_raw("x.npy", array.data, array.size);
    make_npy(&array, "<f4", "(2,)", labels, sizeof labels);
    write_raw("y.npy", array.data, array.size);
    refuse("x.npy,y.npy", AT_ERR_FORMAT, "y.npy: byte 132: element 1 is not a label", "from 0");
    make_npy(&array, "<i8", "(2,)", (int64_t[]){0, -1}, 16);
    write_raw("y.npy", array.data, array.size);
    refuse("x.npy,y.npy", AT_ERR_FORMAT, "y.npy: byte 136: element 1 is not a label", "from 0");
    make_npy(&array, "<i8", "(2,)", (int64_t[]){0, 1}, 16);
    write_raw("y.npy", array.data, array.size);
    memcpy(&x[2], &(uint32_t){0x7fc00000}, 4);
    make_npy(&array, "<f4", "(2, 2)", x, sizeof x);
    write_raw("x.npy", array.data, array.size);
    refuse("x.npy,y.npy", AT_ERR_FORMAT, "x.npy: byte 136: element 2 is not a finite", "nan");
    refuse("y.npy,x.npy", AT_ERR_FORMAT, "labels have 2 numbers each", "swapped");
    refuse("x.npy", AT_ERR_USAGE, "x.npy: a single array", "SAMPLES.npy,LABELS.npy");
    refuse("x.npy,none.npy", AT_ERR_MISSING, "none.npy", "name");
}

static void broken_archives_are_refused(void **state)
{
    (void)state;
    size_t size;
    write_images("good.npz", 4, 0, true);
    unsigned char *good = read_all("good.npz", &size);
    for (size_t length = 0; length < size; length += 7) {
        write_raw("cut.npz", good, length);
        refuse("cut.npz", AT_ERR_FORMAT, "cut.npz: ", "");
    }
    write_raw("cut.npz", good, size - 1);
    refuse("cut.npz", AT_ERR_FORMAT, "no end record", "download the file again");
    good[300] ^= 0x10; /* in the middle of a deflated entry */
    write_raw("bad.npz", good, size);
    refuse("bad.npz", AT_ERR_FORMAT, "bad.npz", "download the file again");
    free(good);
    write_images("plain.npz", 4, 0, false);
    unsigned char *plain = read_all("plain.npz", &size);
    plain[300] ^= 0x10;
    write_raw("plain.npz", plain, size);
    refuse("plain.npz", AT_ERR_FORMAT, "wrong checksum of entry data.npy", "again");
    free(plain);
    write_raw("page.npz", "<html>404</html>", 16);
    refuse("page.npz", AT_ERR_FORMAT, "page.npz", "");
    write_raw("none.npz", "", 0);
    refuse("none.npz", AT_ERR_FORMAT, "none.npz: the file is empty", "download the file again");
}

static void an_archive_without_labels_is_refused(void **state)
{
    (void)state;
    static archive zip;
    static bytes   array;
    make_npy(&array, "|u1", "(2, 2)", "abcd", 4);
    add_entry(&zip, "x.npy", &array, true);
    write_archive("alone.npz", &zip);
    refuse("alone.npz", AT_ERR_FORMAT, "alone.npz: no arrays of samples and labels", "numpy.savez");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_archive_of_images_is_read, empty_home),
        cmocka_unit_test_setup(batches_with_labels_from_one_on_are_joined, empty_home),
        cmocka_unit_test_setup(every_element_type_is_read, empty_home),
        cmocka_unit_test_setup(extents_define_image_shapes, empty_home),
        cmocka_unit_test_setup(a_folder_may_have_both_splits_as_arrays, empty_home),
        cmocka_unit_test_setup(unsupported_arrays_are_refused, empty_home),
        cmocka_unit_test_setup(invalid_numbers_are_refused, empty_home),
        cmocka_unit_test_setup(broken_archives_are_refused, empty_home),
        cmocka_unit_test_setup(an_archive_without_labels_is_refused, empty_home),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
