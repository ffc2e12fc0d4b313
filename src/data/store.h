/* store.h - the inside of a data set, for the readers of formats only.
 *
 *     at_store_reserve ──► the reader fills rows and labels ──► at_store_seal ──► read-only
 *
 * Rows and labels lie in one private anonymous mapping: forked workers share its pages, and once
 * sealed nobody can change a sample by accident.
 */
#ifndef AT_DATA_STORE_H
#define AT_DATA_STORE_H

#include "data/dataset.h"
#include "data/loading.h"
#include "data/rows.h"

typedef enum at_element { AT_ELEMENT_BYTE, AT_ELEMENT_FLOAT } at_element;

struct at_dataset {
    uint64_t       count;
    uint32_t       features, classes;
    at_picture     picture;  /* zero: no picture, a line of numbers */
    size_t         row_size; /* bytes of one row */
    at_element     element;  /* what a row is made of */
    unsigned char *rows;     /* (count, features) of element */
    uint32_t      *labels;   /* (count) */
    uint64_t      *starts;   /* sparse: (count + 1) where each row begins; NULL: dense */
    uint32_t      *indices;  /* sparse: (starts[count]) */
    float         *values;   /* sparse: (starts[count]) */
    at_rows_widen *widen;    /* bytes to floats */
    void          *map;      /* rows and labels */
    size_t         map_size;
    char           form[64];    /* for people: "28x28 bytes" */
    const char    *format_name; /* of the reader */
    /* While it is read: who wants to know how far it is, at_loading_tell(set->loading, ..). */
    const at_loading *loading;
};

/* Makes room for count rows and labels, all zero. count and features at least 1. */
at_err at_store_reserve(at_dataset *set, uint64_t count, uint32_t features, at_element element,
                        at_fail *fail);

/* The largest label. */
uint32_t at_store_label_max(const at_dataset *set);

/* Makes the mapping read-only. Every label MUST be below set->classes by now. */
at_err at_store_seal(at_dataset *set, at_fail *fail);

#endif
