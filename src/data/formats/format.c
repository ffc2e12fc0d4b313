#include "data/formats/format.h"

#include <assert.h>

bool at_format_claims(const at_format *format, const char *name)
{
    assert(!format->claims != !format->is_part);
    return format->is_part ? at_parts_claim(name, format->is_part) : format->claims(name);
}

bool at_format_holds(const at_format *format, const char *name, at_split split)
{
    if (format->is_part) return at_parts_hold(name, split, format->is_part);
    return !format->holds || format->holds(name, split);
}

at_err at_format_sources(const at_format *format, const char *name, at_split split, at_files *files,
                         at_fail *fail)
{
    if (format->is_part) return at_parts_find(name, split, format->is_part, files, fail);
    return format->sources ? format->sources(name, split, files, fail)
                           : at_files_add(files, name, fail);
}

at_err at_format_load(const at_format *format, at_dataset *set, const char *name, at_split split,
                      at_fail *fail)
{
    assert(!format->load != !format->load_parts);
    if (format->load) return format->load(set, name, split, fail);
    at_files files = {0};
    at_err   err = at_format_sources(format, name, split, &files, fail);
    if (!err) err = format->load_parts(set, name, &files, fail);
    at_files_deinit(&files);
    return err;
}
