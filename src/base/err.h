/* err.h - one error type for the whole project.
 *
 * An at_err is returned by everything that can fail because of the world: files, options,
 * memory, peers. Its value is also the exit code of the program. Where an error is born it
 * explains itself into an at_fail: one sentence for the user and, where we know one, a hint.
 * Mistakes of our own are asserted instead, and assertions stay on in every build.
 */
#ifndef AT_BASE_ERR_H
#define AT_BASE_ERR_H

#define AT_ERR_MAP(X)                      \
    X(OK, 0, "done")                       \
    X(FAILED, 1, "failed")                 \
    X(USAGE, 2, "wrong usage or settings") \
    X(FORMAT, 65, "malformed data")        \
    X(MISSING, 66, "input is missing")     \
    X(IO, 74, "cannot read or write")      \
    X(STOPPED, 75, "stopped early")

typedef enum at_err {
    AT_OK = 0,
#define X(id, code, text) AT_ERR_##id = code,
    AT_ERR_MAP(X)
#undef X
} at_err;

/* What went wrong, told to the person at the keyboard. Zeroed means "nothing yet". */
typedef struct at_fail {
    at_err err;
    char   text[640]; /* one sentence without a final full stop */
    char   hint[320]; /* what to do about it; empty when there is nothing useful to say */
} at_fail;

/* The words that belong to a code, for example "malformed data". */
const char *at_err_text(at_err err);

/* Fills *fail (which may be NULL) and returns err, so that it can be used as
 *     return at_fail_set(fail, AT_ERR_FORMAT, "gunzip it first", "%s: not an IDX file", path);
 * `hint` may be NULL. */
at_err at_fail_set(at_fail *fail, at_err err, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "not enough memory": AT_ERR_FAILED. The second says for what, as in
 *     return at_fail_memory_for(fail, "to read %s", path); */
at_err at_fail_memory(at_fail *fail);
at_err at_fail_memory_for(at_fail *fail, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts "CONTEXT: " in front of a failure that came from below. Returns fail->err. */
at_err at_fail_wrap(at_fail *fail, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The one macro that hides a return. */
#define AT_TRY(call)                       \
    do {                                   \
        at_err at_try_err = (call);        \
        if (at_try_err) return at_try_err; \
    } while (0)

#endif
