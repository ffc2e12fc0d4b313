#include "learn/engines/blas_info.h"

#include <assert.h>
#include <cblas.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

at_engine_info at_engine_info_get(void)
{
    Dl_info        where;
    bool           told = dladdr((void *)(uintptr_t)openblas_get_config, &where) != 0;
    at_engine_info info = {.blas_config = openblas_get_config(),
                           .blas_core = openblas_get_corename(),
                           .blas_path = told ? where.dli_fname : NULL,
                           .blas_serial = openblas_get_parallel() == OPENBLAS_SEQUENTIAL};
    assert(info.blas_config && info.blas_core);
    return info;
}
