/* Where TFRecord files are found (see parts.h), and which kind they are: the first record shows. */
#include "data/formats/format.h"

#include "data/files/parts.h"
#include "data/formats/tfrecord.h"

#include <assert.h>

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

static at_err load(at_dataset *set, const char *name, const at_files *files, at_fail *fail)
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

const at_format at_format_tfrecord = {
    .name = "tfrecord",
    .summary = "TFRecord files of tf.train.Example, clicks (sparse) or pictures",
    .wants = "records with checksums",
    .parses = true,
    .is_part = at_tfrecord_is_file,
    .load_parts = load,
};
