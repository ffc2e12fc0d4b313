/* Round trips of a vector between two processes over TCP on this machine, for bench/net.py.
 *
 *     net_link KIND BYTES ROUNDS     prints the shortest and the median round trip in seconds, then
 *                                    the processor time of both processes per round trip
 *
 * KIND: raw (blocking sockets), link (net/link.h), tls (the same, encrypted), openssl (a bare loop
 * over blocking sockets). A round trip is the vector there and back, as parameters and gradient.
 */
#include <assert.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/link.h"
#include "net/socket.h"

enum { KIND_VECTOR = 1, KINDS = 2, HEAD = 64 };

typedef struct side {
    int      fd;
    bool     serves;
    at_link *link;
    SSL     *ssl;
    char    *vector;
    size_t   size;
} side;

static void need(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "net_link: %s failed\n", what);
    exit(1);
}

/* ---- with links ------------------------------------------------------------------------------ */

static size_t collects(void *self, uint32_t kind)
{
    (void)self;
    return kind == KIND_VECTOR ? HEAD : SIZE_MAX;
}

static at_err place(void *self, at_link_message *message, at_fail *fail)
{
    (void)fail;
    message->vector = ((side *)self)->vector;
    return AT_OK;
}

static void open_link(side *s, bool encrypts)
{
    at_tls          *tls;
    at_fail          fail;
    char             token[AT_TOKEN_SIZE] = "0123456789abcdef0123456789abcdef";
    at_link_receiver receiver = {
        .self = s, .kinds = KINDS, .size_max = 4096, .collects = collects, .place = place};
    need(!at_tls_new(token, &tls, &fail), "tls");
    at_err err = s->serves ? at_link_accepted(s->fd, tls, !encrypts, &receiver, &s->link, &fail)
                           : at_link_connected(s->fd, tls, encrypts, &receiver, &s->link, &fail);
    need(!err, "link");
}

static void link_send(side *s)
{
    static const char head[HEAD];
    at_fail           fail;
    need(!at_link_post(s->link, KIND_VECTOR, head, HEAD, s->vector, s->size, &fail), "post");
    for (;;) {
        need(!at_link_flush(s->link, &fail), "flush");
        if (at_link_is_idle(s->link)) return;
        at_link_await(s->link, AT_NEVER, NULL);
    }
}

static void link_receive(side *s)
{
    at_fail fail;
    for (;;) {
        need(!at_link_receive(s->link, &fail), "receive");
        if (s->link->complete) break;
        at_link_await(s->link, AT_NEVER, NULL);
    }
    at_link_next(s->link);
}

/* ---- without --------------------------------------------------------------------------------- */

static void raw_send(side *s)
{
    for (size_t at = 0; at < s->size;) {
        ssize_t sent = s->ssl ? SSL_write(s->ssl, s->vector + at, (int)(s->size - at))
                              : send(s->fd, s->vector + at, s->size - at, 0);
        need(sent > 0, "send");
        at += (size_t)sent;
    }
}

static void raw_receive(side *s)
{
    for (size_t at = 0; at < s->size;) {
        ssize_t got = s->ssl ? SSL_read(s->ssl, s->vector + at, (int)(s->size - at))
                             : recv(s->fd, s->vector + at, s->size - at, 0);
        need(got > 0, "receive");
        at += (size_t)got;
    }
}

static unsigned int client_key(SSL *ssl, const char *hint, char *identity,
                               unsigned int identity_max, unsigned char *key, unsigned int key_max)
{
    (void)ssl;
    (void)hint;
    snprintf(identity, identity_max, "bench");
    assert(key_max >= 32);
    memset(key, 7, 32);
    return 32;
}

static unsigned int server_key(SSL *ssl, const char *identity, unsigned char *key,
                               unsigned int key_max)
{
    (void)ssl;
    (void)identity;
    assert(key_max >= 32);
    memset(key, 7, 32);
    return 32;
}

static void open_ssl(side *s)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_psk_client_callback(context, client_key);
    SSL_CTX_set_psk_server_callback(context, server_key);
    s->ssl = SSL_new(context);
    SSL_set_fd(s->ssl, s->fd);
    need((s->serves ? SSL_accept(s->ssl) : SSL_connect(s->ssl)) == 1, "handshake");
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static int connected(int listener, const at_net_address *address, bool serves, bool blocks)
{
    struct sockaddr_storage peer;
    at_fail                 fail;
    bool                    loopback;
    int                     fd = -1;
    if (serves)
        while ((fd = at_net_accept(listener, &peer)) < 0)
            at_clock_sleep_until(at_clock_now() + AT_MS(1));
    else
        need(!at_net_connect(address, at_clock_now() + AT_SEC(10), NULL, &fd, &loopback, &fail),
             "connect");
    if (blocks) {
        int flags = fcntl(fd, F_GETFL);
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
    return fd;
}

static int compare(const void *a, const void *b)
{
    at_ns x = *(const at_ns *)a, y = *(const at_ns *)b;
    return x < y ? -1 : x > y;
}

static void play(side *s, int rounds)
{
    at_ns *took = calloc((size_t)rounds, sizeof *took);
    for (int i = 0; i < rounds; i++) {
        at_ns begin = at_clock_now();
        for (int half = 0; half < 2; half++) {
            bool sends = (half == 0) == !s->serves; /* who has connected begins */
            if (s->link)
                sends ? link_send(s) : link_receive(s);
            else
                sends ? raw_send(s) : raw_receive(s);
        }
        took[i] = at_clock_now() - begin;
    }
    qsort(took, (size_t)rounds, sizeof *took, compare);
    if (!s->serves) printf("%.9f %.9f\n", at_seconds(took[0]), at_seconds(took[rounds / 2]));
    free(took);
}

/* Processor time in seconds. */
static double cpu(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    at_net_address address;
    at_fail        fail;
    char           shown[AT_NET_TEXT_SIZE];
    int            listener;
    need(argc == 4, "usage: net_link KIND BYTES ROUNDS;");
    int  rounds = (int)strtol(argv[3], NULL, 10);
    bool link = strcmp(argv[1], "link") == 0, tls = strcmp(argv[1], "tls") == 0;
    need(!at_net_address_parse("127.0.0.1:0", &address, &fail), "address");
    need(!at_net_listen(&address, 0, &listener, shown, &fail), "listen");
    need(!at_net_address_parse(shown, &address, &fail), "address");
    pid_t child = fork();
    side  s = {.serves = child > 0, .size = (size_t)strtoull(argv[2], NULL, 10)};
    s.vector = calloc(1, s.size + 1);
    memset(s.vector, 1, s.size);
    s.fd = connected(listener, &address, s.serves, !link && !tls);
    if (link || tls) open_link(&s, tls);
    if (strcmp(argv[1], "openssl") == 0) open_ssl(&s);
    play(&s, rounds);
    if (child > 0) {
        waitpid(child, NULL, 0);
        printf("%.9f\n", (cpu(RUSAGE_SELF) + cpu(RUSAGE_CHILDREN)) / rounds);
    }
    return 0;
}
