/* sniff.h - guesses from the first bytes what a file really is, for error messages about git-lfs
 * pointers, web pages, archives that are still packed and the like. */
#ifndef AT_DATA_FILES_SNIFF_H
#define AT_DATA_FILES_SNIFF_H

#include <stddef.h>

enum { AT_SNIFF_SIZE = 64 }; /* bytes needed to recognize a file */

typedef struct at_sniff_result {
    char        what[64]; /* "a web page": follows "looks like" */
    const char *hint;     /* what to do about it; never NULL */
} at_sniff_result;

/* Names the kind of file that begins with these bytes; leading blanks are skipped. */
at_sniff_result at_sniff(const unsigned char *bytes, size_t size);

#endif
