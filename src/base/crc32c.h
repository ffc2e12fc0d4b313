/* crc32c.h - the checksum of records (TFRecord, event files): CRC-32 of Castagnoli's polynomial. */
#ifndef AT_BASE_CRC32C_H
#define AT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of bytes; the fastest way this processor has. */
uint32_t at_crc32c(const void *bytes, size_t size);

/* The same by a table, on any processor; gives the same number. */
uint32_t at_crc32c_portable(const void *bytes, size_t size);

/* Turned and shifted, as TensorFlow stores it, because a checksum of data that holds checksums
 * proves little. */
uint32_t at_crc32c_masked(const void *bytes, size_t size);

#endif
