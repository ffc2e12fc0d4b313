#include "data/formats/idx.h"

#include "base/arena.h"
#include "base/text.h"
#include "data/files/sniff.h"
#include "data/formats/picture.h"

#include <assert.h>
#include <stdbool.h>
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
                       "%s: ends at byte %llu, in the middle of %s that reach to byte %llu",
                       at_source_path(source), (unsigned long long)(start + got), what,
                       (unsigned long long)(start + size));
}

/* The file does not begin like IDX: say what it looks like instead. */
static at_err not_idx(at_source *source, const unsigned char magic[4], at_fail *fail)
{
    assert(magic[0] || magic[1]);
    unsigned char bytes[AT_SNIFF_SIZE];
    size_t        got;
    memcpy(bytes, magic, 4);
    AT_TRY(at_source_read(source, bytes + 4, sizeof bytes - 4, &got, fail));
    at_sniffed sniffed = at_sniff(bytes, got + 4);
    return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                       "%s: is not an IDX file, at byte 0 it is %s", at_source_path(source),
                       sniffed.what);
}

static at_err read_magic(at_idx *idx, at_source *source, at_fail *fail)
{
    assert(at_source_position(source) == 0);
    unsigned char magic[4] = {0};
    size_t        got;
    AT_TRY(at_source_read(source, magic, sizeof magic, &got, fail));
    if (got == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: is a gzip of nothing (0 bytes inside)", at_source_path(source));
    if (got < sizeof magic)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: ends at byte %zu, in the middle of the IDX header",
                           at_source_path(source), got);
    if (magic[0] || magic[1]) return not_idx(source, magic, fail);
    if (magic[2] != TYPE_BYTE)
        return at_fail_set(fail, AT_ERR_FORMAT, "only elements of one byte (type 08) can be read",
                           "%s: at byte 2, IDX elements of type %02x", at_source_path(source),
                           magic[2]);
    if (magic[3] < 1 || magic[3] > AT_IDX_DIMS_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: at byte 3, an IDX header with %u dimensions (1 to %d make sense)",
                           at_source_path(source), magic[3], AT_IDX_DIMS_MAX);
    idx->dims = magic[3];
    return AT_OK;
}

/* payload_size and features from the extents; false on overflow or when any extent is zero. */
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

at_err at_idx_read_header(at_idx *idx, at_source *source, at_fail *fail)
{
    assert(idx && source);
    unsigned char extents[4 * AT_IDX_DIMS_MAX];
    const char   *path = at_source_path(source);
    *idx = (at_idx){0};
    AT_TRY(read_magic(idx, source, fail));
    AT_TRY(read_exactly(source, extents, 4 * (size_t)idx->dims, "the sizes of its header", fail));
    for (uint32_t d = 0; d < idx->dims; d++) idx->extent[d] = big_endian(extents + 4 * d);
    if (!multiply(idx))
        return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                           "%s: at byte 4, the header promises no samples or impossibly many",
                           path);
    uint64_t position = at_source_position(source);
    uint64_t size_max = at_source_size_max(source);
    if (idx->payload_size <= size_max && position <= size_max - idx->payload_size) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: the header promises %zu bytes from byte %llu on, but the file has "
                       "room for %llu in all",
                       path, idx->payload_size, (unsigned long long)position,
                       (unsigned long long)size_max);
}

/* The next elements of a file, at most CHUNK_SIZE of them. */
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
    return at_fail_set(fail, AT_ERR_FORMAT, "are images and labels swapped?",
                       "%s: labels should have 1 dimension, but byte 3 says %u", path, idx->dims);
}

static at_err check_pair(const at_idx *images, const at_idx *labels, at_source *images_source,
                         at_source *labels_source, at_fail *fail)
{
    AT_TRY(check_labels_header(labels, at_source_path(labels_source), fail));
    if (images->dims < 2)
        return at_fail_set(fail, AT_ERR_FORMAT, "are images and labels swapped?",
                           "%s: images should have 2 dimensions or more, but byte 3 says 1",
                           at_source_path(images_source));
    if (images->extent[0] == labels->extent[0]) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "use the two files that belong together",
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

/* What the extents say about a sample as a picture. */
static at_err set_picture(at_dataset *set, const at_idx *idx, at_fail *fail)
{
    assert(set->features == idx->features);
    bool           interleaved;
    at_image_shape picture = at_image_shape_of(idx->extent + 1, idx->dims - 1, &interleaved);
    if (interleaved) return at_image_shape_split_rows(set, picture, fail);
    set->picture = picture;
    return AT_OK;
}

at_err at_idx_read_pair(at_dataset *set, at_source *images, at_source *labels, at_fail *fail)
{
    assert(!set->map);
    at_idx image, label;
    char   shape[48];
    AT_TRY(at_idx_read_header(&image, images, fail));
    AT_TRY(at_idx_read_header(&label, labels, fail));
    AT_TRY(check_pair(&image, &label, images, labels, fail));
    AT_TRY(at_store_reserve(set, image.extent[0], image.features, AT_ELEMENT_BYTE, fail));
    assert(image.payload_size == set->count * set->row_size);
    assert(label.payload_size == set->count);
    AT_TRY(read_exactly(images, set->rows, image.payload_size, "elements", fail));
    AT_TRY(at_source_end(images, fail));
    AT_TRY(read_labels(set->labels, labels, label.payload_size, fail));
    set->classes = at_store_label_max(set) + 1;
    AT_TRY(set_picture(set, &image, fail));
    at_idx_shape(&image, shape, sizeof shape);
    at_text form = at_text_in(set->form, sizeof set->form);
    at_text_add(&form, "%s bytes", shape);
    return AT_OK;
}

static at_err scan(at_source *source, at_idx *idx, uint64_t histogram[256], at_fail *fail)
{
    unsigned char chunk[CHUNK_SIZE];
    AT_TRY(at_idx_read_header(idx, source, fail));
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

at_err at_idx_scan_classes(const char *path, uint32_t *classes, at_fail *fail)
{
    at_idx   idx;
    uint64_t histogram[256];
    AT_TRY(at_idx_scan(path, &idx, histogram, fail));
    AT_TRY(check_labels_header(&idx, path, fail));
    *classes = 256;
    while (histogram[*classes - 1] == 0) --*classes;
    assert(*classes >= 1); /* a file without any element is refused */
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
