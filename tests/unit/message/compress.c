/* The codec of --compress: rounding, sizes, the largest values, and bytes that no encoder wrote. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "message/compress.h"
#include "message/compress_kernels.h"
#include "message/compress_topk.h"

static const at_compress FP16 = {.kind = AT_COMPRESS_FP16}, BF16 = {.kind = AT_COMPRESS_BF16};

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* One value there and back. */
static float sent(at_compress how, float value)
{
    at_packing packing;
    uint32_t   bytes[1];
    float      back;
    at_fail    fail;
    assert_true(at_packing_of_gradient(how, 1, 0, &packing));
    assert_int_equal(packing.size, sizeof bytes);
    at_pack(&packing, bytes, &value);
    assert_int_equal(at_unpack(&packing, &back, bytes, sizeof bytes, &fail), AT_OK);
    return back;
}

/* ---- the option ------------------------------------------------------------------------------ */

static void the_option_is_read_or_explained(void **state)
{
    (void)state;
    at_compress how;
    at_fail     fail;
    assert_int_equal(at_compress_read(NULL, &how, &fail), AT_OK);
    assert_int_equal(how.kind, AT_COMPRESS_NONE);
    assert_int_equal(at_compress_read("bf16", &how, &fail), AT_OK);
    assert_int_equal(how.kind, AT_COMPRESS_BF16);
    assert_int_equal(at_compress_read("topk:0.01", &how, &fail), AT_OK);
    assert_int_equal(how.kind, AT_COMPRESS_TOPK);
    assert_true(how.share == 0.01);
    const char *const bad[] = {"topk",     "topk:",  "topk:0", "topk:0.6", "topk:-1",
                               "topk:nan", "topk:x", "bf",     "",         "fp32"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(at_compress_read(bad[i], &how, &fail), AT_ERR_USAGE);
        assert_true(fail.text[0] && fail.hint[0]);
    }
}

/* ---- rounding -------------------------------------------------------------------------------- */

static void halves_round_to_nearest_and_ties_to_even(void **state)
{
    (void)state;
    assert_true(sent(BF16, 1.0f) == 1.0f);
    assert_true(sent(BF16, float_of(0x3f808000)) == 1.0f);                 /* a tie: 1 is even */
    assert_true(sent(BF16, float_of(0x3f818000)) == float_of(0x3f820000)); /* a tie: up is even */
    assert_true(sent(BF16, float_of(0x3f808001)) == float_of(0x3f810000));
    assert_true(sent(BF16, -float_of(0x3f807fff)) == -1.0f);
    assert_true(sent(FP16, float_of(0x3f801000)) == 1.0f);
    assert_true(sent(FP16, float_of(0x3f803000)) == float_of(0x3f804000));
    assert_true(sent(FP16, float_of(0x3f801001)) == float_of(0x3f802000));
    assert_true(sent(FP16, 0.333251953125f) == 0.333251953125f);
}

static void zeros_keep_their_sign(void **state)
{
    (void)state;
    assert_int_equal(bits_of(sent(BF16, -0.0f)), 0x80000000u);
    assert_int_equal(bits_of(sent(FP16, -0.0f)), 0x80000000u);
}

static void nan_and_infinity_stay_what_they_are(void **state)
{
    (void)state;
    const at_compress hows[] = {FP16, BF16};
    for (int i = 0; i < 2; i++) {
        assert_true(isnan(sent(hows[i], NAN)));
        assert_true(isnan(sent(hows[i], float_of(0x7f800001)))); /* signalling, smallest payload */
        assert_true(isnan(sent(hows[i], float_of(0xffffffff))));
        assert_true(sent(hows[i], INFINITY) == INFINITY);
        assert_true(sent(hows[i], -INFINITY) == -INFINITY);
    }
}

static void finite_values_stay_finite(void **state)
{
    (void)state;
    assert_true(sent(FP16, 65504.0f) == 65504.0f);
    assert_true(sent(FP16, 65520.0f) == 65504.0f);
    assert_true(sent(FP16, -3e38f) == -65504.0f);
    assert_true(sent(BF16, 3.4028234e38f) == float_of(0x7f7f0000));
    assert_true(sent(BF16, -3.4028234e38f) == -float_of(0x7f7f0000));
}

static void small_values_become_subnormal_or_zero(void **state)
{
    (void)state;
    assert_true(sent(FP16, 0x1p-14f) == 0x1p-14f);
    assert_true(sent(FP16, 0x1p-24f) == 0x1p-24f);
    assert_true(sent(FP16, 0x1.8p-24f) == 0x1p-23f); /* a tie: up is even */
    assert_true(sent(FP16, 0x1p-25f) == 0);          /* a tie: zero is even */
    assert_true(sent(FP16, 0x1.000002p-25f) == 0x1p-24f);
    assert_true(sent(FP16, -0x1.ff8p-15f) == -0x1.ff8p-15f);
    assert_true(sent(FP16, 0x1.ffffp-15f) == 0x1p-14f); /* rounds up to a normal number */
    assert_true(sent(BF16, float_of(0x00010000)) == float_of(0x00010000));
    assert_true(sent(BF16, float_of(0x00008000)) == 0);
}

static void every_half_survives_a_round_trip(void **state)
{
    (void)state;
    const at_compress_kernels *k = at_compress_kernels_for(AT_ISA_PORTABLE);
    const at_half_kernels     *kinds[] = {&k->fp16, &k->bf16};
    for (int kind = 0; kind < 2; kind++)
        for (uint32_t half = 0; half < 1 << 16; half++) {
            uint16_t in = (uint16_t)half, out;
            float    wide;
            kinds[kind]->widen(&wide, &in, 1);
            kinds[kind]->narrow(&out, &wide, 1);
            if (isnan(wide))
                assert_int_equal(out & 0x7fff & ~0x240, in & 0x7fff & ~0x240);
            else
                assert_int_equal(out, in);
        }
}

/* ---- instruction sets ------------------------------------------------------------------------ */

enum { MANY = (1 << 16) + 37 };

/* Floats of every exponent, and special ones. */
static void fill(float *v, size_t count, uint64_t seed)
{
    at_rng rng = at_rng_stream(seed, 0, 0, 0);
    for (size_t i = 0; i < count; i++) v[i] = float_of((uint32_t)at_rng_next(&rng));
    const uint32_t special[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7f800001,
                                0x7fffffff, 0x7f7fffff, 0x477fefff, 0x477ff000, 0x33000000,
                                0x33000001, 0x387fffff, 0x38800000, 0x00000001};
    for (size_t i = 0; i < sizeof special / sizeof *special && i < count; i++)
        v[i * 11 % count] = float_of(special[i]);
}

static void compare_halves(const at_half_kernels *a, const at_half_kernels *b)
{
    static float    v[MANY], residual[2][MANY], wide[2][MANY];
    static uint16_t half[2][MANY];
    fill(v, MANY, 5);
    for (int i = 0; i < 2; i++) {
        const at_half_kernels *k = i ? b : a;
        k->narrow(half[i], v, MANY);
        k->widen(wide[i], half[i], MANY);
    }
    assert_memory_equal(half[0], half[1], sizeof half[0]);
    assert_memory_equal(wide[0], wide[1], sizeof wide[0]);
    memset(residual, 0, sizeof residual);
    for (int round = 0; round < 3; round++) {
        fill(v, MANY, 6 + (uint64_t)round);
        a->narrow_with_residual(half[0], v, residual[0], MANY);
        b->narrow_with_residual(half[1], v, residual[1], MANY);
        for (size_t i = 0; i < MANY; i++) assert_true(isfinite(residual[0][i]));
        assert_memory_equal(half[0], half[1], sizeof half[0]);
        assert_memory_equal(residual[0], residual[1], sizeof residual[0]);
    }
}

static void all_instruction_sets_give_the_same_bits(void **state)
{
    (void)state;
    static float               v[MANY];
    const at_compress_kernels *plain = at_compress_kernels_for(AT_ISA_PORTABLE);
    fill(v, MANY, 1);
    for (at_isa isa = AT_ISA_AVX2; isa <= at_isa_here(); isa++) {
        const at_compress_kernels *fast = at_compress_kernels_for(isa);
        compare_halves(&plain->fp16, &fast->fp16);
        compare_halves(&plain->bf16, &fast->bf16);
        const uint32_t least[] = {1, 0x3f800000, 0x7f800000, 0x7fffffff};
        for (size_t i = 0; i + AT_COMPRESS_GROUP <= MANY; i += AT_COMPRESS_GROUP)
            for (int k = 0; k < 4; k++)
                assert_int_equal(plain->large_ones(v + i, least[k]),
                                 fast->large_ones(v + i, least[k]));
    }
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static void sizes_are_known_before(void **state)
{
    (void)state;
    at_packing p;
    assert_true(at_packing_of_gradient(BF16, 7, 2, &p));
    assert_int_equal(p.size, 3 * 4 + 2 * 4); /* five halves in three units, two floats */
    assert_true(at_packing_of_params(FP16, 8, 0, &p));
    assert_int_equal(p.size, 16);
    at_compress topk = {.kind = AT_COMPRESS_TOPK, .share = 0.01};
    assert_true(at_packing_of_gradient(topk, 1000000, 0, &p));
    assert_int_equal(p.kept, 10000);
    assert_int_equal(p.size, 16 * 4 + 10000 * 4);
    assert_true(p.size * 50 < 1000000 * sizeof(float));
    assert_true(at_packing_of_params(topk, 1000, 0, &p));
    assert_int_equal(p.size, 4000);
    assert_true(at_packing_of_gradient(topk, 3, 0, &p));
    assert_int_equal(p.kept, 1);
    assert_true(at_packing_of_gradient(topk, 3, 3, &p));
    assert_int_equal(p.size, 12);
    assert_false(at_packing_of_gradient(BF16, SIZE_MAX / 4 + 1, 0, &p));
    assert_false(at_packing_of_gradient(topk, (size_t)UINT32_MAX + 1, 0, &p));
}

static void the_last_floats_are_sent_in_full(void **state)
{
    (void)state;
    const float v[5] = {1.001f, -2.002f, 1e30f, 3.14159265f, 1e-30f};
    float       back[5], residual[3] = {0};
    uint32_t    bytes[8];
    at_packing  p;
    at_fail     fail;
    assert_true(at_packing_of_gradient(FP16, 5, 2, &p));
    at_pack_with_residual(&p, bytes, v, residual);
    assert_int_equal(at_unpack(&p, back, bytes, p.size, &fail), AT_OK);
    assert_memory_equal(back + 3, v + 3, 2 * sizeof(float));
    assert_true(back[2] == 65504.0f);
    assert_int_equal(at_unpack(&p, back, bytes, p.size - 4, &fail), AT_ERR_FORMAT);
    assert_int_equal(at_unpack(&p, back, bytes, p.size + 4, &fail), AT_ERR_FORMAT);
}

/* ---- residuals ------------------------------------------------------------------------------- */

/* Sent over many rounds is what was computed, except for the last residual. */
static void check_feedback(at_compress how)
{
    enum { FLOATS = 1000, ROUNDS = 400 };
    static float  v[FLOATS], back[FLOATS], residual[FLOATS];
    static double given[FLOATS], got[FLOATS];
    uint32_t      bytes[FLOATS];
    at_packing    p;
    at_fail       fail;
    at_rng        rng = at_rng_stream(3, 0, 0, 0);
    assert_true(at_packing_of_gradient(how, FLOATS, 0, &p));
    memset(residual, 0, sizeof residual);
    memset(given, 0, sizeof given);
    memset(got, 0, sizeof got);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < FLOATS; i++) {
            v[i] = (float)(at_rng_normal(&rng) + 0.1);
            given[i] += (double)v[i];
        }
        at_pack_with_residual(&p, bytes, v, residual);
        assert_int_equal(at_unpack(&p, back, bytes, p.size, &fail), AT_OK);
        for (size_t i = 0; i < FLOATS; i++) got[i] += (double)back[i];
    }
    for (size_t i = 0; i < FLOATS; i++)
        assert_true(fabs(given[i] - got[i] - (double)residual[i]) < 1e-3);
}

static void residuals_bring_what_was_not_sent(void **state)
{
    (void)state;
    check_feedback(FP16);
    check_feedback(BF16);
    check_feedback((at_compress){.kind = AT_COMPRESS_TOPK, .share = 0.05});
}

/* ---- the largest values ---------------------------------------------------------------------- */

typedef struct place {
    uint32_t size, index;
} place;

/* Largest first; among equal ones the first. */
static int by_size(const void *left, const void *right)
{
    const place *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void check_topk(const at_compress_kernels *kernels, const float *v, size_t floats,
                       size_t kept)
{
    float    *left = malloc(floats * sizeof *left), *back = malloc(floats * sizeof *back);
    place    *order = malloc(floats * sizeof *order);
    uint32_t *bytes = calloc(at_topk_blocks(floats) + kept, sizeof *bytes);
    assert_true(left && back && order && bytes);
    memcpy(left, v, floats * sizeof *left);
    for (size_t i = 0; i < floats; i++)
        order[i] = (place){.size = bits_of(v[i]) & 0x7fffffff, .index = (uint32_t)i};
    qsort(order, floats, sizeof *order, by_size);
    at_topk_pack(kernels, bytes, left, floats, kept);
    assert_true(at_topk_unpack(back, floats, bytes, kept));
    for (size_t i = 0; i < floats; i++) {
        size_t k = order[i].index;
        float  half = sent(BF16, v[k]);
        assert_true(isfinite(left[k]));
        if (i < kept) {
            assert_int_equal(bits_of(back[k]), bits_of(half));
            if (isfinite(v[k])) assert_true(left[k] == v[k] - half);
        } else {
            assert_int_equal(bits_of(back[k]), 0);
            if (isfinite(v[k])) assert_int_equal(bits_of(left[k]), bits_of(v[k]));
        }
    }
    free(bytes);
    free(order);
    free(back);
    free(left);
}

static void exactly_the_largest_values_are_sent(void **state)
{
    (void)state;
    enum { FLOATS = 2 * AT_TOPK_BLOCK + 77 };
    float *v = malloc(FLOATS * sizeof *v);
    at_rng rng = at_rng_stream(9, 0, 0, 0);
    assert_non_null(v);
    for (at_isa isa = AT_ISA_PORTABLE; isa <= at_isa_here(); isa++) {
        const at_compress_kernels *kernels = at_compress_kernels_for(isa);
        for (size_t i = 0; i < FLOATS; i++) v[i] = (float)(at_rng_normal(&rng) * 1e-3);
        check_topk(kernels, v, FLOATS, 1311);
        fill(v, FLOATS, 4);
        check_topk(kernels, v, FLOATS, 700);
        check_topk(kernels, v, FLOATS, 1); /* fewer than there are NaNs */
        check_topk(kernels, v, 77, 76);
        check_topk(kernels, v, 1, 1);
        for (size_t i = 0; i < FLOATS; i++) v[i] = i % 3 ? -0.5f : 0; /* ties, also across blocks */
        check_topk(kernels, v, FLOATS, 1000);
        check_topk(kernels, v, FLOATS, AT_TOPK_BLOCK);
        for (size_t i = 0; i < FLOATS; i++) v[i] = 0;
        check_topk(kernels, v, FLOATS, 5);
    }
    free(v);
}

static void positions_from_a_peer_are_checked(void **state)
{
    (void)state;
    enum { FLOATS = AT_TOPK_BLOCK + 10, KEPT = 4 };
    static float v[FLOATS];
    const struct {
        uint32_t count[2];
        uint16_t position[KEPT];
        bool     good;
    } rows[] = {{{2, 2}, {5, 65535, 0, 9}, true},       {{4, 0}, {1, 2, 3, 4}, true},
                {{2, 2}, {5, 5, 0, 9}, false},          /* twice */
                {{2, 2}, {6, 5, 0, 9}, false},          /* not in order */
                {{2, 2}, {5, 6, 0, 10}, false},         /* behind the end */
                {{2, 1}, {5, 6, 0, 9}, false},          /* too few */
                {{2, 3}, {5, 6, 0, 9}, false},          /* too many */
                {{UINT32_MAX, 5}, {5, 6, 0, 9}, false}, /* their sum overflows */
                {{0, 4}, {5, 6, 7, 12}, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t bytes[2 + KEPT] = {rows[i].count[0], rows[i].count[1]};
        memcpy(bytes + 2, rows[i].position, sizeof rows[i].position);
        assert_int_equal(at_topk_unpack(v, FLOATS, bytes, KEPT), rows[i].good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_option_is_read_or_explained),
        cmocka_unit_test(halves_round_to_nearest_and_ties_to_even),
        cmocka_unit_test(zeros_keep_their_sign),
        cmocka_unit_test(nan_and_infinity_stay_what_they_are),
        cmocka_unit_test(finite_values_stay_finite),
        cmocka_unit_test(small_values_become_subnormal_or_zero),
        cmocka_unit_test(every_half_survives_a_round_trip),
        cmocka_unit_test(all_instruction_sets_give_the_same_bits),
        cmocka_unit_test(sizes_are_known_before),
        cmocka_unit_test(the_last_floats_are_sent_in_full),
        cmocka_unit_test(residuals_bring_what_was_not_sent),
        cmocka_unit_test(exactly_the_largest_values_are_sent),
        cmocka_unit_test(positions_from_a_peer_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
