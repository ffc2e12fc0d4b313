/* subprocess.h - run a program, wait for it, keep what it said.
 *
 * No shell is involved: the program is found in PATH and gets its arguments as they are. While it
 * runs, the signals that stop us (SIGINT, SIGTERM, SIGHUP) MUST be blocked by the caller; when one
 * is pending the child is stopped too, so that the caller can clean up before the signal is
 * delivered.
 */
#ifndef AT_DATA_FETCH_SUBPROCESS_H
#define AT_DATA_FETCH_SUBPROCESS_H

#include <signal.h>

#include "base/err.h"

/* The signals that stop us. */
sigset_t at_child_stop_signals(void);

/* Runs arguments[0] (the last entry is NULL) in `folder`, with no input; its output and errors are
 * only shown, the end of them, in the failure. `hint` is for a program that cannot be found.
 *   AT_ERR_MISSING  no such program
 *   AT_ERR_STOPPED  it or we were told to stop by a signal
 *   AT_ERR_FAILED   it failed */
at_err at_child_run(const char *const *arguments, const char *folder, const char *hint,
                    at_fail *fail);

/* The same; *code becomes the program's exit code, or -1 when it had none. */
at_err at_child_run_code(const char *const *arguments, const char *folder, const char *hint,
                         int *code, at_fail *fail);

#endif
