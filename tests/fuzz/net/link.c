/* Fuzz target: any bytes as what arrives over a link. Messages that are accepted are within the
 * limits of the receiver, and a vector is never written outside of its place. */
#include "net/link.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KINDS = 22, WITH_VECTOR = 20, COLLECTED = 16, SMALL_MAX = 4096, VECTOR = 256 };

static unsigned char vector[VECTOR + 1];

static size_t collects(void *self, uint32_t kind)
{
    (void)self;
    return kind == WITH_VECTOR ? COLLECTED : SIZE_MAX;
}

static at_err place(void *self, at_link_message *message, at_fail *fail)
{
    (void)self;
    if (message->vector_size > VECTOR) return at_fail_set(fail, AT_ERR_FORMAT, NULL, "too long");
    message->vector = vector;
    return AT_OK;
}

static void receive_all(at_link *link)
{
    at_fail fail = {0};
    while (!at_link_receive(link, &fail)) {
        if (!link->complete) return;
        const at_link_message *m = &link->message;
        assert(m->kind < KINDS && m->size <= SMALL_MAX && m->vector_size <= VECTOR);
        assert(m->bytes[m->size] == 0);
        assert(m->vector_size == 0 || (m->kind == WITH_VECTOR && m->size == COLLECTED));
        at_link_next(link);
    }
    assert(fail.err && fail.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_link_receiver receiver = {
        .kinds = KINDS, .size_max = SMALL_MAX, .collects = collects, .place = place};
    at_link *link;
    at_fail  fail;
    int      fd[2];
    if (size > 65536 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) != 0) return 0;
    if (at_link_connected(fd[1], NULL, false, &receiver, &link, &fail)) return 0;
    vector[VECTOR] = 0x5a;
    (void)send(fd[0], data, size, MSG_DONTWAIT);
    receive_all(link);
    assert(vector[VECTOR] == 0x5a);
    close(fd[0]);
    at_link_free(link);
    return 0;
}
