#include "data/set/resolve.h"

#include "base/text.h"
#include "data/files/sniff.h"
#include "data/files/source.h"

#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMATS_MAX = 32, WORD_SIZE = 32 };

/* The word of "WORD:" at the start of a name; false when it cannot be a format name, as in a path
 * or a list of files. */
static bool word_before_colon(const char *name, char word[WORD_SIZE])
{
    size_t length = strcspn(name, ":");
    if (name[length] == '\0' || length == 0 || length >= WORD_SIZE) return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_') return false;
    memcpy(word, name, length);
    word[length] = '\0';
    return true;
}

static const at_format *format_of_name(const char *word)
{
    assert(word);
    for (size_t i = 0; at_formats[i]; i++)
        if (strcmp(at_formats[i]->name, word) == 0) return at_formats[i];
    return NULL;
}

static const at_format *format_of_content(const char *name)
{
    assert(name);
    for (size_t i = 0; at_formats[i]; i++)
        if (at_format_claims(at_formats[i], name)) return at_formats[i];
    return NULL;
}

/* "idx (train-images*, train-labels*), cifar (data_batch_*.bin)" */
static const char *expected_files(char *buffer, size_t size)
{
    at_text     text = at_text_in(buffer, size);
    const char *between = "";
    for (size_t i = 0; at_formats[i]; i++) {
        const at_format *format = at_formats[i];
        if (!format->expects) continue; /* not read from files */
        at_text_add(&text, "%s%s (%s)", between, format->name, format->expects);
        between = ", ";
    }
    assert(text.used > 0);
    return buffer;
}

static at_err unknown_folder(const char *path, at_fail *fail)
{
    char wanted[560];
    return at_fail_set(fail, AT_ERR_MISSING, "use FORMAT:PATH to see what that format is missing",
                       "%s: no readable data set in the folder; looked for %s", path,
                       expected_files(wanted, sizeof wanted));
}

static at_err unknown_file(const char *path, at_fail *fail)
{
    unsigned char bytes[AT_SNIFF_SIZE];
    size_t        got = 0;
    at_source    *source;
    AT_TRY(at_source_open(path, &source, fail));
    at_err err = at_source_read(source, bytes, sizeof bytes, &got, fail);
    at_source_close(source);
    if (err) return err;
    at_sniff_result sniffed = at_sniff(bytes, got);
    return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                       "%s: not a readable data set; it looks like %s", path, sniffed.what);
}

static at_err unknown_format(const char *word, at_fail *fail)
{
    const char *names[FORMATS_MAX];
    size_t      count = 0;
    for (; at_formats[count]; count++) {
        assert(count < FORMATS_MAX);
        names[count] = at_formats[count]->name;
    }
    return at_text_unknown("data format", word, names, count, fail);
}

/* Explains why no format claims the name. */
static at_err unknown_name(const char *name, at_fail *fail)
{
    struct stat status;
    char        word[WORD_SIZE], hint[160] = "`anytime data list` shows the known sets";
    if (stat(name, &status) == 0)
        return S_ISDIR(status.st_mode) ? unknown_folder(name, fail) : unknown_file(name, fail);
    if (word_before_colon(name, word)) return unknown_format(word, fail);
    const char *nearest = at_catalog_nearest(name);
    if (nearest) snprintf(hint, sizeof hint, "did you mean %s?", nearest);
    return at_fail_set(fail, AT_ERR_MISSING, hint, "%s: no data set, file or folder has this name",
                       name);
}

at_err at_resolve(const char *name, at_resolved *resolved, at_fail *fail)
{
    assert(name && resolved);
    char word[WORD_SIZE];
    *resolved = (at_resolved){.path = name, .row = at_catalog_find(name)};
    /* A file of that name is not hidden by a set that is not here. */
    if (resolved->row && access(name, F_OK) == 0 &&
        at_catalog_locate(resolved->row, resolved->folder, NULL))
        resolved->row = NULL;
    if (resolved->row) {
        AT_TRY(at_catalog_locate(resolved->row, resolved->folder, fail));
        resolved->path = resolved->folder;
    } else if (word_before_colon(name, word)) {
        const at_format *forced = format_of_name(word);
        if (forced && !forced->synthetic) {
            resolved->format = forced;
            resolved->path = name + strlen(word) + 1;
        }
    }
    if (!resolved->format) resolved->format = format_of_content(resolved->path);
    return resolved->format ? AT_OK : unknown_name(resolved->path, fail);
}

/* ---- from the root --------------------------------------------------------------------------- */

/* Appends a path of the working folder as one from the root. False when there is no such file. */
static bool add_absolute(at_text *text, const char *path, const char *here)
{
    if (*path == '\0' || access(path, F_OK) != 0) return false;
    while (strncmp(path, "./", 2) == 0) path += 2;
    if (path[0] == '/')
        at_text_add(text, "%s", path);
    else
        at_text_add(text, "%s/%s", here, path);
    return true;
}

/* "a,b": each part that exists. False when none does. */
static bool add_parts(at_text *text, const char *path, const char *here)
{
    char part[PATH_MAX];
    bool any = false;
    while (*path) {
        size_t length = strcspn(path, ",");
        if (length >= sizeof part) return false;
        memcpy(part, path, length);
        part[length] = '\0';
        if (add_absolute(text, part, here))
            any = true;
        else
            at_text_add(text, "%s", part);
        path += length;
        if (*path == ',') at_text_add(text, "%c", *path++);
    }
    return any;
}

char *at_resolve_absolute(const char *name)
{
    char    here[PATH_MAX], made[2 * PATH_MAX], word[WORD_SIZE];
    at_text text = at_text_in(made, sizeof made);
    assert(name);
    if (at_catalog_find(name) || !getcwd(here, sizeof here)) return NULL;
    bool             prefixed = word_before_colon(name, word);
    const at_format *format = prefixed ? format_of_name(word) : NULL;
    if (format && format->synthetic) return NULL;
    if (format) at_text_add(&text, "%s:", word);
    const char *path = format ? name + strlen(word) + 1 : name;
    if (!add_absolute(&text, path, here) && !add_parts(&text, path, here)) return NULL;
    return text.full || strcmp(made, name) == 0 ? NULL : strdup(made);
}
