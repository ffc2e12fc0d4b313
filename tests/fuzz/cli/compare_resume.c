/* Fuzz target: any text as the compare.json of a comparison that is resumed. Entries and options
 * come from it, but never a command. */
#include <fcntl.h>

#include "../folder.h"
#include "cli/verbs/compare.h"

enum { REPEATS_MAX = 100 }; /* more only cost memory */

static void restore_entry(at_compare *compare, const at_parsed *parsed, uint32_t index)
{
    static at_entry entries[AT_WORDS_MAX];
    at_entry       *entry = &entries[index];
    at_fail         fail = {0};
    compare->entry = entries;
    at_err err = at_entry_open(entry, parsed->word[index], parsed,
                               (uint32_t)parsed->settings.repeats, &fail);
    if (!err) err = at_compare_restore_entry(compare, index, &fail);
    assert(!err == !fail.text[0]);
    at_entry_close(entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    at_parsed  parsed;
    at_compare compare = {.parsed = &parsed};
    at_fail    fail = {0};
    at_err     err = at_options_init(&parsed, &fail);
    int        here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(!err && here >= 0);
    fuzz_file("compare.json", data, size, NULL, 0);
    parsed.settings.resume = fuzz_folder();
    err = at_compare_resume(&compare, &parsed, &fail);
    assert(!err == !fail.text[0] && !parsed.command);
    if (!err) {
        for (uint32_t i = 0; i < parsed.words && parsed.settings.repeats <= REPEATS_MAX; i++)
            restore_entry(&compare, &parsed, i);
        json_decref(compare.before);
    }
    at_options_deinit(&parsed);
    int back = fchdir(here); /* compare.json names the folder where the comparison began */
    assert(back == 0);
    close(here);
    return 0;
}
