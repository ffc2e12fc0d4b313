/* Links, plain and encrypted: messages arrive whole, vectors in their places, lies are refused. */
#include <fcntl.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/rng.h"
#include "net/link.h"

enum { KINDS = 4, WITH_VECTOR = 3, COLLECTED = 8, SMALL_MAX = 256, TURNS_MAX = 1000000 };

/* What the receiving end has: room for one vector. */
typedef struct place {
    unsigned char *memory;
    size_t         size;
} place;

static size_t collects(void *self, uint32_t kind)
{
    (void)self;
    return kind == WITH_VECTOR ? COLLECTED : SIZE_MAX;
}

static at_err find_place(void *self, at_link_message *message, at_fail *fail)
{
    place *p = self;
    if (message->vector_size != p->size)
        return at_fail_set(fail, AT_ERR_FORMAT, NULL, "another size");
    message->vector = p->memory;
    return AT_OK;
}

/* Two ends over a socket pair. */
typedef struct pair {
    at_tls  *tls[2];
    at_link *link[2];
    place    place;
} pair;

static const char *const token = "0123456789abcdef0123456789abcdef";

static int open_tls(pair *p, int index, const char *text)
{
    at_fail fail;
    char    padded[AT_TOKEN_SIZE] = "";
    memcpy(padded, text, strlen(text));
    return (int)at_tls_new(padded, &p->tls[index], &fail);
}

static void open_pair(pair *p, bool encrypts, const char *other_token, size_t vector)
{
    int     fd[2];
    at_fail fail;
    *p = (pair){.place = {.memory = calloc(1, vector + 1), .size = vector}};
    at_link_receiver receiver = {.self = &p->place,
                                 .kinds = KINDS,
                                 .size_max = SMALL_MAX,
                                 .collects = collects,
                                 .place = find_place};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(open_tls(p, 0, token), AT_OK);
    assert_int_equal(open_tls(p, 1, other_token), AT_OK);
    assert_int_equal(at_link_connected(fd[0], p->tls[0], encrypts, &receiver, &p->link[0], &fail),
                     AT_OK);
    assert_int_equal(at_link_accepted(fd[1], p->tls[1], !encrypts, &receiver, &p->link[1], &fail),
                     AT_OK);
}

static void close_pair(pair *p)
{
    for (int i = 0; i < 2; i++) {
        at_link_free(p->link[i]);
        at_tls_free(p->tls[i]);
    }
    free(p->place.memory);
}

/* Moves bytes in both directions until the second end has a message, or one of them fails. */
static at_err exchange(pair *p, at_fail *fail)
{
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        for (int i = 0; i < 2; i++) {
            at_err err = at_link_flush(p->link[i], fail);
            if (!err && !p->link[i]->complete) err = at_link_receive(p->link[i], fail);
            if (err) return err;
        }
        if (p->link[1]->complete) return AT_OK;
    }
    return AT_ERR_FAILED;
}

static void messages_arrive_in_order_and_whole(void **state)
{
    (void)state;
    for (int encrypts = 0; encrypts <= 1; encrypts++) {
        pair    p;
        at_fail fail = {0};
        open_pair(&p, encrypts, token, 0);
        for (uint32_t i = 0; i < 100; i++)
            assert_int_equal(at_link_post(p.link[0], i % 3, &i, i % 5, NULL, 0, &fail), AT_OK);
        for (uint32_t i = 0; i < 100; i++) {
            assert_int_equal(exchange(&p, &fail), AT_OK);
            assert_int_equal(p.link[1]->message.kind, i % 3);
            assert_int_equal(p.link[1]->message.size, i % 5);
            assert_memory_equal(p.link[1]->message.bytes, &i, i % 5);
            at_link_next(p.link[1]);
        }
        assert_true(at_link_is_idle(p.link[0]));
        close_pair(&p);
    }
}

/* Much larger than what a socket takes at once, and changed while it is on its way. */
static void vectors_arrive_in_their_places_as_they_were_when_detached(void **state)
{
    (void)state;
    enum { SIZE = 5 << 20 };
    unsigned char *vector = malloc(SIZE), *before = malloc(SIZE);
    for (int encrypts = 0; encrypts <= 1; encrypts++) {
        pair    p;
        at_fail fail = {0};
        at_rng  rng = at_rng_stream(1, 1, AT_RNG_PURPOSE_NOISE, 0);
        for (size_t i = 0; i < SIZE; i++) before[i] = vector[i] = (unsigned char)at_rng_next(&rng);
        open_pair(&p, encrypts, token, SIZE);
        assert_int_equal(
            at_link_post(p.link[0], WITH_VECTOR, "12345678", COLLECTED, vector, SIZE, &fail),
            AT_OK);
        for (int i = 0; i < 20; i++) { /* some of it, not all */
            assert_int_equal(at_link_flush(p.link[0], &fail), AT_OK);
            assert_int_equal(at_link_receive(p.link[1], &fail), AT_OK);
            assert_int_equal(at_link_receive(p.link[0], &fail), AT_OK);
        }
        assert_false(at_link_is_idle(p.link[0]));
        assert_int_equal(at_link_detach(p.link[0], &fail), AT_OK);
        memset(vector, 0, SIZE);
        assert_int_equal(exchange(&p, &fail), AT_OK);
        assert_memory_equal(p.link[1]->message.bytes, "12345678", COLLECTED);
        assert_memory_equal(p.place.memory, before, SIZE);
        close_pair(&p);
    }
    free(vector);
    free(before);
}

static void who_has_another_token_is_refused_on_both_sides(void **state)
{
    (void)state;
    pair    p;
    at_fail fail = {0};
    open_pair(&p, true, "fedcba9876543210fedcba9876543210", 0);
    assert_int_equal(at_link_post(p.link[0], 1, "x", 1, NULL, 0, &fail), AT_OK);
    assert_int_equal(exchange(&p, &fail), AT_ERR_USAGE);
    assert_non_null(strstr(fail.text, "token"));
    assert_false(p.link[1]->complete);
    assert_int_not_equal(exchange(&p, &fail), AT_OK); /* the other one, which is told */
    assert_false(p.link[1]->complete);
    close_pair(&p);
}

static void plain_connections_from_elsewhere_are_refused(void **state)
{
    (void)state;
    pair    p;
    at_fail fail = {0};
    open_pair(&p, false, token, 0);
    p.link[1]->may_be_plain = false;
    assert_int_equal(at_link_post(p.link[0], 1, "x", 1, NULL, 0, &fail), AT_OK);
    assert_int_equal(exchange(&p, &fail), AT_ERR_FORMAT);
    assert_non_null(strstr(fail.text, "encrypted"));
    close_pair(&p);
}

/* The head of a message that lies, sent by hand. */
static at_err receive_head(uint32_t kind, uint64_t size)
{
    pair          p;
    at_fail       fail = {0};
    unsigned char bytes[AT_FRAME_HEAD + COLLECTED] = {0};
    open_pair(&p, false, token, 64);
    at_frame_write(bytes, kind, size);
    assert_int_equal(write(p.link[0]->fd, bytes, sizeof bytes), (ssize_t)sizeof bytes);
    at_err err = at_link_receive(p.link[1], &fail);
    assert_true(!err == !fail.text[0]);
    close_pair(&p);
    return err;
}

static void lies_about_sizes_and_kinds_are_refused_before_memory_is_reserved(void **state)
{
    (void)state;
    assert_int_equal(receive_head(0, COLLECTED), AT_OK);
    assert_int_equal(receive_head(WITH_VECTOR, COLLECTED + 64), AT_OK);
    static const uint64_t sizes[] = {SMALL_MAX + 1, UINT64_C(1) << 40, UINT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(receive_head(0, sizes[i]), AT_ERR_FORMAT);
        assert_int_equal(receive_head(WITH_VECTOR, sizes[i]), AT_ERR_FORMAT);
    }
    assert_int_equal(receive_head(WITH_VECTOR, COLLECTED - 1), AT_ERR_FORMAT);
    assert_int_equal(receive_head(WITH_VECTOR, COLLECTED + 63), AT_ERR_FORMAT);
    assert_int_equal(receive_head(KINDS, 0), AT_ERR_FORMAT);
    assert_int_equal(receive_head(UINT32_MAX, 0), AT_ERR_FORMAT);
}

static void the_end_of_the_other_side_is_noticed(void **state)
{
    (void)state;
    for (int encrypts = 0; encrypts <= 1; encrypts++) {
        pair    p;
        at_fail fail = {0};
        open_pair(&p, encrypts, token, 0);
        assert_int_equal(at_link_post(p.link[0], 1, "x", 1, NULL, 0, &fail), AT_OK);
        assert_int_equal(exchange(&p, &fail), AT_OK);
        at_link_next(p.link[1]);
        at_link_free(p.link[0]);
        p.link[0] = NULL;
        assert_int_equal(at_link_receive(p.link[1], &fail), AT_ERR_MISSING);
        close_pair(&p);
    }
}

/* ---- peers that keep us busy ----------------------------------------------------------------- */

/* One that knows the token, and is not ours. */
typedef struct stranger {
    SSL_CTX *context;
    SSL     *ssl;
    int      fd; /* of our end, which is of `link`, too */
    at_tls  *tls;
    at_link *link;
    place    place;
} stranger;

static int give_key(SSL *ssl, const EVP_MD *digest, const unsigned char **identity, size_t *size,
                    SSL_SESSION **session)
{
    static const unsigned char suite[] = {0x13, 0x01}, name[] = "anytime";
    static const char          purpose[] = "anytime tls 1.3 external key: ";
    char                       text[sizeof purpose + AT_TOKEN_SIZE] = {0};
    unsigned char              key[32];
    (void)digest;
    memcpy(text, purpose, sizeof purpose - 1);
    memcpy(text + sizeof purpose - 1, token, strlen(token));
    at_file_digest_bytes(text, sizeof text, key);
    *session = SSL_SESSION_new();
    *identity = name;
    *size = sizeof name - 1;
    return SSL_SESSION_set1_master_key(*session, key, sizeof key) &&
           SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, suite)) &&
           SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
}

static void connect_stranger(stranger *s, size_t vector)
{
    int     fd[2], much = 1 << 20;
    at_fail fail;
    char    padded[AT_TOKEN_SIZE] = "";
    memcpy(padded, token, strlen(token));
    *s = (stranger){.place = {.memory = calloc(1, vector + 1), .size = vector}};
    at_link_receiver receiver = {.self = &s->place,
                                 .kinds = KINDS,
                                 .size_max = SMALL_MAX,
                                 .collects = collects,
                                 .place = find_place};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &much, sizeof much), 0);
    assert_int_equal(at_tls_new(padded, &s->tls, &fail), AT_OK);
    assert_int_equal(at_link_accepted(fd[1], s->tls, false, &receiver, &s->link, &fail), AT_OK);
    s->fd = fd[0];
    s->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_psk_use_session_callback(s->context, give_key);
    s->ssl = SSL_new(s->context);
    SSL_set_fd(s->ssl, s->fd);
    while (SSL_connect(s->ssl) != 1) assert_int_equal(at_link_receive(s->link, &fail), AT_OK);
    assert_int_equal(at_link_receive(s->link, &fail), AT_OK);
    assert_int_equal(s->link->state, AT_LINK_OPEN);
}

static void disconnect_stranger(stranger *s)
{
    SSL_free(s->ssl);
    SSL_CTX_free(s->context);
    close(s->fd);
    at_link_free(s->link);
    at_tls_free(s->tls);
    free(s->place.memory);
}

/* Each byte costs a call of the system or two, and a peer can send them as fast as we read. */
static void a_message_in_records_of_a_byte_is_read_in_parts(void **state)
{
    (void)state;
    enum { VECTOR = 5000, SIZE = AT_FRAME_HEAD + COLLECTED + VECTOR, AT_ONCE = 200 };
    stranger      s;
    at_fail       fail = {0};
    unsigned char bytes[SIZE];
    size_t        sent = 0;
    bool          in_parts = false;
    connect_stranger(&s, VECTOR);
    memset(bytes, 7, sizeof bytes);
    at_frame_write(bytes, WITH_VECTOR, SIZE - AT_FRAME_HEAD);
    while (!s.link->complete) {
        while (sent < SIZE && SSL_write(s.ssl, bytes + sent, 1) == 1) sent++;
        uint64_t before = s.link->received;
        assert_int_equal(at_link_receive(s.link, &fail), AT_OK);
        assert_true(s.link->received - before < AT_ONCE);
        in_parts = in_parts || s.link->more;
        if (s.link->more) assert_true(at_link_await(s.link, 0, NULL));
    }
    assert_true(in_parts);
    assert_memory_equal(s.place.memory, bytes + AT_FRAME_HEAD + COLLECTED, VECTOR);
    disconnect_stranger(&s);
}

static void who_changes_keys_all_the_time_is_disconnected(void **state)
{
    (void)state;
    stranger s;
    at_fail  fail = {0};
    connect_stranger(&s, 0);
    assert_int_equal(SSL_key_update(s.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    assert_int_equal(SSL_do_handshake(s.ssl), 1);
    assert_int_equal(at_link_receive(s.link, &fail), AT_ERR_MISSING);
    disconnect_stranger(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_in_order_and_whole),
        cmocka_unit_test(vectors_arrive_in_their_places_as_they_were_when_detached),
        cmocka_unit_test(who_has_another_token_is_refused_on_both_sides),
        cmocka_unit_test(plain_connections_from_elsewhere_are_refused),
        cmocka_unit_test(lies_about_sizes_and_kinds_are_refused_before_memory_is_reserved),
        cmocka_unit_test(the_end_of_the_other_side_is_noticed),
        cmocka_unit_test(a_message_in_records_of_a_byte_is_read_in_parts),
        cmocka_unit_test(who_changes_keys_all_the_time_is_disconnected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
