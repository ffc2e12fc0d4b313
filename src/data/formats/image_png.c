/* PNG by libpng. Its errors come by longjmp, so everything that must be released afterwards lives
 * in a struct outside of the function that calls setjmp. */
#include "data/formats/image.h"

#include <assert.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

typedef struct decoder {
    const at_image_file *file;
    at_image            *image;
    at_fail             *fail;
    size_t               read; /* bytes handed to libpng */
    png_structp          png;
    png_infop            info;
    at_err               err;
    char                 words[128];
    jmp_buf              give_up;
} decoder;

_Noreturn static void on_error(png_structp png, png_const_charp words)
{
    decoder *d = png_get_error_ptr(png);
    snprintf(d->words, sizeof d->words, "%s", words);
    longjmp(d->give_up, 1);
}

/* Warnings are about colour profiles, comments and the like. */
static void on_warning(png_structp png, png_const_charp words)
{
    (void)png, (void)words;
}

static void on_read(png_structp png, png_bytep bytes, size_t size)
{
    decoder *d = png_get_io_ptr(png);
    assert(d->read <= d->file->size);
    if (size > d->file->size - d->read) png_error(png, "the file is cut off");
    memcpy(bytes, d->file->bytes + d->read, size);
    d->read += size;
}

/* Whatever the file holds, libpng shall give 8-bit red, green and blue. */
static void ask_for_rgb(const decoder *d)
{
    png_set_palette_to_rgb(d->png);
    png_set_expand_gray_1_2_4_to_8(d->png);
    png_set_gray_to_rgb(d->png);
    png_set_scale_16(d->png);
    png_set_strip_alpha(d->png);
}

static void read_pixels(decoder *d)
{
    png_set_read_fn(d->png, d, on_read);
    png_set_user_limits(d->png, AT_IMAGE_SIDE_MAX, AT_IMAGE_SIDE_MAX);
    png_read_info(d->png, d->info);
    d->err = at_image_reserve(d->image, d->file, png_get_image_width(d->png, d->info),
                              png_get_image_height(d->png, d->info), d->fail);
    if (d->err) return;
    ask_for_rgb(d);
    int    passes = png_set_interlace_handling(d->png);
    size_t line = (size_t)d->image->width * 3;
    png_read_update_info(d->png, d->info);
    if (png_get_rowbytes(d->png, d->info) != line) png_error(d->png, "unknown kind of colours");
    memset(d->image->pixels, 0, line * d->image->height);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < d->image->height; y++)
            png_read_row(d->png, d->image->pixels + y * line, NULL);
    png_read_end(d->png, NULL);
}

at_err at_image_decode_png(const at_image_file *file, at_image *image, at_fail *fail)
{
    assert(!image->pixels);
    decoder d = {.file = file, .image = image, .fail = fail};
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
    if (d.png) d.info = png_create_info_struct(d.png);
    if (!d.info)
        d.err = at_fail_memory_for(fail, "for %s", file->name);
    else if (setjmp(d.give_up) == 0)
        read_pixels(&d);
    else
        d.err = at_image_damaged(file, d.read, d.words, fail);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    return d.err;
}
