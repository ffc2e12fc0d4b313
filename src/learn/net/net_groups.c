/* Lines about parameter groups: `group biases lr=2 decay=0`. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "learn/net/net_words.h"
#include "learn/optim/schedule.h"

static bool is_role(const char *group)
{
    return !strcmp(group, "weights") || !strcmp(group, "biases") || !strcmp(group, "norms");
}

bool at_net_group_known(const at_net *net, const char *name)
{
    const at_groups *groups = &net->groups;
    if (is_role(name)) return true;
    for (uint32_t i = 0; i < groups->count; i++)
        if (!strcmp(groups->group[i].name, name)) return true;
    return false;
}

/* Schedules may need an end of the run; it is known when the run starts. */
static at_err read_schedule(at_group *group, const at_net_line *line, const char *text,
                            at_fail *fail)
{
    at_schedule schedule;
    at_fail     why = {0};
    if (strlen(text) >= sizeof group->schedule)
        return at_net_line_fail(line, fail, NULL, "a schedule has less than %zu characters",
                                sizeof group->schedule);
    if (at_schedule_parse(text, 1, 1, 1, &schedule, &why))
        return at_net_line_fail(line, fail, why.hint, "%s", why.text);
    snprintf(group->schedule, sizeof group->schedule, "%s", text);
    return AT_OK;
}

static at_err read_setting(at_group *group, const at_net_line *line, const at_net_option *option,
                           at_fail *fail)
{
    static const char *const names[] = {"lr", "decay", "momentum", "schedule"};
    bool                     good;
    if (!strcmp(option->name, "schedule")) return read_schedule(group, line, option->value, fail);
    if (!strcmp(option->name, "lr")) {
        good = at_net_real(option->value, 0, 1e6, &group->lr);
    } else if (!strcmp(option->name, "decay")) {
        good = at_net_real(option->value, 0, 1e6, &group->decay);
    } else if (!strcmp(option->name, "momentum")) {
        good = at_net_real(option->value, 0, 0.999999, &group->momentum);
    } else {
        return at_net_line_unknown(line, "setting of a group", option->name, names, 4, fail);
    }
    if (good) return AT_OK;
    return at_net_line_fail(line, fail, "lr and decay are factors, momentum is below 1",
                            "%s cannot be %s", option->name, option->value);
}

at_err at_net_group_read(at_net *net, const at_net_line *line, at_fail *fail)
{
    at_groups *groups = &net->groups;
    if (line->words != 2 || !line->options || strlen(line->word[1]) >= sizeof groups->group[0].name)
        return at_net_line_fail(line, fail, "group biases lr=2 decay=0",
                                "a group has a name of up to 23 characters, and settings");
    int index = at_groups_take(groups, line->word[1]);
    if (index < 0) return at_net_line_fail(line, fail, NULL, "more than %d groups", AT_GROUPS_MAX);
    for (uint32_t i = 0; i < line->options; i++)
        AT_TRY(read_setting(&groups->group[index], line, &line->option[i], fail));
    return AT_OK;
}

/* A group that no layer is in is a slip of the pen. */
at_err at_net_groups_check(const at_net *net, at_fail *fail)
{
    for (uint32_t g = 0; g < net->groups.count; g++) {
        const char *name = net->groups.group[g].name;
        bool        used = is_role(name);
        for (size_t i = 0; i < net->count && !used; i++)
            used = net->layer[i].spec.group && !strcmp(net->layer[i].spec.group, name);
        if (!used)
            return at_fail_set(fail, AT_ERR_USAGE,
                               "weights, biases and norms are groups; others are named by layers "
                               "with group=NAME",
                               "no layer is in the group \"%s\"", name);
    }
    return AT_OK;
}
