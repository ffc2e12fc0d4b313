/* The loss of a diverged net is NaN, although engines and pools can hide values that are not
 * finite. */
#include <math.h>

#include "fixture.h"

enum { ROWS = 6 };

static const char *const nets[] = {
    "conv 3x3x8\nrelu\nmaxpool 2\nconv 3x3x20 bias=no\nbn\nrelu\navgpool all\ndense classes\n",
    "conv 5x5x16 stride=2 pad=valid\nmaxpool 2\nrelu\nflatten\ndense 12\nrelu\ndense classes\n",
    "conv 3x3x32\nrelu\nconv 3x3x32\nrelu\navgpool 3 stride=2\ndense classes\n",
};
enum { NETS = sizeof nets / sizeof *nets };

static fixture net_new(const char *text, at_engine engine)
{
    at_shape shape = {
        .features = 3 * 16 * 16, .classes = 5, .channels = 3, .height = 16, .width = 16};
    return fixture_of_text(text, shape, engine, ROWS);
}

static double loss_of(fixture *f)
{
    at_model_install(f->model, f->w);
    return at_model_gradient_set(f->model, f->g, f->w, f->x, f->labels, f->rows);
}

/* Replaces one value of a tensor, checks the loss, and restores the value. */
static void check_broken(fixture *f, const char *text, const at_tensor *tensor, float bad)
{
    float *plain = floats(at_model_plain(f->model));
    at_model_to_plain(f->model, plain, f->w);
    float kept = plain[tensor->at];
    plain[tensor->at] = bad;
    at_model_from_plain(f->model, f->w, plain);
    if (isfinite(loss_of(f))) fail_msg("%.40s: %g in %s goes unnoticed", text, bad, tensor->name);
    plain[tensor->at] = kept;
    at_model_from_plain(f->model, f->w, plain);
    free(plain);
}

/* A ReLU or a pool could hide them. */
static void broken_weights_of_convolutions_show_in_the_loss(void **state)
{
    (void)state;
    enum { TENSORS_MAX = 64 };
    at_tensor tensors[TENSORS_MAX];
    for (size_t t = 0; t < NETS; t++)
        for (int e = AT_ENGINE_FAST; e <= AT_ENGINE_REF; e++) {
            fixture f = net_new(nets[t], (at_engine)e);
            size_t  count = at_model_tensors(f.model, tensors, TENSORS_MAX);
            assert_true(isfinite(loss_of(&f)));
            for (size_t i = 0; i < count; i++) {
                if (strncmp(tensors[i].name, "conv", 4) != 0) continue;
                check_broken(&f, nets[t], &tensors[i], NAN);
                check_broken(&f, nets[t], &tensors[i], -INFINITY);
            }
            assert_true(isfinite(loss_of(&f)));
            fixture_free(&f);
        }
}

/* Inputs so large that products overflow: the sums are infinite, the weights are not. */
static void broken_gradients_of_convolutions_show_in_the_loss(void **state)
{
    (void)state;
    for (int e = AT_ENGINE_FAST; e <= AT_ENGINE_REF; e++) {
        fixture f = net_new(nets[2], (at_engine)e);
        for (size_t i = 0; i < (size_t)f.rows * f.shape.features; i++) f.x[i] *= 1e38f;
        assert_true(isnan(loss_of(&f)));
        fixture_free(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_weights_of_convolutions_show_in_the_loss),
        cmocka_unit_test(broken_gradients_of_convolutions_show_in_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
