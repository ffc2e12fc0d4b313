/* JPEG by libjpeg and PNG by libpng. Both report errors by longjmp, so everything that must be
 * released afterwards is in a struct outside of the function that calls setjmp. */
#include "data/formats/image.h"

#include "base/arena.h"
#include "data/files/sniff.h"

#include <assert.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#define HINT "replace the file, or move it out of the folder"

static bool is_png(const unsigned char *bytes, size_t size)
{
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static bool is_jpeg(const unsigned char *bytes, size_t size)
{
    return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

bool at_image_has_magic(const unsigned char *bytes, size_t size)
{
    assert(bytes || size == 0);
    return is_png(bytes, size) || is_jpeg(bytes, size);
}

/* AT_ERR_FORMAT for an image that is empty or too large. */
static at_err check_size(const at_image_file *file, uint64_t width, uint64_t height, at_fail *fail)
{
    assert(file->name);
    if (width > 0 && height > 0 && width <= AT_IMAGE_SIDE_MAX && height <= AT_IMAGE_SIDE_MAX &&
        width * height <= AT_IMAGE_PIXELS_MAX)
        return AT_OK;
    return at_fail_set(fail, AT_ERR_FORMAT, "make it smaller, or move it out of the folder",
                       "%s: %llu x %llu pixels according to the header (allowed: 1 to %d million)",
                       file->name, (unsigned long long)width, (unsigned long long)height,
                       AT_IMAGE_PIXELS_MAX >> 20);
}

/* Checks the size, then reserves pixels. */
static at_err reserve_pixels(at_image *image, const at_image_file *file, uint64_t width,
                             uint64_t height, at_fail *fail)
{
    assert(!image->pixels);
    size_t size;
    AT_TRY(check_size(file, width, height, fail));
    if (at_size_product((size_t)(width * height), 3, &size)) image->pixels = malloc(size);
    if (!image->pixels) return at_fail_memory_for(fail, "for the pixels of %s", file->name);
    image->width = (uint32_t)width;
    image->height = (uint32_t)height;
    return AT_OK;
}

/* The message of the decoder library about damage near a position. */
static at_err damaged(const at_image_file *file, size_t position, const char *message,
                      at_fail *fail)
{
    assert(message);
    assert(position <= file->size);
    return at_fail_set(fail, AT_ERR_FORMAT, HINT, "%s: damaged near byte %zu of %zu (%s)",
                       file->name, position, file->size, message);
}

/* ---- JPEG ------------------------------------------------------------------------------------ */

/* LIMIT: progressive images with more scans are refused; a few kilobytes could take hours. */
enum { SCANS_MAX = 200, SCALE_MAX = 8 };

typedef struct jpeg_decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr         errors;
    struct jpeg_progress_mgr      progress;
    const at_image_file          *file;
    at_image                     *image;
    at_fail                      *fail;
    at_err                        err;
    char                          message[JMSG_LENGTH_MAX];
    jmp_buf                       give_up;
} jpeg_decoder;

_Noreturn static void on_jpeg_error(j_common_ptr jpeg)
{
    jpeg_decoder *d = jpeg->client_data;
    jpeg->err->format_message(jpeg, d->message);
    longjmp(d->give_up, 1);
}

/* Level -1 is a warning. Missing data is treated as an error: the decoder would fill in grey. */
static void on_jpeg_message(j_common_ptr jpeg, int level)
{
    if (level != -1) return;
    int code = jpeg->err->msg_code;
    if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER) on_jpeg_error(jpeg);
}

static void on_jpeg_progress(j_common_ptr jpeg)
{
    jpeg_decoder *d = jpeg->client_data;
    if (d->jpeg.input_scan_number <= SCANS_MAX) return;
    snprintf(d->message, sizeof d->message, "more than %d scans", SCANS_MAX);
    longjmp(d->give_up, 1);
}

/* The largest power of two by which both sides may shrink, in the frequency domain. */
static unsigned scale_for(uint64_t width, uint64_t height, uint32_t side_min)
{
    uint64_t side = width < height ? width : height;
    unsigned scale = 1;
    while (side_min > 0 && scale < SCALE_MAX && side / (2 * scale) >= side_min) scale *= 2;
    return scale;
}

static void read_jpeg(jpeg_decoder *d, uint32_t side_min)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->client_data = d;
    d->progress.progress_monitor = on_jpeg_progress;
    jpeg->progress = &d->progress;
    jpeg_mem_src(jpeg, d->file->bytes, d->file->size);
    jpeg_read_header(jpeg, TRUE);
    /* A decoder may need the full size in memory even for a smaller result. */
    d->err = check_size(d->file, jpeg->image_width, jpeg->image_height, d->fail);
    if (!d->err && (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK))
        d->err = at_fail_set(d->fail, AT_ERR_FORMAT, "convert it to RGB",
                             "%s: CMYK JPEG images are not supported", d->file->name);
    if (d->err) return;
    jpeg->out_color_space = JCS_RGB;
    jpeg->scale_num = 1;
    jpeg->scale_denom = scale_for(jpeg->image_width, jpeg->image_height, side_min);
    jpeg_calc_output_dimensions(jpeg);
    d->err = reserve_pixels(d->image, d->file, jpeg->output_width, jpeg->output_height, d->fail);
    if (d->err) return;
    jpeg_start_decompress(jpeg);
    assert(jpeg->output_components == 3);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW line = d->image->pixels + (size_t)jpeg->output_scanline * jpeg->output_width * 3;
        jpeg_read_scanlines(jpeg, &line, 1);
    }
    jpeg_finish_decompress(jpeg);
}

/* Approximate position of the decoder, which inserts two bytes of its own at the end of a file. */
static size_t jpeg_position(const jpeg_decoder *d)
{
    const struct jpeg_source_mgr *source = d->jpeg.src;
    if (!source || source->bytes_in_buffer > d->file->size) return 0;
    if (source->next_input_byte < d->file->bytes ||
        source->next_input_byte > d->file->bytes + d->file->size)
        return d->file->size;
    return (size_t)(source->next_input_byte - d->file->bytes);
}

static at_err decode_jpeg(const at_image_file *file, uint32_t side_min, at_image *image,
                          at_fail *fail)
{
    assert(!image->pixels);
    jpeg_decoder d = {.file = file, .image = image, .fail = fail};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.jpeg.client_data = &d;
    d.errors.error_exit = on_jpeg_error;
    d.errors.emit_message = on_jpeg_message;
    if (setjmp(d.give_up) == 0)
        read_jpeg(&d, side_min);
    else
        d.err = damaged(file, jpeg_position(&d), d.message, fail);
    jpeg_destroy_decompress(&d.jpeg);
    return d.err;
}

/* ---- PNG ------------------------------------------------------------------------------------- */

typedef struct png_decoder {
    const at_image_file *file;
    at_image            *image;
    at_fail             *fail;
    size_t               read; /* bytes handed to libpng */
    png_structp          png;
    png_infop            info;
    at_err               err;
    char                 message[128];
    jmp_buf              give_up;
} png_decoder;

_Noreturn static void on_png_error(png_structp png, png_const_charp message)
{
    png_decoder *d = png_get_error_ptr(png);
    snprintf(d->message, sizeof d->message, "%s", message);
    longjmp(d->give_up, 1);
}

/* Warnings are about color profiles, comments and the like. */
static void on_png_warning(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
}

static void on_png_read(png_structp png, png_bytep bytes, size_t size)
{
    png_decoder *d = png_get_io_ptr(png);
    assert(d->read <= d->file->size);
    if (size > d->file->size - d->read) png_error(png, "truncated file");
    memcpy(bytes, d->file->bytes + d->read, size);
    d->read += size;
}

/* Makes libpng convert everything to 8-bit RGB. */
static void convert_to_rgb(const png_decoder *d)
{
    png_set_palette_to_rgb(d->png);
    png_set_expand_gray_1_2_4_to_8(d->png);
    png_set_gray_to_rgb(d->png);
    png_set_scale_16(d->png);
    png_set_strip_alpha(d->png);
}

static void read_png(png_decoder *d)
{
    png_set_read_fn(d->png, d, on_png_read);
    png_set_user_limits(d->png, AT_IMAGE_SIDE_MAX, AT_IMAGE_SIDE_MAX);
    png_read_info(d->png, d->info);
    d->err = reserve_pixels(d->image, d->file, png_get_image_width(d->png, d->info),
                            png_get_image_height(d->png, d->info), d->fail);
    if (d->err) return;
    convert_to_rgb(d);
    int    passes = png_set_interlace_handling(d->png);
    size_t line = (size_t)d->image->width * 3;
    png_read_update_info(d->png, d->info);
    if (png_get_rowbytes(d->png, d->info) != line) png_error(d->png, "unknown color type");
    memset(d->image->pixels, 0, line * d->image->height);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < d->image->height; y++)
            png_read_row(d->png, d->image->pixels + y * line, NULL);
    png_read_end(d->png, NULL);
}

static at_err decode_png(const at_image_file *file, at_image *image, at_fail *fail)
{
    assert(!image->pixels);
    png_decoder d = {.file = file, .image = image, .fail = fail};
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_png_error, on_png_warning);
    if (d.png) d.info = png_create_info_struct(d.png);
    if (!d.info)
        d.err = at_fail_memory_for(fail, "for %s", file->name);
    else if (setjmp(d.give_up) == 0)
        read_png(&d);
    else
        d.err = damaged(file, d.read, d.message, fail);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    return d.err;
}

/* ---- any image ------------------------------------------------------------------------------- */

static at_err not_an_image(const at_image_file *file, at_fail *fail)
{
    if (file->size == 0)
        return at_fail_set(fail, AT_ERR_FORMAT, HINT, "%s: the file is empty (0 bytes)",
                           file->name);
    at_sniff_result sniffed =
        at_sniff(file->bytes, file->size < AT_SNIFF_SIZE ? file->size : AT_SNIFF_SIZE);
    return at_fail_set(fail, AT_ERR_FORMAT, sniffed.hint,
                       "%s: not a JPEG or PNG image; it looks like %s", file->name, sniffed.what);
}

at_err at_image_decode(const at_image_file *file, uint32_t side_min, at_image *image, at_fail *fail)
{
    assert(file->name && image);
    *image = (at_image){0};
    at_err err;
    if (is_png(file->bytes, file->size))
        err = decode_png(file, image, fail);
    else if (is_jpeg(file->bytes, file->size))
        err = decode_jpeg(file, side_min, image, fail);
    else
        err = not_an_image(file, fail);
    if (err) at_image_deinit(image);
    return err;
}

void at_image_deinit(at_image *image)
{
    assert(image);
    free(image->pixels);
    *image = (at_image){0};
}
