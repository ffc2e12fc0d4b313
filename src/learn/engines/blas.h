/* blas.h - which OpenBLAS is loaded, for `anytime doctor` and bug reports. */
#ifndef AT_LEARN_ENGINES_BLAS_H
#define AT_LEARN_ENGINES_BLAS_H

#include <stdbool.h>

typedef struct at_engine_info {
    const char *blas_config; /* version and build flags, as OpenBLAS reports them */
    const char *blas_core;   /* the processor it has kernels for, such as "Zen" */
    const char *blas_path;   /* of the loaded library; NULL if unknown */
    bool        blas_serial; /* built without threads, as required */
} at_engine_info;

/* The strings stay valid until the program ends. */
at_engine_info at_engine_info_get(void);

#endif
