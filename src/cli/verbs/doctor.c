/* `anytime doctor`: looks at everything a run needs and says what it means. Each group of probes
 * has its own file. */
#include "cli/verbs/doctor.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/print.h"
#include "cli/verbs/verbs.h"

static const char *const verdict_name[AT_DIAGNOSIS_COUNT] = {
#define X(id, text) [AT_DIAGNOSIS_##id] = text,
    AT_DIAGNOSIS_MAP(X)
#undef X
};

static const at_probe *const groups[] = {at_probes_software, at_probes_machine, at_probes_system};

/* How many findings there were of each verdict, and all of them as JSON. */
typedef struct report {
    unsigned count[AT_DIAGNOSIS_COUNT];
    json_t  *findings;
} report;

void at_finding_add(at_finding *finding, const char *format, ...)
{
    size_t  used = strlen(finding->found);
    va_list arguments;
    assert(used < sizeof finding->found);
    va_start(arguments, format);
    vsnprintf(finding->found + used, sizeof finding->found - used, format, arguments);
    va_end(arguments);
}

void at_finding_judge(at_finding *finding, at_diagnosis verdict, const char *format, ...)
{
    va_list arguments;
    if (verdict <= finding->verdict) return;
    finding->verdict = verdict;
    va_start(arguments, format);
    vsnprintf(finding->advice, sizeof finding->advice, format, arguments);
    va_end(arguments);
}

static void print_finding(const at_probe *probe, const at_finding *finding)
{
    printf("%-8s %-13s %s\n", verdict_name[finding->verdict], probe->what, finding->found);
    if (finding->advice[0]) printf("%-8s %-13s -> %s\n", "", "", finding->advice);
}

static void keep_finding(report *r, const at_probe *probe, const at_finding *finding)
{
    const char *advice = finding->advice[0] ? finding->advice : NULL;
    json_t     *entry =
        json_pack("{s:s, s:s, s:s, s:s?}", "what", probe->what, "verdict",
                  verdict_name[finding->verdict], "found", finding->found, "advice", advice);
    if (finding->facts) json_object_set(entry, "facts", finding->facts);
    json_array_append_new(r->findings, entry);
}

static void examine(report *r, const at_probe *probe, bool print)
{
    at_finding finding = {0};
    probe->look(&finding);
    assert(finding.found[0]);
    if (finding.verdict != AT_DIAGNOSIS_OK) assert(finding.advice[0]);
    r->count[finding.verdict]++;
    if (print)
        print_finding(probe, &finding);
    else
        keep_finding(r, probe, &finding);
    json_decref(finding.facts);
}

static at_err conclude(report *r, bool json, at_fail *fail)
{
    unsigned problems = r->count[AT_DIAGNOSIS_PROBLEM], notes = r->count[AT_DIAGNOSIS_NOTE];
    if (json)
        AT_TRY(at_print_json_take(json_pack("{s:s, s:i, s:i, s:o}", "anytime", ANYTIME_VERSION,
                                            "problems", (int)problems, "notes", (int)notes,
                                            "findings", r->findings),
                                  fail));
    else if (problems == 0)
        printf("\nanytime can train on this machine; %u note%s\n", notes, notes == 1 ? "" : "s");
    if (problems == 0) return AT_OK;
    return at_fail_set(fail, AT_ERR_FAILED, "do what the report says behind the arrows",
                       "the doctor found %u problem%s", problems, problems == 1 ? "" : "s");
}

at_err at_verb_doctor(at_parsed *parsed, const char *command, at_fail *fail)
{
    bool   json = parsed->settings.json;
    report r = {.findings = json ? json_array() : NULL};
    (void)command;
    if (parsed->words > 0)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "doctor takes no argument '%s'",
                           parsed->word[0]);
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (const at_probe *probe = groups[g]; probe->what; probe++) examine(&r, probe, !json);
    return conclude(&r, json, fail);
}
