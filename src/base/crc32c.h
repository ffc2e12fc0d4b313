/* crc32c.h - CRC-32C (Castagnoli), the checksum of TFRecord and TensorBoard event files. */
#ifndef AT_BASE_CRC32C_H
#define AT_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of bytes, computed with SSE 4.2 where available. */
uint32_t at_crc32c(const void *bytes, size_t size);

/* The same without SSE 4.2; exported so that tests can check the fallback on any processor. */
uint32_t at_crc32c_portable(const void *bytes, size_t size);

/* The checksum rotated and offset, as TensorFlow stores it, because checksums of data that contains
 * plain checksums are weak. */
uint32_t at_crc32c_masked(const void *bytes, size_t size);

#endif
