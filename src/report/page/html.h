/* html.h - a report as one HTML file that needs nothing but itself.
 *
 *     page.html with styles, scripts (page.h) and data put where its {{marks}} are ─► report.html
 *
 * The data stand in the page as JSON in which no '<' is left, so nothing in them can end the
 * element that holds them; the page only ever makes text of them. A policy in its head forbids it
 * to load or send anything.
 */
#ifndef AT_REPORT_PAGE_HTML_H
#define AT_REPORT_PAGE_HTML_H

#include <jansson.h>

#include "base/err.h"

/* Writes the page. `data` is {"runs": [{"label", "folder", "story", "result"}, ..]}, where
 * summary is what at_run_summary_json gives, or null, and result is result.json, or null.
 * AT_ERR_IO. */
at_err at_html_write(const char *path, const char *title, const json_t *data, at_fail *fail);

#endif
