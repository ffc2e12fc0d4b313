/* isa.h - the instruction set that kernels of this process use: the best of the processor, or less
 * if the environment variable ANYTIME_ISA says so, so that both can be compared on one machine. */
#ifndef AT_BASE_ISA_H
#define AT_BASE_ISA_H

#include <stdbool.h>

#include "base/err.h"

typedef enum at_isa { AT_ISA_PORTABLE, AT_ISA_AVX2, AT_ISA_AVX512 } at_isa;

/* Read once; later changes of the environment have no effect. */
at_isa at_isa_here(void);

/* Whether ANYTIME_ISA asks for less than the processor has. */
bool at_isa_is_limited(void);

/* AT_ERR_USAGE when ANYTIME_ISA is neither empty, "avx2" nor "avx512", or the processor does not
 * have that instruction set. */
at_err at_isa_check_environment(at_fail *fail);

#endif
