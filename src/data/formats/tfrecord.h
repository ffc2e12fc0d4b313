/* tfrecord.h - reads TFRecord files of tf.train.Example messages.
 *
 *     length u64 | checksum of it u32 | message | checksum of it u32        little endian, repeated
 *
 * Two kinds of messages are supported:
 *     clicks     label (int64), index (int64 list), value (float list; default: all 1)
 *     images     label, and image/encoded (JPEG, PNG) or image_raw with height, width, depth
 */
#ifndef AT_DATA_FORMATS_TFRECORD_H
#define AT_DATA_FORMATS_TFRECORD_H

#include "data/files/folder.h"
#include "data/files/source.h"
#include "data/formats/tf_example.h"
#include "data/set/store.h"

/* Reads record by record. */
typedef struct at_tfrecord {
    at_source     *source;
    unsigned char *bytes; /* of the record, owned */
    size_t         size, room;
    uint64_t       index;    /* of the record, from 1 on */
    uint64_t       position; /* of the record in the unpacked file */
} at_tfrecord;

/* Opens a file; MUST be closed after success. */
at_err at_tfrecord_open(at_tfrecord *record, const char *path, at_fail *fail);
void   at_tfrecord_close(at_tfrecord *record); /* accepts a zeroed one */

/* Reads and verifies the next record; *more is false at the end of the file. AT_ERR_FORMAT names
 * the file and the byte. */
at_err at_tfrecord_next(at_tfrecord *record, bool *more, at_fail *fail);

/* AT_ERR_FORMAT; prefixes the text with file, record and byte. */
at_err at_tfrecord_error(const at_tfrecord *record, const char *hint, at_fail *fail,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The message of the record. */
at_byte_range at_tfrecord_message(const at_tfrecord *record);

/* Fill a zeroed set from files of either kind; `name` is for messages. */
at_err at_tfrecord_load_clicks(at_dataset *set, const char *name, const at_file_list *files,
                               at_fail *fail);
at_err at_tfrecord_load_images(at_dataset *set, const char *name, const at_file_list *files,
                               at_fail *fail);

#endif
