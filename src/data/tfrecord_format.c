/* Where TFRecord files are found (see parts.h), and which kind they are: the first record shows. */
#include "data/format.h"

#include "data/parts.h"
#include "data/tfrecord.h"

#include <assert.h>

static bool claims(const char *name)
{
    return at_parts_claim(name, at_tfrecord_is_file);
}

static bool holds(const char *name, at_split split)
{
    return at_parts_hold(name, split, at_tfrecord_is_file);
}

static at_err sources(const char *name, at_split split, at_files *files, at_fail *fail)
{
    return at_parts_find(name, split, at_tfrecord_is_file, files, fail);
}

static at_err find_kind(at_tfrecord *record, bool *clicks, at_fail *fail)
{
    static const char *const names[] = {"index", "value"};
    at_feature               features[2];
    bool                     more;
    AT_TRY(at_tfrecord_next(record, &more, fail));
    *clicks = more && at_example_find(at_tfrecord_message(record), names, features, 2) &&
              (features[0].kind || features[1].kind);
    return AT_OK;
}

static at_err load_files(at_dataset *set, const char *name, const at_files *files, at_fail *fail)
{
    assert(files->count > 0);
    at_tfrecord record;
    bool        clicks = false;
    AT_TRY(at_tfrecord_open(&record, files->path[0], fail));
    at_err err = find_kind(&record, &clicks, fail);
    at_tfrecord_close(&record);
    if (err) return err;
    return clicks ? at_tfrecord_load_clicks(set, name, files, fail)
                  : at_tfrecord_load_pictures(set, name, files, fail);
}

static at_err load(at_dataset *set, const char *name, at_split split, at_fail *fail)
{
    at_files files = {0};
    at_err   err = sources(name, split, &files, fail);
    if (!err) err = load_files(set, name, &files, fail);
    at_files_deinit(&files);
    return err;
}

const at_format at_format_tfrecord = {
    .name = "tfrecord",
    .summary = "TFRecord files of tf.train.Example, clicks (sparse) or pictures",
    .wants = "records with checksums",
    .parses = true,
    .claims = claims,
    .holds = holds,
    .load = load,
    .sources = sources,
};
