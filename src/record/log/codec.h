/* codec.h - the binary encoding of a record.
 *
 *     letter   the kind of record: capitals are events, small letters actions, '"' a text,
 *              '%' resource usage, '@' a connection, '=' totals
 *     at       signed difference to the previous record
 *     version  signed difference to the previous record
 *     then the fields of this kind, most of them as differences to the last values of that worker
 *
 * Records are encoded from the hub's view: a MESSAGE carries a report and a SEND an order.
 */
#ifndef AT_RECORD_LOG_CODEC_H
#define AT_RECORD_LOG_CODEC_H

#include "record/log/wire.h"
#include "record/record.h"

/* The last values of a worker, to which its next ones are encoded as differences. */
typedef struct at_codec_last {
    uint64_t incarnation, slot, sequence, round, version, samples;
    uint64_t order_round, order_version, samples_max;
} at_codec_last;

/* The same for values of the run as a whole. */
typedef struct at_codec_base {
    uint64_t at, version;  /* of the previous record */
    uint64_t now, now_gap; /* of the previous event; how far its clock was ahead of `at` */
    uint64_t time_limit;
} at_codec_base;

typedef struct at_codec {
    at_wire        wire;
    at_codec_base  base;
    at_codec_last *last; /* by node; grows with the largest one seen */
    size_t         last_count;

    /* Storage of the record that was read, until the next one. */
    at_event      event;
    at_action     action;
    at_usage      usage;
    at_link_stats link;
    at_piece     *pieces;
    size_t        pieces_size;
    char         *totals; /* of any size */
    size_t        totals_size;
} at_codec;

/* A codec that writes or reads; NULL when there is no memory. */
at_codec *at_codec_new(bool writes);
void      at_codec_free(at_codec *codec); /* accepts NULL */

/* Encodes one record into codec->wire: `next` bytes of `bytes`, until the next call. False when
 * there is no memory. Each record is encoded relative to the ones before. */
bool at_codec_write(at_codec *codec, const at_record *record);

/* Decodes one record; what it points to is valid until the next call. False for malformed bytes:
 * see codec->wire.bad. */
bool at_codec_read(at_codec *codec, const unsigned char *bytes, size_t size, at_record *record);

#endif
