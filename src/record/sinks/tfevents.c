#include "record/sinks/tfevents.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "record/log/append_file.h"
#include "tensorboard.pb-c.h"

enum {
    HEAD_SIZE = 12,
    TAIL_SIZE = 4,
    NAMES_MAX = 10000, /* LIMIT: files per second and host */
    STATUS_START = 1,  /* values of TensorBoard's enums */
    CLASS_TENSOR = 2,
    TYPE_TEXT = 7,

    /* Eight buckets of at_histogram become one of TensorBoard's, except the first ones, which hold
     * a single integer: it matters whether a staleness is 0 or 1. */
    SINGLES = 1 << AT_HISTOGRAM_BITS,
    MERGED = 8,
    BUCKETS_MAX = 2 * (SINGLES + (AT_HISTOGRAM_BUCKETS - SINGLES) / MERGED),

    ATTRIBUTES = 3, /* of a node of the graph */
    DIMS = 4,
    INPUTS = 2,
    ENDS = 3 /* nodes that are not layers: samples, labels, loss */
};

struct at_tfevents {
    at_append_file *out;
    double          date;
};

static void put_number(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> (8 * i));
}

/* Adds head and tail to the message of `size` bytes at record + HEAD_SIZE. */
static void frame(unsigned char *record, size_t size)
{
    put_number(record, size, 8);
    put_number(record + 8, at_crc32c_masked(record, 8), 4);
    put_number(record + HEAD_SIZE + size, at_crc32c_masked(record + HEAD_SIZE, size), 4);
}

static at_err put_large(at_tfevents *file, const Tb__Event *event, size_t size, at_fail *fail)
{
    unsigned char *record = malloc(HEAD_SIZE + size + TAIL_SIZE);
    if (!record) return at_fail_memory_for(fail, "for %s", file->out->path);
    tb__event__pack(event, record + HEAD_SIZE);
    frame(record, size);
    at_append_file_bytes(file->out, record, HEAD_SIZE + size + TAIL_SIZE);
    free(record);
    return AT_OK;
}

/* Writes an event with its time set to `at`. Fails only when a large one lacks memory. */
static at_err put_event(at_tfevents *file, at_ns at, Tb__Event *event, at_fail *fail)
{
    assert(event->what_case != TB__EVENT__WHAT__NOT_SET);
    event->wall_time = file->date + at_seconds(at);
    size_t size = tb__event__get_packed_size(event), whole = HEAD_SIZE + size + TAIL_SIZE;
    if (whole > AT_APPEND_FILE_SIZE) return put_large(file, event, size, fail);
    unsigned char *record = (unsigned char *)at_append_file_room(file->out, whole);
    tb__event__pack(event, record + HEAD_SIZE);
    frame(record, size);
    file->out->used += whole;
    at_append_file_tick(file->out, at, false);
    return AT_OK;
}

/* An event that always fits into the buffer. */
static void put_small(at_tfevents *file, at_ns at, Tb__Event *event)
{
    at_err err = put_event(file, at, event, NULL);
    assert(!err);
    (void)err;
}

static void put_version(at_tfevents *file)
{
    Tb__Event event = TB__EVENT__INIT;
    event.what_case = TB__EVENT__WHAT_FILE_VERSION;
    event.file_version = (char *)"brain.Event:2";
    put_small(file, 0, &event);
}

/* A run resumed within the second of its start still gets a file of its own. */
static at_err open_file(at_tfevents *file, const char *folder, at_fail *fail)
{
    char host[256] = "", name[320];
    if (gethostname(host, sizeof host - 1) || !*host) snprintf(host, sizeof host, "localhost");
    long long date = (long long)file->date;
    snprintf(name, sizeof name, "events.out.tfevents.%lld.%s", date, host);
    for (int i = 2; i < NAMES_MAX; i++) {
        AT_TRY(at_append_file_open(folder, name, false, &file->out, fail));
        file->out->bounded = true;
        if (file->out->fresh) return AT_OK;
        at_append_file_close(file->out, NULL);
        file->out = NULL;
        snprintf(name, sizeof name, "events.out.tfevents.%lld.%s.%d", date, host, i);
    }
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: too many event files", folder);
}

at_err at_tfevents_open(const char *folder, double date, at_tfevents **file, at_fail *fail)
{
    assert(folder);
    *file = NULL;
    AT_TRY(at_file_make_folder(folder, fail));
    at_tfevents *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for %s", folder);
    self->date = date;
    at_err err = open_file(self, folder, fail);
    if (err) {
        free(self);
        return err;
    }
    put_version(self);
    *file = self;
    return AT_OK;
}

at_err at_tfevents_close(at_tfevents *file, at_fail *fail)
{
    if (!file) return AT_OK;
    at_err err = at_append_file_close(file->out, fail);
    free(file);
    return err;
}

void at_tfevents_restart(at_tfevents *file, at_ns at, uint64_t step)
{
    Tb__SessionLog log = TB__SESSION_LOG__INIT;
    Tb__Event      event = TB__EVENT__INIT;
    assert(step > 0);
    log.status = STATUS_START;
    event.step = (int64_t)step;
    event.what_case = TB__EVENT__WHAT_SESSION_LOG;
    event.session_log = &log;
    put_small(file, at, &event);
}

static at_err put_values(at_tfevents *file, at_ns at, uint64_t step, Tb__Summary__Value **values,
                         size_t count, at_fail *fail)
{
    assert(count >= 1);
    Tb__Summary summary = TB__SUMMARY__INIT;
    Tb__Event   event = TB__EVENT__INIT;
    summary.value = values;
    summary.n_value = count;
    event.step = (int64_t)step;
    event.what_case = TB__EVENT__WHAT_SUMMARY;
    event.summary = &summary;
    return put_event(file, at, &event, fail);
}

void at_tfevents_scalars(at_tfevents *file, at_ns at, uint64_t step,
                         const at_tfevents_scalar *scalars, size_t count)
{
    Tb__Summary__Value values[AT_TFEVENTS_SCALARS], *places[AT_TFEVENTS_SCALARS];
    assert(count <= AT_TFEVENTS_SCALARS);
    for (size_t i = 0; i < count; i++) {
        tb__summary__value__init(&values[i]);
        values[i].tag = (char *)scalars[i].tag;
        values[i].value_case = TB__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        values[i].simple_value = (float)scalars[i].value;
        places[i] = &values[i];
    }
    if (count > 0) (void)put_values(file, at, step, places, count, NULL);
}

/* ---- histograms ------------------------------------------------------------------------------ */

typedef struct buckets {
    size_t count;
    double limit[BUCKETS_MAX], number[BUCKETS_MAX];
    double sum_squares; /* taking the middle of a bucket for all its values */
} buckets;

/* A bucket from `low` to `high`, preceded by an empty one if necessary to mark its lower edge. */
static void add_bucket(buckets *all, double low, double high, uint64_t number)
{
    assert(low < high);
    assert(all->count + 2 <= BUCKETS_MAX);
    double middle = (low + high) / 2;
    if (all->count == 0 || all->limit[all->count - 1] < low) {
        all->number[all->count] = 0;
        all->limit[all->count++] = low;
    }
    all->number[all->count] = (double)number;
    all->limit[all->count++] = high;
    all->sum_squares += (double)number * middle * middle;
}

static void collect(buckets *all, const at_histogram *histogram, double unit)
{
    all->count = 0;
    all->sum_squares = 0;
    for (uint32_t i = 0; i < AT_HISTOGRAM_BUCKETS;) {
        uint32_t end = i < SINGLES ? i + 1 : i + MERGED;
        uint64_t number = 0;
        double   low = i == 0 ? 0 : unit * (double)at_histogram_edge(i - 1);
        for (; i < end; i++) number += histogram->bucket[i];
        if (number > 0) add_bucket(all, low, unit * (double)at_histogram_edge(end - 1), number);
    }
    assert(all->count >= 2);
}

void at_tfevents_histogram(at_tfevents *file, at_ns at, uint64_t step, const char *tag,
                           const at_histogram *histogram, double unit)
{
    buckets             all;
    Tb__Histogram       histo = TB__HISTOGRAM__INIT;
    Tb__Summary__Value  value = TB__SUMMARY__VALUE__INIT;
    Tb__Summary__Value *place = &value;
    assert(unit > 0);
    if (histogram->count == 0) return;
    collect(&all, histogram, unit);
    histo.min = unit * (double)histogram->min;
    histo.max = unit * (double)histogram->max;
    histo.num = (double)histogram->count;
    histo.sum = unit * histogram->sum;
    histo.sum_squares = all.sum_squares;
    histo.n_bucket_limit = histo.n_bucket = all.count;
    histo.bucket_limit = all.limit;
    histo.bucket = all.number;
    value.tag = (char *)tag;
    value.value_case = TB__SUMMARY__VALUE__VALUE_HISTO;
    value.histo = &histo;
    (void)put_values(file, at, step, &place, 1, NULL);
}

/* ---- text ------------------------------------------------------------------------------------ */

at_err at_tfevents_text(at_tfevents *file, const char *tag, const char *text, at_fail *fail)
{
    ProtobufCBinaryData  bytes = {strlen(text), (uint8_t *)text};
    Tb__Shape            scalar = TB__SHAPE__INIT;
    Tb__Tensor           tensor = TB__TENSOR__INIT;
    Tb__Metadata__Plugin plugin = TB__METADATA__PLUGIN__INIT;
    Tb__Metadata         metadata = TB__METADATA__INIT;
    Tb__Summary__Value   value = TB__SUMMARY__VALUE__INIT;
    Tb__Summary__Value  *place = &value;
    assert(tag);
    tensor.dtype = TYPE_TEXT;
    tensor.tensor_shape = &scalar;
    tensor.n_string_val = 1;
    tensor.string_val = &bytes;
    plugin.plugin_name = (char *)"text";
    metadata.plugin_data = &plugin;
    metadata.data_class = CLASS_TENSOR;
    value.tag = (char *)tag;
    value.metadata = &metadata;
    value.value_case = TB__SUMMARY__VALUE__VALUE_TENSOR;
    value.tensor = &tensor;
    return put_values(file, 0, 0, &place, 1, fail);
}

/* ---- graph ----------------------------------------------------------------------------------- */

/* A node of the graph and everything it points to. */
typedef struct node {
    Tb__Node            message;
    Tb__AttributeEntry  entry[ATTRIBUTES], *entries[ATTRIBUTES];
    Tb__Attribute       attribute[ATTRIBUTES];
    Tb__Attribute__List list;
    Tb__Shape           shape, *shapes[1];
    Tb__Shape__Dim      dim[DIMS], *dims[DIMS];
    char               *inputs[INPUTS];
} node;

static void name_node(node *n, const char *name, const char *op)
{
    tb__node__init(&n->message);
    n->message.name = (char *)name;
    n->message.op = (char *)op;
    n->message.input = n->inputs;
    n->message.attr = n->entries;
}

static void add_input(node *n, const char *name)
{
    assert(n->message.n_input < INPUTS);
    n->inputs[n->message.n_input++] = (char *)name;
}

static Tb__Attribute *add_attribute(node *n, const char *key)
{
    size_t index = n->message.n_attr++;
    assert(index < ATTRIBUTES);
    tb__attribute_entry__init(&n->entry[index]);
    tb__attribute__init(&n->attribute[index]);
    n->entry[index].key = (char *)key;
    n->entry[index].value = &n->attribute[index];
    n->entries[index] = &n->entry[index];
    return &n->attribute[index];
}

/* The shape of its output, shown at the edges of the graph; the first dimension is the batch. */
static void add_shape(node *n, const uint32_t shape[3])
{
    Tb__Attribute *attribute = add_attribute(n, "_output_shapes");
    size_t         dims = shape[1] * shape[2] == 1 ? 2 : DIMS; /* a vector or an image */
    tb__shape__init(&n->shape);
    tb__attribute__list__init(&n->list);
    for (size_t i = 0; i < dims; i++) {
        tb__shape__dim__init(&n->dim[i]);
        n->dim[i].size = i == 0 ? -1 : (int64_t)shape[i - 1];
        n->dims[i] = &n->dim[i];
    }
    n->shape.dim = n->dims;
    n->shape.n_dim = dims;
    n->shapes[0] = &n->shape;
    n->list.shape = n->shapes;
    n->list.n_shape = 1;
    attribute->value_case = TB__ATTRIBUTE__VALUE_LIST;
    attribute->list = &n->list;
}

static void add_text(node *n, const char *key, const char *text)
{
    Tb__Attribute *attribute = add_attribute(n, key);
    attribute->value_case = TB__ATTRIBUTE__VALUE_S;
    attribute->s = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static void add_number(node *n, const char *key, uint64_t number)
{
    Tb__Attribute *attribute = add_attribute(n, key);
    attribute->value_case = TB__ATTRIBUTE__VALUE_I;
    attribute->i = (int64_t)number;
}

static void set_layer(node *n, const at_run_layer *layers, size_t index)
{
    const at_run_layer *layer = &layers[index];
    name_node(n, layer->name, layer->kind);
    for (int i = 0; i < INPUTS; i++) {
        if (layer->from[i] == AT_RUN_LAYER_NONE) continue;
        assert(layer->from[i] < (int32_t)index); /* layers are in topological order */
        add_input(n, layer->from[i] < 0 ? "samples" : layers[layer->from[i]].name);
    }
    add_shape(n, layer->shape);
    if (*layer->detail) add_text(n, "detail", layer->detail);
    if (layer->parameters > 0) add_number(n, "parameters", layer->parameters);
}

static void set_ends(node *ends, const at_run_layer *last)
{
    name_node(&ends[0], "samples", "Placeholder");
    name_node(&ends[1], "labels", "Placeholder");
    name_node(&ends[2], "loss", "softmax cross-entropy");
    add_input(&ends[2], last->name);
    add_input(&ends[2], "labels");
}

/* The event contains the graph as a packed message. */
static at_err put_graph(at_tfevents *file, const Tb__GraphDef *graph, at_fail *fail)
{
    size_t   size = tb__graph_def__get_packed_size(graph);
    uint8_t *bytes = malloc(size);
    if (!bytes) return at_fail_memory_for(fail, "for the graph");
    tb__graph_def__pack(graph, bytes);
    Tb__Event event = TB__EVENT__INIT;
    event.what_case = TB__EVENT__WHAT_GRAPH_DEF;
    event.graph_def = (ProtobufCBinaryData){size, bytes};
    at_err err = put_event(file, 0, &event, fail);
    free(bytes);
    return err;
}

at_err at_tfevents_graph(at_tfevents *file, const at_run_layer *layers, size_t count, at_fail *fail)
{
    assert(count >= 1);
    Tb__GraphDef           graph = TB__GRAPH_DEF__INIT;
    Tb__GraphDef__Versions versions = TB__GRAPH_DEF__VERSIONS__INIT;
    size_t                 all = count + ENDS;
    node                  *nodes = calloc(all, sizeof *nodes);
    Tb__Node             **places = calloc(all, sizeof *places);
    at_err err = nodes && places ? AT_OK : at_fail_memory_for(fail, "for the graph");
    if (!err) {
        for (size_t i = 0; i < count; i++) set_layer(&nodes[i], layers, i);
        set_ends(nodes + count, &layers[count - 1]);
        for (size_t i = 0; i < all; i++) places[i] = &nodes[i].message;
        versions.producer = 1;
        graph.versions = &versions;
        graph.node = places;
        graph.n_node = all;
        err = put_graph(file, &graph, fail);
    }
    free(places);
    free(nodes);
    return err;
}
