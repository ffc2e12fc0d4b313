#include "data/store.h"

#include "base/arena.h"

#include <assert.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { LINE_SIZE = 64 };

static size_t element_size(at_element element)
{
    switch (element) {
    case AT_ELEMENT_BYTE: return 1;
    case AT_ELEMENT_FLOAT: return sizeof(float);
    }
    assert(!"unreachable");
    return 0;
}

/* Sizes of rows (rounded up to a cache line) and of labels; false when they overflow. */
static bool sizes(const at_dataset *set, size_t *rows_size, size_t *labels_size)
{
    size_t rows;
    if (!at_size_product(set->count, set->row_size, &rows)) return false;
    if (!at_size_product(set->count, sizeof *set->labels, labels_size)) return false;
    if (rows > SIZE_MAX / 2 || *labels_size > SIZE_MAX / 2 - LINE_SIZE) return false;
    assert(set->row_size > 0);
    *rows_size = (rows + LINE_SIZE - 1) / LINE_SIZE * LINE_SIZE;
    return true;
}

at_err at_store_reserve(at_dataset *set, uint64_t count, uint32_t features, at_element element,
                        at_fail *fail)
{
    assert(count > 0 && features > 0);
    assert(!set->map);
    set->count = count;
    set->features = features;
    set->element = element;
    set->widen = at_rows_widen_best();

    size_t rows_size, labels_size;
    bool   fits = at_size_product(features, element_size(element), &set->row_size) &&
                sizes(set, &rows_size, &labels_size);
    void *map = MAP_FAILED;
    if (fits)
        map = mmap(NULL, rows_size + labels_size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller set, or a machine with more memory",
                           "not enough memory for %llu samples of %u features",
                           (unsigned long long)count, features);
    /* Rows are drawn in random order: large pages save most of the address look-ups. Only a
     * wish, so the answer does not matter. */
    (void)madvise(map, rows_size + labels_size, MADV_HUGEPAGE);
    set->map = map;
    set->map_size = rows_size + labels_size;
    set->rows = map;
    set->labels = (uint32_t *)(void *)(set->rows + rows_size);
    assert((uintptr_t)set->labels % LINE_SIZE == 0);
    return AT_OK;
}

uint32_t at_store_label_max(const at_dataset *set)
{
    assert(set->map);
    uint32_t max = 0;
    for (uint64_t i = 0; i < set->count; i++)
        if (set->labels[i] > max) max = set->labels[i];
    return max;
}

at_err at_store_seal(at_dataset *set, at_fail *fail)
{
    assert(set->map);
    assert(at_store_label_max(set) < set->classes);
    if (mprotect(set->map, set->map_size, PROT_READ))
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot make the data read-only");
    return AT_OK;
}
