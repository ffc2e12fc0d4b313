/* parts.h - the optional libraries of this build, and what is lost without them. */
#ifndef AT_CLI_PARTS_H
#define AT_CLI_PARTS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct at_part {
    const char *name;
    bool        present;
    const char *loss;    /* what this build cannot do without it */
    const char *package; /* that brings it, on Debian */
} at_part;

extern const at_part at_parts[];
extern const size_t  at_parts_count;

/* "MPI, oneDNN": the names of those that are missing; empty if none is. */
void at_parts_missing(char *text, size_t size);

#endif
