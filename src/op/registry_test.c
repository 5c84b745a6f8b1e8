/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "op/op.h"

#include <string.h>

static fl_err nothing(fl_call *c)
{
    return FL_OK;
}

static const fl_op_def twice = {
    .type = "twice",
    .in = {{"X"}, {"Mask", FL_NOGRAD | FL_OPTIONAL}},
    .out = {{"Out"}},
    .attr = {{"axis", FL_ATTR_INT, .i = -1}},
    .infer = fl_infer_same,
    .run = nothing,
    .grad_in = {"X", "Mask", "Out@GRAD"},
    .grad_run = nothing,
};

static const fl_op_def two_outs = {
    .type = "two_outs",
    .in = {{"X", FL_MANY}},
    .out = {{"A"}, {"B"}},
    .infer = fl_infer_none,
    .run = nothing,
    .grad_in = {"X", "A@GRAD", "B@GRAD"},
    .grad_run = nothing,
    .grad_type = "back",
};

static fl_err make(const fl_op_def *a, const fl_op_def *b, fl_registry **r)
{
    const fl_op_def *defs[] = {a, b};
    return fl_registry_new(defs, b ? 2 : 1, r);
}

static void derives_the_gradient(void)
{
    fl_registry *r;
    CHECK_OK(make(&twice, NULL, &r));
    CHECK_INT(fl_registry_count(r), 2);
    const fl_op_def *g = fl_registry_find(r, "twice_grad");
    CHECK(g == fl_registry_at(r, 1));
    CHECK_STR(g->in[0].name, "X");
    CHECK_STR(g->in[1].name, "Mask");
    CHECK_STR(g->in[2].name, "Out@GRAD");
    CHECK_STR(g->out[0].name, "X@GRAD");
    CHECK(!g->out[1].name);
    CHECK_STR(g->attr[0].name, "axis");
    CHECK(fl_registry_forward(r, "twice_grad") == &twice);
    CHECK(!fl_registry_forward(r, "twice"));
    CHECK(fl_op_differentiable(&twice));
    CHECK(!fl_op_differentiable(g));
    fl_registry_free(r);
}

static void a_gradient_needs_what_its_forward_needs(void)
{
    fl_registry *r;
    CHECK_OK(make(&twice, &two_outs, &r));
    const fl_op_def *g = fl_registry_find(r, "twice_grad");
    CHECK(!(g->in[0].flags & FL_OPTIONAL));
    CHECK(g->in[1].flags & FL_OPTIONAL);
    CHECK(!(g->in[2].flags & FL_OPTIONAL));
    g = fl_registry_find(r, "back"); /* of two outputs one may go unused */
    CHECK_INT(g->in[0].flags, FL_MANY);
    CHECK_INT(g->in[1].flags, FL_OPTIONAL);
    CHECK_INT(g->in[2].flags, FL_OPTIONAL);
    CHECK(g->out[0].flags & FL_MANY);
    fl_registry_free(r);
}

static void one_of_several_gradients_may_be_unwanted(void)
{
    fl_op_def pair = twice;
    fl_registry *r;
    CHECK_OK(make(&twice, NULL, &r));
    CHECK_INT(fl_registry_find(r, "twice_grad")->out[0].flags, 0);
    fl_registry_free(r);
    pair.in[2] = (fl_slot){"Y"};
    CHECK_OK(make(&pair, NULL, &r));
    CHECK_INT(fl_registry_find(r, "twice_grad")->out[0].flags, FL_OPTIONAL);
    CHECK_INT(fl_registry_find(r, "twice_grad")->out[1].flags, FL_OPTIONAL);
    fl_registry_free(r);
}

static void refuses(fl_op_def def, const char *sentence)
{
    fl_registry *r = NULL;
    CHECK_ERR(make(&def, NULL, &r), FL_EINVAL, sentence);
    CHECK(!r);
}

static void refuses_tables_that_are_wrong(void)
{
    fl_op_def d = twice;
    d.in[1].name = "X";
    refuses(d, "twice: input slot X is listed twice");
    d = twice;
    d.out[1].name = "Out";
    refuses(d, "twice: output slot Out is listed twice");
    d = twice;
    d.attr[1] = d.attr[0];
    refuses(d, "twice: attribute axis is listed twice");
    d = twice;
    d.infer = NULL;
    refuses(d, "twice: .run without .infer");
    d = twice;
    d.grad_in[1] = "Y";
    refuses(d,
            "twice: .grad_in Y is neither a slot nor the gradient of a slot");
    d.grad_in[1] = "Ou@GRAD";
    refuses(
        d,
        "twice: .grad_in Ou@GRAD is neither a slot nor the gradient of a slot");
    d = twice;
    memset(d.grad_in, 0, sizeof d.grad_in);
    refuses(d, "twice: .grad_run without .grad_in");
}

static fl_err emit(fl_grads *g)
{
    return FL_OK;
}

static void refuses_two_of_a_kind(void)
{
    fl_registry *r;
    fl_op_def d = twice;
    CHECK_ERR(make(&twice, &twice, &r), FL_EINVAL,
              "twice: the type is registered twice");
    d.type = "twice_grad"; /* collides with what is derived */
    CHECK_ERR(make(&twice, &d, &r), FL_EINVAL,
              "twice_grad: the type is registered twice");
    d = twice;
    d.make_grad = emit;
    refuses(d, "twice: both .grad_run and .make_grad");
}

static void knows_what_was_meant(void)
{
    fl_registry *r;
    const fl_op_def *def;
    CHECK_OK(make(&twice, &two_outs, &r));
    CHECK_OK(fl_registry_get(r, "twice", &def));
    CHECK(def == &twice);
    CHECK_ERR(fl_registry_get(r, "twise", &def), FL_ENOENT,
              "unknown op \"twise\"; did you mean \"twice\"?");
    CHECK_ERR(fl_registry_get(r, "conv2d_transpose", &def), FL_ENOENT,
              "unknown op \"conv2d_transpose\"");
    CHECK(!strstr(fl_errmsg(), "did you mean"));
    CHECK(!fl_registry_find(r, "twise"));
    fl_registry_free(r);
    fl_registry_free(NULL);
}

static void a_gradient_may_be_one_operator(void)
{
    fl_arena *a = fl_arena_new();
    fl_desc *fwd = fl_desc_new(a, "twice");
    fl_desc_set_in1(fwd, "X", "x");
    fl_desc_set_out1(fwd, "Out", "y");
    fl_grads g = {.fwd = fwd, .arena = a};
    fl_desc *d = fl_grad_back(&g, "scale");
    CHECK_INT(g.descs.n, 1);
    CHECK(g.descs.at[0] == d);
    CHECK_STR(d->type, "scale");
    CHECK_STR(fl_desc_in1(d, "X"), "y@GRAD");
    CHECK_STR(fl_desc_out1(d, "Out"), "x@GRAD");
    fl_vec_fini(&g.descs);
    fl_arena_free(a);
}

const fl_test fl_tests[] = {
    {"the registry derives the gradient", derives_the_gradient},
    {"a gradient needs what its forward operator needs",
     a_gradient_needs_what_its_forward_needs},
    {"one of several gradients may be unwanted",
     one_of_several_gradients_may_be_unwanted},
    {"the registry refuses tables that are wrong",
     refuses_tables_that_are_wrong},
    {"the registry refuses two of a kind", refuses_two_of_a_kind},
    {"the registry knows what was meant", knows_what_was_meant},
    {"a gradient may be one operator", a_gradient_may_be_one_operator},
    {0},
};
