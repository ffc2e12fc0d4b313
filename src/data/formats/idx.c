#include "data/formats/idx.h"

#include "base/arena.h"
#include "base/text.h"
#include "data/files/folder.h"
#include "data/files/sniff.h"
#include "data/formats/format.h"
#include "data/formats/image_shape.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { TYPE_BYTE = 0x08, CHUNK_SIZE = 4096 };

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static at_err read_exactly(at_source *source, void *bytes, size_t size, const char *what,
                           at_fail *fail)
{
    assert(size > 0);
    uint64_t start = at_source_position(source);
    size_t   got;
    AT_TRY(at_source_read(source, bytes, size, &got, fail));
    if (got == size) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: truncated at byte %llu, within %s that end at byte %llu",
                       at_source_path(source), (unsigned long long)(start + got), what,
                       (unsigned long long)(start + size));
}

/* Reports what the file looks like instead. */
static at_err not_idx(at_source *source, const unsigned char magic[4], at_fail *fail)
{
    assert(magic[0] || magic[1]);
    unsigned char bytes[AT_SNIFF_SIZE];
    size_t        got;
    memcpy(bytes, magic, 4);
    AT_TRY(at_source_read(source, bytes + 4, sizeof bytes - 4, &got, fail));
    at_sniff_result sniffed = at_sniff(bytes, got + 4);
    return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint, "%s: not an IDX file; it looks like %s",
                       at_source_path(source), sniffed.what);
}

static at_err read_magic(at_idx *idx, at_source *source, at_fail *fail)
{
    assert(at_source_position(source) == 0);
    unsigned char magic[4] = {0};
    size_t        got;
    AT_TRY(at_source_read(source, magic, sizeof magic, &got, fail));
    if (got == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: packed file without content (0 bytes)", at_source_path(source));
    if (got < sizeof magic)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: truncated at byte %zu, within the IDX header",
                           at_source_path(source), got);
    if (magic[0] || magic[1]) return not_idx(source, magic, fail);
    if (magic[2] != TYPE_BYTE)
        return at_fail_set(fail, AT_ERR_FORMAT, "convert it to bytes (type 08)",
                           "%s: byte 2: unsupported IDX element type %02x", at_source_path(source),
                           magic[2]);
    if (magic[3] < 1 || magic[3] > AT_IDX_DIMS_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: byte 3: IDX header with %u dimensions (supported: 1 to %d)",
                           at_source_path(source), magic[3], AT_IDX_DIMS_MAX);
    idx->dims = magic[3];
    return AT_OK;
}

/* Computes payload_size and features; false on overflow or when an extent is zero. */
static bool multiply(at_idx *idx)
{
    assert(idx->dims >= 1 && idx->dims <= AT_IDX_DIMS_MAX);
    size_t features = 1;
    for (uint32_t d = 1; d < idx->dims; d++)
        if (!at_size_product(features, idx->extent[d], &features)) return false;
    if (features == 0 || features > UINT32_MAX || idx->extent[0] == 0) return false;
    idx->features = (uint32_t)features;
    return at_size_product(features, idx->extent[0], &idx->payload_size);
}

/* Reads the header; the next byte of the source is then the first element. */
static at_err read_header(at_idx *idx, at_source *source, at_fail *fail)
{
    assert(idx && source);
    unsigned char extents[4 * AT_IDX_DIMS_MAX];
    const char   *path = at_source_path(source);
    *idx = (at_idx){0};
    AT_TRY(read_magic(idx, source, fail));
    AT_TRY(
        read_exactly(source, extents, 4 * (size_t)idx->dims, "the dimensions in the header", fail));
    for (uint32_t d = 0; d < idx->dims; d++) idx->extent[d] = big_endian(extents + 4 * d);
    if (!multiply(idx))
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: byte 4: the header claims no samples, or too many", path);
    uint64_t position = at_source_position(source);
    uint64_t size_max = at_source_size_max(source);
    if (idx->payload_size <= size_max && position <= size_max - idx->payload_size) return AT_OK;
    return at_fail_set(
        fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
        "%s: the header claims %zu bytes after byte %llu, but the file has at most %llu "
        "in total",
        path, idx->payload_size, (unsigned long long)position, (unsigned long long)size_max);
}

/* Reads the next elements, at most CHUNK_SIZE. */
static at_err read_chunk(at_source *source, unsigned char *chunk, size_t left, size_t *count,
                         at_fail *fail)
{
    assert(left > 0);
    *count = left < CHUNK_SIZE ? left : CHUNK_SIZE;
    return read_exactly(source, chunk, *count, "elements", fail);
}

static at_err read_labels(uint32_t *labels, at_source *source, size_t count, at_fail *fail)
{
    assert(labels && count > 0);
    unsigned char chunk[CHUNK_SIZE];
    for (size_t done = 0, got; done < count; done += got) {
        AT_TRY(read_chunk(source, chunk, count - done, &got, fail));
        for (size_t i = 0; i < got; i++) labels[done + i] = chunk[i];
    }
    return at_source_end(source, fail);
}

static at_err check_labels_header(const at_idx *idx, const char *path, at_fail *fail)
{
    assert(idx->dims >= 1);
    if (idx->dims == 1) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "check that images and labels are not swapped",
                       "%s: labels must have 1 dimension, but the header (byte 3) has %u", path,
                       idx->dims);
}

static at_err check_pair(const at_idx *images, const at_idx *labels, at_source *images_source,
                         at_source *labels_source, at_fail *fail)
{
    AT_TRY(check_labels_header(labels, at_source_path(labels_source), fail));
    if (images->dims < 2)
        return at_fail_set(
            fail, AT_ERR_FORMAT, "check that images and labels are not swapped",
            "%s: images must have 2 dimensions or more, but the header (byte 3) has 1",
            at_source_path(images_source));
    if (images->extent[0] == labels->extent[0]) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use two files of the same data set",
                       "%s has %u images, but %s has %u labels (bytes 4 to 7)",
                       at_source_path(images_source), images->extent[0],
                       at_source_path(labels_source), labels->extent[0]);
}

void at_idx_shape(const at_idx *idx, char *text, size_t size)
{
    assert(idx->dims >= 1);
    at_text shape = at_text_in(text, size);
    if (idx->dims == 1) at_text_add(&shape, "1");
    for (uint32_t d = 1; d < idx->dims; d++)
        at_text_add(&shape, d == 1 ? "%u" : "x%u", idx->extent[d]);
}

/* Sets the image shape that the extents imply. */
static at_err set_shape(at_dataset *set, const at_idx *idx, at_fail *fail)
{
    assert(set->features == idx->features);
    bool           interleaved;
    at_image_shape shape = at_image_shape_of(idx->extent + 1, idx->dims - 1, &interleaved);
    if (interleaved) return at_image_shape_deinterleave_rows(set, shape, fail);
    set->shape = shape;
    return AT_OK;
}

at_err at_idx_read_pair(at_dataset *set, at_source *images, at_source *labels, at_fail *fail)
{
    assert(!set->map);
    at_idx image, label;
    char   shape[48];
    AT_TRY(read_header(&image, images, fail));
    AT_TRY(read_header(&label, labels, fail));
    AT_TRY(check_pair(&image, &label, images, labels, fail));
    AT_TRY(at_store_reserve(set, image.extent[0], image.features, AT_ELEMENT_BYTE, fail));
    assert(image.payload_size == set->count * set->row_size);
    assert(label.payload_size == set->count);
    AT_TRY(read_exactly(images, set->rows, image.payload_size, "elements", fail));
    AT_TRY(at_source_end(images, fail));
    AT_TRY(read_labels(set->labels, labels, label.payload_size, fail));
    set->classes = at_store_label_max(set) + 1;
    AT_TRY(set_shape(set, &image, fail));
    at_idx_shape(&image, shape, sizeof shape);
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "%s bytes", shape);
    return AT_OK;
}

static at_err scan(at_source *source, at_idx *idx, uint64_t histogram[256], at_fail *fail)
{
    unsigned char chunk[CHUNK_SIZE];
    AT_TRY(read_header(idx, source, fail));
    memset(histogram, 0, 256 * sizeof *histogram);
    for (size_t done = 0, got; done < idx->payload_size; done += got) {
        AT_TRY(read_chunk(source, chunk, idx->payload_size - done, &got, fail));
        for (size_t i = 0; i < got; i++) histogram[chunk[i]]++;
    }
    return at_source_end(source, fail);
}

at_err at_idx_scan(const char *path, at_idx *idx, uint64_t histogram[256], at_fail *fail)
{
    assert(path && idx && histogram);
    at_source *source = NULL;
    AT_TRY(at_source_open(path, &source, fail));
    at_err err = scan(source, idx, histogram, fail);
    at_source_close(source);
    return err;
}

/* The number of classes in a file of labels: the largest label plus one. */
static at_err scan_classes(const char *path, uint32_t *classes, at_fail *fail)
{
    at_idx   idx;
    uint64_t histogram[256];
    AT_TRY(at_idx_scan(path, &idx, histogram, fail));
    AT_TRY(check_labels_header(&idx, path, fail));
    *classes = 256;
    while (histogram[*classes - 1] == 0) --*classes;
    assert(*classes >= 1); /* files without elements are refused */
    return AT_OK;
}

bool at_idx_is_file(const char *path)
{
    unsigned char bytes[3] = {0};
    at_source    *source;
    size_t        got;
    if (at_source_open(path, &source, NULL)) return false;
    at_err err = at_source_read(source, bytes, sizeof bytes, &got, NULL);
    at_source_close(source);
    return !err && got == sizeof bytes && memcmp(bytes, "\0\0\x08", 3) == 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The files of a split begin with one of these; the rest (-idx3-ubyte, .gz, ...) varies. */
typedef struct stems {
    const char *images[2], *labels[2];
} stems;

static const stems stems_of[] = {
    [AT_SPLIT_TRAIN] = {{"train-images", "train-images"}, {"train-labels", "train-labels"}},
    [AT_SPLIT_TEST] = {{"t10k-images", "test-images"}, {"t10k-labels", "test-labels"}},
};

/* Prefers the shorter name (raw before .gz), then alphabetical order, so that the choice does not
 * depend on the file system. */
static bool better(const char *name, const char *than)
{
    assert(name && than);
    size_t a = strlen(name), b = strlen(than);
    return *than == '\0' || a < b || (a == b && strcmp(name, than) < 0);
}

/* Finds the file in the folder that begins with a stem; false if there is none. */
static bool find_file(const char *folder, const char *const stem[2], char path[PATH_MAX])
{
    char best[NAME_MAX + 1] = "";
    DIR *listing = opendir(folder);
    if (!listing) return false;
    for (struct dirent *entry; (entry = readdir(listing));) {
        const char *name = entry->d_name;
        bool        fits = strncmp(name, stem[0], strlen(stem[0])) == 0 ||
                    strncmp(name, stem[1], strlen(stem[1])) == 0;
        if (fits && better(name, best)) snprintf(best, sizeof best, "%s", name);
    }
    closedir(listing);
    at_text text = at_text_in(path, PATH_MAX);
    at_text_add(&text, "%s/%s", folder, best);
    return *best != '\0' && !text.full;
}

static at_err need_file(const char *folder, const char *const stem[2], char path[PATH_MAX],
                        at_fail *fail)
{
    assert(stem[0] && stem[1]);
    if (find_file(folder, stem, path)) return AT_OK;
    return at_fail_set(fail, AT_ERR_MISSING,
                       "put the four IDX files there, or use a named set (`anytime data list`)",
                       "%s: no file %s-* (raw or .gz) in the folder", folder, stem[0]);
}

/* The comma between two paths: the first one that follows an existing file, else the first. */
static const char *find_comma(const char *name)
{
    char left[PATH_MAX];
    for (const char *comma = name; (comma = strchr(comma, ',')); comma++) {
        size_t length = (size_t)(comma - name);
        if (length >= sizeof left) break;
        memcpy(left, name, length);
        left[length] = '\0';
        if (at_folder_is_file(left)) return comma;
    }
    return strchr(name, ',');
}

/* A pair of files is one split, the train set. */
static bool has_split(const char *name, at_split split)
{
    char path[PATH_MAX];
    if (!at_folder_is(name)) return split == AT_SPLIT_TRAIN;
    return find_file(name, stems_of[split].images, path);
}

static bool claims(const char *name)
{
    if (at_folder_is(name))
        return has_split(name, AT_SPLIT_TRAIN) || has_split(name, AT_SPLIT_TEST);
    return strchr(name, ',') || (at_folder_is_file(name) && at_idx_is_file(name));
}

static at_err load_pair(at_dataset *set, const char *images_path, const char *labels_path,
                        at_fail *fail)
{
    assert(!set->map);
    at_source *images = NULL, *labels = NULL;
    at_err     err = at_source_open(images_path, &images, fail);
    if (!err) err = at_source_open(labels_path, &labels, fail);
    if (!err) err = at_idx_read_pair(set, images, labels, fail);
    at_source_close(images);
    at_source_close(labels);
    return err;
}

/* A test set has the classes of its train set, even if it lacks the last ones. */
static at_err adopt_train_classes(at_dataset *set, const char *folder, at_fail *fail)
{
    assert(set->classes > 0);
    char     path[PATH_MAX];
    uint32_t classes;
    if (!find_file(folder, stems_of[AT_SPLIT_TRAIN].labels, path)) return AT_OK;
    AT_TRY(scan_classes(path, &classes, fail));
    if (classes < set->classes)
        return at_fail_set(
            fail, AT_ERR_FORMAT, "use files of the same data set",
            "%s: the test set has a label %u, but the largest label of the train set is %u", folder,
            set->classes - 1, classes - 1);
    set->classes = classes;
    return AT_OK;
}

static at_err load_folder(at_dataset *set, const char *folder, at_split split, at_fail *fail)
{
    char         images[PATH_MAX], labels[PATH_MAX];
    const stems *of = &stems_of[split];
    AT_TRY(need_file(folder, of->images, images, fail));
    AT_TRY(need_file(folder, of->labels, labels, fail));
    AT_TRY(load_pair(set, images, labels, fail));
    return split == AT_SPLIT_TEST ? adopt_train_classes(set, folder, fail) : AT_OK;
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    assert(name);
    if (at_folder_is(name)) return load_folder(set, name, split, fail);
    const char *comma = find_comma(name);
    if (!comma)
        return at_fail_set(fail, AT_ERR_USAGE, "write IMAGES,LABELS or name the folder with both",
                           "%s: a single IDX file; the file of labels is missing", name);
    char   images[PATH_MAX];
    size_t length = (size_t)(comma - name);
    if (length >= sizeof images)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "the path of the images is too long");
    memcpy(images, name, length);
    images[length] = '\0';
    assert(comma[0] == ',');
    return load_pair(set, images, comma + 1, fail);
}

static at_err folder_sources(const char *folder, at_split split, at_file_list *files, at_fail *fail)
{
    const stems *of = &stems_of[split];
    char         path[PATH_MAX];
    if (find_file(folder, of->images, path)) AT_TRY(at_file_list_add(files, path, fail));
    if (find_file(folder, of->labels, path)) AT_TRY(at_file_list_add(files, path, fail));
    if (split == AT_SPLIT_TRAIN) return AT_OK;
    bool train = find_file(folder, stems_of[AT_SPLIT_TRAIN].labels, path); /* for the classes */
    return train ? at_file_list_add(files, path, fail) : AT_OK;
}

static at_err source_files(const char *name, at_split split, at_file_list *files, at_fail *fail)
{
    if (at_folder_is(name)) return folder_sources(name, split, files, fail);
    const char *comma = find_comma(name);
    if (!comma) return AT_OK;
    char   images[PATH_MAX] = "";
    size_t length = (size_t)(comma - name);
    if (length >= sizeof images) return AT_OK;
    memcpy(images, name, length);
    AT_TRY(at_file_list_add(files, images, fail));
    return at_file_list_add(files, comma + 1, fail);
}

const at_format at_format_idx = {
    .name = "idx",
    .fixed_names = true,
    .summary = "IDX files of bytes (MNIST and its successors), raw or gzipped",
    .expects = "train-images*, train-labels*, t10k-images*, t10k-labels*",
    .claims = claims,
    .has_split = has_split,
    .load = load,
    .source_files = source_files,
};
