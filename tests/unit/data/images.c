/* Folders of JPEG and PNG images: listing, decoding, scaling. */
#include "open_sets.h"

#include "base/file.h"
#include "data/formats/image.h"
#include "data/set/dataset.h"
#include "data/set/store.h"

#include <jpeglib.h>
#include <png.h>
#include <sys/stat.h>

/* ---- writing images -------------------------------------------------------------------------- */

typedef struct rgb_image {
    uint32_t      width, height;
    unsigned char rgb[64 * 64 * 3];
} rgb_image;

/* Red increases to the right, green downwards, blue is constant. */
static void paint(rgb_image *p, uint32_t width, uint32_t height, unsigned blue)
{
    p->width = width, p->height = height;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            unsigned char *pixel = p->rgb + (y * width + x) * 3;
            pixel[0] = (unsigned char)(width > 1 ? x * 255 / (width - 1) : 0);
            pixel[1] = (unsigned char)(height > 1 ? y * 255 / (height - 1) : 0);
            pixel[2] = (unsigned char)blue;
        }
}

static void write_png(const char *path, const rgb_image *p)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = p->width,
                       .height = p->height,
                       .format = PNG_FORMAT_RGB};
    assert_int_not_equal(png_image_write_to_file(&image, path, 0, p->rgb, 0, NULL), 0);
}

static void write_jpeg(const char *path, const rgb_image *p)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr       errors;
    FILE                       *file = fopen(path, "wb");
    assert_non_null(file);
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_stdio_dest(&jpeg, file);
    jpeg.image_width = p->width;
    jpeg.image_height = p->height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 95, TRUE);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < p->height) {
        JSAMPROW line =
            (unsigned char *)(uintptr_t)p->rgb + (size_t)jpeg.next_scanline * p->width * 3;
        jpeg_write_scanlines(&jpeg, &line, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    fclose(file);
}

static at_err decode(const char *path, uint32_t side, at_image *image)
{
    size_t         size;
    unsigned char *bytes = read_all(path, &size);
    at_image_file  file = {path, bytes, size};
    fail = (at_fail){0};
    at_err err = at_image_decode(&file, side, image, &fail);
    free(bytes);
    return err;
}

/* ---- decoding -------------------------------------------------------------------------------- */

static void a_png_is_decoded_exactly(void **state)
{
    (void)state;
    static rgb_image p;
    at_image         image;
    paint(&p, 20, 30, 77);
    write_png("a.png", &p);
    assert_int_equal(decode("a.png", 0, &image), AT_OK);
    assert_int_equal(image.width, 20);
    assert_int_equal(image.height, 30);
    assert_memory_equal(image.pixels, p.rgb, 20 * 30 * 3);
    at_image_deinit(&image);
}

/* Every kind of PNG becomes RGB: here 16-bit grey with transparency, and a palette. */
static void other_kinds_of_png_become_rgb(void **state)
{
    (void)state;
    at_image  image;
    uint16_t  grey_alpha[4] = {0xffff, 0xffff, 0, 0xffff}; /* linear: white, black */
    png_image grey = {
        .version = PNG_IMAGE_VERSION, .width = 2, .height = 1, .format = PNG_FORMAT_LINEAR_Y_ALPHA};
    assert_int_not_equal(png_image_write_to_file(&grey, "g.png", 0, grey_alpha, 0, NULL), 0);
    assert_int_equal(decode("g.png", 0, &image), AT_OK);
    assert_memory_equal(image.pixels, "\xff\xff\xff\0\0\0", 6);
    at_image_deinit(&image);
    png_image palette = {.version = PNG_IMAGE_VERSION,
                         .width = 2,
                         .height = 1,
                         .format = PNG_FORMAT_RGB_COLORMAP,
                         .colormap_entries = 2};
    assert_int_not_equal(png_image_write_to_file(&palette, "p.png", 0, "\1\0", 0, "\1\2\3\4\5\6"),
                         0);
    assert_int_equal(decode("p.png", 0, &image), AT_OK);
    assert_memory_equal(image.pixels, "\4\5\6\1\2\3", 6);
    at_image_deinit(&image);
}

static void a_jpeg_is_decoded_closely(void **state)
{
    (void)state;
    static rgb_image p;
    at_image         image;
    paint(&p, 48, 40, 100);
    write_jpeg("a.jpg", &p);
    assert_int_equal(decode("a.jpg", 0, &image), AT_OK);
    assert_int_equal(image.width, 48);
    assert_int_equal(image.height, 40);
    for (int i = 0; i < 48 * 40 * 3; i++) assert_in_range(image.pixels[i] + 12 - p.rgb[i], 0, 24);
    at_image_deinit(&image);
    assert_int_equal(decode("a.jpg", 10, &image), AT_OK); /* may be half or a quarter of the size */
    assert_int_equal(image.width, 12);
    assert_int_equal(image.height, 10);
    at_image_deinit(&image);
}

static void truncated_images_are_refused(void **state)
{
    (void)state;
    static rgb_image p;
    at_image         image;
    paint(&p, 48, 40, 100);
    write_jpeg("a.jpg", &p);
    write_png("a.png", &p);
    for (int kind = 0; kind < 2; kind++) {
        size_t         size;
        unsigned char *bytes = read_all(kind ? "a.png" : "a.jpg", &size);
        for (size_t length = 0; length < size - 4; length += 5) {
            at_image_file file = {"cut", bytes, length};
            fail = (at_fail){0};
            assert_int_equal(at_image_decode(&file, 0, &image, &fail), AT_ERR_FORMAT);
            assert_non_null(strstr(fail.text, "cut: "));
            assert_true(fail.hint[0]);
            assert_null(image.pixels);
        }
        free(bytes);
    }
}

static void a_header_is_not_trusted(void **state)
{
    (void)state;
    static rgb_image p;
    size_t           size;
    at_image         image;
    paint(&p, 4, 4, 0);
    write_png("a.png", &p);
    unsigned char *bytes = read_all("a.png", &size);
    memcpy(bytes + 16, "\0\x0f\xff\xff\0\x0f\xff\xff", 8); /* a million by a million pixels */
    uLong crc = crc32(0, bytes + 12, 17);
    for (int i = 0; i < 4; i++) bytes[29 + i] = (unsigned char)(crc >> (24 - 8 * i));
    at_image_file file = {"huge.png", bytes, size};
    assert_int_equal(at_image_decode(&file, 0, &image, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "huge.png: 1048575 x 1048575 pixels"));
    free(bytes);
}

/* ---- scaling and cropping -------------------------------------------------------------------- */

static void fit(const rgb_image *p, at_image_fit_mode how, uint32_t side, unsigned char *row)
{
    at_image image = {(unsigned char *)(uintptr_t)p->rgb, p->width, p->height};
    assert_int_equal(at_image_fit(&image, how, side, row, &fail), AT_OK);
}

static void an_image_of_the_right_size_is_not_changed(void **state)
{
    (void)state;
    static rgb_image p;
    unsigned char    row[3 * 16 * 16];
    paint(&p, 16, 16, 9);
    for (int how = AT_IMAGE_RESIZE; how <= AT_IMAGE_CROP; how++) {
        fit(&p, (at_image_fit_mode)how, 16, row);
        for (int i = 0; i < 256; i++)
            for (int c = 0; c < 3; c++) assert_int_equal(row[c * 256 + i], p.rgb[i * 3 + c]);
    }
}

static void halving_averages_neighboring_pixels(void **state)
{
    (void)state;
    rgb_image     p = {.width = 4, .height = 4};
    unsigned char row[3 * 2 * 2];
    memset(p.rgb, 100, 4 * 4 * 3);
    fit(&p, AT_IMAGE_RESIZE, 2, row);
    for (int i = 0; i < 12; i++) assert_int_equal(row[i], 100); /* weights add up to one */
    paint(&p, 4, 4, 0);
    fit(&p, AT_IMAGE_RESIZE, 2, row);
    assert_int_equal(row[0] + row[1], 255); /* red is symmetric */
    assert_in_range(row[0], 50, 75);
    assert_int_equal(row[4], row[0]);
    assert_int_equal(row[4 + 2], row[1]);
}

/* A wide image is cropped to its center; enlarging keeps a ramp a ramp. */
static void scaling_keeps_the_center(void **state)
{
    (void)state;
    static rgb_image p;
    unsigned char    row[3 * 32 * 32];
    paint(&p, 48, 16, 5);
    fit(&p, AT_IMAGE_RESIZE, 32, row);
    for (int y = 0; y < 32; y++)
        for (int x = 0; x < 32; x++) {
            assert_in_range(row[y * 32 + x], 255 / 3 - 6 + x * 85 / 32, 255 / 3 + 6 + x * 85 / 32);
            assert_int_equal(row[2 * 1024 + y * 32 + x], 5);
        }
    for (int y = 1; y < 32; y++) assert_true(row[1024 + y * 32] >= row[1024 + (y - 1) * 32]);
}

static void cropping_pads_with_black(void **state)
{
    (void)state;
    static rgb_image p;
    unsigned char    row[3 * 8 * 8];
    paint(&p, 4, 16, 50);
    fit(&p, AT_IMAGE_CROP, 8, row);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++) {
            bool inside = x >= 2 && x < 6;
            assert_int_equal(row[2 * 64 + y * 8 + x], inside ? 50 : 0);
            assert_int_equal(row[64 + y * 8 + x], inside ? (y + 4) * 255 / 15 : 0);
        }
}

static void extreme_shapes_are_scaled(void **state)
{
    (void)state;
    static rgb_image p;
    unsigned char    row[3 * 9 * 9];
    for (uint32_t w = 1; w <= 64; w += 7)
        for (uint32_t h = 1; h <= 64; h += 9) {
            paint(&p, w, h, 200);
            for (uint32_t side = 1; side <= 9; side += 2) {
                fit(&p, AT_IMAGE_RESIZE, side, row);
                for (uint32_t i = 0; i < side * side; i++)
                    assert_int_equal(row[2 * side * side + i], 200);
            }
        }
}

/* ---- folders --------------------------------------------------------------------------------- */

static at_dataset *open_images(const char *name, at_split split)
{
    at_dataset *set = open_set(name, split);
    assert_string_equal(at_dataset_format(set), "images");
    return set;
}

static void make_folders(const char *const *paths)
{
    for (; *paths; paths++) assert_int_equal(at_file_make_folder(*paths, &fail), AT_OK);
}

/* Writes FOLDER/CLASS/NAME with that blue, JPEG or PNG by its name. */
static void write_image(const char *path, unsigned blue)
{
    static rgb_image p;
    paint(&p, 30, 20, blue);
    if (strstr(path, ".png"))
        write_png(path, &p);
    else
        write_jpeg(path, &p);
}

static void a_folder_with_both_splits_is_read(void **state)
{
    (void)state;
    make_folders(
        (const char *[]){"f/train/cat", "f/train/ant", "f/train/empty", "f/val/cat", NULL});
    write_image("f/train/ant/2.png", 20);
    write_image("f/train/ant/1.JPG", 10);
    write_image("f/train/cat/x.jpeg", 30);
    write_image("f/val/cat/x.png", 40);
    write_raw("f/train/cat/notes.txt", "no image", 8);
    write_raw("f/train/cat/._x.jpg", "a shadow", 8);
    at_dataset *train = open_images("f,16", AT_SPLIT_TRAIN),
               *test = open_images("f,16", AT_SPLIT_TEST);
    assert_int_equal(at_dataset_count(train), 3);
    assert_int_equal(at_dataset_classes(train), 2);
    assert_int_equal(at_dataset_classes(test), 2);
    assert_int_equal(at_dataset_features(train), 3 * 16 * 16);
    assert_string_equal(at_dataset_form(train), "3x16x16 bytes");
    assert_int_equal(at_dataset_shape(train).channels, 3);
    assert_string_equal(at_store_name(train, 0), "ant");
    assert_string_equal(at_store_name(train, 1), "cat");
    static const unsigned blues[] = {10, 20, 30};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(at_dataset_label(train, i), i == 2);
        assert_in_range(train->rows[i * 768 + 2 * 256 + 100], blues[i] - 3, blues[i] + 3);
    }
    assert_int_equal(at_dataset_label(test, 0), 1);
    assert_int_equal(test->rows[2 * 256], 40);
    at_dataset_free(train);
    at_dataset_free(test);
    make_folders((const char *[]){"f/val/dog", NULL});
    write_image("f/val/dog/x.png", 40);
    assert_int_equal(at_dataset_open("f,16", AT_SPLIT_TEST, &test, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "f/val/dog: the train set has no class"));
}

static void without_splits_about_a_fifth_is_for_testing(void **state)
{
    (void)state;
    char path[64];
    make_folders((const char *[]){"f/a", "f/b", NULL});
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof path, "f/%c/image%d.png", i % 2 ? 'a' : 'b', i);
        write_image(path, (unsigned)i);
    }
    at_dataset *train = open_images("f,4", AT_SPLIT_TRAIN),
               *test = open_images("f,4", AT_SPLIT_TEST);
    bool seen[40] = {false};
    assert_int_equal(at_dataset_count(train) + at_dataset_count(test), 40);
    assert_in_range(at_dataset_count(test), 3, 16);
    for (int split = 0; split < 2; split++) {
        const at_dataset *set = split ? test : train;
        for (uint64_t i = 0; i < at_dataset_count(set); i++) {
            unsigned blue = set->rows[i * 48 + 32];
            assert_false(seen[blue]);
            seen[blue] = true;
            assert_int_equal(at_dataset_label(set, i), blue % 2 ? 0 : 1);
        }
    }
    at_dataset_free(train);
    at_dataset_free(test);
}

static void the_size_is_224_unless_it_is_given(void **state)
{
    (void)state;
    at_dataset *set;
    make_folders((const char *[]){"f/train/a", NULL});
    write_image("f/train/a/1.png", 20);
    set = open_images("f", AT_SPLIT_TRAIN);
    assert_int_equal(at_dataset_shape(set).width, 224);
    at_dataset_free(set);
    set = open_images("images:f,8,crop", AT_SPLIT_TRAIN);
    assert_int_equal(set->rows[0], 11 * 255 / 29); /* the center, not scaled */
    at_dataset_free(set);
    assert_false(at_dataset_has("f", AT_SPLIT_TEST));
    static const char *const wrong[] = {"images:f,0", "images:f,5000", "images:f,x",
                                        "images:f,8,pad"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_not_equal(at_dataset_open(wrong[i], AT_SPLIT_TRAIN, &set, &fail), AT_OK);
        assert_non_null(strstr(fail.hint, "FOLDER,SIZE"));
    }
}

/* Threads may find them in any order; the message does not depend on it. */
static void the_first_broken_image_is_named(void **state)
{
    (void)state;
    at_dataset *set;
    char        path[64];
    make_folders((const char *[]){"f/train/a", NULL});
    for (int i = 10; i < 60; i++) {
        snprintf(path, sizeof path, "f/train/a/%d.png", i);
        if (i % 7 == 3)
            write_raw(path, "version https://git-lfs.github.com/spec/v1\n", 43);
        else
            write_image(path, 1);
    }
    for (int repeat = 0; repeat < 5; repeat++) {
        assert_int_equal(at_dataset_open("f,8", AT_SPLIT_TRAIN, &set, &fail), AT_ERR_FORMAT);
        assert_non_null(strstr(fail.text, "f/train/a/10.png: not a JPEG or PNG image; it looks "
                                          "like a git-lfs pointer"));
        assert_non_null(strstr(fail.hint, "git lfs pull"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_png_is_decoded_exactly, empty_home),
        cmocka_unit_test_setup(other_kinds_of_png_become_rgb, empty_home),
        cmocka_unit_test_setup(a_jpeg_is_decoded_closely, empty_home),
        cmocka_unit_test_setup(truncated_images_are_refused, empty_home),
        cmocka_unit_test_setup(a_header_is_not_trusted, empty_home),
        cmocka_unit_test(an_image_of_the_right_size_is_not_changed),
        cmocka_unit_test(halving_averages_neighboring_pixels),
        cmocka_unit_test(scaling_keeps_the_center),
        cmocka_unit_test(cropping_pads_with_black),
        cmocka_unit_test(extreme_shapes_are_scaled),
        cmocka_unit_test_setup(a_folder_with_both_splits_is_read, empty_home),
        cmocka_unit_test_setup(without_splits_about_a_fifth_is_for_testing, empty_home),
        cmocka_unit_test_setup(the_size_is_224_unless_it_is_given, empty_home),
        cmocka_unit_test_setup(the_first_broken_image_is_named, empty_home),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
