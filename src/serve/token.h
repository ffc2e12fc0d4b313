/* token.h - the secret in the address of a dashboard: who has it may look. */
#ifndef AT_SERVE_TOKEN_H
#define AT_SERVE_TOKEN_H

#include <stdbool.h>

#include "base/err.h"

enum {
    AT_TOKEN_SIZE = 65, /* longest, its final zero included */
    AT_TOKEN_LENGTH_MIN = 16
};

/* A new one: 128 random bits as 32 hexadecimal digits. */
at_err at_token_make(char token[AT_TOKEN_SIZE], at_fail *fail);

/* The one in a file: 16 to 64 letters, digits, '-' and '_', and at most a line end. A file that is
 * not there is made with a new one, for nobody but its owner to read. */
at_err at_token_file(const char *path, char token[AT_TOKEN_SIZE], at_fail *fail);

/* Are they the same? The time it takes does not tell how much of `given` was right. */
bool at_token_same(const char *token, const char *given);

#endif
