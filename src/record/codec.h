/* codec.h - how a record looks as bytes.
 *
 *     letter   what it is: capitals are events, small letters actions, '"' a sentence
 *     at       signed difference to the record before
 *     version  signed difference to the record before
 *     then the fields of its kind, most of them as the difference to what the same worker said last
 *
 * The records are the hub's: a MESSAGE carries a report and a SEND an order.
 */
#ifndef AT_RECORD_CODEC_H
#define AT_RECORD_CODEC_H

#include "record/record.h"
#include "record/wire.h"

enum { AT_CODEC_PIECES = 1 << 20 }; /* LIMIT: most gradients in one step */

/* What a worker's next numbers are compared with. */
typedef struct at_codec_hint {
    uint64_t incarnation, slot, sequence, round, version, samples;
    uint64_t order_round, order_version, samples_max;
} at_codec_hint;

typedef struct at_codec {
    at_wire        wire;
    uint64_t       at, version;  /* of the record before */
    uint64_t       now, now_gap; /* of the event before; how far its clock was ahead of `at` */
    uint64_t       time_limit;
    at_codec_hint *hint; /* by node: AT_WORKERS_MAX + 1 of them */

    /* Where a record that was read lives until the next one. */
    at_event  event;
    at_action action;
    at_piece *pieces;
    size_t    pieces_size;
} at_codec;

/* A codec that writes to the spool, or one that reads from fd when spool is NULL; both stay the
 * caller's. NULL when there is no memory. */
at_codec *at_codec_new(at_spool *spool, int fd);
void      at_codec_free(at_codec *codec); /* accepts NULL */

/* Writes one record. */
void at_codec_write(at_codec *codec, const at_record *record);

/* Reads one record; what it points to is valid until the next call. False when the wire is broken:
 * at the end, also one within a record, or at bytes that cannot be. */
bool at_codec_read(at_codec *codec, at_record *record);

#endif
