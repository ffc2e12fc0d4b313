/* comma_locale.h - a locale with a decimal comma, for tests that numbers do not depend on it.
 *
 * One of the machine's own, or one that localedef builds in a temporary folder.
 */
#ifndef AT_TESTS_UNIT_BASE_COMMA_LOCALE_H
#define AT_TESTS_UNIT_BASE_COMMA_LOCALE_H

#include <locale.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static inline bool comma_locale_is_set(const char *name)
{
    return setlocale(LC_NUMERIC, name) && strcmp(localeconv()->decimal_point, ",") == 0;
}

/* Builds it in the current folder; localedef warns about the categories that are left out. */
static inline void comma_locale_build(void)
{
    char *const build[] = {"localedef", "--quiet", "-c", "-i", "comma.source", "./comma", NULL};
    FILE       *source = fopen("comma.source", "w");
    pid_t       pid;
    int         status;
    if (!source) return;
    fputs("LC_NUMERIC\ndecimal_point \"<U002C>\"\nthousands_sep \"\"\ngrouping -1\n"
          "END LC_NUMERIC\n",
          source);
    fclose(source);
    if (posix_spawnp(&pid, build[0], NULL, NULL, build, environ) == 0) waitpid(pid, &status, 0);
}

static inline void comma_locale_remove(const char *folder)
{
    char *const remove[] = {"rm", "-r", (char *)(uintptr_t)folder, NULL};
    pid_t       pid;
    int         status;
    if (posix_spawnp(&pid, remove[0], NULL, NULL, remove, environ) == 0) waitpid(pid, &status, 0);
}

/* Sets a locale with a decimal comma; false when this machine has none and cannot build one. */
static inline bool comma_locale_set(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    char                     folder[] = "/tmp/anytime-locale-XXXXXX", before[4096];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (comma_locale_is_set(names[i])) return true;
    if (!getcwd(before, sizeof before) || !mkdtemp(folder)) return false;
    bool set = false;
    if (chdir(folder) == 0) {
        comma_locale_build();
        setenv("LOCPATH", folder, 1);
        set = comma_locale_is_set("comma");
        if (chdir(before)) set = false;
    }
    comma_locale_remove(folder);
    return set;
}

#endif
