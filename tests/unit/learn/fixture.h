/* fixture.h - synthetic samples, parameters and a model to run them on, for the learn tests. */
#ifndef AT_TESTS_UNIT_LEARN_FIXTURE_H
#define AT_TESTS_UNIT_LEARN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "learn/net/model.h"

typedef struct fixture {
    at_model *model;
    at_shape  shape;
    uint32_t  rows;
    size_t    params;
    float    *x, *w, *g; /* samples, parameters, a zeroed gradient */
    uint32_t *labels;
} fixture;

static inline float *floats(size_t n)
{
    size_t size = (n * sizeof(float) + 63) / 64 * 64;
    float *v = aligned_alloc(64, size);
    assert_non_null(v);
    memset(v, 0, size);
    return v;
}

static inline void fill(float *v, size_t n, double scale, at_rng *rng)
{
    for (size_t i = 0; i < n; i++) v[i] = (float)(scale * at_rng_normal(rng));
}

/* Random values in every tensor; padding stays zero. */
static inline void fill_params(fixture *f, double scale, at_rng *rng)
{
    size_t n = at_model_plain(f->model);
    float *plain = floats(n);
    fill(plain, n, scale, rng);
    for (size_t i = at_model_params(f->model); i < n; i++) /* variances are positive */
        plain[i] = plain[i] < 0 ? -plain[i] : plain[i];
    at_model_from_plain(f->model, f->w, plain);
    free(plain);
}

/* A model with random parameters (not its initial ones: softmax would start at zero). */
static inline fixture fixture_new(const char *name, at_shape shape, at_engine engine, uint32_t rows)
{
    at_rng  rng = at_rng_stream(7, 0, AT_RNG_PURPOSE_TEST, 0);
    at_fail fail = {0};
    fixture f = {.shape = shape, .rows = rows};
    assert_int_equal(at_model_new(name, shape, engine, rows, &f.model, &fail), AT_OK);
    f.params = at_model_floats(f.model);
    f.x = floats((size_t)rows * shape.features);
    f.w = floats(f.params);
    f.g = floats(f.params);
    f.labels = calloc(rows, sizeof *f.labels);
    assert_non_null(f.labels);
    fill(f.x, (size_t)rows * shape.features, 1.0, &rng);
    fill_params(&f, 0.1, &rng);
    at_model_install(f.model, f.w);
    for (uint32_t n = 0; n < rows; n++) f.labels[n] = (uint32_t)at_rng_below(&rng, shape.classes);
    return f;
}

/* The same for a model given as a .net text. */
static inline fixture fixture_of_text(const char *text, at_shape shape, at_engine engine,
                                      uint32_t rows)
{
    char path[64] = "/tmp/learn_XXXXXX.net";
    int  file = mkstemps(path, 4);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    fixture f = fixture_new(path, shape, engine, rows);
    unlink(path);
    return f;
}

static inline void fixture_free(fixture *f)
{
    at_model_free(f->model);
    free(f->x);
    free(f->w);
    free(f->g);
    free(f->labels);
    *f = (fixture){0};
}

#endif
