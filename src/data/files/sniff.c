#include "data/files/sniff.h"

#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

typedef struct mark {
    const char *bytes;
    size_t      size;
    const char *what, *hint;
} mark;

#define MARK(text) text, sizeof(text) - 1
#define UNKNOWN_HINT                                                                               \
    "check that it is the right file; FORMAT:PATH forces a format, `anytime data list` shows the " \
    "known sets"
#define GET_AGAIN "download the data file itself, or use a named set (`anytime data list`)"

static const mark marks[] = {
    {MARK("version https://git-lfs"), "a git-lfs pointer instead of the data",
     "run `git lfs pull` in the repository it came from"},
    {MARK("/annex/objects"), "a git-annex pointer instead of the data",
     "run `git annex get` in the repository it came from"},
    {MARK("<"), "a web page or XML", GET_AGAIN},
    {MARK("\x1f\x8b"), "gzip", "unpack it first with `gunzip`"},
    {MARK("\xfd"
          "7zXZ"),
     "an xz archive", "unpack it first with `xz -d`"},
    {MARK("BZh"), "a bzip2 archive", "unpack it first with `bunzip2`"},
    {MARK("PK\x03\x04"), "a zip archive", "unpack it first with `unzip`"},
    {MARK("\x28\xb5\x2f\xfd"), "a zstd archive", "unpack it first with `unzstd`"},
    {MARK("\x89PNG"), "a PNG image", "name a folder with one subfolder of images per class"},
    {MARK("\xff\xd8\xff"), "a JPEG image", "name a folder with one subfolder of images per class"},
    {MARK("\x93NUMPY"), "a NumPy array", "name two arrays: SAMPLES.npy,LABELS.npy"},
    {MARK("\0\0\x08"), "raw IDX data",
     "rename it: the name ends in .gz but the file is not packed"},
};

static const mark *find(const unsigned char *bytes, size_t size)
{
    assert(bytes);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (size >= marks[i].size && memcmp(bytes, marks[i].bytes, marks[i].size) == 0)
            return &marks[i];
    return NULL;
}

static bool is_text(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isprint(bytes[i]) && !isspace(bytes[i])) return false;
    return size > 0;
}

/* "text", or the first four bytes in hex. */
static void describe_unknown(at_text *what, const unsigned char *bytes, size_t size)
{
    assert(what->used == 0);
    if (size == 0) {
        at_text_add(what, "an empty file");
        return;
    }
    if (is_text(bytes, size)) {
        at_text_add(what, "text");
        return;
    }
    at_text_add(what, "unknown binary data");
    for (size_t i = 0; i < size && i < 4; i++) at_text_add(what, " %02x", bytes[i]);
}

at_sniff_result at_sniff(const unsigned char *bytes, size_t size)
{
    assert(bytes);
    while (size > 0 && isspace(*bytes)) bytes++, size--; /* some web pages begin with blank lines */
    at_sniff_result result = {.hint = UNKNOWN_HINT};
    at_text         what = at_text_in(result.what, sizeof result.what);
    const mark     *known = find(bytes, size);
    if (known) {
        at_text_add(&what, "%s", known->what);
        result.hint = known->hint;
    } else {
        describe_unknown(&what, bytes, size);
    }
    assert(result.what[0] && result.hint[0]);
    return result;
}
