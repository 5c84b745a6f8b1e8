/* SPDX-License-Identifier: Apache-2.0 */
/* update.c - how gradients are averaged and applied to parameters.
 *
 * The mean:
 *
 *     dense   (x0 + x1 + ..) / n in order of rank, read from the bytes received
 *     rows    equal rows of each participant are added up, then those of all
 *             participants in order of rank, then divided by n. The result has
 *             the same bits as that of dense gradients.
 *
 * An update that adds does not divide. A participant that sent nothing counts
 * as zero. With one participant the mean is what it sent.
 *
 * The rule: the op that updates a table is always taken out of the update's
 * program. So is one that updates a tensor, if it is the first op, works
 * element by element, and no later op uses the gradient. The rule is then
 * applied to the mean chunk by chunk, in memory that stays in the cache, and
 * the mean as a whole is never written. The bits are those of sum, divide, op.
 *
 * The table: how its rows start is written on the op that looks them up;
 * without such an op they start with numbers that the startup program made.
 *
 * Easy to get wrong: an element may lie in two spans of the bytes received. */
#include "pserver/update.h"

#include "base/log.h"
#include "cluster/placement.h"
#include "graph/verify.h"
#include "op/kernel.h"
#include "table/file.h"

enum {
    CHUNK = 16384 /* bytes of gradient at a time; with as many of the parameter
                     they fit the first-level cache */
};

/* --- bytes --- */

typedef struct adder {
    size_t one; /* bytes of an element: 4 or 8 */
    char *to;   /* where the next element is added */
    _Alignas(double) char torn[sizeof(double)]; /* an element in two spans */
    size_t have; /* bytes of `torn` that are set */
} adder;

/* The bytes of a message have any alignment. */
FL_CLONES static void add_f32(size_t n, const char *x, float *to)
{
    for (size_t i = 0; i < n; i++) {
        float one;
        memcpy(&one, x + i * sizeof one, sizeof one);
        to[i] += one;
    }
}

FL_CLONES static void add_f64(size_t n, const char *x, double *to)
{
    for (size_t i = 0; i < n; i++) {
        double one;
        memcpy(&one, x + i * sizeof one, sizeof one);
        to[i] += one;
    }
}

static void add_elements(adder *s, const char *x, size_t n)
{
    if (s->one == sizeof(double))
        add_f64(n, x, (double *)s->to);
    else
        add_f32(n, x, (float *)s->to);
    s->to += n * s->one;
}

static void add_span(adder *s, const char *at, size_t size)
{
    if (s->have) {
        const size_t lack = s->one - s->have, n = size < lack ? size : lack;
        memcpy(s->torn + s->have, at, n);
        s->have += n;
        at += n;
        size -= n;
        if (s->have < s->one)
            return;
        add_elements(s, s->torn, 1);
    }
    const size_t n = size / s->one;
    add_elements(s, at, n);
    s->have = size - n * s->one;
    memcpy(s->torn, at + n * s->one, s->have);
}

/* Add the elements of an item to those at `to`. */
static void add_bytes(fl_bytes b, size_t one, void *to)
{
    adder s = {.one = one, .to = to};
    size_t cursor = 0;
    for (fl_span span; fl_bytes_next(b, &cursor, &span);)
        add_span(&s, span.at, span.size);
}

FL_CLONES static void divide_f32(int64_t n, float *x, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] /= by;
}

FL_CLONES static void divide_f64(int64_t n, double *x, double by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] /= by;
}

static void divide_elements(fl_dtype type, int64_t n, void *x, int by)
{
    if (by == 1)
        return;
    if (type == FL_F64)
        divide_f64(n, x, by);
    else
        divide_f32(n, x, (float)by);
}

/* --- dense --- */

static int64_t numel_of(const fl_item *item)
{
    return fl_shape_numel(&item->shape);
}

static fl_err missing_elements(const fl_update *u, int64_t have,
                               const fl_item *next)
{
    const long long numel = fl_shape_numel(&u->grad->shape);
    if (next)
        return fl_fail(FL_EPROTO,
                       "gradient \"%s\": elements from %lld on came when %lld "
                       "of %lld were there",
                       u->grad->name, (long long)next->first, (long long)have,
                       numel);
    return fl_fail(FL_EPROTO, "gradient \"%s\": %lld of %lld elements came",
                   u->grad->name, (long long)have, numel);
}

/* Let u->mean share the memory of an item. False: that is not possible, because
 * the item is a slice, is not aligned, lies in several spans, or the plan would
 * write to it. */
static bool lend_item(fl_update *u, const fl_item *item)
{
    size_t cursor = 0;
    fl_span span;
    fl_tensor *t = &u->mean->tensor;
    if (u->writes_mean || numel_of(item) != fl_shape_numel(&u->grad->shape) ||
        !fl_bytes_next(item->data, &cursor, &span) ||
        span.size != item->data.size ||
        (uintptr_t)span.at % fl_dtype_size(item->dtype))
        return false;
    fl_tensor_fini(t);
    *t = fl_tensor_view(item->dtype, &u->grad->shape, span.at);
    u->mean->kind = FL_LOD_TENSOR;
    return true;
}

static fl_err make_mean(fl_update *u)
{
    u->mean->kind = FL_LOD_TENSOR;
    return fl_tensor_resize(&u->mean->tensor, u->grad->dtype, &u->grad->shape);
}

/* The index of the first item of the participant after that of given[i]. */
static int64_t next_participant(const fl_update *u, int64_t i)
{
    const int from = u->given.at[i].from;
    while (i < u->given.n && u->given.at[i].from == from)
        i++;
    return i;
}

/* Check that the slices of a participant are in order and have no gaps. */
static fl_err check_slices(const fl_update *u, int64_t from, int64_t to)
{
    int64_t have = 0;
    for (int64_t i = from; i < to; i++) {
        const fl_item *item = u->given.at[i].item;
        if (item->first != have)
            return missing_elements(u, have, item);
        have += numel_of(item);
    }
    return have == fl_shape_numel(&u->grad->shape)
               ? FL_OK
               : missing_elements(u, have, NULL);
}

static fl_err start_readers(fl_update *u, int n)
{
    u->n = u->adds ? 1 : n;
    u->reader.n = 0;
    for (int64_t i = 0, end; i < u->given.n; i = end) {
        end = next_participant(u, i);
        FL_TRY(check_slices(u, i, end));
        fl_push(&u->reader, (fl_given_cursor){u->given.at + i, 0});
    }
    return FL_OK;
}

/* Pass n bytes of the item at hand. */
static void skip_bytes(fl_given_cursor *r, size_t n)
{
    r->from += n;
    if (r->from == r->next->item->data.size) {
        r->next++;
        r->from = 0;
    }
}

/* Read the next `size` bytes of a participant, and store them at `to`, or add
 * their elements to those at `to`. */
static void read_participant(fl_given_cursor *r, size_t size, size_t one,
                             bool adds, char *to)
{
    for (size_t n; size; size -= n, to += n) {
        const fl_bytes all = r->next->item->data;
        n = all.size - r->from < size ? all.size - r->from : size;
        const fl_bytes some = {all.of, all.at + r->from, n};
        if (adds)
            add_bytes(some, one, to);
        else
            fl_bytes_copy(some, 0, to, n);
        skip_bytes(r, n);
    }
}

static void read_mean(fl_update *u, int64_t n, void *to)
{
    const size_t one = fl_dtype_size(u->grad->dtype);
    for (int64_t i = 0; i < u->reader.n; i++)
        read_participant(&u->reader.at[i], (size_t)n * one, one, i > 0, to);
    divide_elements(u->grad->dtype, n, to, u->n);
}

/* The next n elements of the mean: where they were received if they are those
 * of one participant, aligned and in one span; else in `room`. */
static const char *next_mean(fl_update *u, int64_t n, char *room)
{
    const size_t one = fl_dtype_size(u->grad->dtype), size = (size_t)n * one;
    fl_given_cursor *r = u->reader.at;
    size_t cursor = 0;
    fl_span span;
    if (u->reader.n == 1 && u->n == 1) {
        const fl_bytes all = r->next->item->data;
        const fl_bytes rest = {all.of, all.at + r->from, all.size - r->from};
        if (fl_bytes_next(rest, &cursor, &span) && span.size >= size &&
            (uintptr_t)span.at % one == 0) {
            skip_bytes(r, size);
            return span.at;
        }
    }
    read_mean(u, n, room);
    return room;
}

static fl_err mean_dense(fl_update *u, int n, bool *some)
{
    *some = u->given.n > 0;
    if (!*some)
        return FL_OK;
    if (u->ruled.op)
        return start_readers(u, n);
    if (n == 1 && u->given.n == 1 && lend_item(u, u->given.at[0].item))
        return FL_OK;
    FL_TRY(start_readers(u, n));
    FL_TRY(make_mean(u));
    read_mean(u, fl_shape_numel(&u->grad->shape), u->mean->tensor.data);
    return FL_OK;
}

/* --- rows --- */

static int64_t rows_of(const fl_item *item)
{
    return item->shape.dim[0];
}

/* Set the number of rows, for which r has enough memory. */
static void set_rows(fl_rows *r, int64_t n)
{
    r->n = r->index.shape.dim[0] = r->value.shape.dim[0] = n;
}

/* Copy all rows of given[from .. to) into r, in order. */
static fl_err gather_rows(const fl_update *u, int64_t from, int64_t to,
                          fl_rows *r)
{
    int64_t n = 0;
    for (int64_t i = from; i < to; i++)
        n += rows_of(u->given.at[i].item);
    FL_TRY(fl_rows_resize(r, u->grad->dtype, &u->grad->shape, n));
    char *index = r->index.data, *value = r->value.data;
    for (int64_t i = from; i < to; i++) {
        const fl_item *item = u->given.at[i].item;
        fl_bytes_copy(item->rows, 0, index, item->rows.size);
        fl_bytes_copy(item->data, 0, value, item->data.size);
        index += item->rows.size;
        value += item->data.size;
    }
    return FL_OK;
}

static void append_rows(fl_rows *to, int64_t at, const fl_rows *r)
{
    const size_t row = (size_t)fl_rows_width(r) * fl_dtype_size(r->value.dtype);
    memcpy(fl_rows_index(to) + at, r->index.data,
           (size_t)r->n * sizeof(int64_t));
    memcpy((char *)to->value.data + (size_t)at * row, r->value.data,
           (size_t)r->n * row);
}

/* Fill u->all with the merged rows of each participant, one after the other. */
static fl_err merge_each(fl_update *u)
{
    int64_t have = 0, total = 0;
    for (int64_t i = 0; i < u->given.n; i++)
        total += rows_of(u->given.at[i].item);
    FL_TRY(fl_rows_resize(&u->all, u->grad->dtype, &u->grad->shape, total));
    for (int64_t i = 0, end; i < u->given.n; i = end) {
        end = next_participant(u, i);
        FL_TRY(gather_rows(u, i, end, &u->own));
        FL_TRY(fl_rows_merge(&u->sum, &u->own));
        append_rows(&u->all, have, &u->sum);
        have += u->sum.n;
    }
    set_rows(&u->all, have);
    return FL_OK;
}

static fl_err mean_rows(fl_update *u, int n)
{
    fl_rows *out = u->table ? &u->sum : &u->mean->rows;
    if (!u->table)
        u->mean->kind = FL_SELECTED_ROWS;
    if (n == 1 && !u->table)
        return gather_rows(u, 0, u->given.n, out);
    if (n == 1) {
        FL_TRY(gather_rows(u, 0, u->given.n, &u->own));
        return fl_rows_merge(out, &u->own);
    }
    FL_TRY(merge_each(u));
    FL_TRY(fl_rows_merge(out, &u->all));
    divide_elements(out->value.dtype, fl_tensor_numel(&out->value),
                    out->value.data, u->adds ? 1 : n);
    return FL_OK;
}

/* --- asynchronous: items of one trainer --- */

static fl_slices *slices_of(fl_update *u, const fl_staged *by)
{
    fl_slices *h = NULL;
    for (int64_t i = 0; i < u->slices.n && !h; i++)
        if (u->slices.at[i].rank == by->rank)
            h = &u->slices.at[i];
    if (!h) {
        fl_push(&u->slices, (fl_slices){.rank = by->rank});
        h = &u->slices.at[u->slices.n - 1];
    }
    if (!fl_id_same(h->session, by->session)) {
        h->session = by->session; /* slices of an older session are dropped */
        h->have = 0;
    }
    return h;
}

/* Copy a slice into the gradient of its trainer. Slices of a step come in any
 * order, but all before those of the next step. The store has checked that none
 * overlaps another. */
static fl_err take_slice(fl_update *u, const fl_staged *by, const fl_item *item,
                         bool *some)
{
    const size_t one = fl_dtype_size(u->grad->dtype);
    fl_slices *h = slices_of(u, by);
    u->given.n = 0;
    if (!h->have)
        FL_TRY(fl_tensor_resize(&h->tensor, u->grad->dtype, &u->grad->shape));
    fl_bytes_copy(item->data, 0,
                  (char *)h->tensor.data + (size_t)item->first * one,
                  item->data.size);
    h->have += numel_of(item);
    *some = h->have == fl_shape_numel(&u->grad->shape);
    if (!*some)
        return FL_OK;
    const fl_tensor old = u->mean->tensor;
    u->mean->kind = FL_LOD_TENSOR;
    u->mean->tensor = h->tensor;
    h->tensor = old;
    h->have = 0;
    return FL_OK;
}

/* --- rules: which ops run by their rule --- */

static bool in_place(const fl_desc *d, const char *in, const char *out)
{
    const char *from = fl_desc_in1(d, in), *to = fl_desc_out1(d, out);
    return from ? !to || !strcmp(from, to) : !to;
}

static bool updates_in_place(const fl_op *op)
{
    const fl_rule *rule = op->def->rule;
    bool ok = in_place(&op->desc, "Param", "ParamOut");
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++)
        ok &= in_place(&op->desc, rule->state[i].in, rule->state[i].out);
    return ok;
}

static bool is_only_user(const fl_ops *ops, const char *grad)
{
    fl_map used = {0};
    for (int64_t i = 1; i < ops->n; i++) {
        fl_op_add_reads(ops->at[i], &used);
        fl_op_add_writes(ops->at[i], &used);
    }
    const bool alone = !fl_map_get(&used, grad);
    fl_map_fini(&used);
    return alone;
}

static bool is_like(const fl_update_env *e, const fl_desc *d, const char *slot,
                    const fl_var *grad)
{
    const char *name = fl_desc_in1(d, slot);
    const fl_value *v = name ? fl_scope_find(e->scope, name) : NULL;
    return !name ||
           (v && v->kind == FL_LOD_TENSOR && v->tensor.data &&
            v->tensor.dtype == grad->dtype &&
            fl_tensor_numel(&v->tensor) == fl_shape_numel(&grad->shape));
}

static bool may_take_rule(const fl_update_env *e, const fl_update *u)
{
    const fl_ops *ops = &fl_program_block(u->program, 0)->ops;
    const fl_op *op = ops->n ? ops->at[0] : NULL;
    const fl_rule *rule = op && op->def ? op->def->rule : NULL;
    const char *grad = rule ? fl_desc_in1(&op->desc, "Grad") : NULL;
    if (!grad || rule->whole || u->grad->kind != FL_LOD_TENSOR ||
        strcmp(grad, u->grad->name) || !fl_desc_in1(&op->desc, "Param") ||
        !updates_in_place(op) || !is_only_user(ops, grad))
        return false;
    bool like = is_like(e, &op->desc, "Param", u->grad);
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++)
        like &= is_like(e, &op->desc, rule->state[i].in, u->grad);
    return like;
}

/* --- rules: the values that a rule needs --- */

static bool holds_numbers(const fl_value *v)
{
    return v && v->kind == FL_LOD_TENSOR && fl_tensor_numel(&v->tensor) > 0;
}

static fl_err check_started(const fl_value *v, const char *name)
{
    return holds_numbers(v) ? FL_OK
                            : fl_fail(FL_ENOENT,
                                      "listen_and_serv: \"%s\" holds nothing "
                                      "yet: run the server's startup program "
                                      "first",
                                      name);
}

static fl_err find_started(fl_scope *scope, const char *name,
                           const fl_value **out)
{
    *out = fl_scope_find(scope, name);
    return check_started(*out, name);
}

/* Find the value of an input. A value that a learning-rate block writes may
 * hold nothing before the first round. */
static fl_err bind_input(const fl_update_env *e, const fl_desc *d,
                         const char *slot, const fl_value **out)
{
    const char *name = slot ? fl_desc_in1(d, slot) : NULL;
    *out = name ? fl_scope_find(e->scope, name) : NULL;
    return name && !fl_map_get(e->rated, name) ? check_started(*out, name)
                                               : FL_OK;
}

static void bind_tensors(const fl_update_env *e, fl_update *u)
{
    const fl_desc *d = &u->ruled.op->desc;
    const fl_rule *rule = u->ruled.op->def->rule;
    u->ruled.value = fl_scope_find(e->scope, u->ruled.param);
    fl_push(&u->writes, u->ruled.value);
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++) {
        const char *name = fl_desc_in1(d, rule->state[i].in);
        u->ruled.state[i] = name ? fl_scope_find(e->scope, name) : NULL;
        if (name)
            fl_push(&u->writes, u->ruled.state[i]);
    }
}

/* --- rules: a step --- */

static double first_number(const fl_value *v)
{
    const fl_tensor *t = &v->tensor;
    return t->dtype == FL_F64 ? *(const double *)t->data
                              : *(const float *)t->data;
}

static fl_err number_of(const fl_value *v, const char *slot, double *out)
{
    if (v && !holds_numbers(v))
        return fl_fail(FL_ENOENT, "%s holds nothing", slot);
    *out = v ? first_number(v) : 0;
    return FL_OK;
}

static fl_err prepare_step(fl_update *u, fl_hyper *out)
{
    fl_ruled *r = &u->ruled;
    const fl_rule *rule = r->op->def->rule;
    FL_TRY(number_of(r->rate, "LearningRate", &r->step.lr));
    for (int i = 0; i < FL_RULE_POWERS; i++)
        FL_TRY(number_of(r->power[i], rule->power[i].slot, &r->step.power[i]));
    *out = fl_rule_prepare(rule, &r->step);
    return FL_OK;
}

/* Apply the rule to elements from .. from + n; g is their gradient. */
static void apply_elements(const fl_update *u, int64_t from, int64_t n,
                           const void *g, const fl_hyper *h)
{
    const fl_ruled *r = &u->ruled;
    const fl_dtype type = u->grad->dtype;
    const size_t at = (size_t)from * fl_dtype_size(type);
    void *state[FL_RULE_STATES];
    for (int i = 0; i < FL_RULE_STATES; i++)
        state[i] = r->state[i] ? (char *)r->state[i]->tensor.data + at : NULL;
    fl_rule_apply(r->op->def->rule, type, n, (char *)r->value->tensor.data + at,
                  g, state, h);
}

/* Save elements from .. from + n of all that the rule changes. */
static fl_err guard_elements(const fl_update *u, int64_t from, int64_t n,
                             int64_t block)
{
    const fl_ruled *r = &u->ruled;
    const size_t one = fl_dtype_size(u->grad->dtype), bytes = (size_t)n * one;
    const size_t at = (size_t)from * one;
    FL_TRY(fl_guard_add(u->guard, (char *)r->value->tensor.data + at, bytes));
    for (int i = 0; i < FL_RULE_STATES; i++)
        if (r->state[i])
            FL_TRY(fl_guard_add(u->guard, (char *)r->state[i]->tensor.data + at,
                                bytes));
    fl_undo_arm(u->guard->undo, block);
    return FL_OK;
}

/* Block by block. One that was written before a restart is left out; its mean
 * is read all the same, because the readers must pass it. */
static fl_err apply_rule(fl_update *u)
{
    _Alignas(64) char chunk[CHUNK];
    fl_hyper h;
    const fl_guard *guard = u->guard;
    const size_t one = fl_dtype_size(u->grad->dtype);
    const int64_t all = fl_shape_numel(&u->grad->shape);
    const int64_t most = (guard ? FL_GUARD_BLOCK : CHUNK) / (int64_t)one;
    FL_TRY(prepare_step(u, &h));
    for (int64_t at = 0, n, block = 0; at < all; at += n, block++) {
        n = all - at < most ? all - at : most;
        const char *grad =
            u->given.n ? next_mean(u, n, chunk)
                       /* it was put together from slices */
                       : (char *)u->mean->tensor.data + (size_t)at * one;
        if (guard && fl_undo_written(guard->undo, block))
            continue;
        if (guard)
            FL_TRY(guard_elements(u, at, n, block));
        apply_elements(u, at, n, grad, &h);
        if (guard)
            fl_undo_next(guard->undo, block);
    }
    return FL_OK;
}

/* --- the plan --- */

/* Whether the plan begins with an optimiser that changes listed rows only, and
 * nothing else changes its parameter and states. Then these are in u->ruled. */
static void find_row_values(fl_update *u, const fl_update_env *e)
{
    const fl_ops *ops = &fl_program_block(u->program, 0)->ops;
    const fl_op *op = ops->n ? ops->at[0] : NULL;
    const fl_rule *rule = op && op->def ? op->def->rule : NULL;
    const char *grad = rule ? fl_desc_in1(&op->desc, "Grad") : NULL;
    const fl_attr *lazy = rule ? fl_desc_attr(&op->desc, "lazy_mode") : NULL;
    const char *param = rule ? fl_desc_in1(&op->desc, "Param") : NULL;
    fl_map other = {0};
    if (u->grad->kind != FL_SELECTED_ROWS || u->table || !grad || !param ||
        strcmp(grad, u->grad->name) || !updates_in_place(op) ||
        (rule->decays && !(lazy && lazy->b)))
        return;
    for (int64_t i = 1; i < ops->n; i++)
        fl_op_add_writes(ops->at[i], &other);
    u->by_rows = !fl_map_get(&other, param);
    u->ruled.value = fl_scope_find(e->scope, param);
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++) {
        const char *name = fl_desc_in1(&op->desc, rule->state[i].in);
        u->ruled.state[i] = name ? fl_scope_find(e->scope, name) : NULL;
        u->by_rows &= !name || !fl_map_get(&other, name);
    }
    fl_map_fini(&other);
}

static bool has_rows(const fl_update *u, const fl_value *v)
{
    bool is = u->by_rows && v == u->ruled.value;
    for (int i = 0; i < FL_RULE_STATES; i++)
        is |= u->by_rows && v == u->ruled.state[i];
    return is;
}

/* Save the rows of a value that the gradient lists. */
static fl_err guard_rows(const fl_update *u, const fl_value *v)
{
    const fl_rows *g = &u->mean->rows;
    const fl_tensor *t = &v->tensor;
    const size_t row = g->n ? fl_tensor_bytes(t) / (size_t)t->shape.dim[0] : 0;
    return fl_undo_add_rows(u->guard->undo,
                            fl_dense_offset(u->guard->dense, t->data), t->data,
                            row, g->n, fl_rows_index(g));
}

/* Room in the log for what guard_plan adds. */
static fl_err reserve_plan(const fl_update *u)
{
    int64_t places = 0;
    size_t bytes = 0;
    for (int64_t i = 0; i < u->plan_writes; i++) {
        const fl_value *v = u->writes.at[i];
        const fl_tensor *t = &v->tensor;
        const bool rows = has_rows(u, v);
        const int64_t n = rows ? u->mean->rows.n : 1;
        if (v == u->mean || !n)
            continue;
        places += n;
        bytes +=
            rows ? (size_t)n * (fl_tensor_bytes(t) / (size_t)t->shape.dim[0])
                 : fl_tensor_bytes(t);
    }
    return fl_undo_reserve(u->guard->undo, places, bytes);
}

static fl_err guard_plan(const fl_update *u)
{
    for (int64_t i = 0; i < u->plan_writes; i++) {
        const fl_value *v = u->writes.at[i];
        if (v == u->mean)
            continue; /* it is made anew from what was pushed */
        FL_TRY(has_rows(u, v) ? guard_rows(u, v)
                              : fl_guard_add_value(u->guard, v));
    }
    fl_undo_arm(u->guard->undo, FL_GUARD_PLAN);
    return FL_OK;
}

fl_err fl_update_run_plan(fl_update *u)
{
    if (!u->guard || !u->plan_writes)
        return fl_plan_run(u->plan, NULL, NULL);
    if (fl_undo_written(u->guard->undo, FL_GUARD_PLAN))
        return FL_OK;
    FL_TRY(guard_plan(u));
    FL_TRY(fl_plan_run(u->plan, NULL, NULL));
    fl_undo_next(u->guard->undo, FL_GUARD_PLAN);
    return FL_OK;
}

/* --- tables --- */

static const fl_block *global_block(const fl_update_env *e)
{
    return fl_program_block(e->program, 0);
}

/* The index of the op of u->program that updates a table; -1: none does. */
static int64_t find_table_op(const fl_update_env *e, const fl_update *u)
{
    const fl_ops *ops = &fl_program_block(u->program, 0)->ops;
    for (int64_t i = 0; i < ops->n; i++) {
        const char *p = fl_desc_in1(&ops->at[i]->desc, "Param");
        const fl_var *v = p ? fl_block_var(global_block(e), p) : NULL;
        if (v && v->kind == FL_SELECTED_ROWS)
            return i;
    }
    return -1;
}

/* --- tables: how rows start --- */

static const fl_desc *find_lookup(const fl_update_env *e, const char *table)
{
    for (int64_t i = 0; i < e->program->blocks.n; i++) {
        const fl_ops *ops = &e->program->blocks.at[i]->ops;
        for (int64_t k = 0; k < ops->n; k++) {
            const fl_desc *d = &ops->at[k]->desc;
            const char *w = fl_desc_in1(d, "W");
            if (!strcmp(d->type, "lookup_sparse_table") && w &&
                !strcmp(w, table))
                return d;
        }
    }
    return NULL;
}

static double number_attr(const fl_desc *d, const char *name)
{
    const fl_attr *a = fl_desc_attr(d, name);
    return !a ? 0 : a->type == FL_ATTR_FLOAT ? a->f : (double)a->i;
}

/* Read how rows start from a lookup op. False: it does not say. */
static bool find_start(const fl_desc *lookup, fl_table_start *start)
{
    static const struct {
        const char *type;
        fl_start_kind kind;
    } kinds[] = {
        {"fill_constant", FL_START_CONSTANT},
        {"uniform_random", FL_START_UNIFORM},
        {"gaussian_random", FL_START_NORMAL},
        {"truncated_gaussian_random", FL_START_TRUNCATED},
    };
    const fl_attr *type = lookup ? fl_desc_attr(lookup, "start") : NULL;
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(type->s, kinds[i].type))
            continue;
        start->kind = kinds[i].kind;
        start->a = number_attr(lookup, "start_a");
        start->b = number_attr(lookup, "start_b");
        start->seed = (uint64_t)number_attr(lookup, "start_seed");
        return true;
    }
    return false;
}

/* --- tables: making one --- */

static fl_err check_table_op(const fl_op *op, const char *name)
{
    const fl_var *v = fl_block_find(op->block, name);
    char text[FL_SHAPE_TEXT];
    if (!op->def->rule)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: the table \"%s\" is updated by %s, "
                       "which is not an optimiser",
                       name, op->desc.type);
    if (v->shape.rank != 2 || v->shape.dim[1] < 1)
        return fl_fail(FL_EINVAL,
                       "listen_and_serv: the table \"%s\" is %s, expected "
                       "[rows, width]",
                       name, fl_shape_text(&v->shape, text));
    return FL_OK;
}

static fl_err find_states(const fl_update_env *e, const fl_desc *d,
                          const fl_rule *rule, fl_table_opts *o)
{
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++) {
        const char *name = fl_desc_in1(d, rule->state[i].in);
        const fl_value *v;
        o->lacks[i] = !name;
        if (!name)
            continue;
        FL_TRY(find_started(e->user, name, &v));
        o->state[i] = first_number(v);
    }
    return FL_OK;
}

/* Check that no other op of the update uses the table or its states. */
static fl_err check_other_ops(const fl_update *u)
{
    const fl_ops *ops = &fl_program_block(u->program, 0)->ops;
    const fl_op *op = u->ruled.op;
    const fl_rule *rule = op->def->rule;
    const char *names[2 + FL_RULE_STATES] = {u->ruled.param, u->grad->name};
    fl_map used = {0};
    fl_err err = FL_OK;
    for (int64_t i = 0; i < ops->n; i++) {
        fl_op_add_reads(ops->at[i], &used);
        fl_op_add_writes(ops->at[i], &used);
    }
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++)
        names[2 + i] = fl_desc_in1(&op->desc, rule->state[i].in);
    for (int i = 0; i < 2 + FL_RULE_STATES && !err; i++)
        if (names[i] && fl_map_get(&used, names[i]))
            err = fl_fail(FL_EINVAL,
                          "listen_and_serv: \"%s\" belongs to the rows of the "
                          "table \"%s\", only the op that updates these may "
                          "use it",
                          names[i], u->ruled.param);
    fl_map_fini(&used);
    return err;
}

static fl_err make_table(const fl_update_env *e, fl_update *u)
{
    const fl_op *op = u->ruled.op;
    const fl_var *v = fl_block_find(op->block, u->ruled.param);
    const fl_value *started;
    const fl_placement *place = fl_placement_of(e->program->job);
    fl_table_opts o = {.name = v->name,
                       .dtype = v->dtype,
                       .width = v->shape.dim[1],
                       .rule = op->def->rule,
                       .key = place ? fl_table_key(place->tables) : 0,
                       .dir = e->dir,
                       .extents = e->extents,
                       .number = e->number,
                       .budget = e->tables};
    if (!find_start(find_lookup(e, v->name), &o.start)) {
        FL_TRY(find_started(e->user, v->name, &started));
        o.start.kind = FL_START_PICKED;
        o.start.from = &started->tensor;
    }
    FL_TRY(find_states(e, &op->desc, o.rule, &o));
    return fl_table_new(&o, &u->table);
}

/* --- tables: rows of a model that was loaded --- */

/* The piece of that name on this server, or NULL. */
static const fl_piece *find_piece(const fl_placement *place, const char *name)
{
    for (int i = 0; place && i < place->n_pieces; i++) {
        const fl_piece *k = &place->pieces[i];
        if (k->server == place->server && !strcmp(k->name, name))
            return k;
    }
    return NULL;
}

static fl_err load_part(const fl_update_env *e, fl_update *u, int state,
                        const char *name)
{
    const char *path = fl_scope_file(e->user, name);
    const fl_placement *place = fl_placement_of(e->program->job);
    const fl_piece *k = find_piece(place, name);
    const fl_var *v = fl_block_var(global_block(e), u->ruled.param);
    const fl_watch *w = e->exec->watch; /* still on the caller's thread */
    fl_record r;
    if (!path || !k)
        return FL_OK;
    FL_TRY(fl_table_file_open(e->exec->disk, path, k, v->dtype, &r));
    const fl_err err =
        fl_table_file_load(u->table, state, &r, k, place->n_servers,
                           w ? w->poll : NULL, w ? w->user : NULL);
    fl_record_close(&r);
    if (!err)
        FL_INFO("table %s: %lld rows after loading %s", u->ruled.param,
                (long long)fl_table_rows(u->table), path);
    return err;
}

static fl_err load_parts(const fl_update_env *e, fl_update *u)
{
    const fl_op *op = u->ruled.op;
    const fl_rule_state *state = op->def->rule->state;
    FL_TRY(load_part(e, u, FL_TABLE_VALUE, u->ruled.param));
    for (int i = 0; i < FL_RULE_STATES && state[i].in; i++) {
        const char *name = fl_desc_in1(&op->desc, state[i].in);
        if (name)
            FL_TRY(load_part(e, u, i, name));
    }
    return FL_OK;
}

/* --- tables: a step --- */

static fl_err apply_to_table(fl_update *u)
{
    fl_hyper h;
    FL_TRY(prepare_step(u, &h));
    return fl_table_apply(u->table, u->sum.n, fl_rows_index(&u->sum),
                          u->sum.value.data, &h,
                          u->guard ? u->guard->undo : NULL);
}

/* --- public functions --- */

fl_err fl_update_make_table(fl_update *u, const fl_update_env *e)
{
    fl_block *b = fl_program_block(u->program, 0);
    const int64_t at = find_table_op(e, u);
    if (at < 0)
        return FL_OK;
    u->ruled.op = b->ops.at[at];
    u->ruled.param = fl_desc_in1(&u->ruled.op->desc, "Param");
    FL_TRY(check_table_op(u->ruled.op, u->ruled.param));
    fl_block_remove_op(b, at);
    FL_TRY(check_other_ops(u));
    FL_TRY(make_table(e, u));
    if (e->dir && fl_statedir_found(e->dir))
        return FL_OK; /* its rows are newer than those of the files */
    return load_parts(e, u);
}

void fl_update_take_rule(fl_update *u, const fl_update_env *e)
{
    fl_block *b = fl_program_block(u->program, 0);
    if (u->table || !may_take_rule(e, u))
        return;
    u->ruled.op = b->ops.at[0];
    u->ruled.param = fl_desc_in1(&u->ruled.op->desc, "Param");
    fl_block_remove_op(b, 0);
}

fl_err fl_update_bind_rule(fl_update *u, const fl_update_env *e)
{
    fl_ruled *r = &u->ruled;
    u->plan_writes = u->writes.n;
    if (!r->op) {
        find_row_values(u, e);
        return FL_OK;
    }
    const fl_desc *d = &r->op->desc;
    r->step.def = r->op->def;
    FL_TRY(fl_desc_attrs(r->op->def, d, e->arena, &r->step.attr));
    FL_TRY(bind_input(e, d, "LearningRate", &r->rate));
    for (int i = 0; i < FL_RULE_POWERS; i++)
        FL_TRY(bind_input(e, d, r->op->def->rule->power[i].slot, &r->power[i]));
    if (!u->table)
        bind_tensors(e, u);
    return FL_OK;
}

fl_err fl_update_mean(fl_update *u, int n, bool *some)
{
    *some = true;
    return u->grad->kind == FL_SELECTED_ROWS ? mean_rows(u, n)
                                             : mean_dense(u, n, some);
}

fl_err fl_update_add(fl_update *u, const fl_staged *by, const fl_item *item,
                     bool *some)
{
    if (u->grad->kind != FL_SELECTED_ROWS &&
        numel_of(item) < fl_shape_numel(&u->grad->shape))
        return take_slice(u, by, item, some);
    const fl_given alone = {.item = item};
    u->given.n = 0;
    fl_push(&u->given, alone);
    return fl_update_mean(u, 1, some);
}

fl_err fl_update_reserve(const fl_update *u)
{
    const int64_t values = 1 + FL_RULE_STATES;
    int64_t n;
    if (!u->guard)
        return FL_OK;
    if (u->table) {
        const size_t bytes = fl_table_guarded(u->table, &n);
        FL_TRY(fl_undo_reserve(u->guard->undo, n, bytes));
    } else if (u->ruled.op) {
        FL_TRY(fl_undo_reserve(u->guard->undo, values,
                               (size_t)values * FL_GUARD_BLOCK));
    }
    return reserve_plan(u);
}

fl_err fl_update_apply(fl_update *u)
{
    return u->table ? apply_to_table(u) : u->ruled.op ? apply_rule(u) : FL_OK;
}

void fl_update_clear(fl_update *u)
{
    fl_tensor *t = &u->mean->tensor;
    u->given.n = u->reader.n = 0;
    if (!t->buf)
        *t = (fl_tensor){.dtype = t->dtype, .shape = t->shape};
}

bool fl_update_in_rows(const fl_update *u, const char *name, int *state)
{
    const fl_op *op = u->ruled.op;
    const fl_rule_state *s = op->def->rule->state;
    for (int i = 0; i < FL_RULE_STATES && s[i].in; i++) {
        const char *at = fl_desc_in1(&op->desc, s[i].in);
        *state = i;
        if (at && !strcmp(at, name))
            return true;
    }
    *state = FL_TABLE_VALUE;
    return !strcmp(u->ruled.param, name);
}

void fl_update_fini(fl_update *u)
{
    fl_plan_free(u->plan);
    fl_program_free(u->program);
    fl_table_free(u->table);
    fl_rows *rows[] = {&u->own, &u->all, &u->sum};
    for (int i = 0; i < 3; i++) {
        fl_tensor_fini(&rows[i]->index);
        fl_tensor_fini(&rows[i]->value);
    }
    for (int64_t i = 0; i < u->slices.n; i++)
        fl_tensor_fini(&u->slices.at[i].tensor);
    fl_vec_fini(&u->slices);
    fl_vec_fini(&u->given);
    fl_vec_fini(&u->reader);
    fl_vec_fini(&u->writes);
}
