/* Numbers are scanned here because strtod accepts "nan", "inf", "0x10" and leading blanks, and
 * rounds whole numbers beyond 2^53. */
#include "base/text.h"

#include <assert.h>
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_SIZE_MAX = 64,  /* longer than any known name */
    EXPONENT_MAX = 10000 /* beyond every type; bounds the arithmetic on hostile exponents */
};

static const double YEARS_100_NS = 100 * 365.25 * 24 * 3600 * 1e9;

at_text at_text_in(char *buffer, size_t size)
{
    assert(buffer);
    assert(size >= 1);
    buffer[0] = '\0';
    return (at_text){.bytes = buffer, .size = size};
}

void at_text_add(at_text *text, const char *format, ...)
{
    assert(text->used < text->size);
    size_t  room = text->size - text->used;
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(text->bytes + text->used, room, format, args);
    va_end(args);
    assert(wanted >= 0);
    if ((size_t)wanted < room) {
        text->used += (size_t)wanted;
    } else {
        text->used = text->size - 1;
        text->full = true;
    }
}

void at_text_add_word(at_text *text, const char *word)
{
    bool plain = *word && !strpbrk(word, " \t\n\"'\\$;&|<>*?()[]{}!#~`");
    if (plain) {
        at_text_add(text, "%s", word);
        return;
    }
    at_text_add(text, "'");
    for (; *word; word++) at_text_add(text, *word == '\'' ? "'\\%c'" : "%c", *word);
    at_text_add(text, "'");
}

/* value = value*10 + digit; false on overflow. */
static bool append_digit(int64_t *value, int digit)
{
    assert(digit >= 0 && digit <= 9);
    return !__builtin_mul_overflow(*value, 10, value) &&
           !__builtin_add_overflow(*value, digit, value);
}

/* Scans digits into *mantissa; the number is mantissa * 10^power. */
static bool scan_mantissa(const char **cursor, int64_t *mantissa, int *power)
{
    const char *p = *cursor;
    bool        fraction = false, any = false;
    *mantissa = 0;
    *power = 0;
    for (;; p++) {
        if (*p == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (!isdigit((unsigned char)*p)) break;
        if (!append_digit(mantissa, *p - '0')) return false;
        any = true;
        *power -= fraction;
    }
    *cursor = p;
    return any;
}

/* Adds an optional exponent ("e4", "E-05") to *power. */
static bool scan_exponent(const char **cursor, int *power)
{
    const char *p = *cursor;
    if (*p != 'e' && *p != 'E') return true;
    p++;
    int sign = *p == '-' ? -1 : 1;
    if (*p == '-' || *p == '+') p++;
    if (!isdigit((unsigned char)*p)) return false;
    int exponent = 0;
    for (; isdigit((unsigned char)*p); p++)
        if (exponent < EXPONENT_MAX) exponent = exponent * 10 + (*p - '0');
    *power += sign * exponent;
    *cursor = p;
    return true;
}

static void scan_suffix(const char **cursor, int *power)
{
    assert(**cursor != '\0');
    static const struct {
        char letter;
        int  power;
    } suffixes[] = {{'k', 3}, {'M', 6}, {'G', 9}};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (**cursor != suffixes[i].letter) continue;
        *power += suffixes[i].power;
        ++*cursor;
        return;
    }
}

/* *value * 10^power; false when the result is not a 64-bit whole number. */
static bool shift_decimal(int64_t *value, int power)
{
    assert(*value >= 0);
    if (*value == 0) return true; /* for any power; avoids long loops below */
    for (; power > 0; power--)
        if (__builtin_mul_overflow(*value, 10, value)) return false;
    for (; power < 0; power++) {
        if (*value % 10) return false;
        *value /= 10;
    }
    return true;
}

/* Those of ASCII, and U+0080 to U+009F, which have two bytes. */
void at_text_remove_controls(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c; c++) {
        bool is_ascii = (*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f;
        bool is_wide = *c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
        if (is_wide) c[1] = '?';
        if (is_ascii || is_wide) *c = '?';
    }
}

void at_text_flatten(char *text)
{
    at_text_remove_controls(text);
    while ((text = strpbrk(text, "\t\n"))) *text = '?';
}

bool at_text_whole(const char *text, int64_t *value)
{
    assert(text);
    assert(value);
    const char *p = text;
    bool        negative = *p == '-';
    int64_t     mantissa;
    int         power;
    if (*p == '-' || *p == '+') p++;
    if (!scan_mantissa(&p, &mantissa, &power)) return false;
    if (!scan_exponent(&p, &power)) return false;
    if (*p) scan_suffix(&p, &power);
    if (*p || !shift_decimal(&mantissa, power)) return false;
    *value = negative ? -mantissa : mantissa;
    return true;
}

/* A constant of the C library, which is neither allocated nor freed. */
static locale_t c_locale(void)
{
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert(locale);
    return locale;
}

double at_text_strtod(const char *text, char **end)
{
    assert(text);
    return strtod_l(text, end, c_locale());
}

float at_text_strtof(const char *text, char **end)
{
    assert(text);
    return strtof_l(text, end, c_locale());
}

/* Parses a finite decimal number at the start of text; *rest is the remaining text. */
static bool scan_real(const char *text, double *value, const char **rest)
{
    assert(value && rest);
    const char *p = text;
    if (*p == '-' || *p == '+') p++;
    bool is_hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    if (is_hex || (!isdigit((unsigned char)*p) && *p != '.')) return false;
    char  *end;
    double number = at_text_strtod(text, &end);
    if (end == text || !isfinite(number)) return false;
    *value = number;
    *rest = end;
    return true;
}

bool at_text_real(const char *text, double *value)
{
    assert(text);
    assert(value);
    double      number;
    const char *rest;
    if (!scan_real(text, &number, &rest)) return false;
    bool percent = *rest == '%';
    if (rest[percent]) return false;
    *value = percent ? number / 100 : number;
    return true;
}

bool at_text_bytes(const char *text, uint64_t *value)
{
    assert(text);
    static const struct {
        const char *name;
        double      bytes;
    } units[] = {{"", 1},         {"B", 1},           {"kB", 1e3},
                 {"MB", 1e6},     {"GB", 1e9},        {"TB", 1e12},
                 {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
    double      number;
    const char *rest;
    if (!scan_real(text, &number, &rest) || signbit(number)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(rest, units[i].name)) continue;
        double bytes = number * units[i].bytes;
        if (!(bytes <= 1e18)) return false;
        *value = (uint64_t)bytes;
        return true;
    }
    return false;
}

bool at_text_duration(const char *text, at_ns *value)
{
    assert(text);
    assert(value);
    static const struct {
        const char *name;
        double      ns;
    } units[] = {{"", 1e9},  {"s", 1e9},    {"ms", 1e6},  {"us", 1e3},
                 {"ns", 1.}, {"min", 60e9}, {"h", 3600e9}};
    double      number;
    const char *rest;
    if (!scan_real(text, &number, &rest) || signbit(number)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(rest, units[i].name)) continue;
        double ns = number * units[i].ns;
        if (!(ns <= YEARS_100_NS)) return false;
        *value = (at_ns)llround(ns);
        return true;
    }
    return false;
}

/* Three digits, in the unit that leaves 1 to 999 before the point after rounding. */
static bool add_short_duration(at_text *text, double ns)
{
    static const struct {
        const char *name;
        double      ns, limit;
    } units[] = {{"us", 1e3, 999.5}, {"ms", 1e6, 999.5}, {"s", 1e9, 59.95}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double amount = ns / units[i].ns;
        if (amount >= units[i].limit) continue;
        int decimals = amount < 9.995 ? 2 : amount < 99.95 ? 1 : 0;
        at_text_add(text, "%.*f%s", decimals, amount, units[i].name);
        return true;
    }
    return false;
}

static void add_long_duration(at_text *text, double ns)
{
    long long seconds = llround(ns / 1e9), minutes = llround(ns / 60e9);
    assert(seconds >= 60);
    if (seconds < 3600)
        at_text_add(text, "%lldmin%02lld", seconds / 60, seconds % 60);
    else
        at_text_add(text, "%lldh%02lld", minutes / 60, minutes % 60);
}

const char *at_text_show_duration(char *buffer, size_t size, at_ns value)
{
    at_text text = at_text_in(buffer, size);
    double  ns = fabs((double)value);
    if (value < 0) at_text_add(&text, "-");
    if (value == AT_NEVER)
        at_text_add(&text, "never");
    else if (ns < 1000)
        at_text_add(&text, "%.0fns", ns);
    else if (!add_short_duration(&text, ns))
        add_long_duration(&text, ns);
    return buffer;
}

const char *at_text_show_number(char *buffer, size_t size, double value)
{
    at_text text = at_text_in(buffer, size);
    at_text_add(&text, fabs(value) >= 1000 ? "%.0f" : "%.4g", value);
    return buffer;
}

void at_text_add_real(at_text *text, double value)
{
    char    digits[32];
    at_text rounded = at_text_in(digits, sizeof digits);
    at_text_add(&rounded, "%.15g", value);
    if (at_text_strtod(digits, NULL) == value)
        at_text_add(text, "%s", digits);
    else
        at_text_add(text, "%.17g", value);
}

void at_text_add_duration(at_text *text, at_ns value, const char *unit)
{
    char    digits[32];
    at_ns   again;
    at_text rounded = at_text_in(digits, sizeof digits);
    at_text_add(&rounded, "%.15g", at_seconds(value));
    if (at_text_duration(digits, &again) && again == value)
        at_text_add(text, "%s%s", digits, unit);
    else
        at_text_add(text, "%lldns", (long long)value);
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Insertions, deletions, replacements and swaps of neighbors to turn a into b. */
static size_t edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    assert(a_size <= NAME_SIZE_MAX);
    assert(b_size <= NAME_SIZE_MAX);
    size_t  rows[3][NAME_SIZE_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_size; j++) row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *oldest = before;
        before = last, last = row, row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            bool same = same_letter(a[i - 1], b[j - 1]);
            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + !same);
            bool swapped = i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                           same_letter(a[i - 2], b[j - 1]);
            if (swapped && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
        }
    }
    return row[b_size];
}

static bool has_prefix(const char *text, const char *prefix, size_t prefix_size)
{
    for (size_t i = 0; i < prefix_size; i++)
        if (!same_letter(text[i], prefix[i])) return false; /* also at the end of text */
    return true;
}

/* Distance of `name` from a known name. Prefixes in either direction ("mom" for momentum,
 * "tracefile" for trace) count as near, however many letters differ. */
static size_t name_distance(const char *name, size_t name_size, const char *known)
{
    size_t known_size = strlen(known);
    assert(name_size <= NAME_SIZE_MAX);
    if (known_size > NAME_SIZE_MAX) return SIZE_MAX;
    size_t distance = edit_distance(name, name_size, known, known_size);
    if (distance > 1 && name_size >= 2 && has_prefix(known, name, name_size)) return 1;
    if (distance > 1 && known_size >= 3 && has_prefix(name, known, known_size)) return 1;
    return distance;
}

const char *at_text_nearest(const char *name, const char *const *names, size_t count)
{
    assert(name);
    assert(names || count == 0);
    size_t name_size = strnlen(name, NAME_SIZE_MAX + 1);
    if (name_size > NAME_SIZE_MAX) return NULL;
    size_t      limit = name_size < 5 ? 1 : (name_size + 1) / 3;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = name_distance(name, name_size, names[i]);
        if (distance > limit) continue;
        nearest = names[i];
        if (distance == 0) break;
        limit = distance - 1; /* the first of equals wins */
    }
    return nearest;
}

at_err at_text_unknown(const char *what, const char *name, const char *const *names, size_t count,
                       at_fail *fail)
{
    assert(count > 0);
    char        hint[sizeof fail->hint]; /* room for the names of all strategies */
    at_text     text = at_text_in(hint, sizeof hint);
    const char *nearest = at_text_nearest(name, names, count);
    if (nearest) at_text_add(&text, "did you mean %s? ", nearest);
    at_text_add(&text, "known:");
    for (size_t i = 0; i < count; i++) at_text_add(&text, " %s", names[i]);
    return at_fail_set(fail, AT_ERR_USAGE, hint, "unknown %s '%s'", what, name);
}
