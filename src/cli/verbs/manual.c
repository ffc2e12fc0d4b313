/* `anytime manual`: manual pages from the tables of verbs and options, and from anytime.h. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli/header.h"
#include "cli/verbs/verbs.h"

enum { DESCRIPTION_SIZE = 600 };

/* ---- the language of man(1) ------------------------------------------------------------------ */

/* Prints text as it is: backslashes and hyphens are escaped, and so is a first character that would
 * make the line a request. */
static void print_text(const char *text, size_t length)
{
    if (length > 0 && (*text == '.' || *text == '\'')) printf("\\&");
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\')
            printf("\\e");
        else if (text[i] == '-')
            printf("\\-");
        else
            putchar(text[i]);
    }
}

static void print_line(const char *text, size_t length)
{
    print_text(text, length);
    putchar('\n');
}

static void print_title(const char *name, char section)
{
    static const char *const about[] = {['1'] = "User Commands", ['3'] = "C Library"};
    printf(".TH \"");
    for (const char *c = name; *c; c++) putchar(toupper((unsigned char)*c));
    printf("\" %c \"\" \"anytime %s\" \"%s\"\n.nh\n", section, ANYTIME_VERSION,
           about[(unsigned char)section]);
}

/* A text in which some lines are to be printed as they are: those for which `is_verbatim` says so.
 * An empty line ends a paragraph, or is part of the verbatim lines around it. */
static void print_paragraphs(const char *text, bool (*is_verbatim)(const char *line))
{
    bool verbatim = false, ended = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool   wanted = length > 0 && is_verbatim(text);
        if (length == 0) ended = true;
        if (length > 0 && wanted != verbatim)
            printf("%s", wanted ? ".PP\n.EX\n" : ".EE\n.PP\n");
        else if (length > 0 && ended)
            printf("%s", wanted ? "\n" : ".PP\n");
        if (length > 0) {
            verbatim = wanted;
            ended = false;
            print_line(text, length);
        }
        text += length + (text[length] == '\n');
    }
    if (verbatim) printf(".EE\n");
}

static bool is_indented(const char *line)
{
    return line[0] == ' ' && line[1] == ' ';
}

/* ---- the program and its verbs --------------------------------------------------------------- */

static void print_exit_status(void)
{
    static const char *const rows[][2] = {
        {"0", "done, or stopped by a limit or target"},
        {"1", "failed, or a check did not hold"},
        {"2", "invalid options"},
        {"65", "a damaged file"},
        {"66", "a missing file"},
        {"74", "a file or the output could not be written"},
        {"75", "stopped early; a run can be resumed with --resume"},
    };
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf(".TP\n.B %s\n%s\n", rows[i][0], rows[i][1]);
}

static void print_program(void)
{
    print_title("anytime", '1');
    printf(".SH NAME\nanytime \\- distributed SGD that tolerates slow and failing workers\n"
           ".SH SYNOPSIS\n.B anytime\n.I VERB\n[\\fB\\-\\-name\\fR \\fIvalue\\fR ...]\n"
           ".SH DESCRIPTION\nTrains models with stochastic gradient descent on many unequal "
           "workers: processes of this machine, MPI ranks, other machines, programs of your own, "
           "or workers in virtual time. Each verb has a page of its own.\n.SH VERBS\n");
    for (const at_verb *verb = at_verbs; verb->name; verb++) {
        printf(".TP\n.BR anytime\\-%s (1)\n", verb->name);
        print_line(verb->summary, strlen(verb->summary));
    }
    print_exit_status();
    printf(".SH SEE ALSO\n.BR anytime.h (3)\n");
}

static void print_option(const at_option *row, unsigned verb)
{
    char    about[DESCRIPTION_SIZE];
    at_text text = at_text_in(about, sizeof about);
    printf(".TP\n\\fB\\-\\-");
    print_text(row->name, strlen(row->name));
    printf("\\fR");
    if (row->value) {
        printf(" \\fI");
        print_text(row->value, strlen(row->value));
        printf("\\fR");
    }
    putchar('\n');
    at_option_describe(row, verb, &text);
    print_line(about, strlen(about));
}

static void print_options(unsigned verb)
{
    printf(".SH OPTIONS\n");
    for (int group = 0; group < AT_GROUP_COUNT; group++) {
        bool has_heading = false;
        for (const at_option *row = at_options; row->name; row++) {
            if ((int)row->group != group || !at_option_is_listed(row, verb)) continue;
            if (!has_heading) printf(".SS %s\n", at_option_group_name[group]);
            has_heading = true;
            print_option(row, verb);
        }
    }
}

static void print_verb(const at_verb *verb)
{
    char name[64];
    snprintf(name, sizeof name, "anytime-%s", verb->name);
    print_title(name, '1');
    printf(".SH NAME\nanytime\\-%s \\- ", verb->name);
    print_line(verb->summary, strlen(verb->summary));
    printf(".SH SYNOPSIS\n.B anytime %s\n", verb->name);
    print_line(verb->usage, strlen(verb->usage));
    printf(".SH DESCRIPTION\n");
    print_paragraphs(verb->about, is_indented);
    print_options(verb->options);
    print_exit_status();
    printf(".SH SEE ALSO\n.BR anytime (1)\n");
}

/* ---- the header ------------------------------------------------------------------------------ */

/* Text of a comment: prose, with code indented by four columns. */
static bool is_code(const char *line)
{
    return strncmp(line, "    ", 4) == 0;
}

/* Copies a comment without its frame; returns its end. The header is ours: every comment of it is
 * well formed and fits. */
static const char *strip_comment(const char *text, char *prose, size_t size)
{
    const char *end = strstr(text, "*/");
    size_t      used = 0;
    assert(end);
    for (text += 2; text < end;) {
        size_t length = strcspn(text, "\n");
        if (text + length > end) length = (size_t)(end - text);
        size_t keep = length;
        while (keep > 0 && text[keep - 1] == ' ') keep--;
        assert(used + keep + 2 <= size);
        memcpy(prose + used, text, keep);
        used += keep;
        prose[used++] = '\n';
        text += length + (text[length] == '\n');
        if (strncmp(text, " * ", 3) == 0)
            text += 3;
        else if (strncmp(text, " *\n", 3) == 0)
            text += 2;
    }
    prose[used] = '\0';
    return end + 2;
}

/* Prints a comment that began at the start of a line: `---- heading ----`, or prose. Returns what
 * follows. */
static const char *print_comment(const char *text)
{
    char        prose[8192];
    const char *rest = strip_comment(text, prose, sizeof prose);
    char       *begin = prose + strspn(prose, " ");
    if (*begin != '-') {
        printf(".PP\n");
        print_paragraphs(begin, is_code);
        return rest;
    }
    begin += strspn(begin, "- ");
    char *end = strstr(begin, " --");
    printf(".SS ");
    print_line(begin, end ? (size_t)(end - begin) : strcspn(begin, "\n"));
    return rest;
}

/* Lines that are only for the compiler. */
static bool is_machinery(const char *line)
{
    return *line == '#' || strncmp(line, "extern \"C\"", 10) == 0 || strncmp(line, "}\n", 2) == 0;
}

/* Prints declarations up to an empty line; returns what follows. */
static const char *print_declarations(const char *text)
{
    bool any = false;
    while (*text && *text != '\n') {
        size_t length = strcspn(text, "\n");
        if (!is_machinery(text)) {
            if (!any) printf(".PP\n.EX\n");
            any = true;
            print_line(text, length);
        }
        text += length + (text[length] == '\n');
    }
    if (any) printf(".EE\n");
    return text;
}

static void print_header(void)
{
    const char *text = at_header_files[0].text;
    print_title("anytime.h", '3');
    printf(".SH NAME\nanytime.h \\- distributed training of your own model\n"
           ".SH SYNOPSIS\n.B #include <anytime.h>\n.PP\ncc ... \\-lanytime\n.SH DESCRIPTION\n");
    while (*text) {
        if (*text == '\n')
            text++;
        else if (strncmp(text, "/*", 2) == 0)
            text = print_comment(text);
        else
            text = print_declarations(text);
    }
    printf(".SH SEE ALSO\n.BR anytime (1)\n");
}

at_err at_verb_manual(at_parsed *parsed, const char *command, at_fail *fail)
{
    const char    *name = parsed->words > 0 ? parsed->word[0] : NULL;
    const at_verb *verb = name ? at_verb_find(name) : NULL;
    (void)command;
    if (parsed->words > 1)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "unexpected argument '%s'", parsed->word[1]);
    if (!name)
        print_program();
    else if (verb)
        print_verb(verb);
    else if (strcmp(name, "anytime.h") == 0)
        print_header();
    else
        return at_fail_set(fail, AT_ERR_USAGE, "use a verb, or anytime.h",
                           "no manual page for '%s'", name);
    return AT_OK;
}
