/* SPDX-License-Identifier: Apache-2.0 */
#include "train/dump.h"

#include "base/mem.h"
#include "base/test.h"

#include <math.h>

static char *text_of(const fl_value *v)
{
    fl_str out = {0};
    fl_dump(&out, "auc", "auc_0.tmp_0", v);
    return fl_str_take(&out);
}

static void check(const fl_value *v, const char *want)
{
    char *got = text_of(v);
    CHECK_STR(got, want);
    fl_mem_free(got);
}

static fl_value over(fl_dtype t, fl_shape shape, const void *data)
{
    return (fl_value){.kind = FL_LOD_TENSOR,
                      .tensor = fl_tensor_view(t, &shape, data)};
}

static void a_number_is_printed_as_fluid_does(void)
{
    const double x = 0.7031256;
    const fl_value v = over(FL_F64, (fl_shape){1, {1}}, &x);
    check(&v, "auc\tauc_0.tmp_0\t\n\tlod: {}\n\tdim: 1\n\tlayout: NCHW\n"
              "\tdtype: double\n\tdata: [0.703126]\n");
    CHECK_NEAR(fl_first_number(&v), x, 0);
}

static void sequences_show_their_offsets(void)
{
    const float x[] = {1, 2.5f, -3e-9f};
    const int64_t outer[] = {0, 2}, inner[] = {0, 1, 3};
    fl_value v = over(FL_F32, (fl_shape){2, {3, 1}}, x);
    v.tensor.lod = (fl_lod){2, {2, 3}, {outer, inner}, NULL};
    check(&v, "auc\tauc_0.tmp_0\t\n\tlod: {{0, 2}{0, 1, 3}}\n\tdim: 3, 1\n"
              "\tlayout: NCHW\n\tdtype: float\n\tdata: [1 2.5 -3e-09]\n");
}

static void whole_numbers_keep_all_digits(void)
{
    const int64_t x[] = {INT64_MAX, -1};
    const fl_value v = over(FL_I64, (fl_shape){1, {2}}, x);
    check(&v, "auc\tauc_0.tmp_0\t\n\tlod: {}\n\tdim: 2\n\tlayout: NCHW\n"
              "\tdtype: int64_t\n\tdata: [9223372036854775807 -1]\n");
}

static void what_is_empty_says_so(void)
{
    const fl_value v = {0};
    check(&v, "auc\tauc_0.tmp_0\tnothing has written it\n");
    CHECK(isnan(fl_first_number(&v)));
    CHECK(isnan(fl_first_number(NULL)));
}

const fl_test fl_tests[] = {
    {"a number is printed as Fluid does", a_number_is_printed_as_fluid_does},
    {"sequences show their offsets", sequences_show_their_offsets},
    {"whole numbers keep all digits", whole_numbers_keep_all_digits},
    {"what is empty says so", what_is_empty_says_so},
    {0},
};
