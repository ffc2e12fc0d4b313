#include "data/set/cache.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "data/files/unpack.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const at_cache_limits at_cache_limits_default = {(uint64_t)1 << 20, (uint64_t)8 << 30};

enum {
    SETTLED_AFTER_S = 2,     /* file systems give changes this far apart different times */
    ABANDONED_AFTER_S = 3600 /* writing an entry never takes an hour */
};

/* ---- which entry ----------------------------------------------------------------------------- */

/* Everything besides the files that the result of reading depends on, including the path, which may
 * carry options (FOLDER,SIZE). */
static char *make_key(const at_resolved *found, at_split split, const at_read_options *options)
{
    _Static_assert(sizeof(at_read_options) == 4 * sizeof(void *) + 32,
                   "a new field of at_read_options may belong in the key");
    char *key = NULL, columns[65] = "";
    if (options->columns) at_file_sha256(options->columns, strlen(options->columns), columns);
    int size = asprintf(
        &key,
        "%s\n%s\n%s\n%s\nlabel=%s\nignore=%s\ncolumns=%s\nhash_bits=%u\nmissing=%d\n"
        "header=%d\nreal=%d%d%d\n" ANYTIME_VERSION,
        found->format->name, found->path, found->row ? found->row->name : "",
        split == AT_SPLIT_TRAIN ? "train" : "test", options->label ? options->label : "",
        options->ignore ? options->ignore : "", columns, options->hash_bits, options->missing,
        options->header, options->real_labels, options->any_labels, options->unlabeled);
    return size < 0 ? NULL : key;
}

/* Lists the files that would be read, as absolute paths. */
static bool list_files(at_file_list *files, const at_resolved *found, at_split split)
{
    at_file_list named = {0};
    at_err       err = at_format_source_files(found->format, found->path, split, &named, NULL);
    for (size_t i = 0; !err && i < named.count; i++) {
        char *absolute = realpath(named.path[i], NULL);
        err = absolute ? at_file_list_add(files, absolute, NULL) : AT_ERR_MISSING;
        free(absolute);
    }
    at_file_list_deinit(&named);
    return !err && files->count > 0;
}

/* Size and modification time; no digest. */
static bool stamp_file(const char *path, at_file_stamp *stamp)
{
    struct stat status;
    if (stat(path, &status) || !S_ISREG(status.st_mode)) return false;
    *stamp = (at_file_stamp){.size = (uint64_t)status.st_size,
                             .seconds = status.st_mtim.tv_sec,
                             .nanoseconds = (uint32_t)status.st_mtim.tv_nsec};
    return true;
}

static bool stamp_files(at_cache *cache)
{
    cache->stamp = calloc(cache->files.count, sizeof *cache->stamp);
    for (size_t i = 0; cache->stamp && i < cache->files.count; i++)
        if (!stamp_file(cache->files.path[i], &cache->stamp[i])) return false;
    return cache->stamp != NULL;
}

static bool is_packed(const char *path)
{
    unsigned char bytes[16];
    FILE         *file = fopen(path, "rb");
    size_t        got = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) fclose(file);
    return at_unpack_by_magic(bytes, got) != NULL;
}

/* Files that are as fast to read as an entry are not cached. */
static bool is_worth_caching(const at_cache *cache, const at_format *format)
{
    uint64_t total = 0;
    bool     slow = format->slow_to_read;
    for (size_t i = 0; i < cache->files.count; i++) {
        total += cache->stamp[i].size;
        slow = slow || is_packed(cache->files.path[i]);
    }
    return slow && total >= cache->limits.source_min;
}

/* $XDG_CACHE_HOME/anytime/parsed, then a hash of key and paths. */
static bool name_entry(at_cache *cache)
{
    char folder[PATH_MAX], hex[65], link[PATH_MAX + 80];
    if (at_catalog_cache(folder, NULL)) return false;
    at_file_sha256(cache->key, strlen(cache->key), hex);
    for (size_t i = 0; i < cache->files.count; i++) {
        int size = snprintf(link, sizeof link, "%s %s", hex, cache->files.path[i]);
        if (size < 0 || (size_t)size >= sizeof link) return false;
        at_file_sha256(link, (size_t)size, hex);
    }
    at_text path = at_text_in(cache->path, sizeof cache->path);
    at_text_add(&path, "%s/parsed/%.32s.bin", folder, hex);
    return !path.full;
}

bool at_cache_open(at_cache *cache, const at_resolved *found, at_split split,
                   const at_read_options *options, at_cache_limits limits)
{
    assert(found->format && options);
    *cache = (at_cache){.limits = limits};
    if (found->format->synthetic) return false;
    cache->key = make_key(found, split, options);
    return cache->key && list_files(&cache->files, found, split) && stamp_files(cache) &&
           is_worth_caching(cache, found->format) && name_entry(cache);
}

void at_cache_close(at_cache *cache)
{
    free(cache->key);
    free(cache->stamp);
    at_file_list_deinit(&cache->files);
    *cache = (at_cache){0};
}

/* ---- using an entry -------------------------------------------------------------------------- */

/* Whether the file is unchanged. When only its time differs, its digest decides, and *restamp is
 * set. */
static bool is_same(const char *path, const at_file_stamp *now, at_file_stamp *then, bool *restamp)
{
    unsigned char digest[sizeof then->digest];
    if (now->size != then->size) return false;
    if (now->seconds == then->seconds && now->nanoseconds == then->nanoseconds) return true;
    if (at_file_digest(path, digest, NULL)) return false;
    if (memcmp(digest, then->digest, sizeof digest) != 0) return false;
    then->seconds = now->seconds;
    then->nanoseconds = now->nanoseconds;
    *restamp = true;
    return true;
}

/* Marks files modified so recently that they could change again with the same time. */
static void mark_recent(at_file_stamp *stamp, size_t count)
{
    int64_t now = (int64_t)at_clock_date();
    for (size_t i = 0; i < count; i++)
        if (stamp[i].seconds > now - SETTLED_AFTER_S) stamp[i].nanoseconds = AT_FILE_STAMP_RECENT;
}

/* Fills `loaded`, whose mapping exists only on success. */
static bool load_from(int fd, const at_cache *cache, at_file_stamp *then, at_dataset *loaded)
{
    at_cache_origin origin = {cache->key, &cache->files, then};
    at_cache_header header = {0};
    bool            restamp = false;
    struct stat     status;
    if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) return false;
    if (!at_cache_file_read_header(fd, &origin, &header, loaded)) return false;
    for (size_t i = 0; i < cache->files.count; i++)
        if (!is_same(cache->files.path[i], &cache->stamp[i], &then[i], &restamp)) return false;
    if (!at_cache_file_map(fd, &header, loaded)) return false;
    if (restamp) {
        mark_recent(then, cache->files.count);
        at_cache_file_restamp(fd, &header, &origin, loaded);
    }
    return true;
}

/* The time of access; that of modification says whether the entry is as it was when it was checked.
 * Fails on a read-only file system. */
static void mark_as_used(int fd)
{
    (void)futimens(fd, (struct timespec[]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}});
}

bool at_cache_load(const at_cache *cache, at_dataset *set)
{
    assert(cache->path[0] && !set->map);
    int fd = open(cache->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) fd = open(cache->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return false;
    at_file_stamp *then = calloc(cache->files.count, sizeof *then);
    at_dataset     loaded = *set;
    loaded.cached = true;
    bool valid = then && load_from(fd, cache, then, &loaded);
    if (valid) {
        *set = loaded;
        mark_as_used(fd);
    } else {
        free(loaded.columns);
    }
    free(then);
    close(fd);
    return valid;
}

/* ---- saving an entry ------------------------------------------------------------------------- */

typedef struct entry {
    char            name[NAME_MAX + 1];
    uint64_t        size;
    struct timespec used;
} entry;

static int older_first(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool ends_with(const char *name, const char *end)
{
    size_t size = strlen(name), end_size = strlen(end);
    return size > end_size && strcmp(name + size - end_size, end) == 0;
}

/* Lists the entries of the folder (to be freed) and removes temporary files of dead writers. */
static entry *list_entries(DIR *listing, size_t *count)
{
    entry  *entries = NULL;
    size_t  room = 0;
    int64_t now = (int64_t)at_clock_date();
    *count = 0;
    for (struct dirent *there; (there = readdir(listing));) {
        struct stat status;
        if (fstatat(dirfd(listing), there->d_name, &status, AT_SYMLINK_NOFOLLOW)) continue;
        if (ends_with(there->d_name, ".tmp") && status.st_mtime < now - ABANDONED_AFTER_S)
            unlinkat(dirfd(listing), there->d_name, 0);
        if (!ends_with(there->d_name, ".bin")) continue;
        if (*count == room) {
            entry *more = reallocarray(entries, room = 2 * room + 16, sizeof *more);
            if (!more) break;
            entries = more;
        }
        entries[*count] = (entry){.size = (uint64_t)status.st_size, .used = status.st_atim};
        snprintf(entries[(*count)++].name, sizeof entries->name, "%s", there->d_name);
    }
    return entries;
}

/* Removes the least recently used entries until another one fits. */
static void make_room(const char *folder, uint64_t size, uint64_t total_max)
{
    assert(size <= total_max);
    DIR *listing = opendir(folder);
    if (!listing) return;
    size_t   count;
    entry   *entries = list_entries(listing, &count);
    uint64_t total = size;
    if (count > 0) qsort(entries, count, sizeof *entries, older_first);
    for (size_t i = 0; i < count; i++) total += entries[i].size;
    for (size_t i = 0; i < count && total > total_max; i++)
        if (unlinkat(dirfd(listing), entries[i].name, 0) == 0) total -= entries[i].size;
    free(entries);
    closedir(listing);
}

/* Computes the digests; false when a file changed while it was read. */
static bool digest_files(const at_cache *cache, at_file_stamp *stamp)
{
    for (size_t i = 0; i < cache->files.count; i++) {
        at_file_stamp after;
        stamp[i] = cache->stamp[i];
        if (at_file_digest(cache->files.path[i], stamp[i].digest, NULL)) return false;
        if (!stamp_file(cache->files.path[i], &after)) return false;
        if (after.size != stamp[i].size || after.seconds != stamp[i].seconds ||
            after.nanoseconds != stamp[i].nanoseconds)
            return false;
    }
    mark_recent(stamp, cache->files.count);
    return true;
}

bool at_cache_save(const at_cache *cache, const at_dataset *set)
{
    assert(cache->path[0] && set->map);
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", cache->path);
    *strrchr(folder, '/') = '\0';
    if (set->map_size > cache->limits.total_max || at_file_make_folder(folder, NULL)) return false;
    at_file_stamp *stamp = calloc(cache->files.count, sizeof *stamp);
    bool           saved = stamp && digest_files(cache, stamp);
    if (saved) {
        unlink(cache->path); /* an invalid one */
        make_room(folder, set->map_size, cache->limits.total_max);
        at_cache_origin origin = {cache->key, &cache->files, stamp};
        saved = at_cache_file_write(cache->path, &origin, set);
    }
    free(stamp);
    return saved;
}
