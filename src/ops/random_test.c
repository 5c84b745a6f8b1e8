/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "check/check.h"

#include <string.h>

/* The expected numbers are what the original draws for these seeds. */

static void uniform_gives_the_numbers_of_its_seed(void)
{
    fl_check_op(&(fl_op_case){
        .type = "uniform_random",
        .attr = {{"shape", FL_ATTR_LONGS, FL_CASE_INTS(2, 3)},
                 {"seed", FL_ATTR_INT, .i = 10}},
        .out = {{"Out",
                 {2, 3},
                 {-0.999550462, 0.700649023, -0.972947896, 0.832225561,
                  0.359114051, 0.793795466},
                 .dtype = "f32"}},
        .tolerance = 1e-8,
    });
    fl_check_op(&(fl_op_case){
        .type = "uniform_random",
        .attr = {{"shape", FL_ATTR_LONGS, FL_CASE_INTS(2)},
                 {"seed", FL_ATTR_INT, .i = 1},
                 {"dtype", FL_ATTR_INT, .i = FL_F64}},
        .out = {{"Out",
                 {2},
                 {-0.8299351025651327, 0.78322255460971535},
                 .dtype = "f64"}},
        .tolerance = 1e-15,
    });
}

static void gaussian_gives_the_numbers_of_its_seed(void)
{
    fl_check_op(&(fl_op_case){
        .type = "gaussian_random",
        .attr = {{"shape", FL_ATTR_LONGS, FL_CASE_INTS(3)},
                 {"seed", FL_ATTR_INT, .i = 1},
                 {"mean", FL_ATTR_FLOAT, .f = 1},
                 {"std", FL_ATTR_FLOAT, .f = 2}},
        .out = {{"Out",
                 {3},
                 {1 + 2 * 0.891330183, 1 + 2 * 0.230684519, 1 - 2 * 2.48654437},
                 .dtype = "f32"}},
        .tolerance = 1e-6,
    });
}

static void truncated_gives_the_numbers_of_its_generator(void)
{
    double want[4];
    fl_rng r = fl_rng_of(7);
    fl_rng_truncated_f64(&r, 0, 0.5, 4, want);
    for (int i = 0; i < 4; i++)
        CHECK(want[i] >= -1 && want[i] <= 1);
    fl_check_op(&(fl_op_case){
        .type = "truncated_gaussian_random",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(2, 2)},
                 {"seed", FL_ATTR_INT, .i = 7},
                 {"std", FL_ATTR_FLOAT, .f = 0.5f},
                 {"dtype", FL_ATTR_INT, .i = FL_F64}},
        .out = {{"Out",
                 {2, 2},
                 {want[0], want[1], want[2], want[3]},
                 .dtype = "f64"}},
        .tolerance = 1e-15,
    });
}

static void seed_zero_asks_the_runner(void)
{
    float want[2];
    fl_rng r = fl_rng_of(12345); /* what the checks' runner gives */
    fl_rng_uniform_f32(&r, -1, 1, 2, want);
    fl_check_op(&(fl_op_case){
        .type = "uniform_random",
        .attr = {{"shape", FL_ATTR_LONGS, FL_CASE_INTS(2)}},
        .out =
            {{"Out", {2}, {(double)want[0], (double)want[1]}, .dtype = "f32"}},
        .tolerance = 1e-8,
    });
}

/* n numbers from number `offset` on. */
static const void *draw(fl_vars *v, const char *type, fl_dtype dtype,
                        int64_t offset, int64_t n)
{
    fl_desc *d = fl_desc_new(v->arena, type);
    const char *out = fl_arena_printf(v->arena, "y%lld", (long long)offset);
    fl_desc_set_out1(d, "Out", out);
    fl_desc_set_attr(d, &(fl_attr){"shape", FL_ATTR_LONGS, FL_CASE_INTS(n)});
    fl_desc_set_attr(d, &(fl_attr){"seed", FL_ATTR_INT, .i = 5});
    fl_desc_set_attr(d, &(fl_attr){"dtype", FL_ATTR_INT, .i = dtype});
    fl_desc_set_attr(d, &(fl_attr){"offset", FL_ATTR_LONG, .i = offset});
    CHECK_OK(fl_vars_run(v, d));
    return fl_vars_get(v, out)->tensor.data;
}

static void slices_are_those_of_the_whole(void)
{
    static const char *const types[] = {"uniform_random", "gaussian_random",
                                        "truncated_gaussian_random"};
    static const int64_t cuts[] = {1, 2, 3, 511, 512, 513, 699};
    for (int i = 0; i < 3; i++)
        for (int f64 = 0; f64 < 2; f64++) {
            fl_vars v;
            fl_vars_init(&v);
            const fl_dtype t = f64 ? FL_F64 : FL_F32;
            const size_t size = fl_dtype_size(t);
            const char *whole = draw(&v, types[i], t, 0, 700);
            for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
                const int64_t n = 700 - cuts[k];
                const void *slice = draw(&v, types[i], t, cuts[k], n);
                CHECK(!memcmp(slice, whole + (size_t)cuts[k] * size,
                              (size_t)n * size));
            }
            fl_vars_fini(&v);
        }
}

static void say_what_is_wrong(void)
{
    CHECK_ERR(fl_infer_try("gaussian_random{shape=[2],offset=-1}"), FL_EINVAL,
              "gaussian_random: offset is -1, expected 0 to 8589934592");
    CHECK_ERR(fl_infer_try("uniform_random{shape=[2],min=2.0,max=1.0}"),
              FL_EINVAL, "uniform_random: min is 2, max is 1");
    CHECK_ERR(fl_infer_try("gaussian_random{shape=[2],dtype=3}"), FL_EINVAL,
              "gaussian_random: dtype is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("truncated_gaussian_random{shape=[-1]}"), FL_EINVAL,
              "truncated_gaussian_random: shape [-1] has a dimension below 0");
}

static void like_takes_the_batch_of_another(void)
{
    fl_check_op(&(fl_op_case){
        .type = "uniform_random_batch_size_like",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(-1, 3)},
                 {"seed", FL_ATTR_INT, .i = 10}},
        .in = {{"Input", {2, 1}, {0, 0}}},
        .out = {{"Out",
                 {2, 3},
                 {-0.999550462, 0.700649023, -0.972947896, 0.832225561,
                  0.359114051, 0.793795466},
                 .dtype = "f32"}},
        .tolerance = 1e-8,
    });
    fl_check_op(&(fl_op_case){
        .type = "gaussian_random_batch_size_like",
        .attr = {{"shape", FL_ATTR_INTS, FL_CASE_INTS(2, -1)},
                 {"output_dim_idx", FL_ATTR_INT, .i = 1},
                 {"input_dim_idx", FL_ATTR_INT, .i = 1},
                 {"seed", FL_ATTR_INT, .i = 1}},
        .in = {{"Input", {3, 1}, {0, 0, 0}}},
        .out = {{"Out", {2, 1}, {0.891330183, 0.230684519}, .dtype = "f32"}},
        .tolerance = 1e-6,
    });
    CHECK_ERR(fl_infer_try("uniform_random_batch_size_like{shape=[-1,2],"
                           "input_dim_idx=2} Input=f32[2,3]"),
              FL_ESHAPE, "input_dim_idx is 2, Input has 2 dims");
    CHECK_ERR(fl_infer_try("uniform_random_batch_size_like{shape=[-1],min=2.0,"
                           "max=1.0} Input=f32[2,3]"),
              FL_EINVAL, "uniform_random_batch_size_like: min is 2, max is 1");
}

/* Seed 1 draws 2.2e-05, 0.085 and 0.601. */
static void classes_are_drawn_as_likely_as_told(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sampling_id",
        .attr = {{"seed", FL_ATTR_INT, .i = 1}},
        .in = {{"X", {3, 3}, {0, 1, 0, 0.05, 0.5, 0.45, 0.2, 0.3, 0.5}}},
        .out = {{"Out", {3}, {1, 1, 2}, .dtype = "i64"}},
    });
    CHECK_STR(fl_infer_text("sampling_id X=f32[-1,8]"), "Out=i64[-1]");
    CHECK_ERR(fl_infer_try("sampling_id X=f32[2]"), FL_ESHAPE,
              "sampling_id: X is [2], expected [N, classes]");
}

static void an_offset_has_an_end(void)
{
    CHECK_ERR(fl_infer_try("gaussian_random{shape=[2],offset="
                           "4611686018427387904}"),
              FL_EINVAL,
              "gaussian_random: offset is 4611686018427387904, expected 0 to "
              "8589934592");
}

const fl_test fl_tests[] = {
    {"batch_size_like takes the batch of another",
     like_takes_the_batch_of_another},
    {"sampling_id draws classes as likely as told",
     classes_are_drawn_as_likely_as_told},
    {"uniform_random gives the numbers of its seed",
     uniform_gives_the_numbers_of_its_seed},
    {"gaussian_random gives the numbers of its seed",
     gaussian_gives_the_numbers_of_its_seed},
    {"truncated_gaussian_random gives the numbers of its generator",
     truncated_gives_the_numbers_of_its_generator},
    {"random operators with seed 0 ask the runner", seed_zero_asks_the_runner},
    {"random slices are those of the whole", slices_are_those_of_the_whole},
    {"random operators say what is wrong", say_what_is_wrong},
    {"an offset has an end", an_offset_has_an_end},
    {0},
};
