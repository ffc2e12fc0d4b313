/* store.h - the inside of a data set, for the readers of formats only.
 *
 *     at_store_reserve ──► the reader fills rows and labels ──► at_store_seal ──► read-only
 *
 * Rows and labels lie in one private anonymous mapping: forked workers share its pages, and once
 * sealed nobody can change a sample by accident.
 */
#ifndef AT_DATA_SET_STORE_H
#define AT_DATA_SET_STORE_H

#include "data/prep/rows.h"
#include "data/set/dataset.h"
#include "data/set/progress.h"

typedef enum at_element { AT_ELEMENT_BYTE, AT_ELEMENT_FLOAT } at_element;

struct at_dataset {
    uint64_t       count;
    uint32_t       features, classes;
    at_image_shape picture;    /* zero: no picture, a line of numbers */
    size_t         row_size;   /* bytes of one row */
    at_element     element;    /* what a row is made of */
    unsigned char *rows;       /* (count, features) of element */
    uint32_t      *labels;     /* (count) */
    uint64_t      *starts;     /* sparse: (count + 1) where each row begins; NULL: dense */
    uint32_t      *indices;    /* sparse: (starts[count]) */
    float         *values;     /* sparse: (starts[count]) */
    uint32_t       index_base; /* sparse: the number of the first feature in the file, 0 or 1 */
    at_rows_widen *widen;      /* bytes to floats */
    /* Names, one zero-terminated text after the other: of every class, then (optional) of every
     * feature; names_size bytes in the mapping, 0: classes and features are only numbers. */
    char       *names;
    size_t      names_size;
    void       *map; /* rows and labels */
    size_t      map_size;
    char        form[64];    /* for people: "28x28 bytes" */
    const char *format_name; /* of the reader */
    at_reading  reading;     /* what the reader shall know; its texts only while it is read */
    bool        cached;      /* mapped from a file of the cache, not read */
    /* While it is read: who wants to know how far it is, at_loading_tell(set->loading, ..). */
    const at_loading *loading;
};

/* Makes room for count rows and labels, all zero, and for set->names_size bytes of names. count and
 * features at least 1. */
at_err at_store_reserve(at_dataset *set, uint64_t count, uint32_t features, at_element element,
                        at_fail *fail);

/* The same for sparse rows that hold `numbers` numbers in all; 0 is possible. */
at_err at_store_reserve_sparse(at_dataset *set, uint64_t count, uint64_t numbers, uint32_t features,
                               at_fail *fail);

/* Name of the class or, behind all classes, of the feature; NULL when there are no such names.
 * Borrowed until the set is freed. Walks over all names before it. */
const char *at_store_name(const at_dataset *set, uint64_t index);

/* The largest label. */
uint32_t at_store_label_max(const at_dataset *set);

/* Whether everything in the mapping holds together: labels below classes, the indices of a sparse
 * row rise and are below features, names end. */
bool at_store_is_right(const at_dataset *set);

/* Makes the mapping read-only. Every label MUST be below set->classes by now, and the indices of a
 * sparse row MUST rise and be below set->features. */
at_err at_store_seal(at_dataset *set, at_fail *fail);

/* Makes a sealed mapping writable again, for at_dataset_agree only; it MUST be sealed after. */
at_err at_store_unseal(at_dataset *set, at_fail *fail);

#endif
