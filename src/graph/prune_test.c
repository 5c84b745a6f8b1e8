/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/test_ops.h"

/* Prune `text` to one target; the brief text of what is left, or the code. */
static void check_prune(const char *text, const char *target, const char *want)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL, *q = NULL;
    CHECK_OK(fl_program_parse(r, text, &p));
    CHECK_OK(fl_program_prune(p, 1, &target, &q));
    fl_program_free(p); /* nothing is shared */
    CHECK_OK(fl_program_verify(q));
    char *got = fl_program_brief(q);
    CHECK_STR(got, want);
    fl_mem_free(got);
    fl_program_free(q);
    fl_registry_free(r);
}

static void drops_what_comes_after_the_target(void)
{
    check_prune("random_seed 3\n"
                "block 0\n"
                "  data x: f32[-1,13]\n"
                "  data label: f32[-1,1]\n"
                "  param w: f32[13,1] lr=0.5\n"
                "  param unused: f32[1]\n"
                "  var y: f32[-1,1]\n"
                "  var loss: f32[-1,1]\n"
                "  var w@GRAD: f32[13,1]\n"
                "  mul(X=x, Y=w) -> Out=y\n"
                "  elementwise_add(X=y, Y=label) -> Out=loss\n"
                "  mul_grad(X=x, Y=w, Out@GRAD=loss) -> Y@GRAD=w@GRAD\n"
                "  sgd(Param=w, Grad=w@GRAD, LearningRate=unused) -> "
                "ParamOut=w\n",
                "y",
                "random_seed 3\n"
                "block 0\n"
                "  data x: f32[-1,13]\n"
                "  param w: f32[13,1] lr=0.5\n"
                "  var y: f32[-1,1]\n"
                "  mul(X=x, Y=w) -> Out=y\n");
}

static const char branches[] =
    "block 0\n"
    "  data x: f32[1]\n"
    "  data c: f32[1]\n"
    "  data d: f32[1]\n"
    "  var a: f32[1]\n"
    "  var b: f32[1]\n"
    "  conditional_block(Cond=c) -> Out=a {sub_block=@1}\n"
    "  conditional_block(Cond=c) {sub_block=@2}\n"
    "block 1 parent=0\n"
    "  scale(X=x) -> Out=a\n"
    "block 2 parent=0\n"
    "  var inner: f32[1]\n"
    "  scale(X=d) -> Out=inner\n"
    "  conditional_block() {sub_block=@3}\n"
    "block 3 parent=2\n"
    "  scale(X=inner) -> Out=b\n";

static void sub_blocks_read_and_write_for_their_op(void)
{
    check_prune(branches, "b",
                "block 0\n"
                "  data c: f32[1]\n"
                "  data d: f32[1]\n"
                "  var b: f32[1]\n"
                "  conditional_block(Cond=c) {sub_block=@1}\n"
                "block 1 parent=0\n"
                "  var inner: f32[1]\n"
                "  scale(X=d) -> Out=inner\n"
                "  conditional_block() {sub_block=@2}\n"
                "block 2 parent=1\n"
                "  scale(X=inner) -> Out=b\n");
    check_prune(branches, "a",
                "block 0\n"
                "  data x: f32[1]\n"
                "  data c: f32[1]\n"
                "  var a: f32[1]\n"
                "  conditional_block(Cond=c) -> Out=a {sub_block=@1}\n"
                "block 1 parent=0\n"
                "  scale(X=x) -> Out=a\n");
}

static void keeps_what_only_stands_there(void)
{
    check_prune(branches, "x", "block 0\n  data x: f32[1]\n");
}

static void names_a_target_that_cannot_be(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL, *q = NULL;
    const char *nothing[] = {"y"}, *loose[] = {"v"};
    CHECK_OK(fl_program_parse(r, "block 0\n  var v: f32[1]\n", &p));
    CHECK_ERR(fl_program_prune(p, 1, nothing, &q), FL_ENOENT,
              "prune: there is no variable \"y\"");
    CHECK_ERR(fl_program_prune(p, 1, loose, &q), FL_ENOENT,
              "prune: no op produces \"v\"");
    CHECK(!q);
    fl_program_free(p);
    fl_registry_free(r);
}

const fl_test fl_tests[] = {
    {"prune drops what comes after the target",
     drops_what_comes_after_the_target},
    {"sub-blocks read and write for their op",
     sub_blocks_read_and_write_for_their_op},
    {"prune keeps a target that only stands there",
     keeps_what_only_stands_there},
    {"prune names a target that cannot be", names_a_target_that_cannot_be},
    {0},
};
