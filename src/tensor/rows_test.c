/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "tensor/value.h"

static void fill(fl_rows *r, fl_dtype t, int64_t n, const int64_t *row)
{
    fl_shape s = fl_shape_of(2, (int64_t[]){1000, 2});
    CHECK_OK(fl_rows_resize(r, t, &s, n));
    for (int64_t i = 0; i < n; i++)
        fl_rows_index(r)[i] = row[i];
    for (int64_t i = 0; i < 2 * n; i++)
        if (t == FL_F32)
            ((float *)r->value.data)[i] = (float)i;
        else
            ((double *)r->value.data)[i] = (double)i;
}

static void end(fl_rows *r)
{
    fl_value v = {.rows = *r};
    fl_value_fini(&v);
}

static void equal_rows_add_up_in_order_of_row(void)
{
    for (int k = 0; k < 2; k++) {
        fl_rows a = {0}, b = {0};
        fl_dtype t = k ? FL_F64 : FL_F32;
        fill(&a, t, 5, (int64_t[]){7, 3, 7, -2, 3});
        CHECK_OK(fl_rows_merge(&b, &a));
        CHECK_INT(b.n, 3);
        CHECK_INT(b.height, 1000);
        CHECK_INT(b.value.shape.dim[0], 3);
        CHECK_INT(b.index.shape.dim[0], 3);
        CHECK_INT(fl_rows_width(&b), 2);
        const int64_t row[] = {-2, 3, 7};
        const double want[] = {6, 7, 2 + 8, 3 + 9, 0 + 4, 1 + 5};
        for (int i = 0; i < 3; i++)
            CHECK_INT(fl_rows_index(&b)[i], row[i]);
        for (int i = 0; i < 6; i++)
            CHECK_NEAR(k ? ((double *)b.value.data)[i]
                         : (double)((float *)b.value.data)[i],
                       want[i], 0);
        end(&a);
        end(&b);
    }
}

static void sums_keep_the_order_of_appearance(void)
{
    fl_rows a = {0}, b = {0};
    fl_shape s = fl_shape_of(2, (int64_t[]){10, 1});
    const float x[] = {1e8f, -1e8f, 1.0f}; /* any other order loses the 1 */
    CHECK_OK(fl_rows_resize(&a, FL_F32, &s, 3));
    for (int i = 0; i < 3; i++) {
        fl_rows_index(&a)[i] = 4;
        ((float *)a.value.data)[i] = x[i];
    }
    CHECK_OK(fl_rows_merge(&b, &a));
    CHECK_INT(b.n, 1);
    CHECK_NEAR(((float *)b.value.data)[0], 1, 0);
    end(&a);
    end(&b);
}

static void many_rows_of_any_size_ascend(void)
{
    enum {
        N = 20000
    };
    static int64_t row[N];
    fl_rows a = {0}, b = {0};
    uint64_t x = 1;
    for (int i = 0; i < N; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        row[i] = i % 3 ? (int64_t)x : (int64_t)(x >> 52);
    }
    row[5] = INT64_MIN;
    row[6] = INT64_MAX;
    fill(&a, FL_F32, N, row);
    for (int step = 0; step < 3; step++) {
        uint64_t before = fl_mem_count();
        CHECK_OK(fl_rows_merge(&b, &a));
        if (step)
            CHECK_INT((int64_t)(fl_mem_count() - before), 0);
    }
    CHECK(b.n > N / 2 && b.n < N);
    CHECK_INT(fl_rows_index(&b)[0], INT64_MIN);
    CHECK_INT(fl_rows_index(&b)[b.n - 1], INT64_MAX);
    for (int64_t i = 1; i < b.n; i++)
        CHECK(fl_rows_index(&b)[i - 1] < fl_rows_index(&b)[i]);
    double sum = 0, want = (2.0 * N - 1) * N;
    for (int64_t i = 0; i < 2 * b.n; i++)
        sum += ((float *)b.value.data)[i];
    CHECK_NEAR(sum, want, 0);
    end(&a);
    end(&b);
}

static void no_rows_merge_to_none(void)
{
    fl_rows a = {0}, b = {0};
    fill(&a, FL_F32, 0, NULL);
    CHECK_OK(fl_rows_merge(&b, &a));
    CHECK_INT(b.n, 0);
    CHECK_INT(b.value.shape.dim[0], 0);
    end(&a);
    end(&b);
}

static void whole_numbers_are_not_added(void)
{
    fl_rows a = {0}, b = {0};
    fl_shape s = fl_shape_of(1, (int64_t[]){4});
    CHECK_OK(fl_rows_resize(&a, FL_I64, &s, 1));
    CHECK_ERR(fl_rows_merge(&b, &a), FL_ESHAPE, "rows of i64");
    end(&a);
}

static void values_copy_by_kind(void)
{
    fl_value a = {.kind = FL_SELECTED_ROWS}, b = {0};
    fill(&a.rows, FL_F32, 2, (int64_t[]){5, 6});
    CHECK_OK(fl_value_copy(&b, &a));
    CHECK(b.kind == FL_SELECTED_ROWS && b.rows.height == 1000);
    CHECK_INT(fl_rows_index(&b.rows)[1], 6);
    CHECK(b.rows.value.data != a.rows.value.data);
    fl_value array = {.kind = FL_LOD_TENSOR_ARRAY}, copy = {0};
    fl_push(&array.array, (fl_tensor){0});
    fl_push(&array.array, (fl_tensor){0});
    CHECK_OK(fl_tensor_ref(&array.array.at[1], &a.rows.value));
    CHECK_OK(fl_value_copy(&copy, &array));
    CHECK_INT(copy.array.n, 2);
    CHECK_NEAR(((float *)copy.array.at[1].data)[3], 3, 0);
    array.array.n = 1; /* the second is still held through `a` and copy */
    fl_tensor_fini(&array.array.at[1]);
    CHECK_OK(fl_value_copy(&copy, &array));
    CHECK_INT(copy.array.n, 1);
    fl_value_fini(&a);
    fl_value_fini(&b);
    fl_value_fini(&array);
    fl_value_fini(&copy);
}

const fl_test fl_tests[] = {
    {"equal rows add up, rows ascend", equal_rows_add_up_in_order_of_row},
    {"sums of rows keep the order of appearance",
     sums_keep_the_order_of_appearance},
    {"many rows of any size ascend", many_rows_of_any_size_ascend},
    {"no rows merge to none", no_rows_merge_to_none},
    {"whole numbers are not added", whole_numbers_are_not_added},
    {"values copy by kind", values_copy_by_kind},
    {0},
};
