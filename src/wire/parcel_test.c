/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/parcel.h"

#include "base/test.h"
#include "wire/scan.h"
#include "wire/test_packet.h"

#include <math.h>

static fl_tensor made(fl_dtype t, int64_t n, const void *data)
{
    fl_tensor x = {0};
    fl_shape s = fl_shape_of(1, &n);
    CHECK_OK(fl_tensor_resize(&x, t, &s));
    memcpy(x.data, data, fl_tensor_bytes(&x));
    return x;
}

static void a_parcel_keeps_a_share_of_counted_memory(void)
{
    const float data[] = {1, 2, 3};
    fl_tensor x = made(FL_F32, 3, data), got = {0};
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "x", &x);
    CHECK(fl_buf_shared(x.buf));
    fl_tensor_fini(&x);
    CHECK_OK(fl_item_tensor(fl_parcel_find(p, "x"), &got));
    CHECK_INT(got.shape.dim[0], 3);
    CHECK(!memcmp(got.data, data, sizeof data));
    CHECK(!fl_parcel_find(p, "y"));
    fl_tensor_fini(&got);
    fl_parcel_unref(p);
}

static void memory_is_free_again_with_the_last_reference(void)
{
    fl_tensor x = made(FL_F32, 1, &(float){1});
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "x", &x);
    fl_blob b = fl_parcel_blob(p);
    fl_blob kept = fl_keeper_parcels.keep(NULL, b);
    CHECK(fl_parcel_of(kept) == p);
    CHECK_INT(kept.size, p->size);
    fl_parcel_unref(p);
    fl_keeper_parcels.drop(NULL, b);
    CHECK(fl_buf_shared(x.buf));
    fl_keeper_parcels.drop(NULL, kept);
    CHECK(!fl_buf_shared(x.buf));
    fl_keeper_parcels.drop(NULL, (fl_blob){0});
    CHECK(!fl_keeper_parcels.keep(NULL, (fl_blob){0}).owner);
    fl_tensor_fini(&x);
}

static void a_slice_says_where_it_begins(void)
{
    const double data[] = {1, 2, 3, 4, 5};
    fl_tensor x = made(FL_F64, 5, data), got = {0};
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_slice(p, "x", &x, 1, 3);
    const fl_item *item = fl_parcel_find(p, "x");
    CHECK_INT(item->first, 1);
    CHECK_INT(item->shape.dim[0], 3);
    CHECK_OK(fl_item_tensor(item, &got));
    CHECK(!memcmp(got.data, data + 1, 3 * sizeof *data));
    fl_tensor_fini(&got);
    fl_tensor_fini(&x);
    fl_parcel_unref(p);
}

static void rows_come_back(void)
{
    const int64_t row[] = {9, 3}, shape[] = {100, 2};
    const float value[] = {1, 2, 3, 4};
    fl_shape s = fl_shape_of(2, shape);
    fl_rows r = {0}, got = {0};
    CHECK_OK(fl_rows_resize(&r, FL_F32, &s, 2));
    memcpy(r.index.data, row, sizeof row);
    memcpy(r.value.data, value, sizeof value);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_rows(p, "emb@GRAD", &r);
    fl_value_fini(&(fl_value){.kind = FL_SELECTED_ROWS, .rows = r});
    CHECK_OK(fl_item_rows(p->item, &got));
    CHECK_INT(got.height, 100);
    CHECK_INT(got.n, 2);
    CHECK(!memcmp(fl_rows_index(&got), row, sizeof row));
    CHECK(!memcmp(got.value.data, value, sizeof value));
    CHECK_INT(got.value.shape.dim[1], 2);
    fl_value_fini(&(fl_value){.kind = FL_SELECTED_ROWS, .rows = got});
    fl_parcel_unref(p);
}

static void wishes_keep_their_rows(void)
{
    int64_t rows[] = {5, -7}, got[2];
    fl_parcel *p = fl_parcel_new();
    fl_parcel_want(p, "w", -1, NULL);
    fl_parcel_want(p, "emb", 2, rows);
    fl_parcel_want(p, "none", 0, NULL);
    fl_parcel_want_ids(p, "ids", 9, NULL);
    fl_parcel_want_ids(p, "ids", 9, rows);
    rows[0] = 0; /* the parcel has a copy */
    CHECK_INT(p->n, 5);
    CHECK_INT(p->item[0].shape.rank, 0);
    CHECK_INT(p->item[1].shape.rank, 1);
    CHECK_INT(p->item[1].rows.size, 16);
    fl_bytes_copy(p->item[1].rows, 0, got, sizeof got);
    CHECK(got[0] == 5 && got[1] == -7);
    CHECK_INT(p->item[2].shape.rank, 1);
    CHECK_INT(p->item[2].rows.size, 0);
    CHECK_INT(p->item[3].shape.dim[0], 0);
    CHECK_INT(p->item[3].height, 9);
    CHECK_INT(p->item[4].shape.dim[0], 1);
    fl_bytes_copy(p->item[4].rows, 0, got, sizeof *got);
    CHECK_INT(got[0], 5);
    fl_parcel_unref(p);
}

static void another_kind_than_expected_is_refused(void)
{
    fl_tensor x = made(FL_F32, 1, &(float){1});
    fl_rows rows = {0};
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "x", &x);
    fl_parcel_want(p, "y", -1, NULL);
    CHECK_ERR(fl_item_rows(&p->item[0], &rows), FL_EINVAL,
              "x: a tensor came where rows were expected");
    CHECK_ERR(fl_item_tensor(&p->item[1], &x), FL_EINVAL,
              "y: a name came where a tensor was expected");
    fl_tensor_fini(&x);
    fl_parcel_unref(p);
}

/* --- NaN and infinities --- */

/* Check that element `bad` of n is found, for all sizes of spans. */
static void check_scan(fl_dtype t, int64_t n, int64_t bad, double what)
{
    const size_t one = fl_dtype_size(t);
    char *x = fl_mem_alloc((size_t)n * one);
    for (int64_t i = 0; i < n; i++) {
        const double v = i == bad ? what : -1.5 * (double)i;
        if (t == FL_F32)
            ((float *)x)[i] = (float)v;
        else
            ((double *)x)[i] = v;
    }
    const size_t size = (size_t)n * one;
    for (size_t piece = 1; piece < 40; piece++) {
        fl_packet *p = test_cut(x, size, piece == 39 ? size + 1 : piece);
        CHECK_INT(fl_scan((fl_bytes){p, 0, size}, t), bad);
        fl_packet_unref(p);
    }
    fl_mem_free(x);
}

static void numbers_that_are_not_finite_are_found(void)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN, -NAN};
    for (int64_t at = -1; at < 17; at++)
        for (int i = 0; i < 4; i++) {
            check_scan(FL_F32, 17, at, bad[i]);
            check_scan(FL_F64, 17, at, bad[i]);
        }
    check_scan(FL_F32, 3000, 2047, NAN);
    check_scan(FL_F32, 3000, 2999, NAN);
    check_scan(FL_F64, 3000, 1024, NAN);
}

static void the_largest_and_smallest_numbers_are_finite(void)
{
    const float x[] = {3.4028235e38f, -3.4028235e38f, 1e-45f, -0.0f};
    fl_packet *p = test_cut(x, sizeof x, sizeof x);
    CHECK_INT(fl_scan((fl_bytes){p, 0, sizeof x}, FL_F32), -1);
    fl_packet_unref(p);
    const int64_t all_ones = -1; /* as a double it would be a NaN */
    p = test_cut(&all_ones, 8, 8);
    CHECK_INT(fl_scan((fl_bytes){p, 0, 8}, FL_I64), -1);
    CHECK_INT(fl_scan((fl_bytes){p, 0, 8}, FL_F64), 0);
    fl_packet_unref(p);
}

static void a_scan_names_the_variable_and_the_element(void)
{
    const float good[] = {1, 2}, bad[] = {1, 2, INFINITY, NAN};
    fl_tensor x = made(FL_F32, 2, good), y = made(FL_F32, 4, bad);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "x", &x);
    fl_parcel_scan(p);
    CHECK(!p->not_finite);
    fl_parcel_add_slice(p, "y", &y, 1, 3);
    fl_parcel_scan(p);
    CHECK_STR(p->not_finite, "y");
    CHECK_INT(p->not_finite_at, 2); /* of the variable, not of the slice */
    fl_tensor_fini(&x);
    fl_tensor_fini(&y);
    fl_parcel_unref(p);
}

const fl_test fl_tests[] = {
    {"a parcel keeps a share of counted memory",
     a_parcel_keeps_a_share_of_counted_memory},
    {"memory is free again with the last reference",
     memory_is_free_again_with_the_last_reference},
    {"a slice says where it begins", a_slice_says_where_it_begins},
    {"selected rows come back", rows_come_back},
    {"wishes keep their rows", wishes_keep_their_rows},
    {"another kind than expected is refused",
     another_kind_than_expected_is_refused},
    {"numbers that are not finite are found",
     numbers_that_are_not_finite_are_found},
    {"the largest and smallest numbers are finite",
     the_largest_and_smallest_numbers_are_finite},
    {"a scan names the variable and the element",
     a_scan_names_the_variable_and_the_element},
    {0},
};
