/* tf_example.h - one tf.train.Example, a message of Protocol Buffers, decoded by hand.
 *
 *     Example { Features features = 1 }          Feature { oneof BytesList = 1
 *     Features { map<string, Feature> = 1 }                      FloatList = 2
 *                                                                Int64List = 3 }
 *     ...List { repeated value = 1 }             numbers packed or one by one
 *
 * Nothing is copied or allocated; what is found points into the message. No length is believed.
 */
#ifndef AT_DATA_FORMATS_TF_EXAMPLE_H
#define AT_DATA_FORMATS_TF_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of a message. */
typedef struct at_byte_range {
    const unsigned char *at, *end;
} at_byte_range;

typedef enum at_feature_kind {
    AT_FEATURE_NONE = 0, /* not there, or an empty one */
    AT_FEATURE_BYTES = 1,
    AT_FEATURE_FLOATS = 2,
    AT_FEATURE_INTS = 3,
} at_feature_kind;

/* A feature: its list is still encoded. */
typedef struct at_feature {
    at_feature_kind kind;
    at_byte_range   list;
} at_feature;

/* Finds features by their names: found[i] is that of names[i], the last one if there are several.
 * False when the bytes are no Example. */
bool at_example_find(at_byte_range message, const char *const *names, at_feature *found,
                     size_t count);

/* Decodes at most `room` numbers of a list; returns how many it has in all, or -1 when the list is
 * damaged or too long to count. */
int64_t at_example_ints(const at_feature *feature, int64_t *values, size_t room);
int64_t at_example_floats(const at_feature *feature, float *values, size_t room);

/* The first entry of a list of bytes; false when there is none. */
bool at_example_bytes(const at_feature *feature, at_byte_range *bytes);

#endif
