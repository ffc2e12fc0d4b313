/* subprocess.h - runs a program, waits for it and captures its output.
 *
 * No shell is involved: the program is found in PATH and its arguments are passed unchanged. The
 * caller MUST block the stop signals (SIGINT, SIGTERM, SIGHUP) while it runs; when one is pending
 * the program is stopped too, so that the caller can clean up before the signal is delivered.
 */
#ifndef AT_DATA_FETCH_SUBPROCESS_H
#define AT_DATA_FETCH_SUBPROCESS_H

#include <signal.h>
#include <stdint.h>

#include "base/err.h"

/* Most bytes of a file that the program may write, unless this process has a lower limit. */
#define AT_SUBPROCESS_FILE_MAX (UINT64_C(4) << 30)

/* The stop signals. */
sigset_t at_subprocess_stop_signals(void);

/* Runs arguments[0] (the last entry is NULL) in `folder`, without input; the end of its output
 * appears in the failure. `hint` is for a program that is not installed. *code becomes its exit
 * code, or -1 when it had none; code may be NULL.
 *   AT_ERR_MISSING  no such program
 *   AT_ERR_STOPPED  it or this process was stopped by a signal
 *   AT_ERR_FAILED   it failed */
at_err at_subprocess_run(const char *const *arguments, const char *folder, const char *hint,
                         int *code, at_fail *fail);

/* Called about once per second while a program runs. */
typedef struct at_subprocess_watch {
    void (*look)(void *self); /* NULL: nobody looks */
    void *self;
} at_subprocess_watch;

/* The same, watched. */
at_err at_subprocess_run_watched(const char *const *arguments, const char *folder, const char *hint,
                                 at_subprocess_watch watch, int *code, at_fail *fail);

#endif
