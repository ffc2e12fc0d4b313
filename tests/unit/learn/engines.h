/* engines.h - one model in two engines: loss, gradients and score must agree. */
#ifndef AT_TESTS_UNIT_LEARN_ENGINES_H
#define AT_TESTS_UNIT_LEARN_ENGINES_H

#include <math.h>

#include "fixture.h"

static inline double loss_of(fixture *f, float *scratch)
{
    at_model_install(f->model, f->w);
    return at_model_gradient_set(f->model, scratch, f->w, f->x, f->labels, f->rows);
}

/* Norm of the difference of two tensors, relative to the second. In a deep net a rounding error can
 * switch a ReLU, which changes single gradients considerably. */
static inline double distance(const float *a, const float *b, size_t n)
{
    double far = 0, large = 1e-12;
    for (size_t i = 0; i < n; i++) {
        far += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        large += (double)b[i] * b[i];
    }
    return sqrt(far / large);
}

static inline void compare_tensors(const char *what, const fixture *a, const fixture *b,
                                   double tolerance)
{
    enum { TENSORS_MAX = 1024 };
    static at_tensor tensors[TENSORS_MAX];
    size_t           count = at_model_tensors(a->model, tensors, TENSORS_MAX);
    size_t           n = at_model_plain(a->model);
    float           *ga = floats(n), *gb = floats(n);
    assert_int_equal(n, at_model_plain(b->model));
    at_model_to_plain(a->model, ga, a->g);
    at_model_to_plain(b->model, gb, b->g);
    for (size_t i = 0; i < count; i++) {
        size_t size = (i + 1 < count ? tensors[i + 1].at : n) - tensors[i].at;
        double far = distance(ga + tensors[i].at, gb + tensors[i].at, size);
        if (!(far < tolerance)) fail_msg("%.40s: %s is off by %g", what, tensors[i].name, far);
    }
    free(ga);
    free(gb);
}

static inline void check_engines(const char *what, fixture *fast, fixture *ref, double tolerance)
{
    double a = loss_of(fast, fast->g), b = loss_of(ref, ref->g);
    if (!(fabs(a - b) < 1e-3 * (fabs(b) + 1))) fail_msg("%.40s: loss %g, not %g", what, a, b);
    compare_tensors(what, fast, ref, tolerance);
    at_score got = {0}, wanted = {0};
    at_model_score(fast->model, &got, fast->w, fast->x, fast->labels, fast->rows);
    at_model_score(ref->model, &wanted, ref->w, ref->x, ref->labels, ref->rows);
    assert_true(fabs(got.loss_sum - wanted.loss_sum) < 1e-3 * (fabs(wanted.loss_sum) + 1));
}

#endif
