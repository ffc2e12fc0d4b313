#include "world/mpi_mail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"

enum { LANE_PARAMS = 2, LANE_ORDER = 2, LANE_OTHER = 3 }; /* lanes 0 and 1 are of parameters */

_Static_assert(LANE_OTHER + 1 == AT_MPI_LANES, "lanes have names");
_Static_assert(AT_MPI_MAIL_HEAD + AT_MPI_ORDER <= AT_MPI_SMALL, "an order fits");

/* ---- memory -------------------------------------------------------------------------------- */

bool at_mpi_mail_size(size_t params, uint32_t workers, size_t *size)
{
    size_t vector;
    if (!at_size_product(params, sizeof(float), &vector) || vector > SIZE_MAX / 2) return false;
    *size = AT_MPI_MAIL_HEAD + vector + (size_t)workers * AT_MPI_ORDER;
    *size = (*size + 63) / 64 * 64;
    return *size / AT_MPI_UNIT <= INT32_MAX;
}

static size_t letter_size(const at_mpi_office *office)
{
    size_t size;
    bool   fits = at_mpi_mail_size(office->params, office->workers, &size);
    assert(fits); /* the first letter was made, too */
    return size;
}

at_err at_mpi_office_open(at_mpi_office *office, size_t params, uint32_t workers, bool in_place,
                          at_fail *fail)
{
    size_t size;
    assert(params >= 1 && workers >= 1);
    *office = (at_mpi_office){.workers = workers, .params = params, .in_place = in_place};
    if (!at_mpi_mail_size(params, workers, &size))
        return at_fail_set(fail, AT_ERR_USAGE, "use a smaller model",
                           "%zu parameters do not fit into one message of MPI", params);
    office->own.bytes = at_large_new(size);
    office->address = calloc(workers, sizeof *office->address);
    office->letters = AT_MPI_LETTERS;
    office->letter = calloc(AT_MPI_LETTERS + (size_t)workers * LANE_PARAMS, sizeof *office->letter);
    if (!office->own.bytes || !office->address || !office->letter)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "not enough memory");
    for (uint32_t i = 0; i < workers; i++) office->address[i].version = AT_VERSION_NONE;
    return AT_OK;
}

void at_mpi_office_close(at_mpi_office *office)
{
    free(office->own.bytes);
    for (uint32_t i = 0; i < office->letters; i++) free(office->letter[i].bytes);
    free(office->letter);
    free(office->address);
    *office = (at_mpi_office){0};
}

float *at_mpi_office_params(at_mpi_office *office)
{
    return (float *)(void *)(office->own.bytes + AT_MPI_MAIL_HEAD);
}

void at_mpi_office_connect(at_mpi_office *office, at_mpi_calls *calls, uint32_t first_call)
{
    office->calls = calls;
    office->first_call = first_call;
}

static at_mpi_address *address_of(const at_mpi_office *office, at_node worker)
{
    assert(worker >= 1);
    assert(worker <= office->workers);
    return &office->address[worker - 1];
}

static uint32_t call_of(const at_mpi_office *office, at_node worker, int lane)
{
    return office->first_call + (worker - 1) * AT_MPI_LANES + (uint32_t)lane;
}

static bool is_free(const at_mpi_office *office, at_node worker, int lane)
{
    return !at_mpi_is_open(office->calls, call_of(office, worker, lane));
}

/* ---- letters ------------------------------------------------------------------------------- */

static void head_letter(at_mpi_letter *letter, uint64_t version)
{
    letter->version = version;
    letter->orders = 0;
    at_mpi_put_mail(letter->bytes, &(at_mpi_mail){.kind = AT_MPI_MAIL_WORK, .version = version});
}

static bool make_letter(const at_mpi_office *office, at_mpi_letter *letter)
{
    if (!letter->bytes) letter->bytes = at_large_new(letter_size(office));
    if (!letter->bytes) return false;
    memcpy(letter->bytes + AT_MPI_MAIL_HEAD, office->own.bytes + AT_MPI_MAIL_HEAD,
           office->params * sizeof(float));
    head_letter(letter, office->version);
    return true;
}

/* A letter with the newest parameters; NULL when all are under way with older ones. */
static at_mpi_letter *newest_letter(at_mpi_office *office)
{
    at_mpi_letter *spare = NULL;
    if (office->in_place) return &office->own;
    for (uint32_t i = 0; i < office->letters; i++) {
        at_mpi_letter *letter = &office->letter[i];
        if (letter->bytes && letter->version == office->version) return letter;
        if (letter->users == 0 && (!spare || (letter->bytes && !spare->bytes))) spare = letter;
    }
    return spare && make_letter(office, spare) ? spare : NULL;
}

static bool add_order(const at_mpi_office *office, at_mpi_letter *letter, at_node worker,
                      const at_order *order)
{
    if (letter->orders == office->workers) return false;
    size_t at = AT_MPI_MAIL_HEAD + office->params * sizeof(float);
    at_mpi_put_order(letter->bytes + at + (size_t)letter->orders * AT_MPI_ORDER,
                     &(at_mpi_order){.worker = worker, .order = *order});
    letter->orders++;
    return true;
}

/* ---- sending ------------------------------------------------------------------------------- */

static void send(at_mpi_office *office, at_node worker, int lane, const void *bytes, size_t size)
{
    assert(size % AT_MPI_UNIT == 0);
    at_mpi_send(office->calls, call_of(office, worker, lane), bytes, size / AT_MPI_UNIT, worker,
                AT_MPI_TAG_MAIL);
    address_of(office, worker)->mailed_at = at_clock_now();
}

static void send_params(at_mpi_office *office, at_node worker)
{
    at_mpi_address *address = address_of(office, worker);
    int             lane = 0;
    while (lane < LANE_PARAMS && !is_free(office, worker, lane)) lane++;
    if (lane == LANE_PARAMS) return;
    at_mpi_letter *letter = newest_letter(office);
    if (!letter) return;
    bool rides = address->ordered && !address->order.leave;
    if (rides && add_order(office, letter, worker, &address->order)) address->ordered = false;
    letter->users++;
    address->lane[lane].letter = letter;
    address->version = letter->version;
    address->wants = false;
    send(office, worker, lane, letter->bytes,
         AT_MPI_MAIL_HEAD + office->params * sizeof(float) + letter->orders * AT_MPI_ORDER);
}

static void send_order(at_mpi_office *office, at_node worker)
{
    at_mpi_address *address = address_of(office, worker);
    unsigned char  *small = address->lane[LANE_ORDER].small;
    if (!is_free(office, worker, LANE_ORDER)) return;
    at_mpi_put_mail(small, &(at_mpi_mail){.kind = AT_MPI_MAIL_WORK, .version = AT_VERSION_NONE});
    at_mpi_put_order(small + AT_MPI_MAIL_HEAD,
                     &(at_mpi_order){.worker = worker, .order = address->order});
    address->ordered = false;
    send(office, worker, LANE_ORDER, small, AT_MPI_MAIL_HEAD + AT_MPI_ORDER);
}

/* Does the worker lack the parameters of that version? */
static bool lacks(const at_mpi_address *address, uint64_t version)
{
    return address->version == AT_VERSION_NONE || address->version < version;
}

static void serve(at_mpi_office *office, at_node worker)
{
    at_mpi_address *address = address_of(office, worker);
    bool            starts = address->ordered && !address->order.leave;
    bool            needs = starts && lacks(address, address->order.version);
    if (needs || (address->wants && lacks(address, office->version))) send_params(office, worker);
    if (address->ordered && (address->order.leave || !lacks(address, address->order.version)))
        send_order(office, worker);
}

void at_mpi_office_serve(at_mpi_office *office)
{
    for (uint32_t i = 1; i <= office->workers; i++) {
        const at_mpi_address *address = address_of(office, i);
        if (!address->closed && (address->ordered || address->wants)) serve(office, i);
    }
}

void at_mpi_office_order(at_mpi_office *office, at_node worker, const at_order *order)
{
    at_mpi_address *address = address_of(office, worker);
    if (address->ordered && address->order.leave) return; /* nothing replaces that */
    address->order = *order;
    address->ordered = true;
}

void at_mpi_office_want(at_mpi_office *office, at_node worker)
{
    address_of(office, worker)->wants = true;
}

bool at_mpi_office_mail(at_mpi_office *office, at_node worker, const at_mpi_mail *mail,
                        const char *text)
{
    unsigned char *small = address_of(office, worker)->lane[LANE_OTHER].small;
    if (!is_free(office, worker, LANE_OTHER)) return false;
    memset(small, 0, AT_MPI_SMALL);
    at_mpi_put_mail(small, mail);
    if (text) strncpy((char *)small + AT_MPI_MAIL_HEAD, text, AT_MPI_HOST - 1);
    send(office, worker, LANE_OTHER, small, text ? AT_MPI_SMALL : AT_MPI_MAIL_HEAD);
    return true;
}

/* ---- what was taken ------------------------------------------------------------------------ */

void at_mpi_office_done(at_mpi_office *office, uint32_t call)
{
    assert(call >= office->first_call);
    uint32_t     index = call - office->first_call;
    at_mpi_lane *lane = &office->address[index / AT_MPI_LANES].lane[index % AT_MPI_LANES];
    if (!lane->letter) return;
    assert(lane->letter->users >= 1);
    lane->letter->users--;
    lane->letter = NULL;
}

bool at_mpi_office_idle(const at_mpi_office *office, at_node worker)
{
    for (int lane = 0; lane < AT_MPI_LANES; lane++)
        if (!is_free(office, worker, lane)) return false;
    return true;
}

void at_mpi_office_publish(at_mpi_office *office, uint64_t version)
{
    assert(version >= office->version);
    office->version = version;
    head_letter(&office->own, version);
}

bool at_mpi_office_reads(const at_mpi_office *office)
{
    return office->own.users > 0;
}

/* Whoever could still read a letter that its worker did not take is that worker, which is gone or
 * will be told to leave. The hub's own vector therefore goes on being used; a copy never is again,
 * and another one may take its place. */
void at_mpi_office_lose(at_mpi_office *office, at_node worker)
{
    at_mpi_address *address = address_of(office, worker);
    address->closed = true;
    address->ordered = address->wants = false;
    for (int lane = 0; lane < LANE_PARAMS; lane++) {
        at_mpi_letter *letter = address->lane[lane].letter;
        if (!letter) continue;
        address->lane[lane].letter = NULL;
        if (letter == &office->own)
            letter->users--;
        else
            office->letters++;
    }
}
