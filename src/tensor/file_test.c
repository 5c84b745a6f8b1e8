/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/file.h"

#include "base/memdisk.h"
#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes of a text of hexadecimal digits; spaces are passed over. */
static void unhex(const char *text, fl_str *out)
{
    for (; *text; text++) {
        char byte[] = {text[0], text[1], 0};
        if (*text == ' ')
            continue;
        fl_str_bytes(out, &(char){(char)strtol(byte, NULL, 16)}, 1);
        text++;
    }
}

static void check_bytes(const fl_str *got, const char *want_hex)
{
    fl_str want = {0};
    unhex(want_hex, &want);
    CHECK_INT((int64_t)got->n, (int64_t)want.n);
    CHECK(!memcmp(got->at, want.at, want.n));
    fl_str_fini(&want);
}

static fl_value range(int64_t rows, int64_t columns, fl_dtype dtype)
{
    fl_value v = {.kind = FL_LOD_TENSOR};
    fl_shape s = fl_shape_of(2, (int64_t[]){rows, columns});
    double x[64];
    for (int i = 0; i < 64; i++)
        x[i] = i;
    CHECK_OK(fl_tensor_resize(&v.tensor, dtype, &s));
    CHECK_OK(fl_convert(rows * columns, FL_F64, x, dtype, v.tensor.data));
    return v;
}

static fl_value some_rows(void)
{
    fl_value v = {.kind = FL_SELECTED_ROWS};
    fl_shape s = fl_shape_of(2, (int64_t[]){9, 1});
    CHECK_OK(fl_rows_resize(&v.rows, FL_F32, &s, 2));
    memcpy(fl_rows_index(&v.rows), (int64_t[]){7, 1}, 16);
    memcpy(v.rows.value.data, (float[]){1, 2}, 8);
    return v;
}

static const char plain[] = "00000000 0000000000000000"
                            "00000000 06000000 080510021003"
                            "00000000 0000803f 00000040"
                            "00004040 00008040 0000a040";
static const char with_lod[] =
    "00000000 0100000000000000 1800000000000000"
    "0000000000000000 0200000000000000 0500000000000000"
    "00000000 06000000 081410051001 00 01 02 03 04";
static const char rows_bytes[] =
    "00000000 0200000000000000 0700000000000000 0100000000000000"
    "0900000000000000 00000000 06000000 080510021001 0000803f 00000040";

static void tensor_has_the_bytes_of_paddle(void)
{
    fl_value v = range(2, 3, FL_F32), w = {0};
    fl_str s = {0};
    size_t used;
    CHECK_OK(fl_value_encode(&v, false, &s));
    check_bytes(&s, plain);
    CHECK_OK(fl_value_decode("f", s.at, s.n, &w, &used));
    CHECK_INT((int64_t)used, 50);
    CHECK(w.kind == FL_LOD_TENSOR && w.tensor.dtype == FL_F32);
    CHECK(fl_shape_equal(&w.tensor.shape, &v.tensor.shape));
    CHECK(!memcmp(w.tensor.data, v.tensor.data, 24));
    fl_value_fini(&v);
    fl_value_fini(&w);
    fl_str_fini(&s);
}

static void lod_travels_along(void)
{
    fl_value v = range(5, 1, FL_U8), w = {0};
    fl_str s = {0};
    size_t used;
    const int64_t length[] = {2, 3};
    CHECK_OK(fl_lod_from_lengths(&v.tensor.lod, 1, (int64_t[]){2},
                                 (const int64_t *const[]){length}));
    CHECK_OK(fl_value_encode(&v, false, &s));
    check_bytes(&s, with_lod);
    CHECK_OK(fl_value_decode("f", s.at, s.n, &w, &used));
    CHECK(fl_lod_equal(&w.tensor.lod, &v.tensor.lod));
    fl_value_fini(&v);
    fl_value_fini(&w);
    fl_str_fini(&s);
}

static void selected_rows_have_the_bytes_of_paddle(void)
{
    fl_value v = some_rows(), w = {.kind = FL_SELECTED_ROWS};
    fl_str s = {0};
    size_t used;
    CHECK_OK(fl_value_encode(&v, true, &s)); /* rows are never halved */
    check_bytes(&s, rows_bytes);
    CHECK_OK(fl_value_decode("f", s.at, s.n, &w, &used));
    CHECK_INT((int64_t)used, (int64_t)s.n);
    CHECK_INT(w.rows.n, 2);
    CHECK_INT(w.rows.height, 9);
    CHECK_INT(fl_rows_index(&w.rows)[0], 7);
    CHECK_NEAR(((float *)w.rows.value.data)[1], 2, 0);
    fl_value_fini(&v);
    fl_value_fini(&w);
    fl_str_fini(&s);
}

static void every_dtype_comes_back(void)
{
    const fl_dtype all[] = {FL_BOOL, FL_I16, FL_I32, FL_I64, FL_F16,
                            FL_F32,  FL_F64, FL_U8,  FL_I8};
    for (int i = 0; i < 9; i++) {
        fl_value v = range(3, 2, all[i]), w = {0};
        fl_str s = {0};
        size_t used;
        CHECK_OK(fl_value_encode(&v, false, &s));
        CHECK_OK(fl_value_decode("f", s.at, s.n, &w, &used));
        CHECK(w.tensor.dtype == all[i]);
        CHECK(
            !memcmp(w.tensor.data, v.tensor.data, fl_tensor_bytes(&v.tensor)));
        fl_value_fini(&v);
        fl_value_fini(&w);
        fl_str_fini(&s);
    }
}

static void floats_are_halved_on_request(void)
{
    fl_value v = range(1, 3, FL_F32), w = range(1, 3, FL_I64);
    fl_str s = {0};
    CHECK_OK(fl_value_encode(&v, true, &s));
    check_bytes(&s, "00000000 0000000000000000 00000000 06000000"
                    "080410011003 0000 003c 0040");
    s.n = 0;
    CHECK_OK(fl_value_encode(&w, true, &s));
    CHECK_INT((int64_t)s.n, 26 + 24);
    fl_value_fini(&v);
    fl_value_fini(&w);
    fl_str_fini(&s);
}

static void combined_files_hold_records_back_to_back(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_value a = range(2, 3, FL_F32), b = range(1, 2, FL_I32), c = {0}, e = {0},
             none = {.kind = FL_LOD_TENSOR};
    const fl_value *both[] = {&a, &b}, *bad[] = {&a, &none};
    fl_value *back[] = {&c, &e, &a};
    fl_str s = {0}, want = {0};
    CHECK_OK(fl_values_save(d, "dir/all", 2, both, false));
    CHECK_OK(d->read(d, "dir/all", 1000, &s));
    CHECK_OK(fl_value_encode(&a, false, &want));
    CHECK_OK(fl_value_encode(&b, false, &want));
    CHECK(s.n == want.n && !memcmp(s.at, want.at, s.n));
    CHECK_OK(fl_values_load(d, "dir/all", 2, back));
    CHECK_INT(((int32_t *)e.tensor.data)[1], 1);
    CHECK_ERR(fl_values_load(d, "dir/all", 1, back), FL_EPROTO,
              "dir/all: 34 bytes follow the last tensor");
    CHECK_ERR(fl_values_load(d, "dir/all", 3, back), FL_EPROTO,
              "but 0 are left (tensor 3 of 3)");
    CHECK_ERR(fl_values_load(d, "dir/none", 1, back), FL_ENOENT, "dir/none");
    CHECK_ERR(fl_values_save(d, "x", 2, bad, false), FL_EINVAL,
              "nothing to write (for x)");
    fl_value_fini(&a);
    fl_value_fini(&b);
    fl_value_fini(&c);
    fl_value_fini(&e);
    fl_str_fini(&s);
    fl_str_fini(&want);
    fl_memdisk_free(m);
}

static void packed_dims_are_read(void)
{
    fl_value v = {0};
    fl_str s = {0};
    size_t used;
    unhex("00000000 0000000000000000 00000000 06000000 081412020203", &s);
    fl_str_bytes(&s, "abcdef", 6);
    CHECK_OK(fl_value_decode("f", s.at, s.n, &v, &used));
    CHECK_INT(v.tensor.shape.rank, 2);
    CHECK_INT(v.tensor.shape.dim[1], 3);
    fl_value_fini(&v);
    fl_str_fini(&s);
}

static void wrong_claims_get_a_sentence(void)
{
    const struct {
        fl_kind kind;
        const char *bytes, *sentence;
    } row[] = {
        {0, "01000000", "f: version 1, only 0 is known"},
        {0, "00000000 0500000000000000", "f: 5 lod levels, at most 4"},
        {0, "00000000 0100000000000000 0700000000000000",
         "f: a lod level of 7 bytes"},
        {0, "00000000 0100000000000000 f8ffffffffffffff",
         "f: a lod level needs 18446744073709551608 bytes, but 0 are left"},
        {0,
         "00000000 0000000000000000 00000000 0c000000"
         "0805 10808080808080808010 00000000",
         "f: f32[1152921504606846976] has 1152921504606846976 elements, but 4 "
         "bytes are left"},
        {0, "00000000 0000000000000000 00000000 ffffffff 08",
         "f: the description needs 4294967295 bytes, but 1 are left"},
        {0, "00000000 0000000000000000 00000000 04000000 0807 1001",
         "f: unknown element type 7"},
        {0, "00000000 0000000000000000 00000000 02000000 1001",
         "f: unknown element type -1"},
        {0,
         "00000000 0000000000000000 00000000 0d000000"
         "0805 10ffffffffffffffffff01",
         "f: dimension 0 is -1"},
        {0,
         "00000000 0000000000000000 00000000 16000000 0805 1001 1001 1001"
         "1001 1001 1001 1001 1001 1001 1001",
         "f: more than 9 dimensions"},
        {0, "00000000 0000000000000000 00000000 02000000 2001",
         "f: the description has an unknown tag 32"},
        {0, "00000000 0000000000000000 00000000 02000000 08ff",
         "f: the description of the tensor is damaged: a number has no end"},
        {0,
         "00000000 0100000000000000 1000000000000000 0000000000000000"
         "0300000000000000 00000000 04000000 08141002 0000",
         "lod: level 0 ends at 3, but there are 2 rows (in f)"},
        {FL_SELECTED_ROWS, "00000000 ffffffffffffff7f",
         "f: 9223372036854775807 rows, but 0 bytes are left"},
        {FL_SELECTED_ROWS,
         "00000000 0100000000000000 0500000000000000 0500000000000000"
         "00000000 04000000 08141001 00",
         "f: it lists row 5, but its height is 5"},
        {FL_SELECTED_ROWS,
         "00000000 0000000000000000 0500000000000000"
         "00000000 04000000 08141001 00",
         "f: it lists 0 rows, but its value has the shape [1]"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        fl_value v = {.kind = row[i].kind};
        fl_str s = {0};
        size_t used;
        unhex(row[i].bytes, &s);
        CHECK_ERR(fl_value_decode("f", s.at, s.n, &v, &used), FL_EPROTO,
                  row[i].sentence);
        CHECK(!v.tensor.data && !v.rows.index.data);
        fl_str_fini(&s);
    }
}

/* Decode a copy that ends where its memory ends, so that a read beyond it is
 * seen; success or a sentence. */
static bool survives(const fl_str *s, size_t n, fl_kind kind)
{
    fl_value v = {.kind = kind};
    size_t used = 0;
    void *exact = fl_mem_grow(NULL, n);
    memcpy(exact, s->at, n);
    fl_err err = fl_value_decode("f", exact, n, &v, &used);
    CHECK(used <= n);
    CHECK(err ? *fl_errmsg() != 0 : used > 0);
    fl_mem_free(exact);
    fl_value_fini(&v);
    return !err;
}

static void cut_or_flipped_files_never_crash(void)
{
    const char *const file[] = {plain, with_lod, rows_bytes};
    for (int k = 0; k < 3; k++) {
        fl_kind kind = k == 2 ? FL_SELECTED_ROWS : FL_LOD_TENSOR;
        fl_str s = {0};
        unhex(file[k], &s);
        for (size_t n = 0; n < s.n; n++)
            CHECK(!survives(&s, n, kind));
        for (size_t i = 0; i < s.n; i++)
            for (int bits = 1; bits < 256; bits++) {
                s.at[i] ^= (char)bits;
                survives(&s, s.n, kind);
                s.at[i] ^= (char)bits;
            }
        CHECK(survives(&s, s.n, kind));
        fl_str_fini(&s);
    }
}

static void files_of_the_original_come_back_byte_for_byte(void)
{
    char path[512];
    const char *const name[] = {"fc_0.w_0", "fc_0.b_0"};
    const fl_disk *d = fl_disk_real();
    for (int i = 0; i < 2; i++) {
        fl_str file = {0}, back = {0};
        fl_value v = {0};
        size_t used;
        fl_test_original(name[i], &file);
        CHECK_OK(fl_value_decode(name[i], file.at, file.n, &v, &used));
        CHECK_INT((int64_t)used, (int64_t)file.n);
        CHECK_INT(fl_tensor_numel(&v.tensor), i ? 1 : 13);
        snprintf(path, sizeof path, "%s/%s", fl_test_dir(), name[i]);
        CHECK_OK(fl_values_save(d, path, 1, (const fl_value *[]){&v}, false));
        CHECK_OK(d->read(d, path, 1000, &back));
        CHECK(back.n == file.n && !memcmp(back.at, file.at, file.n));
        fl_value_fini(&v);
        fl_str_fini(&file);
        fl_str_fini(&back);
    }
}

const fl_test fl_tests[] = {
    {"tensor record has the bytes of Paddle", tensor_has_the_bytes_of_paddle},
    {"tensor record carries its LoD", lod_travels_along},
    {"selected rows have the bytes of Paddle",
     selected_rows_have_the_bytes_of_paddle},
    {"every dtype comes back from its record", every_dtype_comes_back},
    {"floats are halved on request", floats_are_halved_on_request},
    {"combined files hold records back to back",
     combined_files_hold_records_back_to_back},
    {"packed dims are read", packed_dims_are_read},
    {"wrong claims get a sentence", wrong_claims_get_a_sentence},
    {"cut or flipped files never crash", cut_or_flipped_files_never_crash},
    {"files of the original come back byte for byte",
     files_of_the_original_come_back_byte_for_byte},
    {0},
};
