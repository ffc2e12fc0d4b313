/* Runs a fuzz target on the files named on the command line, for compilers without a fuzzer:
 *     build/tests/fuzz_data_idx tests/fuzz/corpus/data_idx/...
 * A finding is a crash or a failed assertion; the last name printed is the input that caused it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { INPUT_SIZE_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int count, char **names)
{
    uint8_t *bytes = malloc(INPUT_SIZE_MAX);
    if (!bytes) return 1;
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(names[i], "rb");
        if (!file) return fprintf(stderr, "%s: cannot open\n", names[i]), 1;
        size_t size = fread(bytes, 1, INPUT_SIZE_MAX, file);
        fclose(file);
        printf("%s: %zu bytes\n", names[i], size);
        fflush(stdout);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    free(bytes);
    return 0;
}
