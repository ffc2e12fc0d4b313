/* rule.h - what every rule of every family has: a name, arguments, and checks.
 *
 * A rule is written NAME[:ARG,ARG..], for example `first:9` or `grow:2,5,max=512`. Arguments are
 * positional or named (NAME=VALUE); what is left out has a default. A rule declares its arguments
 * in its row (rules.h), and reading, showing, listing and checking them is done here for all of
 * them, so a new rule with a number needs no code outside its own file.
 */
#ifndef AT_STEP_RULES_RULE_H
#define AT_STEP_RULES_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "base/time.h"

struct at_plan;

/* The families, in the order in which their rules are settled: a rule may use what the rules before
 * it have settled. */
enum at_family {
    AT_WORK,
    AT_GATHER,
    AT_RELEASE,
    AT_NEWER,
    AT_STALE,
    AT_SIZE,
    AT_MIX,
    AT_OUTER,
    AT_FAMILY_COUNT
};
extern const char *const at_family_name[AT_FAMILY_COUNT];

typedef enum at_arg_type {
    AT_ARG_WHOLE, /* 64, 6e4, 60k */
    AT_ARG_SPAN,  /* 4, or from 1 to 4: 1-4, or to what the rule says: 1- */
    AT_ARG_REAL,
    AT_ARG_TIME,   /* 50ms; above 0 */
    AT_ARG_EITHER, /* a whole number, or a time with its unit: 5, 3s */
    AT_ARG_WORD,   /* one of `words` */
    AT_ARG_NAME    /* any text; the rule checks it */
} at_arg_type;

enum { AT_RULE_ARGS_MAX = 6, AT_RULE_NAME_SIZE = 160, AT_RULE_TEXT_SIZE = 320 };

#define AT_SPAN_OPEN INT64_MAX

/* The value of an argument. */
typedef struct at_value {
    bool    given; /* by the user or the strategy; otherwise it is the default */
    int64_t whole; /* a number, nanoseconds (AT_NEVER: left open) or the index of a word */
    int64_t last;  /* of a span; AT_SPAN_OPEN: not said */
    bool    timed; /* of either: it is a time */
    double  real;
    char    name[AT_RULE_NAME_SIZE]; /* AT_ARG_NAME */
} at_value;

typedef struct at_rule_arg {
    const char        *name; /* lower case; texts show it in capitals */
    at_arg_type        type;
    double             min, max; /* of numbers; min itself is excluded when `above` */
    bool               above;
    const char        *unit;     /* of numbers, for messages; of times: shown with it; NULL: none */
    const char *const *words;    /* ends with NULL */
    const char        *open;     /* of times: the word for "the rule finds it", its default */
    const char        *fallback; /* the default, written as by the user; NULL: `derive`, or open */
    /* The default where it depends on the plan: families before this one are settled. */
    int64_t (*derive)(const struct at_plan *plan);
    bool brief; /* shown only when given */
} at_rule_arg;

typedef struct at_rule {
    const char *name, *summary;
    at_rule_arg arg[AT_RULE_ARGS_MAX]; /* those with a name */
    /* Sets what the rest of the plan sees of the arguments, such as batch or time_limit. Refuses
     * arguments that contradict an option. Optional. */
    at_err (*settle)(struct at_plan *plan, at_fail *fail);
    /* Refuses combinations with other rules; all families are settled. Optional. */
    at_err (*check)(const struct at_plan *plan, at_fail *fail);
} at_rule;

/* The rows of a family, in order; NULL after the last one. */
const at_rule *at_rule_row(enum at_family family, size_t index);

/* Finds a rule by its name: the first `length` characters of `text`. Of several rows with this name
 * (`local:50`, `local:50ms`) it is the first that takes the arguments which follow the name. An
 * unknown name is AT_ERR_USAGE with the nearest known one as a hint. */
at_err at_rule_find(enum at_family family, const char *text, size_t length, const at_rule **rule,
                    at_fail *fail);

/* The index of the argument of this name; -1: the rule has none. */
int at_rule_arg_find(const at_rule *rule, const char *name, size_t length);

/* Parses "ARG,NAME=ARG,.." into the values of those arguments. With `lenient`, named arguments that
 * only other rules of the family have are checked and ignored. `family` is for messages. */
at_err at_rule_parse(enum at_family family, const at_rule *rule, const char *text, bool lenient,
                     at_value *value, at_fail *fail);

/* Gives every argument that was not given its default. */
void at_rule_complete(const at_rule *rule, const struct at_plan *plan, at_value *value);

/* Appends the rule with its arguments in the form that at_rule_parse reads: "first:9". */
void at_rule_show(const at_rule *rule, const at_value *value, at_text *text);

/* Appends all rules of a family as --help lists them: "all first[:K] any[:K]". */
void at_rule_list(enum at_family family, at_text *text);

#endif
