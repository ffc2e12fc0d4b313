#include "world/process/alive.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIELD_BORN = 22, FIELD_STATE = 3 };

static bool read_stat(int64_t pid, char *text, size_t size)
{
    char path[64];
    assert(text && size > 1);
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got <= 0) return false;
    text[got] = '\0';
    return true;
}

uint64_t at_alive_born(int64_t pid)
{
    char text[1024];
    assert(pid > 0);
    if (!read_stat(pid, text, sizeof text)) return 0;
    char *at = strrchr(text, ')'); /* the program's name may contain spaces and parentheses */
    if (!at || !at[1]) return 0;
    char state = at[2];
    if (state == 'Z' || state == 'X') return 0;
    for (int field = FIELD_STATE - 1; at && field < FIELD_BORN; field++) at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

bool at_alive(int64_t pid, uint64_t born)
{
    return pid > 0 && born > 0 && at_alive_born(pid) == born;
}
