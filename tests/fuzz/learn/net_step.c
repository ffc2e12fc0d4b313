/* Fuzz target: any bytes as a net, which is refused, or makes one step of training.
 *
 * The first byte selects engine and samples. With an even second byte the rest is the text; with an
 * odd one it is a list of choices from the words and numbers below, so that most nets are accepted
 * and layers meet each other in every order. Large nets are skipped: they only take time. */
#include <math.h>
#include <string.h>

#include "../folder.h"
#include "learn/net/model.h"
#include "learn/net/net_parse.h"

enum { ROWS = 3, FLOATS_MAX = 1 << 16, SCRATCH_MAX = 1 << 21, TEXT_MAX = 2000, LINES_MAX = 12 };

static const at_shape shapes[] = {
    {48, 3, 3, 4, 4}, {49, 3, 1, 7, 7}, {10, 4, 0, 0, 0}, {10, 0, 0, 0, 0}, {192, 2, 3, 8, 8}};

static const char *const arguments[] = {"",        "2",  "3x3x4", "1x1x8",   "5x5x3",  "all", "4",
                                        "classes", "16", "8",     "2x2",     "3x1x5",  "1",   "0",
                                        "1000",    "-1", "x",     "1x1x1x1", "3x3x16", "32"};
static const char *const options[] = {
    "",         "stride=2", "pad=same",        "pad=valid",  "pad=1",    "bias=no",
    "start=he", "keep=0.5", "norm=bn",         "norm=gn:2",  "eps=1e-3", "name=a",
    "from=a",   "stride=3", "start=const:0.1", "momentum=1", "group=g",  "bias=0.5"};

static size_t pick(uint8_t byte, size_t count)
{
    return byte % count;
}

/* Lines of a word, an argument and an option each, and a last layer. */
static void compose(char text[TEXT_MAX], const uint8_t *data, size_t size)
{
    static const char *words[128];
    size_t             count = at_net_word_names(words), used = 0;
    assert(count > 0 && count <= 128);
    for (size_t i = 0; i + 2 < size && i < 3 * LINES_MAX; i += 3)
        used += (size_t)snprintf(text + used, TEXT_MAX - used, "%s %s %s\n",
                                 words[pick(data[i], count)],
                                 arguments[pick(data[i + 1], sizeof arguments / sizeof *arguments)],
                                 options[pick(data[i + 2], sizeof options / sizeof *options)]);
    snprintf(text + used, TEXT_MAX - used, "flatten\ndense classes\n");
}

static void train(at_model *model, const at_shape *shape)
{
    static float    x[ROWS * 192] __attribute__((aligned(64)));
    static uint32_t labels[ROWS] = {0, 1, 0};
    size_t          floats = (at_model_floats(model) + 15) / 16 * 16;
    float          *params = aligned_alloc(64, floats * sizeof *params);
    float          *gradient = aligned_alloc(64, floats * sizeof *gradient);
    at_fail         fail = {0};
    assert(params && gradient);
    memset(params, 0, floats * sizeof *params);
    memset(gradient, 0, floats * sizeof *gradient);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)(i % 7) * 0.25f - 0.5f;
    assert(shape->features * ROWS <= sizeof x / sizeof *x);
    if (!at_model_init(model, params, 1, &fail)) {
        at_model_install(model, params);
        at_model_noise(model, 7);
        double loss = at_model_gradient(model, gradient, params, x, labels, ROWS);
        for (size_t i = 0; i < floats && isfinite(loss); i++) params[i] -= 0.01f * gradient[i];
        at_model_gradient(model, gradient, params, x, labels, ROWS);
    }
    free(gradient);
    free(params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    char            text[TEXT_MAX] = "";
    at_engine       engine = (at_engine)(data[0] % 3);
    const at_shape *shape = &shapes[data[0] / 3 % (sizeof shapes / sizeof *shapes)];
    at_model       *model = NULL;
    at_fail         fail = {0};
    if (data[1] % 2 == 1)
        compose(text, data + 2, size - 2);
    else
        memcpy(text, data + 2, size - 2 < TEXT_MAX ? size - 2 : TEXT_MAX - 1);
    const char *path = fuzz_file("input.net", (const uint8_t *)text, strlen(text), NULL, 0);
    at_err      err = at_model_plan(path, *shape, engine, ROWS, &model, &fail);
    assert(!err == !fail.text[0]);
    if (!err && at_model_floats(model) <= FLOATS_MAX && at_model_widest(model) <= FLOATS_MAX &&
        at_model_scratch(model) <= SCRATCH_MAX) {
        err = at_model_allocate(model, ROWS, AT_USE_TRAIN, &fail);
        if (!err) train(model, shape);
    }
    at_model_free(model);
    return 0;
}
