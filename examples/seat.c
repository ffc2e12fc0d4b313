/* A program with its own training loop as a worker, in under 60 lines: logistic regression.
 *
 *     build/anytime run -n 4 --strategy amb --batch 640 --epochs 3 -- build/example_seat
 */
#include <math.h>
#include <stdio.h>

#include "anytime.h"

enum { SAMPLES = 100000, FEATURES = 10, BATCH = 32 };

/* Adds the gradient of sample i and returns its loss. The samples are two clouds of points. */
static double add_sample(const float *w, float *gradient, uint64_t i)
{
    float x[FEATURES], z = w[FEATURES];
    int   label = (int)(i % 2);
    for (uint64_t f = 0; f < FEATURES; f++) {
        uint64_t random = (i * FEATURES + f + 1) * 0x9e3779b97f4a7c15u;
        random = (random ^ (random >> 29)) * 0xbf58476d1ce4e5b9u;
        x[f] = (float)(random >> 40) / 8388608.0f - 1.0f + (label ? 0.2f : -0.2f);
        z += w[f] * x[f];
    }
    float slope = 1.0f / (1.0f + expf(-z)) - (float)label;
    for (int f = 0; f < FEATURES; f++) gradient[f] += slope * x[f];
    gradient[FEATURES] += slope;
    return log1p(exp(label ? -z : z));
}

/* One round: micro-batches until the hub has enough. */
static int do_round(at_seat *seat, uint64_t position)
{
    int status = AT_SEAT_MORE;
    for (; status == AT_SEAT_MORE || status == AT_SEAT_REFRESHED; position += BATCH) {
        double loss = 0;
        for (uint64_t i = 0; i < BATCH; i++)
            loss += add_sample(at_seat_params(seat), at_seat_gradient(seat),
                               at_seat_sample(seat, position + i, SAMPLES));
        status = at_seat_more(seat, BATCH, loss);
    }
    return status;
}

int main(void)
{
    at_seat_tensor tensor = {.name = "weights", .shape = {FEATURES + 1}, .dims = 1};
    at_seat_group  group = {.lr = 0.5};
    at_seat_spec   spec = {
          .tensors = &tensor, .tensors_count = 1, .groups = &group, .groups_count = 1};
    at_seat      *seat = NULL;
    at_seat_order order;
    at_seat_why   why;
    spec.batch = BATCH, spec.samples = SAMPLES, spec.rank = -1;
    if (at_seat_join(&seat, NULL, &spec, &why) != AT_SEAT_JOINED)
        return fprintf(stderr, "%s\n", why.code ? why.message : "start me with anytime run"), 1;
    while (at_seat_next(seat, &order) == AT_SEAT_WORK)
        if (do_round(seat, order.position) == AT_SEAT_REPORT) at_seat_report(seat);
    at_seat_leave(&seat);
}
