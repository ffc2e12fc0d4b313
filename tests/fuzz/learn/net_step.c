/* Fuzz target: any bytes as a net, which is refused, or makes one step of training.
 *
 * The first byte selects engine and samples. With an even second byte the rest is the text; with an
 * odd one it is a list of choices from the words, numbers and blocks below, so that many nets are
 * accepted and layers meet each other in every order. Large nets are skipped: they only take time.
 */
#include <math.h>
#include <string.h>

#include "../folder.h"
#include "learn/net/model.h"
#include "learn/net/net_parse.h"

enum { ROWS = 3, FLOATS_MAX = 1 << 16, SCRATCH_MAX = 1 << 21, TEXT_MAX = 2000, LINES_MAX = 16 };

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

/* Lines that are complete. */
static const char *const statements[] = {"residual",
                                         "end",
                                         "repeat 2",
                                         "repeat 3",
                                         "shortcut conv 1x1x4 stride=2",
                                         "shortcut avgpool 2",
                                         "default conv bias=no start=he",
                                         "default bn momentum=0.9",
                                         "group g lr=2 decay=0",
                                         "input 3x4x4",
                                         "input 1x7x7"};
enum { STATEMENTS = sizeof statements / sizeof *statements };

/* One line: a statement, or a word, an argument and an option. */
static size_t put_line(char *text, size_t room, const uint8_t *choice, int *open)
{
    static const char *words[128];
    size_t             count = at_net_word_names(words);
    assert(count > 0 && count <= 128);
    size_t which = pick(choice[0], count + STATEMENTS);
    if (which < count)
        return (size_t)snprintf(text, room, "%s %s %s\n", words[which],
                                arguments[pick(choice[1], sizeof arguments / sizeof *arguments)],
                                options[pick(choice[2], sizeof options / sizeof *options)]);
    which -= count;
    *open += which == 1 ? -1 : which == 0 || which == 2 || which == 3;
    return (size_t)snprintf(text, room, "%s\n", statements[which]);
}

/* Lines of three bytes each, an end for each block that is open, and a last layer. */
static void compose(char text[TEXT_MAX], const uint8_t *data, size_t size)
{
    size_t used = 0;
    int    open = 0;
    for (size_t i = 0; i + 2 < size && i < 3 * LINES_MAX; i += 3)
        used += put_line(text + used, TEXT_MAX - used, data + i, &open);
    for (; open > 0; open--) used += (size_t)snprintf(text + used, TEXT_MAX - used, "end\n");
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
    assert(!err || fail.text[0]); /* a second engine may succeed after a failure of the first */
    if (!err && at_model_floats(model) <= FLOATS_MAX && at_model_widest(model) <= FLOATS_MAX &&
        at_model_scratch(model) <= SCRATCH_MAX) {
        err = at_model_allocate(model, ROWS, AT_USE_TRAIN, &fail);
        if (!err) train(model, shape);
    }
    at_model_free(model);
    return 0;
}
