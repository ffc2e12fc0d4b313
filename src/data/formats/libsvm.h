/* libsvm.h - the text format of LIBSVM, liblinear and SVMlight.
 *
 *     LABEL INDEX:VALUE INDEX:VALUE ...     one row a line, indices rising
 *     +1 qid:7 3:0.5 11:1e-3  # a remark    what also occurs
 *
 * Blank lines, blanks at the end and remarks are skipped, qid is read and not used. Indices begin
 * with 1, or with 0 where an index 0 occurs.
 */
#ifndef AT_DATA_FORMATS_LIBSVM_H
#define AT_DATA_FORMATS_LIBSVM_H

#include "data/files/lines.h"

extern const at_lines_parser at_libsvm_parser;

/* Whether a text begins with a row of this format; only the first line is looked at, and of it no
 * more than the first number. */
bool at_libsvm_begins(const char *text);

#endif
