/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "tensor/tensor.h"

#include <math.h>

static const fl_dtype all[] = {FL_BOOL, FL_I16, FL_I32, FL_I64, FL_F16,
                               FL_F32,  FL_F64, FL_U8,  FL_I8};

static void every_pair_keeps_small_numbers(void)
{
    enum {
        N = 600 /* more than one part of an f16 conversion */
    };
    static double x[N], y[N], z[N], w[N];
    for (int i = 0; i < N; i++)
        x[i] = i % 2;
    for (int a = 0; a < 9; a++)
        for (int b = 0; b < 9; b++) {
            CHECK_OK(fl_convert(N, FL_F64, x, all[a], y));
            CHECK_OK(fl_convert(N, all[a], y, all[b], z));
            CHECK_OK(fl_convert(N, all[b], z, FL_F64, w));
            for (int i = 0; i < N; i++)
                CHECK_NEAR(w[i], x[i], 0);
        }
}

static void floats_become_whole_numbers(void)
{
    const float x[] = {-1.9f, 2.5f, 300.0f, NAN, INFINITY, -1e30f};
    const int64_t want[] = {-1, 2, 300, 0, INT64_MAX, INT64_MIN};
    int64_t y[6];
    uint8_t b[6];
    CHECK_OK(fl_convert(6, FL_F32, x, FL_I64, y));
    CHECK_OK(fl_convert(6, FL_F32, x, FL_U8, b));
    for (int i = 0; i < 6; i++) {
        CHECK_INT(y[i], want[i]);
        CHECK_INT(b[i], (uint8_t)want[i]);
    }
    CHECK_OK(fl_convert(6, FL_F32, x, FL_BOOL, b));
    CHECK_INT(b[0] + b[2] + b[3], 3);
}

static void large_int64_rounds_once_to_f32(void)
{
    /* By way of f64 this would round twice and end one step lower. */
    const int64_t x = 0x4000004000000001;
    float y;
    CHECK_OK(fl_convert(1, FL_I64, &x, FL_F32, &y));
    CHECK(y == (float)x && y != (float)(double)x);
}

static void every_f16_survives_f32(void)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = fl_f16_to_f32((uint16_t)h);
        if (f != f) /* stays not a number; a signalling one becomes quiet */
            CHECK_INT(fl_f32_to_f16(f), h | 0x200);
        else
            CHECK_INT(fl_f32_to_f16(f), h);
    }
}

static void f16_rounds_to_nearest_even(void)
{
    const struct {
        float f;
        uint16_t h;
    } row[] = {
        {1, 0x3c00},
        {-2, 0xc000},
        {65504, 0x7bff},
        {65519.996f, 0x7bff},
        {65520, 0x7c00},
        {1 + 0x1p-11f, 0x3c00},
        {1 + 0x3p-11f, 0x3c02},
        {0x1p-24f, 0x0001},
        {0x1p-25f, 0x0000},
        {0x1.8p-25f, 0x0001},
        {-0.0f, 0x8000},
        {0x1.ff8p-15f, 0x03ff},
        {0x1.ffcp-15f, 0x0400},
        {INFINITY, 0x7c00},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        CHECK_INT(fl_f32_to_f16(row[i].f), row[i].h);
    CHECK_NEAR(fl_f16_to_f32(0x0001), 0x1p-24, 0);
    CHECK_NEAR(fl_f16_to_f32(0x3555), 0.333251953125, 0);
}

static void unknown_types_are_refused(void)
{
    char x[8] = {0};
    CHECK_ERR(fl_convert(1, (fl_dtype)7, x, FL_F32, x), FL_EINVAL,
              "elements of type 7 to type 5");
}

const fl_test fl_tests[] = {
    {"every pair of types keeps small numbers", every_pair_keeps_small_numbers},
    {"floats become whole numbers", floats_become_whole_numbers},
    {"large int64 rounds once to f32", large_int64_rounds_once_to_f32},
    {"every f16 survives f32", every_f16_survives_f32},
    {"f16 rounds to nearest even", f16_rounds_to_nearest_even},
    {"unknown types are refused", unknown_types_are_refused},
    {0},
};
