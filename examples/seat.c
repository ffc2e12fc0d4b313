/* A program with its own training loop as a worker, in under 60 lines: logistic regression.
 *
 *     build/anytime run -n 4 --strategy amb --time-limit 20ms --epochs 3 -- build/example_seat
 */
#include <math.h>
#include <stdio.h>

#include "anytime.h"

enum { SAMPLES = 100000, FEATURES = 10, BATCH = 32 };

/* Two clouds of points; sample i is a function of i, so nothing needs to be stored. */
static int make_sample(uint64_t i, float x[FEATURES])
{
    int label = (int)(i % 2);
    for (int f = 0; f < FEATURES; f++) {
        uint64_t random = (i * FEATURES + (uint64_t)f + 1) * 0x9e3779b97f4a7c15u;
        random = (random ^ (random >> 29)) * 0xbf58476d1ce4e5b9u;
        x[f] = (float)(random >> 40) / 8388608.0f - 1.0f + (label ? 0.2f : -0.2f);
    }
    return label;
}

/* Adds the gradient of one sample; returns its loss. */
static double add_sample(const float *w, float *gradient, uint64_t i)
{
    float x[FEATURES], z = w[FEATURES];
    int   label = make_sample(i, x);
    for (int f = 0; f < FEATURES; f++) z += w[f] * x[f];
    float slope = 1.0f / (1.0f + expf(-z)) - (float)label;
    for (int f = 0; f < FEATURES; f++) gradient[f] += slope * x[f];
    gradient[FEATURES] += slope;
    return log1p(exp(label ? -z : z));
}

int main(void)
{
    at_seat_tensor tensors[] = {{.name = "weight", .shape = {FEATURES}, .dims = 1},
                                {.name = "bias", .shape = {1}, .dims = 1}};
    at_seat_group  group = {.lr = 0.5};
    at_seat_spec   spec = {.model = "logistic",
                           .tensors = tensors,
                           .tensors_count = 2,
                           .groups = &group,
                           .groups_count = 1,
                           .batch = BATCH,
                           .samples = SAMPLES,
                           .rank = -1};
    at_seat       *seat = NULL;
    at_seat_order  order;
    at_seat_why    why;
    if (at_seat_join(&seat, NULL, &spec, &why) != AT_SEAT_JOINED)
        return fprintf(stderr, "%s\n", why.code ? why.message : "start me with anytime run"), 1;
    while (at_seat_next(seat, &order) == AT_SEAT_WORK) {
        int status = AT_SEAT_MORE;
        for (uint64_t at = order.position; status == AT_SEAT_MORE; at += BATCH) {
            double loss = 0;
            for (uint64_t i = at; i < at + BATCH; i++)
                loss += add_sample(at_seat_params(seat), at_seat_gradient(seat),
                                   at_seat_sample(seat, i, SAMPLES));
            status = at_seat_more(seat, BATCH, loss);
        }
        if (status == AT_SEAT_REPORT) at_seat_report(seat);
    }
    at_seat_leave(&seat);
}
