#include "world/mpi/param_sender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"

/* Channels 0 and 1 are for parameters. */
enum { CHANNEL_PARAMS = 2, CHANNEL_ORDER = 2, CHANNEL_OTHER = 3 };

_Static_assert(CHANNEL_OTHER + 1 == AT_MPI_CHANNELS, "every channel has a use");
_Static_assert(AT_HUB_MESSAGE_HEAD + AT_ORDER_MESSAGE <= AT_MPI_SMALL, "an order fits");

/* ---- memory -------------------------------------------------------------------------------- */

bool at_hub_message_size(size_t vector, uint32_t workers, size_t *size)
{
    assert(size);
    if (vector > SIZE_MAX / 2) return false;
    *size = AT_HUB_MESSAGE_HEAD + vector + (size_t)workers * AT_ORDER_MESSAGE;
    *size = (*size + 63) / 64 * 64;
    return *size / AT_MESSAGE_UNIT <= INT32_MAX;
}

static bool is_packed(const at_param_sender *sender)
{
    return sender->packing.kind != AT_COMPRESS_NONE;
}

static size_t buffer_size(const at_param_sender *sender)
{
    size_t size;
    bool   fits = at_hub_message_size(sender->packing.size, sender->workers, &size);
    assert(fits); /* checked by open */
    return size;
}

/* The hub's own vector is a message itself, unless those are compressed. */
static at_err reserve_own(at_param_sender *sender, at_fail *fail)
{
    size_t size, full, floats = sender->packing.floats;
    assert(floats >= 1);
    if (!at_size_product(floats, sizeof(float), &full) ||
        !at_hub_message_size(full, sender->workers, &size) ||
        !at_hub_message_size(sender->packing.size, sender->workers, &full))
        return at_fail_set(fail, AT_ERR_USAGE, "use a smaller model",
                           "%zu parameters do not fit into one MPI message", floats);
    sender->own.bytes = at_large_new(size);
    return sender->own.bytes ? AT_OK : at_fail_memory(fail);
}

at_err at_param_sender_open(at_param_sender *sender, const at_packing *packing, uint32_t workers,
                            bool in_place, at_fail *fail)
{
    assert(workers >= 1);
    *sender = (at_param_sender){.workers = workers, .packing = *packing};
    sender->in_place = in_place && !is_packed(sender);
    AT_TRY(reserve_own(sender, fail));
    sender->receiver = calloc(workers, sizeof *sender->receiver);
    sender->buffers = AT_PARAM_BUFFERS;
    sender->buffer =
        calloc(AT_PARAM_BUFFERS + (size_t)workers * CHANNEL_PARAMS, sizeof *sender->buffer);
    if (!sender->receiver || !sender->buffer) return at_fail_memory(fail);
    sender->own.base = AT_VERSION_NONE;
    sender->own.vector = packing->size;
    for (uint32_t i = 0; i < workers; i++)
        sender->receiver[i].version = sender->receiver[i].has = AT_VERSION_NONE;
    return AT_OK;
}

at_err at_param_sender_track(at_param_sender *sender, uint64_t version, at_fail *fail)
{
    assert(!is_packed(sender));
    sender->in_place = false;
    return at_row_changes_open(&sender->changes, at_param_sender_params(sender),
                               sender->packing.floats, version, fail);
}

void at_param_sender_used(at_param_sender *sender, at_node worker, uint64_t version)
{
    at_param_receiver *receiver = &sender->receiver[worker - 1];
    assert(worker >= 1 && worker <= sender->workers);
    if (receiver->has == AT_VERSION_NONE || version > receiver->has) receiver->has = version;
}

void at_param_sender_close(at_param_sender *sender)
{
    free(sender->own.bytes);
    at_row_changes_close(&sender->changes);
    for (uint32_t i = 0; i < sender->buffers; i++) free(sender->buffer[i].bytes);
    free(sender->buffer);
    free(sender->receiver);
    *sender = (at_param_sender){0};
}

float *at_param_sender_params(at_param_sender *sender)
{
    assert(sender->own.bytes);
    return (float *)(void *)(sender->own.bytes + AT_HUB_MESSAGE_HEAD);
}

void at_param_sender_connect(at_param_sender *sender, at_mpi_calls *calls, uint32_t first_call)
{
    assert(calls);
    sender->calls = calls;
    sender->first_call = first_call;
}

static at_param_receiver *receiver_of(const at_param_sender *sender, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= sender->workers);
    return &sender->receiver[worker - 1];
}

static uint32_t call_of(const at_param_sender *sender, at_node worker, int channel)
{
    assert(channel >= 0 && channel < AT_MPI_CHANNELS);
    return sender->first_call + (worker - 1) * AT_MPI_CHANNELS + (uint32_t)channel;
}

static bool is_free(const at_param_sender *sender, at_node worker, int channel)
{
    assert(sender->calls);
    return !at_mpi_is_open(sender->calls, call_of(sender, worker, channel));
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void write_head(at_param_buffer *buffer, uint64_t version)
{
    assert(buffer->bytes);
    buffer->version = version;
    buffer->orders = 0;
    bool all = buffer->base == AT_VERSION_NONE;
    at_hub_message_write(buffer->bytes,
                         &(at_hub_message){.kind = AT_HUB_MESSAGE_WORK,
                                           .version = version,
                                           .base = buffer->base,
                                           .rows = all ? 0 : buffer->vector / sizeof(at_pair)});
}

/* What has changed since buffer->base, if that is known and less than everything. */
static bool fill_changes(const at_param_sender *sender, at_param_buffer *buffer)
{
    size_t   count, max = sender->packing.size / sizeof(at_pair);
    at_pair *pairs = (at_pair *)(void *)(buffer->bytes + AT_HUB_MESSAGE_HEAD);
    if (buffer->base == AT_VERSION_NONE) return false;
    if (!at_row_changes_since(&sender->changes, buffer->base, pairs, max, &count)) return false;
    buffer->vector = count * sizeof *pairs;
    return true;
}

static bool fill_buffer(const at_param_sender *sender, at_param_buffer *buffer, uint64_t base)
{
    assert(buffer->users == 0);
    if (!buffer->bytes) buffer->bytes = at_large_new(buffer_size(sender));
    if (!buffer->bytes) return false;
    const float *params = (const float *)(const void *)(sender->own.bytes + AT_HUB_MESSAGE_HEAD);
    buffer->base = base;
    if (!fill_changes(sender, buffer)) {
        buffer->base = AT_VERSION_NONE;
        buffer->vector = sender->packing.size;
        at_pack(&sender->packing, buffer->bytes + AT_HUB_MESSAGE_HEAD, params);
    }
    write_head(buffer, sender->version);
    return true;
}

/* A buffer with the newest parameters for a worker that has those of version `base`; NULL when all
 * are in use. */
static at_param_buffer *newest_buffer(at_param_sender *sender, uint64_t base)
{
    at_param_buffer *spare = NULL;
    assert(sender->own.bytes);
    if (sender->in_place) return &sender->own;
    for (uint32_t i = 0; i < sender->buffers; i++) {
        at_param_buffer *buffer = &sender->buffer[i];
        bool             serves = buffer->base == base || buffer->base == AT_VERSION_NONE;
        if (buffer->bytes && buffer->version == sender->version && serves) return buffer;
        if (buffer->users == 0 && (!spare || (buffer->bytes && !spare->bytes))) spare = buffer;
    }
    return spare && fill_buffer(sender, spare, base) ? spare : NULL;
}

static bool add_order(const at_param_sender *sender, at_param_buffer *buffer, at_node worker,
                      const at_order *order)
{
    assert(buffer->orders <= sender->workers);
    if (buffer->orders == sender->workers) return false;
    size_t at = AT_HUB_MESSAGE_HEAD + buffer->vector;
    at_order_message_write(buffer->bytes + at + (size_t)buffer->orders * AT_ORDER_MESSAGE,
                           &(at_order_message){.worker = worker, .order = *order});
    buffer->orders++;
    return true;
}

/* ---- sending ------------------------------------------------------------------------------- */

static void send(at_param_sender *sender, at_node worker, int channel, const void *bytes,
                 size_t size)
{
    assert(size % AT_MESSAGE_UNIT == 0);
    at_mpi_send(sender->calls, call_of(sender, worker, channel), bytes, size / AT_MESSAGE_UNIT,
                worker, AT_MPI_TAG_MAIL);
    receiver_of(sender, worker)->sent_at = at_clock_now();
}

static void send_params(at_param_sender *sender, at_node worker)
{
    at_param_receiver *receiver = receiver_of(sender, worker);
    int                channel = 0;
    assert(!receiver->closed);
    while (channel < CHANNEL_PARAMS && !is_free(sender, worker, channel)) channel++;
    if (channel == CHANNEL_PARAMS) return;
    uint64_t         base = sender->changes.previous ? receiver->has : AT_VERSION_NONE;
    at_param_buffer *buffer = newest_buffer(sender, base);
    if (!buffer) return;
    bool starts = receiver->ordered && !receiver->order.leave;
    if (starts && add_order(sender, buffer, worker, &receiver->order)) receiver->ordered = false;
    buffer->users++;
    receiver->channel[channel].buffer = buffer;
    receiver->version = buffer->version;
    receiver->wants = false;
    receiver->sent += buffer->vector;
    send(sender, worker, channel, buffer->bytes,
         AT_HUB_MESSAGE_HEAD + buffer->vector + buffer->orders * AT_ORDER_MESSAGE);
}

static void send_order(at_param_sender *sender, at_node worker)
{
    at_param_receiver *receiver = receiver_of(sender, worker);
    unsigned char     *small = receiver->channel[CHANNEL_ORDER].small;
    assert(receiver->ordered);
    if (!is_free(sender, worker, CHANNEL_ORDER)) return;
    at_hub_message_write(small, &(at_hub_message){.kind = AT_HUB_MESSAGE_WORK,
                                                  .version = AT_VERSION_NONE,
                                                  .base = AT_VERSION_NONE});
    at_order_message_write(small + AT_HUB_MESSAGE_HEAD,
                           &(at_order_message){.worker = worker, .order = receiver->order});
    receiver->ordered = false;
    send(sender, worker, CHANNEL_ORDER, small, AT_HUB_MESSAGE_HEAD + AT_ORDER_MESSAGE);
}

/* True when the worker does not have parameters of that version or newer. */
static bool lacks(const at_param_receiver *receiver, uint64_t version)
{
    assert(version != AT_VERSION_NONE);
    return receiver->version == AT_VERSION_NONE || receiver->version < version;
}

static void flush_worker(at_param_sender *sender, at_node worker)
{
    at_param_receiver *receiver = receiver_of(sender, worker);
    bool               starts = receiver->ordered && !receiver->order.leave;
    bool               needs = starts && lacks(receiver, receiver->order.version);
    assert(!receiver->closed);
    if (needs || (receiver->wants && lacks(receiver, sender->version))) send_params(sender, worker);
    if (receiver->ordered && (receiver->order.leave || !lacks(receiver, receiver->order.version)))
        send_order(sender, worker);
}

void at_param_sender_flush(at_param_sender *sender)
{
    assert(sender->calls);
    for (uint32_t i = 1; i <= sender->workers; i++) {
        const at_param_receiver *receiver = receiver_of(sender, i);
        if (!receiver->closed && (receiver->ordered || receiver->wants)) flush_worker(sender, i);
    }
}

void at_param_sender_order(at_param_sender *sender, at_node worker, const at_order *order)
{
    at_param_receiver *receiver = receiver_of(sender, worker);
    assert(order);
    if (receiver->ordered && receiver->order.leave) return; /* the last order stays */
    receiver->order = *order;
    receiver->ordered = true;
}

void at_param_sender_want(at_param_sender *sender, at_node worker)
{
    assert(worker >= 1);
    receiver_of(sender, worker)->wants = true;
}

void at_param_sender_assume(at_param_sender *sender, at_node worker, uint64_t version)
{
    assert(version != AT_VERSION_NONE);
    receiver_of(sender, worker)->version = version;
}

bool at_param_sender_message(at_param_sender *sender, at_node worker, const at_hub_message *message,
                             const char *text)
{
    unsigned char *small = receiver_of(sender, worker)->channel[CHANNEL_OTHER].small;
    assert(message);
    if (!is_free(sender, worker, CHANNEL_OTHER)) return false;
    memset(small, 0, AT_MPI_SMALL);
    at_hub_message_write(small, message);
    if (text) strncpy((char *)small + AT_HUB_MESSAGE_HEAD, text, AT_HOST_NAME_SIZE - 1);
    send(sender, worker, CHANNEL_OTHER, small, text ? AT_MPI_SMALL : AT_HUB_MESSAGE_HEAD);
    return true;
}

/* ---- completion ------------------------------------------------------------------------------ */

at_node at_param_sender_done(at_param_sender *sender, uint32_t call)
{
    assert(call >= sender->first_call);
    assert(call < sender->first_call + sender->workers * AT_MPI_CHANNELS);
    uint32_t        index = call - sender->first_call;
    at_mpi_channel *channel =
        &sender->receiver[index / AT_MPI_CHANNELS].channel[index % AT_MPI_CHANNELS];
    if (channel->buffer) {
        assert(channel->buffer->users >= 1);
        channel->buffer->users--;
        channel->buffer = NULL;
    }
    return index / AT_MPI_CHANNELS + 1;
}

uint64_t at_param_sender_count(at_param_sender *sender, at_node worker)
{
    at_param_receiver *receiver = receiver_of(sender, worker);
    uint64_t           sent = receiver->sent;
    receiver->sent = 0;
    return sent;
}

bool at_param_sender_idle(const at_param_sender *sender, at_node worker)
{
    for (int channel = 0; channel < AT_MPI_CHANNELS; channel++)
        if (!is_free(sender, worker, channel)) return false;
    return true;
}

void at_param_sender_publish(at_param_sender *sender, uint64_t version)
{
    assert(version >= sender->version);
    sender->version = version;
    if (sender->changes.previous)
        at_row_changes_publish(&sender->changes, at_param_sender_params(sender), version);
    write_head(&sender->own, version);
}

bool at_param_sender_is_reading(const at_param_sender *sender)
{
    assert(sender->own.bytes);
    return sender->own.users > 0;
}

/* Only the lost worker could still receive what was sent to it, and it is gone or will be ordered
 * to leave. The hub's own vector therefore stays in use; a copy is never used again, and another
 * one may be allocated in its place. */
void at_param_sender_lose(at_param_sender *sender, at_node worker)
{
    at_param_receiver *receiver = receiver_of(sender, worker);
    assert(!receiver->closed);
    receiver->closed = true;
    receiver->ordered = receiver->wants = false;
    for (int channel = 0; channel < CHANNEL_PARAMS; channel++) {
        at_param_buffer *buffer = receiver->channel[channel].buffer;
        if (!buffer) continue;
        receiver->channel[channel].buffer = NULL;
        if (buffer == &sender->own)
            buffer->users--;
        else
            sender->buffers++;
    }
}
