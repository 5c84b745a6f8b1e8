/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - encodes and decodes the records of Paddle's tensor files.
 *
 * The reader does not trust its input: every length is compared with the
 * number of bytes that are left before it is used, and v is changed only after
 * the whole record was checked. */
#include "tensor/file.h"

#include "base/path.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the files are little endian, and are read as they lie");

enum {
    DESC_DTYPE = 1 << 3 | 0, /* protobuf tags: field and wire type */
    DESC_DIM = 2 << 3 | 0,
    DESC_DIMS = 2 << 3 | 2, /* packed; Paddle does not pack them */
};

/* --- writing --- */

static void put_u32(fl_str *s, uint32_t x)
{
    fl_str_bytes(s, &x, sizeof x);
}

static void put_u64(fl_str *s, uint64_t x)
{
    fl_str_bytes(s, &x, sizeof x);
}

static size_t put_varint(uint64_t x, uint8_t out[10])
{
    size_t n = 0;
    for (; x >= 0x80; x >>= 7)
        out[n++] = (uint8_t)(x | 0x80);
    out[n++] = (uint8_t)x;
    return n;
}

/* Append the tensor part up to its elements. */
static void put_head(fl_str *s, const fl_tensor *t)
{
    uint8_t desc[(1 + FL_MAX_RANK) * 11];
    size_t n = 0;
    desc[n++] = DESC_DTYPE;
    n += put_varint((uint64_t)t->dtype, desc + n);
    for (int i = 0; i < t->shape.rank; i++) {
        desc[n++] = DESC_DIM;
        n += put_varint((uint64_t)t->shape.dim[i], desc + n);
    }
    put_u32(s, 0);
    put_u32(s, (uint32_t)n);
    fl_str_bytes(s, desc, n);
}

static void put_lod(fl_str *s, const fl_lod *l)
{
    put_u32(s, 0);
    put_u64(s, (uint64_t)l->levels);
    for (int i = 0; i < l->levels; i++) {
        size_t bytes = (size_t)l->n[i] * sizeof(int64_t);
        put_u64(s, bytes);
        fl_str_bytes(s, l->off[i], bytes);
    }
}

void fl_rows_head(int64_t n, fl_str *out)
{
    put_u32(out, 0);
    put_u64(out, (uint64_t)n);
}

static void put_rows(fl_str *s, const fl_rows *r)
{
    fl_rows_head(r->n, s);
    fl_str_bytes(s, fl_rows_index(r), (size_t)r->n * sizeof(int64_t));
    put_u64(s, (uint64_t)r->height);
}

static fl_err to_f16(const fl_tensor *from, fl_tensor *to)
{
    FL_TRY(fl_tensor_resize(to, FL_F16, &from->shape));
    return fl_convert(fl_tensor_numel(from), from->dtype, from->data, FL_F16,
                      to->data);
}

/* Append all but the elements to `head`. `elements` becomes a tensor that
 * shares their memory. */
static fl_err encode_head(const fl_value *v, bool as_f16, fl_str *head,
                          fl_tensor *elements)
{
    bool rows = v->kind == FL_SELECTED_ROWS;
    const fl_tensor *t = rows ? &v->rows.value : &v->tensor;
    if (!rows && v->kind != FL_LOD_TENSOR)
        return fl_fail(FL_EINVAL, "a %s cannot be written to a tensor file",
                       fl_kind_name(v->kind));
    if (!t->data)
        return fl_fail(FL_EINVAL, "the variable holds nothing to write");
    if (as_f16 && !rows && (t->dtype == FL_F32 || t->dtype == FL_F64))
        FL_TRY(to_f16(t, elements));
    else
        *elements = fl_tensor_view(t->dtype, &t->shape, t->data);
    if (rows)
        put_rows(head, &v->rows);
    else
        put_lod(head, &t->lod);
    put_head(head, elements);
    return FL_OK;
}

void fl_tensor_head(fl_dtype dtype, const fl_shape *shape, fl_str *out)
{
    const fl_tensor t = fl_tensor_view(dtype, shape, NULL);
    put_lod(out, &t.lod);
    put_head(out, &t);
}

void fl_rows_tail(int64_t height, fl_dtype dtype, const fl_shape *shape,
                  fl_str *out)
{
    const fl_tensor t = fl_tensor_view(dtype, shape, NULL);
    put_u64(out, (uint64_t)height);
    put_head(out, &t);
}

fl_err fl_value_encode(const fl_value *v, bool as_f16, fl_str *out)
{
    fl_tensor elements = {0};
    fl_err err = encode_head(v, as_f16, out, &elements);
    if (!err)
        fl_str_bytes(out, elements.data, fl_tensor_bytes(&elements));
    fl_tensor_fini(&elements);
    return err;
}

/* --- reading --- */

typedef struct reader {
    const char *name;
    const uint8_t *at;
    size_t left;
} reader;

static fl_err take_bytes(reader *r, uint64_t n, const char *what,
                         const void **out)
{
    if (n > r->left)
        return fl_fail(FL_EPROTO, "%s: %s needs %llu bytes, but %zu are left",
                       r->name, what, (unsigned long long)n, r->left);
    *out = r->at;
    r->at += n;
    r->left -= n;
    return FL_OK;
}

static fl_err take_number(reader *r, size_t n, const char *what, void *out)
{
    const void *at = NULL;
    FL_TRY(take_bytes(r, n, what, &at));
    memcpy(out, at, n);
    return FL_OK;
}

static fl_err take_version(reader *r)
{
    uint32_t version = 0;
    FL_TRY(take_number(r, sizeof version, "a version", &version));
    if (version)
        return fl_fail(FL_EPROTO, "%s: version %u, only 0 is known", r->name,
                       version);
    return FL_OK;
}

static fl_err take_varint(reader *r, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; r->left && shift < 64; shift += 7) {
        uint8_t byte = *r->at++;
        r->left--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return FL_OK;
    }
    return fl_fail(
        FL_EPROTO,
        "%s: the description of the tensor is damaged: a number has no end",
        r->name);
}

static fl_err take_dim(reader *r, fl_shape *s)
{
    uint64_t dim;
    FL_TRY(take_varint(r, &dim));
    if (dim > INT64_MAX)
        return fl_fail(FL_EPROTO, "%s: dimension %d is %lld", r->name, s->rank,
                       (long long)dim);
    if (s->rank == FL_MAX_RANK)
        return fl_fail(FL_EPROTO, "%s: more than %d dimensions", r->name,
                       FL_MAX_RANK);
    s->dim[s->rank++] = (int64_t)dim;
    return FL_OK;
}

static fl_err take_dims(reader *r, fl_shape *s)
{
    uint64_t n;
    const void *at = NULL;
    FL_TRY(take_varint(r, &n));
    FL_TRY(take_bytes(r, n, "the list of dimensions", &at));
    reader list = {r->name, at, n};
    while (list.left)
        FL_TRY(take_dim(&list, s));
    return FL_OK;
}

static fl_err take_field(reader *r, uint64_t *dtype, fl_shape *shape)
{
    uint64_t tag;
    FL_TRY(take_varint(r, &tag));
    switch (tag) {
    case DESC_DTYPE:
        return take_varint(r, dtype);
    case DESC_DIM:
        return take_dim(r, shape);
    case DESC_DIMS:
        return take_dims(r, shape);
    }
    return fl_fail(FL_EPROTO, "%s: the description has an unknown tag %llu",
                   r->name, (unsigned long long)tag);
}

static fl_err take_desc(reader *r, fl_dtype *dtype, fl_shape *shape)
{
    uint32_t n = 0;
    uint64_t number = UINT64_MAX;
    const void *at = NULL;
    FL_TRY(take_number(r, sizeof n, "the size of the description", &n));
    FL_TRY(take_bytes(r, n, "the description", &at));
    reader desc = {r->name, at, n};
    while (desc.left)
        FL_TRY(take_field(&desc, &number, shape));
    if (number > INT32_MAX || !fl_dtype_valid((int)number))
        return fl_fail(FL_EPROTO, "%s: unknown element type %lld", r->name,
                       (long long)number);
    *dtype = (fl_dtype)number;
    return FL_OK;
}

/* Read the tensor part as a view of the bytes, which need not be aligned. */
static fl_err take_tensor(reader *r, fl_tensor *view)
{
    fl_dtype dtype = FL_BOOL;
    fl_shape shape = {0};
    char text[FL_SHAPE_TEXT];
    const void *at = NULL;
    FL_TRY(take_version(r));
    FL_TRY(take_desc(r, &dtype, &shape));
    int64_t n = fl_shape_numel(&shape);
    size_t size = fl_dtype_size(dtype);
    if ((uint64_t)n > r->left / size)
        return fl_fail(FL_EPROTO,
                       "%s: %s%s has %lld elements, but %zu bytes are left",
                       r->name, fl_dtype_name(dtype),
                       fl_shape_text(&shape, text), (long long)n, r->left);
    FL_TRY(take_bytes(r, (uint64_t)n * size, "the elements", &at));
    *view = fl_tensor_view(dtype, &shape, at);
    return FL_OK;
}

static fl_err take_level(reader *r, int64_t *n, const void **off)
{
    uint64_t bytes = 0;
    FL_TRY(take_number(r, sizeof bytes, "the size of a lod level", &bytes));
    if (bytes % sizeof(int64_t))
        return fl_fail(FL_EPROTO,
                       "%s: a lod level of %llu bytes, not a multiple of 8",
                       r->name, (unsigned long long)bytes);
    *n = (int64_t)(bytes / sizeof(int64_t));
    return take_bytes(r, bytes, "a lod level", off);
}

/* Own: l. */
static fl_err take_lod(reader *r, fl_lod *l)
{
    uint64_t levels = 0;
    const void *off[FL_MAX_LOD];
    size_t total = 0;
    FL_TRY(take_version(r));
    FL_TRY(take_number(r, sizeof levels, "the number of lod levels", &levels));
    if (levels > FL_MAX_LOD)
        return fl_fail(FL_EPROTO,
                       "%s: %llu lod levels, at most %d are supported", r->name,
                       (unsigned long long)levels, FL_MAX_LOD);
    for (uint64_t i = 0; i < levels; i++) {
        FL_TRY(take_level(r, &l->n[i], &off[i]));
        total += (size_t)l->n[i] * sizeof(int64_t);
    }
    if (!levels)
        return FL_OK;
    FL_TRY(fl_buf_new(total, &l->buf));
    int64_t *at = fl_buf_data(l->buf);
    for (l->levels = 0; l->levels < (int)levels; l->levels++) {
        int64_t n = l->n[l->levels];
        l->off[l->levels] = memcpy(at, off[l->levels], (size_t)n * sizeof *at);
        at += n;
    }
    return FL_OK;
}

fl_err fl_tensor_head_decode(const char *name, fl_kind kind, const void *bytes,
                             size_t n, fl_dtype *dtype, fl_shape *shape,
                             size_t *used)
{
    reader r = {name, bytes, n};
    fl_lod lod = {0};
    *shape = (fl_shape){0};
    fl_err err = kind == FL_SELECTED_ROWS ? FL_OK : take_lod(&r, &lod);
    fl_lod_fini(&lod); /* a caller that reads in parts does not need it */
    if (!err)
        err = take_version(&r);
    if (!err)
        err = take_desc(&r, dtype, shape);
    *used = n - r.left;
    return err;
}

/* Copy the elements of a view of unaligned bytes into memory of the tensor. */
static fl_err keep_tensor(fl_tensor *t, const fl_tensor *view)
{
    FL_TRY(fl_tensor_copy(t, view));
    uint8_t *b = t->data;
    if (t->dtype == FL_BOOL) /* kernels rely on 0 and 1 */
        for (int64_t i = 0, n = fl_tensor_numel(t); i < n; i++)
            b[i] = b[i] != 0;
    return FL_OK;
}

static fl_err decode_tensor(reader *r, fl_tensor *t)
{
    fl_lod lod = {0};
    fl_tensor view;
    fl_err err = take_lod(r, &lod);
    if (!err)
        err = take_tensor(r, &view);
    if (!err && fl_lod_check(&lod, view.shape.rank ? view.shape.dim[0] : 1))
        err = fl_fail_at(FL_EPROTO, "in %s", r->name);
    if (!err)
        err = keep_tensor(t, &view);
    if (!err)
        err = fl_lod_ref(&t->lod, &lod);
    fl_lod_fini(&lod);
    return err;
}

static fl_err check_rows(const reader *r, const int64_t *row, int64_t n,
                         int64_t height, const fl_tensor *value)
{
    char text[FL_SHAPE_TEXT];
    if (!value->shape.rank || value->shape.dim[0] != n)
        return fl_fail(
            FL_EPROTO, "%s: it lists %lld rows, but its value has the shape %s",
            r->name, (long long)n, fl_shape_text(&value->shape, text));
    for (int64_t i = 0; i < n; i++)
        if (row[i] < 0 || row[i] >= height)
            return fl_fail(FL_EPROTO,
                           "%s: it lists row %lld, but its height is %lld",
                           r->name, (long long)row[i], (long long)height);
    return FL_OK;
}

static fl_err decode_rows(reader *r, fl_rows *rows)
{
    uint64_t n = 0;
    int64_t height = 0;
    const void *at = NULL;
    fl_tensor view, index = {0};
    FL_TRY(take_version(r));
    FL_TRY(take_number(r, sizeof n, "the number of rows", &n));
    if (n > r->left / sizeof(int64_t))
        return fl_fail(FL_EPROTO, "%s: %llu rows, but %zu bytes are left",
                       r->name, (unsigned long long)n, r->left);
    FL_TRY(take_bytes(r, n * sizeof(int64_t), "the rows", &at));
    FL_TRY(take_number(r, sizeof height, "the height", &height));
    FL_TRY(take_tensor(r, &view));
    fl_shape list = fl_shape_of(1, (int64_t[]){(int64_t)n});
    fl_tensor listed = fl_tensor_view(FL_I64, &list, at);
    FL_TRY(fl_tensor_copy(&index, &listed));
    fl_err err = check_rows(r, index.data, (int64_t)n, height, &view);
    if (!err)
        err = keep_tensor(&rows->value, &view);
    if (!err) {
        err = fl_tensor_ref(&rows->index, &index);
        rows->n = (int64_t)n;
        rows->height = height;
    }
    fl_tensor_fini(&index);
    return err;
}

fl_err fl_value_decode(const char *name, const void *bytes, size_t n,
                       fl_value *v, size_t *used)
{
    reader r = {name, bytes, n};
    if (v->kind == FL_SELECTED_ROWS) {
        FL_TRY(decode_rows(&r, &v->rows));
    } else {
        FL_TRY(decode_tensor(&r, &v->tensor));
        v->kind = FL_LOD_TENSOR;
    }
    *used = n - r.left;
    return FL_OK;
}

/* --- files --- */

typedef struct writer {
    fl_str head;           /* bytes of all records */
    FL_VEC(fl_part) parts; /* head, elements, head, elements, ... */
    fl_tensors elements;
} writer;

static void writer_fini(writer *w)
{
    for (int64_t i = 0; i < w->elements.n; i++)
        fl_tensor_fini(&w->elements.at[i]);
    fl_vec_fini(&w->elements);
    fl_vec_fini(&w->parts);
    fl_str_fini(&w->head);
}

static fl_err gather_parts(writer *w, int n, const fl_value *const *v,
                           bool as_f16)
{
    for (int i = 0; i < n; i++) {
        size_t start = w->head.n;
        fl_tensor t = {0};
        fl_err err = encode_head(v[i], as_f16, &w->head, &t);
        fl_push(&w->elements, t);
        fl_push(&w->parts, (fl_part){NULL, w->head.n - start});
        fl_push(&w->parts, (fl_part){t.data, fl_tensor_bytes(&t)});
        FL_TRY(err);
    }
    const char *at = w->head.at; /* it may have moved while it grew */
    for (int64_t i = 0; i < w->parts.n; i += 2) {
        w->parts.at[i].at = at;
        at += w->parts.at[i].n;
    }
    return FL_OK;
}

fl_err fl_values_stage(fl_stage *stage, const char *name, int n,
                       const fl_value *const *v, bool as_f16)
{
    writer w = {0};
    fl_err err = gather_parts(&w, n, v, as_f16);
    if (err)
        fl_fail_at(err, "for %s/%s", stage->dir, name);
    else
        err = fl_stage_write(stage, name, w.parts.at, w.parts.n);
    writer_fini(&w);
    return err;
}

fl_err fl_values_save(const fl_disk *disk, const char *path, int n,
                      const fl_value *const *v, bool as_f16)
{
    writer w = {0};
    fl_err err = gather_parts(&w, n, v, as_f16);
    if (err)
        fl_fail_at(err, "for %s", path);
    if (!err)
        err = fl_disk_make_parents(disk, path);
    if (!err)
        err = fl_file_write(disk, path, w.parts.at, w.parts.n);
    writer_fini(&w);
    return err;
}

static fl_err decode_all(const char *path, const fl_str *s, int n,
                         fl_value *const *v)
{
    size_t at = 0, used = 0;
    for (int i = 0; i < n; i++, at += used) {
        fl_err err = fl_value_decode(path, s->at + at, s->n - at, v[i], &used);
        if (err && n > 1)
            fl_fail_at(err, "tensor %d of %d", i + 1, n);
        FL_TRY(err);
    }
    if (at < s->n)
        return fl_fail(FL_EPROTO, "%s: %zu bytes follow the last tensor", path,
                       s->n - at);
    return FL_OK;
}

static const size_t any_size = PTRDIFF_MAX / 2;

fl_err fl_values_read(const fl_folder *f, const char *name, int n,
                      fl_value *const *v)
{
    fl_str s = {0};
    char *path = fl_path_join(f->dir, name);
    fl_err err = fl_folder_read(f, name, any_size, &s);
    if (!err)
        err = decode_all(path, &s, n, v);
    fl_mem_free(path);
    fl_str_fini(&s);
    return err;
}

fl_err fl_values_load(const fl_disk *disk, const char *path, int n,
                      fl_value *const *v)
{
    fl_str s = {0};
    fl_err err = fl_file_read(disk, path, any_size, &s);
    if (!err)
        err = decode_all(path, &s, n, v);
    fl_str_fini(&s);
    return err;
}
