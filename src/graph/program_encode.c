/* SPDX-License-Identifier: Apache-2.0 */
/* program_encode.c - a program as Paddle's ProgramDesc.
 *
 * A program that was decoded from a file is encoded to the same bytes: order is
 * kept, and the had_ flags say which optional fields the file had. The messages
 * borrow the strings of the program; only the arrays are allocated, in an arena
 * that is freed at the end. */
#include "graph/framework.h"
#include "graph/text.h"

static void *make_message(fl_arena *a, const ProtobufCMessageDescriptor *type)
{
    void *m = fl_arena_alloc(a, type->sizeof_message);
    protobuf_c_message_init(type, m);
    return m;
}

/* --- attributes --- */

static int32_t *to_int32(fl_arena *a, const fl_attr *v)
{
    int32_t *to = fl_arena_alloc(a, (size_t)v->n * sizeof *to);
    for (int i = 0; i < v->n; i++)
        to[i] = (int32_t)v->longs[i];
    return to;
}

static protobuf_c_boolean *to_bools(fl_arena *a, const fl_attr *v)
{
    protobuf_c_boolean *to = fl_arena_alloc(a, (size_t)v->n * sizeof *to);
    for (int i = 0; i < v->n; i++)
        to[i] = v->bools[i];
    return to;
}

static void put_list(fl_arena *a, pb_attr *m, const fl_attr *v)
{
    const size_t n = (size_t)v->n;
    switch (v->type) {
    case FL_ATTR_INTS:
        m->n_ints = n;
        m->ints = to_int32(a, v);
        break;
    case FL_ATTR_BLOCKS:
        m->n_blocks_idx = n;
        m->blocks_idx = to_int32(a, v);
        break;
    case FL_ATTR_LONGS:
        m->n_longs = n;
        m->longs = (int64_t *)v->longs;
        break;
    case FL_ATTR_FLOATS:
        m->n_floats = n;
        m->floats = (float *)v->floats;
        break;
    case FL_ATTR_STRINGS:
        m->n_strings = n;
        m->strings = (char **)v->strings;
        break;
    default:
        m->n_bools = n;
        m->bools = to_bools(a, v);
    }
}

static pb_attr *make_attr(fl_arena *a, const fl_attr *v)
{
    pb_attr *m = make_message(a, PB(op_desc__attr));
    m->name = (char *)v->name;
    m->type = (Paddle__Framework__Proto__AttrType)v->type;
    switch (v->type) {
    case FL_ATTR_INT:
        m->has_i = true;
        m->i = (int32_t)v->i;
        break;
    case FL_ATTR_LONG:
        m->has_l = true;
        m->l = v->i;
        break;
    case FL_ATTR_BLOCK:
        m->has_block_idx = true;
        m->block_idx = (int32_t)v->i;
        break;
    case FL_ATTR_FLOAT:
        m->has_f = true;
        m->f = v->f;
        break;
    case FL_ATTR_STRING:
        m->s = (char *)(v->s ? v->s : "");
        break;
    case FL_ATTR_BOOL:
        m->has_b = true;
        m->b = v->b;
        break;
    default:
        put_list(a, m, v);
    }
    return m;
}

/* --- ops --- */

static pb_args **make_args(fl_arena *a, const fl_args *args, int n)
{
    pb_args **m = fl_arena_alloc(a, (size_t)n * sizeof *m);
    for (int i = 0; i < n; i++) {
        m[i] = make_message(a, PB(op_desc__var));
        m[i]->parameter = (char *)args[i].slot;
        m[i]->n_arguments = (size_t)args[i].n;
        m[i]->arguments = (char **)args[i].name;
    }
    return m;
}

pb_op *fl_pb_op(fl_arena *a, const fl_op *op)
{
    const fl_desc *d = &op->desc;
    pb_op *m = make_message(a, PB(op_desc));
    m->type = (char *)d->type;
    m->n_inputs = (size_t)d->n_in;
    m->inputs = make_args(a, d->in, d->n_in);
    m->n_outputs = (size_t)d->n_out;
    m->outputs = make_args(a, d->out, d->n_out);
    m->n_attrs = (size_t)d->n_attr;
    m->attrs = fl_arena_alloc(a, (size_t)d->n_attr * sizeof *m->attrs);
    for (int i = 0; i < d->n_attr; i++)
        m->attrs[i] = make_attr(a, &d->attr[i]);
    m->has_is_target = op->had_is_target || op->is_target;
    m->is_target = op->is_target;
    return m;
}

/* --- vars --- */

static pb_tensor *make_tensor(fl_arena *a, const fl_var *v)
{
    pb_tensor *m = make_message(a, PB(var_type__tensor_desc));
    m->data_type = (Paddle__Framework__Proto__VarType__Type)v->dtype;
    m->n_dims = (size_t)v->shape.rank;
    m->dims = (int64_t *)v->shape.dim;
    return m;
}

static pb_lod_tensor *make_lod_tensor(fl_arena *a, const fl_var *v)
{
    pb_lod_tensor *m = make_message(a, PB(var_type__lo_dtensor_desc));
    m->tensor = make_tensor(a, v);
    m->has_lod_level = v->had_lod_level || v->lod_level;
    m->lod_level = v->lod_level;
    return m;
}

static pb_tensor_array *make_tensor_array(fl_arena *a, const fl_var *v)
{
    pb_tensor_array *m = make_message(a, PB(var_type__lo_dtensor_array_desc));
    m->tensor = make_tensor(a, v);
    m->has_lod_level = v->had_lod_level || v->lod_level;
    m->lod_level = v->lod_level;
    return m;
}

pb_var *fl_pb_var(fl_arena *a, const fl_var *v)
{
    pb_var *m = make_message(a, PB(var_desc));
    m->name = (char *)v->name;
    m->type = make_message(a, PB(var_type));
    m->type->type = (Paddle__Framework__Proto__VarType__Type)v->kind;
    const bool described = v->had_tensor || v->shape.rank;
    if (described && v->kind == FL_LOD_TENSOR)
        m->type->lod_tensor = make_lod_tensor(a, v);
    if (described && v->kind == FL_SELECTED_ROWS)
        m->type->selected_rows = make_tensor(a, v);
    if (described && v->kind == FL_LOD_TENSOR_ARRAY)
        m->type->tensor_array = make_tensor_array(a, v);
    m->has_persistable = v->had_persistable || v->persistable;
    m->persistable = v->persistable;
    return m;
}

/* --- blocks --- */

pb_block *fl_pb_block(fl_arena *a, const fl_block *b)
{
    pb_block *m = make_message(a, PB(block_desc));
    m->idx = b->idx;
    m->parent_idx = b->parent;
    m->has_forward_block_idx = b->had_forward || b->forward != -1;
    m->forward_block_idx = b->forward;
    m->vars = fl_arena_alloc(a, (size_t)b->vars.live * sizeof *m->vars);
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));)
        m->vars[m->n_vars++] = fl_pb_var(a, e->value);
    m->ops = fl_arena_alloc(a, (size_t)b->ops.n * sizeof *m->ops);
    for (int64_t i = 0; i < b->ops.n; i++)
        m->ops[m->n_ops++] = fl_pb_op(a, b->ops.at[i]);
    return m;
}

pb_program *fl_pb_program(fl_arena *a, const fl_program *p)
{
    pb_program *m = make_message(a, PB(program_desc));
    m->blocks = fl_arena_alloc(a, (size_t)p->blocks.n * sizeof *m->blocks);
    for (int64_t i = 0; i < p->blocks.n; i++)
        m->blocks[m->n_blocks++] = fl_pb_block(a, p->blocks.at[i]);
    if (p->had_version || p->file_version) {
        m->version = make_message(a, PB(version));
        m->version->has_version = p->had_version_number || p->file_version;
        m->version->version = p->file_version;
    }
    return m;
}

fl_err fl_program_encode(const fl_program *p, void **bytes, size_t *n)
{
    fl_arena *a = fl_arena_new();
    const ProtobufCMessage *m = &fl_pb_program(a, p)->base;
    const size_t size = protobuf_c_message_get_packed_size(m);
    fl_err err = FL_OK;
    uint8_t *packed = fl_mem_try(size);
    if (packed) {
        *n = protobuf_c_message_pack(m, packed);
        *bytes = packed;
    } else {
        err = fl_fail(FL_ENOMEM,
                      "program: no memory for the %zu bytes of its file", size);
    }
    fl_arena_free(a);
    return err;
}
