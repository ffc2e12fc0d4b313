/* sniff.h - what do these bytes look like? For messages about files that are not what they
 * should be: pointers of git-lfs, error pages of web servers, archives still packed. */
#ifndef AT_DATA_FILES_SNIFF_H
#define AT_DATA_FILES_SNIFF_H

#include <stddef.h>

enum { AT_SNIFF_SIZE = 64 }; /* so many first bytes are enough */

typedef struct at_sniffed {
    char        what[64]; /* "a web page": fits behind "it is" */
    const char *hint;     /* what to do about it; never NULL */
} at_sniffed;

/* Names the bytes with which a file begins; blanks before them do not matter. */
at_sniffed at_sniff(const unsigned char *bytes, size_t size);

#endif
