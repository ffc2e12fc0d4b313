#include "data/prep/prep.h"

#include "base/arena.h"
#include "base/text.h"
#include "data/prep/prep_kind.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const size_t NUMBERS_MAX = (size_t)1 << 26; /* LIMIT: 256 MiB per prepared sample */

static const at_prep_kind *const kinds[] = {
    &at_prep_scale,     &at_prep_resize,      &at_prep_pad, &at_prep_crop, &at_prep_flip,
    &at_prep_normalise, &at_prep_standardise, &at_prep_rgb, &at_prep_grey, &at_prep_raw,
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

bool at_prep_parse_size(const char *args, uint32_t max, uint32_t *height, uint32_t *width)
{
    char        word[2][16] = {"", ""};
    int64_t     value[2];
    const char *x = args ? strchr(args, 'x') : NULL;
    size_t      length = x ? (size_t)(x - args) : args ? strlen(args) : 0;
    const char *second = x ? x + 1 : args;
    if (length == 0 || length >= sizeof word[0] || strlen(second) >= sizeof word[1]) return false;
    memcpy(word[0], args, length);
    memcpy(word[1], second, strlen(second));
    for (int i = 0; i < 2; i++)
        if (!at_text_whole(word[i], &value[i]) || value[i] < 1 || value[i] > max) return false;
    *height = (uint32_t)value[0];
    *width = (uint32_t)value[1];
    return true;
}

/* American spellings are accepted. */
static const char *native_name(const char *name)
{
    static const char *const spelling[][2] = {
        {"normalize", "normalise"}, {"standardize", "standardise"}, {"gray", "grey"}};
    for (size_t i = 0; i < sizeof spelling / sizeof *spelling; i++)
        if (strcmp(spelling[i][0], name) == 0) return spelling[i][1];
    return name;
}

static const at_prep_kind *kind_of(const char *name)
{
    assert(name);
    name = native_name(name);
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
    return NULL;
}

static at_err unknown_step(const char *name, at_fail *fail)
{
    const char *names[KIND_COUNT];
    for (size_t i = 0; i < KIND_COUNT; i++) names[i] = kinds[i]->name;
    return at_text_unknown("--prep step", name, names, KIND_COUNT, fail);
}

static at_err impossible(const at_prep *prep, const char *entry, const char *why, at_fail *fail)
{
    const at_prep_step *step = &prep->step[prep->steps - 1];
    at_image_shape      in = step->in, out = step->out;
    assert(why);
    if (memcmp(&in, &out, sizeof in) == 0)
        return at_fail_set(fail, AT_ERR_USAGE, why,
                           "--prep: step %zu, %s, cannot be applied to %ux%ux%u "
                           "(channels x height x width)",
                           prep->steps, entry, in.channels, in.height, in.width);
    return at_fail_set(fail, AT_ERR_USAGE, why,
                       "--prep: step %zu, %s, cannot make %ux%ux%u from %ux%ux%u "
                       "(channels x height x width)",
                       prep->steps, entry, out.channels, out.height, out.width, in.channels,
                       in.height, in.width);
}

static void update_sizes(at_prep *prep, const at_prep_step *step)
{
    size_t sides[] = {step->in.height, step->in.width, step->out.height, step->out.width};
    size_t size = at_image_shape_size(step->out);
    for (size_t i = 0; i < 4; i++)
        if (sides[i] > prep->side_max) prep->side_max = sides[i];
    if (size > prep->size_max) prep->size_max = size;
    if (step->scratch_size > prep->scratch_max) prep->scratch_max = step->scratch_size;
    prep->out = step->out;
}

/* Checks the input before the kind plans the step, and the size of the result afterwards. */
static at_err add_step(at_prep *prep, char *entry, at_fail *fail)
{
    if (prep->steps == AT_PREP_STEPS_MAX)
        return at_fail_set(fail, AT_ERR_USAGE, NULL, "--prep: more than %d steps",
                           AT_PREP_STEPS_MAX);
    char *colon = strchr(entry, ':');
    if (colon) *colon = '\0';
    const at_prep_kind *kind = kind_of(entry);
    if (!kind) return unknown_step(entry, fail);
    at_prep_step *step = &prep->step[prep->steps++];
    const char   *why = "this step needs images, but the samples are feature vectors";
    *step = (at_prep_step){.kind = kind, .in = prep->out, .out = prep->out};
    bool image = kind->remap || kind->resizes;
    bool good = !(image && at_image_shape_is_vector(step->in)) &&
                kind->plan(step, colon ? colon + 1 : NULL, &why);
    size_t plane, size;
    if (good && (!at_size_product(step->out.height, step->out.width, &plane) ||
                 !at_size_product(plane, step->out.channels, &size) || size > NUMBERS_MAX)) {
        why = "the result would be too large";
        good = false;
    }
    if (good && kind->bytes_only && prep->steps > 1) {
        why = "write it first: it needs the bytes as they were read";
        good = false;
    }
    if (colon) *colon = ':';
    if (!good) return impossible(prep, entry, why, fail);
    step->text = strdup(entry);
    if (!step->text) return at_fail_memory_for(fail, "for --prep");
    update_sizes(prep, step);
    return AT_OK;
}

/* Finds the next entry of the list, without surrounding blanks; a number after a comma belongs to
 * the entry before. Returns the rest of the list, or NULL at the end. *size is the entry's
 * length. */
static const char *next_entry(const char *text, const char **entry, size_t *size)
{
    const char *end = text;
    for (;; end++) {
        end += strcspn(end, ",");
        const char *next = end + (*end == ',');
        next += strspn(next, " ");
        if (*end == '\0' || !(isdigit((unsigned char)*next) || strchr(".+-", *next)) || !*next)
            break;
    }
    const char *rest = *end ? end + 1 : NULL;
    text += strspn(text, " ");
    while (end > text && end[-1] == ' ') end--;
    *entry = text;
    *size = (size_t)(end - text);
    return rest;
}

/* `entry` has room for the whole text. */
static at_err parse(at_prep *prep, const char *text, char *entry, at_fail *fail)
{
    while (text) {
        const char *from;
        size_t      size;
        text = next_entry(text, &from, &size);
        if (size == 0)
            return at_fail_set(fail, AT_ERR_USAGE, "separate steps by commas: flip,grey",
                               "--prep: step %zu is empty", prep->steps + 1);
        memcpy(entry, from, size);
        entry[size] = '\0';
        AT_TRY(add_step(prep, entry, fail));
    }
    return AT_OK;
}

at_err at_prep_new(const char *text, at_image_shape in, at_prep **out, at_fail *fail)
{
    assert(text && out);
    assert(in.channels > 0 && in.height > 0 && in.width > 0);
    *out = NULL;
    at_prep *prep = calloc(1, sizeof *prep);
    char    *entry = malloc(strlen(text) + 1);
    at_err   err = prep && entry ? AT_OK : at_fail_memory_for(fail, "for --prep");
    if (!err) {
        prep->in = prep->out = in;
        prep->size_max = at_image_shape_size(in);
        err = parse(prep, text, entry, fail);
    }
    free(entry);
    if (err)
        at_prep_free(prep);
    else
        *out = prep;
    return err;
}

void at_prep_free(at_prep *prep)
{
    if (!prep) return;
    for (size_t i = 0; i < prep->steps; i++) {
        free(prep->step[i].state);
        free(prep->step[i].text);
    }
    free(prep);
}

char *at_prep_text(const at_prep *prep)
{
    char  *text = NULL;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    assert(prep->fitted);
    if (!to) return NULL;
    for (size_t i = 0; i < prep->steps; i++) {
        const at_prep_step *step = &prep->step[i];
        if (i) fputc(',', to);
        if (step->needs_stats && step->kind->write_fitted)
            step->kind->write_fitted(step, to);
        else
            fputs(step->text, to);
    }
    if (fclose(to) == 0) return text;
    free(text);
    return NULL;
}

at_image_shape at_prep_out(const at_prep *prep)
{
    assert(prep);
    return prep->out;
}
