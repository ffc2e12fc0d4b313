/* Blocks: lines that stand for several layers.
 *
 *     basic 64                    bottleneck 64               wide 32 (pre-activation)
 *
 *       ├────────────┐              ├────────────┐              ├────────────┐ (same shape)
 *     conv 3x3x64    │            conv 1x1x64    │            norm, relu     │
 *     norm, relu     │            norm, relu     │              ├─ conv 1x1x32 (other shape)
 *     conv 3x3x64    │            conv 3x3x64    │            conv 3x3x32    │
 *     norm           │            norm, relu     │            norm, relu     │
 *       │       conv 1x1x64,      conv 1x1x256   │            conv 3x3x32    │
 *       │       norm (*)          norm           │              │            │
 *       ├────────────┘              ├────────────┘              ├────────────┘
 *     add, relu                   add, relu                   add
 *
 * (*) the projection: only where the shape changes. The first two are He et al. 2015 (the stride is
 * that of the first 3x3), the third is Zagoruyko and Komodakis 2016, whose projection reads what
 * the first norm and ReLU made. Convolutions have no bias, because a norm follows or has one.
 */
#include "learn/net/net_words.h"

#include <assert.h>

/* A block while it is built. */
typedef struct block {
    at_net_reader     *reader;
    const at_net_said *said;
    at_fail           *fail;
    int32_t            skip; /* what its projection or its end reads */
    bool               projects;
} block;

static at_err add(const block *b, at_layer_spec spec)
{
    spec.line = b->said->spec.line;
    spec.group = spec.group ? spec.group : b->said->spec.group;
    return at_net_add(b->reader->net, spec, b->fail);
}

static at_err add_relu(const block *b)
{
    return add(b, (at_layer_spec){.kind = &at_layer_relu, .from = AT_FROM_LAST});
}

static at_err add_norm(const block *b)
{
    at_layer_spec spec = at_net_said_default(b->reader, b->said->norm)->spec;
    spec.groups = b->said->spec.groups;
    return add(b, spec);
}

/* A square convolution; only those larger than 1x1 are padded. */
static at_err add_conv(const block *b, uint32_t size, uint32_t units, uint32_t stride)
{
    at_layer_spec spec = at_net_said_default(b->reader, &at_layer_conv)->spec;
    spec.window = size > 1 ? b->said->spec.window : (at_window){0};
    spec.same = size > 1 && b->said->spec.same;
    spec.window.height = spec.window.width = size;
    spec.window.stride = stride;
    spec.units = units;
    spec.bias = false;
    return add(b, spec);
}

static at_err add_projection(const block *b, uint32_t units)
{
    at_layer_spec spec = at_net_said_default(b->reader, &at_layer_conv)->spec;
    assert(b->projects);
    spec.from = b->skip;
    spec.window = (at_window){.height = 1, .width = 1, .stride = b->said->spec.window.stride};
    spec.same = false;
    spec.units = units;
    spec.bias = false;
    if (b->said->projection_given) spec.start = b->said->projection;
    return add(b, spec);
}

static at_err add_sum(const block *b, int32_t other)
{
    return add(b, (at_layer_spec){.kind = &at_layer_add, .from = AT_FROM_LAST, .other = other});
}

/* The projection, if there is one, and the sum. The projection comes last, so that the sum can be
 * formed in its place. */
static at_err finish(const block *b, uint32_t units, bool norm)
{
    if (!b->projects) return add_sum(b, b->skip);
    int32_t main = at_net_keep(b->reader->net);
    AT_TRY(add_projection(b, units));
    if (norm) AT_TRY(add_norm(b));
    return add_sum(b, main);
}

static block begin(at_net_reader *reader, const at_net_said *said, uint32_t units, at_fail *fail)
{
    assert(said->norm);
    bool projects = at_net_out(reader->net).channels != units || said->spec.window.stride != 1;
    return (block){.reader = reader, .said = said, .fail = fail, .projects = projects};
}

at_err at_net_block_basic(at_net_reader *reader, const at_net_said *said, at_fail *fail)
{
    uint32_t units = said->spec.units;
    block    b = begin(reader, said, units, fail);
    b.skip = at_net_keep(reader->net);
    AT_TRY(add_conv(&b, 3, units, said->spec.window.stride));
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    AT_TRY(add_conv(&b, 3, units, 1));
    AT_TRY(add_norm(&b));
    AT_TRY(finish(&b, units, true));
    return add_relu(&b);
}

at_err at_net_block_bottleneck(at_net_reader *reader, const at_net_said *said, at_fail *fail)
{
    uint32_t units = said->spec.units, out = 4 * units;
    block    b = begin(reader, said, out, fail);
    b.skip = at_net_keep(reader->net);
    AT_TRY(add_conv(&b, 1, units, 1));
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    AT_TRY(add_conv(&b, 3, units, said->spec.window.stride));
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    AT_TRY(add_conv(&b, 1, out, 1));
    AT_TRY(add_norm(&b));
    AT_TRY(finish(&b, out, true));
    return add_relu(&b);
}

at_err at_net_block_wide(at_net_reader *reader, const at_net_said *said, at_fail *fail)
{
    uint32_t units = said->spec.units;
    block    b = begin(reader, said, units, fail);
    if (!b.projects) b.skip = at_net_keep(reader->net);
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    if (b.projects) b.skip = at_net_keep(reader->net);
    AT_TRY(add_conv(&b, 3, units, said->spec.window.stride));
    AT_TRY(add_norm(&b));
    AT_TRY(add_relu(&b));
    AT_TRY(add_conv(&b, 3, units, 1));
    return finish(&b, units, false);
}

at_err at_net_build_rgb(at_net_reader *reader, const at_net_said *said, at_fail *fail)
{
    at_layer_spec spec = said->spec;
    if (at_net_out(reader->net).channels == 3) return AT_OK;
    spec.kind = &at_layer_rgb;
    return at_net_add(reader->net, spec, fail);
}

at_err at_net_build_resize(at_net_reader *reader, const at_net_said *said, at_fail *fail)
{
    at_activation out = at_net_out(reader->net);
    at_layer_spec spec = said->spec;
    if (out.height == spec.height && out.width == spec.width) return AT_OK;
    spec.kind = &at_layer_resize;
    return at_net_add(reader->net, spec, fail);
}
