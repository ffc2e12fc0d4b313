/* Fuzz target: any file as Criteo click logs, hashed to few features so that hashes collide. */
#include "../sets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_file(&at_format_criteo, data, size, (at_read_options){.hash_bits = 8});
    return 0;
}
