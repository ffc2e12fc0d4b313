/* tls.h - encryption: TLS 1.3 with a key that both ends know, and no certificates.
 *
 * The key is derived from the token of a run. Whoever does not have it can neither join nor pretend
 * to be the hub: a handshake that did not use the key is refused on both sides, also when the other
 * one shows a certificate.
 */
#ifndef AT_NET_TLS_H
#define AT_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/token.h"

/* What all connections of a process have in common. */
typedef struct at_tls at_tls;

/* Derives the key. AT_ERR_FAILED: OpenSSL cannot do it. */
at_err at_tls_new(const char token[AT_TOKEN_SIZE], at_tls **tls, at_fail *fail);
void   at_tls_free(at_tls *tls); /* accepts NULL */

/* One end of an encrypted connection. */
typedef struct at_tls_end at_tls_end;

/* Over a socket that does not block. `serves`: the hub's end. */
at_err at_tls_open(at_tls *tls, int fd, bool serves, at_tls_end **end, at_fail *fail);
void   at_tls_close(at_tls_end *end); /* accepts NULL; the socket stays open */

/* Continues the handshake; *done when it is over. AT_ERR_USAGE: the other end does not have the
 * same token; AT_ERR_MISSING: it is gone. */
at_err at_tls_handshake(at_tls_end *end, bool *done, at_fail *fail);

/* Bytes read or written; 0: nothing is possible now; -1: the other end is gone, sends garbage, or
 * changes its keys again and again. A write that returned 0 MUST be repeated with the same bytes,
 * which may have been moved. */
ssize_t at_tls_read(at_tls_end *end, void *to, size_t size);
ssize_t at_tls_write(at_tls_end *end, const void *from, size_t size);

/* To be called between two messages: changes the keys after 64 GiB. */
void at_tls_refresh(at_tls_end *end);

#endif
