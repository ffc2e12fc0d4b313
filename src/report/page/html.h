/* html.h - writes a report as a single self-contained HTML file.
 *
 *     page.html with styles, scripts (page.h) and data in place of its {{marks}} ─► report.html
 *
 * The data are embedded as JSON without any '<', so that they cannot end their element, and the
 * page shows them only as text. A Content-Security-Policy in its head forbids it to load or send
 * anything.
 */
#ifndef AT_REPORT_PAGE_HTML_H
#define AT_REPORT_PAGE_HTML_H

#include <jansson.h>

#include "base/err.h"

/* Writes the page. `data` is {"runs": [{"label", "folder", "story", "result"}, ..]}, where `story`
 * is the result of at_run_summary_json, or null, and `result` is result.json, or null. AT_ERR_IO
 * when writing fails. */
at_err at_html_write(const char *path, const char *title, const json_t *data, at_fail *fail);

#endif
