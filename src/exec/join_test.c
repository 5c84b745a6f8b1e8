/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/join.h"

#include "base/test.h"

static fl_tensor matrix(int64_t n, int64_t m, const float *x)
{
    return fl_tensor_view(FL_F32, &(fl_shape){2, {n, m}}, x);
}

static void slices_are_even_but_for_the_last(void)
{
    const float x[14] = {0};
    const fl_tensor t = matrix(7, 2, x);
    const int64_t want[] = {2, 2, 3};
    int64_t at = 0;
    CHECK_INT(fl_tensor_slices(&t), 7);
    for (int i = 0; i < 3; at += want[i++]) {
        fl_tensor s = {0};
        CHECK_OK(fl_tensor_slice(&s, &t, i, 3));
        CHECK_INT(s.shape.dim[0], want[i]);
        CHECK_INT(s.shape.dim[1], 2);
        CHECK((float *)s.data == x + 2 * at);
    }
}

static void sequences_are_cut_with_their_rows(void)
{
    const float x[6] = {0};
    const int64_t outer[] = {0, 1, 3}, inner[] = {0, 2, 3, 6};
    fl_tensor t = matrix(6, 1, x), s = {0};
    t.lod = (fl_lod){2, {3, 4}, {outer, inner}, NULL};
    CHECK_INT(fl_tensor_slices(&t), 2);
    CHECK_OK(fl_tensor_slice(&s, &t, 1, 2));
    CHECK_INT(s.shape.dim[0], 4);
    CHECK((float *)s.data == x + 2);
    CHECK_INT(s.lod.off[0][1], 2);
    CHECK_INT(s.lod.off[1][1], 1);
    CHECK_INT(s.lod.off[1][2], 4);
    fl_lod_fini(&s.lod);
}

static void what_cannot_be_cut_is_one_slice(void)
{
    const float x[4] = {0};
    const int64_t wrong[] = {0, 9};
    fl_tensor t = matrix(0, 2, x);
    CHECK_INT(fl_tensor_slices(&t), 1);
    t = matrix(-4, 2, x);
    CHECK_INT(fl_tensor_slices(&t), 1);
    t = matrix(2, 2, NULL);
    CHECK_INT(fl_tensor_slices(&t), 1);
    t = matrix(2, 2, x);
    t.lod = (fl_lod){1, {2}, {wrong}, NULL};
    CHECK_INT(fl_tensor_slices(&t), 1);
}

static void tensors_are_joined_with_their_sequences(void)
{
    const float x[] = {1, 2, 3}, y[] = {4, 5};
    const int64_t of_x[] = {0, 1, 3}, of_y[] = {0, 2}, want[] = {0, 1, 3, 5};
    fl_tensor a = matrix(3, 1, x), b = matrix(2, 1, y), none = {0}, all = {0};
    a.lod = (fl_lod){1, {3}, {of_x}, NULL};
    b.lod = (fl_lod){1, {2}, {of_y}, NULL};
    CHECK_OK(fl_tensors_join(&all, 3, (const fl_tensor *[]){&a, &none, &b}));
    CHECK_INT(all.shape.dim[0], 5);
    for (int i = 0; i < 5; i++)
        CHECK_NEAR(((float *)all.data)[i], i + 1, 0);
    CHECK(fl_lod_equal(&all.lod, &(fl_lod){1, {4}, {want}, NULL}));
    b.lod.levels = 0;
    CHECK_ERR(fl_tensors_join(&all, 2, (const fl_tensor *[]){&a, &b}),
              FL_EINVAL, "lod: tensors of 1 and of 0 levels cannot be joined");
    CHECK_OK(fl_tensors_join(&all, 1, (const fl_tensor *[]){&none}));
    CHECK(!all.data);
}

/* Selected rows first .. first + n; all elements of row i are i. */
static fl_value some_rows(int64_t first, int64_t n)
{
    fl_value v = {.kind = FL_SELECTED_ROWS};
    CHECK_OK(fl_rows_resize(&v.rows, FL_F32, &(fl_shape){2, {9, 2}}, n));
    for (int64_t i = 0; i < n; i++) {
        fl_rows_index(&v.rows)[i] = first + i;
        ((float *)v.rows.value.data)[2 * i] = (float)(first + i);
    }
    return v;
}

static void selected_rows_are_listed_in_order(void)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        fl_value a = some_rows(2, 2), none = some_rows(0, 0);
        fl_value b = some_rows(3, 1), sum = {0};
        fl_value *to = in_place ? &a : &sum;
        CHECK_OK(fl_values_sum(to, 3, (fl_value *[]){&a, &none, &b}));
        CHECK_INT(to->rows.n, 3);
        CHECK_INT(to->rows.height, 9);
        const int64_t want[] = {2, 3, 3};
        for (int i = 0; i < 3; i++) {
            CHECK_INT(fl_rows_index(&to->rows)[i], want[i]);
            CHECK_NEAR(((float *)to->rows.value.data)[2 * i], want[i], 0);
        }
        fl_value_fini(&a);
        fl_value_fini(&none);
        fl_value_fini(&b);
        fl_value_fini(&sum);
    }
}

static void sums_say_what_does_not_fit(void)
{
    const float x[] = {1, 2, 3};
    fl_value a = {.kind = FL_LOD_TENSOR, .tensor = matrix(3, 1, x)};
    fl_value b = {.kind = FL_LOD_TENSOR, .tensor = matrix(1, 3, x)};
    fl_value rows = some_rows(0, 1), sum = {0};
    CHECK_ERR(fl_values_sum(&sum, 2, (fl_value *[]){&a, &b}), FL_ESHAPE,
              "float32[1,3] cannot be joined with float32[3,1]");
    CHECK_ERR(fl_values_sum(&sum, 2, (fl_value *[]){&a, &rows}), FL_ESHAPE,
              "one place has a lod_tensor and another a selected_rows");
    a.tensor.dtype = FL_I32;
    CHECK_ERR(fl_values_sum(&sum, 2, (fl_value *[]){&a, &a}), FL_ESHAPE,
              "gradients of int32 cannot be added");
    fl_value_fini(&rows);
    fl_value_fini(&sum);
}

const fl_test fl_tests[] = {
    {"slices are even but for the last", slices_are_even_but_for_the_last},
    {"sequences are cut with their rows", sequences_are_cut_with_their_rows},
    {"what cannot be cut is one slice", what_cannot_be_cut_is_one_slice},
    {"tensors are joined with their sequences",
     tensors_are_joined_with_their_sequences},
    {"selected rows are listed in order", selected_rows_are_listed_in_order},
    {"sums say what does not fit", sums_say_what_does_not_fit},
    {0},
};
