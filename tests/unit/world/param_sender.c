#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "world/mpi/param_sender.h"

static void messages_too_large_for_mpi_are_detected(void **state)
{
    (void)state;
    size_t size;
    assert_true(at_hub_message_size(7850 * sizeof(float), 4, &size));
    assert_true(size >= AT_HUB_MESSAGE_HEAD + 7850 * sizeof(float) + 4 * AT_ORDER_MESSAGE);
    assert_false(at_hub_message_size(((size_t)INT32_MAX + 1) * sizeof(float), 1, &size));
    assert_false(at_hub_message_size(SIZE_MAX / 2, 1, &size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_too_large_for_mpi_are_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
