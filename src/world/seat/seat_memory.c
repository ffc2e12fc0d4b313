#include "world/seat/seat_memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

enum { PAGE = 4096, LINE_FLOATS = 16 };

_Static_assert(sizeof(at_seat_board) <= PAGE, "the parameters begin on the second page");

static size_t whole(size_t size, size_t unit)
{
    assert(size <= SIZE_MAX - unit);
    return (size + unit - 1) / unit * unit;
}

static size_t slot_head(void)
{
    return whole(sizeof(at_seat_slot), PAGE);
}

bool at_seat_params_size(size_t floats, size_t *size)
{
    size_t bytes;
    if (!at_size_product(floats, sizeof(float), &bytes) || bytes > SIZE_MAX / 4) return false;
    *size = PAGE + whole(bytes, PAGE);
    return true;
}

bool at_seat_slot_size(size_t floats, uint32_t gradients, size_t *size)
{
    size_t bytes;
    assert(gradients >= 1);
    if (floats > SIZE_MAX / 16) return false;
    if (!at_size_product(whole(floats, LINE_FLOATS), gradients * sizeof(float), &bytes) ||
        bytes > SIZE_MAX / 4)
        return false;
    *size = slot_head() + whole(bytes, PAGE);
    return true;
}

size_t at_seat_bells_size(void)
{
    return whole(sizeof(at_seat_bells), PAGE);
}

static at_err cannot_share(size_t size, at_fail *fail)
{
    return at_fail_set(fail, AT_ERR_FAILED, "use fewer workers or a smaller model",
                       "cannot share %zu MB of memory: %s", (size + (1 << 20) - 1) >> 20,
                       strerror(errno));
}

at_err at_seat_file_new(const char *name, size_t size, bool sealed, at_seat_file *file,
                        at_fail *fail)
{
    assert(size > 0);
    *file = (at_seat_file){.fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    if (file->fd < 0) return cannot_share(size, fail);
    void *memory = MAP_FAILED;
    int   seals = F_SEAL_SHRINK | F_SEAL_GROW | (sealed ? F_SEAL_FUTURE_WRITE : 0);
    if (ftruncate(file->fd, (off_t)size) == 0)
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (memory == MAP_FAILED || fcntl(file->fd, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) {
        at_err err = cannot_share(size, fail);
        if (memory != MAP_FAILED) munmap(memory, size);
        close(file->fd);
        *file = (at_seat_file){.fd = -1};
        return err;
    }
    file->memory = memory;
    file->size = size;
    return AT_OK;
}

at_err at_seat_file_map(int fd, size_t size, bool writes, at_seat_file *file, at_fail *fail)
{
    struct stat about;
    assert(fd >= 0);
    *file = (at_seat_file){.fd = -1};
    if (fstat(fd, &about) != 0 || about.st_size < 0 || (size_t)about.st_size < size) {
        close(fd);
        return at_fail_set(fail, AT_ERR_FORMAT, "use the same version of anytime everywhere",
                           "the hub shared less memory than the model needs");
    }
    int   protection = PROT_READ | (writes ? PROT_WRITE : 0);
    void *memory = mmap(NULL, size, protection, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        at_err err = cannot_share(size, fail);
        close(fd);
        return err;
    }
    *file = (at_seat_file){.fd = fd, .memory = memory, .size = size};
    return AT_OK;
}

at_err at_seat_file_private(size_t size, at_seat_file *file, at_fail *fail)
{
    assert(size > 0);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *file = (at_seat_file){.fd = -1};
    if (memory == MAP_FAILED) return at_fail_memory(fail);
    file->memory = memory;
    file->size = size;
    return AT_OK;
}

void at_seat_file_close(at_seat_file *file)
{
    if (!file->memory) return;
    munmap(file->memory, file->size);
    if (file->fd >= 0) close(file->fd);
    *file = (at_seat_file){.fd = -1};
}

/* ---- parameters in the program's own memory -------------------------------------------------- */

static size_t overlay_size(size_t floats)
{
    return whole(floats * sizeof(float), PAGE);
}

bool at_seat_overlay(const at_seat_file *params, size_t floats, float *to)
{
    bool   aligned = (uintptr_t)to % PAGE == 0 && sysconf(_SC_PAGESIZE) == PAGE;
    size_t size = overlay_size(floats);
    assert(size <= params->size - PAGE);
    if (!aligned ||
        mmap(to, size, PROT_READ, MAP_PRIVATE | MAP_FIXED | MAP_POPULATE, params->fd, PAGE) != to)
        return false;
    /* Populating a writable mapping would have made all pages the program's own. */
    if (mprotect(to, size, PROT_READ | PROT_WRITE) == 0) return true;
    void *again =
        mmap(to, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0);
    assert(again == to); /* what is there is replaced, so nothing more is needed */
    return false;
}

/* Entries of /proc/self/pagemap: a page that is there and not of a file is the program's own; so is
 * one that was swapped out. */
static bool is_own(uint64_t entry)
{
    const uint64_t present = 1ull << 63, swapped = 1ull << 62, of_file = 1ull << 61;
    return (entry & swapped) || ((entry & present) && !(entry & of_file));
}

/* Forgets the program's pages among `count`; false: which they are is not known. */
static bool forget_own(int fd, char *at, size_t count)
{
    enum { AT_ONCE = 1024 };
    uint64_t entry[AT_ONCE];
    for (size_t first = 0; first < count; first += AT_ONCE) {
        size_t  some = count - first < AT_ONCE ? count - first : AT_ONCE, own = 0;
        off_t   where = (off_t)(((uintptr_t)at / PAGE + first) * sizeof *entry);
        ssize_t got = pread(fd, entry, some * sizeof *entry, where);
        if (got != (ssize_t)(some * sizeof *entry)) return false;
        for (size_t i = 0; i <= some; i++) { /* a run of own pages ends before `i` */
            if (i < some && is_own(entry[i])) {
                own++;
                continue;
            }
            if (own > 0) madvise(at + (first + i - own) * PAGE, own * PAGE, MADV_DONTNEED);
            own = 0;
        }
    }
    return true;
}

/* Looking is cheaper than forgetting all pages, which would be mapped again one after the other. */
void at_seat_overlay_renew(float *at, size_t floats)
{
    size_t size = overlay_size(floats);
    int    fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    bool   known = fd >= 0 && forget_own(fd, (char *)at, size / PAGE);
    if (fd >= 0) close(fd);
    if (!known) madvise(at, size, MADV_DONTNEED);
}

void at_seat_overlay_keep(float *at, size_t floats)
{
    volatile char *byte = (volatile char *)at;
    for (size_t i = 0; i < overlay_size(floats); i += PAGE) byte[i] = byte[i];
}

/* ---- places ---------------------------------------------------------------------------------- */

float *at_seat_floats(const at_seat_file *params)
{
    assert(params->size > PAGE);
    return (float *)(void *)((char *)params->memory + PAGE);
}

float *at_seat_slot_gradient(const at_seat_file *slot, size_t floats, uint32_t index)
{
    assert(index < AT_SEAT_GRADIENTS);
    size_t at = index * whole(floats, LINE_FLOATS) * sizeof(float);
    assert(slot_head() + at + floats * sizeof(float) <= slot->size);
    return (float *)(void *)((char *)slot->memory + slot_head() + at);
}
