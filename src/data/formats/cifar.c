#include "data/formats/cifar.h"

#include "data/files/sniff.h"

#include <assert.h>
#include <string.h>

enum { RECORD_SIZE_MAX = 2 + AT_CIFAR_PIXELS_SIZE };

const at_cifar at_cifar_10 = {"CIFAR-10", 10, 1, {10}};
const at_cifar at_cifar_100 = {"CIFAR-100", 100, 2, {20, 100}};

static size_t record_size(const at_cifar *kind)
{
    assert(kind->labels_size == 1 || kind->labels_size == 2);
    return kind->labels_size + AT_CIFAR_PIXELS_SIZE;
}

/* A file whose first byte is no label is no batch at all: say what it looks like. */
static at_err not_a_label(const at_cifar *kind, const at_source *source,
                          const unsigned char *record, uint64_t index, uint32_t which,
                          at_fail *fail)
{
    if (index == 0) {
        at_sniffed sniffed = at_sniff(record, AT_SNIFF_SIZE);
        return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                           "%s: is not a batch of %s, at byte 0 it is %s", at_source_path(source),
                           kind->name, sniffed.what);
    }
    return at_fail_set(
        fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
        "%s: at byte %llu, image %llu has the label %u (0 to %u in %s)", at_source_path(source),
        (unsigned long long)(index * record_size(kind) + which), (unsigned long long)index,
        record[which], kind->label_end[which] - 1, kind->name);
}

/* The next record, or *got = 0 at the end of the batch. */
static at_err read_record(const at_cifar *kind, at_source *source, unsigned char *record,
                          uint64_t index, size_t *got, at_fail *fail)
{
    size_t size = record_size(kind);
    AT_TRY(at_source_read(source, record, size, got, fail));
    if (*got == 0) return AT_OK;
    memset(record + *got, 0, size - *got);
    for (uint32_t i = 0; i < kind->labels_size; i++)
        if (record[i] >= kind->label_end[i])
            return not_a_label(kind, source, record, index, i, fail);
    if (*got == size) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN,
                       "%s: ends at byte %llu, in the middle of image %llu (an image of %s takes "
                       "%zu bytes)",
                       at_source_path(source), (unsigned long long)at_source_position(source),
                       (unsigned long long)index, kind->name, size);
}

at_err at_cifar_count(const at_cifar *kind, at_source *source, uint64_t *count, at_fail *fail)
{
    assert(at_source_position(source) == 0);
    unsigned char record[RECORD_SIZE_MAX];
    for (*count = 0;; ++*count) {
        size_t got;
        AT_TRY(read_record(kind, source, record, *count, &got, fail));
        if (got == 0) break;
    }
    if (*count > 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, AT_SOURCE_GET_AGAIN, "%s: is empty inside (0 bytes)",
                       at_source_path(source));
}

at_err at_cifar_append(const at_cifar *kind, at_source *source, at_dataset *set, uint64_t *filled,
                       at_fail *fail)
{
    assert(set->row_size == AT_CIFAR_PIXELS_SIZE);
    assert(at_source_position(source) == 0);
    unsigned char record[RECORD_SIZE_MAX];
    for (uint64_t i = 0;; i++) {
        size_t got;
        AT_TRY(read_record(kind, source, record, i, &got, fail));
        if (got == 0) return AT_OK;
        if (*filled == set->count)
            return at_fail_set(fail, AT_ERR_FORMAT, "run the same command again",
                               "%s: grew while it was read, to image %llu", at_source_path(source),
                               (unsigned long long)i);
        set->labels[*filled] = record[kind->labels_size - 1];
        memcpy(set->rows + *filled * set->row_size, record + kind->labels_size, set->row_size);
        ++*filled;
    }
}
