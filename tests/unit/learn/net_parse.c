/* .net texts: the nets they build, and the errors of invalid ones. */
#include "learn/net/net_parse.h"
#include "base/text.h"
#include "fixture.h"
#include "learn/net/net.h"

#include <stdio.h>
#include <unistd.h>

static const at_shape image = {192, 10, 3, 8, 8};

/* The net of a text; NULL and an error when it is invalid. */
static at_net *read_as(const char *text, at_shape shape, at_fail *why)
{
    at_net *net = at_net_new(AT_ENGINE_REF, shape, 4, true);
    assert_non_null(net);
    if (!at_net_parse(net, "my.net", text, why)) return net;
    assert_true(why->text[0] != '\0');
    at_net_free(net);
    return NULL;
}

static at_net *read_good(const char *text)
{
    at_fail why = {0};
    at_net *net = read_as(text, image, &why);
    if (!net) fail_msg("%s\n%s", text, why.text);
    return net;
}

static size_t count_kind(const at_net *net, const at_layer_kind *kind)
{
    size_t count = 0;
    for (size_t i = 0; i < net->count; i++) count += net->layer[i].kind == kind;
    return count;
}

static const at_layer *first_of(const at_net *net, const at_layer_kind *kind)
{
    for (size_t i = 0; i < net->count; i++)
        if (net->layer[i].kind == kind) return &net->layer[i];
    fail_msg("no %s", kind->name);
    return NULL;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void comments_blanks_and_line_ends_are_ignored(void **state)
{
    (void)state;
    at_net *net = read_good("# first\n\n \tconv  5x5x32 stride=2 name=a.b # rest\r\nrelu\r\n#\n"
                            "dense classes");
    const at_layer *conv = first_of(net, &at_layer_conv), *dense = first_of(net, &at_layer_dense);
    assert_int_equal(conv->spec.line, 3);
    assert_int_equal(conv->spec.window.height, 5);
    assert_int_equal(conv->spec.units, 32);
    assert_int_equal(conv->spec.window.stride, 2);
    assert_string_equal(conv->spec.name, "a.b");
    assert_true(conv->spec.relu);
    assert_int_equal(dense->spec.line, 6);
    at_net_free(net);
}

/* ---- info ------------------------------------------------------------------------------------ */

static void info_has_summary_input_and_classes(void **state)
{
    (void)state;
    at_net_info info;
    const char *text = "\n#  a net\n# more\ninput 3x32x16\nclasses 7\nnonsense\n";
    assert_int_equal(at_net_info_parse("my.net", text, &info, NULL), AT_OK);
    assert_string_equal(info.summary, "a net");
    assert_int_equal(info.channels, 3);
    assert_int_equal(info.height, 32);
    assert_int_equal(info.width, 16);
    assert_int_equal(info.classes, 7);
    assert_int_equal(at_net_info_parse("my.net", "input 100\n", &info, NULL), AT_OK);
    assert_int_equal(info.channels, 100);
    assert_int_equal(info.height * info.width, 1);
    assert_int_equal(info.classes, 0);
    assert_string_equal(info.summary, "");
}

static void a_long_summary_is_cut_between_characters(void **state)
{
    (void)state;
    at_net_info info;
    static const struct {
        const char *begin;
        size_t      length;
    } rows[] = {{"# x", 99}, {"# xy", 98}}; /* two-byte characters follow; 99 bytes fit */
    for (size_t i = 0; i < 2; i++) {
        char    buffer[300];
        at_text text = at_text_in(buffer, sizeof buffer);
        at_text_add(&text, "%s", rows[i].begin);
        for (int k = 0; k < 100; k++) at_text_add(&text, "\xc3\xa9");
        assert_int_equal(at_net_info_parse("my.net", buffer, &info, NULL), AT_OK);
        assert_int_equal(strlen(info.summary), rows[i].length);
    }
}

/* ---- valid texts ----------------------------------------------------------------------------- */

static void layers_have_the_defaults_of_tensorflow(void **state)
{
    (void)state;
    at_net         *net = read_good("conv 3x3x4\nmaxpool 2\nbn\nflatten\ndense classes\n");
    const at_layer *conv = first_of(net, &at_layer_conv);
    assert_true(conv->spec.bias);
    assert_int_equal(conv->spec.init.kind, AT_INIT_GLOROT);
    assert_int_equal(conv->spec.bias_init.kind, AT_INIT_ZERO);
    assert_int_equal(conv->out.height, 8);
    assert_int_equal(first_of(net, &at_layer_maxpool)->out.height, 4);
    assert_true(first_of(net, &at_layer_bn)->spec.momentum == 0.9);
    assert_int_equal(first_of(net, &at_layer_dense)->out.channels, 10);
    at_net_free(net);
}

static void options_reach_the_layer(void **state)
{
    (void)state;
    at_net *net = read_good("conv 3x5x4 stride=2 pad=1 bias=0.5 start=truncated:0.08 name=first\n"
                            "dropout keep=0.25\ngn 2 eps=1e-4\ndense classes bias=no start=he\n");
    const at_layer_spec *conv = &first_of(net, &at_layer_conv)->spec;
    assert_int_equal(conv->window.height, 3);
    assert_int_equal(conv->window.width, 5);
    assert_int_equal(conv->window.stride, 2);
    assert_int_equal(conv->window.right, 1);
    assert_false(conv->same);
    assert_true(conv->bias_init.kind == AT_INIT_CONST && conv->bias_init.number == 0.5);
    assert_true(conv->init.kind == AT_INIT_TRUNCATED && conv->init.number == 0.08);
    assert_string_equal(conv->name, "first");
    assert_true(first_of(net, &at_layer_dropout)->spec.keep == 0.25);
    assert_int_equal(first_of(net, &at_layer_gn)->spec.groups, 2);
    assert_false(first_of(net, &at_layer_dense)->spec.bias);
    at_net_free(net);
}

static void a_default_applies_to_later_lines_and_blocks(void **state)
{
    (void)state;
    at_net *net = read_good("conv 1x1x4\ndefault conv bias=no start=he\n"
                            "default bn momentum=0.5\ndefault basic norm=gn:2\n"
                            "conv 1x1x4\nbasic 4\nwide 4\navgpool all\ndense classes\n");
    assert_true(net->layer[0].spec.bias);
    assert_false(net->layer[1].spec.bias);
    assert_int_equal(net->layer[2].spec.init.kind, AT_INIT_HE);
    assert_int_equal(count_kind(net, &at_layer_gn), 2);
    assert_int_equal(count_kind(net, &at_layer_bn), 2);
    assert_true(first_of(net, &at_layer_bn)->spec.momentum == 0.5);
    at_net_free(net);
}

static void repeats_nest(void **state)
{
    (void)state;
    at_net *net = read_good("repeat 3\n repeat 2\n conv 1x1x4\n end\n maxpool 1\nend\n"
                            "dense classes\n");
    assert_int_equal(count_kind(net, &at_layer_conv), 6);
    assert_int_equal(count_kind(net, &at_layer_maxpool), 3);
    at_net_free(net);
}

static void a_residual_block_adds_its_input(void **state)
{
    (void)state;
    at_net         *net = read_good("conv 1x1x4\nresidual\nconv 3x3x4\nend\ndense classes\n");
    const at_layer *add = first_of(net, &at_layer_add);
    assert_int_equal(add->spec.from, 1);
    assert_int_equal(add->spec.other, 0);
    assert_true(net->layer[0].kept);
    at_net_free(net);
}

static void a_shortcut_reads_the_input_of_its_block(void **state)
{
    (void)state;
    static const char text[] = "conv 1x1x4\nresidual\nshortcut conv 1x1x6 stride=2 bias=no\n"
                               "shortcut bn\nconv 3x3x6 stride=2\nend\ndense classes\n";
    at_net           *net = read_good(text);
    const at_layer   *add = first_of(net, &at_layer_add);
    assert_int_equal(net->layer[1].spec.window.height, 3); /* the main path comes first */
    assert_int_equal(net->layer[2].spec.from, 0);
    assert_ptr_equal(net->layer[3].kind, &at_layer_bn);
    assert_int_equal(net->layer[3].spec.from, 2);
    assert_int_equal(add->spec.from, 3);
    assert_int_equal(add->spec.other, 1);
    at_net_free(net);
}

static void blocks_project_only_where_the_shape_changes(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        size_t      convs, norms, channels, height;
    } rows[] = {{"basic 8", 2, 2, 8, 8},        {"basic 8 stride=2", 3, 3, 8, 4},
                {"basic 6", 3, 3, 6, 8},        {"bottleneck 2", 3, 3, 8, 8},
                {"bottleneck 8", 4, 4, 32, 8},  {"bottleneck 2 stride=2", 4, 4, 8, 4},
                {"wide 8", 2, 2, 8, 8},         {"wide 4", 3, 2, 4, 8},
                {"wide 8 stride=2", 3, 2, 8, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        snprintf(text, sizeof text, "conv 1x1x8\n%s\ndense classes\n", rows[i].line);
        at_net         *net = read_good(text);
        const at_layer *add = first_of(net, &at_layer_add);
        assert_int_equal(count_kind(net, &at_layer_conv), 1 + rows[i].convs);
        assert_int_equal(count_kind(net, &at_layer_bn), rows[i].norms);
        assert_int_equal(add->out.channels, rows[i].channels);
        assert_int_equal(add->out.height, rows[i].height);
        at_net_free(net);
    }
}

/* The last convolution of a block that projects is its projection. */
static void projections_and_sums_read_the_right_layers(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int32_t     projection, from, other; /* -9: none */
    } rows[] = {{"basic 8", -9, 4, 0},       /* conv, then conv bn conv bn, add */
                {"basic 6", 0, 6, 4},        /* the same, conv bn, add */
                {"bottleneck 2", -9, 6, 0},  /* conv, then conv bn conv bn conv bn, add */
                {"bottleneck 8", 0, 8, 6},
                {"wide 8", -9, 4, 0}, /* conv, then bn conv bn conv, add */
                {"wide 4", 1, 5, 4}}; /* reads the output of the first bn and ReLU */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        snprintf(text, sizeof text, "conv 1x1x8\n%s\ndense classes\n", rows[i].line);
        at_net         *net = read_good(text);
        const at_layer *add = first_of(net, &at_layer_add);
        const at_layer *last = add;
        while (last->kind != &at_layer_conv) last--;
        assert_int_equal(add->spec.from, rows[i].from);
        assert_int_equal(add->spec.other, rows[i].other);
        if (rows[i].projection != -9) assert_int_equal(last->spec.from, rows[i].projection);
        if (rows[i].projection == -9) assert_int_equal(last->spec.from, last - net->layer - 1);
        at_net_free(net);
    }
}

static void groups_are_set_by_role_or_by_name(void **state)
{
    (void)state;
    at_net *net = read_good("group biases lr=2 decay=0\ngroup head lr=0.1 momentum=0.5 "
                            "schedule=cosine\nconv 1x1x4\ndense classes group=head\n");
    assert_int_equal(net->groups.count, 2);
    assert_true(net->groups.group[0].lr == 2 && net->groups.group[0].decay == 0);
    assert_true(net->groups.group[1].lr == 0.1 && net->groups.group[1].decay == 1);
    assert_true(net->groups.group[1].momentum == 0.5);
    assert_string_equal(net->groups.group[1].schedule, "cosine");
    assert_string_equal(first_of(net, &at_layer_dense)->spec.group, "head");
    at_net_free(net);
}

static void rgb_and_resize_skip_images_that_fit(void **state)
{
    (void)state;
    const char *text = "resize 8\nrgb\nconv 1x1x4\ndense classes\n";
    at_fail     why = {0};
    at_net     *net = read_as(text, image, &why);
    assert_int_equal(count_kind(net, &at_layer_rgb) + count_kind(net, &at_layer_resize), 0);
    at_net_free(net);
    net = read_as(text, (at_shape){25, 10, 1, 5, 5}, &why);
    assert_int_equal(count_kind(net, &at_layer_rgb) + count_kind(net, &at_layer_resize), 2);
    at_net_free(net);
}

/* ---- invalid texts --------------------------------------------------------------------------- */

static const struct invalid {
    const char *text;
    const char *error, *hint; /* parts of the messages */
} invalid[] = {
    {"cnv 3x3x4\n", "my.net line 1: unknown layer 'cnv'", "did you mean conv"},
    {"conv 1x1x1\nresize 9\ndense classes\n", "line 2: resize: it converts samples",
     "before the first layer"},
    {"conv 1x1x1\nrgb\ndense classes\n", "line 2: rgb: it converts samples",
     "before the first layer"},
    {"\n#\nconv 3x3x4 strid=2\n", "line 3: unknown option of conv 'strid'", "mean stride"},
    {"relu bias=no", "relu takes no options", ""},
    {"conv", "conv needs a size", "5x5x32"},
    {"conv 3x3", "invalid size \"3x3\"", "5x5x32"},
    {"conv 0x3x4", "invalid size", "5x5x32"},
    {"conv 3x3x4x5", "invalid size", "5x5x32"},
    {"conv 3x3x99999999999", "invalid size", ""},
    {"conv 3x3x4 5", "unexpected word", ""},
    {"a b c d e", "unexpected word", "comment"},
    {"conv 3x3x4 stride=0", "conv: invalid stride \"0\"", "from 1"},
    {"conv 3x3x4 stride=-1", "invalid stride \"-1\"", "from 1"},
    {"conv 3x3x4 pad=some", "invalid pad \"some\"", "same"},
    {"conv 3x3x4 bias=maybe", "invalid bias \"maybe\"", "yes"},
    {"conv 3x3x4 start=normal", "invalid start \"normal\"", "normal:SD"},
    {"conv 3x3x4 start=normal:nan", "invalid start", ""},
    {"conv 3x3x4 start=he:2", "invalid start \"he:2\"", ""},
    {"conv 3x3x4 stride=2 stride=3", "stride is given twice", ""},
    {"conv 3x3x4 stride=", "incomplete option", ""},
    {"conv stride=2 3x3x4", "after an option", "last"},
    {"stride=2", "starts with an option", ""},
    {"maxpool 3x2", "invalid size", "stride=2"},
    {"dropout keep=0", "invalid keep \"0\"", ""},
    {"bn momentum=1", "invalid momentum \"1\"", ""},
    {"basic 8 norm=gn", "invalid norm \"gn\"", "gn:32"},
    {"conv 3x3x4 name=a/b", "invalid name \"a/b\"", ""},
    {"conv 3x3x4 name=conv7", "\"conv7\" is reserved for unnamed layers", ""},
    {"conv 3x3x4 name=a\nconv 3x3x4 name=a", "line 2: the name \"a\" is already used on line 1",
     ""},
    {"repeat 2\nconv 3x3x4 name=a\nend\n", "line 2: the name \"a\" is already used", "repeat"},
    {"conv 3x3x4 group=mine", "unknown group \"mine\"", "group NAME"},
    {"group mine lr=2\ndense classes", "no layer is in the group \"mine\"", "group=NAME"},
    {"group biases", "at least one setting", "lr=2"},
    {"group biases lr=x", "invalid lr \"x\"", ""},
    {"group biases rl=2", "unknown group setting 'rl'", "lr"},
    {"group biases schedule=cosin", "did you mean cosine", ""},
    {"default conv", "at least one option", "default conv"},
    {"default cnv bias=no", "unknown layer 'cnv'", "mean conv"},
    {"default conv name=a", "unknown option of conv 'name'", ""},
    {"end", "end without a repeat or residual", ""},
    {"repeat 2\nrelu", "line 1: repeat has no end", ""},
    {"conv 1x1x3\nresidual\nconv 1x1x3\n", "line 2: residual has no end", ""},
    {"repeat 0\nend", "from 1 to 1000", ""},
    {"repeat 1001\nend", "from 1 to 1000", ""},
    {"conv 1x1x3\nresidual\nend\n", "residual block of line 2 has no layers", ""},
    {"shortcut relu", "outside a residual block", ""},
    {"conv 1x1x3\nresidual\nconv 1x1x3\nshortcut basic 3\nend",
     "basic cannot be used as a shortcut", ""},
    {"conv 1x1x3\nresidual\nconv 1x1x5\nend", "line 4: add: ", "shortcut"},
    {"input 3x8", "invalid input shape", "3x32x32"},
    {"conv 1x1x3\ninput 3x8x8", "before the first layer", ""},
    {"classes 1", "at least 2", ""},
    {"conv 1x1x4\nconv 9x9x4 pad=valid\ndense classes", "line 2: conv: ", ""},
    {"gn 2\ndense classes", "line 1: gn: ", ""},
    {"reshape 1x10x10\ndense classes", "line 1: reshape: ", ""},
    {"dense 5", "5 outputs", "dense classes"},
    {"", "has no layers", ""},
    {"conv 3x3x4\x01", "0x01", ""},
    {"conv 3x3x4 \xc3\xa9", "0xc3", "comments"},
};

static void errors_name_the_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        at_fail why = {0};
        at_net *net = read_as(invalid[i].text, image, &why);
        if (net) fail_msg("accepted: %s", invalid[i].text);
        assert_int_equal(why.err, AT_ERR_USAGE);
        if (!strstr(why.text, invalid[i].error) || !strstr(why.hint, invalid[i].hint))
            fail_msg("%s\n error: %s\n hint: %s", invalid[i].text, why.text, why.hint);
        assert_true(strncmp(why.text, "my.net", 6) == 0);
    }
}

static void shape_errors_name_both_shapes(void **state)
{
    (void)state;
    at_fail why = {0};
    assert_null(read_as("conv 1x1x3\nresidual\nconv 1x1x5\nend", image, &why));
    assert_non_null(strstr(why.text, "5x8x8"));
    assert_non_null(strstr(why.text, "3x8x8"));
    assert_null(read_as("conv 1x1x4\nconv 9x9x4 pad=valid\n", image, &why));
    assert_non_null(strstr(why.text, "9x9"));
    assert_non_null(strstr(why.text, "8x8"));
}

static void nesting_repeating_and_length_are_limited(void **state)
{
    (void)state;
    char   *text = calloc(1, AT_NET_TEXT_MAX + 100);
    at_fail why = {0};
    assert_non_null(text);
    at_text deep = at_text_in(text, AT_NET_TEXT_MAX);
    for (int i = 0; i < 17; i++) at_text_add(&deep, "repeat 1000\n");
    assert_null(read_as(text, image, &why));
    assert_non_null(strstr(why.text, "nested more than 16 levels"));
    deep = at_text_in(text, AT_NET_TEXT_MAX);
    for (int i = 0; i < 16; i++) at_text_add(&deep, "repeat 1000\n");
    for (int i = 0; i < 16; i++) at_text_add(&deep, "end\n");
    assert_null(read_as(text, image, &why));
    assert_non_null(strstr(why.text, "lines to execute"));
    assert_null(read_as("repeat 1000\nconv 1x1x3\nmaxpool 1\nend\n", image, &why));
    assert_non_null(strstr(why.text, "1024 layers"));
    memset(text, 'x', AT_NET_LINE_MAX + 1);
    text[AT_NET_LINE_MAX + 1] = '\0';
    assert_null(read_as(text, image, &why));
    assert_non_null(strstr(why.text, "at most 200"));
    memset(text, '\n', AT_NET_TEXT_MAX + 1);
    assert_null(read_as(text, image, &why));
    assert_non_null(strstr(why.text, "at most 65536 bytes"));
    free(text);
}

static void a_file_with_zero_bytes_is_not_cut_there(void **state)
{
    (void)state;
    static const char bytes[] = "input 4\nclasses 2\ndense 3\n\0dense 2\n";
    char              path[] = "/tmp/anytime-XXXXXX.net", *text;
    int               fd = mkstemps(path, 4);
    at_fail           why = {0};
    assert_int_equal(write(fd, bytes, sizeof bytes - 1), sizeof bytes - 1);
    close(fd);
    assert_int_equal(at_net_text_find(path, &text, &why), AT_ERR_FORMAT);
    assert_non_null(strstr(why.text, "not a text file"));
    assert_null(text);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_blanks_and_line_ends_are_ignored),
        cmocka_unit_test(a_file_with_zero_bytes_is_not_cut_there),
        cmocka_unit_test(info_has_summary_input_and_classes),
        cmocka_unit_test(a_long_summary_is_cut_between_characters),
        cmocka_unit_test(layers_have_the_defaults_of_tensorflow),
        cmocka_unit_test(options_reach_the_layer),
        cmocka_unit_test(a_default_applies_to_later_lines_and_blocks),
        cmocka_unit_test(repeats_nest),
        cmocka_unit_test(a_residual_block_adds_its_input),
        cmocka_unit_test(a_shortcut_reads_the_input_of_its_block),
        cmocka_unit_test(blocks_project_only_where_the_shape_changes),
        cmocka_unit_test(projections_and_sums_read_the_right_layers),
        cmocka_unit_test(groups_are_set_by_role_or_by_name),
        cmocka_unit_test(rgb_and_resize_skip_images_that_fit),
        cmocka_unit_test(errors_name_the_line),
        cmocka_unit_test(shape_errors_name_both_shapes),
        cmocka_unit_test(nesting_repeating_and_length_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
