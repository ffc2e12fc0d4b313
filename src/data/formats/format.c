#include "data/formats/format.h"

#include <assert.h>

bool at_format_claims(const at_format *format, const char *name)
{
    assert(!format->claims != !format->is_split_file);
    return format->is_split_file ? at_split_files_claim(name, format->is_split_file)
                                 : format->claims(name);
}

bool at_format_has_split(const at_format *format, const char *name, at_split split)
{
    if (format->is_split_file) return at_split_files_has(name, split, format->is_split_file);
    return !format->has_split || format->has_split(name, split);
}

at_err at_format_source_files(const at_format *format, const char *name, at_split split,
                              at_file_list *files, at_fail *fail)
{
    if (format->is_split_file)
        return at_split_files_list(name, split, format->is_split_file, files, fail);
    return format->source_files ? format->source_files(name, split, files, fail)
                                : at_file_list_add(files, name, fail);
}

at_err at_format_load(const at_format *format, at_dataset *set, const char *name, at_split split,
                      at_fail *fail)
{
    assert(!format->load != !format->load_files);
    if (format->load) return format->load(set, name, split, fail);
    at_file_list files = {0};
    at_err       err = at_format_source_files(format, name, split, &files, fail);
    if (!err) err = format->load_files(set, name, &files, fail);
    at_file_list_deinit(&files);
    return err;
}
