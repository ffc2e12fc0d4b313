/* The program: finds the verb, reads its options, runs it, tells what went wrong. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/verbs/verbs.h"
#include "world/mpi/mpi_world.h"

enum { NAMES_MAX = 32, COMMAND_SIZE = 4096 };

static void print_overview(FILE *file)
{
    fprintf(file,
            "anytime %s: trains models on many unequal workers and makes slow ones cost little\n\n"
            "usage: anytime VERB [--name value ...]\n\n",
            ANYTIME_VERSION);
    for (const at_verb *verb = at_verbs; verb->name; verb++)
        fprintf(file, "  %-9s %s\n", verb->name, verb->summary);
    fprintf(file, "\n`anytime VERB --help` tells more. Start with: anytime train\n");
}

static void print_verb(FILE *file, const at_verb *verb)
{
    fprintf(file, "usage: anytime %s %s\n\n%s", verb->name, verb->usage, verb->about);
    at_options_help(file, verb->options);
}

static at_err unknown_verb(const char *name, at_fail *fail)
{
    const char *names[NAMES_MAX];
    size_t      count = 0;
    for (const at_verb *verb = at_verbs; verb->name && count < NAMES_MAX; verb++)
        names[count++] = verb->name;
    char        hint[160];
    at_text     text = at_text_in(hint, sizeof hint);
    const char *nearest = at_text_nearest(name, names, count);
    if (nearest) at_text_add(&text, "did you mean %s? ", nearest);
    at_text_add(&text, "`anytime --help` lists all verbs");
    return at_fail_set(fail, AT_ERR_USAGE, hint, "unknown verb '%s'", name);
}

/* One word as a shell would have to read it. */
static void add_quoted(at_text *text, const char *word)
{
    bool plain = *word && !strpbrk(word, " \t\n\"'\\$;&|<>*?()[]{}!#~`");
    if (plain) {
        at_text_add(text, " %s", word);
        return;
    }
    at_text_add(text, " '");
    for (; *word; word++) at_text_add(text, *word == '\'' ? "'\\%c'" : "%c", *word);
    at_text_add(text, "'");
}

/* The command as typed, for result.json. */
static void join_command(char *buffer, size_t size, int argc, char **argv)
{
    at_text text = at_text_in(buffer, size);
    at_text_add(&text, "anytime");
    for (int i = 1; i < argc; i++) add_quoted(&text, argv[i]);
}

/* Does this verb run on all ranks? Even what is wrong with its options may be so on one of them
 * only, as when a file is missing there. */
static bool is_for_all_ranks(const at_verb *verb, const at_parsed *parsed)
{
    bool chosen = at_options_given(parsed, "world");
    bool spread = verb->run == at_verb_train || verb->run == at_verb_link;
    if (!spread || parsed->settings.help) return false;
    return !chosen || strcmp(parsed->settings.world, "mpi") == 0;
}

static at_err run_verb(const at_verb *verb, int argc, char **argv, bool *all_ranks, at_fail *fail)
{
    static char command[COMMAND_SIZE];
    at_parsed   parsed;
    join_command(command, sizeof command, argc, argv);
    at_err err = at_options_init(&parsed, fail);
    if (!err)
        err =
            at_options_parse(&parsed, verb->options, argc - 2, (const char *const *)argv + 2, fail);
    if (!err && parsed.settings.help) {
        if (at_launcher_detect().rank == 0) print_verb(stdout, verb);
    } else if (!err)
        err = verb->run(&parsed, command, fail);
    *all_ranks = is_for_all_ranks(verb, &parsed);
    at_options_deinit(&parsed);
    return err;
}

static at_err dispatch(int argc, char **argv, bool *all_ranks, at_fail *fail)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        print_overview(stderr);
        return AT_ERR_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        const at_verb *about = argc > 2 ? at_verb_find(argv[2]) : NULL;
        if (about)
            print_verb(stdout, about);
        else
            print_overview(stdout);
        return AT_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("anytime %s\n", ANYTIME_VERSION);
        return AT_OK;
    }
    const at_verb *verb = at_verb_find(name);
    return verb ? run_verb(verb, argc, argv, all_ranks, fail) : unknown_verb(name, fail);
}

/* Whoever started us may have closed a standard stream. The next file we open would get its number,
 * and then what we print; so nothing takes its place, which cannot be written to either. */
static void hold_standard_streams(void)
{
    int fd;
    do fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

static at_err check_output(at_err err, at_fail *fail)
{
    bool unwritten = fflush(stdout) != 0 || ferror(stdout);
    if (!unwritten || err) return err;
    if (errno == EPIPE) return AT_ERR_IO; /* who reads no further needs no sentence about it */
    return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write to standard output");
}

static void tell(const at_fail *fail)
{
    if (!fail->err) return;
    fprintf(stderr, "anytime: %s\n", fail->text);
    if (fail->hint[0]) fprintf(stderr, "  hint: %s\n", fail->hint);
}

/* Rank 0 speaks, and its code is that of the job. After a loss nothing may run at exit that could
 * wait for the lost one. */
static int end_rank(const at_launcher *launcher, at_err err, const at_fail *fail)
{
    int code = launcher->rank == 0 ? (int)err : 0;
    if (at_mpi_world_end(launcher, fail)) return code;
    fflush(NULL);
    _exit(code);
}

int main(int argc, char **argv)
{
    at_fail     fail = {0};
    at_launcher launcher = at_launcher_detect();
    const char *verb = argc > 1 ? argv[1] : "";
    bool        spread = strcmp(verb, "train") == 0 || strcmp(verb, "link") == 0, all_ranks = false;
    hold_standard_streams();
    signal(SIGPIPE, SIG_IGN);                       /* a reader that went away is told below */
    if (launcher.rank > 0 && !spread) return AT_OK; /* one rank is enough for the others */
    at_err err = check_output(dispatch(argc, argv, &all_ranks, &fail), &fail);
    if (launcher.rank == 0 || !all_ranks) tell(&fail);
    return all_ranks && launcher.size > 1 ? end_rank(&launcher, err, &fail) : (int)err;
}
