/* SPDX-License-Identifier: Apache-2.0 */
#include "op/desc.h"

#include "base/test.h"
#include "op/op.h"

static fl_err nothing(fl_call *c)
{
    return FL_OK;
}

static const fl_op_def pad = {
    .type = "pad",
    .in = {{"X"}, {"Shape", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out"}},
    .attr = {{"value", FL_ATTR_FLOAT, .f = 2},
             {"mode", FL_ATTR_STRING, .s = "zero"},
             {"size", FL_ATTR_INTS, .required = true}},
    .infer = fl_infer_same,
    .run = nothing,
};

/* A desc that is all right. */
static fl_desc *good(fl_arena *a)
{
    static const int64_t size[] = {1};
    fl_desc *d = fl_desc_new(a, "pad");
    fl_desc_set_in1(d, "X", "x");
    fl_desc_set_out1(d, "Out", "y");
    fl_desc_set_attr(d,
                     &(fl_attr){"size", FL_ATTR_LONGS, .n = 1, .longs = size});
    return d;
}

static void keeps_names_in_order(void)
{
    fl_arena *a = fl_arena_new();
    fl_desc *d = good(a);
    const char *two[] = {"s0", "s1"};
    fl_desc_set_in(d, "Shape", 2, two);
    CHECK_STR(fl_desc_in1(d, "X"), "x");
    CHECK_STR(fl_desc_in(d, "Shape")->name[1], "s1");
    CHECK_STR(d->in[1].slot, "Shape");
    CHECK(!fl_desc_in(d, "Y"));
    CHECK(!fl_desc_out1(d, "X"));
    fl_desc_set_in1(d, "X", "z"); /* replaces, and keeps its place */
    CHECK_STR(d->in[0].name[0], "z");
    CHECK_INT(d->n_in, 2);
    fl_arena_free(a);
}

static void renames_every_use(void)
{
    fl_arena *a = fl_arena_new();
    fl_desc *d = good(a);
    const char *two[] = {"x", "s"};
    fl_desc_set_in(d, "Shape", 2, two);
    CHECK_INT(fl_desc_rename_in(d, "x", "w"), 2);
    CHECK_INT(fl_desc_rename_out(d, "x", "w"), 0);
    CHECK_INT(fl_desc_rename_out(d, "y", "v"), 1);
    CHECK_STR(fl_desc_in(d, "Shape")->name[0], "w");
    CHECK_STR(fl_desc_out1(d, "Out"), "v");
    fl_arena_free(a);
}

static void copies_stand_alone(void)
{
    fl_arena *a = fl_arena_new(), *b = fl_arena_new();
    fl_desc *d = fl_desc_dup(b, good(a));
    fl_arena_free(a);
    CHECK_STR(d->type, "pad");
    CHECK_STR(fl_desc_in1(d, "X"), "x");
    CHECK_INT(fl_desc_attr(d, "size")->longs[0], 1);
    CHECK_STR(fl_grad_name(b, "x"), "x@GRAD");
    fl_arena_free(b);
}

static void attributes_come_and_go(void)
{
    fl_arena *a = fl_arena_new();
    fl_desc *d = good(a);
    fl_desc_set_attr(d, &(fl_attr){"value", FL_ATTR_FLOAT, .f = 3});
    fl_desc_set_attr(d, &(fl_attr){"value", FL_ATTR_FLOAT, .f = 4});
    CHECK_INT(d->n_attr, 2);
    CHECK(fl_desc_attr(d, "value")->f == 4);
    CHECK(fl_desc_remove_attr(d, "size"));
    CHECK(!fl_desc_remove_attr(d, "size"));
    CHECK(!fl_desc_attr(d, "size"));
    CHECK_INT(d->n_attr, 1);
    fl_arena_free(a);
}

static void a_good_one_is_converted_to_its_table(void)
{
    fl_arena *a = fl_arena_new();
    fl_desc *d = good(a);
    const fl_attr *attr;
    CHECK_OK(fl_desc_check(&pad, d, false));
    CHECK_INT(fl_desc_attr(d, "size")->type, FL_ATTR_INTS);
    CHECK_OK(fl_desc_attrs(&pad, d, a, &attr));
    CHECK(attr[0].f == 2);
    CHECK_STR(attr[1].s, "zero");
    CHECK_INT(attr[2].longs[0], 1);
    fl_arena_free(a);
}

static void slots_that_are_wrong_are_refused(void)
{
    fl_arena *a = fl_arena_new();
    const char *two[] = {"a", "b"};
    fl_desc *d = good(a);
    fl_desc_set_in1(d, "Y", "y");
    CHECK_ERR(fl_desc_check(&pad, d, false), FL_EINVAL,
              "pad: the operator has no input Y");
    d = good(a);
    fl_desc_set_out1(d, "Y", "y");
    CHECK_ERR(fl_desc_check(&pad, d, true), FL_EINVAL,
              "pad: the operator has no output Y");
    d = good(a);
    fl_desc_set_in(d, "X", 2, two);
    CHECK_ERR(fl_desc_check(&pad, d, false), FL_EINVAL,
              "pad: input X has 2 names, expected one");
    d = good(a);
    fl_desc_set_in(d, "X", 0, two);
    CHECK_ERR(fl_desc_check(&pad, d, false), FL_EINVAL,
              "pad: input X is missing");
    fl_arena_free(a);
}

/* Kernels write them without looking. */
static void intermediates_must_be_there_too(void)
{
    fl_arena *a = fl_arena_new();
    fl_desc *d = good(a);
    fl_op_def op = pad;
    op.out[1] = (fl_slot){"Mask", FL_INTERMEDIATE};
    CHECK_ERR(fl_desc_check(&op, d, true), FL_EINVAL,
              "pad: output Mask is missing");
    fl_desc_set_out1(d, "Mask", FL_EMPTY);
    CHECK_ERR(fl_desc_check(&op, d, true), FL_EINVAL,
              "pad: output Mask is missing");
    op.out[1].flags |= FL_OPTIONAL;
    CHECK_OK(fl_desc_check(&op, d, true));
    fl_arena_free(a);
}

static void attributes_that_are_wrong_are_refused(void)
{
    fl_arena *a = fl_arena_new();
    fl_desc *d = good(a);
    fl_desc_set_attr(d, &(fl_attr){"depth", FL_ATTR_INT});
    CHECK_ERR(fl_desc_check(&pad, d, false), FL_EINVAL,
              "pad: the operator has no attribute depth");
    CHECK_OK(fl_desc_check(&pad, d, true)); /* a file from elsewhere */
    d = good(a);
    fl_desc_set_attr(d, &(fl_attr){"op_role", FL_ATTR_INT});
    CHECK_OK(fl_desc_check(&pad, d, false));
    fl_desc_set_attr(d, &(fl_attr){"value", FL_ATTR_STRING, .s = "x"});
    CHECK_ERR(fl_desc_check(&pad, d, true), FL_EINVAL,
              "pad: attribute value is string, expected float");
    d = good(a);
    fl_desc_remove_attr(d, "size");
    CHECK_ERR(fl_desc_check(&pad, d, true), FL_EINVAL,
              "pad: attribute size is missing");
    fl_arena_free(a);
}

static void attributes_of_other_machines_are_kept(void)
{
    fl_arena *a = fl_arena_new();
    fl_desc *d = good(a);
    fl_desc_set_attr(d, &(fl_attr){"use_cudnn", FL_ATTR_BOOL, .b = true});
    fl_desc_set_attr(d, &(fl_attr){"Scale_in", FL_ATTR_FLOAT, .f = 2});
    fl_desc_set_attr(d, &(fl_attr){"data_format", FL_ATTR_STRING, .s = "NCHW"});
    CHECK_OK(fl_desc_check(&pad, d, false));
    CHECK(fl_desc_attr(d, "use_cudnn")->b);
    CHECK_NEAR(fl_desc_attr(d, "Scale_in")->f, 2, 0);
    fl_desc_set_attr(d, &(fl_attr){"data_format", FL_ATTR_STRING, .s = "NHWC"});
    CHECK_ERR(fl_desc_check(&pad, d, true), FL_EINVAL,
              "pad: data_format is \"NHWC\", expected NCHW or AnyLayout");
    fl_desc_set_attr(d, &(fl_attr){"data_format", FL_ATTR_INT, .i = 1});
    CHECK_ERR(fl_desc_check(&pad, d, false), FL_EINVAL,
              "pad: data_format is int, expected NCHW or AnyLayout");
    fl_arena_free(a);
}

const fl_test fl_tests[] = {
    {"a desc keeps names in order", keeps_names_in_order},
    {"a desc renames every use", renames_every_use},
    {"copies of a desc stand alone", copies_stand_alone},
    {"attributes come and go", attributes_come_and_go},
    {"a good desc is converted to its table",
     a_good_one_is_converted_to_its_table},
    {"slots that are wrong are refused", slots_that_are_wrong_are_refused},
    {"intermediates must be there, too", intermediates_must_be_there_too},
    {"attributes that are wrong are refused",
     attributes_that_are_wrong_are_refused},
    {"attributes of other machines are kept",
     attributes_of_other_machines_are_kept},
    {0},
};
