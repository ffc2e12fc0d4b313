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
    NAMES_MAX = 10000, /* LIMIT: files of one second and host */
    STATUS_START = 1,  /* numbers of TensorBoard's own enums */
    CLASS_TENSOR = 2,
    TYPE_TEXT = 7,

    /* Buckets of which a few make one of TensorBoard's; the first ones hold a single whole number,
     * and it matters whether a staleness is 0 or 1. */
    SINGLES = 1 << AT_HISTOGRAM_BITS,
    TOGETHER = 8,
    BUCKETS_MAX = 2 * (SINGLES + (AT_HISTOGRAM_BUCKETS - SINGLES) / TOGETHER)
};

struct at_tfevents {
    at_append_file *spool;
    double          date;
};

static void put_number(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> (8 * i));
}

/* Puts head and tail around a message of `size` bytes that lies HEAD_SIZE bytes behind `record`. */
static void frame(unsigned char *record, size_t size)
{
    put_number(record, size, 8);
    put_number(record + 8, at_crc32c_masked(record, 8), 4);
    put_number(record + HEAD_SIZE + size, at_crc32c_masked(record + HEAD_SIZE, size), 4);
}

static at_err put_large(at_tfevents *file, const Tb__Event *event, size_t size, at_fail *fail)
{
    unsigned char *record = malloc(HEAD_SIZE + size + TAIL_SIZE);
    if (!record) return at_fail_memory_for(fail, "for %s", file->spool->path);
    tb__event__pack(event, record + HEAD_SIZE);
    frame(record, size);
    at_append_file_bytes(file->spool, record, HEAD_SIZE + size + TAIL_SIZE);
    free(record);
    return AT_OK;
}

at_err at_tfevents_put(at_tfevents *file, at_ns at, Tb__Event *event, at_fail *fail)
{
    assert(event->what_case != TB__EVENT__WHAT__NOT_SET);
    event->wall_time = file->date + at_seconds(at);
    size_t size = tb__event__get_packed_size(event), whole = HEAD_SIZE + size + TAIL_SIZE;
    if (whole > AT_APPEND_FILE_SIZE) return put_large(file, event, size, fail);
    unsigned char *record = (unsigned char *)at_append_file_room(file->spool, whole);
    tb__event__pack(event, record + HEAD_SIZE);
    frame(record, size);
    file->spool->used += whole;
    at_append_file_tick(file->spool, at, false);
    return AT_OK;
}

/* One that cannot be large. */
static void put_small(at_tfevents *file, at_ns at, Tb__Event *event)
{
    at_err err = at_tfevents_put(file, at, event, NULL);
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

/* A run that is resumed within the second of its start still gets a file of its own. */
static at_err open_spool(at_tfevents *file, const char *folder, at_fail *fail)
{
    char host[256] = "", name[320];
    if (gethostname(host, sizeof host - 1) || !*host) snprintf(host, sizeof host, "localhost");
    long long date = (long long)file->date;
    snprintf(name, sizeof name, "events.out.tfevents.%lld.%s", date, host);
    for (int i = 2; i < NAMES_MAX; i++) {
        AT_TRY(at_append_file_open(folder, name, false, &file->spool, fail));
        if (file->spool->fresh) return AT_OK;
        at_append_file_close(file->spool, NULL);
        file->spool = NULL;
        snprintf(name, sizeof name, "events.out.tfevents.%lld.%s.%d", date, host, i);
    }
    return at_fail_set(fail, AT_ERR_FAILED, NULL, "%s: has too many event files", folder);
}

at_err at_tfevents_open(const char *folder, double date, at_tfevents **file, at_fail *fail)
{
    assert(folder);
    *file = NULL;
    AT_TRY(at_file_make_folder(folder, fail));
    at_tfevents *self = calloc(1, sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for %s", folder);
    self->date = date;
    at_err err = open_spool(self, folder, fail);
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
    at_err err = at_append_file_close(file->spool, fail);
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
    return at_tfevents_put(file, at, &event, fail);
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
    double sum_squares; /* as if all values of a bucket were its middle */
} buckets;

/* A bucket from `low` to `high`. One without values before it shows where it begins. */
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
        uint32_t end = i < SINGLES ? i + 1 : i + TOGETHER;
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
