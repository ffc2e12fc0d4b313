/* doctor.h - what `anytime doctor` looks at.
 *
 *     const at_probe at_probes_machine[] = {{"memory", probe_memory}, ..., {0}};
 *
 * A probe looks at one thing, says what it found, and where that is not as it should be, what it
 * means or what to do. A new probe is one function and one row.
 */
#ifndef AT_CLI_VERBS_DOCTOR_H
#define AT_CLI_VERBS_DOCTOR_H

#include <jansson.h>

/* ok; runs, but know this; will not run. */
#define AT_DIAGNOSIS_MAP(X) X(OK, "ok") X(NOTE, "note") X(PROBLEM, "problem")
typedef enum at_diagnosis {
#define X(id, text) AT_DIAGNOSIS_##id,
    AT_DIAGNOSIS_MAP(X)
#undef X
        AT_DIAGNOSIS_COUNT
} at_diagnosis;

typedef struct at_finding {
    at_diagnosis verdict;
    char         found[400];
    char         advice[240]; /* what it means, what to do; empty when all is well */
    json_t      *facts;       /* the numbers, for programs; NULL: none */
} at_finding;

typedef struct at_probe {
    const char *what;
    void (*look)(at_finding *finding);
} at_probe;

/* Each ends with a row of zeros. */
extern const at_probe at_probes_software[]; /* the program, its libraries, data sets */
extern const at_probe at_probes_machine[];  /* processor, memory, disk */
extern const at_probe at_probes_system[];   /* what the kernel lets us do, and how well */

/* Adds to what was found, printf-like. */
void at_finding_add(at_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Gives a verdict and the reason, printf-like; a worse verdict than before replaces it. */
void at_finding_judge(at_finding *finding, at_diagnosis verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
