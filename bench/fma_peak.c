/* Peak floating-point operations per second of one core: fused multiply-adds on registers, with
 * more independent chains than the pipelines are deep, for each vector width.
 *
 *     cc -O2 -D_GNU_SOURCE -Isrc -o fma_peak bench/fma_peak.c src/base/clock.c && ./fma_peak
 *     {"gflops": 110.1, "avx2": 110.1, "avx512": 109.9}
 *
 * bench/run.py uses it as 100 %. */
#include <immintrin.h>
#include <stdio.h>

#include "base/clock.h"

enum { ROUNDS = 200000, REPEATS = 15 };

/* Each chain is a separate variable, because an array would be written to memory. The barrier keeps
 * the compiler from removing sums that are never read. */
#define TWELVE(X)  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define START(i)   acc##i = summand;
#define STEP(i)    acc##i = FMA(acc##i, factor, summand);
#define BARRIER(i) __asm__ volatile("" : "+x"(acc##i));

#define FMA _mm256_fmadd_ps
__attribute__((target("avx2,fma"))) static double time_avx2(void)
{
    __m256 factor = _mm256_set1_ps(0.999f), summand = _mm256_set1_ps(0.001f);
    __m256 acc0, acc1, acc2, acc3, acc4, acc5, acc6, acc7, acc8, acc9, acc10, acc11;
    TWELVE(START)
    at_ns begin = at_clock_now();
    for (int i = 0; i < ROUNDS; i++) {
        TWELVE(STEP)
        TWELVE(BARRIER)
    }
    return 12.0 * 8 * 2 * ROUNDS / (double)(at_clock_now() - begin);
}
#undef FMA

#define FMA _mm512_fmadd_ps
__attribute__((target("avx512f"))) static double time_avx512(void)
{
    __m512 factor = _mm512_set1_ps(0.999f), summand = _mm512_set1_ps(0.001f);
    __m512 acc0, acc1, acc2, acc3, acc4, acc5, acc6, acc7, acc8, acc9, acc10, acc11;
    TWELVE(START)
    at_ns begin = at_clock_now();
    for (int i = 0; i < ROUNDS; i++) {
        TWELVE(STEP)
        TWELVE(BARRIER)
    }
    return 12.0 * 16 * 2 * ROUNDS / (double)(at_clock_now() - begin);
}

static double best_of(double (*measure)(void))
{
    double best = 0;
    for (int i = 0; i < REPEATS; i++) {
        double found = measure(); /* per nanosecond, which is 1e9 per second */
        if (found > best) best = found;
    }
    return best;
}

int main(void)
{
    double avx2 = 0, avx512 = 0;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) avx2 = best_of(time_avx2);
    if (__builtin_cpu_supports("avx512f")) avx512 = best_of(time_avx512);
    printf("{\"gflops\": %.2f, \"avx2\": %.2f, \"avx512\": %.2f}\n", avx2 > avx512 ? avx2 : avx512,
           avx2, avx512);
    return avx2 > 0 || avx512 > 0 ? 0 : 1;
}
