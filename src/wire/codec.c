/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - messages between parties as bytes, and back.
 *
 *     0a n  Control                        control.h; copied
 *     12 n  Tensor                         written by hand:
 *           0a n name  10 kind  18 dtype  22 n dim ..  28 height  30 first
 *           3a n  rows                     lent
 *           7a n  data                     lent
 *     12 n  ..                             the next one
 *
 * The fields of a tensor before its rows are a small header, which is copied.
 * Rows and data are sent from the memory of the tensor, and a decoded item
 * refers to the bytes of the packet.
 *
 * The decoder is stricter than protobuf in one point: a field that is not
 * repeated may occur only once. Fields may come in any order; unknown fields
 * are skipped. */
#include "wire/codec.h"

#include "base/utf8.h"
#include "wire/control.h"
#include "wire/fields.h"

enum {
    ITEMS_MOST = 16384, /* tensors in a message; a model has a few hundred */
    NAME_MOST = 1024,   /* longest name in bytes */
    LEND_LEAST = 1024,  /* bytes; a smaller block is copied instead of lent,
                           which is faster */
};

/* Fields of Message. */
enum {
    CONTROL = 1,
    TENSOR = 2,
};

/* Fields of Tensor. */
enum {
    NAME = 1,
    KIND = 2,
    DTYPE = 3,
    DIM = 4,
    HEIGHT = 5,
    FIRST = 6,
    ROWS = 7,
    DATA = 15,
};

/* --- writing a tensor --- */

/* The encoded bytes before and between name, rows and data. */
typedef struct head {
    struct part {
        uint8_t at[16 + FL_VARINT_MOST * (FL_MAX_RANK + 4)];
        size_t n;
    } before_name, before_rows, before_data;
    size_t size; /* size of the encoded tensor in bytes, without its key and
                    length */
} head;

static void put_number(struct part *p, uint64_t v)
{
    p->n += fl_varint_put(p->at + p->n, v);
}

static void put_key(struct part *p, int number, fl_wire_type wire)
{
    put_number(p, (uint64_t)number << 3 | wire);
}

static void put_field(struct part *p, int number, int64_t v)
{
    if (!v)
        return; /* proto3 does not write zeros */
    put_key(p, number, FL_WIRE_VARINT);
    put_number(p, (uint64_t)v);
}

static void put_length(struct part *p, int number, size_t n)
{
    if (!n)
        return;
    put_key(p, number, FL_WIRE_BYTES);
    put_number(p, n);
}

static void put_shape(struct part *p, const fl_shape *s)
{
    struct part dims = {.n = 0};
    for (int i = 0; i < s->rank; i++)
        put_number(&dims, (uint64_t)s->dim[i]);
    put_length(p, DIM, dims.n);
    memcpy(p->at + p->n, dims.at, dims.n);
    p->n += dims.n;
}

static void make_head(const fl_item *item, head *h)
{
    const size_t name = strlen(item->name);
    h->before_name.n = h->before_rows.n = h->before_data.n = 0;
    put_length(&h->before_name, NAME, name);
    put_field(&h->before_rows, KIND, (int64_t)item->kind);
    put_field(&h->before_rows, DTYPE, (int64_t)item->dtype);
    put_shape(&h->before_rows, &item->shape);
    put_field(&h->before_rows, HEIGHT, item->height);
    put_field(&h->before_rows, FIRST, item->first);
    put_length(&h->before_rows, ROWS, item->rows.size);
    put_length(&h->before_data, DATA, item->data.size);
    h->size = h->before_name.n + name + h->before_rows.n + item->rows.size +
              h->before_data.n + item->data.size;
}

static void put_bytes(fl_packet *p, fl_bytes b)
{
    size_t cursor = 0;
    for (fl_span s; fl_bytes_next(b, &cursor, &s);)
        if (s.size < LEND_LEAST)
            fl_packet_copy(p, s.at, s.size);
        else
            fl_packet_lend(p, s.at, s.size, NULL, NULL);
}

/* Append an item to p as a field of Message. Large memory is lent, so the
 * parcel of the item must outlive p. */
static void put_tensor(const fl_item *item, fl_packet *p)
{
    head h;
    struct part key = {.n = 0};
    make_head(item, &h);
    put_key(&key, TENSOR, FL_WIRE_BYTES);
    put_number(&key, h.size);
    fl_packet_copy(p, key.at, key.n);
    fl_packet_copy(p, h.before_name.at, h.before_name.n);
    fl_packet_copy(p, item->name, strlen(item->name));
    fl_packet_copy(p, h.before_rows.at, h.before_rows.n);
    put_bytes(p, item->rows);
    fl_packet_copy(p, h.before_data.at, h.before_data.n);
    put_bytes(p, item->data);
}

/* --- reading a tensor --- */

typedef struct tensor {
    fl_item item;
    unsigned seen; /* bit i is set if field number i was read */
    char name[NAME_MOST + 1];
} tensor;

/* Read a name. Until it has been checked, t->name is empty, so that no error
 * message shows it. */
static fl_err read_name(tensor *t, fl_bytes b)
{
    char *name = t->name;
    if (b.size > NAME_MOST)
        return fl_fail(FL_EPROTO, "name: %zu bytes are more than %d", b.size,
                       NAME_MOST);
    fl_bytes_copy(b, 0, name, b.size);
    name[b.size] = 0;
    if (strlen(name) == b.size && fl_utf8_plain(name))
        return FL_OK;
    *name = 0;
    return fl_fail(FL_EPROTO,
                   "name: it is not UTF-8, or has control characters");
}

static fl_err add_dim(fl_shape *s, uint64_t dim)
{
    if (s->rank == FL_MAX_RANK)
        return fl_fail(FL_EPROTO, "dim: there are more than %d", FL_MAX_RANK);
    if (dim > INT64_MAX)
        return fl_fail(FL_EPROTO, "dim: %lld is negative", (long long)dim);
    s->dim[s->rank++] = (int64_t)dim;
    return FL_OK;
}

static fl_err read_dims(fl_shape *s, const fl_field *f)
{
    uint64_t dim;
    if (f->wire == FL_WIRE_VARINT)
        return add_dim(s, f->value);
    for (fl_fields d = fl_fields_of(f->bytes); !fl_fields_end(&d);) {
        FL_TRY(fl_fields_number(&d, &dim));
        FL_TRY(add_dim(s, dim));
    }
    return FL_OK;
}

static fl_err read_count(const char *field, uint64_t v, int64_t *out)
{
    if (v > INT64_MAX)
        return fl_fail(FL_EPROTO, "%s: %lld is negative", field, (long long)v);
    *out = (int64_t)v;
    return FL_OK;
}

static fl_err read_kind(tensor *t, uint64_t v)
{
    if (v && v != FL_LOD_TENSOR && v != FL_SELECTED_ROWS)
        return fl_fail(FL_EPROTO, "kind: %llu came, expected 0, %d or %d",
                       (unsigned long long)v, FL_LOD_TENSOR, FL_SELECTED_ROWS);
    t->item.kind = (fl_kind)v;
    return FL_OK;
}

static fl_err read_dtype(tensor *t, uint64_t v)
{
    if (v > INT32_MAX || !fl_dtype_valid((int)v))
        return fl_fail(FL_EPROTO, "dtype: %llu is not an element type",
                       (unsigned long long)v);
    t->item.dtype = (fl_dtype)v;
    return FL_OK;
}

/* Check that the field has its wire type and occurs once. */
static fl_err check_field(tensor *t, const fl_field *f)
{
    static const struct {
        const char *name;
        fl_wire_type wire;
    } known[] = {
        [NAME] = {"name", FL_WIRE_BYTES},
        [KIND] = {"kind", FL_WIRE_VARINT},
        [DTYPE] = {"dtype", FL_WIRE_VARINT},
        [DIM] = {"dim", FL_WIRE_BYTES},
        [HEIGHT] = {"height", FL_WIRE_VARINT},
        [FIRST] = {"first", FL_WIRE_VARINT},
        [ROWS] = {"rows", FL_WIRE_BYTES},
        [DATA] = {"data", FL_WIRE_BYTES},
    };
    if (f->number > DATA || !known[f->number].name)
        return FL_OK;
    const char *name = known[f->number].name;
    if (f->number == DIM && f->wire == FL_WIRE_VARINT)
        return FL_OK; /* a list element outside a packed list */
    if (f->wire != known[f->number].wire)
        return fl_fail(FL_EPROTO, "%s: wire type %d came, %d was expected",
                       name, (int)f->wire, (int)known[f->number].wire);
    if (f->number != DIM && t->seen & 1u << f->number)
        return fl_fail(FL_EPROTO, "%s occurs twice", name);
    t->seen |= 1u << f->number;
    return FL_OK;
}

static fl_err read_field(tensor *t, const fl_field *f)
{
    FL_TRY(check_field(t, f));
    switch (f->number) {
    case NAME:
        return read_name(t, f->bytes);
    case KIND:
        return read_kind(t, f->value);
    case DTYPE:
        return read_dtype(t, f->value);
    case DIM:
        return read_dims(&t->item.shape, f);
    case HEIGHT:
        return read_count("height", f->value, &t->item.height);
    case FIRST:
        return read_count("first", f->value, &t->item.first);
    case ROWS:
        t->item.rows = f->bytes;
        return FL_OK;
    case DATA:
        t->item.data = f->bytes;
        return FL_OK;
    }
    return FL_OK;
}

/* Whether the number of elements, plus item->first, fits into int64_t. A
 * dimension of 0 counts as 1, so that products of some dimensions fit too. */
static bool is_countable(const fl_item *item)
{
    int64_t n = 1;
    bool over = false;
    for (int i = 0; i < item->shape.rank; i++)
        if (item->shape.dim[i])
            over |= __builtin_mul_overflow(n, item->shape.dim[i], &n);
    over |= __builtin_add_overflow(n, item->first, &n);
    return !over && n <= INT64_MAX / (int64_t)fl_dtype_size(item->dtype);
}

static fl_err check_count(const fl_item *item)
{
    char text[FL_SHAPE_TEXT];
    if (is_countable(item))
        return FL_OK;
    return fl_fail(FL_EPROTO, "dim: %s%s from element %lld on is too large",
                   fl_dtype_name(item->dtype),
                   fl_shape_text(&item->shape, text), (long long)item->first);
}

static fl_err check_data(const fl_item *item)
{
    char text[FL_SHAPE_TEXT];
    const char *type = fl_dtype_name(item->dtype);
    const size_t need =
        (size_t)fl_shape_numel(&item->shape) * fl_dtype_size(item->dtype);
    if (item->data.size != need)
        return fl_fail(FL_EPROTO, "data: %zu bytes came, %s%s has %zu",
                       item->data.size, type, fl_shape_text(&item->shape, text),
                       need);
    return FL_OK;
}

/* Check that the shape agrees with the number of rows that are listed. */
static fl_err check_rows(const fl_item *item)
{
    const int rank = item->shape.rank;
    const bool listed = item->kind == FL_SELECTED_ROWS;
    if (listed ? rank < 1 : item->kind == 0 && rank > 1)
        return fl_fail(FL_EPROTO, "dim: there are %d, %s", rank,
                       listed ? "selected rows need 1 or more"
                              : "rows wanted are 1");
    if (fl_item_is_range(item))
        return FL_OK; /* a range of elements */
    const bool some = item->kind != FL_LOD_TENSOR && rank;
    const int64_t n = some ? item->shape.dim[0] : 0;
    if (item->rows.size % sizeof(int64_t) ||
        (int64_t)(item->rows.size / sizeof(int64_t)) != n)
        return fl_fail(FL_EPROTO, "rows: %zu bytes came, %lld rows have 8 each",
                       item->rows.size, (long long)n);
    return FL_OK;
}

static fl_err read_tensor(tensor *t, fl_bytes b)
{
    for (fl_fields f = fl_fields_of(b); !fl_fields_end(&f);) {
        fl_field field;
        FL_TRY(fl_fields_next(&f, &field));
        FL_TRY(read_field(t, &field));
    }
    if (!*t->name)
        return fl_fail(FL_EPROTO, "name is missing");
    FL_TRY(check_rows(&t->item));
    if (!t->item.kind && t->item.data.size)
        return fl_fail(FL_EPROTO, "data: %zu bytes came with a bare name",
                       t->item.data.size);
    FL_TRY(check_count(&t->item));
    return t->item.kind ? check_data(&t->item) : FL_OK;
}

/* Decode a Tensor and append it to *p. The first tensor creates *p. Err:
 * EPROTO. */
static fl_err add_tensor(fl_bytes b, fl_parcel **p)
{
    tensor t;
    t.item = (fl_item){.name = t.name};
    t.seen = 0;
    *t.name = 0;
    if (!*p)
        *p = fl_parcel_new();
    if ((*p)->n == ITEMS_MOST)
        return fl_fail(FL_EPROTO, "there are more than %d tensors", ITEMS_MOST);
    const fl_err err = read_tensor(&t, b);
    if (err)
        return fl_fail_at(err, "tensor %d%s%.100s", (*p)->n,
                          *t.name ? ", " : "", t.name);
    fl_parcel_add_item(*p, &t.item);
    return FL_OK;
}

/* --- reading a message --- */

static fl_err read_control(fl_bytes b, fl_arena *a, fl_msg *m)
{
    if (m->kind)
        return fl_fail(FL_EPROTO, "control occurs twice");
    FL_TRY(fl_control_read(b, a, m));
    if (!m->kind)
        return fl_fail(FL_EPROTO, "control.kind is missing");
    return FL_OK;
}

static fl_err read_message(const fl_packet *p, fl_arena *a, fl_parcel **parcel,
                           fl_msg *m)
{
    const fl_bytes all = {p, 0, fl_packet_size(p)};
    for (fl_fields f = fl_fields_of(all); !fl_fields_end(&f);) {
        fl_field field;
        FL_TRY(fl_fields_next(&f, &field));
        if (field.number != CONTROL && field.number != TENSOR)
            continue;
        if (field.wire != FL_WIRE_BYTES)
            return fl_fail(FL_EPROTO,
                           "field %d: wire type %d came, 2 was expected",
                           (int)field.number, (int)field.wire);
        if (field.number == CONTROL)
            FL_TRY(read_control(field.bytes, a, m));
        else
            FL_TRY(add_tensor(field.bytes, parcel));
    }
    if (!m->kind)
        return fl_fail(FL_EPROTO, "control is missing");
    return FL_OK;
}

/* --- messages --- */

bool fl_msg_streams(fl_msg_kind kind)
{
    return kind == FL_MSG_PUSH || kind == FL_MSG_PULL;
}

int fl_msg_methods(fl_rpc_method *out, fl_rpc_method call, fl_rpc_method open,
                   fl_rpc_method stream)
{
    int n = 0;
    for (int kind = 0; kind < FL_MSG_KINDS; kind++) {
        const fl_msg_info *info = fl_msg_info_of((fl_msg_kind)kind);
        bool listed = !info->method;
        for (int i = 0; i < n && !listed; i++)
            listed = !strcmp(out[i].name, info->method);
        if (listed)
            continue;
        out[n] = info->by == FL_BY_OPEN ? open : call;
        out[n++].name = info->method;
    }
    out[n] = stream;
    out[n++].name = FL_METHOD_STREAM;
    return n;
}

size_t fl_item_size(const fl_item *item)
{
    head h;
    uint8_t length[FL_VARINT_MOST];
    make_head(item, &h);
    return 1 + fl_varint_put(length, h.size) + h.size;
}

static void drop_parcel(void *parcel)
{
    fl_parcel_unref(parcel);
}

fl_packet *fl_msg_encode(const fl_msg *m)
{
    const uint8_t key = CONTROL << 3 | FL_WIRE_BYTES;
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, &key, 1);
    fl_control_put(p, m);
    fl_parcel *parcel = fl_parcel_of(m->blob);
    for (int i = 0; parcel && i < parcel->n; i++)
        put_tensor(&parcel->item[i], p);
    if (parcel) /* one reference covers all memory that was lent */
        fl_packet_lend(p, NULL, 0, drop_parcel, fl_parcel_ref(parcel));
    return p;
}

fl_err fl_msg_decode(const char *peer, const fl_packet *p, fl_arena *arena,
                     fl_msg *m)
{
    fl_msg read = {0};
    fl_parcel *parcel = NULL;
    const fl_err err = read_message(p, arena, &parcel, &read);
    if (!err && parcel)
        read.blob = fl_parcel_blob(parcel);
    fl_parcel_unref(parcel);
    if (err)
        return fl_fail_at(err, "in a message of %zu bytes%s%s",
                          fl_packet_size(p), peer ? " from " : "",
                          peer ? peer : "");
    *m = read;
    return FL_OK;
}

/* --- Why --- */

fl_packet *fl_why_encode(const char *text)
{
    fl_packet *p = fl_packet_new();
    fl_answer_put(p, text);
    return p;
}

fl_err fl_why_decode(const char *peer, const fl_packet *p, fl_arena *arena,
                     const char **text)
{
    const fl_bytes all = {p, 0, fl_packet_size(p)};
    const fl_err err = fl_answer_read(all, arena, text);
    if (err)
        return fl_fail_at(err, "in a message of %zu bytes from %s", all.size,
                          peer);
    return FL_OK;
}
