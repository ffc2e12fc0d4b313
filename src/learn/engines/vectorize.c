#include "learn/engines/vectorize.h"

AT_VECTORISED void at_vector_add(float *restrict to, const float *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += from[i];
}
