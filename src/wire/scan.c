/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - finds NaN and infinities at the speed of memory.
 *
 * A float is NaN or infinite when all bits of its exponent are set. A block is
 * tested as a whole; the element is searched for only in a block that has one.
 */
#include "wire/scan.h"

#include "base/clones.h"

#include <string.h>

enum {
    BLOCK = 1024, /* elements that are tested together */
};

#define EXPONENT_F32 UINT32_C(0x7f800000)
#define EXPONENT_F64 UINT64_C(0x7ff0000000000000)

FL_CLONES static bool finite_f32(const char *x, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i * sizeof bits, sizeof bits);
        bad |= (bits & EXPONENT_F32) == EXPONENT_F32;
    }
    return !bad;
}

FL_CLONES static bool finite_f64(const char *x, size_t n)
{
    uint64_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, x + i * sizeof bits, sizeof bits);
        bad |= (bits & EXPONENT_F64) == EXPONENT_F64;
    }
    return !bad;
}

static bool all_finite(const char *x, size_t n, size_t one)
{
    return one == sizeof(float) ? finite_f32(x, n) : finite_f64(x, n);
}

/* The first of n elements of `one` byte each that is not finite; -1: none. */
static int64_t find_bad(const char *x, size_t n, size_t one)
{
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t m = n - i < BLOCK ? n - i : BLOCK;
        if (all_finite(x + i * one, m, one))
            continue;
        while (all_finite(x + i * one, 1, one))
            i++;
        return (int64_t)i;
    }
    return -1;
}

/* Append the missing bytes of an element that began in an earlier span, as far
 * as this span has them. */
static const char *complete_element(char *torn, size_t *have, size_t one,
                                    fl_span s)
{
    const size_t lacks = one - *have, n = lacks < s.size ? lacks : s.size;
    memcpy(torn + *have, s.at, n);
    *have += n;
    return (const char *)s.at + n;
}

int64_t fl_scan(fl_bytes b, fl_dtype t)
{
    char torn[sizeof(
        double)]; /* an element that begins in one span and ends in another */
    size_t have = 0, cursor = 0, one = fl_dtype_size(t);
    int64_t done = 0;
    if (t != FL_F32 && t != FL_F64)
        return -1;
    for (fl_span s; fl_bytes_next(b, &cursor, &s);) {
        const char *at = s.at, *end = at + s.size;
        if (have) {
            at = complete_element(torn, &have, one, s);
            if (have < one)
                continue;
            if (!all_finite(torn, 1, one))
                return done;
            done++;
        }
        const size_t whole = (size_t)(end - at) / one;
        const int64_t bad = find_bad(at, whole, one);
        if (bad >= 0)
            return done + bad;
        done += (int64_t)whole;
        have = (size_t)(end - at) % one;
        memcpy(torn, end - have, have);
    }
    return -1;
}
