/* SPDX-License-Identifier: Apache-2.0 */
/* weight_norm.c - a weight that is computed from a direction and a length.
 *
 *     w = g * v / |v|
 *
 * NAME_v has the shape and the initial value of w; NAME_g is initialised with
 * the norm of v, so that w is initially equal to v. The norm is over all
 * dimensions but one, or over all. Its ops are once in the startup program,
 * and in the main program at every use of the weight. */
#include "build/net.h"

#include "build/layer.h"

#include <string.h>

/* The program to which the ops of a norm are appended. */
typedef struct place {
    fl_net *net;
    bool start; /* the startup program; else the current block of main */
    const char *layer;
    int dim; /* dimension that is left out; -1: none */
} place;

static fl_err temporary(const place *p, const char *key, fl_dtype dtype,
                        fl_var **out)
{
    fl_net *n = p->net;
    const fl_var like = {
        .name = fl_names_generate(
            n->names, n->arena,
            fl_arena_printf(n->arena, "%s.weight_norm_%s", p->layer, key)),
        .dtype = dtype,
    };
    return fl_block_add_var(p->start ? fl_program_block(n->startup, 0)
                                     : fl_net_block(n),
                            &like, out);
}

static fl_err put_op(const place *p, fl_desc *d, const fl_var *x,
                     const fl_var *out)
{
    fl_set_in(d, "X", x);
    fl_set_out(d, "Out", out);
    return p->start ? fl_net_start(p->net, -1, d) : fl_net_append(p->net, d);
}

static fl_err put_pow(const place *p, double factor, const fl_var *x,
                      const fl_var *out)
{
    fl_desc *d = fl_net_desc(p->net, "pow");
    fl_set_float(d, "factor", factor);
    return put_op(p, d, x, out);
}

static fl_err put_sum(const place *p, const fl_var *x, const fl_var *out)
{
    int64_t dims[FL_MAX_RANK] = {0};
    int n = 0;
    for (int i = 0; i < x->shape.rank; i++)
        if (i != p->dim)
            dims[n++] = i;
    fl_desc *d = fl_net_desc(p->net, "reduce_sum");
    fl_set_ints(d, "dim", n, dims);
    fl_set_bool(d, "keep_dim", true);
    fl_set_bool(d, "reduce_all", false);
    return put_op(p, d, x, out);
}

/* Compute the norm of v into g, which exists in the startup program and is a
 * new variable in the main program. */
static fl_err norm(const place *p, const fl_var *v, fl_var **g)
{
    fl_var *absolute, *square, *sum;
    FL_TRY(temporary(p, "abs", v->dtype, &absolute));
    FL_TRY(put_op(p, fl_net_desc(p->net, "abs"), v, absolute));
    FL_TRY(temporary(p, "pow", v->dtype, &square));
    FL_TRY(put_pow(p, 2, absolute, square));
    FL_TRY(temporary(p, "sum", v->dtype, &sum));
    FL_TRY(put_sum(p, square, sum));
    if (!*g)
        FL_TRY(temporary(p, "norm", v->dtype, g));
    return put_pow(p, 0.5, sum, *g);
}

/* Initialise g with the norm of v. It is called instead of another initializer.
 */
typedef struct length {
    place at;
    const char *direction;
} length;

static fl_err start_length(const fl_init *self, fl_net *n, fl_var *g)
{
    const length *l = self->user;
    const fl_block *b = fl_program_block(n->startup, 0);
    return norm(&l->at, fl_block_var(b, l->direction), &g);
}

/* w = v * (g / |v|). The factor is one number, or one for each index of dim. */
static fl_err emit_weight(const place *p, fl_var *v, fl_var *g, fl_var **w)
{
    fl_var *norms = NULL, *scale, *flat;
    FL_TRY(norm(p, v, &norms));
    FL_TRY(fl_layer_get(p->net, "elementwise_div",
                        (fl_arg[]){{"x", .var = g}, {"y", .var = norms}, {0}},
                        &scale));
    const int64_t size = p->dim < 0 ? 1 : v->shape.dim[p->dim];
    FL_TRY(fl_layer_get(
        p->net, "reshape",
        (fl_arg[]){{"x", .var = scale}, {"shape", 1, .ints = &size}, {0}},
        &flat));
    return fl_layer_get(
        p->net, "elementwise_mul",
        (fl_arg[]){
            {"x", .var = v}, {"y", .var = flat}, {"axis", .i = p->dim}, {0}},
        w);
}

fl_err fl_net_weight_norm(fl_net *n, const fl_param_attr *attr,
                          const char *name, const char *layer, fl_dtype dtype,
                          const fl_shape *shape, const fl_init *init,
                          fl_var **out)
{
    const int dim = attr->weight_norm_dim;
    fl_shape lengths = {.rank = shape->rank};
    fl_var *v, *g;
    if (dim < -1 || dim >= shape->rank || (dim == 0 && shape->rank == 1))
        return fl_fail(FL_EINVAL,
                       "parameter \"%s\": dim of its weight normalisation is "
                       "%d, but it has %d dimensions",
                       name, dim, shape->rank);
    for (int i = 0; i < shape->rank; i++)
        lengths.dim[i] = i == dim ? shape->dim[i] : 1;
    fl_param_attr of = *attr;
    of.weight_norm = false;
    of.name = fl_arena_printf(n->arena, "%s_v", name);
    FL_TRY(fl_net_param(n, &of, layer, false, dtype, shape, init, &v));
    length l = {{n, true, layer, dim}, of.name};
    const fl_init start = {.emit = start_length, .user = &l};
    of.name = fl_arena_printf(n->arena, "%s_g", name);
    of.init = &start;
    FL_TRY(fl_net_param(n, &of, layer, false, dtype, &lengths, NULL, &g));
    return emit_weight(&(place){n, false, layer, dim}, v, g, out);
}
