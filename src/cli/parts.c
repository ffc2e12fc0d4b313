#include "cli/parts.h"

#include <assert.h>

#include "base/text.h"

/* cmake/layers.cmake defines whether each was there. */
const at_part at_parts[] = {
    {"MPI", ANYTIME_HAS_mpi, "no ranks of mpirun or srun", "libopenmpi-dev"},
    {"oneDNN", ANYTIME_HAS_dnnl, "convolutions use plain loops, many times slower", "libdnnl-dev"},
    {"microhttpd", ANYTIME_HAS_microhttpd, "no live dashboard (--watch, anytime watch)",
     "libmicrohttpd-dev"},
};
const size_t at_parts_count = sizeof at_parts / sizeof *at_parts;

void at_parts_missing(char *text, size_t size)
{
    at_text     names = at_text_in(text, size);
    const char *join = "";
    assert(size >= 1);
    text[0] = '\0';
    for (size_t i = 0; i < at_parts_count; i++) {
        if (at_parts[i].present) continue;
        at_text_add(&names, "%s%s", join, at_parts[i].name);
        join = ", ";
    }
}
