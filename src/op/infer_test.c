/* SPDX-License-Identifier: Apache-2.0 */
#include "base/test.h"
#include "op/op.h"

#include <string.h>

static fl_err nothing(fl_call *c)
{
    return FL_OK;
}

static const fl_op_def add = {
    .type = "add",
    .in = {{"X"}, {"Y", FL_OPTIONAL}, {"List", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out"}, {"X@GRAD"}},
    .attr = {{"axis", FL_ATTR_INT, .i = -1}},
    .infer = fl_infer_broadcast,
    .run = nothing,
};

/* Inputs X and Y, output Out, in one place. */
typedef struct scene {
    fl_op_def def;
    fl_attr attr[FL_ATTRS];
    fl_meta x, y, out;
    const fl_meta *in[2];
    fl_meta *to;
    fl_infer infer;
} scene;

static fl_meta meta(fl_dtype dtype, int rank, int64_t a, int64_t b)
{
    return (fl_meta){FL_LOD_TENSOR, dtype, {rank, {a, b}}, 0, NULL};
}

static fl_infer *with(scene *s, fl_meta x, fl_meta y)
{
    memset(s, 0, sizeof *s);
    s->def = add;
    memcpy(s->attr, add.attr, sizeof s->attr);
    s->x = x;
    s->y = y;
    s->in[0] = &s->x;
    s->in[1] = &s->y;
    s->to = &s->out;
    s->infer = (fl_infer){.def = &s->def, .attr = s->attr};
    s->infer.in[0] = &s->in[0];
    s->infer.in[1] = &s->in[1];
    s->infer.out[0] = &s->to;
    s->infer.n_in[0] = s->infer.n_in[1] = s->infer.n_out[0] = 1;
    return &s->infer;
}

static void finds_metas_by_slot(void)
{
    scene s;
    fl_infer *x = with(&s, meta(FL_F32, 1, 2, 0), meta(FL_F64, 1, 3, 0));
    CHECK(fl_meta_in(x, "Y", 0) == &s.y);
    CHECK(!fl_meta_in(x, "Y", 1));
    CHECK(!fl_meta_in(x, "List", 0));
    CHECK(fl_meta_out(x, "Out", 0) == &s.out);
    CHECK(!fl_meta_out(x, "X@GRAD", 0));
    CHECK_INT(fl_meta_count_in(x, "X"), 1);
    CHECK_INT(fl_meta_count_in(x, "Z"), 0);
    CHECK_INT(fl_meta_count_out(x, "X@GRAD"), 0);
    CHECK_INT(fl_meta_attr(x, "axis")->i, -1);
    CHECK_STR(fl_meta_type(x), "add");
    CHECK(!fl_meta_running(x));
}

static void outputs_that_nobody_wants_are_passed_over(void)
{
    scene s;
    fl_shape shape = {1, {4}};
    fl_infer *x = with(&s, meta(FL_F32, 1, 2, 0), meta(FL_F32, 1, 2, 0));
    fl_meta_set(x, "X@GRAD", 0, FL_F32, &shape);
    fl_meta_share_lod(x, "X", "X@GRAD");
    s.to = NULL;
    CHECK_OK(fl_infer_same(x));
    CHECK_OK(fl_infer_broadcast(x));
    CHECK_OK(fl_infer_scalar(x));
}

static void same_takes_shape_type_and_lod(void)
{
    scene s;
    fl_lod lod = {0};
    fl_infer *x = with(&s, meta(FL_I64, 2, -1, 3), meta(FL_F32, 1, 2, 0));
    s.x.lod = &lod;
    s.x.lod_level = 1;
    CHECK_OK(fl_infer_same(x));
    CHECK(!memcmp(&s.out, &s.x, sizeof s.out));
    CHECK_ERR(fl_infer_real(x), FL_ESHAPE,
              "add: X is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_scalar(x), FL_ESHAPE,
              "add: X is i64, expected f32 or f64");
}

static void types_are_told_in_a_sentence(void)
{
    scene s;
    fl_infer *x = with(&s, meta(FL_I16, 1, 2, 0), meta(FL_F32, 1, 2, 0));
    CHECK_OK(fl_meta_check(x, "X", FL_SET(FL_I16)));
    CHECK_OK(fl_meta_check(x, "List", FL_REALS)); /* there is none */
    CHECK_ERR(fl_meta_check(x, "X", FL_SET(FL_BOOL)), FL_ESHAPE,
              "add: X is i16, expected bool");
    CHECK_ERR(fl_meta_check(x, "X", FL_NUMBERS | FL_OR_ROWS), FL_ESHAPE,
              "add: X is i16, expected f32, f64, i64 or i32");
    s.y.kind = FL_SELECTED_ROWS;
    CHECK_OK(fl_meta_check(x, "Y", FL_REALS | FL_OR_ROWS));
    CHECK_ERR(fl_meta_check(x, "Y", FL_REALS), FL_ESHAPE,
              "add: Y is selected_rows, expected a tensor");
    s.y.kind = FL_LOD_TENSOR_ARRAY;
    CHECK_ERR(fl_meta_check(x, "Y", FL_REALS | FL_OR_ROWS), FL_ESHAPE,
              "add: Y is lod_tensor_array, expected a tensor");
}

static void likeness_bears_unknown_dims(void)
{
    scene s;
    fl_shape want = {2, {4, -1}};
    fl_infer *x = with(&s, meta(FL_F32, 2, -1, 3), meta(FL_F32, 2, 4, 3));
    CHECK_OK(fl_meta_alike(x, "X", "Y"));
    CHECK_OK(fl_meta_expect(x, "X", FL_F32, &want));
    CHECK_ERR(fl_meta_expect(x, "X", FL_F64, &want), FL_ESHAPE,
              "add: X is f32[-1,3], expected f64[4,-1]");
    s.y.shape.dim[1] = 5;
    CHECK_ERR(fl_meta_alike(x, "X", "Y"), FL_ESHAPE,
              "add: X is f32[-1,3], Y is f32[4,5]");
    s.y.shape.rank = 1;
    CHECK_ERR(fl_meta_alike(x, "X", "Y"), FL_ESHAPE, "Y is f32[4]");
    s.y = s.x;
    s.y.kind = FL_SELECTED_ROWS;
    CHECK_ERR(fl_meta_alike(x, "X", "Y"), FL_ESHAPE,
              "add: Y is selected_rows, expected a tensor");
}

static void check_fit(fl_shape a, fl_shape b, int64_t axis, fl_fit want)
{
    fl_fit f = fl_fit_of(&a, &b, axis);
    CHECK_INT(f.pre, want.pre);
    CHECK_INT(f.n, want.n);
    CHECK_INT(f.post, want.post);
}

static void a_fit_cuts_x_in_three(void)
{
    fl_shape x = {3, {2, 3, 4}};
    check_fit(x, x, -1, (fl_fit){1, 24, 1});
    check_fit(x, (fl_shape){1, {4}}, -1, (fl_fit){6, 4, 1});
    check_fit(x, (fl_shape){1, {3}}, 1, (fl_fit){2, 3, 4});
    check_fit(x, (fl_shape){2, {3, 1}}, 1, (fl_fit){2, 3, 4});
    check_fit(x, (fl_shape){2, {2, 3}}, 0, (fl_fit){1, 6, 4});
    check_fit(x, (fl_shape){1, {1}}, -1, (fl_fit){6, 1, 4});
}

static void what_does_not_fit_is_refused(void)
{
    scene s;
    fl_infer *x = with(&s, meta(FL_F32, 2, -1, 3), meta(FL_F32, 1, 3, 0));
    CHECK_OK(fl_infer_run(x));
    CHECK(!memcmp(&s.out, &s.x, sizeof s.out));
    s.attr[0].i = 0; /* 3 against an unknown: perhaps */
    CHECK_OK(fl_infer_run(x));
    s.attr[0].i = 2;
    CHECK_ERR(fl_infer_run(x), FL_ESHAPE,
              "add: Y [3] does not fit into X [-1,3] at axis 2");
    s.attr[0].i = -1;
    s.y.dtype = FL_F64;
    CHECK_ERR(fl_infer_run(x), FL_ESHAPE,
              "add: X is f32, Y is f64, expected one type");
}

static void an_input_that_is_needed_must_be_there(void)
{
    scene s;
    fl_infer *x = with(&s, meta(FL_F32, 1, 3, 0), meta(FL_F32, 1, 3, 0));
    s.in[0] = NULL; /* named, but as "@EMPTY@" */
    CHECK_ERR(fl_infer_run(x), FL_EINVAL, "add: input X is missing");
    x->n_in[0] = 0;
    CHECK_ERR(fl_infer_run(x), FL_EINVAL, "add: input X is missing");
}

const fl_test fl_tests[] = {
    {"metas are found by slot", finds_metas_by_slot},
    {"outputs that nobody wants are passed over",
     outputs_that_nobody_wants_are_passed_over},
    {"the rule `same` takes shape, type and LoD",
     same_takes_shape_type_and_lod},
    {"types are told in a sentence", types_are_told_in_a_sentence},
    {"likeness bears unknown dims", likeness_bears_unknown_dims},
    {"a fit cuts X in three", a_fit_cuts_x_in_three},
    {"what does not fit is refused", what_does_not_fit_is_refused},
    {"an input that is needed must be there",
     an_input_that_is_needed_must_be_there},
    {0},
};
