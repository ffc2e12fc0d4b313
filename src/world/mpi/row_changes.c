#include "world/mpi/row_changes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { BLOCK = 16, PARTS = 8, FEW = 1024 }; /* floats compared at once; log: params / PARTS + FEW */

at_err at_row_changes_open(at_row_changes *changes, const float *w, size_t params, uint64_t version,
                           at_fail *fail)
{
    assert(params >= 1 && params <= UINT32_MAX);
    *changes = (at_row_changes){.params = params, .version = version, .since = version};
    changes->max = params / PARTS + FEW;
    changes->previous = at_large_new(params * sizeof *changes->previous);
    changes->last = calloc(params, sizeof *changes->last);
    changes->log = malloc(changes->max * sizeof *changes->log);
    if (!changes->previous || !changes->last || !changes->log) return at_fail_memory(fail);
    memcpy(changes->previous, w, params * sizeof *w);
    return AT_OK;
}

void at_row_changes_close(at_row_changes *changes)
{
    free(changes->previous);
    free(changes->last);
    free(changes->log);
    *changes = (at_row_changes){0};
}

static void log_change(at_row_changes *changes, size_t index, uint64_t version)
{
    changes->last[index] = (uint32_t)version;
    if (changes->count == changes->max) { /* starts anew, without what came before */
        changes->count = 0;
        changes->since = version;
    }
    if (changes->since == version) return;
    assert(changes->count < changes->max);
    changes->log[changes->count++] = (at_row_change){.version = version, .index = (uint32_t)index};
}

/* Compares bits: a weight that became -0 has changed, too. */
static void compare(at_row_changes *changes, const float *w, size_t begin, size_t end,
                    uint64_t version)
{
    assert(end <= changes->params);
    for (size_t i = begin; i < end; i++)
        if (memcmp(&w[i], &changes->previous[i], sizeof *w) != 0) log_change(changes, i, version);
    memcpy(changes->previous + begin, w + begin, (end - begin) * sizeof *w);
}

void at_row_changes_publish(at_row_changes *changes, const float *w, uint64_t version)
{
    size_t params = changes->params;
    assert(changes->previous);
    if (version == changes->version) return;
    assert(version > changes->version);
    changes->version = version;
    for (size_t i = 0; i < params; i += BLOCK) {
        size_t end = i + BLOCK < params ? i + BLOCK : params;
        if (memcmp(w + i, changes->previous + i, (end - i) * sizeof *w) != 0)
            compare(changes, w, i, end, version);
    }
}

/* The first entry after `base`. */
static size_t find(const at_row_changes *changes, uint64_t base)
{
    size_t low = 0, high = changes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (changes->log[middle].version > base)
            high = middle;
        else
            low = middle + 1;
    }
    assert(low == changes->count || changes->log[low].version > base);
    return low;
}

bool at_row_changes_since(const at_row_changes *changes, uint64_t base, at_pair *pairs, size_t max,
                          size_t *count)
{
    assert(changes->previous);
    *count = 0;
    if (base < changes->since || base > changes->version) return false;
    for (size_t i = find(changes, base); i < changes->count; i++) {
        const at_row_change *change = &changes->log[i];
        if (changes->last[change->index] != (uint32_t)change->version) continue; /* again later */
        if (*count == max) return false;
        pairs[(*count)++] = (at_pair){change->index, changes->previous[change->index]};
    }
    return true;
}
