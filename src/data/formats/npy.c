#include "data/formats/npy.h"

#include "base/arena.h"
#include "base/label.h"
#include "data/files/sniff.h"
#include "data/files/source.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\x93NUMPY"

enum {
    MAGIC_SIZE = 6,
    TEXT_SIZE_MAX = 1 << 16, /* of the dictionary */
    CHUNK_COUNT = 4096,      /* elements converted at a time */
    ELEMENT_SIZE_MAX = 8,
};

typedef struct kind {
    const char *descr;
    size_t      size;
} kind;

static const kind kinds[] = {
    [AT_NPY_BYTE] = {"|u1", 1}, [AT_NPY_FLOAT] = {"<f4", 4}, [AT_NPY_DOUBLE] = {"<f8", 8},
    [AT_NPY_INT] = {"<i4", 4},  [AT_NPY_LONG] = {"<i8", 8},
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

/* ---- input ----------------------------------------------------------------------------------- */

static at_err read_some(at_npy_input *input, void *bytes, size_t size, size_t *got, at_fail *fail)
{
    assert(input->read);
    AT_TRY(input->read(input->self, bytes, size, got, fail));
    input->position += *got;
    return AT_OK;
}

static at_err read_exactly(at_npy_input *input, void *bytes, size_t size, const char *what,
                           at_fail *fail)
{
    size_t got;
    AT_TRY(read_some(input, bytes, size, &got, fail));
    if (got == size) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: truncated at byte %llu, within %s", input->name,
                       (unsigned long long)input->position, what);
}

/* ---- header ---------------------------------------------------------------------------------- */

static at_err bad_header(const at_npy_input *input, const char *what, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, "save it again with numpy.save or numpy.savez",
                       "%s: invalid NumPy header (before byte %llu): %s", input->name,
                       (unsigned long long)input->position, what);
}

/* Magic, version and length of the dictionary. */
static at_err read_prefix(at_npy_input *input, size_t *text_size, at_fail *fail)
{
    assert(input->position == 0);
    unsigned char bytes[AT_SNIFF_SIZE];
    size_t        got;
    AT_TRY(read_some(input, bytes, MAGIC_SIZE + 2, &got, fail));
    if (got < MAGIC_SIZE + 2 || memcmp(bytes, MAGIC, MAGIC_SIZE) != 0) {
        at_sniff_result sniffed = at_sniff(bytes, got);
        return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                           "%s: not a NumPy array; it looks like %s", input->name,
                           got ? sniffed.what : "an empty file");
    }
    size_t version = bytes[MAGIC_SIZE], width = version == 1 ? 2 : 4;
    if (version < 1 || version > 3) return bad_header(input, "unknown version", fail);
    AT_TRY(read_exactly(input, bytes, width, "the NumPy header", fail));
    *text_size = bytes[0] | (size_t)bytes[1] << 8;
    if (width == 4) *text_size |= (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
    return *text_size <= TEXT_SIZE_MAX ? AT_OK : bad_header(input, "too long", fail);
}

/* The value of a key in the dictionary, without leading blanks, or NULL. NumPy always writes the
 * same three keys, so a key name cannot occur elsewhere. */
static const char *value_of(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    if (!p) return NULL;
    p += strlen(key);
    while (*p == ' ') p++;
    if (*p++ != ':') return NULL;
    while (*p == ' ') p++;
    return p;
}

static at_err parse_type(at_npy *npy, const at_npy_input *input, const char *text, at_fail *fail)
{
    const char *value = value_of(text, "'descr'");
    size_t      length = 0;
    if (!value || *value != '\'') return bad_header(input, "no simple element type", fail);
    value++;
    while (value[length] && value[length] != '\'' && length < 16) length++;
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (length == strlen(kinds[i].descr) && memcmp(value, kinds[i].descr, length) == 0) {
            npy->type = (at_npy_type)i;
            return AT_OK;
        }
    return at_fail_set(fail, AT_ERR_FORMAT,
                       "convert it with a.astype('u1'), 'f4', 'f8', 'i4' or 'i8'",
                       "%s: unsupported element type %.*s (in the header before byte %llu)",
                       input->name, (int)length, value, (unsigned long long)input->position);
}

static at_err parse_order(const at_npy_input *input, const char *text, at_fail *fail)
{
    const char *value = value_of(text, "'fortran_order'");
    if (value && strncmp(value, "False", 5) == 0) return AT_OK;
    return at_fail_set(
        fail, AT_ERR_FORMAT, "convert it with numpy.ascontiguousarray",
        "%s: arrays in Fortran order are not supported (in the header before byte %llu)",
        input->name, (unsigned long long)input->position);
}

/* "(60000, 28, 28)" */
static at_err parse_shape(at_npy *npy, const at_npy_input *input, const char *text, at_fail *fail)
{
    const char *p = value_of(text, "'shape'");
    if (!p || *p++ != '(') return bad_header(input, "no shape", fail);
    for (npy->dims = 0; *p != ')';) {
        uint64_t extent = 0;
        if (!isdigit((unsigned char)*p) || npy->dims == AT_NPY_DIMS_MAX)
            return bad_header(input, "invalid shape", fail);
        for (; isdigit((unsigned char)*p); p++) {
            extent = extent * 10 + (uint64_t)(*p - '0');
            if (extent > UINT32_MAX) return bad_header(input, "shape too large", fail);
        }
        npy->extent[npy->dims++] = (uint32_t)extent;
        while (*p == ',' || *p == ' ') p++;
    }
    if (npy->dims == 0) return bad_header(input, "the array is a single number", fail);
    npy->count = npy->extent[0];
    return AT_OK;
}

static at_err check_sizes(at_npy *npy, const at_npy_input *input, at_fail *fail)
{
    size_t features = 1, elements, size;
    bool   fits = true;
    for (uint32_t d = 1; d < npy->dims; d++)
        fits = fits && at_size_product(features, npy->extent[d], &features);
    fits = fits && features > 0 && features <= UINT32_MAX && npy->count > 0 &&
           at_size_product(features, (size_t)npy->count, &elements) &&
           at_size_product(elements, kinds[npy->type].size, &size);
    if (!fits) return bad_header(input, "no elements, or too many", fail);
    npy->features = (uint32_t)features;
    npy->header_size = input->position;
    if (input->position <= input->size_max && size <= input->size_max - input->position)
        return AT_OK;
    return at_fail_set(
        fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
        "%s: the header claims %zu bytes after byte %llu, but the file has at most %llu "
        "in total",
        input->name, size, (unsigned long long)input->position,
        (unsigned long long)input->size_max);
}

at_err at_npy_read_header(at_npy *npy, at_npy_input *input, at_fail *fail)
{
    assert(npy && input);
    size_t size = 0;
    *npy = (at_npy){0};
    AT_TRY(read_prefix(input, &size, fail));
    char *text = malloc(size + 1);
    if (!text) return at_fail_memory_for(fail, "for %s", input->name);
    at_err err = size > 0 ? read_exactly(input, text, size, "the NumPy header", fail) : AT_OK;
    text[size] = '\0';
    if (!err) err = parse_type(npy, input, text, fail);
    if (!err) err = parse_order(input, text, fail);
    if (!err) err = parse_shape(npy, input, text, fail);
    if (!err) err = check_sizes(npy, input, fail);
    free(text);
    return err;
}

/* ---- elements -------------------------------------------------------------------------------- */

at_element at_npy_element(const at_npy *npy)
{
    return npy->type == AT_NPY_BYTE ? AT_ELEMENT_BYTE : AT_ELEMENT_FLOAT;
}

/* One element as a double; 8-byte integers are exact up to 2^53. */
static double number_at(const unsigned char *p, at_npy_type type)
{
    float   f;
    double  d;
    int32_t i;
    int64_t l;
    switch (type) {
    case AT_NPY_BYTE: return *p;
    case AT_NPY_FLOAT: memcpy(&f, p, sizeof f); return (double)f;
    case AT_NPY_DOUBLE: memcpy(&d, p, sizeof d); return d;
    case AT_NPY_INT: memcpy(&i, p, sizeof i); return i;
    case AT_NPY_LONG: memcpy(&l, p, sizeof l); return (double)l;
    }
    assert(!"unreachable");
    return 0.0;
}

static at_err bad_element(const at_npy *npy, const at_npy_input *input, uint64_t index,
                          const char *what, const char *hint, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FORMAT, hint, "%s: byte %llu: element %llu %s", input->name,
                       (unsigned long long)(npy->header_size + index * kinds[npy->type].size),
                       (unsigned long long)index, what);
}

/* Receives the elements in order; an error stops reading. */
typedef at_err take_number(void *to, uint64_t index, double number);

static at_err read_numbers(const at_npy *npy, at_npy_input *input, take_number *take, void *to,
                           uint64_t *index, at_fail *fail)
{
    unsigned char chunk[CHUNK_COUNT * ELEMENT_SIZE_MAX];
    size_t const  size = kinds[npy->type].size;
    uint64_t      total = npy->count * npy->features;
    for (*index = 0; *index < total;) {
        uint64_t left = total - *index;
        size_t   count = left < CHUNK_COUNT ? (size_t)left : CHUNK_COUNT;
        AT_TRY(read_exactly(input, chunk, count * size, "its elements", fail));
        for (size_t i = 0; i < count; i++, ++*index)
            AT_TRY(take(to, *index, number_at(chunk + i * size, npy->type)));
    }
    return AT_OK;
}

static at_err take_float(void *to, uint64_t index, double number)
{
    float value = (float)number;
    ((float *)to)[index] = value;
    return isfinite(value) ? AT_OK : AT_ERR_USAGE;
}

static at_err take_label(void *to, uint64_t index, double number)
{
    if (!(number >= 0.0 && number <= (double)INT32_MAX)) return AT_ERR_USAGE;
    ((uint32_t *)to)[index] = (uint32_t)number;
    return (double)(uint32_t)number == number ? AT_OK : AT_ERR_USAGE;
}

static at_err take_real_label(void *to, uint64_t index, double number)
{
    float value = (float)number;
    ((uint32_t *)to)[index] = at_label_of_real(value);
    return isfinite(value) ? AT_OK : AT_ERR_USAGE;
}

static at_err read_finite(const at_npy *npy, at_npy_input *input, take_number *take, void *to,
                          at_fail *fail)
{
    uint64_t index;
    at_err   err = read_numbers(npy, input, take, to, &index, fail);
    if (err != AT_ERR_USAGE) return err;
    return bad_element(npy, input, index, "is not a finite number",
                       "clean the data, for example with numpy.nan_to_num", fail);
}

at_err at_npy_read_rows(const at_npy *npy, at_npy_input *input, unsigned char *rows, at_fail *fail)
{
    size_t total = (size_t)npy->count * npy->features;
    if (npy->type == AT_NPY_BYTE) return read_exactly(input, rows, total, "its elements", fail);
    return read_finite(npy, input, take_float, rows, fail);
}

at_err at_npy_read_real_labels(const at_npy *npy, at_npy_input *input, uint32_t *labels,
                               at_fail *fail)
{
    assert(npy->features == 1);
    return read_finite(npy, input, take_real_label, labels, fail);
}

at_err at_npy_read_labels(const at_npy *npy, at_npy_input *input, uint32_t *labels, at_fail *fail)
{
    assert(npy->features == 1);
    uint64_t index;
    at_err   err = read_numbers(npy, input, take_label, labels, &index, fail);
    if (err != AT_ERR_USAGE) return err;
    return bad_element(npy, input, index, "is not a label (an integer of 0 or more)",
                       "number the classes from 0 or 1", fail);
}
