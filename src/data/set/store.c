#include "data/set/store.h"

#include "base/arena.h"
#include "base/label.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE_SIZE = 64, ARRAYS_MAX = 5 };

/* One mapping divided into arrays that begin at cache lines. */
typedef struct layout {
    size_t start[ARRAYS_MAX];
    size_t count, size;
    bool   fits; /* false: a size exceeds the address space */
} layout;

static void add_array(layout *plan, uint64_t count, size_t size_each)
{
    assert(plan->count < ARRAYS_MAX);
    size_t size;
    plan->start[plan->count++] = plan->size;
    plan->fits = plan->fits && at_size_product(count, size_each, &size) && size <= SIZE_MAX / 4 &&
                 plan->size <= SIZE_MAX / 4;
    if (plan->fits) plan->size += (size + LINE_SIZE - 1) / LINE_SIZE * LINE_SIZE;
}

static at_err make_map(at_dataset *set, const layout *plan, at_fail *fail)
{
    assert(!set->map);
    void *map = MAP_FAILED;
    if (plan->fits)
        map = mmap(NULL, plan->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return at_fail_set(fail, AT_ERR_FAILED, "use a smaller set or a machine with more memory",
                           "not enough memory for %llu samples of %u features",
                           (unsigned long long)set->count, set->features);
    /* Rows are drawn in random order: huge pages save most TLB misses. Failure does not matter. */
    (void)madvise(map, plan->size, MADV_HUGEPAGE);
    set->map = map;
    set->map_size = plan->size;
    return AT_OK;
}

void at_store_unmap(at_dataset *set)
{
    if (set->map) munmap(set->map, set->map_size);
    set->map = NULL;
}

static void *array_at(const at_dataset *set, const layout *plan, size_t index)
{
    assert(index < plan->count);
    assert(plan->start[index] <= set->map_size);
    return (unsigned char *)set->map + plan->start[index];
}

static size_t element_size(at_element element)
{
    switch (element) {
    case AT_ELEMENT_BYTE: return 1;
    case AT_ELEMENT_FLOAT: return sizeof(float);
    }
    assert(!"unreachable");
    return 0;
}

at_err at_store_reserve(at_dataset *set, uint64_t count, uint32_t features, at_element element,
                        at_fail *fail)
{
    assert(count > 0 && features > 0);
    assert(!set->map);
    set->count = count;
    set->features = features;
    set->element = element;
    set->widen = at_widen_best();

    layout plan = {.fits = at_size_product(features, element_size(element), &set->row_size)};
    add_array(&plan, count, set->row_size);
    add_array(&plan, count, sizeof *set->labels);
    add_array(&plan, set->names_size, 1);
    AT_TRY(make_map(set, &plan, fail));
    set->rows = array_at(set, &plan, 0);
    set->labels = array_at(set, &plan, 1);
    if (set->names_size > 0) set->names = array_at(set, &plan, 2);
    assert((uintptr_t)set->labels % LINE_SIZE == 0);
    return AT_OK;
}

at_err at_store_reserve_sparse(at_dataset *set, uint64_t count, uint64_t numbers, uint32_t features,
                               at_fail *fail)
{
    assert(count > 0 && features > 0);
    assert(!set->map);
    set->count = count;
    set->features = features;
    set->element = AT_ELEMENT_FLOAT;

    layout plan = {.fits = count < UINT64_MAX};
    add_array(&plan, count + 1, sizeof *set->starts);
    add_array(&plan, count, sizeof *set->labels);
    add_array(&plan, numbers, sizeof *set->indices);
    add_array(&plan, numbers, sizeof *set->values);
    add_array(&plan, set->names_size, 1);
    AT_TRY(make_map(set, &plan, fail));
    set->starts = array_at(set, &plan, 0);
    set->labels = array_at(set, &plan, 1);
    set->indices = array_at(set, &plan, 2);
    set->values = array_at(set, &plan, 3);
    if (set->names_size > 0) set->names = array_at(set, &plan, 4);
    return AT_OK;
}

const char *at_store_name(const at_dataset *set, uint64_t index)
{
    assert(index < (uint64_t)set->classes + set->features);
    if (!set->names) return NULL;
    const char *name = set->names, *end = set->names + set->names_size;
    for (; index > 0 && name < end; index--) name += strlen(name) + 1;
    return name < end ? name : NULL;
}

uint32_t at_store_label_max(const at_dataset *set)
{
    assert(set->map);
    uint32_t max = 0;
    for (uint64_t i = 0; i < set->count; i++)
        if (set->labels[i] > max) max = set->labels[i];
    return max;
}

static bool labels_are_valid(const at_dataset *set)
{
    if (set->classes > 0) return at_store_label_max(set) < set->classes;
    for (uint64_t i = 0; i < set->count; i++)
        if (!isfinite(at_label_real(set->labels[i]))) return false;
    return true;
}

/* Sparse rows are used without further checks, so this is the last one. It costs a few percent of
 * reading them. */
static bool sparse_rows_are_valid(const at_dataset *set)
{
    const uint64_t *starts = set->starts;
    if (starts[0] != 0) return false;
    for (uint64_t i = 0; i < set->count; i++) {
        if (starts[i + 1] < starts[i] || starts[i + 1] - starts[i] > set->features) return false;
        for (uint64_t k = starts[i]; k < starts[i + 1]; k++) {
            if (set->indices[k] >= set->features) return false;
            if (k > starts[i] && set->indices[k] <= set->indices[k - 1]) return false;
        }
    }
    return true;
}

bool at_store_is_valid(const at_dataset *set)
{
    assert(set->map);
    return labels_are_valid(set) && (!set->starts || sparse_rows_are_valid(set)) &&
           (!set->names || set->names[set->names_size - 1] == '\0');
}

at_err at_store_seal(at_dataset *set, at_fail *fail)
{
    assert(at_store_is_valid(set));
    if (mprotect(set->map, set->map_size, PROT_READ))
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot make the data read-only");
    return AT_OK;
}

at_err at_store_unseal(at_dataset *set, at_fail *fail)
{
    assert(set->map);
    if (mprotect(set->map, set->map_size, PROT_READ | PROT_WRITE))
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot make the data writable");
    return AT_OK;
}
