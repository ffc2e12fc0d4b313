/* codec.h - how a record looks as bytes.
 *
 *     letter   what it is: capitals are events, small letters actions, '"' a sentence,
 *              '%' what a process has taken
 *     at       signed difference to the record before
 *     version  signed difference to the record before
 *     then the fields of its kind, most of them as the difference to what the same worker said last
 *
 * The records are the hub's: a MESSAGE carries a report and a SEND an order.
 */
#ifndef AT_RECORD_LOG_CODEC_H
#define AT_RECORD_LOG_CODEC_H

#include "record/log/wire.h"
#include "record/record.h"

enum { AT_CODEC_PIECES = 1 << 20 }; /* LIMIT: most gradients in one step */

/* What a worker's next numbers are compared with. */
typedef struct at_codec_hint {
    uint64_t incarnation, slot, sequence, round, version, samples;
    uint64_t order_round, order_version, samples_max;
} at_codec_hint;

/* The same about the run as a whole. */
typedef struct at_codec_base {
    uint64_t at, version;  /* of the record before */
    uint64_t now, now_gap; /* of the event before; how far its clock was ahead of `at` */
    uint64_t time_limit;
} at_codec_base;

/* A hint as it was before a record changed it. */
typedef struct at_codec_change {
    at_node       worker;
    at_codec_hint before;
} at_codec_change;

typedef struct at_codec {
    at_wire        wire;
    at_codec_base  base;
    at_codec_hint *hint; /* by node: AT_WORKERS_MAX + 1 of them */

    /* What the record that is read has changed, for a log that is still being written. */
    bool             follows;
    uint64_t         start; /* where the record begins */
    at_codec_base    base_before;
    at_codec_change *changes;
    size_t           change_count, changes_size;

    /* Where a record that was read lives until the next one. */
    at_event  event;
    at_action action;
    at_usage  usage;
    at_piece *pieces;
    size_t    pieces_size;
} at_codec;

/* A codec that writes to the spool, or one that reads from fd when spool is NULL; both stay the
 * caller's. NULL when there is no memory. */
at_codec *at_codec_new(at_append_file *spool, int fd);
void      at_codec_free(at_codec *codec); /* accepts NULL */

/* Writes one record. */
void at_codec_write(at_codec *codec, const at_record *record);

/* Reads one record; what it points to is valid until the next call. False when the wire is broken:
 * at the end, also one within a record, or at bytes that cannot be. */
bool at_codec_read(at_codec *codec, at_record *record);

/* Takes back the record that could not be read because the bytes ran out within it, so that it can
 * be read again when there are more. The codec MUST have been told before, by `follows`. */
void at_codec_undo(at_codec *codec);

#endif
