/* thinner.h - keeps the files of a long run small: which records are written, and which only count.
 *
 *     every record ─► at_thinner_put ─┬─ half of the limit is free: written
 *                                     ├─ later: samples of complete steps, totals before each
 *                                     └─ the limit is reached: only what is rare
 *
 * A sample is a few complete steps in a row, from the event after an APPLY to an APPLY. The time
 * between samples grows with the age of the run and with their size, so that every doubling of the
 * age costs the same number of bytes. Evaluations and resource usage are thinned in the same way.
 * Joins, losses, checkpoints, texts and the end are always written.
 *
 * Before each sample and the end, and where the first records are missing, a TOTALS record has the
 * tally of the run as it is then. So whoever reads the files knows the exact totals, although it
 * has not seen every record.
 *
 * Nothing is remembered between the parts of a resumed run: the decisions depend on the size of the
 * files and on the time.
 */
#ifndef AT_RECORD_LOG_THINNER_H
#define AT_RECORD_LOG_THINNER_H

#include "record/record.h"
#include "record/tally.h"

typedef struct at_thinner at_thinner;

typedef struct at_thinner_options {
    const char     *folder; /* of the run; what its tables and logs have already counts */
    uint64_t        limit;  /* of all files together, bytes */
    const at_tally *tally;  /* of the same records, which it gets first; borrowed */
    bool            gap;    /* a part before this one lacks records at its end */
} at_thinner_options;

/* NULL when there is no memory. */
at_thinner *at_thinner_new(const at_thinner_options *options);
void        at_thinner_free(at_thinner *thinner); /* accepts NULL */

/* Takes the next record: with `kept`, it is to be written. */
typedef void at_thinner_out(void *self, const at_record *record, bool kept);

/* Passes the record on, and TOTALS before or after it if they are due. */
void at_thinner_put(at_thinner *thinner, const at_record *record, at_thinner_out *out, void *self);

/* A sentence when records begin to be left out, once; NULL: none. */
const char *at_thinner_note(at_thinner *thinner);

#endif
