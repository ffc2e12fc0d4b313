#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"

#include <string.h>

/* The examples of RFC 3720, and the usual check value of nine digits. */
static void known_checksums_are_reproduced(void **state)
{
    (void)state;
    unsigned char bytes[32];
    assert_int_equal(at_crc32c("", 0), 0);
    assert_int_equal(at_crc32c("123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(at_crc32c(bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(at_crc32c(bytes, sizeof bytes), 0x62a8ab43);
    for (unsigned i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)i;
    assert_int_equal(at_crc32c(bytes, sizeof bytes), 0x46dd794e);
}

/* Rotated right by 15 bits, then added to a constant. */
static void the_mask_is_that_of_tensorflow(void **state)
{
    (void)state;
    assert_int_equal(at_crc32c_masked("", 0), 0xa282ead8);
    uint32_t crc = at_crc32c("123456789", 9);
    uint32_t rotated = crc >> 15 | crc << 17;
    assert_int_equal(at_crc32c_masked("123456789", 9), (uint32_t)(rotated + 0xa282ead8u));
}

static void all_implementations_agree(void **state)
{
    (void)state;
    unsigned char bytes[100];
    for (unsigned i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 37);
    for (size_t from = 0; from < 9; from++)
        for (size_t size = 0; from + size <= sizeof bytes; size++)
            assert_int_equal(at_crc32c(bytes + from, size), at_crc32c_portable(bytes + from, size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_checksums_are_reproduced),
        cmocka_unit_test(the_mask_is_that_of_tensorflow),
        cmocka_unit_test(all_implementations_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
