/* verbs.h - what `anytime` can be asked to do. A new verb is one file and one row in verbs.c. */
#ifndef AT_CLI_VERBS_VERBS_H
#define AT_CLI_VERBS_VERBS_H

#include "cli/options/options.h"

typedef struct at_verb {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line */
    const char *about;   /* a paragraph for --help, with examples */
    unsigned    options; /* AT_FOR_.. */
    at_err (*run)(at_parsed *parsed, const char *command, at_fail *fail);
} at_verb;

extern const at_verb at_verbs[]; /* ends with a row of zeros */

/* By name, or NULL. */
const at_verb *at_verb_find(const char *name);

/* `anytime train`: one training run. */
at_err at_verb_train(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime simulate`: the same in virtual time. */
at_err at_verb_simulate(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime compare`: the same run under several strategies. */
at_err at_verb_compare(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime sweep`: the same run with several values of an option. */
at_err at_verb_sweep(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime slices`: what cutting a batch costs. */
at_err at_verb_slices(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime link`: what messages cost. */
at_err at_verb_link(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime report`: recorded runs side by side. */
at_err at_verb_report(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime watch`: recorded runs, live, in a browser. */
at_err at_verb_watch(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime replay`: does a recorded run come out again? */
at_err at_verb_replay(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime predict`: what a trained model says, row by row. */
at_err at_verb_predict(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime eval`: how good a trained model is. */
at_err at_verb_eval(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime export`: a trained model for other programs. */
at_err at_verb_export(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime data`: data sets. */
at_err at_verb_data(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime models`: nets. */
at_err at_verb_models(at_parsed *parsed, const char *command, at_fail *fail);
/* `anytime doctor`: what this machine has. */
at_err at_verb_doctor(at_parsed *parsed, const char *command, at_fail *fail);

#endif
