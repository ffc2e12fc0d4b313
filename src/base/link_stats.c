#include "base/link_stats.h"

#include <stdbool.h>
#include <string.h>

static bool is_plain(char c)
{
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return letter || (c >= '0' && c <= '9') || strchr("-._:%[]", c);
}

void at_link_name_set(char name[AT_LINK_NAME_SIZE], const char *text)
{
    size_t size = strnlen(text, AT_LINK_NAME_SIZE - 1);
    for (size_t i = 0; i < size; i++) name[i] = is_plain(text[i]) ? text[i] : '?';
    name[size] = '\0';
}
