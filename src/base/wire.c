/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - checks protobuf bytes against their schema, then unpacks them.
 *
 *     message  := (key value)*        key = number << 3 | wire type
 *     value    := varint | 8 bytes | length bytes | 4 bytes
 *
 * The walk is stricter than protobuf: a field that is not repeated occurs once,
 * enums have known numbers, strings have no zero byte. No encoder writes other
 * messages. */
#include "base/wire.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum {
    DEEPEST = 16,
    MOST_FIELDS = 32, /* fields of a message in our schemas, at most */
};

/* A message that is being walked, and those that contain it. */
typedef struct level {
    const ProtobufCMessageDescriptor *type;
    const ProtobufCFieldDescriptor *field; /* the one being read */
    const uint8_t *at, *end;
    unsigned count[MOST_FIELDS]; /* values of each field so far */
} level;

typedef struct walk {
    const char *name;
    const uint8_t *start;
    level level[DEEPEST];
    int depth;
    size_t memory; /* bytes that the unpacked messages will take */
} walk;

/* --- error messages --- */

/* "blocks[0].ops[3].type" */
static void put_path(const walk *w, fl_str *path)
{
    for (int i = 0; i <= w->depth; i++) {
        const level *l = &w->level[i];
        if (!l->field)
            break;
        fl_str_printf(path, "%s%s", i ? "." : "", l->field->name);
        if (l->field->label == PROTOBUF_C_LABEL_REPEATED)
            fl_str_printf(path, "[%u]", l->count[l->field - l->type->fields]);
    }
    if (!path->n)
        fl_str_add(path, "the message");
}

static fl_err fail_broken(const walk *w, const char *what)
{
    fl_str path = {0};
    put_path(w, &path);
    const fl_err err = fl_fail(FL_EPROTO, "%s: %s: %s (byte %td)", w->name,
                               path.at, what, w->level[w->depth].at - w->start);
    fl_str_fini(&path);
    return err;
}

/* --- the walk --- */

static bool read_varint(level *l, uint64_t *out)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && l->at < l->end; shift += 7) {
        const uint8_t byte = *l->at++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

static unsigned wire_of(ProtobufCType t)
{
    switch (t) {
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

static const ProtobufCFieldDescriptor *
find_field(const ProtobufCMessageDescriptor *type, uint64_t number)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].id == number)
            return &type->fields[i];
    return NULL;
}

static fl_err walk_required(walk *w)
{
    level *l = &w->level[w->depth];
    for (unsigned i = 0; i < l->type->n_fields; i++)
        if (l->type->fields[i].label == PROTOBUF_C_LABEL_REQUIRED &&
            !l->count[i]) {
            l->field = &l->type->fields[i];
            return fail_broken(w, "a field that must be there is missing");
        }
    return FL_OK;
}

static fl_err enter_message(walk *w, const ProtobufCMessageDescriptor *type,
                            const uint8_t *at, size_t n)
{
    if (w->depth + 1 == DEEPEST || type->n_fields > MOST_FIELDS)
        return fail_broken(w, "messages lie too deep");
    level *l = &w->level[++w->depth];
    *l = (level){.type = type, .at = at, .end = at + n};
    w->memory += type->sizeof_message;
    return FL_OK;
}

static fl_err walk_bytes(walk *w, const ProtobufCFieldDescriptor *f, uint64_t n)
{
    level *l = &w->level[w->depth];
    if (n > (uint64_t)(l->end - l->at))
        return fail_broken(w, "its length goes beyond the end");
    const uint8_t *at = l->at;
    l->at += n;
    if (!f)
        return FL_OK;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return enter_message(w, f->descriptor, at, n);
    if (f->type == PROTOBUF_C_TYPE_STRING && memchr(at, 0, n))
        return fail_broken(w, "its text holds a zero byte");
    w->memory += n + 1;
    return FL_OK;
}

/* Walk one value of a field (f NULL: an unknown field). */
static fl_err walk_value(walk *w, const ProtobufCFieldDescriptor *f,
                         unsigned wire)
{
    level *l = &w->level[w->depth];
    uint64_t v = 0;
    if (wire == PROTOBUF_C_WIRE_TYPE_64BIT ||
        wire == PROTOBUF_C_WIRE_TYPE_32BIT) {
        const int size = wire == PROTOBUF_C_WIRE_TYPE_64BIT ? 8 : 4;
        if (l->end - l->at < size)
            return fail_broken(w, "its number is cut off");
        l->at += size;
        return FL_OK;
    }
    if (!read_varint(l, &v))
        return fail_broken(w, "its number is cut off");
    if (wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        return walk_bytes(w, f, v);
    if (f && f->type == PROTOBUF_C_TYPE_ENUM &&
        (v > INT32_MAX ||
         !protobuf_c_enum_descriptor_get_value(f->descriptor, (int)v)))
        return fail_broken(w, "its number has no meaning");
    return FL_OK;
}

static fl_err check_field(walk *w, const ProtobufCFieldDescriptor *f,
                          unsigned wire)
{
    const level *l = &w->level[w->depth];
    const unsigned want = wire_of(f->type);
    const bool repeated = f->label == PROTOBUF_C_LABEL_REPEATED;
    const bool packed = repeated &&
                        wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED &&
                        want != wire;
    if (wire != want && !packed)
        return fail_broken(w, "its bytes are of another type");
    if (packed && f->type == PROTOBUF_C_TYPE_ENUM)
        return fail_broken(w, "its numbers are packed");
    if (!repeated && l->count[f - l->type->fields])
        return fail_broken(w, "it is there twice");
    w->memory += sizeof(void *);
    return FL_OK;
}

/* Walk one key and its value. If the value is a message, it becomes the new
 * level. */
static fl_err walk_field(walk *w)
{
    level *l = &w->level[w->depth];
    uint64_t key = 0;
    l->field = NULL;
    if (!read_varint(l, &key) || key >> 3 == 0 || key > UINT32_MAX)
        return fail_broken(w, "a field's number is broken");
    const unsigned wire = key & 7;
    if (wire > 5 || wire == 3 || wire == 4)
        return fail_broken(w, "a field's wire type is unknown");
    const ProtobufCFieldDescriptor *f = find_field(l->type, key >> 3);
    l->field = f;
    if (f)
        FL_TRY(check_field(w, f, wire));
    else
        w->memory += sizeof(ProtobufCMessageUnknownField);
    const int depth = w->depth;
    FL_TRY(walk_value(w, f, wire));
    if (f && w->depth == depth)
        l->count[f - l->type->fields]++;
    return FL_OK;
}

/* Leave a message at its end, and return to the one that contains it. */
static fl_err leave_message(walk *w)
{
    FL_TRY(walk_required(w));
    if (--w->depth >= 0) {
        level *l = &w->level[w->depth];
        l->count[l->field - l->type->fields]++;
    }
    return FL_OK;
}

static fl_err walk_message(walk *w, const ProtobufCMessageDescriptor *type,
                           const uint8_t *bytes, size_t n)
{
    w->depth = -1;
    w->level[0] = (level){.at = bytes};
    FL_TRY(enter_message(w, type, bytes, n));
    while (w->depth >= 0) {
        const level *l = &w->level[w->depth];
        FL_TRY(l->at < l->end ? walk_field(w) : leave_message(w));
    }
    return FL_OK;
}

/* --- memory --- */

/* An unpacked message of small fields takes about 20 times its bytes. While it
 * unpacks a list, protobuf-c takes another 44 bytes for each byte. */
enum {
    GROWTH = 24,
    GROWTH_UNPACKING = 64,
    SLACK = 4 << 20,
};

static void *take_memory(void *budget, size_t size)
{
    size_t *left = budget;
    if (size > *left)
        return NULL;
    *left -= size;
    return fl_mem_try(size);
}

static void give_memory(void *budget, void *p)
{
    fl_mem_free(p);
}

fl_err fl_wire_unpack(const ProtobufCMessageDescriptor *type, const char *name,
                      const void *bytes, size_t n, ProtobufCMessage **out)
{
    walk w = {.name = name, .start = bytes};
    if (n > FL_WIRE_MOST)
        return fl_fail(FL_EPROTO,
                       "%s: it has %zu bytes, at most %d are allowed", name, n,
                       FL_WIRE_MOST);
    FL_TRY(walk_message(&w, type, bytes, n));
    if (w.memory > GROWTH * n + SLACK)
        return fl_fail(FL_EPROTO,
                       "%s: its %zu bytes would take %zu bytes of memory when "
                       "unpacked, which is too much",
                       name, n, w.memory);
    size_t left = GROWTH_UNPACKING * n + SLACK;
    ProtobufCAllocator a = {take_memory, give_memory, &left};
    ProtobufCMessage *m = protobuf_c_message_unpack(type, &a, n, bytes);
    if (!m)
        return fl_fail(FL_EPROTO, "%s: its %zu bytes are not a valid %s", name,
                       n, type->short_name);
    *out = m;
    return FL_OK;
}

void fl_wire_free(ProtobufCMessage *m)
{
    ProtobufCAllocator a = {take_memory, give_memory, NULL};
    if (m)
        protobuf_c_message_free_unpacked(m, &a);
}
