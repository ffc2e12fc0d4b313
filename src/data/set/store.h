/* store.h - the internals of a data set, for the format readers only.
 *
 *     at_store_reserve ──► the reader fills rows and labels ──► at_store_seal ──► read-only
 *
 * Rows and labels are in one private anonymous mapping: forked workers share its pages, and once
 * sealed no sample can be changed by accident.
 */
#ifndef AT_DATA_SET_STORE_H
#define AT_DATA_SET_STORE_H

#include "data/prep/widen.h"
#include "data/set/dataset.h"

typedef enum at_element { AT_ELEMENT_BYTE, AT_ELEMENT_FLOAT } at_element;

struct at_dataset {
    uint64_t       count;
    uint32_t       features;
    uint32_t       classes;    /* 0: labels are real numbers (base/label.h) */
    at_image_shape shape;      /* of a row; zero: a plain feature vector */
    size_t         row_size;   /* bytes per row */
    at_element     element;    /* type of the numbers in a row */
    unsigned char *rows;       /* (count, features) of element */
    uint32_t      *labels;     /* (count) */
    uint64_t      *starts;     /* sparse: (count + 1) where each row begins; NULL: dense */
    uint32_t      *indices;    /* sparse: (starts[count]) */
    float         *values;     /* sparse: (starts[count]) */
    uint32_t       index_base; /* sparse: index of the first feature in the file, 0 or 1 */
    at_widen      *widen;      /* bytes to floats */
    /* Zero-terminated names, one after the other: of every class, then (optional) of every feature;
     * names_size bytes in the mapping, 0: classes and features are only numbers. */
    char                   *names;
    size_t                  names_size;
    const char *const      *class_names; /* of a known set, not in `names`; NULL: none */
    char                   *columns;     /* of a table (csv_columns.h), owned; NULL: none */
    uint64_t                dropped;     /* rows of a table that lacked a value */
    void                   *map;         /* rows and labels */
    size_t                  map_size;
    char                    form[64];     /* of a sample, to print: "28x28 bytes" */
    const char             *format_name;  /* of the reader */
    at_read_options         read_options; /* its strings are valid only while the set is read */
    bool                    cached;       /* mapped from a cache file */
    const at_load_progress *progress;     /* while the set is read */
};

/* Reserves zeroed memory for count rows and labels and for set->names_size bytes of names. count
 * and features at least 1. */
at_err at_store_reserve(at_dataset *set, uint64_t count, uint32_t features, at_element element,
                        at_fail *fail);

/* The same for sparse rows with `numbers` numbers in total, possibly 0. */
at_err at_store_reserve_sparse(at_dataset *set, uint64_t count, uint64_t numbers, uint32_t features,
                               at_fail *fail);

/* Releases the mapping. */
void at_store_unmap(at_dataset *set);

/* Name of a class or, after all classes, of a feature; NULL without such names. Borrowed until the
 * set is freed. Takes time linear in the index. */
const char *at_store_name(const at_dataset *set, uint64_t index);

/* The largest label, of a set with classes. */
uint32_t at_store_label_max(const at_dataset *set);

/* Whether the mapping is consistent: labels below classes (finite, if they are real), the indices
 * of each sparse row ascending and below features, names terminated. */
bool at_store_is_valid(const at_dataset *set);

/* Makes the mapping read-only. The set MUST be valid. */
at_err at_store_seal(at_dataset *set, at_fail *fail);

/* Makes a sealed mapping writable again, for at_dataset_match only; it MUST be sealed
 * afterwards. */
at_err at_store_unseal(at_dataset *set, at_fail *fail);

#endif
