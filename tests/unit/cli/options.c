/* The option table and its parser. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/options/options.h"
#include "cli/verbs/verbs.h"
#include "step/plan.h"

static at_fail fail;

/* Parses words that end with NULL into fresh settings, which the test releases. */
static at_err parse(at_parsed *parsed, unsigned verb, const char *const *words)
{
    int argc = 0;
    while (words[argc]) argc++;
    fail = (at_fail){0};
    assert_int_equal(at_options_init(parsed, &fail), AT_OK);
    return at_options_parse(parsed, verb, argc, words, &fail);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void accept(at_parsed *parsed, unsigned verb, const char *const *words)
{
    if (parse(parsed, verb, words)) fail_msg("%s (%s)", fail.text, fail.hint);
}

/* Refused as a usage error whose message contains `text`. */
static void refuse(unsigned verb, const char *const *words, const char *text)
{
    at_parsed parsed;
    at_err    err = parse(&parsed, verb, words);
    if (err != AT_ERR_USAGE) fail_msg("%s: accepted, or not a usage error (%d)", words[0], err);
    assert_int_equal(fail.err, AT_ERR_USAGE);
    if (!strstr(fail.text, text)) fail_msg("'%s' does not contain '%s'", fail.text, text);
    at_options_deinit(&parsed);
}

/* ---- the table ------------------------------------------------------------------------------ */

static void every_row_is_complete(void **state)
{
    (void)state;
    size_t rows = 0;
    for (const at_option *row = at_options; row->name; row++, rows++) {
        assert_true(row->help && *row->help);
        assert_true(row->group < AT_GROUP_COUNT && at_option_group_name[row->group]);
        assert_true(row->verbs != 0 && (row->verbs & ~(unsigned)(AT_FOR_ALL | AT_FOR_TEXTS)) == 0);
        assert_int_equal(row->type == AT_OPTION_YES_NO, row->value == NULL);
        assert_true(row->offset < sizeof(at_settings));
        assert_int_equal(strspn(row->name, "abcdefghijklmnopqrstuvwxyz-"), strlen(row->name));
        assert_int_not_equal(strncmp(row->name, "no-", 3), 0); /* --no-NAME means something else */
        if (row->type == AT_OPTION_WHOLE || row->type == AT_OPTION_REAL)
            assert_true(row->min >= 0 && row->min < row->max);
    }
    assert_true(rows <= AT_OPTIONS_MAX);
}

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Two rows with the same name are one option with different texts for different verbs. */
static void every_name_has_one_field_and_one_row_per_verb(void **state)
{
    (void)state;
    for (const at_option *row = at_options; row->name; row++)
        for (const at_option *other = row + 1; other->name; other++) {
            bool same = strcmp(row->name, other->name) == 0;
            assert_int_equal(row->offset == other->offset, same);
            if (!same) continue;
            assert_int_equal(row->verbs & other->verbs, 0);
            assert_int_equal(row->type, other->type);
            assert_true(is_same_text(row->fallback, other->fallback));
            assert_false(is_same_text(row->help, other->help));
        }
}

static void an_option_that_is_not_given_has_its_default(void **state)
{
    (void)state;
    at_parsed parsed;
    assert_int_equal(at_options_init(&parsed, &fail), AT_OK);
    const at_settings *s = &parsed.settings;
    assert_string_equal(s->model, "softmax");
    assert_string_equal(s->data, "fashion-mnist");
    assert_string_equal(s->strategy, "fmb");
    assert_null(s->work);
    assert_null(s->run);
    assert_int_equal(s->workers, -1);
    assert_int_equal(s->batch, -1);
    assert_int_equal(s->seed, 1);
    assert_true(s->lr == 0);
    assert_true(s->respawn);
    assert_string_equal(s->shard, "no");
    assert_false(at_options_given(&parsed, "model"));
    at_options_deinit(&parsed);
}

/* ---- the command line ----------------------------------------------------------------------- */

static void a_value_follows_or_is_joined_with_an_equals_sign(void **state)
{
    (void)state;
    at_parsed parsed;
    accept(&parsed, AT_FOR_TRAIN,
           WORDS("--batch", "6e4", "--lr=20%", "--seconds", "1.5min", "--target=accuracy=0.9",
                 "--run="));
    assert_int_equal(parsed.settings.batch, 60000);
    assert_true(parsed.settings.lr == 0.2);
    assert_int_equal(parsed.settings.seconds, AT_SEC(90));
    assert_string_equal(parsed.settings.target, "accuracy=0.9");
    assert_string_equal(parsed.settings.run, "");
    assert_true(at_options_given(&parsed, "lr"));
    assert_false(at_options_given(&parsed, "model"));
    at_options_deinit(&parsed);
}

static void a_later_value_replaces_an_earlier_one(void **state)
{
    (void)state;
    at_parsed parsed;
    accept(&parsed, AT_FOR_TRAIN,
           WORDS("--batch", "1", "--model", "a", "--shard", "--batch=2", "--model", "b",
                 "--no-shard"));
    assert_int_equal(parsed.settings.batch, 2);
    assert_string_equal(parsed.settings.model, "b");
    assert_string_equal(parsed.settings.shard, "no");
    at_options_deinit(&parsed);
}

static void a_switch_leaves_the_next_word_alone(void **state)
{
    (void)state;
    at_parsed parsed;
    accept(&parsed, AT_FOR_COMPARE,
           WORDS("--shard", "fmb", "--no-respawn", "amb", "--json=yes", "--quiet=off", "-"));
    assert_string_equal(parsed.settings.shard, "yes");
    assert_false(parsed.settings.respawn);
    assert_true(parsed.settings.json);
    assert_false(parsed.settings.quiet);
    assert_int_equal(parsed.words, 3);
    assert_string_equal(parsed.word[0], "fmb");
    assert_string_equal(parsed.word[1], "amb");
    assert_string_equal(parsed.word[2], "-");
    at_options_deinit(&parsed);
    refuse(AT_FOR_TRAIN, WORDS("--shard=perhaps"), "--shard: unknown value 'perhaps'");
    refuse(AT_FOR_TRAIN, WORDS("--no-shard=yes"), "unknown option --no-shard");
    refuse(AT_FOR_TRAIN, WORDS("--no-lr"), "unknown option --no-lr");
}

static void a_switch_may_have_other_values_than_yes_and_no(void **state)
{
    (void)state;
    static const struct {
        const char *words[3], *meant;
        uint32_t    left; /* words that are not values */
    } cases[] = {
        {{"--shard", "by-class"}, "by-class", 0},
        {{"--shard=by-class"}, "by-class", 0},
        {{"--shard", "no"}, "no", 0},
        {{"--shard", "on"}, "yes", 0},
        {{"--shard=0"}, "no", 0},
        {{"--shard", "by"}, "yes", 1},
        {{"--shard", "yes|by-class"}, "yes", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_parsed parsed, copy;
        accept(&parsed, AT_FOR_COMPARE, cases[i].words);
        assert_int_equal(at_options_copy(&copy, &parsed, &fail), AT_OK);
        assert_int_equal(parsed.words, cases[i].left);
        at_options_deinit(&parsed);
        assert_string_equal(copy.settings.shard, cases[i].meant);
        at_options_deinit(&copy);
    }
    refuse(AT_FOR_TRAIN, WORDS("--shard="), "--shard: unknown value ''");
    refuse(AT_FOR_TRAIN, WORDS("--shard=no|yes"), "--shard: unknown value 'no|yes'");
    assert_non_null(strstr(fail.hint, "by-class"));
}

static void assert_gather(const char *const *words, const char *expected)
{
    at_parsed parsed;
    accept(&parsed, AT_FOR_TRAIN, words);
    assert_string_equal(parsed.settings.gather, expected);
    at_options_deinit(&parsed);
}

static void an_alias_is_an_argument_of_the_rule_given_before_or_after(void **state)
{
    (void)state;
    assert_gather(WORDS("--k", "3"), ":k=3");
    assert_gather(WORDS("--k", "3", "--k=4"), ":k=3,k=4");
    assert_gather(WORDS("--gather", "first", "--k", "3"), "first:k=3");
    assert_gather(WORDS("--k", "3", "--gather", "first"), "first:k=3");
    assert_gather(WORDS("--gather", "first:2", "--k", "3"), "first:2,k=3"); /* the plan refuses */
    assert_gather(WORDS("--gather", "first", "--gather", "any"), "any");
    refuse(AT_FOR_TRAIN, WORDS("--k"), "--k needs a value");
    refuse(AT_FOR_TRAIN, WORDS("--k", "3,n=4"), "--k: '3,n=4' is not a value");
    refuse(AT_FOR_REPORT, WORDS("--k", "3"), "unknown option --k");
}

static void an_alias_may_choose_a_rule(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *mix;
    } rows[] = {{"--hubs", "1", "central"},
                {"--hubs", "3", "sliced:3"},
                {"--topology", "hub", "central"},
                {"--topology", "allreduce", "replicated"},
                {"--topology", "hogwild", "shared"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        at_parsed parsed;
        accept(&parsed, AT_FOR_TRAIN, WORDS(rows[i].name, rows[i].value));
        assert_string_equal(parsed.settings.mix, rows[i].mix);
        assert_true(at_options_given(&parsed, "mix"));
        at_options_deinit(&parsed);
    }
    refuse(AT_FOR_TRAIN, WORDS("--topology", "ring"), "--topology: unknown value 'ring'");
    assert_string_equal(fail.hint, "known: hub allreduce hogwild");
}

static void an_echo_of_an_earlier_version_is_understood(void **state)
{
    (void)state;
    at_parsed parsed;
    json_t   *echo = json_pack("{s:i, s:s, s:i, s:n}", "k", 3, "gather", "first", "hubs", 2, "cap");
    accept(&parsed, AT_FOR_TRAIN, WORDS("--staleness", "1"));
    assert_int_equal(at_options_inherit(&parsed, AT_FOR_TRAIN, echo, NULL, 0, &fail), AT_OK);
    assert_string_equal(parsed.settings.gather, "first:k=3");
    assert_string_equal(parsed.settings.mix, "sliced:2");
    assert_string_equal(parsed.settings.release, ":staleness=1");
    assert_null(parsed.settings.work);
    assert_false(at_options_given(&parsed, "gather"));
    json_decref(echo);
    at_options_deinit(&parsed);
}

static void a_missing_value_is_an_error(void **state)
{
    (void)state;
    refuse(AT_FOR_TRAIN, WORDS("--batch"), "--batch needs a value");
    refuse(AT_FOR_TRAIN, WORDS("--run", "--json"), "--run needs a value");
    refuse(AT_FOR_TRAIN, WORDS("--lr", "-1"), "--lr -1 is out of range");
    refuse(AT_FOR_TRAIN, WORDS("--batch="), "--batch  is not a whole number");
}

static void an_unknown_option_is_refused_with_the_nearest_name(void **state)
{
    (void)state;
    refuse(AT_FOR_TRAIN, WORDS("--worker", "3"), "unknown option --worker");
    assert_non_null(strstr(fail.hint, "--workers"));
    refuse(AT_FOR_TRAIN, WORDS("--micro_batch=3"), "unknown option --micro_batch");
    assert_non_null(strstr(fail.hint, "--micro-batch"));
    refuse(AT_FOR_TRAIN, WORDS("--xyzzyxyzzy"), "unknown option --xyzzyxyzzy");
    assert_null(strstr(fail.hint, "did you mean"));
    refuse(AT_FOR_TRAIN, WORDS("-lr"), "unknown option -lr");
    refuse(AT_FOR_TRAIN, WORDS("--=3"), "unknown option --");
    char long_name[3000] = "--";
    memset(long_name + 2, 'x', sizeof long_name - 3);
    refuse(AT_FOR_TRAIN, WORDS(long_name), "unknown option --xxx");
}

static void a_verb_accepts_only_its_own_options(void **state)
{
    (void)state;
    refuse(AT_FOR_TRAIN, WORDS("--repeats", "3"), "unknown option --repeats");
    refuse(AT_FOR_COMPARE, WORDS("--run", "x"), "unknown option --run");
    refuse(AT_FOR_DOCTOR, WORDS("--lr", "1"), "unknown option --lr");
    refuse(AT_FOR_DATA, WORDS("--data", "x"), "unknown option --data");
    at_parsed parsed;
    accept(&parsed, AT_FOR_MODELS, WORDS("--data", "x"));
    at_options_deinit(&parsed);
}

static void the_number_of_words_is_limited(void **state)
{
    (void)state;
    const char *words[AT_WORDS_MAX + 2] = {0};
    at_parsed   parsed;
    for (int i = 0; i < AT_WORDS_MAX; i++) words[i] = "fmb";
    accept(&parsed, AT_FOR_COMPARE, words);
    assert_int_equal(parsed.words, AT_WORDS_MAX);
    at_options_deinit(&parsed);
    words[AT_WORDS_MAX] = "amb";
    refuse(AT_FOR_COMPARE, words, "more than");
}

/* ---- values --------------------------------------------------------------------------------- */

static at_err set(const at_option *row, const char *value)
{
    at_parsed parsed;
    assert_int_equal(at_options_init(&parsed, &fail), AT_OK);
    at_err err = at_options_set(&parsed, row->verbs, row->name, value, &fail);
    at_options_deinit(&parsed);
    return err;
}

static void numbers_out_of_bounds_are_refused(void **state)
{
    (void)state;
    char text[64];
    for (const at_option *row = at_options; row->name; row++) {
        if (row->type != AT_OPTION_WHOLE && row->type != AT_OPTION_REAL) continue;
        const double inside[] = {row->min, row->max};
        double       below = row->type == AT_OPTION_WHOLE ? row->min - 1 : row->min * 0.9 - 1e-300;
        const double outside[] = {below, -row->max, row->max * 1.1};
        for (size_t i = 0; i < 2; i++) {
            snprintf(text, sizeof text, "%.17g", inside[i]);
            if (set(row, text)) fail_msg("--%s %s is refused: %s", row->name, text, fail.text);
        }
        for (size_t i = 0; i < 3; i++) {
            snprintf(text, sizeof text, "%.17g", outside[i]);
            if (set(row, text) != AT_ERR_USAGE) fail_msg("--%s %s is accepted", row->name, text);
        }
    }
}

static void nonsense_is_not_a_number(void **state)
{
    (void)state;
    static const char *const nonsense[] = {"",     " ",   "x",    "nan", "inf",
                                           "-inf", "1x",  "0x10", "1 2", "1e999",
                                           "--1",  "1,5", "٣",    "1e",  "+"};
    for (const at_option *row = at_options; row->name; row++) {
        bool text = row->type == AT_OPTION_TEXT || row->type == AT_OPTION_STRATEGY ||
                    row->type == AT_OPTION_RULE || row->type == AT_OPTION_LIST;
        if (text) continue;
        for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++)
            if (set(row, nonsense[i]) != AT_ERR_USAGE)
                fail_msg("--%s '%s' is accepted", row->name, nonsense[i]);
    }
}

static void a_duration_is_above_zero(void **state)
{
    (void)state;
    static const char *const refused[] = {"0", "0s", "-1", "-1s", "1e-12s", "1e30", "3 apples"};
    for (const at_option *row = at_options; row->name; row++) {
        if (row->type != AT_OPTION_DURATION) continue;
        assert_int_equal(set(row, "1ns"), AT_OK);
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
            if (set(row, refused[i]) != AT_ERR_USAGE)
                fail_msg("--%s %s is accepted", row->name, refused[i]);
    }
}

/* ---- config files --------------------------------------------------------------------------- */

static void write_config(char path[64], const void *bytes, size_t size)
{
    snprintf(path, 64, "/tmp/anytime-config-XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

/* Parses a config file with this text, between other options. */
static at_err with_config(at_parsed *parsed, const char *text)
{
    char path[64];
    write_config(path, text, strlen(text));
    at_err err =
        parse(parsed, AT_FOR_TRAIN, WORDS("--batch", "1", "--config", path, "--workers", "7"));
    unlink(path);
    return err;
}

static void a_config_file_sets_options(void **state)
{
    (void)state;
    at_parsed parsed;
    at_err    err = with_config(&parsed, "# a comment\n"
                                            "\n"
                                            "batch = 64   # replaces what came before\n"
                                            "  workers=3\r\n"
                                            "\tshard = yes\n"
                                            "target = accuracy=0.9\n"
                                            "run = runs/a#1\n"
                                            "model =mlp:30,10");
    if (err) fail_msg("%s", fail.text);
    assert_int_equal(parsed.settings.batch, 64);
    assert_int_equal(parsed.settings.workers, 7); /* came after the file */
    assert_string_equal(parsed.settings.shard, "yes");
    assert_string_equal(parsed.settings.target, "accuracy=0.9");
    assert_string_equal(parsed.settings.run, "runs/a#1");
    assert_string_equal(parsed.settings.model, "mlp:30,10");
    assert_true(at_options_given(&parsed, "model"));
    at_options_deinit(&parsed);
}

static void an_error_in_a_config_file_names_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *where, *what;
    } bad[] = {
        {"batch = 1\n\n# x\nbatc = 2\n", ":4: ", "unknown option --batc"},
        {"batch\n", ":1: ", "'batch' has no value"},
        {"\nbatch = 0\n", ":2: ", "out of range"},
        {"config = other\n", ":1: ", "cannot include another"},
        {"shard = perhaps\n", ":1: ", "unknown value 'perhaps'"},
        {"= 3\n", ":1: ", "unknown option"},
        {"repeats = 3\n", ":1: ", "unknown option --repeats"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        at_parsed parsed;
        assert_int_equal(with_config(&parsed, bad[i].text), AT_ERR_USAGE);
        if (!strstr(fail.text, bad[i].where) || !strstr(fail.text, bad[i].what))
            fail_msg("'%s' lacks '%s' or '%s'", fail.text, bad[i].where, bad[i].what);
        at_options_deinit(&parsed);
    }
}

static void a_file_that_is_not_a_config_file_is_refused(void **state)
{
    (void)state;
    at_parsed parsed;
    char      path[64];
    write_config(path, "batch = 1\n\0 = 2\n", 16);
    assert_int_equal(parse(&parsed, AT_FOR_TRAIN, WORDS("--config", path)), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "not a text file"));
    unlink(path);
    at_options_deinit(&parsed);
    assert_int_equal(parse(&parsed, AT_FOR_TRAIN, WORDS("--config", path)), AT_ERR_MISSING);
    assert_non_null(strstr(fail.text, path));
    at_options_deinit(&parsed);
    assert_int_not_equal(parse(&parsed, AT_FOR_TRAIN, WORDS("--config", "/dev/zero")), AT_OK);
    at_options_deinit(&parsed);
}

/* ---- echo, copy ----------------------------------------------------------------------------- */

static const char *text_of(const json_t *value, char buffer[64])
{
    if (json_is_string(value)) return json_string_value(value);
    if (json_is_boolean(value)) return json_is_true(value) ? "yes" : "no";
    if (json_is_integer(value))
        snprintf(buffer, 64, "%lld", json_integer_value(value));
    else
        snprintf(buffer, 64, "%.17g", json_real_value(value));
    return buffer;
}

/* Options set from an echo give the same echo. */
static void assert_echo_repeats(const at_parsed *parsed, unsigned verb)
{
    at_parsed   again;
    const char *name;
    json_t     *value, *echo = at_options_echo(parsed, verb);
    char        buffer[64];
    assert_int_equal(at_options_init(&again, &fail), AT_OK);
    json_object_foreach(
        echo, name, value) if (!json_is_null(value) &&
                               at_options_set(&again, verb, name, text_of(value, buffer), &fail))
        fail_msg("the echo of --%s is refused: %s", name, fail.text);
    json_t *second = at_options_echo(&again, verb);
    assert_true(json_equal(echo, second));
    json_decref(second);
    json_decref(echo);
    at_options_deinit(&again);
}

static void the_echo_restores_all_settings(void **state)
{
    (void)state;
    at_parsed parsed;
    accept(&parsed, AT_FOR_TRAIN, WORDS("--json"));
    assert_echo_repeats(&parsed, AT_FOR_TRAIN);
    at_options_deinit(&parsed);
    accept(&parsed, AT_FOR_TRAIN,
           WORDS("--lr", "0.1", "--weight-decay", "1e-5", "--seconds", "1.6e-05s", "--lease", "1h",
                 "--seed", "9000000000000000000", "--workers", "0", "--eval-every", "0", "--shard",
                 "--no-respawn", "--epochs", "0.333333333333333", "--run", "a b'c\"", "--target",
                 "accuracy=0.9,loss=0.2", "--straggler", "mix:1,2,3;4,5,6"));
    assert_echo_repeats(&parsed, AT_FOR_TRAIN);
    at_options_deinit(&parsed);
}

static void the_echo_has_every_option_of_the_verb(void **state)
{
    (void)state;
    at_parsed parsed;
    accept(&parsed, AT_FOR_COMPARE, WORDS("fmb"));
    json_t *echo = at_options_echo(&parsed, AT_FOR_COMPARE);
    size_t  expected = 0;
    for (const at_option *row = at_options; row->name; row++) {
        bool excluded = !strcmp(row->name, "help") || !strcmp(row->name, "config");
        if (!(row->verbs & AT_FOR_COMPARE) || excluded) continue;
        assert_non_null(json_object_get(echo, row->name));
        expected++;
    }
    assert_int_equal(json_object_size(echo), expected);
    json_decref(echo);
    at_options_deinit(&parsed);
}

static void a_copy_owns_its_texts(void **state)
{
    (void)state;
    at_parsed one, two;
    accept(&one, AT_FOR_COMPARE, WORDS("fmb", "--model", "mlp:3", "--batch", "5"));
    assert_int_equal(at_options_copy(&two, &one, &fail), AT_OK);
    assert_int_equal(at_options_set(&one, AT_FOR_COMPARE, "model", "softmax", &fail), AT_OK);
    at_options_deinit(&one);
    assert_string_equal(two.settings.model, "mlp:3");
    assert_string_equal(two.settings.data, "fashion-mnist");
    assert_null(two.settings.work);
    assert_int_equal(two.settings.batch, 5);
    assert_true(at_options_given(&two, "model"));
    assert_string_equal(two.word[0], "fmb");
    at_options_deinit(&two);
    at_options_deinit(&two); /* a zeroed one is accepted */
}

/* ---- help ----------------------------------------------------------------------------------- */

static char help[20000]; /* the help text of a verb */

/* Prints the help of a verb to `help`; returns how many options it left out. */
static size_t print_help(unsigned verb, bool all)
{
    FILE  *file = fmemopen(help, sizeof help, "w");
    size_t left_out = at_options_help(file, verb, all);
    assert_true(ftell(file) < (long)sizeof help - 1);
    fclose(file);
    return left_out;
}

/* Whether an option has a line of its own in a help text. */
static bool is_listed(const char *name)
{
    char line[64];
    snprintf(line, sizeof line, "\n  --%s ", name);
    return strstr(help, line) != NULL;
}

static size_t count_listed(void)
{
    size_t count = 0;
    for (const char *at = help; (at = strstr(at, "\n  --")); at++) count++;
    return count;
}

/* `train` does not list what `simulate` and `watch` list; a hub has its own world, and workers
 * that join later. */
static bool belongs(const at_option *row, unsigned verb)
{
    bool simulates = !(verb & AT_FOR_TRAIN) || (verb & AT_FOR_SIMULATE);
    if ((verb & AT_FOR_HUB) && strcmp(row->name, "world") == 0) return false;
    if ((verb & AT_FOR_HUB) && strcmp(row->name, "workers-max") == 0) return true;
    if (row->level == AT_LEVEL_SIMULATION && !simulates) return false;
    if (row->level == AT_LEVEL_WATCHING && !(verb & AT_FOR_WATCH)) return false;
    if ((verb & AT_FOR_RUN) && !at_option_works_with_seats(row)) return false;
    return (row->verbs & verb) != 0;
}

static size_t count_rows(unsigned verb)
{
    size_t count = 0;
    for (const at_option *row = at_options; row->name; row++) count += belongs(row, verb);
    return count;
}

static void help_all_lists_every_option_of_the_verb(void **state)
{
    (void)state;
    for (const at_verb *verb = at_verbs; verb->name; verb++) {
        assert_int_equal(print_help(verb->options, true), 0);
        assert_int_equal(count_listed(), count_rows(verb->options));
        for (const at_option *row = at_options; row->name; row++)
            if (belongs(row, verb->options)) assert_true(is_listed(row->name));
    }
}

static void help_of_train_has_at_most_seventy_rows(void **state)
{
    (void)state;
    print_help(AT_FOR_TRAIN | AT_FOR_LIVE, true);
    assert_true(count_listed() <= 70);
}

static void help_lists_rules_and_strategies_from_their_tables(void **state)
{
    (void)state;
    print_help(AT_FOR_TRAIN | AT_FOR_LIVE, true);
    for (size_t i = 0; i < at_strategies_count; i++)
        assert_non_null(strstr(help, at_strategies[i].name));
    for (int family = 0; family < AT_FAMILY_COUNT; family++) {
        const at_rule *rule;
        assert_true(is_listed(at_family_name[family]));
        for (size_t i = 0; (rule = at_rule_row((enum at_family)family, i)); i++)
            assert_non_null(strstr(help, rule->name));
    }
}

static void help_lists_at_most_thirty_options(void **state)
{
    (void)state;
    assert_int_equal(AT_HELP_SHORT_MAX, 30);
    for (const at_verb *verb = at_verbs; verb->name; verb++) {
        size_t rows = count_rows(verb->options), left_out = print_help(verb->options, false);
        assert_true(count_listed() <= AT_HELP_SHORT_MAX);
        assert_int_equal(count_listed() + left_out, rows);
        assert_int_equal(left_out > 0, rows > AT_HELP_SHORT_MAX);
        assert_int_equal(strstr(help, "--help [all]") != NULL, left_out > 0);
    }
}

static void help_begins_with_the_ten_main_options(void **state)
{
    (void)state;
    static const char *const main_options[] = {"model",     "data", "workers", "strategy", "batch",
                                               "optimizer", "lr",   "epochs",  "target",   "run"};
    enum { COUNT = sizeof main_options / sizeof *main_options };
    print_help(AT_FOR_TRAIN | AT_FOR_LIVE, false);
    assert_int_equal(strncmp(help, "\nMain options:\n  --model ", 25), 0);
    char *rest = strstr(help, "\n\nModel and data:\n");
    assert_non_null(rest);
    *rest = '\0';
    assert_int_equal(count_listed(), COUNT);
    const char *place = help;
    for (size_t i = 0; i < COUNT; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n  --%s ", main_options[i]);
        place = strstr(place, line);
        if (!place) fail_msg("--%s is missing, or out of order", main_options[i]);
    }
}

static void help_fits_100_columns(void **state)
{
    (void)state;
    for (const at_verb *verb = at_verbs; verb->name; verb++)
        for (int all = 0; all < 2; all++) {
            print_help(verb->options, all);
            for (char *line = help, *end; (end = strchr(line, '\n')); line = end + 1)
                if (end - line > 100)
                    fail_msg("%s --help: %.*s", verb->name, (int)(end - line), line);
        }
}

static void help_shows_each_verb_its_own_text(void **state)
{
    (void)state;
    print_help(AT_FOR_LINK, false);
    assert_non_null(strstr(help, "Largest number of workers to measure [8]"));
    print_help(AT_FOR_TRAIN, true);
    assert_null(strstr(help, "Largest number of workers"));
    assert_non_null(strstr(help, "Worker processes, also as -n N; 0 trains in this process"));
    print_help(AT_FOR_TRAIN | AT_FOR_RUN, true);
    assert_non_null(strstr(help, "Copies of COMMAND to start, also as -n N [one per core]"));
    print_help(AT_FOR_TRAIN | AT_FOR_HUB, true);
    assert_non_null(strstr(help, "Workers with which the run begins"));
}

static void help_takes_no_word_but_all(void **state)
{
    (void)state;
    static const struct {
        const char *words[3], *meant;
    } cases[] = {{{"--help"}, "yes"},     {{"-h"}, "yes"},        {{"--help", "all"}, "all"},
                 {{"--help=all"}, "all"}, {{"-h", "all"}, "all"}, {{"--help", "--json"}, "yes"},
                 {{"--help", "no"}, "no"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        at_parsed parsed;
        accept(&parsed, AT_FOR_TRAIN, cases[i].words);
        assert_string_equal(parsed.settings.help, cases[i].meant);
        assert_int_equal(parsed.words, 0);
        at_options_deinit(&parsed);
    }
    refuse(AT_FOR_TRAIN, WORDS("--help", "everything"), "--help: unknown value 'everything'");
    assert_string_equal(fail.hint, "write --help or --help all");
    refuse(AT_FOR_LINK, WORDS("--help=[all]"), "--help: unknown value '[all]'");
}

/* ---- random input --------------------------------------------------------------------------- */

static const char *random_word(at_rng *rng, char word[48])
{
    size_t rows = 0;
    while (at_options[rows].name) rows++;
    const at_option *row = &at_options[at_rng_below(rng, rows)];
    size_t           noise = at_rng_below(rng, 12), used = 0;
    if (at_rng_below(rng, 2)) used = (size_t)snprintf(word, 32, "--%s", row->name);
    if (at_rng_below(rng, 3) == 0) word[used++] = '=';
    for (size_t i = 0; i < noise; i++)
        word[used++] = at_rng_below(rng, 2) ? "0123456789.-=ems%"[at_rng_below(rng, 17)]
                                            : (char)(1 + at_rng_below(rng, 255));
    word[used] = '\0';
    return word;
}

/* Every input is accepted or refused with a message. */
static void random_input_is_accepted_or_refused_with_a_message(void **state)
{
    (void)state;
    enum { ROUNDS = 3000, WORDS_MAX = 6 };
    for (uint64_t round = 0; round < ROUNDS; round++) {
        at_rng      rng = at_rng_stream(1, 0, AT_RNG_PURPOSE_TEST, round);
        char        text[WORDS_MAX][48];
        const char *words[WORDS_MAX + 1] = {0};
        at_parsed   parsed;
        size_t      count = 1 + at_rng_below(&rng, WORDS_MAX);
        for (size_t i = 0; i < count; i++) {
            words[i] = random_word(&rng, text[i]);
            if (strstr(words[i], "config")) words[i] = "--lr"; /* would read a random path */
        }
        at_err err = parse(&parsed, AT_FOR_TRAIN, words);
        if (err && (fail.err != err || !fail.text[0]))
            fail_msg("round %d has no message", (int)round);
        if (!err) json_decref(at_options_echo(&parsed, AT_FOR_TRAIN));
        at_options_deinit(&parsed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(every_name_has_one_field_and_one_row_per_verb),
        cmocka_unit_test(an_option_that_is_not_given_has_its_default),
        cmocka_unit_test(a_value_follows_or_is_joined_with_an_equals_sign),
        cmocka_unit_test(a_later_value_replaces_an_earlier_one),
        cmocka_unit_test(a_switch_leaves_the_next_word_alone),
        cmocka_unit_test(a_switch_may_have_other_values_than_yes_and_no),
        cmocka_unit_test(a_missing_value_is_an_error),
        cmocka_unit_test(an_unknown_option_is_refused_with_the_nearest_name),
        cmocka_unit_test(a_verb_accepts_only_its_own_options),
        cmocka_unit_test(the_number_of_words_is_limited),
        cmocka_unit_test(numbers_out_of_bounds_are_refused),
        cmocka_unit_test(nonsense_is_not_a_number),
        cmocka_unit_test(a_duration_is_above_zero),
        cmocka_unit_test(a_config_file_sets_options),
        cmocka_unit_test(an_error_in_a_config_file_names_the_line),
        cmocka_unit_test(a_file_that_is_not_a_config_file_is_refused),
        cmocka_unit_test(the_echo_restores_all_settings),
        cmocka_unit_test(the_echo_has_every_option_of_the_verb),
        cmocka_unit_test(a_copy_owns_its_texts),
        cmocka_unit_test(help_all_lists_every_option_of_the_verb),
        cmocka_unit_test(help_of_train_has_at_most_seventy_rows),
        cmocka_unit_test(help_lists_rules_and_strategies_from_their_tables),
        cmocka_unit_test(an_alias_is_an_argument_of_the_rule_given_before_or_after),
        cmocka_unit_test(an_alias_may_choose_a_rule),
        cmocka_unit_test(an_echo_of_an_earlier_version_is_understood),
        cmocka_unit_test(help_lists_at_most_thirty_options),
        cmocka_unit_test(help_begins_with_the_ten_main_options),
        cmocka_unit_test(help_fits_100_columns),
        cmocka_unit_test(help_shows_each_verb_its_own_text),
        cmocka_unit_test(help_takes_no_word_but_all),
        cmocka_unit_test(random_input_is_accepted_or_refused_with_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
