#include "net/tls.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file.h"

/* The key belongs to the hash of one cipher suite, so there is only one. */
static const char          SUITE[] = "TLS_AES_128_GCM_SHA256";
static const unsigned char SUITE_ID[2] = {0x13, 0x01};
static const unsigned char IDENTITY[] = "anytime";
enum { KEY_SIZE = 32, IDENTITY_SIZE = sizeof IDENTITY - 1 };
static const uint64_t REFRESH_BYTES = UINT64_C(64) << 30; /* a fraction of what AES-GCM allows */
static const uint64_t HASTY_BYTES = 1 << 20;              /* nobody needs new keys before */

struct at_tls {
    SSL_CTX      *context;
    BIO_METHOD   *socket;
    unsigned char key[KEY_SIZE];
};

struct at_tls_end {
    SSL     *ssl;
    int      fd;
    bool     ready; /* the handshake is over */
    bool     hasty; /* the other end has changed its keys too soon: nothing more is received */
    uint64_t written;
    uint64_t received; /* since it has changed its keys */
};

/* ---- the key --------------------------------------------------------------------------------- */

static void derive_key(const char token[AT_TOKEN_SIZE], unsigned char key[KEY_SIZE])
{
    static const char purpose[] = "anytime tls 1.3 external key: ";
    char              text[sizeof purpose + AT_TOKEN_SIZE] = {0};
    size_t            length = strlen(token);
    assert(length < AT_TOKEN_SIZE);
    memcpy(text, purpose, sizeof purpose - 1);
    memcpy(text + sizeof purpose - 1, token, length);
    at_file_digest_bytes(text, sizeof text, key);
}

/* A session that holds the key, as OpenSSL wants it for TLS 1.3. */
static SSL_SESSION *session_of(SSL *ssl)
{
    const at_tls     *tls = SSL_get_app_data(ssl);
    const SSL_CIPHER *suite = SSL_CIPHER_find(ssl, SUITE_ID);
    SSL_SESSION      *session = SSL_SESSION_new();
    if (session && suite && SSL_SESSION_set1_master_key(session, tls->key, KEY_SIZE) &&
        SSL_SESSION_set_cipher(session, suite) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *size,
                     SSL_SESSION **session)
{
    (void)digest;
    *session = session_of(ssl);
    *identity = IDENTITY;
    *size = IDENTITY_SIZE;
    return *session != NULL; /* 0 ends the handshake */
}

static int find_key(SSL *ssl, const unsigned char *identity, size_t size, SSL_SESSION **session)
{
    bool known = size == IDENTITY_SIZE && memcmp(identity, IDENTITY, size) == 0;
    *session = known ? session_of(ssl) : NULL;
    return 1; /* without a session the handshake would need a certificate, and there is none */
}

/* ---- the socket ------------------------------------------------------------------------------ */

/* OpenSSL's own uses write, which raises SIGPIPE in the program that has taken a seat. */
static int send_bytes(BIO *bio, const char *from, int size)
{
    const at_tls_end *end = BIO_get_data(bio);
    ssize_t           sent = send(end->fd, from, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    BIO_clear_retry_flags(bio);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static int receive_bytes(BIO *bio, char *to, int size)
{
    const at_tls_end *end = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (end->hasty) return -1;
    ssize_t got = recv(end->fd, to, (size_t)size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        BIO_set_retry_read(bio);
    return (int)got;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "at_socket");
    if (method && BIO_meth_set_write(method, send_bytes) &&
        BIO_meth_set_read(method, receive_bytes) && BIO_meth_set_ctrl(method, control))
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* OpenSSL changes keys inside of a read, as often as the peer asks, which costs more than a
 * message. So a peer could keep us there for ever. */
static void watch_keys(int sends, int version, int type, const void *bytes, size_t size, SSL *ssl,
                       void *self)
{
    at_tls_end          *end = self;
    const unsigned char *kind = bytes;
    (void)version;
    (void)ssl;
    if (sends || type != SSL3_RT_HANDSHAKE || size == 0 || *kind != SSL3_MT_KEY_UPDATE) return;
    end->hasty = end->received < HASTY_BYTES;
    end->received = 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool set_up(at_tls *tls)
{
    SSL_CTX *context = tls->context;
    if (!tls->socket || !context) return false;
    SSL_CTX_set_psk_use_session_callback(context, offer_key);
    SSL_CTX_set_psk_find_session_callback(context, find_key);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
    return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) &&
           SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) &&
           SSL_CTX_set_ciphersuites(context, SUITE) && SSL_CTX_set_num_tickets(context, 0);
}

at_err at_tls_new(const char token[AT_TOKEN_SIZE], at_tls **tls, at_fail *fail)
{
    at_tls *t = *tls = calloc(1, sizeof *t);
    if (!t) return at_fail_memory(fail);
    derive_key(token, t->key);
    t->context = SSL_CTX_new(TLS_method());
    t->socket = socket_method();
    if (set_up(t)) return AT_OK;
    at_tls_free(t);
    *tls = NULL;
    return at_fail_set(fail, AT_ERR_FAILED, "use OpenSSL 3.0 or newer, with TLS 1.3",
                       "encryption cannot be set up");
}

void at_tls_free(at_tls *tls)
{
    if (!tls) return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->socket);
    OPENSSL_cleanse(tls->key, sizeof tls->key);
    free(tls);
}

at_err at_tls_open(at_tls *tls, int fd, bool serves, at_tls_end **end, at_fail *fail)
{
    at_tls_end *e = *end = calloc(1, sizeof *e);
    BIO        *bio = BIO_new(tls->socket);
    assert(fd >= 0);
    if (e) e->ssl = SSL_new(tls->context);
    if (!e || !e->ssl || !bio) {
        BIO_free(bio);
        at_tls_close(e);
        *end = NULL;
        return at_fail_memory(fail);
    }
    e->fd = fd;
    BIO_set_data(bio, e);
    BIO_set_init(bio, 1);
    SSL_set_bio(e->ssl, bio, bio);
    SSL_set_app_data(e->ssl, tls);
    SSL_set_msg_callback(e->ssl, watch_keys);
    SSL_set_msg_callback_arg(e->ssl, e);
    if (serves) {
        SSL_set_accept_state(e->ssl);
    } else { /* no certificate is trusted, so a server that shows one is refused */
        SSL_set_verify(e->ssl, SSL_VERIFY_PEER, NULL);
        SSL_set_connect_state(e->ssl);
    }
    return AT_OK;
}

void at_tls_close(at_tls_end *end)
{
    if (!end) return;
    if (end->ready) (void)SSL_shutdown(end->ssl); /* only says that we end */
    SSL_free(end->ssl);
    free(end);
    ERR_clear_error();
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool would_block(const at_tls_end *end, int result)
{
    int why = SSL_get_error(end->ssl, result);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
}

static at_err refused(at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_USAGE,
                       "give the hub's token: --token FILE or ANYTIME_TOKEN_FILE, a copy of "
                       "RUN/token",
                       "the other end does not have the same token");
}

at_err at_tls_handshake(at_tls_end *end, bool *done, at_fail *fail)
{
    assert(!end->ready);
    ERR_clear_error();
    int result = SSL_do_handshake(end->ssl);
    *done = false;
    if (result != 1 && would_block(end, result)) return AT_OK;
    bool gone = result != 1 && SSL_get_error(end->ssl, result) == SSL_ERROR_SYSCALL;
    if (gone)
        return at_fail_set(fail, AT_ERR_MISSING, NULL, "the other end has closed the connection");
    if (result != 1 || SSL_session_reused(end->ssl) != 1) return refused(fail);
    end->ready = *done = true;
    return AT_OK;
}

ssize_t at_tls_read(at_tls_end *end, void *to, size_t size)
{
    assert(end->ready && size > 0);
    ERR_clear_error();
    int got = SSL_read(end->ssl, to, size > INT_MAX ? INT_MAX : (int)size);
    if (got > 0) end->received += (uint64_t)got;
    if (got > 0) return got;
    return would_block(end, got) ? 0 : -1;
}

ssize_t at_tls_write(at_tls_end *end, const void *from, size_t size)
{
    assert(end->ready && size > 0);
    ERR_clear_error();
    int sent = SSL_write(end->ssl, from, size > INT_MAX ? INT_MAX : (int)size);
    if (sent > 0) end->written += (uint64_t)sent;
    if (sent > 0) return sent;
    return would_block(end, sent) ? 0 : -1;
}

void at_tls_refresh(at_tls_end *end)
{
    if (end->written < REFRESH_BYTES) return;
    end->written = 0;
    (void)SSL_key_update(end->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
}
