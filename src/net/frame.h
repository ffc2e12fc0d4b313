/* frame.h - how messages follow each other in a stream of bytes.
 *
 *     magic │ kind │ size │ `size` bytes
 *       4      4      8
 *
 * Numbers are little-endian. What a peer sends may be anything: reading checks it, and whoever
 * reserves memory for a message compares its size with a limit before.
 */
#ifndef AT_NET_FRAME_H
#define AT_NET_FRAME_H

#include <stdint.h>

#include "base/err.h"

enum { AT_FRAME_HEAD = 16 };

/* Writes the head of a message of `size` bytes. */
void at_frame_write(unsigned char head[AT_FRAME_HEAD], uint32_t kind, uint64_t size);

/* AT_ERR_FORMAT: these bytes are not the head of a message, or its kind is not below `kinds`. */
at_err at_frame_read(const unsigned char head[AT_FRAME_HEAD], uint32_t kinds, uint32_t *kind,
                     uint64_t *size, at_fail *fail);

#endif
