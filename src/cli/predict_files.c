#include "cli/predict_files.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "data/formats/image.h"

enum { MAGIC_SIZE = 16 };

/* Reads stdin into memory, which has a path: formats read files more than once. */
static at_err keep_stdin(at_parsed *parsed, const char **path, at_fail *fail)
{
    char    block[1 << 16], name[64];
    ssize_t got;
    int     fd = memfd_create("stdin", 0);
    if (fd < 0) return at_fail_set(fail, AT_ERR_FAILED, NULL, "no memory to read stdin");
    while ((got = read(STDIN_FILENO, block, sizeof block)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 || write(fd, block, (size_t)got) != got)
            return at_fail_set(fail, AT_ERR_IO, NULL, "cannot read stdin");
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return at_options_keep(parsed, name, path, fail);
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static at_err is_picture(const char *path, bool *picture, at_fail *fail)
{
    unsigned char bytes[MAGIC_SIZE];
    *picture = is_folder(path);
    if (*picture) return AT_OK;
    FILE *file = at_disk->stream(path);
    if (!file)
        return at_fail_set(fail, AT_ERR_MISSING, NULL, "cannot read %s: %s", path, strerror(errno));
    size_t got = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    *picture = at_image_has_magic(bytes, got);
    return AT_OK;
}

static at_err list_pictures(at_parsed *parsed, const char **list, at_fail *fail)
{
    char    text[1 << 16];
    bool    picture;
    at_text paths = at_text_in(text, sizeof text);
    for (uint32_t i = 1; i < parsed->words; i++) {
        const char *path = parsed->word[i];
        AT_TRY(is_picture(path, &picture, fail));
        if (!picture)
            return at_fail_set(fail, AT_ERR_USAGE, "give one file of rows, or only pictures",
                               "%s is not a JPEG or PNG picture, as the other files are", path);
        at_text_add(&paths, "%s%s", i > 1 ? "\n" : "", path);
    }
    if (paths.full) return at_fail_set(fail, AT_ERR_USAGE, NULL, "too many files");
    return at_options_keep(parsed, text, list, fail);
}

at_err at_predict_files(at_parsed *parsed, const char **pictures, at_fail *fail)
{
    bool picture;
    *pictures = "";
    if (parsed->words < 2) return AT_OK;
    if (at_options_given(parsed, "test-data"))
        return at_fail_set(fail, AT_ERR_USAGE, "leave one of them out",
                           "--test-data and the file %s are both samples to predict",
                           parsed->word[1]);
    for (uint32_t i = 1; i < parsed->words; i++)
        if (strcmp(parsed->word[i], "-") == 0) AT_TRY(keep_stdin(parsed, &parsed->word[i], fail));
    AT_TRY(is_picture(parsed->word[1], &picture, fail));
    if (!picture && parsed->words > 2)
        return at_fail_set(fail, AT_ERR_USAGE, "give one file of rows, or only pictures",
                           "several files, and %s is not a picture", parsed->word[1]);
    if (!picture) return at_options_set(parsed, AT_FOR_TRAIN, "test-data", parsed->word[1], fail);
    char name[(1 << 16) + 16];
    AT_TRY(list_pictures(parsed, pictures, fail));
    snprintf(name, sizeof name, "pictures:%s", *pictures);
    return at_options_set(parsed, AT_FOR_TRAIN, "test-data", name, fail);
}
