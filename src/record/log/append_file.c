#include "record/log/append_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/disk.h"
#include "base/file.h"
#include "base/folder_guard.h"

enum { NUMBER_SIZE = 32 }; /* longest number in decimal, with room to spare */

static const at_ns flush_every = 1000000000;

/* ---- trouble --------------------------------------------------------------------------------- */

static _Atomic uint64_t reserve, written;
static _Atomic bool     troubled, told; /* a write failed; it was reported */
static char             trouble[700];

void at_append_file_reserve(uint64_t bytes)
{
    atomic_store(&reserve, bytes);
    atomic_store(&written, 0);
    atomic_store(&troubled, false);
    atomic_store(&told, false);
}

uint64_t at_append_file_written(void)
{
    return atomic_load(&written);
}

const char *at_append_file_trouble(void)
{
    if (!atomic_load(&troubled) || atomic_exchange(&told, true)) return NULL;
    assert(trouble[0]);
    return trouble;
}

static void stop(at_append_file *file, int error, bool is_early)
{
    assert(error != 0);
    file->error = error;
    if (atomic_load(&troubled)) return;
    if (is_early)
        snprintf(trouble, sizeof trouble,
                 "%.400s: the disk is nearly full: recording stops, so that checkpoints can be "
                 "written; training continues",
                 file->path);
    else
        snprintf(trouble, sizeof trouble,
                 "%.400s: cannot write: %.100s; it ends here, training continues", file->path,
                 strerror(error));
    atomic_store(&troubled, true);
}

/* Whether writing would take room that a checkpoint needs. */
static bool is_disk_short(const at_append_file *file, size_t size)
{
    struct statvfs disk;
    uint64_t       kept = atomic_load(&reserve);
    if (kept == 0 || at_disk->fstatvfs(file->fd, &disk)) return false;
    return (uint64_t)disk.f_bavail * disk.f_frsize < kept + size;
}

static void write_out(at_append_file *file, const char *bytes, size_t left)
{
    if (left > 0 && !file->error && is_disk_short(file, left)) stop(file, ENOSPC, true);
    while (left > 0 && !file->error) {
        ssize_t done = at_disk->write(file->fd, bytes, left);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) {
            stop(file, errno, false);
            break;
        }
        assert((size_t)done <= left);
        if (!file->bounded) atomic_fetch_add(&written, (uint64_t)done);
        bytes += done;
        left -= (size_t)done;
    }
}

void at_append_file_flush(at_append_file *file)
{
    assert(file->fd >= 0);
    assert(file->used <= AT_APPEND_FILE_SIZE);
    write_out(file, file->buffer, file->used);
    file->used = 0;
}

void at_append_file_at_once(at_append_file *file, const void *bytes, size_t size)
{
    assert(bytes || size == 0);
    at_append_file_flush(file);
    write_out(file, bytes, size);
}

/* A resumed run continues in the files of its first part. */
static int inspect_existing(at_append_file *file, bool lines)
{
    assert(file->used == 0);
    struct stat info;
    if (at_disk->fstat(file->fd, &info)) return errno;
    if (S_ISFIFO(info.st_mode)) return ESPIPE; /* nobody would read it, and a full one blocks */
    file->fresh = info.st_size == 0;
    char last = '\n';
    if (!lines || !S_ISREG(info.st_mode) || file->fresh) return 0;
    if (at_disk->pread(file->fd, &last, 1, info.st_size - 1) != 1) return errno ? errno : EIO;
    if (last != '\n') at_append_file_byte(file, '\n');
    return 0;
}

at_err at_append_file_open(const char *folder, const char *name, bool lines, at_append_file **file,
                           at_fail *fail)
{
    assert(folder);
    *file = NULL;
    at_append_file *self = malloc(sizeof *self);
    if (!self) return at_fail_memory_for(fail, "for %s", name);
    self->fd = -1;
    self->error = 0;
    self->used = 0;
    self->flushed_at = 0;
    self->fresh = self->bounded = false;
    if (asprintf(&self->path, "%s/%s", folder, name) < 0) {
        free(self);
        return at_fail_memory_for(fail, "for %s", name);
    }
    int error = at_folder_guard_check(self->path);
    if (!error) self->fd = at_disk->open(self->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (!error) error = self->fd < 0 ? errno : inspect_existing(self, lines);
    if (error) {
        at_err err = at_file_error("open", self->path, error, fail);
        at_append_file_close(self, NULL);
        return err;
    }
    *file = self;
    return AT_OK;
}

void at_append_file_bytes(at_append_file *file, const void *bytes, size_t size)
{
    assert(bytes || size == 0);
    const char *from = bytes;
    while (size > 0) {
        size_t part = size < AT_APPEND_FILE_SIZE ? size : AT_APPEND_FILE_SIZE;
        memcpy(at_append_file_room(file, part), from, part);
        file->used += part;
        from += part;
        size -= part;
    }
}

void at_append_file_text(at_append_file *file, const char *text)
{
    assert(text);
    at_append_file_bytes(file, text, strlen(text));
}

static const uint64_t powers[] = {
    1,        10,        100,        1000,        10000,        100000,        1000000,
    10000000, 100000000, 1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000};
enum { POWERS = sizeof powers / sizeof *powers };

static size_t count_digits(uint64_t value)
{
    size_t count = 1;
    while (count < POWERS && value >= powers[count]) count++;
    if (count < POWERS) return count;
    for (value /= powers[POWERS - 1]; value >= 10; value /= 10) count++;
    return count;
}

/* Writes exactly `count` digits, two at a time: this halves the divisions, and tables are mostly
 * numbers. */
static void put_digits(char *to, size_t count, uint64_t value)
{
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    for (; count >= 2; count -= 2, value /= 100)
        memcpy(to + count - 2, pairs + 2 * (value % 100), 2);
    if (count == 1) *to = (char)('0' + value % 10);
}

void at_append_file_whole(at_append_file *file, uint64_t value)
{
    size_t count = count_digits(value);
    assert(count <= NUMBER_SIZE);
    put_digits(at_append_file_room(file, NUMBER_SIZE), count, value);
    file->used += count;
}

/* value / 10^decimals with all decimals. */
static void put_fixed(at_append_file *file, uint64_t value, size_t decimals)
{
    assert(decimals >= 1 && decimals < POWERS);
    uint64_t whole = value / powers[decimals];
    size_t   count = count_digits(whole);
    char    *to = at_append_file_room(file, NUMBER_SIZE);
    assert(count + 1 + decimals <= NUMBER_SIZE);
    put_digits(to, count, whole);
    to[count] = '.';
    put_digits(to + count + 1, decimals, value - whole * powers[decimals]);
    file->used += count + 1 + decimals;
}

void at_append_file_seconds(at_append_file *file, at_ns value)
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t micro = size / 1000 + (size % 1000 >= 500);
    if (value < 0 && micro > 0) at_append_file_byte(file, '-');
    put_fixed(file, micro, 6);
}

/* Numbers from 1 up get up to six decimals, smaller ones enough for seven digits. The rare rest
 * (nan, 1e-12, 1e30) is left to snprintf. */
void at_append_file_real(at_append_file *file, double value)
{
    double size = fabs(value), scale = 1e6;
    size_t decimals = 6;
    if (!(size >= 1e-6 && size < 1e9)) {
        char *text = at_append_file_room(file, NUMBER_SIZE);
        file->used += (size_t)snprintf(text, NUMBER_SIZE, "%.9g", value);
        return;
    }
    for (; size * scale < 1e6; decimals++) scale *= 10;
    uint64_t digits = (uint64_t)llround(size * scale);
    for (; decimals > 1 && digits % 10 == 0; decimals--) digits /= 10;
    if (value < 0) at_append_file_byte(file, '-');
    put_fixed(file, digits, decimals);
}

void at_append_file_tick(at_append_file *file, at_ns at, bool now)
{
    assert(file->used <= AT_APPEND_FILE_SIZE);
    if (!now && at - file->flushed_at < flush_every) return;
    file->flushed_at = at;
    at_append_file_flush(file);
}

at_err at_append_file_close(at_append_file *file, at_fail *fail)
{
    if (!file) return AT_OK;
    if (file->fd >= 0) {
        at_append_file_flush(file);
        if (at_disk->close(file->fd) && !file->error) file->error = errno;
    }
    at_err err = file->error ? at_file_error("write", file->path, file->error, fail) : AT_OK;
    free(file->path);
    free(file);
    return err;
}
