/* Steps that change the number of channels. */
#include "data/prep/prep_kind.h"

#include <assert.h>
#include <string.h>

enum { COLORS = 3 };

/* Copies grey to three channels; color images stay. */
static bool plan_rgb(at_prep_step *step, const char *args, const char **why)
{
    *why = "this step takes no numbers";
    if (args) return false;
    *why = "this step needs an image with one channel";
    step->out.channels = COLORS;
    return step->in.channels == 1 || step->in.channels == COLORS;
}

static void apply_rgb(const at_prep_step *step, float *out, const float *in, float *scratch)
{
    (void)scratch;
    assert(step->out.channels == COLORS);
    size_t plane = (size_t)step->in.height * step->in.width;
    bool   grey = step->in.channels == 1; /* a color image stays unchanged */
    for (size_t c = 0; c < COLORS; c++)
        memcpy(out + c * plane, in + (grey ? 0 : c * plane), plane * sizeof *out);
}

const at_prep_kind at_prep_rgb = {
    .name = "rgb",
    .plan = plan_rgb,
    .apply = apply_rgb,
    .resizes = true,
};

static bool plan_grey(at_prep_step *step, const char *args, const char **why)
{
    *why = "this step takes no numbers";
    if (args) return false;
    *why = "this step needs an image with three channels";
    step->out.channels = 1;
    return step->in.channels == 1 || step->in.channels == COLORS;
}

/* The usual weights, of ITU-R BT.601. */
static void apply_grey(const at_prep_step *step, float *out, const float *in, float *scratch)
{
    (void)scratch;
    assert(step->out.channels == 1);
    size_t plane = (size_t)step->in.height * step->in.width;
    if (step->in.channels == 1) {
        memcpy(out, in, plane * sizeof *out);
        return;
    }
    const float *red = in, *green = in + plane, *blue = in + 2 * plane;
    for (size_t i = 0; i < plane; i++)
        out[i] = 0.299f * red[i] + 0.587f * green[i] + 0.114f * blue[i];
}

const at_prep_kind at_prep_grey = {
    .name = "grey",
    .plan = plan_grey,
    .apply = apply_grey,
    .resizes = true,
};
