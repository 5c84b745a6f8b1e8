/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/tensor.h"

#include "base/mem.h"
#include "base/test.h"

#include <string.h>

static fl_shape shape2(int64_t a, int64_t b)
{
    return fl_shape_of(2, (int64_t[]){a, b});
}

static fl_tensor counted(int64_t rows, int64_t columns)
{
    fl_tensor t = {0};
    fl_shape s = shape2(rows, columns);
    CHECK_OK(fl_tensor_resize(&t, FL_F32, &s));
    for (int64_t i = 0; i < rows * columns; i++)
        ((float *)t.data)[i] = (float)i;
    return t;
}

static void dtypes_have_two_names(void)
{
    fl_dtype t;
    CHECK(fl_dtype_find("float32", &t) && t == FL_F32);
    CHECK(fl_dtype_find("u8", &t) && t == FL_U8);
    CHECK(!fl_dtype_find("complex", &t));
    CHECK_STR(fl_dtype_name(FL_I16), "i16");
    CHECK_STR(fl_dtype_name((fl_dtype)7), "?");
    CHECK_INT((int64_t)fl_dtype_size(FL_F16), 2);
    CHECK(!fl_dtype_valid(19) && fl_dtype_valid(21) && !fl_dtype_valid(-1));
}

static void shapes_count_and_print(void)
{
    char text[FL_SHAPE_TEXT];
    fl_shape s = fl_shape_of(3, (int64_t[]){2, 3, 4}), none = {0};
    CHECK_INT(fl_shape_numel(&s), 24);
    CHECK_INT(fl_shape_span(&s, 1, 3), 12);
    CHECK_INT(fl_shape_span(&s, 3, 3), 1);
    CHECK_STR(fl_shape_text(&s, text), "[2,3,4]");
    CHECK_STR(fl_shape_text(&none, text), "[]");
    s.dim[0] = -1;
    CHECK_INT(fl_shape_numel(&s), -1);
    CHECK_STR(fl_shape_text(&s, text), "[-1,3,4]");
}

static void longest_shape_text_fits(void)
{
    char text[FL_SHAPE_TEXT];
    fl_shape s = {.rank = FL_MAX_RANK};
    for (int i = 0; i < FL_MAX_RANK; i++)
        s.dim[i] = INT64_MIN;
    CHECK_INT((int64_t)strlen(fl_shape_text(&s, text)), 9 * 21 + 1);
}

static void bytes_of_a_shape_never_overflow(void)
{
    size_t bytes;
    fl_shape s = shape2(1ll << 60, 2), over = shape2(1ll << 40, 1ll << 40);
    CHECK_ERR(fl_shape_bytes(&s, FL_F32, &bytes), FL_ENOMEM,
              "f32[1152921504606846976,2]");
    CHECK_ERR(fl_shape_bytes(&over, FL_U8, &bytes), FL_ENOMEM, "u8");
    CHECK_INT(fl_shape_numel(&over), INT64_MAX);
    s.dim[1] = -1;
    CHECK_ERR(fl_shape_bytes(&s, FL_F32, &bytes), FL_EINVAL, "negative");
    CHECK_ERR(fl_shape_bytes(&s, (fl_dtype)7, &bytes), FL_EINVAL, "type 7");
}

static void memory_is_aligned_and_kept(void)
{
    fl_tensor t = counted(8, 8);
    void *first = t.data;
    CHECK_INT((int64_t)((uintptr_t)first % 64), 0);
    uint64_t before = fl_mem_count();
    for (int64_t n = 8; n >= 0; n -= 4) {
        fl_shape s = shape2(n, 8);
        CHECK_OK(fl_tensor_resize(&t, FL_F32, &s));
    }
    fl_shape s = shape2(4, 8);
    CHECK_OK(fl_tensor_resize(&t, FL_F64, &s)); /* as many bytes as at first */
    CHECK(t.data == first);
    CHECK_INT((int64_t)(fl_mem_count() - before), 0);
    fl_tensor_fini(&t);
    CHECK(!t.data && !t.buf);
}

static void impossible_resize_leaves_the_tensor(void)
{
    fl_tensor t = counted(2, 2);
    fl_shape huge = shape2(1ll << 53, 1ll << 10);
    CHECK_ERR(fl_tensor_resize(&t, FL_U8, &huge), FL_ENOMEM, "memory");
    CHECK_INT(fl_tensor_numel(&t), 4);
    fl_tensor_fini(&t);
}

static void empty_tensors_are_legal(void)
{
    fl_tensor t = counted(0, 5), u = {0}, nothing = {0};
    CHECK(t.data);
    CHECK_INT(fl_tensor_numel(&t), 0);
    CHECK_INT(fl_tensor_numel(&nothing), 0);
    CHECK_OK(fl_tensor_copy(&u, &t));
    CHECK(fl_shape_equal(&u.shape, &t.shape));
    CHECK_OK(fl_tensor_copy(&u, &nothing));
    CHECK(!u.data);
    fl_tensor_fini(&t);
    fl_tensor_fini(&u);
}

static void references_share_until_made_unique(void)
{
    fl_tensor a = counted(2, 3), b = counted(1, 1);
    CHECK_OK(fl_tensor_ref(&b, &a));
    CHECK(b.data == a.data && fl_buf_shared(a.buf));
    CHECK_OK(fl_tensor_unique(&b));
    CHECK(b.data != a.data && !fl_buf_shared(a.buf));
    ((float *)b.data)[0] = 7;
    CHECK_NEAR(((float *)a.data)[0], 0, 0);
    CHECK_NEAR(((float *)b.data)[5], 5, 0);
    void *own = b.data;
    CHECK_OK(fl_tensor_unique(&b));
    CHECK(b.data == own);
    CHECK_OK(fl_tensor_ref(&b, &b));
    CHECK(b.data == own && !fl_buf_shared(b.buf));
    fl_tensor_fini(&a);
    fl_tensor_fini(&b);
}

static void resize_leaves_those_who_share_alone(void)
{
    fl_tensor a = counted(2, 3), b = {0};
    CHECK_OK(fl_tensor_ref(&b, &a));
    CHECK_OK(fl_tensor_resize(&b, FL_F32, &a.shape));
    CHECK(b.data != a.data);
    fl_tensor_fini(&b);
    CHECK_NEAR(((float *)a.data)[5], 5, 0);
    fl_tensor_fini(&a);
}

static void borrowed_memory_is_copied_when_kept(void)
{
    float mine[] = {1, 2, 3};
    int64_t off[] = {0, 1, 3};
    fl_shape s = fl_shape_of(1, (int64_t[]){3});
    fl_tensor view = fl_tensor_view(FL_F32, &s, mine), kept = {0};
    view.lod = (fl_lod){.levels = 1, .n = {3}, .off = {off}};
    CHECK_OK(fl_tensor_ref(&kept, &view));
    mine[0] = 9;
    off[1] = 2;
    CHECK_NEAR(((float *)kept.data)[0], 1, 0);
    CHECK_INT(kept.lod.off[0][1], 1);
    CHECK_OK(fl_tensor_ref(&view, &view)); /* its own from now on */
    CHECK(view.buf && view.lod.buf && view.data != mine);
    fl_tensor_fini(&kept);
    fl_tensor_fini(&view);
}

static void copies_of_equal_size_allocate_nothing(void)
{
    int64_t two[] = {1, 3};
    const int64_t *length[] = {two};
    fl_tensor a = counted(4, 3), b = {0};
    CHECK_OK(fl_lod_from_lengths(&a.lod, 1, (int64_t[]){2}, length));
    CHECK_OK(fl_tensor_copy(&b, &a));
    uint64_t before = fl_mem_count();
    CHECK_OK(fl_tensor_copy(&b, &a));
    CHECK_OK(fl_tensor_copy(&b, &b));
    CHECK_INT((int64_t)(fl_mem_count() - before), 0);
    CHECK(fl_lod_equal(&a.lod, &b.lod) && a.lod.buf != b.lod.buf);
    CHECK(!memcmp(a.data, b.data, fl_tensor_bytes(&a)));
    fl_tensor_fini(&a);
    fl_tensor_fini(&b);
}

static void copy_of_a_part_of_itself_is_right(void)
{
    fl_tensor t = counted(3, 2);
    fl_shape s = shape2(2, 2);
    fl_tensor tail = fl_tensor_view(FL_F32, &s, (float *)t.data + 2);
    CHECK_OK(fl_tensor_copy(&t, &tail));
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(((float *)t.data)[i], i + 2, 0);
    fl_tensor_fini(&t);
}

static void reshape_keeps_the_count(void)
{
    fl_tensor t = counted(2, 3);
    fl_shape s = shape2(3, 2), bad = shape2(4, 2);
    CHECK_OK(fl_tensor_reshape(&t, &s));
    CHECK(fl_shape_equal(&t.shape, &s));
    CHECK_ERR(fl_tensor_reshape(&t, &bad), FL_ESHAPE,
              "[3,2] has 6 elements, [4,2] has 8");
    fl_tensor_fini(&t);
}

static void sizes_that_do_not_fit_stay_the_largest(void)
{
    CHECK_INT(fl_dim_mul(3, 4), 12);
    CHECK_INT(fl_dim_mul(-1, 0), -1);
    CHECK_INT(fl_dim_mul((int64_t)1 << 32, (int64_t)1 << 32), INT64_MAX);
    CHECK_INT(fl_dim_add(3, 4), 7);
    CHECK_INT(fl_dim_add(3, -1), -1);
    CHECK_INT(fl_dim_add(INT64_MAX, 1), INT64_MAX);
}

static void empty_rows_have_an_end(void)
{
    size_t bytes = 1;
    fl_shape s = {2, {(int64_t)1 << 33, 0}};
    CHECK_OK(fl_shape_bytes(&s, FL_F32, &bytes));
    CHECK_INT((int64_t)bytes, 0);
    s.dim[0]++;
    CHECK_ERR(fl_shape_bytes(&s, FL_F32, &bytes), FL_ENOMEM,
              "f32[8589934593,0] is more than memory can hold");
}

const fl_test fl_tests[] = {
    {"dtypes have two names", dtypes_have_two_names},
    {"shapes count and print", shapes_count_and_print},
    {"longest shape text fits", longest_shape_text_fits},
    {"bytes of a shape never overflow", bytes_of_a_shape_never_overflow},
    {"tensor memory is aligned and kept", memory_is_aligned_and_kept},
    {"impossible resize leaves the tensor",
     impossible_resize_leaves_the_tensor},
    {"empty tensors are legal", empty_tensors_are_legal},
    {"references share until made unique", references_share_until_made_unique},
    {"resize leaves those who share alone",
     resize_leaves_those_who_share_alone},
    {"borrowed memory is copied when kept",
     borrowed_memory_is_copied_when_kept},
    {"copies of equal size allocate nothing",
     copies_of_equal_size_allocate_nothing},
    {"copy of a part of itself is right", copy_of_a_part_of_itself_is_right},
    {"reshape keeps the count", reshape_keeps_the_count},
    {"sizes that do not fit stay the largest",
     sizes_that_do_not_fit_stay_the_largest},
    {"empty rows have an end", empty_rows_have_an_end},
    {0},
};
