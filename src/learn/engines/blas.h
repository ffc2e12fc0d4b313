/* blas.h - the memory of OpenBLAS; which one is loaded, for `anytime doctor` and bug reports. */
#ifndef AT_LEARN_ENGINES_BLAS_H
#define AT_LEARN_ENGINES_BLAS_H

#include <stdbool.h>

typedef struct at_engine_info {
    const char *blas_config; /* version and build flags, as OpenBLAS reports them */
    const char *blas_core;   /* the processor it has kernels for, such as "Zen" */
    const char *blas_path;   /* of the loaded library; NULL if unknown */
    bool        blas_serial; /* built without threads, as required */
} at_engine_info;

/* Makes OpenBLAS take the memory that it needs for products of any size; false: there is not
 * enough, with which it would try again without end. By one thread of a process. */
bool at_blas_reserve(void);

/* The strings stay valid until the program ends. */
at_engine_info at_engine_info_get(void);

#endif
