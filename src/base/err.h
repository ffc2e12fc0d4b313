/* err.h - one error type for the whole project.
 *
 * Functions that can fail for external reasons (files, options, memory, peers) return an at_err,
 * whose value is also the exit code of the program. The place that detects an error describes it in
 * an at_fail: one sentence for the user and, if possible, a hint. Programming errors are asserted
 * instead; assertions stay on in every build.
 */
#ifndef AT_BASE_ERR_H
#define AT_BASE_ERR_H

typedef enum at_err {
    AT_OK = 0,
    AT_ERR_FAILED = 1,
    AT_ERR_USAGE = 2,    /* wrong usage or settings */
    AT_ERR_FORMAT = 65,  /* malformed data */
    AT_ERR_MISSING = 66, /* missing input */
    AT_ERR_IO = 74,      /* cannot read or write */
    AT_ERR_STOPPED = 75  /* stopped early */
} at_err;

/* Description of an error for the user. Zeroed: no error yet. */
typedef struct at_fail {
    at_err err;
    char   text[640]; /* one sentence without a final full stop */
    char   hint[320]; /* what to do about it; may be empty */
} at_fail;

/* Fills *fail (which may be NULL) and returns err, for use as
 *     return at_fail_set(fail, AT_ERR_FORMAT, "gunzip it first", "%s: not an IDX file", path);
 * `hint` may be NULL. Control characters, which may come from files, become question marks. */
at_err at_fail_set(at_fail *fail, at_err err, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "not enough memory": AT_ERR_FAILED. The second form adds the purpose:
 *     return at_fail_memory_for(fail, "to read %s", path); */
at_err at_fail_memory(at_fail *fail);
at_err at_fail_memory_for(at_fail *fail, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prepends "CONTEXT: " to a failure of a callee. Returns fail->err. */
at_err at_fail_wrap(at_fail *fail, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns from the calling function if `call` fails. */
#define AT_TRY(call)                       \
    do {                                   \
        at_err at_try_err = (call);        \
        if (at_try_err) return at_try_err; \
    } while (0)

#endif
