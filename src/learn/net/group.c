#include "learn/net/group.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

int at_groups_take(at_groups *groups, const char *name)
{
    assert(strlen(name) < sizeof groups->group[0].name);
    for (uint32_t i = 0; i < groups->count; i++)
        if (!strcmp(groups->group[i].name, name)) return (int)i;
    if (groups->count == AT_GROUPS_MAX) return -1;
    at_group *group = &groups->group[groups->count];
    *group = (at_group){.lr = 1, .decay = 1};
    snprintf(group->name, sizeof group->name, "%s", name);
    return (int)groups->count++;
}
