/* inject.c - makes one call of the system fail, so that tests can see what becomes of it.
 *
 * The program `anytime_faulty` is anytime with the calls below redirected to here, in every layer
 * that allocates, forks, writes or talks MPI (tests/CMakeLists.txt). The environment says which:
 *
 *     ANYTIME_FAULT=write:3          the third write of the first process fails
 *     ANYTIME_FAULT=malloc:2@child   the second malloc of a child fails, in one child only
 *     ANYTIME_FAULT=scramble:5       the fifth message over MPI has wrong bytes in its head
 *     ANYTIME_FAULT=malloc:2@child3  the same, in the third child only
 *     ANYTIME_FAULT=fork:5+          the fifth fork of the first process and all later ones fail
 *     ANYTIME_FAULT_COUNTS=FILE      the first process writes how often it called what
 *
 * Everything else goes through. A failure looks like the real one: errno is set as a full disk, a
 * process limit or an empty memory would.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if ANYTIME_HAS_mpi
#include <mpi.h>
#endif

#define CALL_MAP(X)   \
    X(malloc)         \
    X(calloc)         \
    X(realloc)        \
    X(aligned_alloc)  \
    X(strdup)         \
    X(mmap)           \
    X(fork)           \
    X(pipe2)          \
    X(open)           \
    X(write)          \
    X(fsync)          \
    X(rename)         \
    X(ftruncate)      \
    X(MPI_Issend)     \
    X(MPI_Irecv)      \
    X(MPI_Testsome)   \
    X(MPI_Iallgather) \
    X(MPI_Iallreduce) \
    X(MPI_Ibcast)     \
    X(scramble)

typedef enum call {
#define X(name) CALL_##name,
    CALL_MAP(X)
#undef X
        CALL_COUNT
} call;

static const char *const call_name[CALL_COUNT] = {
#define X(name) #name,
    CALL_MAP(X)
#undef X
};

static uint64_t     calls[CALL_COUNT];
static call         wanted = CALL_COUNT;
static uint64_t     wanted_at;
static bool         in_child, onward;
static uint64_t     child_wanted, child; /* number of the fork that made it; 0: any */
static pid_t        first;
static atomic_bool *fired; /* shared with children: one failure per run */

static void read_wish(const char *wish)
{
    const char *colon = strchr(wish, ':');
    for (int i = 0; colon && i < CALL_COUNT; i++)
        if (strlen(call_name[i]) == (size_t)(colon - wish) &&
            strncmp(wish, call_name[i], (size_t)(colon - wish)) == 0)
            wanted = (call)i;
    if (!colon || wanted == CALL_COUNT) {
        fprintf(stderr, "ANYTIME_FAULT=%s: no such call\n", wish);
        _exit(99);
    }
    wanted_at = strtoull(colon + 1, NULL, 10);
    const char *where = strstr(colon, "@child");
    in_child = where != NULL;
    if (where) child_wanted = strtoull(where + strlen("@child"), NULL, 10);
    onward = strchr(colon, '+') != NULL;
}

static void forget_calls(void)
{
    memset(calls, 0, sizeof calls);
}

__attribute__((constructor)) static void begin(void)
{
    const char *wish = getenv("ANYTIME_FAULT");
    first = getpid();
    fired = mmap(NULL, sizeof *fired, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (fired == MAP_FAILED) _exit(99);
    if (wish) read_wish(wish);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("ANYTIME_FAULT_COUNTS");
    FILE       *file = path && getpid() == first ? fopen(path, "w") : NULL;
    if (!file) return;
    for (int i = 0; i < CALL_COUNT; i++)
        fprintf(file, "%s %llu\n", call_name[i], (unsigned long long)calls[i]);
    fclose(file);
}

/* Is this the call that fails? */
static bool fails(call which, int error)
{
    bool     here = (getpid() != first) == in_child;
    uint64_t count = ++calls[which];
    if (which != wanted || !here || (child_wanted > 0 && child_wanted != child)) return false;
    if (onward ? count < wanted_at : count != wanted_at) return false;
    if (atomic_exchange(fired, true) && !onward) return false;
    errno = error;
    return true;
}

/* ---- the calls ------------------------------------------------------------------------------ */

void   *at_faulty_malloc(size_t size);
void   *at_faulty_calloc(size_t count, size_t size);
void   *at_faulty_realloc(void *memory, size_t size);
void   *at_faulty_aligned_alloc(size_t alignment, size_t size);
char   *at_faulty_strdup(const char *text);
void   *at_faulty_mmap(void *at, size_t size, int access, int flags, int file, off_t offset);
pid_t   at_faulty_fork(void);
int     at_faulty_pipe2(int ends[2], int flags);
int     at_faulty_open(const char *path, int flags, mode_t mode);
ssize_t at_faulty_write(int file, const void *bytes, size_t size);
int     at_faulty_fsync(int file);
int     at_faulty_rename(const char *from, const char *to);
int     at_faulty_ftruncate(int file, off_t size);

void *at_faulty_malloc(size_t size)
{
    return fails(CALL_malloc, ENOMEM) ? NULL : malloc(size);
}

void *at_faulty_calloc(size_t count, size_t size)
{
    return fails(CALL_calloc, ENOMEM) ? NULL : calloc(count, size);
}

void *at_faulty_realloc(void *memory, size_t size)
{
    return fails(CALL_realloc, ENOMEM) ? NULL : realloc(memory, size);
}

void *at_faulty_aligned_alloc(size_t alignment, size_t size)
{
    return fails(CALL_aligned_alloc, ENOMEM) ? NULL : aligned_alloc(alignment, size);
}

char *at_faulty_strdup(const char *text)
{
    return fails(CALL_strdup, ENOMEM) ? NULL : strdup(text);
}

void *at_faulty_mmap(void *at, size_t size, int access, int flags, int file, off_t offset)
{
    return fails(CALL_mmap, ENOMEM) ? MAP_FAILED : mmap(at, size, access, flags, file, offset);
}

pid_t at_faulty_fork(void)
{
    if (fails(CALL_fork, EAGAIN)) return -1;
    pid_t pid = fork();
    if (pid == 0) {
        child = calls[CALL_fork];
        forget_calls();
    }
    return pid;
}

int at_faulty_pipe2(int ends[2], int flags)
{
    return fails(CALL_pipe2, EMFILE) ? -1 : pipe2(ends, flags);
}

int at_faulty_open(const char *path, int flags, mode_t mode)
{
    return fails(CALL_open, EMFILE) ? -1 : open(path, flags, mode);
}

ssize_t at_faulty_write(int file, const void *bytes, size_t size)
{
    return fails(CALL_write, ENOSPC) ? -1 : write(file, bytes, size);
}

int at_faulty_fsync(int file)
{
    return fails(CALL_fsync, EIO) ? -1 : fsync(file);
}

int at_faulty_rename(const char *from, const char *to)
{
    return fails(CALL_rename, EIO) ? -1 : rename(from, to);
}

int at_faulty_ftruncate(int file, off_t size)
{
    return fails(CALL_ftruncate, EIO) ? -1 : ftruncate(file, size);
}

/* ---- MPI ------------------------------------------------------------------------------------ */

#if ANYTIME_HAS_mpi

int at_faulty_MPI_Issend(const void *data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request *request);
int at_faulty_MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Request *request);
int at_faulty_MPI_Testsome(int count, MPI_Request *requests, int *done, int *indices,
                           MPI_Status *statuses);
int at_faulty_MPI_Iallgather(const void *out, int out_count, MPI_Datatype out_type, void *in,
                             int in_count, MPI_Datatype in_type, MPI_Comm comm,
                             MPI_Request *request);
int at_faulty_MPI_Iallreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm, MPI_Request *request);

/* A copy of the message with eight wrong bytes, elsewhere in every message; one a run. */
static const void *scramble(const void *data, int count)
{
    size_t         size = (size_t)count * sizeof(float), head = size < 128 ? size : 128;
    size_t         at = wanted_at * 8 % head;
    unsigned char *copy = malloc(size); /* never released: MPI may still use it */
    if (!copy) _exit(99);
    memcpy(copy, data, size);
    memset(copy + at, 0xff, head - at < 8 ? head - at : 8);
    return copy;
}

int at_faulty_MPI_Issend(const void *data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm comm, MPI_Request *request)
{
    if (fails(CALL_scramble, 0)) data = scramble(data, count);
    if (fails(CALL_MPI_Issend, EIO)) return MPI_ERR_OTHER;
    return MPI_Issend(data, count, type, to, tag, comm, request);
}

int at_faulty_MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        MPI_Request *request)
{
    if (fails(CALL_MPI_Irecv, EIO)) return MPI_ERR_OTHER;
    return MPI_Irecv(data, count, type, from, tag, comm, request);
}

int at_faulty_MPI_Testsome(int count, MPI_Request *requests, int *done, int *indices,
                           MPI_Status *statuses)
{
    if (fails(CALL_MPI_Testsome, EIO)) return MPI_ERR_OTHER;
    return MPI_Testsome(count, requests, done, indices, statuses);
}

int at_faulty_MPI_Iallgather(const void *out, int out_count, MPI_Datatype out_type, void *in,
                             int in_count, MPI_Datatype in_type, MPI_Comm comm,
                             MPI_Request *request)
{
    if (fails(CALL_MPI_Iallgather, EIO)) return MPI_ERR_OTHER;
    return MPI_Iallgather(out, out_count, out_type, in, in_count, in_type, comm, request);
}

int at_faulty_MPI_Iallreduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm, MPI_Request *request)
{
    if (fails(CALL_MPI_Iallreduce, EIO)) return MPI_ERR_OTHER;
    return MPI_Iallreduce(out, in, count, type, op, comm, request);
}

int at_faulty_MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                         MPI_Request *request);

int at_faulty_MPI_Ibcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm,
                         MPI_Request *request)
{
    if (fails(CALL_MPI_Ibcast, EIO)) return MPI_ERR_OTHER;
    return MPI_Ibcast(data, count, type, root, comm, request);
}

#endif
