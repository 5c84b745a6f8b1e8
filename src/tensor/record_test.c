/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/record.h"

#include "base/memdisk.h"
#include "base/test.h"
#include "tensor/file.h"

static const float numbers[] = {0, 1, 2, 3, 4, 5};

static void append(const fl_disk *d, const char *path, const void *at, size_t n)
{
    fl_file *f;
    CHECK_OK(d->open(d, path, &f));
    CHECK_OK(d->append(f, at, n));
    d->close(f);
}

/* "t" is a tensor, "r" selected rows of it; both float32[3,2]. */
static fl_memdisk *disk_with_both(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    const fl_shape s = {2, {3, 2}};
    fl_str head = {0};
    fl_tensor_head(FL_F32, &s, &head);
    append(d, "t", head.at, head.n);
    append(d, "t", numbers, sizeof numbers);
    head.n = 0;
    fl_rows_head(3, &head);
    append(d, "r", head.at, head.n);
    append(d, "r", (int64_t[]){-7, 0, 1}, 3 * sizeof(int64_t));
    head.n = 0;
    fl_rows_tail(INT64_MAX, FL_F32, &s, &head);
    append(d, "r", head.at, head.n);
    append(d, "r", numbers, sizeof numbers);
    fl_str_fini(&head);
    return m;
}

static void a_tensor_is_read_in_parts(void)
{
    fl_memdisk *m = disk_with_both();
    fl_record r;
    float x[3];
    CHECK_OK(fl_record_open(fl_memdisk_disk(m), "t", FL_LOD_TENSOR, &r));
    CHECK_INT(r.dtype, FL_F32);
    CHECK(fl_shape_equal(&r.shape, &(fl_shape){2, {3, 2}}));
    CHECK_OK(fl_record_read(&r, 2, 3, x));
    CHECK(!memcmp(x, numbers + 2, sizeof x));
    CHECK_OK(fl_record_read(&r, 6, 0, x));
    CHECK_ERR(fl_record_read(&r, 4, 3, x), FL_EIO, "t: it ends after ");
    fl_record_close(&r);
    fl_memdisk_free(m);
}

static void rows_are_read_with_their_numbers(void)
{
    fl_memdisk *m = disk_with_both();
    fl_record r;
    int64_t id[2];
    float x[2];
    CHECK_OK(fl_record_open(fl_memdisk_disk(m), "r", FL_SELECTED_ROWS, &r));
    CHECK_INT(r.height, INT64_MAX);
    CHECK_INT(r.shape.dim[0], 3);
    CHECK_OK(fl_record_rows(&r, 0, 2, id));
    CHECK(id[0] == -7 && id[1] == 0);
    CHECK_OK(fl_record_read(&r, 4, 2, x));
    CHECK(x[0] == 4 && x[1] == 5);
    fl_record_close(&r);
    fl_memdisk_free(m);
}

/* Both are what the rest of the library reads and writes. */
static void rows_are_those_of_any_file(void)
{
    fl_memdisk *m = disk_with_both();
    fl_value v = {.kind = FL_SELECTED_ROWS};
    const fl_shape s = {2, {9, 2}};
    fl_record r;
    int64_t id[3];
    CHECK_OK(fl_rows_resize(&v.rows, FL_F32, &s, 3));
    memcpy(fl_rows_index(&v.rows), (int64_t[]){8, 0, 1}, 3 * sizeof *id);
    memcpy(v.rows.value.data, numbers, sizeof numbers);
    CHECK_OK(fl_values_save(fl_memdisk_disk(m), "own", 1,
                            (const fl_value *[]){&v}, false));
    CHECK_OK(fl_record_open(fl_memdisk_disk(m), "own", FL_SELECTED_ROWS, &r));
    CHECK_OK(fl_record_rows(&r, 0, 3, id));
    CHECK(r.height == 9 && id[0] == 8 && id[2] == 1);
    fl_record_close(&r);
    fl_value_fini(&v);
    fl_memdisk_free(m);
}

static void check_damage(const char *from, fl_kind kind, size_t n,
                         const char *more, const char *sentence)
{
    fl_memdisk *m = disk_with_both();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_str bytes = {0};
    fl_record r = {0};
    CHECK_OK(d->read(d, from, 1000, &bytes));
    const size_t keep = n < bytes.n ? n : bytes.n;
    const fl_part parts[] = {{bytes.at, keep}, {more, strlen(more)}};
    CHECK_OK(d->write(d, "bad", parts, 2, false));
    CHECK_ERR(fl_record_open(d, "bad", kind, &r), FL_EPROTO, sentence);
    CHECK(!r.file);
    fl_str_fini(&bytes);
    fl_memdisk_free(m);
}

static void what_is_damaged_is_refused_at_once(void)
{
    const fl_kind t = FL_LOD_TENSOR, r = FL_SELECTED_ROWS;
    check_damage("t", t, 0, "", "bad: a version needs 4 bytes, but 0 are left");
    check_damage("t", t, 0, "abcd", "bad: version 1684234849, only 0 is known");
    check_damage("t", t, 20, "", "bad: the description needs 6 bytes, but 0");
    check_damage("t", t, 49, "",
                 "bad: f32[3,2] has 6 elements, but 23 bytes are left");
    check_damage("t", t, 99, "x",
                 "bad: f32[3,2] has 6 elements, but 25 bytes are left");
    check_damage("r", r, 11, "",
                 "bad: it has 11 bytes, too few for selected rows");
    check_damage("r", r, 0, "abcdefghijkl", "bad: version 1684234849");
    check_damage("r", r, 12 + 3 * 8 + 7, "",
                 "bad: 3 rows, but 31 bytes are left");
    check_damage("r", r, 12 + 4 * 8, "", "bad: a version needs 4 bytes");
    check_damage("r", r, 99, "x",
                 "bad: f32[3,2] has 6 elements, but 25 bytes are left");
    check_damage("t", r, 99, "", "bad: ");
    check_damage("r", t, 99, "", "bad: ");
}

static void more_rows_than_elements_are_refused(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_str bytes = {0};
    fl_record r;
    fl_rows_head(1, &bytes);
    fl_str_bytes(&bytes, &(int64_t){5}, sizeof(int64_t));
    fl_rows_tail(9, FL_F32, &(fl_shape){2, {2, 1}}, &bytes);
    fl_str_bytes(&bytes, numbers, 2 * sizeof *numbers);
    CHECK_OK(fl_disk_write(d, "bad", bytes.at, bytes.n, false));
    CHECK_ERR(fl_record_open(d, "bad", FL_SELECTED_ROWS, &r), FL_EPROTO,
              "bad: it lists 1 rows, but its value has the shape [2,1]");
    CHECK_ERR(fl_record_open(d, "no", FL_LOD_TENSOR, &r), FL_ENOENT, "no: ");
    fl_str_fini(&bytes);
    fl_memdisk_free(m);
}

const fl_test fl_tests[] = {
    {"a tensor is read in parts", a_tensor_is_read_in_parts},
    {"rows are read with their numbers", rows_are_read_with_their_numbers},
    {"rows are those of any file", rows_are_those_of_any_file},
    {"what is damaged is refused at once", what_is_damaged_is_refused_at_once},
    {"more rows than elements are refused",
     more_rows_than_elements_are_refused},
    {0},
};
