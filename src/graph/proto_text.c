/* SPDX-License-Identifier: Apache-2.0 */
/* proto_text.c - programs in protobuf's text format, as Fluid prints them.
 *
 *     blocks {
 *       idx: 0
 *       ops {
 *         type: "mean"
 *         attrs {
 *           name: "op_role"
 *           type: INT
 *           i: 0
 *         }
 *       }
 *     }
 *
 * One function prints any message from its descriptor: fields in the order of
 * their numbers, without absent ones. Floats have the digits of Python's repr,
 * because Fluid printed them from Python. */
#include "base/str.h"
#include "graph/framework.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Print the fewest digits that read back as the same double; 17 are always
 * enough. */
static void put_float(fl_str *s, double d)
{
    char text[40];
    int digits = 1;
    if (isnan(d) || isinf(d)) {
        fl_str_add(s, isnan(d) ? "nan" : d > 0 ? "inf" : "-inf");
        return;
    }
    do
        snprintf(text, sizeof text, "%.*e", digits - 1, d);
    while (strtod(text, NULL) != d && ++digits <= 17);
    const int exponent = atoi(strchr(text, 'e') + 1);
    if (d && (exponent < -4 || exponent >= 16)) {
        /* Python writes 1e-05 and 1.5e+16, as %e does. */
        fl_str_add(s, text);
        return;
    }
    const int places = digits - 1 - exponent;
    fl_str_printf(s, "%.*f", places > 1 ? places : 1, d);
}

static void put_string(fl_str *s, const char *text)
{
    fl_str_add(s, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '\n')
            fl_str_add(s, "\\n");
        else if (*c == '\r')
            fl_str_add(s, "\\r");
        else if (*c == '\t')
            fl_str_add(s, "\\t");
        else if (*c == '"' || *c == '\'' || *c == '\\')
            fl_str_printf(s, "\\%c", *c);
        else if (*c < 0x20 || *c >= 0x7f)
            fl_str_printf(s, "\\%03o", *c);
        else
            fl_str_printf(s, "%c", *c);
    }
    fl_str_add(s, "\"");
}

static void put_message(fl_str *s, const ProtobufCMessage *m, int depth);

/* Print one value, at address `at`. */
static void put_value(fl_str *s, const ProtobufCFieldDescriptor *f,
                      const void *at, int depth)
{
    fl_str_printf(s, "%*s%s", 2 * depth, "", f->name);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        fl_str_add(s, " {\n");
        put_message(s, *(ProtobufCMessage *const *)at, depth + 1);
        fl_str_printf(s, "%*s}\n", 2 * depth, "");
        return;
    }
    fl_str_add(s, ": ");
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT64:
        fl_str_printf(s, "%lld", (long long)*(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        put_float(s, (double)*(const float *)at);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        fl_str_add(s, *(const protobuf_c_boolean *)at ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_STRING:
        put_string(s, *(const char *const *)at);
        break;
    case PROTOBUF_C_TYPE_ENUM: {
        const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(
            f->descriptor, *(const int *)at);
        if (v)
            fl_str_add(s, v->name);
        else
            fl_str_printf(s, "%d", *(const int *)at);
        break;
    }
    default: /* framework.proto has no other types */
        fl_str_printf(s, "%d", *(const int32_t *)at);
    }
    fl_str_add(s, "\n");
}

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT64:
        return sizeof(int64_t);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        return sizeof(int32_t); /* int32, float, enum */
    }
}

static bool is_there(const ProtobufCFieldDescriptor *f, const char *m)
{
    if (f->label == PROTOBUF_C_LABEL_REQUIRED)
        return true;
    if (f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)(m + f->offset);
    return *(const protobuf_c_boolean *)(m + f->quantifier_offset);
}

static void put_message(fl_str *s, const ProtobufCMessage *m, int depth)
{
    const ProtobufCMessageDescriptor *type = m->descriptor;
    const char *base = (const char *)m;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &type->fields[i];
        const char *at = base + f->offset;
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            if (is_there(f, base))
                put_value(s, f, at, depth);
            continue;
        }
        const size_t n = *(const size_t *)(base + f->quantifier_offset);
        for (size_t k = 0; k < n; k++)
            put_value(s, f, *(const char *const *)at + k * size_of(f), depth);
    }
}

/* The text of a message. The arena that holds the message is freed. */
static char *text_of(fl_arena *a, const ProtobufCMessage *m)
{
    fl_str s = {0};
    put_message(&s, m, 0);
    fl_arena_free(a);
    fl_str_add(&s, ""); /* an empty message gives an empty text, not NULL */
    return fl_str_take(&s);
}

char *fl_program_proto(const fl_program *p)
{
    fl_arena *a = fl_arena_new();
    return text_of(a, &fl_pb_program(a, p)->base);
}

char *fl_block_proto(const fl_block *b)
{
    fl_arena *a = fl_arena_new();
    return text_of(a, &fl_pb_block(a, b)->base);
}

char *fl_op_proto(const fl_op *op)
{
    fl_arena *a = fl_arena_new();
    return text_of(a, &fl_pb_op(a, op)->base);
}

char *fl_var_proto(const fl_var *v)
{
    fl_arena *a = fl_arena_new();
    return text_of(a, &fl_pb_var(a, v)->base);
}
