/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - a struct whose fields a table lists, as a protobuf message.
 *
 * The table says where a field lies in the struct, and the descriptor of the
 * schema says how it is written. Both list the fields in the same order. The
 * bytes are those of any proto3 encoder that writes fields by their numbers
 * and leaves out zeros.
 *
 * The reader is stricter than protobuf: a field that is not repeated may occur
 * only once, an enum must have a known number, and a text may not contain a
 * zero byte. Fields may come in any order; unknown fields are skipped. */
#include "wire/control.h"

#include "base/utf8.h"
#include "fluid.pb-c.h"
#include "wire/fields.h"

enum {
    /* The largest number of fields in a message. Most of them are members, of
     * about 32 bytes each. An empty member takes as much memory as another one
     * when it is read. */
    FIELDS_MOST = FL_CONTROL_MOST / 32,
    FEW = 256, /* bytes; a Control without lists and texts is smaller */
};

typedef ProtobufCMessageDescriptor schema;
typedef ProtobufCFieldDescriptor schema_field;

/* The struct of an Answer. */
typedef struct answer {
    const char *text;
} answer;

static const fl_msg_field answer_fields[] = {
    {"text", 1, FL_FIELD_LINES, offsetof(answer, text)},
    {0},
};

/* --- numbers of a struct --- */

static int64_t load_number(const fl_msg_field *f, const char *from)
{
    int number;
    int64_t word;
    bool flag;
    switch (f->type) {
    case FL_FIELD_INT:
        memcpy(&number, from + f->at, sizeof number);
        return number;
    case FL_FIELD_BOOL:
        memcpy(&flag, from + f->at, sizeof flag);
        return flag;
    default:
        memcpy(&word, from + f->at, sizeof word);
        return word;
    }
}

static void store_number(const fl_msg_field *f, int64_t v, char *to)
{
    switch (f->type) {
    case FL_FIELD_INT:
        memcpy(to + f->at, &(int){(int)v}, sizeof(int));
        break;
    case FL_FIELD_BOOL:
        memcpy(to + f->at, &(bool){v}, sizeof(bool));
        break;
    default:
        memcpy(to + f->at, &v, sizeof v);
    }
}

static bool is_zigzag(const schema_field *d)
{
    return d->type == PROTOBUF_C_TYPE_SINT32 ||
           d->type == PROTOBUF_C_TYPE_SINT64;
}

static bool is_fixed(const schema_field *d)
{
    return d->type == PROTOBUF_C_TYPE_FIXED64;
}

/* --- writing --- */

/* Encoded bytes. They are stored in this struct until it is full, then on the
 * heap. */
typedef struct buffer {
    FL_VEC(uint8_t) bytes;
    uint8_t few[FEW];
} buffer;

static void init_buffer(buffer *b)
{
    b->bytes.at = b->few;
    b->bytes.n = 0;
    b->bytes.cap = FEW;
}

static void fini_buffer(buffer *b)
{
    fl_vec_free_grown(b->bytes.at, b->few);
}

static void put_bytes(buffer *b, const void *at, size_t n)
{
    fl_vec_grow_from((void **)&b->bytes.at, b->few, b->bytes.n, &b->bytes.cap,
                     b->bytes.n + (int64_t)n, 1);
    memcpy(b->bytes.at + b->bytes.n, at, n);
    b->bytes.n += (int64_t)n;
}

static void put_varint(buffer *b, uint64_t v)
{
    uint8_t bytes[FL_VARINT_MOST];
    put_bytes(b, bytes, fl_varint_put(bytes, v));
}

static void put_key(buffer *b, const schema_field *d, fl_wire_type wire)
{
    put_varint(b, (uint64_t)d->id << 3 | wire);
}

static void put_block(buffer *b, const schema_field *d, const void *at,
                      size_t n)
{
    put_key(b, d, FL_WIRE_BYTES);
    put_varint(b, n);
    put_bytes(b, at, n);
}

static void put_number(buffer *b, const schema_field *d, int64_t v)
{
    const uint64_t bits = (uint64_t)v;
    if (!v)
        return; /* proto3 does not write zeros */
    put_key(b, d, is_fixed(d) ? FL_WIRE_8_BYTES : FL_WIRE_VARINT);
    if (is_fixed(d))
        put_bytes(b, &bits, sizeof bits);
    else
        put_varint(b, is_zigzag(d) ? bits << 1 ^ (uint64_t)(v >> 63) : bits);
}

static void (*escape_of(const fl_msg_field *f))(fl_str *, const char *)
{
    return f->type == FL_FIELD_LINES ? fl_utf8_escape_lines : fl_utf8_escape;
}

/* Write a text with control characters and invalid UTF-8 replaced: it may have
 * been cut inside a character, and a strict proto3 reader would refuse the
 * message. */
static void put_text(buffer *b, const schema_field *d, const fl_msg_field *f,
                     const char *text)
{
    fl_str s = {0};
    if (!text || !*text)
        return;
    escape_of(f)(&s, text);
    put_block(b, d, s.at, s.n);
    fl_str_fini(&s);
}

static void put_fields(buffer *b, const fl_msg_field *fields,
                       const schema *type, const char *from);

static void put_list(buffer *b, const schema_field *d, const fl_msg_field *f,
                     const char *list, int n)
{
    if (!f->list && n)
        put_block(b, d, list, (size_t)n * f->size);
    for (int i = 0; f->list && i < n; i++) {
        buffer one;
        init_buffer(&one);
        put_fields(&one, f->list, d->descriptor, list + (size_t)i * f->size);
        put_block(b, d, one.bytes.at, (size_t)one.bytes.n);
        fini_buffer(&one);
    }
}

static void put_fields(buffer *b, const fl_msg_field *fields,
                       const schema *type, const char *from)
{
    for (const fl_msg_field *f = fields; f->name; f++) {
        const schema_field *d = &type->fields[f - fields];
        const char *at;
        int n;
        if (f->type < FL_FIELD_TEXT) {
            put_number(b, d, load_number(f, from));
            continue;
        }
        memcpy(&at, from + f->at, sizeof at);
        if (f->type != FL_FIELD_LIST) {
            put_text(b, d, f, at);
            continue;
        }
        memcpy(&n, from + f->count_at, sizeof n);
        put_list(b, d, f, at, n);
    }
}

/* --- reading --- */

/* The message that is being read, and the messages around it, which errors
 * name. */
typedef struct place {
    const struct place *in; /* the message around this one; NULL: this is the
                               outermost message */
    const char *name;
    int index; /* index of this message in its list */
} place;

/* "control.member[3]" */
static void add_place(const place *at, fl_str *path)
{
    if (at->in) {
        add_place(at->in, path);
        fl_str_printf(path, ".%s[%d]", at->name, at->index);
    } else {
        fl_str_add(path, at->name);
    }
}

static fl_err fail_field(const place *in, const fl_msg_field *f,
                         const char *what)
{
    fl_str path = {0};
    add_place(in, &path);
    const fl_err err = fl_fail(FL_EPROTO, "%s.%s %s", path.at, f->name, what);
    fl_str_fini(&path);
    return err;
}

static fl_err read_number(const place *in, const fl_msg_field *f,
                          const schema_field *d, uint64_t v, char *to)
{
    if (d->type == PROTOBUF_C_TYPE_ENUM &&
        (v > INT32_MAX ||
         !protobuf_c_enum_descriptor_get_value(d->descriptor, (int)v)))
        return fail_field(in, f, "has a number that has no meaning");
    if (d->type == PROTOBUF_C_TYPE_BOOL)
        v = !!v;
    store_number(
        f, is_zigzag(d) ? (int64_t)(v >> 1 ^ (0 - (v & 1))) : (int64_t)v, to);
    return FL_OK;
}

/* Read a text; an empty one becomes NULL. A peer's text is shown in logs and on
 * terminals, so it is cleaned. */
static fl_err read_text(const place *in, const fl_msg_field *f, fl_bytes b,
                        fl_arena *a, char *to)
{
    fl_str plain = {0};
    if (!b.size)
        return FL_OK;
    char *text = fl_arena_alloc(a, b.size + 1);
    fl_bytes_copy(b, 0, text, b.size);
    text[b.size] = 0;
    if (strlen(text) != b.size)
        return fail_field(in, f, "holds a zero byte");
    if (!fl_utf8_valid(text))
        return fail_field(in, f, "is not UTF-8");
    if (!fl_utf8_plain(text)) {
        escape_of(f)(&plain, text);
        text = fl_arena_strdup(a, plain.at);
        fl_str_fini(&plain);
    }
    memcpy(to + f->at, &text, sizeof text);
    return FL_OK;
}

static int count_elements(const fl_msg_field *f, const fl_field *v)
{
    const bool packed = !f->list && v->wire == FL_WIRE_BYTES;
    return packed ? (int)(v->bytes.size / f->size) : 1;
}

/* The number of list elements from field *v on. `rest` is what follows *v. */
static int count_list(const fl_msg_field *f, const fl_field *v, fl_fields rest)
{
    int n = count_elements(f, v);
    fl_field next;
    while (!fl_fields_end(&rest) && !fl_fields_next(&rest, &next))
        if (next.number == (uint64_t)f->number)
            n += count_elements(f, &next);
    return n;
}

static fl_err read_fields(const place *in, const fl_msg_field *fields,
                          const schema *type, fl_bytes b, fl_arena *a,
                          char *to) FL_MUST_CHECK;

/* Append the elements in *v to a list. The first of them gets memory for all
 * that follow. */
static fl_err read_list(const place *in, const fl_msg_field *f,
                        const schema_field *d, const fl_field *v,
                        const fl_fields *rest, fl_arena *a, char *to)
{
    const int more = count_elements(f, v);
    char *list;
    int n;
    memcpy(&list, to + f->at, sizeof list);
    memcpy(&n, to + f->count_at, sizeof n);
    if (!f->list && v->wire == FL_WIRE_BYTES && v->bytes.size % f->size)
        return fail_field(in, f, "is cut off");
    if (!more)
        return FL_OK;
    if (!list) {
        const int all = count_list(f, v, *rest);
        if (f->list && all > FIELDS_MOST)
            return fail_field(in, f, "has too many elements");
        list = fl_arena_alloc(a, (size_t)all * f->size);
    }
    char *at = list + (size_t)n * f->size;
    if (f->list)
        FL_TRY(read_fields(&(place){in, f->name, n}, f->list, d->descriptor,
                           v->bytes, a, at));
    else if (v->wire == FL_WIRE_BYTES)
        fl_bytes_copy(v->bytes, 0, at, v->bytes.size);
    else
        memcpy(at, &v->value, f->size);
    n += more;
    memcpy(to + f->at, &list, sizeof list);
    memcpy(to + f->count_at, &n, sizeof n);
    return FL_OK;
}

/* Check that a field has its wire type, and occurs once unless it is a list. */
static fl_err check_field(const place *in, const fl_msg_field *f,
                          const schema_field *d, fl_wire_type wire, bool again)
{
    const fl_wire_type want = is_fixed(d)               ? FL_WIRE_8_BYTES
                              : f->type < FL_FIELD_TEXT ? FL_WIRE_VARINT
                                                        : FL_WIRE_BYTES;
    const bool list = f->type == FL_FIELD_LIST;
    const bool packed = list && !f->list && wire == FL_WIRE_BYTES;
    if (wire != want && !packed)
        return fail_field(in, f, "has another wire type than the schema says");
    return again && !list ? fail_field(in, f, "occurs twice") : FL_OK;
}

static const fl_msg_field *find_field(const fl_msg_field *fields,
                                      uint64_t number)
{
    while (fields->name && (uint64_t)fields->number < number)
        fields++;
    return (uint64_t)fields->number == number ? fields : NULL;
}

static fl_err read_fields(const place *in, const fl_msg_field *fields,
                          const schema *type, fl_bytes b, fl_arena *a, char *to)
{
    uint64_t seen = 0; /* a bit for each row of `fields` */
    int n = 0;
    for (fl_fields rest = fl_fields_of(b); !fl_fields_end(&rest); n++) {
        fl_field v;
        FL_TRY(fl_fields_next(&rest, &v));
        if (n == FIELDS_MOST)
            return fl_fail(FL_EPROTO, "%s: there are more than %d fields",
                           in->name, FIELDS_MOST);
        const fl_msg_field *f = find_field(fields, v.number);
        if (!f)
            continue;
        const schema_field *d = &type->fields[f - fields];
        const uint64_t bit = UINT64_C(1) << (f - fields);
        FL_TRY(check_field(in, f, d, v.wire, seen & bit));
        seen |= bit;
        if (f->type == FL_FIELD_LIST)
            FL_TRY(read_list(in, f, d, &v, &rest, a, to));
        else if (f->type < FL_FIELD_TEXT)
            FL_TRY(read_number(in, f, d, v.value, to));
        else
            FL_TRY(read_text(in, f, v.bytes, a, to));
    }
    return FL_OK;
}

static fl_err read_struct(const char *name, const fl_msg_field *fields,
                          const schema *type, fl_bytes b, fl_arena *a, void *to)
{
    if (b.size > FL_CONTROL_MOST)
        return fl_fail(FL_EPROTO, "%s: %zu bytes are more than %d", name,
                       b.size, FL_CONTROL_MOST);
    return read_fields(&(place){.name = name}, fields, type, b, a, to);
}

/* --- the two messages --- */

void fl_control_put(fl_packet *p, const fl_msg *m)
{
    buffer b;
    uint8_t size[FL_VARINT_MOST];
    init_buffer(&b);
    put_fields(&b, fl_msg_fields, &fluid__control__descriptor, (const char *)m);
    fl_packet_copy(p, size, fl_varint_put(size, (uint64_t)b.bytes.n));
    fl_packet_copy(p, b.bytes.at, (size_t)b.bytes.n);
    fini_buffer(&b);
}

fl_err fl_control_read(fl_bytes b, fl_arena *a, fl_msg *m)
{
    return read_struct("control", fl_msg_fields, &fluid__control__descriptor, b,
                       a, m);
}

void fl_answer_put(fl_packet *p, const char *text)
{
    const answer all = {text};
    buffer b;
    init_buffer(&b);
    put_fields(&b, answer_fields, &fluid__answer__descriptor,
               (const char *)&all);
    fl_packet_copy(p, b.bytes.at, (size_t)b.bytes.n);
    fini_buffer(&b);
}

fl_err fl_answer_read(fl_bytes b, fl_arena *a, const char **text)
{
    answer all = {NULL};
    FL_TRY(read_struct("answer", answer_fields, &fluid__answer__descriptor, b,
                       a, &all));
    *text = all.text ? all.text : "";
    return FL_OK;
}
