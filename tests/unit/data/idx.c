#include "open_sets.h"

#include "base/rng.h"
#include "data/files/source.h"
#include "data/set/dataset.h"
#include "data/set/describe.h"

#include <sys/stat.h>

/* Like refuse, for invalid images with valid labels of three samples; the text names the file. */
static void refuse_images(const char *path, at_err code, const char *words, const char *hint)
{
    static idx_bytes labels;
    char             pair[256];
    idx_make(&labels, 3, 1, 3u);
    write_raw("labels", labels.bytes, labels.size);
    snprintf(pair, sizeof pair, "%s,labels", path);
    refuse(pair, code, words, hint);
    assert_non_null(strstr(fail.text, path));
}

static idx_bytes good; /* three images of 4 x 5 */

static int make_good(void **state)
{
    idx_make(&good, 251, 3, 3u, 4u, 5u);
    return empty_home(state);
}

static void check_round_trip(const char *name)
{
    at_dataset *set;
    float       x[3 * 20];
    uint32_t    labels[3];
    assert_int_equal(at_dataset_open(name, AT_SPLIT_TRAIN, &set, &fail), AT_OK);
    assert_int_equal(at_dataset_count(set), 3);
    assert_int_equal(at_dataset_features(set), 20);
    assert_int_equal(at_dataset_classes(set), 3);
    assert_string_equal(at_dataset_form(set), "4x5 bytes");
    assert_string_equal(at_dataset_format(set), "idx");
    at_dataset_rows(set, x, labels, (const uint64_t[]){2, 0, 1}, 3);
    static const unsigned order[] = {2, 0, 1};
    for (unsigned r = 0; r < 3; r++) {
        assert_int_equal(labels[r], order[r]);
        for (unsigned f = 0; f < 20; f++) {
            float expected = (float)(order[r] * 20 + f) * (1.0f / 255.0f);
            assert_memory_equal(&x[r * 20 + f], &expected, sizeof expected);
        }
    }
    at_dataset_free(set);
}

static void files_are_read_as_written(void **state)
{
    (void)state;
    static idx_bytes labels;
    idx_make(&labels, 3, 1, 3u);
    write_raw("images", good.bytes, good.size);
    write_raw("labels", labels.bytes, labels.size);
    write_gz("images.gz", good.bytes, good.size);
    write_gz("labels.gz", labels.bytes, labels.size);
    check_round_trip("images,labels");
    check_round_trip("images.gz,labels.gz");
    check_round_trip("images,labels.gz");
    assert_int_equal(rename("images.gz", "packed"), 0); /* the content decides, not the name */
    check_round_trip("packed,labels");
}

/* gzip allows several members one after the other. */
static void gzip_members_are_joined(void **state)
{
    (void)state;
    static idx_bytes labels;
    idx_make(&labels, 3, 1, 3u);
    write_raw("labels", labels.bytes, labels.size);
    write_gz("a", good.bytes, 30);
    write_gz("b", good.bytes + 30, good.size - 30);
    size_t         a_size, b_size;
    unsigned char *a = read_all("a", &a_size), *b = read_all("b", &b_size);
    a = realloc(a, a_size + b_size);
    memcpy(a + a_size, b, b_size);
    write_raw("both.gz", a, a_size + b_size);
    free(a);
    free(b);
    check_round_trip("both.gz,labels");
}

static void a_folder_is_searched_for_the_usual_names(void **state)
{
    (void)state;
    static idx_bytes labels;
    at_dataset      *set;
    assert_int_equal(mkdir("set", 0777), 0);
    refuse("set", AT_ERR_MISSING, "train-images*", "FORMAT:PATH");
    idx_make(&labels, 3, 1, 3u);
    write_gz("set/train-images-idx3-ubyte.gz", good.bytes, good.size);
    refuse("set", AT_ERR_MISSING, "train-labels", "IDX");
    write_raw("set/train-labels.idx1-ubyte", labels.bytes, labels.size);
    check_round_trip("set");
    check_round_trip("set/");
    assert_true(at_dataset_has("set", AT_SPLIT_TRAIN));
    assert_false(at_dataset_has("set", AT_SPLIT_TEST));
    assert_int_equal(at_dataset_open("set", AT_SPLIT_TEST, &set, &fail), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, "t10k-images"));
}

static void train_and_test_have_the_same_classes(void **state)
{
    (void)state;
    static idx_bytes labels;
    at_dataset      *set;
    assert_int_equal(mkdir("set", 0777), 0);
    write_raw("set/train-images", good.bytes, good.size);
    write_raw("set/t10k-images", good.bytes, good.size);
    idx_make(&labels, 3, 1, 3u);
    write_raw("set/train-labels", labels.bytes, labels.size);
    labels.bytes[10] = 1; /* the test set lacks class 2 */
    write_raw("set/t10k-labels", labels.bytes, labels.size);
    assert_int_equal(at_dataset_open("set", AT_SPLIT_TEST, &set, &fail), AT_OK);
    assert_int_equal(at_dataset_classes(set), 3);
    at_dataset_free(set);
    labels.bytes[10] = 7; /* the test set has a class that the train set lacks */
    write_raw("set/t10k-labels", labels.bytes, labels.size);
    assert_int_equal(at_dataset_open("set", AT_SPLIT_TEST, &set, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "label 7"));
}

static void sets_opened_separately_can_be_matched(void **state)
{
    (void)state;
    static idx_bytes labels, wide;
    at_dataset      *train, *test;
    idx_make(&labels, 3, 1, 3u);
    write_raw("images", good.bytes, good.size);
    write_raw("labels", labels.bytes, labels.size);
    labels.bytes[10] = 0;
    write_raw("fewer", labels.bytes, labels.size);
    assert_int_equal(at_dataset_open("images,labels", AT_SPLIT_TRAIN, &train, &fail), AT_OK);
    assert_int_equal(at_dataset_open("images,fewer", AT_SPLIT_TEST, &test, &fail), AT_OK);
    assert_int_equal(at_dataset_classes(test), 2);
    assert_int_equal(at_dataset_match(test, train, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_OK);
    assert_int_equal(at_dataset_classes(test), 3);
    at_dataset_free(test);
    idx_make(&wide, 251, 2, 3u, 21u);
    write_raw("wide", wide.bytes, wide.size);
    assert_int_equal(at_dataset_open("wide,labels", AT_SPLIT_TEST, &test, &fail), AT_OK);
    assert_int_equal(at_dataset_match(train, test, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "21"));
    at_dataset_free(train);
    at_dataset_free(test);
}

static void missing_and_unreadable_files_are_distinguished(void **state)
{
    (void)state;
    refuse_images("nowhere", AT_ERR_MISSING, "no such file", "data list");
    refuse("nowhere", AT_ERR_MISSING, "nowhere", "data list");
    refuse("mnits", AT_ERR_MISSING, "mnits", "mnist");
    assert_int_equal(mkdir("folder", 0777), 0);
    refuse_images("folder", AT_ERR_IO, "not a regular file", "file");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    refuse_images("pipe", AT_ERR_IO, "not a regular file", "file");
    assert_int_equal(symlink("/proc/self/mem", "sick"), 0); /* reading at 0 gives EIO */
    refuse_images("sick", AT_ERR_IO, "read error", "disk");
}

static void short_and_long_files_are_refused(void **state)
{
    (void)state;
    write_raw("empty", "", 0);
    refuse_images("empty", AT_ERR_FORMAT, "empty", "again");
    for (size_t size = 1; size < good.size; size++) {
        write_raw("cut", good.bytes, size);
        refuse_images("cut", AT_ERR_FORMAT, "byte", "again");
        write_gz("cut.gz", good.bytes, size);
        refuse_images("cut.gz", AT_ERR_FORMAT, "byte", "again");
    }
    write_raw("long", good.bytes, good.size + 1);
    refuse_images("long", AT_ERR_FORMAT, "extra bytes after byte 76", "again");
    write_gz("long.gz", good.bytes, good.size + 1);
    refuse_images("long.gz", AT_ERR_FORMAT, "extra bytes after byte 76", "again");
}

static void impossible_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header, *words;
    } cases[] = {
        {"\0\0\x0d\3", "type 0d"},
        {"\0\0\x08\0", "0 dimensions"},
        {"\0\0\x08\x09", "9 dimensions"},
        {"\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "too many"},
        {"\0\0\x08\3\0\0\0\0\0\0\0\4\0\0\0\5", "no samples"},
        {"\0\0\x08\3\0\0\0\3\0\0\0\0\0\0\0\5", "no samples"},
        {"\0\0\x08\3\x40\0\0\0\0\0\0\4\0\0\0\5", "claims 21474836480 bytes"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        idx_bytes *bad = malloc(sizeof *bad);
        *bad = good;
        size_t header_size = c < 3 ? 4 : 16;
        memcpy(bad->bytes, cases[c].header, header_size);
        write_raw("bad", bad->bytes, bad->size);
        refuse_images("bad", AT_ERR_FORMAT, cases[c].words, "");
        assert_true(fail.hint[0] != '\0');
        write_gz("bad.gz", bad->bytes, bad->size);
        refuse_images("bad.gz", AT_ERR_FORMAT, c == 6 ? "claims" : cases[c].words, "");
        free(bad);
    }
}

static void images_and_labels_must_match(void **state)
{
    (void)state;
    static idx_bytes labels;
    idx_make(&labels, 3, 1, 4u);
    write_raw("four", labels.bytes, labels.size);
    write_raw("images", good.bytes, good.size);
    refuse("images,four", AT_ERR_FORMAT, "images has 3 images, but four has 4 labels",
           "same data set");
    refuse("four,images", AT_ERR_FORMAT, "images: labels must have 1 dimension", "swapped");
    refuse("four,four", AT_ERR_FORMAT, "four: images must have 2", "swapped");
    refuse("images", AT_ERR_USAGE, "images", "IMAGES,LABELS");
    refuse("images,", AT_ERR_MISSING, "no such file", "");
}

static void other_kinds_of_files_are_recognized(void **state)
{
    (void)state;
    static const struct {
        const char *path, *text, *words, *hint;
    } cases[] = {
        {"pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
         "git-lfs", "git lfs pull"},
        {"pointer.gz", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
         "git-lfs", "git lfs pull"},
        {"page", "\n<!DOCTYPE html><html><body>404</body></html>", "web page", "download"},
        {"page.gz", "<html>404</html>", "named .gz but not gzip", "download"},
        {"archive", "PK\x03\x04 and more", "zip archive", "unzip"},
        {"words", "these are only words", "text", "data list"},
        {"noise", "\x01\x02\x03\x04\x05", "unknown binary data 01 02 03 04", "data list"},
        {"short", "\x01\x02", "truncated at byte 2", "again"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        write_raw(cases[c].path, cases[c].text, strlen(cases[c].text));
        refuse_images(cases[c].path, AT_ERR_FORMAT, cases[c].words, cases[c].hint);
    }
    write_raw("raw.gz", good.bytes, good.size);
    refuse_images("raw.gz", AT_ERR_FORMAT, "raw IDX", "rename");
    refuse("words", AT_ERR_FORMAT, "words: ", "data list");
}

static void damaged_gzip_is_refused(void **state)
{
    (void)state;
    write_gz("nothing.gz", "", 0);
    refuse_images("nothing.gz", AT_ERR_FORMAT, "packed file without content", "again");

    size_t size;
    write_gz("good.gz", good.bytes, good.size);
    unsigned char *bytes = read_all("good.gz", &size);
    for (size_t cut = 2; cut < size; cut++) {
        write_raw("cut.gz", bytes, cut);
        refuse_images("cut.gz", AT_ERR_FORMAT, "cut.gz", "again");
    }
    bytes[size - 8] ^= 1; /* the checksum */
    write_raw("crc.gz", bytes, size);
    refuse_images("crc.gz", AT_ERR_FORMAT, "damaged gzip stream", "again");
    bytes[size - 8] ^= 1;
    bytes[size - 1] ^= 1; /* the length */
    write_raw("length.gz", bytes, size);
    refuse_images("length.gz", AT_ERR_FORMAT, "damaged gzip stream", "again");
    bytes[size - 1] ^= 1;
    bytes[size] = 'x'; /* read_all leaves room */
    write_raw("tail.gz", bytes, size + 1);
    refuse_images("tail.gz", AT_ERR_FORMAT, "after the gzip stream", "again");
    free(bytes);
}

/* A small file that would inflate to 64 MB is unpacked only to the size in its header. */
static void unpacking_stops_at_the_size_in_the_header(void **state)
{
    (void)state;
    size_t         size = (size_t)64 << 20;
    unsigned char *bomb = calloc(size, 1);
    memcpy(bomb, good.bytes, good.size);
    write_gz("bomb.gz", bomb, size);
    free(bomb);
    refuse_images("bomb.gz", AT_ERR_FORMAT, "extra bytes after byte 76", "again");
}

/* Opens and closes a pair; fails only with the codes for invalid files. */
static bool try_pair(const char *pair)
{
    at_dataset *set;
    fail = (at_fail){0};
    at_err err = at_dataset_open(pair, AT_SPLIT_TRAIN, &set, &fail);
    if (err) {
        assert_int_equal(err, AT_ERR_FORMAT);
        assert_true(fail.text[0] && fail.hint[0]);
        return false;
    }
    float    x[1 << 10];
    uint32_t label;
    uint64_t last = at_dataset_count(set) - 1;
    if (at_dataset_features(set) <= sizeof x / sizeof *x) at_dataset_rows(set, x, &label, &last, 1);
    at_dataset_free(set);
    return true;
}

static void mutate(unsigned char *bytes, size_t *size, at_rng *rng)
{
    static const unsigned char edges[] = {0, 1, 0x7f, 0x80, 0xff, 0x1f, 0x8b};
    for (uint64_t n = 1 + at_rng_below(rng, 4); n > 0; n--) {
        size_t where = (size_t)at_rng_below(rng, *size);
        switch (at_rng_below(rng, 4)) {
        case 0: bytes[where] ^= (unsigned char)(1u << at_rng_below(rng, 8)); break;
        case 1: bytes[where] = edges[at_rng_below(rng, sizeof edges)]; break;
        case 2: *size = where + 1; break;
        case 3: bytes[where % 20 % *size] = edges[at_rng_below(rng, sizeof edges)]; break;
        }
    }
}

static void mutated_files_are_read_or_refused(void **state)
{
    (void)state;
    static idx_bytes labels;
    size_t           packed_size, accepted = 0;
    idx_make(&labels, 3, 1, 3u);
    write_raw("labels", labels.bytes, labels.size);
    write_gz("good.gz", good.bytes, good.size);
    unsigned char *packed = read_all("good.gz", &packed_size);
    unsigned char *bytes = malloc(good.size + packed_size);
    for (uint64_t round = 0; round < 4000; round++) {
        at_rng               rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, round);
        const unsigned char *from = round % 2 ? packed : good.bytes;
        size_t               size = round % 2 ? packed_size : good.size;
        memcpy(bytes, from, size);
        mutate(bytes, &size, &rng);
        write_raw("mutant", bytes, size);
        accepted += try_pair("mutant,labels");
    }
    assert_in_range(accepted, 100, 2000); /* changed pixels are not detected */
    free(packed);
    free(bytes);
}

static void a_description_counts_labels_and_finds_damage(void **state)
{
    (void)state;
    static idx_bytes labels;
    at_description   d;
    idx_make(&labels, 2, 1, 3u);
    write_raw("images", good.bytes, good.size);
    write_gz("labels.gz", labels.bytes, labels.size);
    assert_int_equal(at_describe("images,labels.gz", NULL, &d, &fail), AT_OK);
    assert_int_equal(d.count[AT_SPLIT_TRAIN], 3);
    assert_int_equal(d.count[AT_SPLIT_TEST], 0);
    assert_int_equal(d.classes, 2);
    assert_int_equal(d.labels[AT_SPLIT_TRAIN][0], 2);
    assert_int_equal(d.labels[AT_SPLIT_TRAIN][1], 1);
    assert_null(d.license);
    at_describe_deinit(&d);
    assert_int_equal(at_describe("labels.gz", NULL, &d, &fail), AT_OK);
    assert_string_equal(d.form, "labels");
    assert_int_equal(d.labels[AT_SPLIT_TRAIN][0], 2);
    at_describe_deinit(&d);
    assert_int_equal(at_describe("images", NULL, &d, &fail), AT_OK);
    assert_string_equal(d.form, "4x5 bytes");
    assert_int_equal(d.classes, 0);
    at_describe_deinit(&d);
    write_raw("images", good.bytes, good.size - 1);
    assert_int_equal(at_describe("images", NULL, &d, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_describe("images,labels.gz", NULL, &d, &fail), AT_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(files_are_read_as_written, make_good),
        cmocka_unit_test_setup(gzip_members_are_joined, make_good),
        cmocka_unit_test_setup(a_folder_is_searched_for_the_usual_names, make_good),
        cmocka_unit_test_setup(train_and_test_have_the_same_classes, make_good),
        cmocka_unit_test_setup(sets_opened_separately_can_be_matched, make_good),
        cmocka_unit_test_setup(missing_and_unreadable_files_are_distinguished, make_good),
        cmocka_unit_test_setup(short_and_long_files_are_refused, make_good),
        cmocka_unit_test_setup(impossible_headers_are_refused, make_good),
        cmocka_unit_test_setup(images_and_labels_must_match, make_good),
        cmocka_unit_test_setup(other_kinds_of_files_are_recognized, make_good),
        cmocka_unit_test_setup(damaged_gzip_is_refused, make_good),
        cmocka_unit_test_setup(unpacking_stops_at_the_size_in_the_header, make_good),
        cmocka_unit_test_setup(mutated_files_are_read_or_refused, make_good),
        cmocka_unit_test_setup(a_description_counts_labels_and_finds_damage, make_good),
    };
    return cmocka_run_group_tests(tests, enter_home, leave_home);
}
