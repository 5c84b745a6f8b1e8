/* codec.c - messages between parties as bytes, and back.
 *
 *     0a n  Control                        packed by protobuf-c, copied
 *     12 n  Tensor                         by hand, see codec_tensor.c
 *     12 n  ..                             the next one
 *
 * Stricter than protobuf where nobody writes otherwise: a field that is not
 * repeated stands once. Fields may come in any order, unknown ones are passed
 * over. */
#include "wire/codec.h"

#include "base/utf8.h"
#include "base/wire.h"
#include "fluid.pb-c.h"
#include "wire/codec_in.h"

/* Fields of Message. */
enum {
    CONTROL = 1,
    TENSOR = 2,
};

enum {
    /* Fields of a control: most are members, who take 32 bytes each. Unpacked,
     * an empty one would take 20 times the bytes that it came in. */
    FIELDS_MOST = FL_CONTROL_MOST / 32,
};

const char *fl_msg_method(fl_msg_kind kind)
{
    static const char *const methods[] = {
        [FL_MSG_JOIN] = "/fluid.Coordinator/Join",
        [FL_MSG_BARRIER] = "/fluid.Coordinator/Barrier",
        [FL_MSG_COMPLETE] = "/fluid.Coordinator/Complete",
        [FL_MSG_FAILED] = "/fluid.Coordinator/Fail",
        [FL_MSG_PUSH] = "/fluid.Server/Push",
        [FL_MSG_PULL] = "/fluid.Server/Pull",
        [FL_MSG_END] = "/fluid.Server/Tell",
        [FL_MSG_VIEW] = "/fluid.Server/Tell",
        [FL_MSG_CLOSE] = "/fluid.Server/Tell",
        [FL_MSG_STATE] = "/fluid.Coordinator/Report",
        [FL_MSG_TALLY] = "/fluid.Coordinator/Tally",
    };
    const size_t i = (size_t)kind;
    return i < sizeof methods / sizeof *methods ? methods[i] : NULL;
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
    c.shard = m->shard;
    c.code = m->code;
    c.over = m->over;
    c.text = make_plain(a, m->text, fl_utf8_escape);
    c.about = make_plain(a, m->about, fl_utf8_escape_lines);
    put_members(&c, m, a);
    put_left(&c, m, a);
    return c;
}

/* --- writing a message --- */

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
        fl_item_encode(&parcel->item[i], p);
    if (parcel) /* one share for all that was lent */
        fl_packet_lend(p, NULL, 0, drop_parcel, fl_parcel_ref(parcel));
    return p;
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
        .shard = c->shard,
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
            FL_TRY(fl_item_decode(field.bytes, parcel));
    }
    if (!m->kind)
        return fl_fail(FL_EPROTO, "control is missing");
    return FL_OK;
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
