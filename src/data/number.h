/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - numbers from text: fast where they are short, always exact.
 *
 * Eight digits are converted at once: as bytes of a word they are combined in
 * pairs, then pairs of pairs, then all. FL_TEXT_SLACK bytes after any text must
 * be readable, so that a word can be loaded at the start of any token. */
#ifndef FL_DATA_NUMBER_H
#define FL_DATA_NUMBER_H

#include "base/clones.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    FL_TEXT_SLACK = 128 /* bytes after a text that must be readable */
};

extern const double fl_tenths[]; /* 1, 0.1, 0.01, .. 1e-22 */

/* Read any token; all of it must be the number. */
bool fl_i64_any(const char *p, size_t len, int64_t *out);
bool fl_f32_any(const char *p, size_t len, float *out);
bool fl_f64_any(const char *p, size_t len, double *out);

static inline uint64_t fl_word(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* Read n digits, 1 to 8. False: a byte is not a digit. */
static inline bool fl_digits8(const char *p, size_t n, uint64_t *out)
{
    uint64_t x = (fl_word(p) ^ 0x3030303030303030) << (64 - 8 * n);
    const uint64_t wrong = (x | (x + 0x7676767676767676)) & 0x8080808080808080;
    x = x * 10 + (x >> 8); /* pairs, in every second byte */
    x = ((x & 0x000000ff000000ff) * 0x000f424000000064 +
         ((x >> 16) & 0x000000ff000000ff) * 0x0000271000000001) >>
        32;
    *out = x & 0xffffffff;
    return !wrong;
}

/* Read n digits, 9 to 16. */
static inline bool fl_digits16(const char *p, size_t n, uint64_t *out)
{
    uint64_t high, low;
    const bool high_ok = fl_digits8(p, n - 8, &high);
    const bool low_ok = fl_digits8(p + n - 8, 8, &low);
    *out = high * 100000000 + low;
    return high_ok && low_ok;
}

/* Read an integer, perhaps with a minus. Numbers up to 2^64 - 1 are allowed and
 * wrap, because Fluid's ids are unsigned and its tensors are signed. */
static inline bool fl_parse_i64(const char *p, size_t len, int64_t *out)
{
    uint64_t x;
    if (len - 1 < 8 && fl_digits8(p, len, &x)) {
        *out = (int64_t)x;
        return true;
    }
    return fl_i64_any(p, len, out);
}

/* The float nearest to a number that differs from x by at most 4 units in the
 * last place. False: x is too close to the middle of two floats to decide; the
 * 29 bits that a float does not have show this. */
static inline bool fl_f32_of(double x, float *out)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    *out = (float)x;
    return ((bits & 0x1fffffff) - 0x0ffffff8) > 16;
}

/* The float nearest to w * 10^-places (places 0 to 22). False: it cannot be
 * decided. The product is wrong by at most 2 units in the last place. */
static inline bool fl_f32_near(int64_t w, size_t places, float *out)
{
    return fl_f32_of((double)w * fl_tenths[places], out);
}

/* Read n digits, 17 to 19, that fit into an int64. */
static inline bool fl_digits19(const char *p, size_t n, uint64_t *out)
{
    uint64_t high, low;
    const bool high_ok = fl_digits8(p, n - 16, &high);
    const bool low_ok = fl_digits16(p + n - 16, 16, &low);
    *out = high * 10000000000000000 + low;
    return high_ok && low_ok && high < 900;
}

/* The float that strtof gives, if it is finite. Hexadecimal numbers are
 * refused. The fast case is "0." and up to 19 digits, such as 0.25. */
static inline bool fl_parse_f32(const char *p, size_t len, float *out)
{
    uint64_t x;
    const size_t n = len - 2; /* digits after the point */
    const unsigned first = (unsigned char)p[0] - (unsigned)'0';
    if (first > 9 || p[1] != '.' || n - 1 >= 19 || (first && n > 8))
        return fl_f32_any(p, len, out);
    const bool ok = n <= 8    ? fl_digits8(p + 2, n, &x)
                    : n <= 16 ? fl_digits16(p + 2, n, &x)
                              : fl_digits19(p + 2, n, &x);
    static const int64_t ten[] = {1,      10,      100,      1000,     10000,
                                  100000, 1000000, 10000000, 100000000};
    if (ok && fl_f32_near((int64_t)x + (first ? first * ten[n] : 0), n, out))
        return true;
    return fl_f32_any(p, len, out);
}

#endif
