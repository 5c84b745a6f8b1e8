/* SPDX-License-Identifier: Apache-2.0 */
/* call.c - slots and attributes of a call by name.
 *
 * There are few of them, so a scan that compares names is faster than a hash
 * table. */
#include "op/op.h"

#include "base/mem.h"

#include <assert.h>
#include <string.h>

static int slot_index(const fl_slot *slots, const char *name)
{
    for (int i = 0; i < FL_SLOTS && slots[i].name; i++)
        if (!strcmp(slots[i].name, name))
            return i;
    return -1;
}

int fl_op_slot_in(const fl_op_def *def, const char *slot)
{
    return slot_index(def->in, slot);
}

int fl_op_slot_out(const fl_op_def *def, const char *slot)
{
    return slot_index(def->out, slot);
}

int fl_op_attr(const fl_op_def *def, const char *name)
{
    for (int i = 0; i < FL_ATTRS && def->attr[i].name; i++)
        if (!strcmp(def->attr[i].name, name))
            return i;
    return -1;
}

bool fl_op_makes_view(const fl_op_def *def)
{
    for (int s = 0; s < FL_SLOTS && def->out[s].name; s++)
        if (def->out[s].flags & FL_VIEW)
            return true;
    return false;
}

fl_value *fl_in_value(const fl_call *c, const char *slot, int i)
{
    int s = slot_index(c->def->in, slot);
    assert(s >= 0 && "a slot of the table");
    return i < c->n_in[s] ? c->in[s][i] : NULL;
}

fl_value *fl_out_value(const fl_call *c, const char *slot, int i)
{
    int s = slot_index(c->def->out, slot);
    assert(s >= 0 && "a slot of the table");
    return i < c->n_out[s] ? c->out[s][i] : NULL;
}

const fl_tensor *fl_in_at(const fl_call *c, const char *slot, int i)
{
    fl_value *v = fl_in_value(c, slot, i);
    return v ? &v->tensor : NULL;
}

fl_tensor *fl_out_at(const fl_call *c, const char *slot, int i)
{
    fl_value *v = fl_out_value(c, slot, i);
    return v ? &v->tensor : NULL;
}

const fl_tensor *fl_in(const fl_call *c, const char *slot)
{
    return fl_in_at(c, slot, 0);
}

fl_tensor *fl_out(const fl_call *c, const char *slot)
{
    return fl_out_at(c, slot, 0);
}

fl_tensor *fl_out_filled(const fl_call *c, const char *slot)
{
    fl_value *v = fl_out_value(c, slot, 0);
    return v && v->kind == FL_SELECTED_ROWS ? &v->rows.value : fl_out(c, slot);
}

int fl_in_count(const fl_call *c, const char *slot)
{
    int s = slot_index(c->def->in, slot);
    return s < 0 ? 0 : c->n_in[s];
}

int fl_out_count(const fl_call *c, const char *slot)
{
    int s = slot_index(c->def->out, slot);
    return s < 0 ? 0 : c->n_out[s];
}

int64_t fl_numel(const fl_call *c, const char *slot)
{
    int s = slot_index(c->def->in, slot);
    const fl_tensor *t = s >= 0 ? fl_in(c, slot) : fl_out(c, slot);
    return t ? fl_tensor_numel(t) : 0;
}

const fl_attr *fl_attr_get(const fl_call *c, const char *name)
{
    int i = fl_op_attr(c->def, name);
    assert(i >= 0 && "an attribute of the table");
    return &c->attr[i];
}

int64_t fl_attr_i64(const fl_call *c, const char *name)
{
    return fl_attr_get(c, name)->i;
}

float fl_attr_f32(const fl_call *c, const char *name)
{
    return fl_attr_get(c, name)->f;
}

bool fl_attr_bool(const fl_call *c, const char *name)
{
    return fl_attr_get(c, name)->b;
}

const char *fl_attr_str(const fl_call *c, const char *name)
{
    const char *s = fl_attr_get(c, name)->s;
    return s ? s : "";
}

void *fl_scratch(fl_call *c, int64_t n, size_t size)
{
    enum {
        HEAD = 16 /* holds the size, and keeps what follows aligned */
    };
    size_t bytes, *head = c->scratch;
    const bool over =
        __builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - HEAD;
    if (!over && head && *head >= bytes)
        return (char *)head + HEAD;
    size_t *grown = over ? NULL : fl_mem_try(HEAD + bytes);
    if (!grown) {
        (void)fl_fail(FL_ENOMEM,
                      "%s: memory for %lld times %zu bytes was refused",
                      c->def->type, (long long)n, size);
        return NULL;
    }
    if (head)
        memcpy((char *)grown + HEAD, (char *)head + HEAD, *head);
    fl_mem_free(head);
    *grown = bytes;
    c->scratch = grown;
    return (char *)grown + HEAD;
}

void *fl_workspace_get(fl_call *c, size_t bytes)
{
    fl_workspace *w = c->hooks->workspace;
    if (w->data && w->size >= bytes)
        return w->data;
    fl_mem_free(w->data);
    w->data = fl_mem_try(bytes);
    w->size = w->data ? bytes : 0;
    if (!w->data)
        (void)fl_fail(FL_ENOMEM, "%s: %zu bytes of memory were refused",
                      c->def->type, bytes);
    return w->data;
}

bool fl_call_reads(const fl_call *c, const fl_value *v)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_in[s]; i++)
            if (c->in[s][i] == v)
                return true;
    return false;
}

static const fl_value *first_value(fl_value **const *args, const int *n)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < n[s]; i++)
            if (args[s][i])
                return args[s][i];
    return NULL;
}

fl_dtype fl_call_dtype(const fl_call *c)
{
    const fl_value *v = first_value(c->in, c->n_in);
    if (!v)
        v = first_value(c->out, c->n_out);
    if (!v)
        return FL_F32;
    return v->kind == FL_SELECTED_ROWS ? v->rows.value.dtype : v->tensor.dtype;
}

fl_err fl_view(fl_call *c, const char *in, const char *out)
{
    const fl_tensor *from = fl_in(c, in);
    fl_tensor *to = fl_out(c, out);
    if (from == to)
        return FL_OK; /* the kernel works in place: it has the new shape already
                       */
    fl_shape shape = to->shape;
    fl_lod lod = to->lod;
    to->lod = (fl_lod){0};
    fl_err err =
        c->no_views ? fl_tensor_copy(to, from) : fl_tensor_ref(to, from);
    fl_lod_fini(&to->lod);
    to->lod = lod;
    to->shape = shape;
    return err;
}
