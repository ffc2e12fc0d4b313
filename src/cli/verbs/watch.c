/* `anytime watch RUN...` and `train --watch`: a live dashboard in the browser. */
#include "cli/verbs/watch.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/token.h"
#include "cli/output.h"
#include "cli/verbs/verbs.h"
#include "report/summary/json_value.h"
#include "serve/metrics.h"
#include "serve/server.h"
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
    at_warn_exposed_token(s->token);
    return at_server_open(&options, server, fail);
}

static void warn_if_public(const at_settings *s)
{
    at_address address;
    at_fail    ignored;
    if (at_address_parse(s->listen, &address, &ignored) || address.loopback) return;
    fprintf(stderr, "anytime: warning: the dashboard is reachable from other machines and not "
                    "encrypted; anyone with its address can read these runs\n");
}

/* Names a private file whose only purpose is to lead a browser to the address: the arguments of a
 * process can be read by everybody on this machine, and the address contains the token. */
static bool write_redirect(const char *url, char *path, size_t size)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    if (!folder || !folder[0]) folder = getenv("TMPDIR");
    if (!folder || !folder[0]) folder = "/tmp";
    int used = snprintf(path, size, "%s/anytime-XXXXXX.html", folder);
    if (used < 0 || (size_t)used >= size) return false;
    int fd = mkostemps(path, 5, O_CLOEXEC); /* mode 0600 */
    if (fd < 0) return false;
    bool written = dprintf(fd,
                           "<!doctype html><meta charset=utf-8><title>anytime</title>\n"
                           "<meta http-equiv=refresh content=\"0; url=%s\">\n"
                           "<a href=\"%s\">Dashboard</a>\n",
                           url, url) > 0;
    close(fd);
    if (!written) unlink(path);
    return written;
}

static void remove_redirect(char path[AT_REDIRECT_SIZE])
{
    if (path[0]) unlink(path);
    path[0] = '\0';
}

/* Opens the address in a browser, if possible. `path` gets the name of a file that must be
 * removed; "": there is none. */
static void open_browser(const char *url, char path[AT_REDIRECT_SIZE])
{
    pid_t pid;
    char  program[] = "xdg-open";
    char *arguments[] = {program, path, NULL};
    if (!write_redirect(url, path, AT_REDIRECT_SIZE)) {
        path[0] = '\0';
        fprintf(stderr, "anytime: note: cannot write a file for the browser; open the address "
                        "yourself\n");
        return;
    }
    if (posix_spawnp(&pid, program, NULL, NULL, arguments, environ) == 0) return;
    fprintf(stderr, "anytime: note: xdg-open was not found; open the address yourself\n");
    remove_redirect(path);
}

/* ---- anytime watch --------------------------------------------------------------------------- */

static at_err check_folders(const at_parsed *parsed, at_fail *fail)
{
    if (parsed->words == 0)
        return at_fail_set(fail, AT_ERR_USAGE, "for example: anytime watch runs/my-run",
                           "watch needs at least one run folder");
    for (uint32_t i = 0; i < parsed->words; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(parsed->word[i], parsed->word[j]) == 0)
                return at_fail_set(fail, AT_ERR_USAGE, NULL, "%s is given twice", parsed->word[i]);
    return AT_OK;
}

static void note_missing(const at_parsed *parsed)
{
    struct stat about;
    for (uint32_t i = 0; i < parsed->words && !parsed->settings.quiet; i++)
        if (stat(parsed->word[i], &about) != 0)
            at_say("anytime: %s does not exist yet; waiting for it\n", parsed->word[i]);
}

static at_err print_address(const at_parsed *parsed, const char *url, char *redirect, at_fail *fail)
{
    if (parsed->settings.json) {
        json_t *runs = json_array();
        for (uint32_t i = 0; i < parsed->words; i++)
            json_array_append_new(runs, at_json_text(parsed->word[i]));
        AT_TRY(at_print_json_take(json_pack("{s:s, s:o}", "url", url, "runs", runs), fail));
    } else {
        printf("%s\n", url);
        if (!parsed->settings.quiet)
            fprintf(stderr, "anytime: press Ctrl-C to stop the dashboard\n");
    }
    if (fflush(stdout)) return at_fail_set(fail, AT_ERR_IO, NULL, "cannot write to stdout");
    if (parsed->settings.open) open_browser(url, redirect);
    return AT_OK;
}

static at_err serve(const at_parsed *parsed, at_fail *fail)
{
    at_server *server;
    at_bell    bell = {0};
    char       url[AT_SERVER_URL_SIZE], redirect[AT_REDIRECT_SIZE] = "";
    AT_TRY(open_server(&parsed->settings, parsed->word, parsed->words, &server, fail));
    warn_if_public(&parsed->settings);
    note_missing(parsed);
    at_server_url(server, url);
    at_signals_open(&bell);
    at_err err = print_address(parsed, url, redirect, fail);
    if (!err) at_server_run(server, at_signals_stop);
    remove_redirect(redirect);
    at_signals_close();
    at_server_close(server);
    return err;
}

/* Prints the current metrics, for a collector that reads files. */
static at_err print_once(const at_parsed *parsed, at_fail *fail)
{
    at_run_follower *followers[AT_WORDS_MAX] = {0};
    at_ns            now = at_clock_now();
    at_err           err = AT_OK;
    for (uint32_t i = 0; i < parsed->words && !err; i++) {
        followers[i] = at_run_follower_new(parsed->word[i]);
        if (!followers[i]) err = at_fail_memory(fail);
        for (int p = 0; !err && p < ONCE_POLLS_MAX && at_run_follower_poll(followers[i], now); p++)
            continue;
    }
    if (!err) at_metrics_write(stdout, followers, parsed->words, now);
    for (uint32_t i = 0; i < parsed->words; i++) at_run_follower_free(followers[i]);
    return err;
}

at_err at_verb_watch(at_parsed *parsed, const char *command, at_fail *fail)
{
    (void)command;
    _Static_assert((int)AT_WORDS_MAX <= (int)AT_SERVER_RUNS_MAX, "every word can be a run");
    AT_TRY(check_folders(parsed, fail));
    if (parsed->settings.once && parsed->settings.json)
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--once prints metrics in the format of Prometheus, not as JSON");
    if (parsed->settings.once) return print_once(parsed, fail);
    return serve(parsed, fail);
}

/* ---- train --watch --------------------------------------------------------------------------- */

/* Input of the server process, and the pipe for its answer. */
typedef struct server_start {
    const at_settings *settings;
    const char        *folder;
    int                pipe[2];
} server_start;

typedef struct server_answer {
    at_err err;
    char   url[AT_SERVER_URL_SIZE];
    char   text[sizeof((at_fail *)0)->text], hint[sizeof((at_fail *)0)->hint];
} server_answer;

static int server_main(void *self)
{
    server_start *start = self;
    at_server    *server = NULL;
    at_bell       bell = {0};
    at_fail       fail = {0};
    server_answer answer = {.err = open_server(start->settings, &start->folder, 1, &server, &fail)};
    if (answer.err == AT_OK) at_server_url(server, answer.url);
    memcpy(answer.text, fail.text, sizeof answer.text);
    memcpy(answer.hint, fail.hint, sizeof answer.hint);
    at_signals_open(&bell);
    signal(SIGINT, SIG_IGN); /* the run handles Ctrl-C and stops the server when it ends */
    close(start->pipe[0]);
    bool sent = write(start->pipe[1], &answer, sizeof answer) == (ssize_t)sizeof answer;
    close(start->pipe[1]);
    if (answer.err == AT_OK && sent) at_server_run(server, at_signals_stop);
    at_server_close(server);
    return (int)answer.err;
}

static at_err read_answer(int fd, server_answer *answer, at_fail *fail)
{
    size_t  size = 0;
    ssize_t got = 1;
    while (size < sizeof *answer && got > 0) {
        do got = read(fd, (char *)answer + size, sizeof *answer - size);
        while (got < 0 && errno == EINTR);
        if (got > 0) size += (size_t)got;
    }
    if (size < sizeof *answer)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "the dashboard did not start");
    if (answer->err == AT_OK) return AT_OK;
    return at_fail_set(fail, answer->err, answer->hint[0] ? answer->hint : NULL, "%s",
                       answer->text);
}

static void print_url(const at_settings *s, const char *url, char *redirect)
{
    fprintf(stderr, "anytime: dashboard at %s\n", url);
    warn_if_public(s);
    if (s->open) open_browser(url, redirect);
}

at_err at_watch_start(at_watch *watch, const at_parsed *parsed, const char *folder, at_fail *fail)
{
    server_start  start = {.settings = &parsed->settings, .folder = folder};
    server_answer answer;
    *watch = (at_watch){0};
    if (!parsed->settings.watch) return AT_OK;
    if (pipe2(start.pipe, O_CLOEXEC) != 0)
        return at_fail_set(fail, AT_ERR_FAILED, NULL, "cannot start the dashboard: %s",
                           strerror(errno));
    at_err err = at_child_fork(server_main, &start, &watch->pid, fail);
    close(start.pipe[1]);
    if (!err) err = read_answer(start.pipe[0], &answer, fail);
    close(start.pipe[0]);
    if (err)
        at_watch_end(watch);
    else
        print_url(&parsed->settings, answer.url, watch->redirect);
    return err;
}

void at_watch_end(at_watch *watch)
{
    remove_redirect(watch->redirect);
    if (watch->pid <= 0) return;
    at_child_stop(watch->pid);
    watch->pid = 0;
}
