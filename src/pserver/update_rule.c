/* update_rule.c - optimisers that the store runs itself, from what came.
 *
 * The op that updates a table is always taken out of its update's program. So
 * is one that updates a tensor, if it comes first, works element by element,
 * and nothing behind it looks at the gradient: its rule then meets the mean of
 * what came piece by piece, in memory that stays in the cache, and the mean as
 * a whole is never written down. The bits are those of sum, divide, op. */
#include "pserver/store_in.h"

#include "graph/verify.h"

enum {
    PIECE = 16384 /* bytes: half of the nearest cache, with the parameter's */
};

/* --- may it be taken out? --- */

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

static bool only_op_with(const fl_ops *ops, const char *grad)
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

static bool is_like(const fl_owner *o, const fl_desc *d, const char *slot,
                    const fl_var *grad)
{
    const char *name = fl_desc_in1(d, slot);
    const fl_value *v = name ? fl_scope_find(o->scope, name) : NULL;
    return !name ||
           (v && v->kind == FL_LOD_TENSOR && v->tensor.data &&
            v->tensor.dtype == grad->dtype &&
            fl_tensor_numel(&v->tensor) == fl_shape_numel(&grad->shape));
}

static bool may_take(const fl_owner *o, const fl_update *u)
{
    const fl_ops *ops = &fl_program_block(u->program, 0)->ops;
    const fl_op *op = ops->n ? ops->at[0] : NULL;
    const fl_rule *rule = op && op->def ? op->def->rule : NULL;
    const char *grad = rule ? fl_desc_in1(&op->desc, "Grad") : NULL;
    if (!grad || rule->whole || u->grad->kind != FL_LOD_TENSOR ||
        strcmp(grad, u->grad->name) || !fl_desc_in1(&op->desc, "Param") ||
        !updates_in_place(op) || !only_op_with(ops, grad))
        return false;
    bool like = is_like(o, &op->desc, "Param", u->grad);
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++)
        like &= is_like(o, &op->desc, rule->state[i].in, u->grad);
    return like;
}

void fl_update_take_rule(fl_owner *o, fl_update *u)
{
    fl_block *b = fl_program_block(u->program, 0);
    if (u->table || !may_take(o, u))
        return;
    u->ruled.op = b->ops.at[0];
    u->ruled.param = fl_desc_in1(&u->ruled.op->desc, "Param");
    fl_block_remove_op(b, 0);
}

/* --- what it reads and writes --- */

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

fl_err fl_pstore_started(fl_scope *scope, const char *name,
                         const fl_value **out)
{
    *out = fl_scope_find(scope, name);
    return check_started(*out, name);
}

/* What the learning-rate block makes is not there before the first round. */
static fl_err bind(const fl_owner *o, const fl_desc *d, const char *slot,
                   const fl_value **out)
{
    const char *name = slot ? fl_desc_in1(d, slot) : NULL;
    *out = name ? fl_scope_find(o->scope, name) : NULL;
    return name && !fl_map_get(&o->store->rated, name)
               ? check_started(*out, name)
               : FL_OK;
}

static void bind_tensors(const fl_owner *o, fl_update *u)
{
    const fl_desc *d = &u->ruled.op->desc;
    const fl_rule *rule = u->ruled.op->def->rule;
    u->ruled.value = fl_scope_find(o->scope, u->ruled.param);
    fl_push(&u->writes, u->ruled.value);
    for (int i = 0; i < FL_RULE_STATES && rule->state[i].in; i++) {
        const char *name = fl_desc_in1(d, rule->state[i].in);
        u->ruled.state[i] = name ? fl_scope_find(o->scope, name) : NULL;
        if (name)
            fl_push(&u->writes, u->ruled.state[i]);
    }
}

fl_err fl_update_bind_rule(fl_owner *o, fl_update *u)
{
    fl_ruled *r = &u->ruled;
    if (!r->op)
        return FL_OK;
    const fl_desc *d = &r->op->desc;
    r->step.def = r->op->def;
    FL_TRY(fl_desc_attrs(r->op->def, d, o->store->arena, &r->step.attr));
    FL_TRY(bind(o, d, "LearningRate", &r->rate));
    for (int i = 0; i < FL_RULE_POWERS; i++)
        FL_TRY(bind(o, d, r->op->def->rule->power[i].slot, &r->power[i]));
    if (!u->table)
        bind_tensors(o, u);
    return FL_OK;
}

/* --- its steps --- */

double fl_pstore_number(const fl_value *v)
{
    const fl_tensor *t = &v->tensor;
    return t->dtype == FL_F64 ? *(const double *)t->data
                              : *(const float *)t->data;
}

static fl_err number_of(const fl_value *v, const char *slot, double *out)
{
    if (v && !holds_numbers(v))
        return fl_fail(FL_ENOENT, "%s holds nothing", slot);
    *out = v ? fl_pstore_number(v) : 0;
    return FL_OK;
}

fl_err fl_update_step(fl_update *u, fl_hyper *out)
{
    fl_ruled *r = &u->ruled;
    const fl_rule *rule = r->op->def->rule;
    FL_TRY(number_of(r->rate, "LearningRate", &r->step.lr));
    for (int i = 0; i < FL_RULE_POWERS; i++)
        FL_TRY(number_of(r->power[i], rule->power[i].slot, &r->step.power[i]));
    *out = fl_rule_prepare(rule, &r->step);
    return FL_OK;
}

/* Elements from .. from + n meet their gradient. */
static void apply(const fl_update *u, int64_t from, int64_t n, const void *g,
                  const fl_hyper *h)
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

fl_err fl_update_run_rule(fl_update *u)
{
    _Alignas(64) char piece[PIECE];
    fl_hyper h;
    const int64_t all = fl_shape_numel(&u->grad->shape);
    const int64_t most = PIECE / (int64_t)fl_dtype_size(u->grad->dtype);
    FL_TRY(fl_update_step(u, &h));
    if (!u->given.n) /* slices were put together */
        apply(u, 0, all, u->mean->tensor.data, &h);
    for (int64_t at = 0, n; u->given.n && at < all; at += n) {
        n = all - at < most ? all - at : most;
        fl_update_next(u, n, piece);
        apply(u, at, n, piece, &h);
    }
    return FL_OK;
}
