/* token.h - secret tokens: in the URL of a dashboard, and of the workers that may join a run. */
#ifndef AT_BASE_TOKEN_H
#define AT_BASE_TOKEN_H

#include <stdbool.h>

#include "base/err.h"

enum {
    AT_TOKEN_SIZE = 65, /* maximum, including the final zero */
    AT_TOKEN_LENGTH_MIN = 16
};

/* Creates a token: 128 random bits as 32 hexadecimal digits. */
at_err at_token_make(char token[AT_TOKEN_SIZE], at_fail *fail);

/* Reads a token from a file: 16 to 64 letters, digits, '-' and '_', optionally with a newline. A
 * missing file is created with a new token, readable by its owner only; processes that do that at
 * the same time get the same one. */
at_err at_token_file(const char *path, char token[AT_TOKEN_SIZE], at_fail *fail);

/* True if others than its owner can read or change this file. */
bool at_token_is_exposed(const char *path);

/* Compares in constant time, so that timing does not reveal how much of `given` was right. */
bool at_token_equal(const char *token, const char *given);

#endif
