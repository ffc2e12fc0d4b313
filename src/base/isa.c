#include "base/isa.h"

#include <stdlib.h>
#include <string.h>
#include <threads.h>

static at_isa    here;
static bool      limited;
static once_flag once = ONCE_FLAG_INIT;

#if defined(__x86_64__)
static at_isa processor(void)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return AT_ISA_PORTABLE;
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return avx512 ? AT_ISA_AVX512 : AT_ISA_AVX2;
}
#else
static at_isa processor(void)
{
    return AT_ISA_PORTABLE;
}
#endif

/* The value of ANYTIME_ISA, or NULL. */
static const char *requested(void)
{
    const char *value = getenv("ANYTIME_ISA");
    return value && *value ? value : NULL;
}

static void find(void)
{
    const char *name = requested();
    here = processor();
    limited = name && strcmp(name, "avx2") == 0 && here > AT_ISA_AVX2;
    if (limited) here = AT_ISA_AVX2;
}

at_isa at_isa_here(void)
{
    call_once(&once, find);
    return here;
}

bool at_isa_is_limited(void)
{
    call_once(&once, find);
    return limited;
}

at_err at_isa_check_environment(at_fail *fail)
{
    const char *name = requested();
    if (!name) return AT_OK;
    at_isa wanted = strcmp(name, "avx2") == 0     ? AT_ISA_AVX2
                    : strcmp(name, "avx512") == 0 ? AT_ISA_AVX512
                                                  : AT_ISA_PORTABLE;
    if (wanted == AT_ISA_PORTABLE)
        return at_fail_set(fail, AT_ERR_USAGE, "unset it, or set it to \"avx2\" or \"avx512\"",
                           "invalid environment variable ANYTIME_ISA=%s", name);
    if (wanted > processor())
        return at_fail_set(fail, AT_ERR_USAGE, "unset it to use what the processor has",
                           "ANYTIME_ISA=%s, but this processor does not have it", name);
    return AT_OK;
}
