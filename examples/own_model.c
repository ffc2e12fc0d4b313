/* A user-defined model in under 60 lines: logistic regression on two Gaussian clouds.
 *
 *     build/example_own_model --strategy amb --workers 4 --epochs 3 --straggler exp:0,0.001
 */
#include <math.h>
#include <stdio.h>

#include "anytime.h"

enum { SAMPLES = 100000, FEATURES = 10, PARAMETERS = FEATURES + 1 };
static float x[SAMPLES][FEATURES];
static int   label[SAMPLES]; /* 0 or 1 */

static void make_clouds(void)
{
    uint32_t random = 1;
    for (int i = 0; i < SAMPLES; i++) {
        label[i] = i % 2;
        for (int f = 0; f < FEATURES; f++) {
            float noise = 0;
            for (int k = 0; k < 12; k++) /* the sum of twelve uniform numbers is nearly Gaussian */
                noise += (float)((random = random * 1664525u + 1013904223u) >> 8) / 16777216.0f;
            x[i][f] = noise - 6.0f + (label[i] ? 0.5f : -0.5f);
        }
    }
}

static double loss(void *user, const float *w, float *gradient, uint64_t first, uint64_t end)
{
    double sum = 0;
    (void)user;
    for (uint64_t i = first; i < end; i++) {
        float z = w[FEATURES];
        for (int f = 0; f < FEATURES; f++) z += w[f] * x[i][f];
        float slope = 1.0f / (1.0f + expf(-z)) - (float)label[i];
        for (int f = 0; f < FEATURES; f++) gradient[f] += slope * x[i][f];
        gradient[FEATURES] += slope;
        sum += log1p(exp(label[i] ? -z : z));
    }
    return sum;
}

int main(int argc, char **argv)
{
    at_own_model model = {.parameters = PARAMETERS, .samples = SAMPLES, .loss = loss};
    float        params[PARAMETERS] = {0}, unused[PARAMETERS] = {0};
    at_answer    answer;
    make_clouds();
    int code = at_train(&model, params, argc - 1, (const char *const *)argv + 1, &answer);
    if (code)
        fprintf(stderr, "%s\n", answer.message);
    else
        printf("mean loss %.4f\n", loss(NULL, params, unused, 0, SAMPLES) / SAMPLES);
    at_answer_free(&answer);
    return code;
}
