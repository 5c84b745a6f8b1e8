/* codec.c - messages between parties as bytes, and back.
 *
 *     0a n  Control                        packed by protobuf-c, copied
 *     12 n  Tensor                         written by hand:
 *           0a n name  10 kind  18 dtype  22 n dim ..  28 height  30 first
 *           3a n  rows                     lent
 *           7a n  data                     lent
 *     12 n  ..                             the next one
 *
 * All of a tensor before its rows is a small header that is copied; then the
 * memory of the tensor itself goes on the wire. A reader notes where each thing
 * lies, and leaves it there.
 *
 * Stricter than protobuf where nobody writes otherwise: a field that is not
 * repeated stands once. Fields may come in any order, unknown ones are passed
 * over. */
#include "wire/codec.h"

#include "base/utf8.h"
#include "base/wire.h"
#include "fluid.pb-c.h"
#include "wire/fields.h"

enum {
    /* Fields of a control: most are members, who take 32 bytes each. Unpacked,
     * an empty one would take 20 times the bytes that it came in. */
    FIELDS_MOST = FL_CONTROL_MOST / 32,
    ITEMS_MOST = 16384, /* of a message; a model has hundreds of variables */
    NAME_MOST = 1024,   /* bytes; nobody types longer ones */
    LEND_LEAST = 1024,  /* bytes; less is copied faster than it is lent */
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

/* What stands before and between the name, the rows and the data. */
typedef struct head {
    struct part {
        uint8_t at[16 + FL_VARINT_MOST * (FL_MAX_RANK + 4)];
        size_t n;
    } before_name, before_rows, before_data;
    size_t size; /* of the whole tensor, without its key and length */
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
        return; /* as proto3 has it */
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

/* Append it to p, as a field of Message. What is large is lent: the parcel of
 * the item must outlive p. */
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
    unsigned seen; /* fields, by number */
    char name[NAME_MOST + 1];
} tensor;

/* A name that can stand in a sentence; t->name is empty unless it is one. */
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
        return fl_fail(FL_EPROTO, "kind: %llu is none of 0, %d and %d",
                       (unsigned long long)v, FL_LOD_TENSOR, FL_SELECTED_ROWS);
    t->item.kind = (fl_kind)v;
    return FL_OK;
}

static fl_err read_dtype(tensor *t, uint64_t v)
{
    if (v > INT32_MAX || !fl_dtype_valid((int)v))
        return fl_fail(FL_EPROTO, "dtype: %llu is no element type",
                       (unsigned long long)v);
    t->item.dtype = (fl_dtype)v;
    return FL_OK;
}

/* The wire type is the one of the field, and it stands there once. */
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
        return FL_OK; /* not packed */
    if (f->wire != known[f->number].wire)
        return fl_fail(FL_EPROTO, "%s: wire type %d came, %d was expected",
                       name, (int)f->wire, (int)known[f->number].wire);
    if (f->number != DIM && t->seen & 1u << f->number)
        return fl_fail(FL_EPROTO, "%s stands twice", name);
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

/* Do the elements and those before them fit in numbers? A dimension of 0 does
 * not hide others: whoever computes with a part of the shape is safe. */
static bool countable(const fl_item *item)
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
    if (countable(item))
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

/* Rows that are listed, or wanted: a shape says how many. */
static fl_err check_rows(const fl_item *item)
{
    const int rank = item->shape.rank;
    const bool listed = item->kind == FL_SELECTED_ROWS;
    if (listed ? rank < 1 : item->kind == 0 && rank > 1)
        return fl_fail(FL_EPROTO, "dim: there are %d, %s", rank,
                       listed ? "selected rows need 1 or more"
                              : "rows wanted are 1");
    if (fl_item_is_range(item))
        return FL_OK; /* elements, of which none is listed */
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

/* The bytes of a Tensor as another item of the parcel. Err: EPROTO. */
static fl_err add_tensor(fl_bytes b, fl_parcel *p)
{
    tensor t;
    t.item = (fl_item){.name = t.name};
    t.seen = 0;
    *t.name = 0;
    if (p->n == ITEMS_MOST)
        return fl_fail(FL_EPROTO, "there are more than %d tensors", ITEMS_MOST);
    const fl_err err = read_tensor(&t, b);
    if (err)
        return fl_fail_at(err, "tensor %d%s%.100s", p->n, *t.name ? ", " : "",
                          t.name);
    fl_parcel_add_item(p, &t.item);
    return FL_OK;
}

/* Text of a peer goes into logs, sentences and on terminals, so it is made
 * plain when it is read. It is when it is written, too: sentences may be cut
 * inside a character, and a reader that keeps to proto3 would refuse the
 * message. */
static char *make_plain(fl_arena *a, const char *text,
                        void (*escape)(fl_str *s, const char *text))
{
    fl_str s = {0};
    escape(&s, text ? text : "");
    char *copy = fl_arena_strdup(a, s.at);
    fl_str_fini(&s);
    return copy;
}

/* --- writing a control --- */

static void put_members(Fluid__Control *c, const fl_msg *m, fl_arena *a)
{
    const size_t n = (size_t)m->n_member;
    Fluid__Member *to = fl_arena_alloc(a, n * sizeof *to);
    c->n_member = n;
    c->member = fl_arena_alloc(a, n * sizeof *c->member);
    for (size_t i = 0; i < n; i++) {
        const fl_member *from = &m->member[i];
        fluid__member__init(&to[i]);
        to[i].rank = from->rank;
        to[i].session_hi = from->session.hi;
        to[i].session_lo = from->session.lo;
        to[i].g = from->g;
        c->member[i] = &to[i];
    }
}

static void put_left(Fluid__Control *c, const fl_msg *m, fl_arena *a)
{
    const size_t n = (size_t)m->n_left;
    Fluid__Leave *to = fl_arena_alloc(a, n * sizeof *to);
    c->n_left = n;
    c->left = fl_arena_alloc(a, n * sizeof *c->left);
    for (size_t i = 0; i < n; i++) {
        const fl_leave *from = &m->left[i];
        fluid__leave__init(&to[i]);
        to[i].rank = from->rank;
        to[i].session_hi = from->session.hi;
        to[i].session_lo = from->session.lo;
        to[i].view = from->view;
        to[i].why = (Fluid__Leave__Why)from->why;
        to[i].ago = from->ago;
        c->left[i] = &to[i];
    }
}

static Fluid__Control make_control(const fl_msg *m, fl_arena *a)
{
    Fluid__Control c = FLUID__CONTROL__INIT;
    c.kind = (Fluid__Control__Kind)m->kind;
    c.job_hi = m->job.hi;
    c.job_lo = m->job.lo;
    c.session_hi = m->session.hi;
    c.session_lo = m->session.lo;
    c.tag = m->tag;
    c.g = m->g;
    c.view = m->view;
    c.round = m->round;
    c.seq = m->seq;
    c.count = m->count;
    c.echo = m->echo;
    c.secret = m->secret;
    c.state = m->state.id;
    c.incarnation = m->state.incarnation;
    c.expected = m->expected;
    c.seen = (uint64_t *)m->seen;
    c.n_seen = (size_t)m->n_seen;
    c.explicit_id = m->explicit_id;
    c.server = m->server;
    c.rank = m->rank;
    c.code = m->code;
    c.over = m->over;
    c.text = make_plain(a, m->text, fl_utf8_escape);
    c.about = make_plain(a, m->about, fl_utf8_escape_lines);
    put_members(&c, m, a);
    put_left(&c, m, a);
    return c;
}

/* --- reading a control --- */

/* The bytes in one piece: where they lie, or copied. */
static const void *in_one(fl_bytes b, fl_arena *a)
{
    fl_span s = {.at = ""};
    size_t cursor = 0;
    if (!fl_bytes_next(b, &cursor, &s) || s.size == b.size)
        return s.at;
    void *copy = fl_arena_alloc(a, b.size);
    fl_bytes_copy(b, 0, copy, b.size);
    return copy;
}

static void get_members(const Fluid__Control *c, fl_arena *a, fl_msg *m)
{
    fl_member *to = fl_arena_alloc(a, c->n_member * sizeof *to);
    for (size_t i = 0; i < c->n_member; i++) {
        const Fluid__Member *from = c->member[i];
        to[i].rank = from->rank;
        to[i].session = (fl_id){from->session_hi, from->session_lo};
        to[i].g = from->g;
    }
    m->member = to;
    m->n_member = (int)c->n_member;
}

static void get_left(const Fluid__Control *c, fl_arena *a, fl_msg *m)
{
    fl_leave *to = fl_arena_alloc(a, c->n_left * sizeof *to);
    for (size_t i = 0; i < c->n_left; i++) {
        const Fluid__Leave *from = c->left[i];
        to[i].rank = from->rank;
        to[i].session = (fl_id){from->session_hi, from->session_lo};
        to[i].view = from->view;
        to[i].why = (fl_left)from->why;
        to[i].ago = from->ago;
    }
    m->left = to;
    m->n_left = (int)c->n_left;
}

static void get_control(const Fluid__Control *c, fl_arena *a, fl_msg *m)
{
    *m = (fl_msg){
        .kind = (fl_msg_kind)c->kind,
        .job = {c->job_hi, c->job_lo},
        .session = {c->session_hi, c->session_lo},
        .tag = c->tag,
        .g = c->g,
        .view = c->view,
        .round = c->round,
        .seq = c->seq,
        .count = c->count,
        .echo = c->echo,
        .secret = c->secret,
        .state = {c->state, c->incarnation},
        .expected = c->expected,
        .explicit_id = c->explicit_id,
        .server = c->server,
        .rank = c->rank,
        .code = c->code,
        .over = c->over,
        .text = *c->text ? make_plain(a, c->text, fl_utf8_escape) : NULL,
    };
    if (*c->about)
        m->about = make_plain(a, c->about, fl_utf8_escape_lines);
    if (c->n_seen) {
        m->seen = fl_arena_dup(a, c->seen, c->n_seen * sizeof *c->seen);
        m->n_seen = (int)c->n_seen;
    }
    if (c->n_member)
        get_members(c, a, m);
    if (c->n_left)
        get_left(c, a, m);
}

/* How many there are, up to the first that is broken. */
static int count_fields(fl_bytes b)
{
    fl_field field;
    int n = 0;
    for (fl_fields f = fl_fields_of(b); !fl_fields_end(&f); n++)
        if (fl_fields_next(&f, &field))
            break;
    return n;
}

/* A small message by protobuf-c. */
static fl_err unpack(const ProtobufCMessageDescriptor *type, fl_bytes b,
                     fl_arena *a, ProtobufCMessage **out)
{
    const char *name = type->short_name;
    if (b.size > FL_CONTROL_MOST)
        return fl_fail(FL_EPROTO, "%s: %zu bytes are more than %d", name,
                       b.size, FL_CONTROL_MOST);
    const int n = count_fields(b);
    if (n > FIELDS_MOST)
        return fl_fail(FL_EPROTO, "%s: %d fields are more than %d", name, n,
                       FIELDS_MOST);
    return fl_wire_unpack(type, name, in_one(b, a), b.size, out);
}

static fl_err read_control(fl_bytes b, fl_arena *a, fl_msg *m)
{
    ProtobufCMessage *c;
    if (m->kind)
        return fl_fail(FL_EPROTO, "control stands twice");
    FL_TRY(unpack(&fluid__control__descriptor, b, a, &c));
    const bool valid = fl_utf8_valid(((Fluid__Control *)c)->text);
    if (valid)
        get_control((Fluid__Control *)c, a, m);
    fl_wire_free(c);
    if (!valid)
        return fl_fail(FL_EPROTO, "control.text is not UTF-8");
    if (!m->kind)
        return fl_fail(FL_EPROTO, "control.kind is missing");
    return FL_OK;
}

/* --- reading a message --- */

static fl_err read_message(const fl_packet *p, fl_arena *a, fl_parcel *parcel,
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

int fl_msg_methods(fl_rpc_method *out, fl_rpc_method call, fl_rpc_method open)
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
    fl_packet *p = fl_packet_new();
    fl_arena *a = fl_arena_new();
    const Fluid__Control c = make_control(m, a);
    const size_t size = fluid__control__get_packed_size(&c);
    uint8_t *bytes = fl_arena_alloc(a, size);
    fluid__control__pack(&c, bytes);
    uint8_t key[1 + FL_VARINT_MOST] = {CONTROL << 3 | FL_WIRE_BYTES};
    fl_packet_copy(p, key, 1 + fl_varint_put(key + 1, size));
    fl_packet_copy(p, bytes, size);
    fl_arena_free(a);

    fl_parcel *parcel = fl_parcel_of(m->blob);
    for (int i = 0; parcel && i < parcel->n; i++)
        put_tensor(&parcel->item[i], p);
    if (parcel) /* one share for all that was lent */
        fl_packet_lend(p, NULL, 0, drop_parcel, fl_parcel_ref(parcel));
    return p;
}

fl_err fl_msg_decode(const char *peer, const fl_packet *p, fl_arena *arena,
                     fl_msg *m)
{
    fl_msg read = {0};
    fl_parcel *parcel = fl_parcel_new();
    const fl_err err = read_message(p, arena, parcel, &read);
    if (!err && parcel->n)
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
    fl_arena *a = fl_arena_new();
    Fluid__Answer answer = FLUID__ANSWER__INIT;
    answer.text = make_plain(a, text, fl_utf8_escape_lines);
    const size_t size = fluid__answer__get_packed_size(&answer);
    uint8_t *bytes = fl_arena_alloc(a, size);
    fluid__answer__pack(&answer, bytes);
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, bytes, size);
    fl_arena_free(a);
    return p;
}

fl_err fl_why_decode(const char *peer, const fl_packet *p, fl_arena *arena,
                     const char **text)
{
    const fl_bytes all = {p, 0, fl_packet_size(p)};
    ProtobufCMessage *answer;
    const fl_err err = unpack(&fluid__answer__descriptor, all, arena, &answer);
    if (err)
        return fl_fail_at(err, "in a message of %zu bytes from %s", all.size,
                          peer);
    *text = make_plain(arena, ((Fluid__Answer *)answer)->text,
                       fl_utf8_escape_lines);
    fl_wire_free(answer);
    return FL_OK;
}
