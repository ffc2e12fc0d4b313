/* `anytime watch RUN...`: a live dashboard in the browser; also the one of `train --watch`. */
#include "cli/verbs/watch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/print.h"
#include "cli/verbs/verbs.h"
#include "serve/metrics.h"
#include "serve/server.h"
#include "serve/token.h"
#include "world/process/child.h"
#include "world/process/signals.h"

extern char **environ;

enum { ONCE_POLLS_MAX = 100000 };

/* ---- the server ------------------------------------------------------------------------------ */

static at_err open_server(const at_settings *s, const char *const *folders, size_t count,
                          at_server **server, at_fail *fail)
{
    char              token[AT_TOKEN_SIZE];
    at_server_options options = {.token = token, .folders = folders, .count = count};
    AT_TRY(at_address_parse(s->listen, &options.address, fail));
    AT_TRY(s->token ? at_token_file(s->token, token, fail) : at_token_make(token, fail));
    return at_server_open(&options, server, fail);
}

static void warn_about(const at_settings *s)
{
    at_address address;
    at_fail    ignored;
    if (at_address_parse(s->listen, &address, &ignored) || address.loopback) return;
    fprintf(stderr, "anytime: warning: the dashboard can be reached from other machines, and what "
                    "it sends is not encrypted; whoever has its address can read these runs\n");
}

/* Shows the address in a browser, if there is one. */
static void open_browser(const char *url)
{
    pid_t pid;
    char  program[] = "xdg-open", argument[AT_SERVER_URL_SIZE];
    snprintf(argument, sizeof argument, "%s", url);
    char *arguments[] = {program, argument, NULL};
    if (posix_spawnp(&pid, program, NULL, NULL, arguments, environ) != 0)
        fprintf(stderr, "anytime: note: there is no xdg-open; open the address yourself\n");
}

/* ---- anytime watch --------------------------------------------------------------------------- */

static at_err check_folders(const at_parsed *parsed, at_fail *fail)
{
    if (parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime watch runs/my-run",
                           "watch needs the folders of runs");
    for (uint32_t i = 0; i < parsed->words; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(parsed->word[i], parsed->word[j]) == 0)
                return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s is named twice", parsed->word[i]);
    return AT_OK;
}

static void tell_missing(const at_parsed *parsed)
{
    struct stat about;
    for (uint32_t i = 0; i < parsed->words && !parsed->settings.quiet; i++)
        if (stat(parsed->word[i], &about) != 0)
            fprintf(stderr, "anytime: %s is not there yet; waiting for it\n", parsed->word[i]);
}

static at_err tell_address(const at_parsed *parsed, const char *url, at_fail *fail)
{
    if (parsed->settings.json) {
        json_t *runs = json_array();
        for (uint32_t i = 0; i < parsed->words; i++)
            json_array_append_new(runs, json_string(parsed->word[i]));
        AT_TRY(at_print_json_take(json_pack("{s:s, s:o}", "url", url, "runs", runs), fail));
    } else {
        printf("%s\n", url);
        if (!parsed->settings.quiet) fprintf(stderr, "anytime: Ctrl-C ends the dashboard\n");
    }
    if (fflush(stdout)) return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write to stdout");
    if (parsed->settings.open) open_browser(url);
    return AT_OK;
}

static at_err serve(const at_parsed *parsed, at_fail *fail)
{
    at_server *server;
    at_bell    bell = {0};
    char       url[AT_SERVER_URL_SIZE];
    AT_TRY(open_server(&parsed->settings, parsed->word, parsed->words, &server, fail));
    warn_about(&parsed->settings);
    tell_missing(parsed);
    at_server_url(server, url);
    at_signals_open(&bell);
    at_err err = tell_address(parsed, url, fail);
    if (!err) at_server_run(server, at_signals_stop);
    at_signals_close();
    at_server_close(server);
    return err;
}

/* The newest state, for a collector that reads files. */
static at_err print_once(const at_parsed *parsed, at_fail *fail)
{
    at_run_follower *tails[AT_WORDS_MAX] = {0};
    at_ns            now = at_clock_now();
    at_err           err = AT_OK;
    for (uint32_t i = 0; i < parsed->words && !err; i++) {
        tails[i] = at_run_follower_new(parsed->word[i]);
        if (!tails[i]) err = at_fail_memory(fail);
        for (int p = 0; !err && p < ONCE_POLLS_MAX && at_run_follower_poll(tails[i], now); p++)
            continue;
    }
    if (!err) at_metrics_write(stdout, tails, parsed->words, now);
    for (uint32_t i = 0; i < parsed->words; i++) at_run_follower_free(tails[i]);
    return err;
}

at_err at_verb_watch(at_parsed *parsed, const char *command, at_fail *fail)
{
    (void)command;
    _Static_assert((int)AT_WORDS_MAX <= (int)AT_SERVER_RUNS_MAX, "every word can be a run");
    AT_TRY(check_folders(parsed, fail));
    if (parsed->settings.once) return print_once(parsed, fail);
    return serve(parsed, fail);
}

/* ---- train --watch --------------------------------------------------------------------------- */

/* What the process of the server starts with, and where it tells how that went. */
typedef struct beginning {
    const at_settings *settings;
    const char        *folder;
    int                pipe[2];
} beginning;

typedef struct answer {
    at_err err;
    char   url[AT_SERVER_URL_SIZE];
    char   text[sizeof((at_fail *)0)->text], hint[sizeof((at_fail *)0)->hint];
} answer;

static int server_main(void *self)
{
    beginning *begin = self;
    at_server *server = NULL;
    at_bell    bell = {0};
    at_fail    fail = {0};
    answer     told = {.err = open_server(begin->settings, &begin->folder, 1, &server, &fail)};
    if (told.err == AT_OK) at_server_url(server, told.url);
    memcpy(told.text, fail.text, sizeof told.text);
    memcpy(told.hint, fail.hint, sizeof told.hint);
    at_signals_open(&bell);
    signal(SIGINT, SIG_IGN); /* the run decides what Ctrl-C means, and ends us when it has ended */
    close(begin->pipe[0]);
    bool is_told = write(begin->pipe[1], &told, sizeof told) == (ssize_t)sizeof told;
    close(begin->pipe[1]);
    if (told.err == AT_OK && is_told) at_server_run(server, at_signals_stop);
    at_server_close(server);
    return told.err;
}

static at_err read_answer(int fd, answer *told, at_fail *fail)
{
    size_t  size = 0;
    ssize_t got = 1;
    while (size < sizeof *told && got > 0) {
        do got = read(fd, (char *)told + size, sizeof *told - size);
        while (got < 0 && errno == EINTR);
        if (got > 0) size += (size_t)got;
    }
    if (size < sizeof *told)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "the dashboard did not start");
    if (told->err == AT_OK) return AT_OK;
    return at_fail_set(fail, told->err, told->hint[0] ? told->hint : NULL, "%s", told->text);
}

static void tell_url(const at_settings *s, const char *url)
{
    fprintf(stderr, "anytime: watch it at %s\n", url);
    warn_about(s);
    if (s->open) open_browser(url);
}

at_err at_watch_start(at_watch *watch, const at_parsed *parsed, const char *folder, at_fail *fail)
{
    beginning begin = {.settings = &parsed->settings, .folder = folder};
    answer    told;
    *watch = (at_watch){0};
    if (!parsed->settings.watch) return AT_OK;
    if (pipe2(begin.pipe, O_CLOEXEC) != 0)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot start the dashboard: %s",
                           strerror(errno));
    at_err err = at_child_fork(server_main, &begin, &watch->pid, fail);
    close(begin.pipe[1]);
    if (!err) err = read_answer(begin.pipe[0], &told, fail);
    close(begin.pipe[0]);
    if (err)
        at_watch_end(watch);
    else
        tell_url(&parsed->settings, told.url);
    return err;
}

void at_watch_end(at_watch *watch)
{
    if (watch->pid <= 0) return;
    kill(watch->pid, SIGTERM);
    while (waitpid(watch->pid, NULL, 0) < 0 && errno == EINTR) continue;
    watch->pid = 0;
}
