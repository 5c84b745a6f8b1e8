/* SPDX-License-Identifier: Apache-2.0 */
/* A test is two texts: the program before, and what backward adds to it. */
#include "build/grad.h"
#include "check/check.h"

#include <stdio.h>

typedef struct scene {
    fl_program *main, *startup;
    fl_names *names;
    fl_net *net;
    fl_param_grads grads;
    char *before; /* text */
} scene;

static void begin(scene *s, const char *text)
{
    *s = (scene){.names = fl_names_new(NULL)};
    const fl_registry *r = fl_check_registry();
    CHECK_OK(fl_program_parse(r, text, &s->main));
    s->startup = fl_program_make(r);
    s->net = fl_net_over(s->main, s->startup, s->names);
    s->before = fl_program_brief(s->main);
}

static void end(scene *s)
{
    CHECK_OK(fl_program_verify(s->main));
    fl_vec_fini(&s->grads);
    fl_net_free(s->net);
    fl_names_free(s->names);
    fl_program_free(s->main);
    fl_program_free(s->startup);
    fl_mem_free(s->before);
}

static fl_var *var(scene *s, const char *name)
{
    fl_var *v = NULL;
    CHECK_OK(fl_block_get(fl_program_block(s->main, 0), name, &v));
    return v;
}

/* Lines of the program that were not there before, in the net's arena. */
static const char *added(scene *s)
{
    char *now = fl_program_brief(s->main);
    char *out = fl_arena_alloc(s->net->arena, strlen(now) + 1), *to = out;
    for (char *line = now, *end; *line; line = end) {
        end = strchr(line, '\n') + 1;
        char old = *end;
        *end = 0;
        if (!strstr(s->before, line))
            to = stpcpy(to, line);
        *end = old;
    }
    fl_mem_free(now);
    return out;
}

static const char *grads_text(scene *s)
{
    char *text = fl_arena_alloc(s->net->arena, 1024), *to = text;
    for (int64_t i = 0; i < s->grads.n; i++)
        to += sprintf(to, "%s%s: %s", i ? ", " : "", s->grads.at[i].param->name,
                      s->grads.at[i].grad->name);
    return text;
}

#define FIT_A_LINE                                                             \
    "block 0\n"                                                                \
    "  data x: f32[-1,13]\n"                                                   \
    "  param w: f32[13,1]\n"                                                   \
    "  var xw: f32[-1,1]\n"                                                    \
    "  param b: f32[1]\n"                                                      \
    "  var y_predict: f32[-1,1]\n"                                             \
    "  data y: f32[-1,1]\n"                                                    \
    "  var diff: f32[-1,1]\n"                                                  \
    "  var cost: f32[-1,1]\n"                                                  \
    "  var loss: f32[1]\n"                                                     \
    "  mul(X=x, Y=w) -> Out=xw\n"                                              \
    "  elementwise_add(X=xw, Y=b) -> Out=y_predict {axis=1}\n"                 \
    "  elementwise_sub(X=y_predict, Y=y) -> Out=diff\n"                        \
    "  square(X=diff) -> Out=cost\n"                                           \
    "  mean(X=cost) -> Out=loss\n"

static void fits_a_line(void)
{
    scene s;
    begin(&s, FIT_A_LINE);
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(added(&s),
              "  var loss@GRAD: f32[1]\n"
              "  var cost@GRAD: f32[-1,1]\n"
              "  var diff@GRAD: f32[-1,1]\n"
              "  var y_predict@GRAD: f32[-1,1]\n"
              "  var xw@GRAD: f32[-1,1]\n"
              "  var b@GRAD: f32[1]\n"
              "  var w@GRAD: f32[13,1]\n"
              "  mean(X=cost) -> Out=loss {op_role=256}\n"
              "  fill_constant() -> Out=loss@GRAD {shape=[1l], op_role=257, "
              "value=1.0}\n"
              "  mean_grad(X=cost, Out@GRAD=loss@GRAD) -> X@GRAD=cost@GRAD "
              "{op_role=1}\n"
              "  square_grad(X=diff, Out@GRAD=cost@GRAD) -> X@GRAD=diff@GRAD "
              "{op_role=1}\n"
              "  elementwise_sub_grad(X=y_predict, Y=y, Out@GRAD=diff@GRAD) -> "
              "X@GRAD=y_predict@GRAD, Y@GRAD=@EMPTY@ {op_role=1}\n"
              "  elementwise_add_grad(X=xw, Y=b, Out@GRAD=y_predict@GRAD) -> "
              "X@GRAD=xw@GRAD, Y@GRAD=b@GRAD {axis=1, op_role=1, "
              "op_role_var=[\"b\", \"b@GRAD\"]}\n"
              "  mul_grad(X=x, Y=w, Out@GRAD=xw@GRAD) -> X@GRAD=@EMPTY@, "
              "Y@GRAD=w@GRAD {op_role=1, op_role_var=[\"w\", \"w@GRAD\"]}\n");
    CHECK_STR(grads_text(&s), "w: w@GRAD, b: b@GRAD");
    end(&s);
}

static void stops_where_it_is_told(void)
{
    scene s;
    begin(&s, "block 0\n"
              "  data x: f32[-1,4]\n"
              "  param u: f32[4,3]\n"
              "  param v: f32[3,2]\n"
              "  var a: f32[-1,3] stop_gradient\n"
              "  var b: f32[-1,2]\n"
              "  var loss: f32[1]\n"
              "  mul(X=x, Y=u) -> Out=a\n"
              "  mul(X=a, Y=v) -> Out=b\n"
              "  mean(X=b) -> Out=loss\n");
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(
        added(&s),
        "  var loss@GRAD: f32[1]\n"
        "  var b@GRAD: f32[-1,2]\n"
        "  var v@GRAD: f32[3,2]\n"
        "  mean(X=b) -> Out=loss {op_role=256}\n"
        "  fill_constant() -> Out=loss@GRAD {shape=[1l], op_role=257, "
        "value=1.0}\n"
        "  mean_grad(X=b, Out@GRAD=loss@GRAD) -> X@GRAD=b@GRAD {op_role=1}\n"
        "  mul_grad(X=a, Y=v, Out@GRAD=b@GRAD) -> X@GRAD=@EMPTY@, "
        "Y@GRAD=v@GRAD {op_role=1, op_role_var=[\"v\", \"v@GRAD\"]}\n");
    CHECK_STR(grads_text(&s), "v: v@GRAD");
    end(&s);
}

static void takes_lists_of_parameters(void)
{
    const char *params[] = {"b", "w"}, *none[] = {"w"};
    scene s;
    begin(&s, FIT_A_LINE);
    CHECK_OK(fl_backward(s.net, var(&s, "loss"),
                         &(fl_backward_opts){.n_params = 2, .params = params},
                         &s.grads));
    CHECK_STR(grads_text(&s), "b: b@GRAD, w: w@GRAD");
    end(&s);
    begin(&s, FIT_A_LINE);
    CHECK_OK(fl_backward(s.net, var(&s, "loss"),
                         &(fl_backward_opts){.n_no_grad = 1, .no_grad = none},
                         &s.grads));
    CHECK_STR(added(&s),
              "  var loss@GRAD: f32[1]\n"
              "  var cost@GRAD: f32[-1,1]\n"
              "  var diff@GRAD: f32[-1,1]\n"
              "  var y_predict@GRAD: f32[-1,1]\n"
              "  var xw@GRAD: f32[-1,1]\n"
              "  var b@GRAD: f32[1]\n"
              "  mean(X=cost) -> Out=loss {op_role=256}\n"
              "  fill_constant() -> Out=loss@GRAD {shape=[1l], op_role=257, "
              "value=1.0}\n"
              "  mean_grad(X=cost, Out@GRAD=loss@GRAD) -> X@GRAD=cost@GRAD "
              "{op_role=1}\n"
              "  square_grad(X=diff, Out@GRAD=cost@GRAD) -> X@GRAD=diff@GRAD "
              "{op_role=1}\n"
              "  elementwise_sub_grad(X=y_predict, Y=y, Out@GRAD=diff@GRAD) -> "
              "X@GRAD=y_predict@GRAD, Y@GRAD=@EMPTY@ {op_role=1}\n"
              "  elementwise_add_grad(X=xw, Y=b, Out@GRAD=y_predict@GRAD) -> "
              "X@GRAD=xw@GRAD, Y@GRAD=b@GRAD {axis=1, op_role=1, "
              "op_role_var=[\"b\", \"b@GRAD\"]}\n");
    CHECK_STR(grads_text(&s), "b: b@GRAD");
    end(&s);
}

static void passes_over_what_it_does_not_reach(void)
{
    scene s;
    begin(&s, "block 0\n"
              "  data x: f32[-1,4]\n"
              "  param u: f32[4,3]\n"
              "  param v: f32[4,3] !trainable\n"
              "  param w: f32[4,3]\n"
              "  var a: f32[-1,3]\n"
              "  var b: f32[-1,3]\n"
              "  var c: f32[-1,3]\n"
              "  var d: f32[-1,3]\n"
              "  var loss: f32[1]\n"
              "  mul(X=x, Y=u) -> Out=a\n"
              "  mul(X=x, Y=v) -> Out=b\n"
              "  mul(X=x, Y=w) -> Out=c\n"
              "  elementwise_add(X=a, Y=b) -> Out=d\n"
              "  mean(X=d) -> Out=loss\n");
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(
        added(&s),
        "  var loss@GRAD: f32[1]\n"
        "  var d@GRAD: f32[-1,3]\n"
        "  var a@GRAD: f32[-1,3]\n"
        "  var b@GRAD: f32[-1,3]\n"
        "  var u@GRAD: f32[4,3]\n"
        "  mean(X=d) -> Out=loss {op_role=256}\n"
        "  fill_constant() -> Out=loss@GRAD {shape=[1l], op_role=257, "
        "value=1.0}\n"
        "  mean_grad(X=d, Out@GRAD=loss@GRAD) -> X@GRAD=d@GRAD {op_role=1}\n"
        "  elementwise_add_grad(X=a, Y=b, Out@GRAD=d@GRAD) -> X@GRAD=a@GRAD, "
        "Y@GRAD=b@GRAD {op_role=1}\n"
        "  mul_grad(X=x, Y=u, Out@GRAD=a@GRAD) -> X@GRAD=@EMPTY@, "
        "Y@GRAD=u@GRAD {op_role=1, op_role_var=[\"u\", \"u@GRAD\"]}\n");
    CHECK_STR(grads_text(&s), "u: u@GRAD");
    end(&s);
}

static void asks_of_a_frozen_parameter_what_it_is_asked(void)
{
    scene s;
    const char *v = "v";
    begin(&s, "block 0\n"
              "  data x: f32[-1,4]\n"
              "  param v: f32[4,3] !trainable\n"
              "  var a: f32[-1,3]\n"
              "  var loss: f32[1]\n"
              "  mul(X=x, Y=v) -> Out=a\n"
              "  mean(X=a) -> Out=loss\n");
    fl_var *of = var(&s, "v"), *loss = var(&s, "loss"), *got;
    CHECK_OK(fl_gradients(s.net, 1, &loss, NULL, 1, &of, NULL, &got));
    CHECK_STR(got->name, "v@GRAD");
    CHECK_OK(fl_backward(s.net, loss,
                         &(fl_backward_opts){.n_params = 1, .params = &v},
                         &s.grads));
    CHECK_INT(s.grads.n, 1);
    end(&s);
}

static void fills_zeros_for_unused_outputs(void)
{
    scene s;
    begin(&s, "block 0\n"
              "  data x: f32[-1,4]\n"
              "  param u: f32[4,6]\n"
              "  var a: f32[-1,6]\n"
              "  var b: f32[-1,2]\n"
              "  var c: f32[-1,2]\n"
              "  var d: f32[-1,2]\n"
              "  var loss: f32[1]\n"
              "  mul(X=x, Y=u) -> Out=a\n"
              "  split(X=a) -> Out=[b, c, d] {num=3, axis=1}\n"
              "  mean(X=c) -> Out=loss\n");
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(
        added(&s),
        "  var loss@GRAD: f32[1]\n"
        "  var c@GRAD: f32[-1,2]\n"
        "  var b@GRAD: f32[-1,2]\n"
        "  var d@GRAD: f32[-1,2]\n"
        "  var a@GRAD: f32[-1,6]\n"
        "  var u@GRAD: f32[4,6]\n"
        "  mean(X=c) -> Out=loss {op_role=256}\n"
        "  fill_constant() -> Out=loss@GRAD {shape=[1l], op_role=257, "
        "value=1.0}\n"
        "  mean_grad(X=c, Out@GRAD=loss@GRAD) -> X@GRAD=c@GRAD {op_role=1}\n"
        "  fill_zeros_like(X=b) -> Out=b@GRAD {op_role=1}\n"
        "  fill_zeros_like(X=d) -> Out=d@GRAD {op_role=1}\n"
        "  concat(X=[b@GRAD, c@GRAD, d@GRAD]) -> Out=a@GRAD {axis=1, "
        "op_role=1}\n"
        "  mul_grad(X=x, Y=u, Out@GRAD=a@GRAD) -> X@GRAD=@EMPTY@, "
        "Y@GRAD=u@GRAD {op_role=1, op_role_var=[\"u\", \"u@GRAD\"]}\n");
    end(&s);
}

static void ends_at_an_op_without_gradient(void)
{
    scene s;
    begin(&s, "block 0\n"
              "  data x: f32[-1,4]\n"
              "  param u: f32[4,4]\n"
              "  param v: f32[4,4]\n"
              "  var a: f32[-1,4]\n"
              "  var r: f32[-1,4]\n"
              "  var b: f32[-1,4]\n"
              "  var loss: f32[1]\n"
              "  mul(X=x, Y=u) -> Out=a\n"
              "  fill_zeros_like(X=a) -> Out=r\n"
              "  mul(X=r, Y=v) -> Out=b\n"
              "  mean(X=b) -> Out=loss\n");
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(
        added(&s),
        "  var loss@GRAD: f32[1]\n"
        "  var b@GRAD: f32[-1,4]\n"
        "  var r@GRAD: f32[-1,4]\n"
        "  var v@GRAD: f32[4,4]\n"
        "  mean(X=b) -> Out=loss {op_role=256}\n"
        "  fill_constant() -> Out=loss@GRAD {shape=[1l], op_role=257, "
        "value=1.0}\n"
        "  mean_grad(X=b, Out@GRAD=loss@GRAD) -> X@GRAD=b@GRAD {op_role=1}\n"
        "  mul_grad(X=r, Y=v, Out@GRAD=b@GRAD) -> X@GRAD=r@GRAD, Y@GRAD=v@GRAD "
        "{op_role=1, op_role_var=[\"v\", \"v@GRAD\"]}\n");
    CHECK_STR(grads_text(&s), "v: v@GRAD");
    end(&s);
}

static void a_second_backward_has_names_of_its_own(void)
{
    scene s;
    begin(&s, FIT_A_LINE);
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, NULL));
    fl_mem_free(s.before);
    s.before = fl_program_brief(s.main);
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(
        added(&s),
        "  var loss@GRAD_0: f32[1]\n"
        "  var cost@GRAD_0: f32[-1,1]\n"
        "  var diff@GRAD_0: f32[-1,1]\n"
        "  var y_predict@GRAD_0: f32[-1,1]\n"
        "  var xw@GRAD_0: f32[-1,1]\n"
        "  var b@GRAD_0: f32[1]\n"
        "  var w@GRAD_0: f32[13,1]\n"
        "  fill_constant() -> Out=loss@GRAD_0 {shape=[1l], op_role=257, "
        "value=1.0}\n"
        "  mean_grad(X=cost, Out@GRAD=loss@GRAD_0) -> X@GRAD=cost@GRAD_0 "
        "{op_role=1}\n"
        "  square_grad(X=diff, Out@GRAD=cost@GRAD_0) -> X@GRAD=diff@GRAD_0 "
        "{op_role=1}\n"
        "  elementwise_sub_grad(X=y_predict, Y=y, Out@GRAD=diff@GRAD_0) -> "
        "X@GRAD=y_predict@GRAD_0, Y@GRAD=@EMPTY@ {op_role=1}\n"
        "  elementwise_add_grad(X=xw, Y=b, Out@GRAD=y_predict@GRAD_0) -> "
        "X@GRAD=xw@GRAD_0, Y@GRAD=b@GRAD_0 {axis=1, op_role=1, "
        "op_role_var=[\"b\", \"b@GRAD_0\"]}\n"
        "  mul_grad(X=x, Y=w, Out@GRAD=xw@GRAD_0) -> X@GRAD=@EMPTY@, "
        "Y@GRAD=w@GRAD_0 {op_role=1, op_role_var=[\"w\", \"w@GRAD_0\"]}\n");
    CHECK_STR(grads_text(&s), "w: w@GRAD_0, b: b@GRAD_0");
    end(&s);
}

#define TWO_LAYERS                                                             \
    "block 0\n"                                                                \
    "  data x: f32[-1,4] !stop_gradient\n"                                     \
    "  param u: f32[4,3]\n"                                                    \
    "  var a: f32[-1,3]\n"                                                     \
    "  var b: f32[-1,3]\n"                                                     \
    "  var g: f32[-1,3] stop_gradient\n"                                       \
    "  mul(X=x, Y=u) -> Out=a\n"                                               \
    "  tanh(X=a) -> Out=b\n"

static void gradients_start_with_ones(void)
{
    scene s;
    begin(&s, TWO_LAYERS);
    fl_var *b = var(&s, "b"), *in[] = {var(&s, "x"), var(&s, "g")};
    fl_var *got[2];
    CHECK_OK(fl_gradients(s.net, 1, &b, NULL, 2, in, NULL, got));
    CHECK_STR(
        added(&s),
        "  var b@GRAD: f32[-1,3]\n"
        "  var a@GRAD: f32[-1,3]\n"
        "  var x@GRAD: f32[-1,4]\n"
        "  var u@GRAD: f32[4,3]\n"
        "  fill_constant_batch_size_like(Input=b) -> Out=b@GRAD "
        "{by_rows=true, shape=[-1, 3], value=1.0, op_role=1}\n"
        "  tanh_grad(Out=b, Out@GRAD=b@GRAD) -> X@GRAD=a@GRAD {op_role=1}\n"
        "  mul_grad(X=x, Y=u, Out@GRAD=a@GRAD) -> X@GRAD=x@GRAD, Y@GRAD=u@GRAD "
        "{op_role=1}\n");
    CHECK_STR(got[0]->name, "x@GRAD");
    CHECK(!got[1]);
    end(&s);
}

static void gradients_start_with_what_is_given(void)
{
    scene s;
    begin(&s, TWO_LAYERS);
    fl_var *b = var(&s, "b"), *g = var(&s, "g"), *x = var(&s, "x"), *got;
    CHECK_OK(fl_gradients(s.net, 1, &b, &g, 1, &x, NULL, &got));
    CHECK_STR(added(&s),
              "  var a@GRAD: f32[-1,3]\n"
              "  var x@GRAD: f32[-1,4]\n"
              "  var u@GRAD: f32[4,3]\n"
              "  tanh_grad(Out=b, Out@GRAD=g) -> X@GRAD=a@GRAD {op_role=1}\n"
              "  mul_grad(X=x, Y=u, Out@GRAD=a@GRAD) -> X@GRAD=x@GRAD, "
              "Y@GRAD=u@GRAD {op_role=1}\n");
    CHECK_STR(got->name, "x@GRAD");
    end(&s);
}

/* a is read by three ops; its sum stands before the op that needs it. */
static void sums_up_what_comes_from_several(void)
{
    scene s;
    begin(&s, "block 0\n"
              "  data x: f32[-1,4]\n"
              "  param u: f32[4,3]\n"
              "  var a: f32[-1,3]\n"
              "  var b: f32[-1,3]\n"
              "  var c: f32[-1,3]\n"
              "  var loss: f32[1]\n"
              "  mul(X=x, Y=u) -> Out=a\n"
              "  elementwise_mul(X=a, Y=a) -> Out=b\n"
              "  elementwise_add(X=a, Y=b) -> Out=c\n"
              "  mean(X=c) -> Out=loss\n");
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(
        added(&s),
        "  var loss@GRAD: f32[1]\n"
        "  var c@GRAD: f32[-1,3]\n"
        "  var a@GRAD@RENAME@0: f32[-1,3]\n"
        "  var b@GRAD: f32[-1,3]\n"
        "  var a@GRAD@RENAME@1: f32[-1,3]\n"
        "  var a@GRAD@RENAME@2: f32[-1,3]\n"
        "  var a@GRAD: f32[-1,3]\n"
        "  var u@GRAD: f32[4,3]\n"
        "  mean(X=c) -> Out=loss {op_role=256}\n"
        "  fill_constant() -> Out=loss@GRAD {shape=[1l], op_role=257, "
        "value=1.0}\n"
        "  mean_grad(X=c, Out@GRAD=loss@GRAD) -> X@GRAD=c@GRAD {op_role=1}\n"
        "  elementwise_add_grad(X=a, Y=b, Out@GRAD=c@GRAD) -> "
        "X@GRAD=a@GRAD@RENAME@0, Y@GRAD=b@GRAD {op_role=1}\n"
        "  elementwise_mul_grad(X=a, Y=a, Out@GRAD=b@GRAD) -> "
        "X@GRAD=a@GRAD@RENAME@1, Y@GRAD=a@GRAD@RENAME@2 {op_role=1}\n"
        "  sum(X=[a@GRAD@RENAME@0, a@GRAD@RENAME@1, a@GRAD@RENAME@2]) -> "
        "Out=a@GRAD {op_role=1}\n"
        "  mul_grad(X=x, Y=u, Out@GRAD=a@GRAD) -> X@GRAD=@EMPTY@, "
        "Y@GRAD=u@GRAD {op_role=1, op_role_var=[\"u\", \"u@GRAD\"]}\n");
    CHECK_STR(grads_text(&s), "u: u@GRAD");
    end(&s);
}

/* Nobody reads a parameter's gradient: the sum stands at the end. */
static void sums_up_sparse_gradients_of_a_shared_table(void)
{
    scene s;
    begin(&s, "block 0\n"
              "  data i: i64[-1,1]\n"
              "  data j: i64[-1,1]\n"
              "  data k: i64[-1,1]\n"
              "  param emb: f32[10,4]\n"
              "  var a: f32[-1,4]\n"
              "  var b: f32[-1,4]\n"
              "  var c: f32[-1,4]\n"
              "  var all: f32[-1,12]\n"
              "  var loss: f32[1]\n"
              "  lookup_table(W=emb, Ids=i) -> Out=a {is_sparse=true}\n"
              "  lookup_table(W=emb, Ids=j) -> Out=b {is_sparse=true}\n"
              "  lookup_table(W=emb, Ids=k) -> Out=c {is_sparse=true}\n"
              "  concat(X=[a, b, c]) -> Out=all {axis=1}\n"
              "  mean(X=all) -> Out=loss\n");
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(
        strstr(added(&s), "  lookup_table_grad"),
        "  lookup_table_grad(W=emb, Ids=k, Out@GRAD=c@GRAD) -> "
        "W@GRAD=emb@GRAD@RENAME@0 {is_sparse=true, op_role=1}\n"
        "  lookup_table_grad(W=emb, Ids=j, Out@GRAD=b@GRAD) -> "
        "W@GRAD=emb@GRAD@RENAME@1 {is_sparse=true, op_role=1}\n"
        "  lookup_table_grad(W=emb, Ids=i, Out@GRAD=a@GRAD) -> "
        "W@GRAD=emb@GRAD@RENAME@2 {is_sparse=true, op_role=1}\n"
        "  sum(X=[emb@GRAD@RENAME@0, emb@GRAD@RENAME@1, emb@GRAD@RENAME@2]) -> "
        "Out=emb@GRAD {op_role=1, op_role_var=[\"emb\", \"emb@GRAD\"]}\n");
    CHECK_STR(grads_text(&s), "emb: emb@GRAD");
    CHECK_INT(s.grads.at[0].grad->kind, FL_SELECTED_ROWS);
    end(&s);
}

static void clips_errors_once_they_are_whole(void)
{
    scene s;
    begin(&s, FIT_A_LINE);
    var(&s, "y_predict")->error_clip =
        &(fl_clip){"value", .max = 0.5f, .min = -0.25f};
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    const char *text = strstr(added(&s), "  elementwise_sub_grad");
    CHECK_STR(text,
              "  elementwise_sub_grad(X=y_predict, Y=y, Out@GRAD=diff@GRAD) -> "
              "X@GRAD=y_predict@GRAD, Y@GRAD=@EMPTY@ {op_role=1}\n"
              "  clip(X=y_predict@GRAD) -> Out=y_predict@GRAD {min=-0.25, "
              "max=0.5, op_role=1}\n"
              "  elementwise_add_grad(X=xw, Y=b, Out@GRAD=y_predict@GRAD) -> "
              "X@GRAD=xw@GRAD, Y@GRAD=b@GRAD {axis=1, op_role=1, "
              "op_role_var=[\"b\", \"b@GRAD\"]}\n"
              "  mul_grad(X=x, Y=w, Out@GRAD=xw@GRAD) -> X@GRAD=@EMPTY@, "
              "Y@GRAD=w@GRAD {op_role=1, op_role_var=[\"w\", \"w@GRAD\"]}\n");
    end(&s);
    begin(&s, FIT_A_LINE);
    var(&s, "cost")->error_clip = &(fl_clip){"norm", .max = 2};
    CHECK_ERR(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads), FL_EINVAL,
              "error clip of \"cost\" is \"norm\", expected \"value\"");
    CHECK_STR(added(&s), "");
    end(&s);
}

/* One target leads to the other: what is asked of it is the sum of both. */
static void gradients_of_two_targets_add_up(void)
{
    scene s;
    begin(&s, TWO_LAYERS);
    fl_var *targets[] = {var(&s, "a"), var(&s, "b")}, *u = var(&s, "u"), *got;
    CHECK_OK(fl_gradients(s.net, 2, targets, NULL, 1, &u, NULL, &got));
    CHECK_STR(added(&s),
              "  var a@GRAD@RENAME@0: f32[-1,3]\n"
              "  var b@GRAD: f32[-1,3]\n"
              "  var a@GRAD@RENAME@1: f32[-1,3]\n"
              "  var a@GRAD: f32[-1,3]\n"
              "  var x@GRAD: f32[-1,4]\n"
              "  var u@GRAD: f32[4,3]\n"
              "  fill_constant_batch_size_like(Input=a) -> Out=a@GRAD@RENAME@0 "
              "{by_rows=true, shape=[-1, 3], value=1.0, op_role=1}\n"
              "  fill_constant_batch_size_like(Input=b) -> Out=b@GRAD "
              "{by_rows=true, shape=[-1, 3], value=1.0, op_role=1}\n"
              "  tanh_grad(Out=b, Out@GRAD=b@GRAD) -> X@GRAD=a@GRAD@RENAME@1 "
              "{op_role=1}\n"
              "  sum(X=[a@GRAD@RENAME@0, a@GRAD@RENAME@1]) -> Out=a@GRAD "
              "{op_role=1}\n"
              "  mul_grad(X=x, Y=u, Out@GRAD=a@GRAD) -> X@GRAD=x@GRAD, "
              "Y@GRAD=u@GRAD {op_role=1}\n");
    CHECK_STR(got->name, "u@GRAD");
    end(&s);
}

/* The shape of a does not fit what is read from a file; mul_grad sees it. */
static void a_failure_leaves_no_half(void)
{
    scene s;
    begin(&s, "block 0\n"
              "  data x: f32[-1,4]\n"
              "  param u: f32[4,3]\n"
              "  var a: f32[-1,2]\n"
              "  var b: f32[-1,2]\n"
              "  var loss: f32[1]\n"
              "  mul(X=x, Y=u) -> Out=a\n"
              "  tanh(X=a) -> Out=b\n"
              "  mean(X=b) -> Out=loss\n");
    CHECK_ERR(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads), FL_ESHAPE,
              "mul_grad: ");
    CHECK_STR(added(&s), "");
    CHECK_INT(s.grads.n, 0);
    end(&s);
}

#define CONDITIONAL(flags)                                                     \
    "block 0\n"                                                                \
    "  data yes: bool[1]\n"                                                    \
    "  data x: f32[-1,4]\n"                                                    \
    "  param u: f32[4,3]\n"                                                    \
    "  param v: f32[3,3]\n"                                                    \
    "  var a: f32[-1,3]\n"                                                     \
    "  var b: f32[-1,3]" flags "\n"                                            \
    "  var c: f32[-1,3]\n"                                                     \
    "  var scopes: step_scopes\n"                                              \
    "  var loss: f32[1]\n"                                                     \
    "  mul(X=x, Y=u) -> Out=a\n"                                               \
    "  conditional_block(Cond=yes, Input=a) -> Out=b, Scope=scopes "           \
    "{sub_block=@1}\n"                                                         \
    "  mul(X=b, Y=v) -> Out=c\n"                                               \
    "  mean(X=c) -> Out=loss\n"                                                \
    "block 1 parent=0\n"                                                       \
    "  tanh(X=a) -> Out=b\n"

static void says_so_where_a_block_has_no_gradient(void)
{
    scene s;
    begin(&s, CONDITIONAL(""));
    CHECK_ERR(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads), FL_EINVAL,
              "backward: a gradient flows into conditional_block, but there is "
              "no gradient of its sub-block");
    CHECK_STR(added(&s), "");
    end(&s);
    begin(&s, CONDITIONAL(" stop_gradient"));
    CHECK_OK(fl_backward(s.net, var(&s, "loss"), NULL, &s.grads));
    CHECK_STR(grads_text(&s), "v: v@GRAD");
    end(&s);
}

static void says_what_is_wrong(void)
{
    const char *params[] = {"v"};
    scene s;
    begin(&s, FIT_A_LINE);
    CHECK_ERR(fl_backward(s.net, var(&s, "cost"), NULL, NULL), FL_ESHAPE,
              "backward: the loss \"cost\" is [-1,1], expected one element");
    CHECK_ERR(fl_backward(s.net, var(&s, "b"), NULL, NULL), FL_EINVAL,
              "backward: no op writes the loss \"b\"");
    CHECK_ERR(fl_backward(s.net, var(&s, "loss"),
                          &(fl_backward_opts){.n_params = 1, .params = params},
                          NULL),
              FL_ENOENT, "there is no variable \"v\"");
    fl_var *targets[] = {var(&s, "cost"), var(&s, "loss")}, *x = var(&s, "w");
    fl_var *given[] = {var(&s, "diff"), var(&s, "b")}, *got;
    CHECK_ERR(fl_gradients(s.net, 1, targets, &x, 1, &x, NULL, &got), FL_ESHAPE,
              "gradients: target \"cost\" is [-1,1], its gradient \"w\" is "
              "[13,1]");
    CHECK_ERR(
        fl_gradients(s.net, 2, targets, given, 1, &x, NULL, &got), FL_EINVAL,
        "gradients: \"cost@GRAD\" cannot be given, because another target");
    CHECK_ERR(fl_gradients(s.net, 0, targets, NULL, 1, &x, NULL, &got),
              FL_EINVAL, "gradients: targets is empty");
    fl_var *none = NULL;
    CHECK_ERR(fl_gradients(s.net, 1, &none, NULL, 1, &x, NULL, &got), FL_EINVAL,
              "gradients: targets has a NULL at index 0");
    CHECK_ERR(fl_gradients(s.net, 1, targets, NULL, 1, &none, NULL, &got),
              FL_EINVAL, "gradients: inputs has a NULL at index 0");
    end(&s);
}

const fl_test fl_tests[] = {
    {"the gradient of fit a line has Fluid's ops and names", fits_a_line},
    {"backward stops where it is told", stops_where_it_is_told},
    {"backward takes lists of parameters", takes_lists_of_parameters},
    {"backward asks of a frozen parameter what it is asked",
     asks_of_a_frozen_parameter_what_it_is_asked},
    {"backward passes over what it does not reach",
     passes_over_what_it_does_not_reach},
    {"backward fills zeros for unused outputs", fills_zeros_for_unused_outputs},
    {"backward ends at an op without gradient", ends_at_an_op_without_gradient},
    {"a second backward has names of its own",
     a_second_backward_has_names_of_its_own},
    {"backward sums up what comes from several",
     sums_up_what_comes_from_several},
    {"backward sums up sparse gradients of a shared table",
     sums_up_sparse_gradients_of_a_shared_table},
    {"backward clips errors once they are whole",
     clips_errors_once_they_are_whole},
    {"a backward that fails leaves no half", a_failure_leaves_no_half},
    {"backward says so where a block has no gradient",
     says_so_where_a_block_has_no_gradient},
    {"backward says what is wrong", says_what_is_wrong},
    {"gradients start with ones", gradients_start_with_ones},
    {"gradients of two targets add up", gradients_of_two_targets_add_up},
    {"gradients start with what is given", gradients_start_with_what_is_given},
    {0},
};
