/* Image shapes, synthetic images, and the binary batches of CIFAR. */
#include "open_sets.h"

#include "base/file.h"
#include "data/fetch/catalog.h"
#include "data/fetch/fetch.h"
#include "data/formats/image_shape.h"
#include "data/set/dataset.h"
#include "data/set/describe.h"
#include "data/set/store.h"

#include <sys/stat.h>

/* Two IDX samples of the given extents with elements 0, 1, 2, ... */
static at_dataset *open_idx(unsigned dims, unsigned a, unsigned b, unsigned c)
{
    static idx_bytes images, labels;
    idx_make(&labels, 2, 1, 2u);
    idx_make(&images, 251, dims, 2u, a, b, c);
    write_raw("images", images.bytes, images.size);
    write_raw("labels", labels.bytes, labels.size);
    return open_set("images,labels", AT_SPLIT_TRAIN);
}

static void idx_extents_define_image_shapes(void **state)
{
    (void)state;
    static const struct {
        unsigned dims, extent[3], shape[3];
    } rows[] = {
        {2, {6, 0, 0}, {1, 1, 6}},  {3, {4, 5, 0}, {1, 4, 5}}, {4, {4, 5, 1}, {1, 4, 5}},
        {4, {4, 5, 3}, {3, 4, 5}},  {4, {3, 4, 5}, {3, 4, 5}}, {4, {1, 4, 5}, {1, 4, 5}},
        {4, {2, 4, 5}, {1, 1, 40}}, {4, {3, 4, 3}, {3, 3, 4}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const unsigned *e = rows[i].extent, *p = rows[i].shape;
        at_dataset     *set = open_idx(rows[i].dims, e[0], e[1], e[2]);
        assert_shape(set, p[0], p[1], p[2]);
        at_dataset_free(set);
    }
}

static void interleaved_colors_become_planes(void **state)
{
    (void)state;
    at_dataset                *set = open_idx(4, 2, 2, 3);
    static const unsigned char second[] = {12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23};
    assert_memory_equal(set->rows + set->row_size, second, sizeof second);
    assert_string_equal(at_dataset_form(set), "2x2x3 bytes");
    at_dataset_free(set);
}

static void a_vector_of_three_squares_is_an_image(void **state)
{
    (void)state;
    at_image_shape shape = at_image_shape_of_vector(3 * 32 * 32);
    assert_int_equal(shape.channels, 3);
    assert_int_equal(shape.height, 32);
    assert_int_equal(at_image_shape_of_vector(3 * 64 * 64).width, 64);
    assert_int_equal(at_image_shape_of_vector(3 * 8 * 8).width, 8);
    assert_int_equal(at_image_shape_of_vector(3 * 7 * 7).channels, 0);
    assert_int_equal(at_image_shape_of_vector(3 * 32 * 32 + 1).channels, 0);
    assert_int_equal(at_image_shape_of_vector(784).channels, 0);
    assert_int_equal(at_image_shape_of_vector(UINT32_MAX).channels, 0);
}

/* ---- synthetic ------------------------------------------------------------------------------- */

static void synthetic_images_are_the_same_on_every_machine(void **state)
{
    (void)state;
    char        hex[65];
    at_dataset *train = open_set("synthetic:50,3x9x10,5", AT_SPLIT_TRAIN);
    at_dataset *test = open_set("synthetic:50,3x9x10,5", AT_SPLIT_TEST);
    assert_shape(train, 3, 9, 10);
    assert_int_equal(at_dataset_features(train), 270);
    assert_int_equal(at_dataset_count(test), 10);
    assert_string_equal(at_dataset_form(test), "3x9x10 bytes");
    at_file_sha256(train->rows, 50 * 270, hex);
    assert_string_equal(hex, "36e2311fe09abe8befe9132f41d92a12c4789791b391327be2bdacd026516fcb");
    at_file_sha256(test->rows, 10 * 270, hex);
    assert_string_equal(hex, "743fc3ad26ceba535d2e3b96dbe8d92661daeeb3ad16ca11be10a7761fab65f3");
    at_dataset_free(train);
    at_dataset_free(test);
}

/* Squared distance of a sample from the mean of a class, at the best of all shifts. */
static double mismatch(const float *x, const double *mean, int side)
{
    double best = 1e30;
    for (int shift = 0; shift < side * side; shift++) {
        double sum = 0.0;
        for (int p = 0; p < side * side; p++) {
            int    row = (p / side + shift / side) % side, column = (p + shift) % side;
            double difference = (double)x[p] - mean[row * side + column];
            sum += difference * difference;
        }
        if (sum < best) best = sum;
    }
    return best;
}

static void synthetic_images_of_a_class_share_a_shifted_pattern(void **state)
{
    (void)state;
    enum { SIDE = 24, PIXELS = SIDE * SIDE, CLASSES = 3, COUNT = 60 };
    at_dataset *set = open_set("synthetic:60,1x24x24,3", AT_SPLIT_TRAIN);
    double      first[CLASSES][PIXELS];
    unsigned    right = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        float    x[PIXELS];
        uint32_t label, best = 0;
        at_dataset_rows(set, x, &label, &i, 1);
        for (int p = 0; i < CLASSES && p < PIXELS; p++) first[label][p] = (double)x[p];
        if (i < CLASSES) continue;
        for (uint32_t c = 1; c < CLASSES; c++)
            if (mismatch(x, first[c], SIDE) < mismatch(x, first[best], SIDE)) best = c;
        right += best == label;
    }
    assert_true(right > (COUNT - CLASSES) * 2 / 3); /* by chance it would be a third */
    at_dataset_free(set);
}

static void impossible_synthetic_images_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {
        "synthetic:10,3x4,2",      "synthetic:10,3x4x,2",
        "synthetic:10,x3x4,2",     "synthetic:10,3x4x5x6,2",
        "synthetic:10,0x4x5,2",    "synthetic:10,3x-4x5,2",
        "synthetic:10,3x4x5 ,2",   "synthetic:10,3x9999x9999,2",
        "synthetic:1e8,3x64x64,2", "synthetic:10,3x4x99999999999,2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        refuse(names[i], AT_ERR_USAGE, names[i], "synthetic:6000,3x32x32,10");
}

/* ---- CIFAR ----------------------------------------------------------------------------------- */

enum { PIXELS_SIZE = 3072, IMAGES_MAX = 4 };

static unsigned char batch[IMAGES_MAX * (PIXELS_SIZE + 2)];

/* Image i has the labels 7 (coarse, only if there are two) and first + i, and pixels that count. */
static size_t make_batch(unsigned labels, unsigned first, unsigned count)
{
    unsigned char *p = batch;
    for (unsigned i = 0; i < count; i++) {
        if (labels == 2) *p++ = 7;
        *p++ = (unsigned char)(first + i);
        for (unsigned k = 0; k < PIXELS_SIZE; k++) *p++ = (unsigned char)(first + i + k);
    }
    return (size_t)(p - batch);
}

static void write_batch(const char *path, unsigned labels, unsigned first, unsigned count)
{
    write_raw(path, batch, make_batch(labels, first, count));
}

static void check_rows(const at_dataset *set, unsigned first, unsigned count, unsigned classes)
{
    assert_int_equal(at_dataset_count(set), count);
    assert_int_equal(at_dataset_classes(set), classes);
    assert_string_equal(at_dataset_format(set), "cifar");
    assert_string_equal(at_dataset_form(set), "3x32x32 bytes");
    assert_shape(set, 3, 32, 32);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(at_dataset_label(set, i), first + i);
        for (unsigned k = 0; k < PIXELS_SIZE; k++)
            assert_int_equal(set->rows[i * PIXELS_SIZE + k], (first + i + k) % 256);
    }
}

static void batches_of_cifar_10_are_read_in_order(void **state)
{
    (void)state;
    assert_int_equal(mkdir("set", 0777), 0);
    write_batch("set/data_batch_2.bin", 1, 3, 4);
    write_batch("set/data_batch_1.bin", 1, 0, 3);
    write_batch("set/test_batch.bin", 1, 8, 2);
    write_raw("set/batches.meta.txt", "airplane\n", 9);
    at_dataset *train = open_set("set", AT_SPLIT_TRAIN), *test = open_set("set", AT_SPLIT_TEST);
    check_rows(train, 0, 7, 10);
    check_rows(test, 8, 2, 10);
    at_dataset_free(train);
    at_dataset_free(test);
}

static void cifar_100_has_fine_labels(void **state)
{
    (void)state;
    assert_int_equal(mkdir("set", 0777), 0);
    write_batch("set/train.bin", 2, 96, 4);
    assert_true(at_dataset_has("set", AT_SPLIT_TRAIN));
    assert_false(at_dataset_has("set", AT_SPLIT_TEST));
    at_dataset *set = open_set("set", AT_SPLIT_TRAIN);
    check_rows(set, 96, 4, 100);
    at_dataset_free(set);
}

static void a_single_batch_is_a_train_set(void **state)
{
    (void)state;
    write_batch("ten.bin", 1, 5, 3);
    write_batch("hundred.bin", 2, 50, 4);
    write_gz("packed.bin", batch, make_batch(1, 5, 3));
    at_dataset *ten = open_set("ten.bin", AT_SPLIT_TRAIN);
    at_dataset *hundred = open_set("hundred.bin", AT_SPLIT_TRAIN);
    at_dataset *packed = open_set("packed.bin", AT_SPLIT_TRAIN);
    check_rows(ten, 5, 3, 10);
    check_rows(hundred, 50, 4, 100);
    check_rows(packed, 5, 3, 10);
    assert_false(at_dataset_has("ten.bin", AT_SPLIT_TEST));
    at_dataset_free(ten);
    at_dataset_free(hundred);
    at_dataset_free(packed);
}

static void a_batch_truncated_within_an_image_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir("set", 0777), 0);
    write_batch("set/data_batch_1.bin", 1, 0, 3);
    write_raw("set/data_batch_2.bin", batch, make_batch(1, 0, 2) - 100);
    refuse("set", AT_ERR_FORMAT, "set/data_batch_2.bin: truncated at byte 6046",
           "download the file again");
    assert_non_null(strstr(fail.text, "within image 1"));
    write_raw("train.bin", batch, make_batch(2, 0, 2) - 1);
    refuse("train.bin", AT_ERR_FORMAT, "train.bin: truncated at byte 6147",
           "download the file again");
    write_raw("tiny.bin", "\1", 1);
    refuse("tiny.bin", AT_ERR_FORMAT, "tiny.bin: truncated at byte 1", "download the file again");
}

static void other_files_are_recognized(void **state)
{
    (void)state;
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:00\n";
    write_raw("pointer.bin", pointer, sizeof pointer - 1);
    refuse("pointer.bin", AT_ERR_FORMAT, "it looks like a git-lfs pointer", "git lfs pull");
    write_raw("page.bin", "<html>404</html>", 16);
    refuse("page.bin", AT_ERR_FORMAT, "a web page", "download the data file itself");
    write_raw("none.bin", "", 0);
    refuse("none.bin", AT_ERR_FORMAT, "none.bin: the file is empty", "download the file again");
    write_gz("nothing.bin", "", 0);
    refuse("nothing.bin", AT_ERR_FORMAT, "nothing.bin: packed file without content",
           "download the file again");
    make_batch(1, 0, 4);
    batch[2 * (PIXELS_SIZE + 1)] = 10;
    write_raw("label.bin", batch, 4 * (PIXELS_SIZE + 1));
    refuse("label.bin", AT_ERR_FORMAT, "label.bin: byte 6146: image 2 has label 10",
           "download the file again");
    make_batch(2, 0, 4);
    batch[PIXELS_SIZE + 2] = 20;
    write_raw("coarse.bin", batch, 4 * (PIXELS_SIZE + 2));
    refuse("coarse.bin", AT_ERR_FORMAT, "coarse.bin: byte 3074: image 1 has label 20",
           "download the file again");
}

static void a_missing_split_is_named(void **state)
{
    (void)state;
    at_dataset *set;
    assert_int_equal(mkdir("set", 0777), 0);
    write_batch("set/test_batch.bin", 1, 0, 3);
    refuse("set", AT_ERR_MISSING, "data_batch_*.bin", "anytime data get cifar10");
    write_batch("set/data_batch_1.bin", 1, 0, 3);
    assert_int_equal(remove("set/test_batch.bin"), 0);
    assert_int_equal(at_dataset_open("set", AT_SPLIT_TEST, &set, &fail), AT_ERR_MISSING);
}

static void cifar10_has_the_official_bytes(void **state)
{
    (void)state;
    char                  folder[PATH_MAX];
    const at_catalog_row *row = at_catalog_find("cifar10");
    at_description        d;
    assert_non_null(row);
    if (at_catalog_locate(row, folder, &fail)) {
        print_message("skipped: %s (%s)\n", fail.text, fail.hint);
        skip();
    }
    assert_int_equal(at_fetch_verify(row, folder, &fail), AT_OK);
    assert_int_equal(at_describe("cifar10", NULL, &d, &fail), AT_OK);
    for (int c = 0; c < 10; c++) {
        assert_int_equal(d.labels[AT_SPLIT_TRAIN][c], 5000);
        assert_int_equal(d.labels[AT_SPLIT_TEST][c], 1000);
    }
    at_describe_deinit(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(idx_extents_define_image_shapes, empty_home),
        cmocka_unit_test_setup(interleaved_colors_become_planes, empty_home),
        cmocka_unit_test(a_vector_of_three_squares_is_an_image),
        cmocka_unit_test(synthetic_images_are_the_same_on_every_machine),
        cmocka_unit_test(synthetic_images_of_a_class_share_a_shifted_pattern),
        cmocka_unit_test(impossible_synthetic_images_are_refused),
        cmocka_unit_test_setup(batches_of_cifar_10_are_read_in_order, empty_home),
        cmocka_unit_test_setup(cifar_100_has_fine_labels, empty_home),
        cmocka_unit_test_setup(a_single_batch_is_a_train_set, empty_home),
        cmocka_unit_test_setup(a_batch_truncated_within_an_image_is_refused, empty_home),
        cmocka_unit_test_setup(other_files_are_recognized, empty_home),
        cmocka_unit_test_setup(a_missing_split_is_named, empty_home),
        cmocka_unit_test(cifar10_has_the_official_bytes),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
