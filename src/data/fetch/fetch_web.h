/* fetch_web.h - a data set from its web mirrors, by curl; for fetch.c. */
#ifndef AT_DATA_FETCH_FETCH_WEB_H
#define AT_DATA_FETCH_FETCH_WEB_H

#include "data/fetch/fetch.h"

/* Tries the row's mirrors in turn. What has come stays in the part folder when the network fails or
 * we are stopped, and the next attempt goes on from there; wrong bytes do not stay. The failure is
 * that of the last mirror. */
at_err at_fetch_web(const at_catalog_row *row, const at_fetch_progress *progress, at_fail *fail);

#endif
