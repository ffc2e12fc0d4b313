/* Decoding is the slow part (some milliseconds an image), so all cores take part: each thread takes
 * the next image that nobody has taken, until all are done or one is broken. */
#include "data/formats/images.h"

#include "base/machine.h"
#include "data/files/folder.h"
#include "data/set/progress.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS_MAX = 16 };

/* LIMIT: a larger file is refused. */
static const uint64_t FILE_SIZE_MAX = 256 << 20;

static at_err read_bytes(FILE *file, const char *path, uint64_t size, unsigned char **bytes,
                         at_fail *fail)
{
    if (size > FILE_SIZE_MAX)
        return at_fail_set(fail, AT_ERR_FORMAT, "make it smaller, or move it out of the folder",
                           "%s: has %llu bytes (at most %llu)", path, (unsigned long long)size,
                           (unsigned long long)FILE_SIZE_MAX);
    *bytes = malloc((size_t)size + 1);
    if (!*bytes) return at_fail_memory_for(fail, "for %s", path);
    if (fread(*bytes, 1, (size_t)size, file) == size) return AT_OK;
    return at_fail_set(fail, AT_ERR_IO, "check the disk", "%s: cannot be read to byte %llu", path,
                       (unsigned long long)size);
}

static at_err decode(const at_image_file *file, at_image_fitting how, uint32_t side,
                     unsigned char *row, at_fail *fail)
{
    at_image image;
    AT_TRY(at_image_decode(file, how == AT_IMAGE_RESIZE ? side : 0, &image, fail));
    at_err err = at_image_fit(&image, how, side, row, fail);
    at_image_deinit(&image);
    return err;
}

at_err at_images_read_one(const char *path, at_image_fitting how, uint32_t side, unsigned char *row,
                          at_fail *fail)
{
    assert(path && row);
    FILE          *file;
    uint64_t       size;
    unsigned char *bytes = NULL;
    AT_TRY(at_folder_open_file(path, &file, &size, fail));
    at_err err = read_bytes(file, path, size, &bytes, fail);
    fclose(file);
    at_image_file content = {path, bytes, (size_t)size};
    if (!err) err = decode(&content, how, side, row, fail);
    free(bytes);
    return err;
}

/* What the threads share; `lock` guards the last four. */
typedef struct job {
    const at_images *images;
    at_image_fitting how;
    uint32_t         side;
    at_dataset      *set;
    pthread_mutex_t  lock;
    size_t           next, done;
    size_t           bad_index; /* SIZE_MAX: none yet */
    at_fail          bad;
} job;

/* The next image, or false when there is none or an earlier one is broken. */
static bool take(job *j, size_t *index)
{
    pthread_mutex_lock(&j->lock);
    *index = j->next;
    bool taken = *index < j->images->files.count && *index < j->bad_index;
    if (taken) j->next++;
    pthread_mutex_unlock(&j->lock);
    return taken;
}

/* One image is done; of broken ones the first in the list counts. */
static void give(job *j, size_t index, at_err err, const at_fail *why)
{
    pthread_mutex_lock(&j->lock);
    if (err && index < j->bad_index) {
        j->bad_index = index;
        j->bad = *why;
    }
    at_loading_tell(j->set->loading, ++j->done, j->images->files.count);
    pthread_mutex_unlock(&j->lock);
}

static void *work(void *argument)
{
    job *j = argument;
    for (size_t index; take(j, &index);) {
        at_fail        why = {0};
        unsigned char *row = j->set->rows + index * j->set->row_size;
        at_err err = at_images_read_one(j->images->files.path[index], j->how, j->side, row, &why);
        j->set->labels[index] = j->images->labels[index];
        give(j, index, err, &why);
    }
    return NULL;
}

at_err at_images_read(const at_images *images, at_image_fitting how, uint32_t side, at_dataset *set,
                      at_fail *fail)
{
    assert(set->count == images->files.count);
    assert(set->row_size == (size_t)3 * side * side);
    job       j = {.images = images, .how = how, .side = side, .set = set, .bad_index = SIZE_MAX};
    pthread_t threads[THREADS_MAX];
    size_t    started = 0, wanted = at_machine_cores() - 1; /* this thread works, too */
    if (wanted > THREADS_MAX) wanted = THREADS_MAX;
    pthread_mutex_init(&j.lock, NULL);
    while (started < wanted && pthread_create(&threads[started], NULL, work, &j) == 0) started++;
    work(&j);
    for (size_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&j.lock);
    if (j.bad_index == SIZE_MAX) return AT_OK;
    if (fail) *fail = j.bad;
    return j.bad.err;
}
