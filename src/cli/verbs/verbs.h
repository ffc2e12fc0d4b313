/* verbs.h - the verbs of `anytime`. A new verb is one file and one row in verbs.c. */
#ifndef AT_CLI_VERBS_VERBS_H
#define AT_CLI_VERBS_VERBS_H

#include "cli/options/options.h"

typedef struct at_verb {
    const char *name;
    const char *usage;   /* arguments after the name */
    const char *summary; /* one line for `anytime --help` */
    const char *about;   /* a paragraph for `anytime VERB --help`, with examples */
    unsigned    options; /* AT_FOR_.. */
    at_err (*run)(at_parsed *parsed, const char *command, at_fail *fail);
} at_verb;

extern const at_verb at_verbs[]; /* ends with a row of zeros */

/* Finds a verb by name; NULL if unknown. */
const at_verb *at_verb_find(const char *name);

/* Each runs one verb of the table. `command` is the command line, for the record. */
at_err at_verb_train(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_run(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_hub(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_work(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_simulate(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_compare(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_sweep(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_slices(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_advise(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_calibrate(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_link(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_runs(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_show(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_report(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_watch(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_replay(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_predict(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_eval(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_export(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_data(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_models(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_doctor(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_manual(at_parsed *parsed, const char *command, at_fail *fail);
at_err at_verb_completion(at_parsed *parsed, const char *command, at_fail *fail);

#endif
