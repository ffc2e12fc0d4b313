/* tf_example.h - decodes a tf.train.Example, a Protocol Buffers message.
 *
 *     Example { Features features = 1 }          Feature { oneof BytesList = 1
 *     Features { map<string, Feature> = 1 }                      FloatList = 2
 *                                                                Int64List = 3 }
 *     ...List { repeated value = 1 }             numbers may be packed
 *
 * Copies and allocates nothing: results point into the message. All lengths are checked.
 */
#ifndef AT_DATA_FORMATS_TF_EXAMPLE_H
#define AT_DATA_FORMATS_TF_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a message. */
typedef struct at_byte_range {
    const unsigned char *at, *end;
} at_byte_range;

typedef enum at_feature_kind {
    AT_FEATURE_NONE = 0, /* absent or empty */
    AT_FEATURE_BYTES = 1,
    AT_FEATURE_FLOATS = 2,
    AT_FEATURE_INTS = 3,
} at_feature_kind;

/* A feature with its list, still encoded. */
typedef struct at_feature {
    at_feature_kind kind;
    at_byte_range   list;
} at_feature;

/* Finds features by name: found[i] is the (last) one named names[i]. False when the bytes are not
 * an Example. */
bool at_example_find(at_byte_range message, const char *const *names, at_feature *found,
                     size_t count);

/* Decodes at most `room` numbers of a list; returns the length of the list, or -1 when it is
 * damaged. */
int64_t at_example_ints(const at_feature *feature, int64_t *values, size_t room);
int64_t at_example_floats(const at_feature *feature, float *values, size_t room);

/* The first entry of a list of byte strings; false when there is none. */
bool at_example_bytes(const at_feature *feature, at_byte_range *bytes);

#endif
