/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/test_ops.h"

/* What the verifier says of a text; NULL: nothing. */
static void check(const char *text, const char *part)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_parse(r, text, &p));
    if (part)
        CHECK_ERR(fl_program_verify(p), FL_EINVAL, part);
    else
        CHECK_OK(fl_program_verify(p));
    fl_program_free(p);
    fl_registry_free(r);
}

static void passes_a_training_program(void)
{
    check("block 0\n"
          "  data x: f32[-1,13]\n"
          "  param w: f32[13,1]\n"
          "  var lr: f32[1] persistable\n"
          "  var y: f32[-1,1]\n"
          "  var w@GRAD: f32[13,1]\n"
          "  mul(X=x, Y=w) -> Out=y\n"
          "  mul_grad(X=x, Y=w, Out@GRAD=y) -> X@GRAD=@EMPTY@, Y@GRAD=w@GRAD\n"
          "  sgd(Param=w, Grad=w@GRAD, LearningRate=lr) -> ParamOut=w\n",
          NULL);
}

static void every_name_is_declared(void)
{
    check("block 0\n  var y: f32[1]\n  scale(X=x) -> Out=y\n",
          "op 0 \"scale\" in block 0 reads \"x\", which is declared neither "
          "there nor in its parents");
    check("block 0\n  data x: f32[1]\n  scale(X=x) -> Out=y\n",
          "op 0 \"scale\" in block 0 writes \"y\"");
    check("block 0\n  conditional_block() {sub_block=@1}\n"
          "block 1 parent=0\n  var y: f32[1]\n  scale(X=y) -> Out=y\n",
          NULL);
    check("block 0\n  var x: f32[1]\n  conditional_block() {sub_block=@1}\n"
          "  scale(X=y) -> Out=x\n"
          "block 1 parent=0\n  var y: f32[1]\n",
          "op 1 \"scale\" in block 0 reads \"y\"");
}

static void a_temporary_is_written_before_it_is_read(void)
{
    check("block 0\n  data x: f32[1]\n  var a: f32[1]\n  var b: f32[1]\n"
          "  scale(X=a) -> Out=b\n  scale(X=x) -> Out=a\n",
          "op 0 \"scale\" in block 0 reads \"a\", which is first written by op "
          "1 \"scale\"");
    check("block 0\n  var a: f32[1]\n  var b: f32[1]\n"
          "  scale(X=a) -> Out=b\n  scale(X=b) -> Out=b\n",
          NULL); /* a is fed */
    check("block 0\n  var a: f32[1] persistable\n  var b: f32[1]\n"
          "  scale(X=a) -> Out=b\n  scale(X=b) -> Out=a\n",
          NULL); /* a keeps its value from step to step */
    check("block 0\n  var a: f32[1]\n  var b: f32[1]\n  data x: f32[1]\n"
          "  conditional_block() {sub_block=@1}\n  scale(X=a) -> Out=b\n"
          "  scale(X=x) -> Out=a\nblock 1 parent=0\n  scale(X=x) -> Out=a\n",
          NULL); /* the sub-block writes it first */
}

static void a_parameter_is_complete(void)
{
    check("block 0\n  param w: f32[-1,1]\n",
          "parameter \"w\" has the shape [-1,1], expected known dimensions");
    check("block 0\n  param w: f32[1] !persistable\n",
          "parameter \"w\" is not persistable");
}

static void gradients_match_what_they_are_of(void)
{
    check("block 0\n  data x: f32[2,2]\n  data y: f32[2,2]\n"
          "  mul_grad(X=x, Y=y, Out@GRAD=x) -> X@GRAD=[x], Y@GRAD=[]\n",
          NULL);
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_parse(r,
                              "block 0\n  data x: f32[2]\n"
                              "  concat_grad(X=[x, x], Out@GRAD=x) -> "
                              "X@GRAD=x\n",
                              &p));
    CHECK_ERR(fl_program_verify(p), FL_EINVAL,
              "op 0 \"concat_grad\" in block 0 has 1 names in X@GRAD, but 2 in "
              "X");
    fl_program_free(p);
    fl_registry_free(r);
}

static void a_block_belongs_to_one_op_above_it(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_ERR(fl_program_parse(r,
                               "block 0\n  conditional_block() {sub_block=@1}\n"
                               "  conditional_block() {sub_block=@1}\n"
                               "block 1 parent=0\n",
                               &p),
              FL_EINVAL,
              "attribute sub_block is block 1, which belongs to another op "
              "(op 1 in block 0)");
    CHECK_ERR(fl_program_parse(r,
                               "block 0\nblock 1 parent=0\n"
                               "  conditional_block() {sub_block=@1}\n",
                               &p),
              FL_EINVAL,
              "attribute sub_block is block 1, which is not nested in block 1 "
              "(op 0 in block 1)");
    CHECK_ERR(fl_program_parse(r, "block 0\nblock 1\n", &p), FL_EINVAL,
              "block 1: its parent is block -1, expected an earlier one");
    fl_registry_free(r);
}

static void blocks_nest_only_so_deep(void)
{
    fl_registry *r = test_registry();
    fl_program *p = fl_program_make(r);
    for (int i = 0; i < 31; i++)
        fl_program_add_block(p, i);
    CHECK_OK(fl_program_verify(p));
    fl_program_add_block(p, 31);
    CHECK_ERR(fl_program_verify(p), FL_EINVAL,
              "block 32 is nested more than 32 deep");
    fl_program_free(p);
    fl_registry_free(r);
}

static void a_table_is_kept_after_changes_too(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_parse(
        r, "block 0\n  data x: f32[1]\n  scale(X=x) -> Out=x\n", &p));
    fl_desc_set_in1(&p->blocks.at[0]->ops.at[0]->desc, "Y", "x");
    CHECK_ERR(fl_program_verify(p), FL_EINVAL,
              "scale: the operator has no input Y (op 0 in block 0)");
    fl_program_free(p);
    fl_registry_free(r);
}

const fl_test fl_tests[] = {
    {"verify passes a training program", passes_a_training_program},
    {"every name is declared", every_name_is_declared},
    {"a temporary is written before it is read",
     a_temporary_is_written_before_it_is_read},
    {"a parameter is complete", a_parameter_is_complete},
    {"gradients match what they are of", gradients_match_what_they_are_of},
    {"a block belongs to one op above it", a_block_belongs_to_one_op_above_it},
    {"blocks nest only so deep", blocks_nest_only_so_deep},
    {"a table is kept after changes too", a_table_is_kept_after_changes_too},
    {0},
};
