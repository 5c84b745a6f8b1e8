/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - runs an operator's case in f32 and f64 and checks its gradient.
 *
 * The scalar whose gradient is compared is L = sum of w[i] * Out[i] over all
 * outputs whose gradient the operator takes, with fixed weights w: so every
 * output's gradient is w, and dL/dx follows from two runs with x moved. */
#include "check/check.h"

#include "api/registry.h"
#include "base/str.h"
#include "ops/ops.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables of one run, by name. */
typedef struct env {
    const fl_op_case *c;
    const fl_op_def *def;
    fl_dtype real;
    fl_vars vars;
    fl_desc *desc;
} env;

const fl_registry *fl_check_registry(void)
{
    static fl_registry *r; /* one thread, one process: a test */
    if (r)
        return r;
    CHECK_OK(fl_registry_all(&r));
    return r;
}

void fl_checked(const char *type, bool grad)
{
    const char *dir = getenv("FL_CHECKED_DIR");
    char path[512];
    if (!dir)
        return;
    snprintf(path, sizeof path, "%s/%s%s", dir, type, grad ? ".grad" : "");
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    if (fd >= 0)
        close(fd);
}

/* --- values --- */

static double get(const fl_tensor *t, int64_t i)
{
    double d;
    size_t size = fl_dtype_size(t->dtype);
    CHECK_OK(fl_convert(1, t->dtype, (char *)t->data + size * (size_t)i, FL_F64,
                        &d));
    return d;
}

static void set(fl_tensor *t, int64_t i, double d)
{
    size_t size = fl_dtype_size(t->dtype);
    CHECK_OK(fl_convert(1, FL_F64, &d, t->dtype,
                        (char *)t->data + size * (size_t)i));
}

static fl_shape shape_of(const fl_case_arg *a)
{
    fl_shape s = {0};
    if (a->empty) {
        s.rank = 6;
        while (s.rank > 1 && !a->dim[s.rank - 1])
            s.rank--;
    } else {
        while (s.rank < 6 && a->dim[s.rank])
            s.rank++;
    }
    memcpy(s.dim, a->dim, (size_t)s.rank * sizeof *s.dim);
    if (!s.rank)
        s = (fl_shape){1, {1}};
    return s;
}

static fl_dtype dtype_of(const env *e, const fl_case_arg *a)
{
    fl_dtype t = e->real;
    if (a->dtype)
        CHECK(fl_dtype_find(a->dtype, &t));
    return t;
}

/* "0,2,5" -> numbers; how many. Stops at ';'. */
static int64_t numbers(const char **text, int64_t *out)
{
    int64_t n = 0;
    char *end;
    while (**text && **text != ';') {
        out[n++] = strtoll(*text, &end, 10);
        *text = *end == ',' ? end + 1 : end;
    }
    if (**text == ';')
        (*text)++;
    return n;
}

static void set_lod(fl_tensor *t, const char *text)
{
    int64_t off[FL_MAX_LOD][64];
    fl_lod lod = {0};
    for (; *text; lod.levels++) {
        lod.n[lod.levels] = numbers(&text, off[lod.levels]);
        lod.off[lod.levels] = off[lod.levels];
    }
    CHECK_OK(fl_lod_copy(&t->lod, &lod));
}

static void fill(env *e, const fl_case_arg *a, fl_value *v)
{
    fl_shape shape = shape_of(a);
    fl_tensor *t = &v->tensor;
    v->kind = FL_LOD_TENSOR;
    if (a->rows) {
        int64_t row[64];
        const char *text = a->rows;
        int64_t n = numbers(&text, row);
        shape.dim[0] = a->height;
        v->kind = FL_SELECTED_ROWS;
        CHECK_OK(fl_rows_resize(&v->rows, dtype_of(e, a), &shape, n));
        memcpy(fl_rows_index(&v->rows), row, (size_t)n * sizeof *row);
        t = &v->rows.value;
    } else {
        CHECK_OK(fl_tensor_resize(t, dtype_of(e, a), &shape));
    }
    for (int64_t i = 0, n = fl_tensor_numel(t); i < n; i++)
        set(t, i, a->value[i]);
    if (a->lod)
        set_lod(t, a->lod);
}

/* --- the operator as a desc --- */

static int count_slot(const fl_case_arg *args, const char *slot)
{
    int n = 0;
    for (int i = 0; i < FL_CASE_ARGS && args[i].slot; i++)
        n += !strcmp(args[i].slot, slot);
    return n;
}

/* "X", "X.1", "X.2"; outputs "Out", ... */
static const char *arg_name(env *e, const char *slot, int i)
{
    return i ? fl_arena_printf(e->vars.arena, "%s.%d", slot, i) : slot;
}

static const char *in_place_of(const fl_op_case *c, const char *slot)
{
    for (int i = 0; i < FL_CASE_ARGS && c->out[i].slot; i++)
        if (!strcmp(c->out[i].slot, slot))
            return c->out[i].same;
    return NULL;
}

static void set_slot(env *e, const char *slot, int n, bool out)
{
    const char **name = fl_arena_alloc(e->vars.arena, (size_t)n * sizeof *name);
    const char *same = out ? in_place_of(e->c, slot) : NULL;
    for (int i = 0; i < n; i++)
        name[i] = arg_name(e, same ? same : slot, i);
    (out ? fl_desc_set_out : fl_desc_set_in)(e->desc, slot, n, name);
}

static void build(env *e)
{
    const fl_op_case *c = e->c;
    e->desc = fl_desc_new(e->vars.arena, c->type);
    for (int s = 0; s < FL_SLOTS && e->def->in[s].name; s++) {
        int n = count_slot(c->in, e->def->in[s].name);
        if (n)
            set_slot(e, e->def->in[s].name, n, false);
    }
    for (int s = 0; s < FL_SLOTS && e->def->out[s].name; s++) {
        int n = count_slot(c->out, e->def->out[s].name);
        for (int i = 0; i < FL_CASE_ARGS && c->want[i]; i++)
            n += !strcmp(c->want[i], e->def->out[s].name);
        set_slot(e, e->def->out[s].name, n ? n : 1, true);
    }
    for (int i = 0; i < FL_ATTRS && c->attr[i].name; i++)
        fl_desc_set_attr(e->desc, &c->attr[i]);
}

static void env_init(env *e, const fl_op_case *c, fl_dtype real)
{
    *e = (env){.c = c, .real = real};
    fl_vars_init(&e->vars);
    CHECK_OK(fl_registry_get(fl_check_registry(), c->type, &e->def));
    build(e);
    int seen[FL_CASE_ARGS] = {0};
    for (int i = 0; i < FL_CASE_ARGS && c->in[i].slot; i++) {
        for (int j = 0; j < i; j++)
            seen[i] += !strcmp(c->in[i].slot, c->in[j].slot);
        fill(e, &c->in[i],
             fl_vars_get(&e->vars, arg_name(e, c->in[i].slot, seen[i])));
    }
}

static void env_fini(env *e)
{
    fl_vars_fini(&e->vars);
}

/* --- what a table promises of its kernel --- */

/* The outputs of a desc, copied; or compared with their copies. */
static void keep_outputs(env *e, const fl_desc *d, fl_value *copy, bool compare)
{
    for (int s = 0, k = 0; s < d->n_out; s++)
        for (int i = 0; i < d->out[s].n; i++, k++) {
            CHECK(k < FL_CASE_ARGS && "there is room for its copy");
            fl_value *v = fl_vars_get(&e->vars, d->out[s].name[i]);
            if (!compare)
                CHECK_OK(fl_value_copy(&copy[k], v));
            else if (v->kind == FL_LOD_TENSOR && v->tensor.data)
                CHECK(!memcmp(v->tensor.data, copy[k].tensor.data,
                              fl_tensor_bytes(&copy[k].tensor)));
        }
}

/* Run again with x and the first output in one region, where x does not differ
 * from it in type or shape. */
static void run_in_place(env *e, fl_desc *d, fl_value *x, fl_value *out)
{
    fl_value before = {0};
    fl_region region = {0};
    const fl_shape shape = x->tensor.shape;
    if (x == out || x->kind != FL_LOD_TENSOR || out->kind != FL_LOD_TENSOR ||
        x->tensor.dtype != out->tensor.dtype ||
        !fl_shape_equal(&shape, &out->tensor.shape))
        return;
    CHECK_OK(fl_value_copy(&before, x));
    fl_region_add(&region, x);
    fl_region_add(&region, out);
    CHECK_OK(fl_region_resize(x, before.tensor.dtype, &shape));
    memcpy(x->tensor.data, before.tensor.data, fl_tensor_bytes(&x->tensor));
    CHECK_OK(fl_lod_copy(&x->tensor.lod, &before.tensor.lod));
    CHECK_OK(fl_vars_run(&e->vars, d));
    CHECK(x->tensor.data == out->tensor.data);
    x->region = out->region = NULL;
    CHECK_OK(fl_tensor_unique(&out->tensor));
    CHECK_OK(fl_value_copy(x, &before));
    fl_region_fini(&region);
    fl_value_fini(&before);
}

/* Run again with other elements in x. */
static void run_with_rubbish(env *e, fl_desc *d, fl_value *x)
{
    fl_value before = {0};
    if (x->kind != FL_LOD_TENSOR || !x->tensor.data)
        return;
    CHECK_OK(fl_value_copy(&before, x));
    memset(x->tensor.data, 0xff, fl_tensor_bytes(&x->tensor));
    CHECK_OK(fl_vars_run(&e->vars, d));
    CHECK_OK(fl_value_copy(x, &before));
    fl_value_fini(&before);
}

/* An output is a variable that is read, so that a second run differs. */
static bool is_updated(const fl_desc *d)
{
    for (int s = 0; s < d->n_out; s++)
        for (int i = 0; i < d->out[s].n; i++)
            for (int k = 0; k < d->n_in; k++)
                for (int j = 0; j < d->in[k].n; j++)
                    if (!strcmp(d->out[s].name[i], d->in[k].name[j]))
                        return true;
    return false;
}

/* FL_OP_IN_PLACE and FL_UNREAD hold: the outputs have the same bits. */
static void check_promises(env *e, fl_desc *d)
{
    const fl_op_def *def = fl_registry_find(fl_check_registry(), d->type);
    const fl_args *first = fl_desc_out(d, def->out[0].name);
    fl_value copy[FL_CASE_ARGS] = {0};
    if (is_updated(d))
        return;
    keep_outputs(e, d, copy, false);
    for (int s = 0; s < FL_SLOTS && def->in[s].name; s++) {
        const fl_args *in = fl_desc_in(d, def->in[s].name);
        for (int i = 0; in && i < in->n; i++) {
            fl_value *x = fl_vars_get(&e->vars, in->name[i]);
            if (def->in[s].flags & FL_UNREAD)
                run_with_rubbish(e, d, x);
            else if (def->flags & FL_OP_IN_PLACE && first)
                run_in_place(e, d, x, fl_vars_get(&e->vars, first->name[0]));
            keep_outputs(e, d, copy, true);
        }
    }
    for (int k = 0; k < FL_CASE_ARGS; k++)
        fl_value_fini(&copy[k]);
}

static void run(env *e, fl_desc *d)
{
    CHECK_OK(fl_vars_run(&e->vars, d));
    check_promises(e, d);
}

/* --- outputs --- */

static bool near(double got, double want, double tolerance)
{
    double scale = fabs(want) > 1 ? fabs(want) : 1;
    return got == want || (isnan(got) && isnan(want)) ||
           fabs(got - want) <= tolerance * scale;
}

static void check_elements(const env *e, const fl_case_arg *a,
                           const fl_tensor *t)
{
    double tolerance = e->c->tolerance ? e->c->tolerance : 1e-5;
    for (int64_t i = 0, n = fl_tensor_numel(t); i < n; i++)
        if (!near(get(t, i), a->value[i], tolerance)) {
            print_error("%s (%s): %s[%lld] is %.9g, expected %.9g\n",
                        e->c->type, fl_dtype_name(e->real), a->slot,
                        (long long)i, get(t, i), a->value[i]);
            CHECK(!"elements agree");
        }
}

static void check_lod(const fl_tensor *t, const char *want)
{
    fl_str got = {0};
    for (int l = 0; l < t->lod.levels; l++)
        for (int64_t i = 0; i < t->lod.n[l]; i++)
            fl_str_printf(&got, "%s%lld",
                          i   ? ","
                          : l ? ";"
                              : "",
                          (long long)t->lod.off[l][i]);
    CHECK_STR(got.at ? got.at : "", want);
    fl_str_fini(&got);
}

static void check_rows(const fl_rows *r, const fl_case_arg *a)
{
    fl_str got = {0};
    for (int64_t i = 0; i < r->n; i++)
        fl_str_printf(&got, "%s%lld", i ? "," : "",
                      (long long)fl_rows_index(r)[i]);
    CHECK_STR(got.at ? got.at : "", a->rows);
    CHECK_INT(r->height, a->height);
    fl_str_fini(&got);
}

static void check_output(env *e, const fl_case_arg *a, int i)
{
    fl_value *v = fl_vars_get(&e->vars, fl_desc_out(e->desc, a->slot)->name[i]);
    const fl_tensor *t = a->rows ? &v->rows.value : &v->tensor;
    fl_shape want = shape_of(a);
    char got_text[FL_SHAPE_TEXT], want_text[FL_SHAPE_TEXT];
    CHECK_INT(v->kind, a->rows ? FL_SELECTED_ROWS : FL_LOD_TENSOR);
    CHECK_STR(fl_shape_text(&t->shape, got_text),
              fl_shape_text(&want, want_text));
    CHECK_STR(fl_dtype_name(t->dtype), fl_dtype_name(dtype_of(e, a)));
    if (a->rows)
        check_rows(&v->rows, a);
    check_elements(e, a, t);
    if (a->lod)
        check_lod(t, a->lod);
}

static void check_outputs(env *e)
{
    const fl_op_case *c = e->c;
    for (int i = 0; i < FL_CASE_ARGS && c->out[i].slot; i++) {
        int before = 0;
        for (int j = 0; j < i; j++)
            before += !strcmp(c->out[j].slot, c->out[i].slot);
        check_output(e, &c->out[i], before);
    }
}

/* --- gradients --- */

static double weight(int64_t i)
{
    return 0.4 + 0.15 * (double)(i * 7 % 5) - 0.25 * (double)(i % 2);
}

static bool is_real(const fl_tensor *t)
{
    return t->dtype == FL_F32 || t->dtype == FL_F64;
}

/* Does a gradient of this output flow back? */
static bool takes_gradient(const env *e, const fl_slot *out)
{
    if (e->def->make_grad)
        return !(out->flags & FL_INTERMEDIATE);
    for (int i = 0; i < FL_SLOTS && e->def->grad_in[i]; i++)
        if (fl_starts_with(e->def->grad_in[i], out->name) &&
            !strcmp(e->def->grad_in[i] + strlen(out->name), FL_GRAD_SUFFIX))
            return true;
    return false;
}

/* Calls fn for every output tensor that L counts. */
static void each_output(env *e,
                        void (*fn)(env *, const char *name, const fl_tensor *,
                                   void *),
                        void *self)
{
    for (int s = 0; s < FL_SLOTS && e->def->out[s].name; s++) {
        const fl_args *args = fl_desc_out(e->desc, e->def->out[s].name);
        if (!takes_gradient(e, &e->def->out[s]))
            continue;
        for (int i = 0; i < args->n; i++) {
            fl_value *v = fl_vars_get(&e->vars, args->name[i]);
            if (v->kind == FL_LOD_TENSOR && is_real(&v->tensor))
                fn(e, args->name[i], &v->tensor, self);
        }
    }
}

static void add_to_loss(env *e, const char *name, const fl_tensor *t,
                        void *loss)
{
    for (int64_t i = 0, n = fl_tensor_numel(t); i < n; i++)
        *(double *)loss += weight(i) * get(t, i);
}

static void seed_gradient(env *e, const char *name, const fl_tensor *t,
                          void *unused)
{
    fl_value *g = fl_vars_get(&e->vars, fl_grad_name(e->vars.arena, name));
    g->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_copy(&g->tensor, t));
    for (int64_t i = 0, n = fl_tensor_numel(t); i < n; i++)
        set(&g->tensor, i, weight(i));
}

static void set_grad_slot(env *e, fl_desc *g, const char *slot, bool out)
{
    char base[64];
    bool grad = fl_ends_with(slot, FL_GRAD_SUFFIX);
    size_t n = strlen(slot) - (grad ? strlen(FL_GRAD_SUFFIX) : 0);
    memcpy(base, slot, n);
    base[n] = 0;
    const fl_args *of = fl_desc_in(e->desc, base);
    if (!of)
        of = fl_desc_out(e->desc, base);
    if (!of)
        return;
    const char **name =
        fl_arena_alloc(e->vars.arena, (size_t)of->n * sizeof *name);
    for (int i = 0; i < of->n; i++)
        name[i] = grad ? fl_grad_name(e->vars.arena, of->name[i]) : of->name[i];
    (out ? fl_desc_set_out : fl_desc_set_in)(g, slot, of->n, name);
}

static void run_derived(env *e)
{
    const fl_op_def *grad;
    const char *type =
        e->def->grad_type
            ? e->def->grad_type
            : fl_arena_printf(e->vars.arena, "%s_grad", e->c->type);
    CHECK_OK(fl_registry_get(fl_check_registry(), type, &grad));
    fl_desc *g = fl_desc_new(e->vars.arena, type);
    for (int s = 0; s < FL_SLOTS && grad->in[s].name; s++)
        set_grad_slot(e, g, grad->in[s].name, false);
    for (int s = 0; s < FL_SLOTS && grad->out[s].name; s++)
        set_grad_slot(e, g, grad->out[s].name, true);
    for (int i = 0; i < e->desc->n_attr; i++)
        fl_desc_set_attr(g, &e->desc->attr[i]);
    run(e, g);
}

static void run_gradient(env *e)
{
    each_output(e, seed_gradient, NULL);
    if (e->def->grad_run) {
        run_derived(e);
        return;
    }
    fl_grads g = {.fwd = e->desc, .arena = e->vars.arena};
    CHECK_OK(e->def->make_grad(&g));
    for (int64_t i = 0; i < g.descs.n; i++)
        run(e, g.descs.at[i]);
    fl_vec_fini(&g.descs);
}

static double loss_with(const fl_op_case *c, const char *name, int64_t i,
                        double x)
{
    env e;
    double loss = 0;
    env_init(&e, c, FL_F64);
    set(&fl_vars_get(&e.vars, name)->tensor, i, x);
    run(&e, e.desc);
    each_output(&e, add_to_loss, &loss);
    env_fini(&e);
    return loss;
}

/* Element i of a gradient that may be selected rows. */
static double gradient_at(const fl_value *g, int64_t i)
{
    if (g->kind != FL_SELECTED_ROWS)
        return get(&g->tensor, i);
    int64_t width = fl_rows_width(&g->rows);
    double sum = 0;
    for (int64_t r = 0; r < g->rows.n; r++)
        if (fl_rows_index(&g->rows)[r] == i / width)
            sum += get(&g->rows.value, r * width + i % width);
    return sum;
}

static void check_gradient_of(env *e, env *single, const char *name)
{
    const double step = 1e-5;
    const fl_tensor *x = &fl_vars_get(&e->vars, name)->tensor;
    const char *grad_name = fl_grad_name(e->vars.arena, name);
    const fl_value *g = fl_vars_get(&e->vars, grad_name);
    const fl_value *g32 = fl_vars_get(&single->vars, grad_name);
    double tolerance = e->c->grad_tolerance ? e->c->grad_tolerance : 1e-5;
    CHECK(g->kind && "the gradient was made");
    for (int64_t i = 0, n = fl_tensor_numel(x); i < n; i++) {
        double at = get(x, i);
        double want = (loss_with(e->c, name, i, at + step) -
                       loss_with(e->c, name, i, at - step)) /
                      (2 * step);
        double got = gradient_at(g, i), got32 = gradient_at(g32, i);
        if (!near(got, want, tolerance) || !near(got32, got, 20 * tolerance)) {
            print_error("%s: %s[%lld] is %.9g (f32 %.9g), by differences "
                        "%.9g\n",
                        e->c->type, grad_name, (long long)i, got, got32, want);
            CHECK(!"gradient and differences agree");
        }
    }
}

static void check_gradients(const fl_op_case *c)
{
    env wide, single;
    env_init(&wide, c, FL_F64);
    env_init(&single, c, FL_F32);
    CHECK(fl_op_differentiable(wide.def));
    run(&wide, wide.desc);
    run(&single, single.desc);
    run_gradient(&wide);
    run_gradient(&single);
    for (int i = 0; i < FL_CASE_ARGS && c->grad[i]; i++) {
        const fl_args *args = fl_desc_in(wide.desc, c->grad[i]);
        CHECK(args && "the case has that input");
        for (int j = 0; j < args->n; j++)
            check_gradient_of(&wide, &single, args->name[j]);
    }
    env_fini(&wide);
    env_fini(&single);
    fl_checked(c->type, true);
}

void fl_check_op(const fl_op_case *c)
{
    fl_dtype reals[] = {FL_F32, FL_F64};
    for (int i = 0; i < 2; i++) {
        env e;
        env_init(&e, c, reals[i]);
        run(&e, e.desc);
        check_outputs(&e);
        env_fini(&e);
    }
    fl_checked(c->type, false);
    if (c->grad[0])
        check_gradients(c);
}

fl_err fl_check_try(const fl_op_case *c)
{
    env e;
    env_init(&e, c, FL_F32);
    fl_err err = fl_vars_run(&e.vars, e.desc);
    env_fini(&e);
    return err;
}
