/* SPDX-License-Identifier: Apache-2.0 */
/* program_decode.c - Paddle's ProgramDesc into a program.
 *
 * The bytes come from outside. base/wire.c has checked that they are a valid
 * message. Names, types and limits are checked here, and the whole program is
 * checked by the verifier at the end. Nothing is converted: types of
 * attributes, order and the presence of optional fields are kept, so that a
 * file can be written back byte for byte. */
#include "graph/framework.h"
#include "graph/verify.h"

#include "base/utf8.h"
#include "base/wire.h"

#include <stdio.h>

enum {
    MOST_BLOCKS = 1 << 16, /* a loop needs two */
    MOST_SLOTS = 64,       /* of an op; tables have 12 */
    MOST_ATTRS = 256,
};

static fl_err check_name(const char *what, const char *name)
{
    if (!*name)
        return fl_fail(FL_EPROTO, "a %s has an empty name", what);
    if (!fl_utf8_valid(name))
        return fl_fail(FL_EPROTO, "a %s has a name that is not UTF-8", what);
    return FL_OK;
}

/* --- vars --- */

static fl_err take_tensor(const pb_tensor *m, fl_var *v)
{
    if (!fl_dtype_valid((int)m->data_type))
        return fl_fail(FL_EPROTO,
                       "var \"%s\" has elements of the unknown type %d",
                       v->name, (int)m->data_type);
    if (m->n_dims > FL_MAX_RANK)
        return fl_fail(FL_EPROTO, "var \"%s\" has %zu dimensions, at most %d",
                       v->name, m->n_dims, FL_MAX_RANK);
    for (size_t i = 0; i < m->n_dims; i++)
        if (m->dims[i] < -1)
            return fl_fail(
                FL_EPROTO,
                "var \"%s\" has the dimension %lld, expected -1 or more",
                v->name, (long long)m->dims[i]);
    v->dtype = (fl_dtype)m->data_type;
    v->shape = fl_shape_of((int)m->n_dims, m->dims);
    v->had_tensor = true;
    return FL_OK;
}

static fl_err take_lod_level(bool had, int level, fl_var *v)
{
    if (level < 0 || level > FL_MAX_LOD)
        return fl_fail(FL_EPROTO, "var \"%s\" has %d LoD levels, at most %d",
                       v->name, level, FL_MAX_LOD);
    v->had_lod_level = had;
    v->lod_level = level;
    return FL_OK;
}

static fl_err take_type(const pb_type *m, fl_var *v)
{
    v->kind = (fl_kind)m->type;
    switch (v->kind) {
    case FL_LOD_TENSOR:
        if (!m->lod_tensor)
            return FL_OK;
        FL_TRY(take_lod_level(m->lod_tensor->has_lod_level,
                              m->lod_tensor->lod_level, v));
        return take_tensor(m->lod_tensor->tensor, v);
    case FL_SELECTED_ROWS:
        return m->selected_rows ? take_tensor(m->selected_rows, v) : FL_OK;
    case FL_LOD_TENSOR_ARRAY:
        if (!m->tensor_array)
            return FL_OK;
        FL_TRY(take_lod_level(m->tensor_array->has_lod_level,
                              m->tensor_array->lod_level, v));
        return take_tensor(m->tensor_array->tensor, v);
    default:
        if (!strcmp(fl_kind_name(v->kind), "?"))
            return fl_fail(FL_EPROTO, "var \"%s\" is of the unknown kind %d",
                           v->name, (int)m->type);
        if (m->reader || m->tuple)
            return fl_fail(FL_EPROTO,
                           "var \"%s\" is a %s, which is not supported here",
                           v->name, fl_kind_name(v->kind));
        return FL_OK;
    }
}

static fl_err take_var(fl_block *b, const pb_var *m)
{
    fl_var like = {.name = m->name}, *v;
    FL_TRY(check_name("var", m->name));
    if (fl_block_var(b, m->name))
        return fl_fail(FL_EPROTO, "var \"%s\" is declared twice", m->name);
    FL_TRY(take_type(m->type, &like));
    like.persistable = m->persistable;
    FL_TRY(fl_block_add_var(b, &like, &v));
    v->had_persistable = m->has_persistable;
    v->had_lod_level = like.had_lod_level;
    v->had_tensor = like.had_tensor;
    return FL_OK;
}

/* --- attributes --- */

static const int64_t *widen(fl_arena *a, size_t n, const int32_t *from)
{
    int64_t *to = fl_arena_alloc(a, n * sizeof *to);
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
    return to;
}

static const bool *to_bools(fl_arena *a, size_t n,
                            const protobuf_c_boolean *from)
{
    bool *to = fl_arena_alloc(a, n * sizeof *to);
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
    return to;
}

/* Read the list of an attribute. It points into the message (strings, longs,
 * floats) or into the arena `a`; fl_desc_set_attr copies it. */
static void take_list(fl_arena *a, const pb_attr *m, fl_attr *v)
{
    switch (v->type) {
    case FL_ATTR_INTS:
        v->n = (int)m->n_ints;
        v->longs = widen(a, m->n_ints, m->ints);
        break;
    case FL_ATTR_BLOCKS:
        v->n = (int)m->n_blocks_idx;
        v->longs = widen(a, m->n_blocks_idx, m->blocks_idx);
        break;
    case FL_ATTR_LONGS:
        v->n = (int)m->n_longs;
        v->longs = m->longs;
        break;
    case FL_ATTR_FLOATS:
        v->n = (int)m->n_floats;
        v->floats = m->floats;
        break;
    case FL_ATTR_STRINGS:
        v->n = (int)m->n_strings;
        v->strings = (const char *const *)m->strings;
        break;
    default:
        v->n = (int)m->n_bools;
        v->bools = to_bools(a, m->n_bools, m->bools);
    }
}

/* Read the value of an attribute. False: the field for its type is missing. */
static bool take_value(fl_arena *a, const pb_attr *m, fl_attr *v)
{
    switch (v->type) {
    case FL_ATTR_INT:
        v->i = m->i;
        return m->has_i;
    case FL_ATTR_LONG:
        v->i = m->l;
        return m->has_l;
    case FL_ATTR_BLOCK:
        v->i = m->block_idx;
        return m->has_block_idx;
    case FL_ATTR_FLOAT:
        v->f = m->f;
        return m->has_f;
    case FL_ATTR_STRING:
        v->s = m->s;
        return m->s;
    case FL_ATTR_BOOL:
        v->b = m->b;
        return m->has_b;
    default:
        take_list(a, m, v);
        return true;
    }
}

static fl_err take_attr(fl_desc *d, const pb_attr *m, fl_arena *scratch)
{
    fl_attr v = {.name = m->name, .type = (fl_attr_type)m->type};
    FL_TRY(check_name("attribute", m->name));
    if (fl_desc_attr(d, m->name))
        return fl_fail(FL_EPROTO, "attribute %s is given twice", m->name);
    if (!take_value(scratch, m, &v))
        return fl_fail(FL_EPROTO,
                       "attribute %s has the type %s, but no value of it",
                       m->name, fl_attr_type_name(v.type));
    fl_desc_set_attr(d, &v);
    return FL_OK;
}

/* --- ops --- */

static fl_err take_args(fl_desc *d, bool out, size_t n, pb_args *const *args)
{
    if (n > MOST_SLOTS)
        return fl_fail(FL_EPROTO, "it has %zu slots, at most %d", n,
                       MOST_SLOTS);
    for (size_t i = 0; i < n; i++) {
        const pb_args *m = args[i];
        FL_TRY(check_name("slot", m->parameter));
        if (out ? fl_desc_out(d, m->parameter) : fl_desc_in(d, m->parameter))
            return fl_fail(FL_EPROTO, "slot %s is given twice", m->parameter);
        for (size_t j = 0; j < m->n_arguments; j++)
            FL_TRY(check_name("variable", m->arguments[j]));
        (out ? fl_desc_set_out
             : fl_desc_set_in)(d, m->parameter, (int)m->n_arguments,
                               (const char *const *)m->arguments);
    }
    return FL_OK;
}

static fl_err take_op(fl_block *b, const pb_op *m, fl_arena *scratch)
{
    fl_program *p = b->program;
    const fl_op_def *def;
    FL_TRY(check_name("op", m->type));
    FL_TRY(fl_registry_get(p->registry, m->type, &def));
    if (def->flags & FL_OP_HIDDEN)
        return fl_fail(
            FL_EPROTO,
            "op \"%s\" is made by plans only, a program cannot contain it",
            m->type);
    if (m->n_attrs > MOST_ATTRS)
        return fl_fail(FL_EPROTO, "%s: it has %zu attributes, at most %d",
                       m->type, m->n_attrs, MOST_ATTRS);
    fl_op *op = fl_arena_alloc(p->arena, sizeof *op);
    fl_desc_init(&op->desc, p->arena, m->type);
    FL_TRY(take_args(&op->desc, false, m->n_inputs, m->inputs));
    FL_TRY(take_args(&op->desc, true, m->n_outputs, m->outputs));
    for (size_t i = 0; i < m->n_attrs; i++)
        FL_TRY(take_attr(&op->desc, m->attrs[i], scratch));
    op->def = def;
    op->block = b;
    op->had_is_target = m->has_is_target;
    op->is_target = m->is_target;
    op->foreign = true;
    fl_push(&b->ops, op);
    return FL_OK;
}

/* --- blocks --- */

static fl_err take_block(fl_block *b, const pb_block *m, fl_arena *scratch)
{
    if (m->idx != b->idx)
        return fl_fail(FL_EPROTO, "block %d is at position %d of the program",
                       m->idx, b->idx);
    b->parent = m->parent_idx;
    b->forward = m->forward_block_idx;
    b->had_forward = m->has_forward_block_idx;
    for (size_t i = 0; i < m->n_vars; i++) {
        const fl_err err = take_var(b, m->vars[i]);
        if (err)
            return fl_fail_at(err, "var %zu in block %d", i, b->idx);
    }
    for (size_t i = 0; i < m->n_ops; i++) {
        const fl_err err = take_op(b, m->ops[i], scratch);
        if (err)
            return fl_fail_at(err, "op %zu in block %d", i, b->idx);
        fl_arena_reset(scratch);
    }
    return FL_OK;
}

static fl_err take_program(fl_program *p, const pb_program *m,
                           fl_arena *scratch)
{
    if (!m->n_blocks || m->n_blocks > MOST_BLOCKS)
        return fl_fail(FL_EPROTO, "it has %zu blocks, expected 1 to %d",
                       m->n_blocks, MOST_BLOCKS);
    p->had_version = m->version;
    p->had_version_number = m->version && m->version->has_version;
    p->file_version = m->version ? m->version->version : 0;
    for (size_t i = 0; i < m->n_blocks; i++) {
        fl_block *b = i ? fl_program_add_block(p, 0) : p->blocks.at[0];
        FL_TRY(take_block(b, m->blocks[i], scratch));
    }
    return fl_program_verify(p);
}

/* Put the name of the file before the error message. The code becomes EPROTO,
 * because the bytes are wrong. */
static fl_err of_file(const char *name, fl_err err)
{
    char sentence[900];
    snprintf(sentence, sizeof sentence, "%s", fl_errmsg());
    return fl_fail(err == FL_ENOENT ? err : FL_EPROTO, "%s: %s", name,
                   sentence);
}

fl_err fl_program_decode(const fl_registry *r, const char *name,
                         const void *bytes, size_t n, fl_program **out)
{
    ProtobufCMessage *m;
    FL_TRY(fl_wire_unpack(PB(program_desc), name, bytes, n, &m));
    fl_program *p = fl_program_make(r);
    fl_arena *scratch = fl_arena_new();
    const fl_err err = take_program(p, (const pb_program *)m, scratch);
    fl_arena_free(scratch);
    fl_wire_free(m);
    if (err) {
        fl_program_free(p);
        return of_file(name, err);
    }
    *out = p;
    return FL_OK;
}
