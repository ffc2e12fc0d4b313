/* Fuzz target: any file as CSV. */
#include "../sets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_file(&at_format_csv, data, size, (at_read_options){0});
    check_file(&at_format_csv, data, size, (at_read_options){.real_labels = true});
    return 0;
}
