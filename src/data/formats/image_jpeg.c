/* JPEG by libjpeg. Its errors come by longjmp, so everything that must be released afterwards lives
 * in a struct outside of the function that calls setjmp. */
#include "data/formats/image.h"

#include <assert.h>
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h wants FILE and size_t from it */

#include <jerror.h>
#include <jpeglib.h>

/* LIMIT: a progressive image of more scans is refused; some kilobytes can ask for hours of work. */
enum { SCANS_MAX = 200, SCALE_MAX = 8 };

typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr         errors;
    struct jpeg_progress_mgr      progress;
    const at_image_file          *file;
    at_image                     *image;
    at_fail                      *fail;
    at_err                        err;
    char                          words[JMSG_LENGTH_MAX];
    jmp_buf                       give_up;
} decoder;

_Noreturn static void on_error(j_common_ptr jpeg)
{
    decoder *d = jpeg->client_data;
    jpeg->err->format_message(jpeg, d->words);
    longjmp(d->give_up, 1);
}

/* Level -1 is a warning. Missing data is an error to us: the decoder would go on with grey. */
static void on_message(j_common_ptr jpeg, int level)
{
    if (level != -1) return;
    int code = jpeg->err->msg_code;
    if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER) on_error(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
    decoder *d = jpeg->client_data;
    if (d->jpeg.input_scan_number <= SCANS_MAX) return;
    snprintf(d->words, sizeof d->words, "more than %d scans", SCANS_MAX);
    longjmp(d->give_up, 1);
}

/* The largest power of two by which both sides may shrink, done in the frequency domain. */
static unsigned scale_for(uint64_t width, uint64_t height, uint32_t side_wanted)
{
    uint64_t side = width < height ? width : height;
    unsigned scale = 1;
    while (side_wanted > 0 && scale < SCALE_MAX && side / (2 * scale) >= side_wanted) scale *= 2;
    return scale;
}

static void read_pixels(decoder *d, uint32_t side_wanted)
{
    struct jpeg_decompress_struct *jpeg = &d->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->client_data = d;
    d->progress.progress_monitor = on_progress;
    jpeg->progress = &d->progress;
    jpeg_mem_src(jpeg, d->file->bytes, d->file->size);
    jpeg_read_header(jpeg, TRUE);
    /* A decoder may keep all of the full size in memory, even if we want less. */
    d->err = at_image_check(d->file, jpeg->image_width, jpeg->image_height, d->fail);
    if (!d->err && (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK))
        d->err = at_fail_set(d->fail, AT_ERR_FORMAT, "convert it to RGB",
                             "%s: at byte 0, a JPEG image in the colours of printers (CMYK)",
                             d->file->name);
    if (d->err) return;
    jpeg->out_color_space = JCS_RGB;
    jpeg->scale_num = 1;
    jpeg->scale_denom = scale_for(jpeg->image_width, jpeg->image_height, side_wanted);
    jpeg_calc_output_dimensions(jpeg);
    d->err = at_image_reserve(d->image, d->file, jpeg->output_width, jpeg->output_height, d->fail);
    if (d->err) return;
    jpeg_start_decompress(jpeg);
    assert(jpeg->output_components == 3);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW line = d->image->pixels + (size_t)jpeg->output_scanline * jpeg->output_width * 3;
        jpeg_read_scanlines(jpeg, &line, 1);
    }
    jpeg_finish_decompress(jpeg);
}

/* About where the decoder was; at the end of a file it makes up two bytes of its own. */
static size_t position(const decoder *d)
{
    const struct jpeg_source_mgr *source = d->jpeg.src;
    if (!source || source->bytes_in_buffer > d->file->size) return 0;
    if (source->next_input_byte < d->file->bytes ||
        source->next_input_byte > d->file->bytes + d->file->size)
        return d->file->size;
    return (size_t)(source->next_input_byte - d->file->bytes);
}

at_err at_image_decode_jpeg(const at_image_file *file, uint32_t side_wanted, at_image *image,
                            at_fail *fail)
{
    assert(!image->pixels);
    decoder d = {.file = file, .image = image, .fail = fail};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.jpeg.client_data = &d;
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_message;
    if (setjmp(d.give_up) == 0)
        read_pixels(&d, side_wanted);
    else
        d.err = at_image_damaged(file, position(&d), d.words, fail);
    jpeg_destroy_decompress(&d.jpeg);
    return d.err;
}
