/* blas_info.h - which OpenBLAS is loaded, for `anytime doctor` and bug reports. */
#ifndef AT_LEARN_ENGINES_BLAS_INFO_H
#define AT_LEARN_ENGINES_BLAS_INFO_H

#include <stdbool.h>

typedef struct at_engine_info {
    const char *blas_config; /* version and build flags, in the words of OpenBLAS */
    const char *blas_core;   /* the processor it has kernels for, such as "Zen" */
    const char *blas_path;   /* of the loaded library; NULL when it cannot be told */
    bool        blas_serial; /* built without threads, as we need it */
} at_engine_info;

/* The facts; the texts stay valid until the program ends. */
at_engine_info at_engine_info_get(void);

#endif
