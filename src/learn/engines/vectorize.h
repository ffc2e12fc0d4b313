/* vectorize.h - asks the compiler to vectorise a plain loop, for the processor it will run on.
 *
 * Two versions are compiled and the loader picks one. They give the same bits: without contraction
 * each element sees the same single multiplications and additions whatever the vector width.
 * The thread sanitizer cannot start with a choice made by the loader, so it gets one version.
 * Only for loops whose elements are independent (a sum would be left scalar, not reordered).
 */
#ifndef AT_LEARN_ENGINES_VECTORIZE_H
#define AT_LEARN_ENGINES_VECTORIZE_H

#include <stddef.h>

#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define AT_VECTORISED __attribute__((optimize("O3"), target_clones("avx2", "default")))
#else
#define AT_VECTORISED
#endif

/* to (n) <- to + from; the two do not overlap. */
void at_vector_add(float *restrict to, const float *restrict from, size_t n);

#endif
