#include "world/mpi/param_sender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"

enum { LANE_PARAMS = 2, LANE_ORDER = 2, LANE_OTHER = 3 }; /* lanes 0 and 1 are of parameters */

_Static_assert(LANE_OTHER + 1 == AT_MPI_CHANNELS, "lanes have names");
_Static_assert(AT_HUB_MESSAGE_HEAD + AT_ORDER_MESSAGE <= AT_MPI_SMALL, "an order fits");

/* ---- memory -------------------------------------------------------------------------------- */

bool at_hub_message_size(size_t params, uint32_t workers, size_t *size)
{
    size_t vector;
    if (!at_size_product(params, sizeof(float), &vector) || vector > SIZE_MAX / 2) return false;
    *size = AT_HUB_MESSAGE_HEAD + vector + (size_t)workers * AT_ORDER_MESSAGE;
    *size = (*size + 63) / 64 * 64;
    return *size / AT_MESSAGE_UNIT <= INT32_MAX;
}

static size_t letter_size(const at_param_sender *sender)
{
    size_t size;
    bool   fits = at_hub_message_size(sender->params, sender->workers, &size);
    assert(fits); /* the first letter was made, too */
    return size;
}

at_err at_param_sender_open(at_param_sender *sender, size_t params, uint32_t workers, bool in_place,
                            at_fail *fail)
{
    size_t size;
    assert(params >= 1 && workers >= 1);
    *sender = (at_param_sender){.workers = workers, .params = params, .in_place = in_place};
    if (!at_hub_message_size(params, workers, &size))
        return at_fail_set(fail, AT_ERR_USAGE, "use a smaller model",
                           "%zu parameters do not fit into one message of MPI", params);
    sender->own.bytes = at_large_new(size);
    sender->address = calloc(workers, sizeof *sender->address);
    sender->letters = AT_MPI_LETTERS;
    sender->letter = calloc(AT_MPI_LETTERS + (size_t)workers * LANE_PARAMS, sizeof *sender->letter);
    if (!sender->own.bytes || !sender->address || !sender->letter) return at_fail_memory(fail);
    for (uint32_t i = 0; i < workers; i++) sender->address[i].version = AT_VERSION_NONE;
    return AT_OK;
}

void at_param_sender_close(at_param_sender *sender)
{
    free(sender->own.bytes);
    for (uint32_t i = 0; i < sender->letters; i++) free(sender->letter[i].bytes);
    free(sender->letter);
    free(sender->address);
    *sender = (at_param_sender){0};
}

float *at_param_sender_params(at_param_sender *sender)
{
    return (float *)(void *)(sender->own.bytes + AT_HUB_MESSAGE_HEAD);
}

void at_param_sender_connect(at_param_sender *sender, at_mpi_calls *calls, uint32_t first_call)
{
    sender->calls = calls;
    sender->first_call = first_call;
}

static at_mpi_address *address_of(const at_param_sender *sender, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= sender->workers);
    return &sender->address[worker - 1];
}

static uint32_t call_of(const at_param_sender *sender, at_node worker, int lane)
{
    return sender->first_call + (worker - 1) * AT_MPI_CHANNELS + (uint32_t)lane;
}

static bool is_free(const at_param_sender *sender, at_node worker, int lane)
{
    return !at_mpi_is_open(sender->calls, call_of(sender, worker, lane));
}

/* ---- letters ------------------------------------------------------------------------------- */

static void head_letter(at_mpi_letter *letter, uint64_t version)
{
    letter->version = version;
    letter->orders = 0;
    at_hub_message_write(letter->bytes,
                         &(at_hub_message){.kind = AT_HUB_MESSAGE_WORK, .version = version});
}

static bool make_letter(const at_param_sender *sender, at_mpi_letter *letter)
{
    if (!letter->bytes) letter->bytes = at_large_new(letter_size(sender));
    if (!letter->bytes) return false;
    memcpy(letter->bytes + AT_HUB_MESSAGE_HEAD, sender->own.bytes + AT_HUB_MESSAGE_HEAD,
           sender->params * sizeof(float));
    head_letter(letter, sender->version);
    return true;
}

/* A letter with the newest parameters; NULL when all are under way with older ones. */
static at_mpi_letter *newest_letter(at_param_sender *sender)
{
    at_mpi_letter *spare = NULL;
    if (sender->in_place) return &sender->own;
    for (uint32_t i = 0; i < sender->letters; i++) {
        at_mpi_letter *letter = &sender->letter[i];
        if (letter->bytes && letter->version == sender->version) return letter;
        if (letter->users == 0 && (!spare || (letter->bytes && !spare->bytes))) spare = letter;
    }
    return spare && make_letter(sender, spare) ? spare : NULL;
}

static bool add_order(const at_param_sender *sender, at_mpi_letter *letter, at_node worker,
                      const at_order *order)
{
    if (letter->orders == sender->workers) return false;
    size_t at = AT_HUB_MESSAGE_HEAD + sender->params * sizeof(float);
    at_order_message_write(letter->bytes + at + (size_t)letter->orders * AT_ORDER_MESSAGE,
                           &(at_order_message){.worker = worker, .order = *order});
    letter->orders++;
    return true;
}

/* ---- sending ------------------------------------------------------------------------------- */

static void send(at_param_sender *sender, at_node worker, int lane, const void *bytes, size_t size)
{
    assert(size % AT_MESSAGE_UNIT == 0);
    at_mpi_send(sender->calls, call_of(sender, worker, lane), bytes, size / AT_MESSAGE_UNIT, worker,
                AT_MPI_TAG_MAIL);
    address_of(sender, worker)->mailed_at = at_clock_now();
}

static void send_params(at_param_sender *sender, at_node worker)
{
    at_mpi_address *address = address_of(sender, worker);
    int             lane = 0;
    while (lane < LANE_PARAMS && !is_free(sender, worker, lane)) lane++;
    if (lane == LANE_PARAMS) return;
    at_mpi_letter *letter = newest_letter(sender);
    if (!letter) return;
    bool rides = address->ordered && !address->order.leave;
    if (rides && add_order(sender, letter, worker, &address->order)) address->ordered = false;
    letter->users++;
    address->lane[lane].letter = letter;
    address->version = letter->version;
    address->wants = false;
    send(sender, worker, lane, letter->bytes,
         AT_HUB_MESSAGE_HEAD + sender->params * sizeof(float) + letter->orders * AT_ORDER_MESSAGE);
}

static void send_order(at_param_sender *sender, at_node worker)
{
    at_mpi_address *address = address_of(sender, worker);
    unsigned char  *small = address->lane[LANE_ORDER].small;
    if (!is_free(sender, worker, LANE_ORDER)) return;
    at_hub_message_write(
        small, &(at_hub_message){.kind = AT_HUB_MESSAGE_WORK, .version = AT_VERSION_NONE});
    at_order_message_write(small + AT_HUB_MESSAGE_HEAD,
                           &(at_order_message){.worker = worker, .order = address->order});
    address->ordered = false;
    send(sender, worker, LANE_ORDER, small, AT_HUB_MESSAGE_HEAD + AT_ORDER_MESSAGE);
}

/* Does the worker lack the parameters of that version? */
static bool lacks(const at_mpi_address *address, uint64_t version)
{
    return address->version == AT_VERSION_NONE || address->version < version;
}

static void serve(at_param_sender *sender, at_node worker)
{
    at_mpi_address *address = address_of(sender, worker);
    bool            starts = address->ordered && !address->order.leave;
    bool            needs = starts && lacks(address, address->order.version);
    if (needs || (address->wants && lacks(address, sender->version))) send_params(sender, worker);
    if (address->ordered && (address->order.leave || !lacks(address, address->order.version)))
        send_order(sender, worker);
}

void at_param_sender_serve(at_param_sender *sender)
{
    for (uint32_t i = 1; i <= sender->workers; i++) {
        const at_mpi_address *address = address_of(sender, i);
        if (!address->closed && (address->ordered || address->wants)) serve(sender, i);
    }
}

void at_param_sender_order(at_param_sender *sender, at_node worker, const at_order *order)
{
    at_mpi_address *address = address_of(sender, worker);
    if (address->ordered && address->order.leave) return; /* nothing replaces that */
    address->order = *order;
    address->ordered = true;
}

void at_param_sender_want(at_param_sender *sender, at_node worker)
{
    address_of(sender, worker)->wants = true;
}

bool at_param_sender_mail(at_param_sender *sender, at_node worker, const at_hub_message *mail,
                          const char *text)
{
    unsigned char *small = address_of(sender, worker)->lane[LANE_OTHER].small;
    if (!is_free(sender, worker, LANE_OTHER)) return false;
    memset(small, 0, AT_MPI_SMALL);
    at_hub_message_write(small, mail);
    if (text) strncpy((char *)small + AT_HUB_MESSAGE_HEAD, text, AT_HOST_NAME_SIZE - 1);
    send(sender, worker, LANE_OTHER, small, text ? AT_MPI_SMALL : AT_HUB_MESSAGE_HEAD);
    return true;
}

/* ---- what was taken ------------------------------------------------------------------------ */

void at_param_sender_done(at_param_sender *sender, uint32_t call)
{
    assert(call >= sender->first_call);
    uint32_t        index = call - sender->first_call;
    at_mpi_channel *lane = &sender->address[index / AT_MPI_CHANNELS].lane[index % AT_MPI_CHANNELS];
    if (!lane->letter) return;
    assert(lane->letter->users >= 1);
    lane->letter->users--;
    lane->letter = NULL;
}

bool at_param_sender_idle(const at_param_sender *sender, at_node worker)
{
    for (int lane = 0; lane < AT_MPI_CHANNELS; lane++)
        if (!is_free(sender, worker, lane)) return false;
    return true;
}

void at_param_sender_publish(at_param_sender *sender, uint64_t version)
{
    assert(version >= sender->version);
    sender->version = version;
    head_letter(&sender->own, version);
}

bool at_param_sender_reads(const at_param_sender *sender)
{
    return sender->own.users > 0;
}

/* Whoever could still read a letter that its worker did not take is that worker, which is gone or
 * will be told to leave. The hub's own vector therefore goes on being used; a copy never is again,
 * and another one may take its place. */
void at_param_sender_lose(at_param_sender *sender, at_node worker)
{
    at_mpi_address *address = address_of(sender, worker);
    address->closed = true;
    address->ordered = address->wants = false;
    for (int lane = 0; lane < LANE_PARAMS; lane++) {
        at_mpi_letter *letter = address->lane[lane].letter;
        if (!letter) continue;
        address->lane[lane].letter = NULL;
        if (letter == &sender->own)
            letter->users--;
        else
            sender->letters++;
    }
}
