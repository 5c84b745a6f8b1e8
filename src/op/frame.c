/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - binds names to values, and gives outputs their shapes and memory.
 *
 * Easy to get wrong: an output may be the same variable as an input (ParamOut
 * of sgd). Its elements are then read, and a resize must not lose them. */
#include "op/frame.h"

#include "base/atomic.h"

#include "base/mem.h"

#include <string.h>

static fl_err bind_side(fl_arena *a, const fl_slot *slots,
                        const fl_args *(*args_of)(const fl_desc *,
                                                  const char *),
                        const fl_desc *desc, fl_resolve resolve, void *self,
                        fl_value **values[FL_SLOTS], int n[FL_SLOTS])
{
    for (int s = 0; s < FL_SLOTS && slots[s].name; s++) {
        const fl_args *args = args_of(desc, slots[s].name);
        if (!args || !args->n)
            continue;
        values[s] = fl_arena_alloc(a, (size_t)args->n * sizeof *values[s]);
        n[s] = args->n;
        for (int i = 0; i < args->n; i++) {
            if (!strcmp(args->name[i], FL_EMPTY))
                continue;
            values[s][i] = resolve(self, args->name[i]);
            if (!values[s][i])
                return FL_ENOENT;
        }
    }
    return FL_OK;
}

/* Refuse two outputs in one variable: it would need two shapes. */
static fl_err check_apart(const fl_call *c, const fl_value *v, int slot, int at)
{
    const char *name = c->def->out[slot].name;
    for (int s = 0; s <= slot; s++)
        for (int i = 0; i < (s < slot ? c->n_out[s] : at); i++)
            if (c->out[s][i] == v)
                return fl_fail(FL_EINVAL,
                               "%s: outputs %s and %s are both \"%s\"",
                               c->def->type, c->def->out[s].name, name,
                               fl_desc_out(c->desc, name)->name[at]);
    return FL_OK;
}

static fl_err check_outputs(const fl_call *c)
{
    if (c->def->flags & FL_OP_NO_INFER) /* a list of names for a sub-block */
        return FL_OK;
    for (int s = 0; s < FL_SLOTS && c->def->out[s].name; s++)
        for (int i = 0; i < c->n_out[s]; i++)
            if (c->out[s][i])
                FL_TRY(check_apart(c, c->out[s][i], s, i));
    return FL_OK;
}

static int count_names(const int n[FL_SLOTS])
{
    int sum = 0;
    for (int s = 0; s < FL_SLOTS; s++)
        sum += n[s];
    return sum;
}

/* Pointers to metas, NULL where there is no value. */
static fl_meta **meta_pointers(fl_arena *a, fl_value **values, int n,
                               fl_meta *metas)
{
    fl_meta **p = fl_arena_alloc(a, (size_t)n * sizeof *p);
    for (int i = 0; i < n; i++)
        p[i] = values[i] ? &metas[i] : NULL;
    return p;
}

static void bind_metas(fl_frame *f, fl_arena *a)
{
    fl_call *c = &f->call;
    f->meta_in =
        fl_arena_alloc(a, (size_t)count_names(c->n_in) * sizeof(fl_meta));
    f->meta_out =
        fl_arena_alloc(a, (size_t)count_names(c->n_out) * sizeof(fl_meta));
    f->infer = (fl_infer){.def = c->def, .attr = c->attr, .running = true};
    fl_meta *in = f->meta_in, *out = f->meta_out;
    for (int s = 0; s < FL_SLOTS; s++) {
        f->infer.n_in[s] = c->n_in[s];
        f->infer.n_out[s] = c->n_out[s];
        f->infer.in[s] =
            (const fl_meta *const *)meta_pointers(a, c->in[s], c->n_in[s], in);
        f->infer.out[s] = meta_pointers(a, c->out[s], c->n_out[s], out);
        in += c->n_in[s];
        out += c->n_out[s];
    }
}

fl_err fl_frame_init(fl_frame *f, fl_arena *a, const fl_op_def *def,
                     const fl_desc *desc, const fl_hooks *hooks, void *runner,
                     fl_resolve resolve, void *self)
{
    memset(f, 0, sizeof *f);
    f->desc = desc;
    f->call.def = def;
    f->call.desc = desc;
    f->call.hooks = hooks;
    f->call.runner = runner;
    FL_TRY(fl_desc_attrs(def, desc, a, &f->call.attr));
    FL_TRY(bind_side(a, def->in, fl_desc_in, desc, resolve, self, f->call.in,
                     f->call.n_in));
    FL_TRY(bind_side(a, def->out, fl_desc_out, desc, resolve, self, f->call.out,
                     f->call.n_out));
    bind_metas(f, a);
    return check_outputs(&f->call);
}

void fl_frame_fini(fl_frame *f)
{
    if (f->call.end_scratch)
        f->call.end_scratch(f->call.scratch);
    else
        fl_mem_free(f->call.scratch);
    f->call.scratch = NULL;
}

bool fl_frame_moves(const fl_frame *f)
{
    const fl_op_def *def = f->call.def;
    if (def->flags & FL_OP_DYNAMIC)
        return true;
    for (int s = 0; s < FL_SLOTS && def->in[s].name; s++)
        if (def->in[s].flags & FL_SHAPES && f->call.n_in[s])
            return true;
    return false;
}

static void meta_of(const fl_value *v, fl_meta *m)
{
    *m = (fl_meta){.kind = v->kind};
    if (v->kind == FL_SELECTED_ROWS) {
        m->dtype = v->rows.value.dtype;
        m->shape = v->rows.value.shape;
        m->shape.dim[0] = v->rows.height;
    } else {
        m->dtype = v->tensor.dtype;
        m->shape = v->tensor.shape;
        m->lod_level = v->tensor.lod.levels;
        m->lod = &v->tensor.lod;
    }
}

static bool holds_something(const fl_value *v)
{
    return v->kind && (v->kind != FL_LOD_TENSOR || v->tensor.data);
}

static const char *input_name(const fl_frame *f, int slot, int i)
{
    return fl_desc_in(f->desc, f->call.def->in[slot].name)->name[i];
}

/* Input v of slot s. */
static bool lacks_value(const fl_call *c, int s, const fl_value *v)
{
    if (!v || holds_something(v) || c->def->flags & FL_OP_NO_INFER)
        return false;
    return !(c->def->in[s].flags & FL_UNREAD) || !fl_value_is_absent(v);
}

const char *fl_frame_empty(const fl_frame *f)
{
    const fl_call *c = &f->call;
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_in[s]; i++)
            if (lacks_value(c, s, c->in[s][i]))
                return input_name(f, s, i);
    return NULL;
}

static fl_err read_inputs(fl_frame *f)
{
    fl_call *c = &f->call;
    fl_meta *m = f->meta_in;
    for (int s = 0; s < FL_SLOTS && c->def->in[s].name; s++)
        for (int i = 0; i < c->n_in[s]; i++, m++) {
            const fl_value *v = c->in[s][i];
            if (lacks_value(c, s, v))
                return fl_fail(
                    FL_ENOENT, "%s: input %s \"%s\" holds nothing yet",
                    c->def->type, c->def->in[s].name, input_name(f, s, i));
            if (v)
                meta_of(v, m);
        }
    return FL_OK;
}

/* Whether the LoD describes exactly these rows. Its levels were checked when it
 * was made. */
static bool lod_fits(const fl_lod *lod, const fl_shape *s)
{
    int last = lod->levels - 1;
    int64_t rows = s->rank ? s->dim[0] : 1;
    return last >= 0 && lod->off[last][lod->n[last] - 1] == rows;
}

/* Whether the output may use its region. It may not if an input that is read
 * uses the same region and has another type or shape: the kernel reads an
 * element of the input before it writes the element at the same index, and only
 * that is safe. */
static bool region_serves(const fl_call *c, const fl_value *v, const fl_meta *m)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < c->n_in[s]; i++) {
            const fl_value *x = c->in[s][i];
            if (x && x->region == v->region &&
                !(c->def->in[s].flags & FL_UNREAD) &&
                (x->kind != FL_LOD_TENSOR || x->tensor.dtype != m->dtype ||
                 !fl_shape_equal(&x->tensor.shape, &m->shape)))
                return false;
        }
    return true;
}

static fl_err size_tensor(const fl_call *c, fl_value *v, const fl_meta *m,
                          bool view)
{
    fl_tensor *t = &v->tensor;
    bool in_place = fl_call_reads(c, v);
    if (view) {
        size_t bytes;
        FL_TRY(fl_shape_bytes(&m->shape, m->dtype, &bytes));
        t->dtype = m->dtype;
        t->shape = m->shape;
    } else if (in_place) {
        FL_TRY(fl_tensor_unique(t));
    } else if (v->region && region_serves(c, v, m)) {
        FL_TRY(fl_region_resize(v, m->dtype, &m->shape));
    } else {
        FL_TRY(fl_tensor_resize(t, m->dtype, &m->shape));
    }
    if (m->lod && lod_fits(m->lod, &m->shape)) {
        if (in_place && t->lod.levels && !fl_lod_equal(&t->lod, m->lod))
            return fl_fail(
                FL_EINVAL,
                "%s: an output that is also an input cannot get another LoD "
                "while it is read; give the output a variable of its own",
                c->def->type);
        return fl_lod_ref(&t->lod, m->lod);
    }
    if (!in_place ||
        !lod_fits(&t->lod, &m->shape)) /* otherwise it may still be read */
        t->lod.levels = 0;             /* keep its memory for the next LoD */
    return FL_OK;
}

/* An output that is also an input keeps its memory, so its type and shape
 * cannot change. The shape of a view can, but not the number of its elements.
 */
static fl_err check_in_place(const fl_call *c, const fl_value *v,
                             const fl_meta *m, const fl_slot *slot)
{
    const fl_tensor *t = &v->tensor;
    char was[FL_SHAPE_TEXT], is[FL_SHAPE_TEXT];
    bool keeps = v->kind == m->kind;
    if (keeps && m->kind == FL_LOD_TENSOR)
        keeps = t->dtype == m->dtype &&
                (slot->flags & FL_VIEW
                     ? fl_shape_numel(&t->shape) == fl_shape_numel(&m->shape)
                     : fl_shape_equal(&t->shape, &m->shape));
    if (keeps || !fl_call_reads(c, v))
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s: output %s is also an input: %s %s%s cannot become %s "
                   "%s%s in place",
                   c->def->type, slot->name, fl_kind_name(v->kind),
                   fl_dtype_name(t->dtype), fl_shape_text(&t->shape, was),
                   fl_kind_name(m->kind), fl_dtype_name(m->dtype),
                   fl_shape_text(&m->shape, is));
}

/* The error for the gradient of an input that is missing. */
static fl_err no_shape(const fl_call *c, const fl_slot *slot, int i)
{
    int n = (int)(strlen(slot->name) - strlen(FL_GRAD_SUFFIX));
    return fl_fail(
        FL_EINVAL,
        "%s: output %s \"%s\" has no shape, because input %.*s is missing",
        c->def->type, slot->name, fl_desc_out(c->desc, slot->name)->name[i], n,
        slot->name);
}

/* A kernel that resizes its output itself would free the input that it reads.
 */
static fl_err check_sized_by_kernel(const fl_frame *f, const fl_value *v,
                                    const fl_slot *slot)
{
    const fl_call *c = &f->call;
    if (c->def->flags & FL_OP_NO_INFER || !fl_frame_moves(f) ||
        !fl_call_reads(c, v))
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s: output %s is also an input; its shape depends on the "
                   "values of inputs, so it needs a variable of its own",
                   c->def->type, slot->name);
}

/* Size a variable that holds selected rows: rows 0, 1, 2, ... */
static fl_err size_rows(fl_rows *r, const fl_meta *m)
{
    fl_shape s = m->shape;
    const int64_t n = s.rank ? s.dim[0] : 0;
    if (s.rank && r->height > n)
        s.dim[0] = r->height;
    FL_TRY(fl_rows_resize(r, m->dtype, &s, n));
    for (int64_t i = 0; i < n; i++)
        fl_rows_index(r)[i] = i;
    return FL_OK;
}

static fl_err size_outputs(fl_frame *f)
{
    fl_call *c = &f->call;
    const fl_meta *m = f->meta_out;
    for (int s = 0; s < FL_SLOTS && c->def->out[s].name; s++)
        for (int i = 0; i < c->n_out[s]; i++, m++) {
            fl_value *v = c->out[s][i];
            if (v && !m->kind && c->def->forward)
                return no_shape(c, &c->def->out[s], i);
            if (!v)
                continue;
            if (!m->kind) {
                FL_TRY(check_sized_by_kernel(f, v, &c->def->out[s]));
                continue;
            }
            if (c->def->out[s].flags & FL_FILLS &&
                v->kind == FL_SELECTED_ROWS && !fl_call_reads(c, v)) {
                FL_TRY(size_rows(&v->rows, m));
                continue;
            }
            FL_TRY(check_in_place(c, v, m, &c->def->out[s]));
            v->kind = m->kind;
            if (m->kind == FL_LOD_TENSOR)
                FL_TRY(size_tensor(c, v, m, c->def->out[s].flags & FL_VIEW));
        }
    return FL_OK;
}

static fl_count prepared;

uint64_t fl_frame_prepared(void)
{
    return (uint64_t)fl_count_get(&prepared);
}

fl_err fl_frame_prepare(fl_frame *f)
{
    fl_count_up(&prepared);
    FL_TRY(read_inputs(f));
    if (!f->call.def->infer)
        return FL_OK;
    memset(f->meta_out, 0,
           (size_t)count_names(f->call.n_out) * sizeof *f->meta_out);
    FL_TRY(fl_infer_run(&f->infer));
    return size_outputs(f);
}

fl_err fl_frame_run(fl_frame *f)
{
    if (!f->call.def->run)
        return fl_fail(FL_EINVAL,
                       "%s: this process has no kernel for the operator",
                       f->call.def->type);
    return f->call.def->run(&f->call);
}
