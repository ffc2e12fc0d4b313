/* Runs steps of at_torch_update_slice for tests/e2e/torch_updates.py, which compares them with
 * PyTorch.
 *
 *     torch_update KIND STEPS FLOATS WORKERS SAMPLES START NUMBERS.. < vectors > results
 *
 * KIND is a class of torch.optim, NUMBERS the fields of at_torch_group in order, once per group;
 * the vector is divided evenly among the groups. Input: the parameters, then for each step the
 * gradient sum of each worker. Output: parameters and both state vectors after every step. Raw
 * floats. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "learn/optim/torch_update.h"

enum { FIXED = 7, NUMBERS = 9, GROUPS_MAX = 4, WORKERS_MAX = 8 };

static float *vector(size_t n)
{
    float *v = calloc(n, sizeof *v);
    assert(v);
    return v;
}

static void get(float *v, size_t n)
{
    if (fread(v, sizeof *v, n, stdin) == n) return;
    fprintf(stderr, "torch_update: not enough numbers on standard input\n");
    exit(1);
}

static void put(const float *v, size_t n)
{
    if (fwrite(v, sizeof *v, n, stdout) != n) exit(1);
}

static at_torch_kind kind_of(const char *name)
{
    for (int i = 0; i < AT_TORCH_COUNT; i++)
        if (!strcmp(at_torch_name[i], name)) return (at_torch_kind)i;
    fprintf(stderr, "torch_update: unknown optimizer %s\n", name);
    exit(1);
}

static at_torch_group group_of(char **text)
{
    double n[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) n[i] = strtod(text[i], NULL);
    return (at_torch_group){.lr = n[0],
                            .weight_decay = n[1],
                            .momentum = n[2],
                            .nesterov = n[3] != 0,
                            .beta1 = n[4],
                            .beta2 = n[5],
                            .alpha = n[6],
                            .eps = n[7],
                            .lr_decay = n[8]};
}

static void run(at_torch_update *u, uint64_t steps, size_t floats)
{
    float       *gradient[WORKERS_MAX];
    const float *sources[WORKERS_MAX];
    assert(u->gradients_count <= WORKERS_MAX);
    for (size_t i = 0; i < u->gradients_count; i++) sources[i] = gradient[i] = vector(floats);
    u->gradients = sources;
    for (u->step = 1; u->step <= steps; u->step++) {
        for (size_t i = 0; i < u->gradients_count; i++) get(gradient[i], floats);
        at_torch_update_slice(u, (at_slice){0, floats});
        put(u->params, floats);
        put(u->state[0], floats);
        put(u->state[1], floats);
    }
    for (size_t i = 0; i < u->gradients_count; i++) free(gradient[i]);
}

int main(int argc, char **argv)
{
    at_torch_group group[GROUPS_MAX];
    at_torch_range range[GROUPS_MAX];
    size_t         groups = argc > FIXED ? (size_t)(argc - FIXED) / NUMBERS : 0;
    if (groups < 1 || groups > GROUPS_MAX) return 2;
    size_t          floats = strtoul(argv[3], NULL, 10), part = floats / groups;
    at_torch_update u = {.kind = kind_of(argv[1]),
                         .params = vector(floats),
                         .state = {vector(floats), vector(floats)},
                         .gradients_count = strtoul(argv[4], NULL, 10),
                         .mean = 1 / strtof(argv[5], NULL),
                         .groups = group,
                         .ranges = range,
                         .ranges_count = groups};
    for (size_t i = 0; i < groups; i++) {
        at_fail fail = {0};
        size_t  at = i * part;
        group[i] = group_of(argv + FIXED + i * NUMBERS);
        range[i] = (at_torch_range){at, i + 1 < groups ? part : floats - at, (int32_t)i};
        if (at_torch_group_check(u.kind, &group[i], &fail)) {
            fprintf(stderr, "torch_update: %s\n", fail.text);
            return 2;
        }
    }
    for (size_t i = 0; i < floats; i++) u.state[0][i] = strtof(argv[6], NULL);
    get(u.params, floats);
    run(&u, strtoul(argv[2], NULL, 10), floats);
    free(u.params);
    free(u.state[0]);
    free(u.state[1]);
    return 0;
}
