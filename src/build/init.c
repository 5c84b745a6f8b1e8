/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - the ops of the startup program that initialise variables.
 *
 * Each op is inserted before the existing ops (as in Fluid), so the op that was
 * made last comes first in the startup program. Ops make f32 (or i32) numbers;
 * another dtype is cast from a temporary, and that cast is appended at the end.
 */
#include "build/net.h"

#include <math.h>

/* The initialisation of one variable, under construction. */
typedef struct start {
    const fl_init *init;
    fl_net *net;
    fl_var *var; /* variable in the startup program */
    fl_desc *d;
} start;

static fl_desc *random_op(start *s, const char *type)
{
    const fl_init *i = s->init;
    s->d = fl_net_desc(s->net, type);
    const int64_t seed = i->seed ? i->seed : s->net->startup->random_seed;
    fl_set_int(s->d, "seed", seed);
    return s->d;
}

static void uniform_op(start *s, double low, double high)
{
    fl_desc *d = random_op(s, "uniform_random");
    fl_set_ints(d, "shape", s->var->shape.rank, s->var->shape.dim);
    fl_set_float(d, "min", low);
    fl_set_float(d, "max", high);
}

static void normal_op(start *s, const char *type, double mean, double std)
{
    fl_desc *d = random_op(s, type);
    fl_set_ints(d, "shape", s->var->shape.rank, s->var->shape.dim);
    fl_set_float(d, "mean", mean);
    fl_set_float(d, "std", std);
}

static fl_err constant(start *s)
{
    s->d = fl_net_desc(s->net, "fill_constant");
    fl_set_ints(s->d, "shape", s->var->shape.rank, s->var->shape.dim);
    fl_set_float(s->d, "value", s->init->a);
    return FL_OK;
}

static fl_err uniform(start *s)
{
    uniform_op(s, s->init->a, s->init->b);
    return FL_OK;
}

static fl_err normal(start *s)
{
    normal_op(s, "gaussian_random", s->init->a, s->init->b);
    return FL_OK;
}

static fl_err truncated(start *s)
{
    normal_op(s, "truncated_gaussian_random", s->init->a, s->init->b);
    return FL_OK;
}

/* The number of inputs and of outputs of one unit (fan in, fan out). */
static void fans(const fl_shape *s, double *in, double *out)
{
    const double rest = s->rank > 2 ? (double)fl_shape_span(s, 2, s->rank) : 1;
    if (s->rank < 2) {
        *in = *out = s->rank ? (double)s->dim[0] : 1;
    } else if (s->rank == 2) {
        *in = (double)s->dim[0];
        *out = (double)s->dim[1];
    } else { /* a convolution's filter: [out, in, ...] */
        *in = (double)s->dim[1] * rest;
        *out = (double)s->dim[0] * rest;
    }
}

/* A normal distribution of variance 2 / fan, or a uniform one of the same
 * variance. */
static void scaled(start *s, double fan)
{
    const double limit = sqrt(6 / fan);
    if (s->init->gaussian)
        normal_op(s, "gaussian_random", 0, sqrt(2 / fan));
    else
        uniform_op(s, -limit, limit);
}

static fl_err xavier(start *s)
{
    double in, out;
    fans(&s->var->shape, &in, &out);
    if (s->init->fan_in)
        in = s->init->fan_in;
    if (s->init->fan_out)
        out = s->init->fan_out;
    scaled(s, in + out);
    return FL_OK;
}

static fl_err msra(start *s)
{
    double in, out;
    fans(&s->var->shape, &in, &out);
    scaled(s, s->init->fan_in ? s->init->fan_in : in);
    return FL_OK;
}

/* Weights by which a transposed convolution interpolates. */
static fl_err bilinear(start *s)
{
    const fl_shape *shape = &s->var->shape;
    char text[FL_SHAPE_TEXT];
    if (shape->rank != 4 || shape->dim[2] != shape->dim[3])
        return fl_fail(FL_ESHAPE,
                       "initialiser \"bilinear\" of \"%s\": shape is %s, "
                       "expected four dimensions, the last two equal",
                       s->var->name, fl_shape_text(shape, text));
    const int64_t n = fl_shape_numel(shape);
    FL_TRY(fl_values_fit(s->var->name, n));
    float *w = fl_arena_alloc(s->net->arena, (size_t)n * sizeof *w);
    const int64_t size = shape->dim[3];
    const double f = ceil((double)size / 2);
    const double c = (2 * f - 1 - fmod(f, 2)) / (2 * f);
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)(i % size), y = (double)(i / size % size);
        w[i] = (float)((1 - fabs(x / f - c)) * (1 - fabs(y / f - c)));
    }
    const fl_tensor t = fl_tensor_view(FL_F32, shape, w);
    s->d = fl_net_desc(s->net, "assign_value");
    return fl_set_values(s->d, s->var->name, &t, FL_F32);
}

static fl_err array(start *s)
{
    const fl_tensor *t = s->init->array;
    char is[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    if (!t || !t->data)
        return fl_fail(FL_EINVAL,
                       "initialiser \"array\" of \"%s\": no array is given",
                       s->var->name);
    if (!fl_shape_equal(&t->shape, &s->var->shape))
        return fl_fail(FL_ESHAPE,
                       "initialiser \"array\" of \"%s\": the array is %s, the "
                       "variable %s",
                       s->var->name, fl_shape_text(&t->shape, is),
                       fl_shape_text(&s->var->shape, want));
    s->d = fl_net_desc(s->net, "assign_value");
    return fl_set_values(s->d, s->var->name, t,
                         fl_is_float(s->var->dtype) ? FL_F32 : FL_I32);
}

/* Names of the temporaries are Fluid's, one of them misspelt there. */
static const struct kind {
    const char *name;
    fl_err (*make)(start *s); /* complete except for Out and dtype */
    const char *tmp;
    bool assigns; /* assign_value makes f32 and i32 only */
} kinds[] = {
    {"constant", constant, "constant_init.tmp"},
    {"uniform", uniform, "uniform_random.tmp"},
    {"normal", normal, "gaussian_random.tmp"},
    {"truncated_normal", truncated, "truncated_gaussian_random.tmp"},
    {"xavier", xavier, "xavier_init.tmp"},
    {"msra", msra, "masra_init.tmp"},
    {"bilinear", bilinear, "bilinear_init.tmp", true},
    {"array", array, "numpy_array_init.tmp", true},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    return NULL;
}

/* The dtype that the op computes for a variable of that dtype. */
static fl_dtype made_dtype(const struct kind *k, fl_dtype want)
{
    if (k->assigns)
        return fl_is_float(want) ? FL_F32 : FL_I32;
    return want == FL_F16 ? FL_F32 : want;
}

static fl_err put_op(start *s, const char *out, fl_dtype dtype)
{
    fl_desc_set_out1(s->d, "Out", out);
    fl_set_int(s->d, "dtype", dtype);
    return fl_net_start(s->net, 0, s->d);
}

static fl_err put_cast(start *s, const char *key, fl_dtype from)
{
    fl_net *n = s->net;
    fl_var *tmp, like = {.name = fl_names_generate(n->names, n->arena, key),
                         .dtype = from,
                         .shape = s->var->shape};
    FL_TRY(fl_block_add_var(s->var->block, &like, &tmp));
    FL_TRY(put_op(s, tmp->name, from));
    fl_desc *d = fl_net_desc(n, "cast");
    fl_desc_set_in1(d, "X", tmp->name);
    fl_desc_set_out1(d, "Out", s->var->name);
    fl_set_int(d, "in_dtype", from);
    fl_desc_set_attr(d,
                     &(fl_attr){"out_dtype", FL_ATTR_INT, .i = s->var->dtype});
    return fl_net_start(n, -1, d);
}

static bool is_written(const fl_block *b, const char *name)
{
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        for (int s = 0; s < d->n_out; s++)
            for (int j = 0; j < d->out[s].n; j++)
                if (!strcmp(d->out[s].name[j], name))
                    return true;
    }
    return false;
}

fl_err fl_init_emit(const fl_init *i, fl_net *n, fl_var *v)
{
    start s = {i, n, NULL, NULL};
    fl_block *b = fl_program_block(n->startup, 0);
    fl_var like = *v;
    like.persistable = true;
    FL_TRY(fl_block_add_var(b, &like, &s.var));
    if (is_written(b, v->name))
        return FL_OK;
    if (i->emit)
        return i->emit(i, n, s.var);
    const struct kind *k = find_kind(i->kind);
    if (!k)
        return fl_fail(FL_EINVAL,
                       "initialiser of \"%s\": there is no kind \"%s\"",
                       v->name, i->kind ? i->kind : "");
    FL_TRY(k->make(&s));
    const fl_dtype made = made_dtype(k, v->dtype);
    return made == v->dtype ? put_op(&s, v->name, made)
                            : put_cast(&s, k->tmp, made);
}
