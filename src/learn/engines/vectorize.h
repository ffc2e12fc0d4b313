/* vectorize.h - makes the compiler vectorize a loop for the processor it runs on.
 *
 * Two versions are compiled and the loader picks one. They give the same bits: without contraction
 * each element sees the same single multiplications and additions whatever the vector width.
 * The thread sanitizer does not support a choice by the loader, so it gets one version. Only for
 * loops with independent elements (a sum would stay scalar, not be reordered).
 *
 * AT_VECTORIZED_FMA is for loops that call fmaf: a processor without the instruction gets the same
 * bits from the C library, slowly.
 */
#ifndef AT_LEARN_ENGINES_VECTORIZE_H
#define AT_LEARN_ENGINES_VECTORIZE_H

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define AT_VECTORIZED     __attribute__((optimize("O3"), target_clones("avx2", "default")))
#define AT_VECTORIZED_FMA __attribute__((optimize("O3"), target_clones("fma", "default")))
#else
#define AT_VECTORIZED
#define AT_VECTORIZED_FMA
#endif

#endif
