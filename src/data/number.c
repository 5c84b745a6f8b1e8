/* SPDX-License-Identifier: Apache-2.0 */
/* number.c - reads the numbers that the fast functions of number.h cannot.
 * Floats of up to 18 digits with small exponents are computed as a double. The
 * C library reads all others, and those too close to the middle of two floats.
 */
#include "data/number.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

enum {
    DIGITS = 18, /* any 18 digits fit into an int64 */
    PLACES = 22, /* 10^22 is the largest power of ten that a double represents
                    exactly */
    LONGEST = 1024,  /* characters of a float, at most */
    EXPONENT = 9999, /* a larger exponent gives the same result */
};

const double fl_tenths[] = {
    1e0,   1e-1,  1e-2,  1e-3,  1e-4,  1e-5,  1e-6,  1e-7,
    1e-8,  1e-9,  1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15,
    1e-16, 1e-17, 1e-18, 1e-19, 1e-20, 1e-21, 1e-22,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool fl_i64_any(const char *p, size_t len, int64_t *out)
{
    uint64_t x = 0;
    const bool minus = len && *p == '-';
    if (len <= (size_t)minus)
        return false;
    for (size_t i = minus; i < len; i++)
        if (!is_digit(p[i]) || __builtin_mul_overflow(x, 10, &x) ||
            __builtin_add_overflow(x, (uint64_t)(p[i] - '0'), &x))
            return false;
    if (minus && x > (uint64_t)INT64_MAX + 1)
        return false;
    *out = (int64_t)(minus ? -x : x);
    return true;
}

/* A decimal number w * 10^exponent, unless digits were dropped. */
typedef struct decimal {
    bool minus, lost;
    int64_t w;
    int digits;   /* number of digits of w, without leading zeros */
    int exponent; /* power of ten */
} decimal;

static void add_digit(decimal *d, char c, bool behind_point)
{
    const bool keep = d->digits < DIGITS;
    d->lost |= !keep;
    if (keep) {
        d->w = d->w * 10 + (c - '0');
        d->digits += d->w != 0;
    }
    d->exponent += !keep - behind_point;
}

/* Add the digits from p[i] on. Returns the index after them. */
static size_t add_digits(decimal *d, const char *p, size_t i, size_t len,
                         bool behind_point)
{
    for (; i < len && is_digit(p[i]); i++)
        add_digit(d, p[i], behind_point);
    return i;
}

static bool add_exponent(decimal *d, const char *p, size_t len)
{
    size_t i = len && (*p == '-' || *p == '+');
    int e = 0;
    if (i == len)
        return false;
    for (; i < len && is_digit(p[i]); i++)
        e = e < EXPONENT ? e * 10 + (p[i] - '0') : e;
    d->exponent += *p == '-' ? -e : e;
    return i == len;
}

static bool take_apart(const char *p, size_t len, decimal *d)
{
    *d = (decimal){.minus = len && *p == '-'};
    const size_t from = len && (*p == '-' || *p == '+');
    size_t i = add_digits(d, p, from, len, false);
    size_t digits = i - from;
    if (i < len && p[i] == '.') {
        const size_t point = i + 1;
        i = add_digits(d, p, point, len, true);
        digits += i - point;
    }
    if (!digits)
        return false;
    if (i < len && (p[i] | 0x20) == 'e')
        return add_exponent(d, p + i + 1, len - i - 1);
    return i == len;
}

/* Let the C library read a NUL-terminated copy, in the locale "C". */
static bool by_library(const char *p, size_t len, double *x, float *y)
{
    char copy[LONGEST + 1], *end;
    memcpy(copy, p, len);
    copy[len] = 0;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (x)
        *x = strtod_l(copy, &end, c);
    else
        *y = strtof_l(copy, &end, c);
    freelocale(c);
    return end == copy + len && (x ? isfinite(*x) : isfinite(*y));
}

bool fl_f32_any(const char *p, size_t len, float *out)
{
    decimal d;
    if (len > LONGEST || !take_apart(p, len, &d))
        return false;
    if (!d.lost && d.exponent <= 0 && d.exponent >= -PLACES &&
        fl_f32_near(d.w, (size_t)-d.exponent, out)) {
        *out = d.minus ? -*out : *out;
        return true;
    }
    return by_library(p, len, NULL, out);
}

bool fl_f64_any(const char *p, size_t len, double *out)
{
    decimal d;
    return len <= LONGEST && take_apart(p, len, &d) &&
           by_library(p, len, out, NULL);
}
