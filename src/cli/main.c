/* The program: finds the verb, parses its options, runs it and reports errors. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/isa.h"
#include "base/machine.h"
#include "base/text.h"
#include "cli/commit.h"
#include "cli/output.h"
#include "cli/parts.h"
#include "cli/run_names.h"
#include "cli/verbs/verbs.h"
#include "data/files/source.h"
#include "learn/engines/blas.h"
#include "learn/engines/conv_kernels.h"
#include "world/mpi/mpi_world.h"

enum { NAMES_MAX = 32, COMMAND_SIZE = 4096 };

static void print_overview(FILE *file)
{
    fprintf(file,
            "anytime %s: distributed SGD that tolerates slow and failing workers\n\n"
            "usage: anytime VERB [--name value ...]\n\n",
            ANYTIME_VERSION);
    for (const at_verb *verb = at_verbs; verb->name; verb++)
        fprintf(file, "  %-10s %s\n", verb->name, verb->summary);
    fprintf(file, "\n`anytime VERB --help` describes a verb and its options.\n"
                  "To begin, run `anytime train`.\n");
}

static at_err print_version(bool json, at_fail *fail)
{
    static const char *const isa[] = {
        [AT_ISA_PORTABLE] = "portable", [AT_ISA_AVX2] = "AVX2", [AT_ISA_AVX512] = "AVX-512"};
    const char *blas = at_engine_info_get().blas_config; /* "OpenBLAS 0.3.21 options .." */
    int         name = (int)strcspn(blas, " ");
    if (blas[name] == ' ') name += 1 + (int)strcspn(blas + name + 1, " ");
    char missing[64];
    bool onednn = at_conv_onednn.block() > 0;
    at_parts_missing(missing, sizeof missing);
    if (json)
        return at_print_json_take(json_pack("{s:s, s:s, s:{s:s, s:b, s:s%}}", "anytime",
                                            ANYTIME_VERSION, "commit", at_commit, "engines",
                                            "kernels", isa[at_isa_here()], "onednn", (int)onednn,
                                            "blas", blas, (size_t)name),
                                  fail);
    printf("anytime %s%s%s\nengines: our own kernels (%s), %s%.*s\n", ANYTIME_VERSION,
           *at_commit ? ", commit " : "", at_commit, isa[at_isa_here()], onednn ? "oneDNN, " : "",
           name, blas);
    if (*missing) printf("built without: %s\n", missing);
    return AT_OK;
}

static void print_verb(const at_verb *verb, bool all)
{
    printf("usage: anytime %s%s%s\n\n%s", verb->name, *verb->usage ? " " : "", verb->usage,
           verb->about);
    size_t more = at_options_help(stdout, verb->options, all);
    if (more > 0) printf("\n`anytime %s --help all` shows %zu more options.\n", verb->name, more);
    if (all && (verb->options & AT_FOR_TRAIN) && !(verb->options & AT_FOR_SIMULATE))
        printf(
            "\n`anytime simulate --help all` also shows the options of simulations, and rare ones "
            "such\nas --record-limit.\n");
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

/* Joins the command line, for result.json. */
static void join_command(char *buffer, size_t size, int argc, char **argv)
{
    at_text text = at_text_in(buffer, size);
    at_text_add(&text, "anytime");
    for (int i = 1; i < argc; i++) {
        at_text_add(&text, " ");
        at_text_add_word(&text, argv[i]);
    }
}

static bool wants_help(const at_parsed *parsed)
{
    return parsed->settings.help && strcmp(parsed->settings.help, "no") != 0;
}

/* Whether the verb runs on all ranks. Errors in options count too: they can differ between ranks,
 * for example when a file is missing on one of them. */
static bool is_for_all_ranks(const at_verb *verb, const at_parsed *parsed)
{
    bool chosen = at_options_given(parsed, "world");
    bool parallel = verb->run == at_verb_train || verb->run == at_verb_link;
    if (!parallel || wants_help(parsed)) return false;
    return !chosen || strcmp(parsed->settings.world, "mpi") == 0;
}

/* NULL for verbs that read no data. */
static at_err limit_unpacking(const char *text, at_fail *fail)
{
    uint64_t limit = AT_SOURCE_AUTO;
    bool     is_auto = !text || strcmp(text, "auto") == 0;
    if (text && strcmp(text, "none") == 0)
        limit = UINT64_MAX;
    else if (!is_auto && (!at_text_bytes(text, &limit) || limit == 0))
        return at_fail_set(fail, AT_ERR_USAGE, "for example 10GB; or auto, or none",
                           "--unpack-limit %s is not a valid size", text);
    at_source_limit(limit);
    return AT_OK;
}

static at_err run_verb(const at_verb *verb, int argc, char **argv, bool *all_ranks, at_fail *fail)
{
    static char command[COMMAND_SIZE];
    at_parsed   parsed;
    join_command(command, sizeof command, argc, argv);
    at_err err = at_options_init(&parsed, fail);
    if (!err) err = at_options_defaults(&parsed, verb->options, fail);
    if (!err)
        err =
            at_options_parse(&parsed, verb->options, argc - 2, (const char *const *)argv + 2, fail);
    if (!err && wants_help(&parsed)) {
        bool all = strcmp(parsed.settings.help, "all") == 0;
        if (at_launcher_detect().rank == 0) print_verb(verb, all);
    } else if (!err) {
        err = limit_unpacking(parsed.settings.unpack_limit, fail);
        if (!err) err = at_run_names_resolve(&parsed, verb->options, fail);
        if (!err) err = verb->run(&parsed, command, fail);
    }
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
            print_verb(about, argc > 3 && strcmp(argv[3], "all") == 0);
        else
            print_overview(stdout);
        return AT_OK;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
        return print_version(argc > 2 && strcmp(argv[2], "--json") == 0, fail);
    const at_verb *verb = at_verb_find(name);
    return verb ? run_verb(verb, argc, argv, all_ranks, fail) : unknown_verb(name, fail);
}

/* If the parent closed a standard stream, the next file opened would get its descriptor and receive
 * what is printed. Occupy such descriptors with a file that cannot be written. */
static void occupy_standard_streams(void)
{
    int fd;
    do fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) close(fd);
}

/* `anytime ... | head`: the reader has seen enough. Which write has failed may be long ago, so that
 * errno does not tell. */
static bool has_lost_reader(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP));
}

static at_err check_output(at_err err, at_fail *fail)
{
    bool unwritten = fflush(stdout) != 0 || ferror(stdout);
    if (!unwritten || err || has_lost_reader()) return err;
    return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write to standard output");
}

static void print_error(const at_fail *fail)
{
    if (!fail->err) return;
    fprintf(stderr, "anytime: %s\n", fail->text);
    if (fail->hint[0]) fprintf(stderr, "  hint: %s\n", fail->hint);
}

/* Rank 0 prints, and its exit code is that of the job and of the other ranks. After the loss of a
 * rank, skip exit handlers that could wait for it. */
static int end_rank(const at_launcher *launcher, at_err err, const at_fail *fail)
{
    int code = (int)err;
    if (at_mpi_world_end(launcher, fail, &code)) return code;
    fflush(NULL);
    _exit(code);
}

int main(int argc, char **argv)
{
    at_fail     fail = {0};
    at_launcher launcher = at_launcher_detect();
    const char *verb = argc > 1 ? argv[1] : "";
    bool        parallel = strcmp(verb, "train") == 0 || strcmp(verb, "link") == 0;
    bool        all_ranks = false;
    occupy_standard_streams();
    at_machine_flush_denormals();
    signal(SIGPIPE, SIG_IGN);                         /* check_output detects a lost reader */
    signal(SIGXFSZ, SIG_IGN);                         /* `ulimit -f`: an error of write, no death */
    if (launcher.rank > 0 && !parallel) return AT_OK; /* other verbs run on rank 0 only */
    at_err err = check_output(dispatch(argc, argv, &all_ranks, &fail), &fail);
    if (launcher.rank == 0 || !all_ranks) print_error(&fail);
    return all_ranks && launcher.size > 1 ? end_rank(&launcher, err, &fail) : (int)err;
}
