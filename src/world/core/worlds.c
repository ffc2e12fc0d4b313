#include <assert.h>
#include <string.h>

#include "base/text.h"
#include "world/core/world.h"

const at_world *const at_worlds[] = {&at_world_local, &at_world_sim, &at_world_mpi, &at_world_solo,
                                     &at_world_seat,  &at_world_net, NULL};

at_err at_world_find(const char *name, bool without_hub, const at_world **world, at_fail *fail)
{
    const char *names[8];
    size_t      count = 0;
    bool        known = false;
    for (const at_world *const *w = at_worlds; *w; w++) {
        assert(count < sizeof names / sizeof *names);
        known = known || strcmp((*w)->name, name) == 0;
        if (strcmp((*w)->name, name) == 0 && (*w)->has_hub != without_hub) {
            *world = *w;
            return AT_OK;
        }
        if ((*w)->has_hub) names[count++] = (*w)->name;
    }
    if (known)
        return at_fail_set(fail, AT_ERR_USAGE, "use --workers 1 or more",
                           "--workers 0 does not work with --world %s", name);
    return at_text_unknown("world", name, names, count, fail);
}
