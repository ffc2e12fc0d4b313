/* page.h - the scripts, styles and HTML files of the pages, embedded in the program by
 * cmake/page.cmake. */
#ifndef AT_REPORT_PAGE_PAGE_H
#define AT_REPORT_PAGE_PAGE_H

#include <stddef.h>

typedef struct at_page_file {
    const char *name; /* "charts.js" */
    const char *bytes;
    size_t      size; /* a zero byte follows */
} at_page_file;

extern const at_page_file at_page_files[];
extern const size_t       at_page_files_count;

#endif
