/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - converts elements of one type to another.
 *
 * There is a loop for each pair of types, so that the compiler knows both.
 * Integers are converted by way of int64, which C then narrows; f16 is
 * converted by way of f32. */
#include "tensor/tensor.h"

#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* f16 is 1 sign, 5 exponent (bias 15) and 10 fraction bits. */
float fl_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) /* infinite, or not a number */
        return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest < 0x400) /* subnormal: a multiple of 2^-24 */
        return float_of(sign | bits_of((float)rest * 0x1p-24f));
    return float_of(sign | ((rest << 13) + ((127 - 15) << 23)));
}

/* Rounds to nearest, ties to even. */
uint16_t fl_f32_to_f16(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, rest = u & 0x7fffffff;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= bits_of(65520.0f)) /* more than the largest, 65504 */
        return (uint16_t)(sign | 0x7c00);
    if (rest < bits_of(0x1p-14f)) /* + 0.5 rounds to 2^-24 */
        return (uint16_t)(sign |
                          (bits_of(float_of(rest) + 0.5f) - bits_of(0.5f)));
    rest += 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | ((rest - ((127 - 15) << 23)) >> 13));
}

int64_t fl_whole(double v)
{
    if (v >= 0x1p63)
        return INT64_MAX;
    if (v < -0x1p63)
        return INT64_MIN;
    return v == v ? (int64_t)v : 0;
}

/* A case of the switch below: converts x to y of type T by the expression. */
#define TO(dtype, T, value)                                                    \
    case dtype:                                                                \
        for (int64_t i = 0; i < n; i++)                                        \
            ((T *)dst)[i] = (T)(value);                                        \
        break;

/* Converts from type S. `whole` converts an element to int64. */
#define FROM(name, S, whole)                                                   \
    static void name(int64_t n, const void *src, fl_dtype to, void *dst)       \
    {                                                                          \
        const S *x = src;                                                      \
        switch (to) {                                                          \
            TO(FL_BOOL, uint8_t, x[i] != 0)                                    \
            TO(FL_I16, int16_t, whole(x[i]))                                   \
            TO(FL_I32, int32_t, whole(x[i]))                                   \
            TO(FL_I64, int64_t, whole(x[i]))                                   \
            TO(FL_F16, uint16_t, fl_f32_to_f16((float)x[i]))                   \
            TO(FL_F32, float, x[i])                                            \
            TO(FL_F64, double, x[i])                                           \
            TO(FL_U8, uint8_t, whole(x[i]))                                    \
            TO(FL_I8, int8_t, whole(x[i]))                                     \
        }                                                                      \
    }

FROM(from_bool, uint8_t, 0 !=)
FROM(from_i16, int16_t, (int64_t))
FROM(from_i32, int32_t, (int64_t))
FROM(from_i64, int64_t, (int64_t))
FROM(from_f32, float, fl_whole)
FROM(from_f64, double, fl_whole)
FROM(from_u8, uint8_t, (int64_t))
FROM(from_i8, int8_t, (int64_t))

static void from_f16(int64_t n, const void *src, fl_dtype to, void *dst)
{
    float part[256];
    size_t size = fl_dtype_size(to);
    const uint16_t *x = src;
    for (int64_t at = 0, m; at < n; at += m) {
        m = n - at < 256 ? n - at : 256;
        for (int64_t i = 0; i < m; i++)
            part[i] = fl_f16_to_f32(x[at + i]);
        from_f32(m, part, to, (char *)dst + (size_t)at * size);
    }
}

typedef void convert_fn(int64_t n, const void *src, fl_dtype to, void *dst);

static convert_fn *const from_type[] = {
    [FL_BOOL] = from_bool, [FL_I16] = from_i16, [FL_I32] = from_i32,
    [FL_I64] = from_i64,   [FL_F16] = from_f16, [FL_F32] = from_f32,
    [FL_F64] = from_f64,   [FL_U8] = from_u8,   [FL_I8] = from_i8,
};

fl_err fl_convert(int64_t n, fl_dtype from, const void *src, fl_dtype to,
                  void *dst)
{
    size_t size = fl_dtype_size(from);
    if (!size || !fl_dtype_size(to))
        return fl_fail(FL_EINVAL,
                       "convert: cannot convert elements of type %d to type %d",
                       (int)from, (int)to);
    if (from == to && n) /* without elements the memory may be NULL */
        memmove(dst, src, (size_t)n * size);
    else if (n)
        from_type[from](n, src, to, dst);
    return FL_OK;
}
