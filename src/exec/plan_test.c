/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/test_exec.h"

#include "base/mem.h"

#include <string.h>

/* One step of sgd on mean(x * w). */
static const char step[] =
    "block 0\n"
    "  data x: f32[-1,2]\n"
    "  param w: f32[2,1]\n"
    "  var lr: f32[1] persistable\n"
    "  var y: f32[-1,1]\n"
    "  var loss: f32[1]\n"
    "  var loss@GRAD: f32[1]\n"
    "  var y@GRAD: f32[-1,1]\n"
    "  var w@GRAD: f32[2,1]\n"
    "  mul(X=x, Y=w) -> Out=y\n"
    "  mean(X=y) -> Out=loss\n"
    "  fill_constant() -> Out=loss@GRAD {shape=[1l], value=1.0, dtype=5}\n"
    "  mean_grad(X=y, Out@GRAD=loss@GRAD) -> X@GRAD=y@GRAD\n"
    "  mul_grad(X=x, Y=w, Out@GRAD=y@GRAD) -> Y@GRAD=w@GRAD\n"
    "  sgd(Param=w, LearningRate=lr, Grad=w@GRAD) -> ParamOut=w\n";

static const float two_rows[] = {1, 2, 3, 4};

static void step_init(rig *r, bool no_fuse)
{
    rig_init(r, step, no_fuse);
    rig_set(r, "w", (fl_shape){2, {2, 1}}, (float[]){1, 1});
    rig_set(r, "lr", (fl_shape){1, {1}}, (float[]){0.5f});
}

static void feeds_runs_and_fetches(void)
{
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
        rig r;
        fl_fetch got = {"loss", {0}};
        step_init(&r, no_fuse);
        fl_feed x = rig_feed("x", 2, 2, two_rows);
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
        CHECK_NEAR(*(float *)got.tensor.data, 5, 0);
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
        /* w is now {1 - 0.5 * 2, 1 - 0.5 * 3} */
        CHECK_NEAR(*(float *)got.tensor.data, -1.5, 1e-6);
        fl_tensor_fini(&got.tensor);
        rig_fini(&r);
    }
}

static void keeps_only_persistable_variables(void)
{
    rig r;
    step_init(&r, false);
    fl_feed x = rig_feed("x", 2, 2, two_rows);
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 0, NULL));
    CHECK(fl_scope_find(r.scope, "w"));
    CHECK(!fl_scope_find(r.scope, "y"));
    CHECK(!fl_scope_find(r.scope, "x"));
    rig_fini(&r);
}

static void makes_new_persistables_in_the_root_scope(void)
{
    rig r;
    rig_init(&r,
             "block 0\n  var w: f32[2] persistable\n"
             "  fill_constant() -> Out=w {shape=[2l], value=3.0, dtype=5}\n",
             false);
    fl_scope *kid = fl_scope_child(r.scope);
    CHECK_OK(fl_exe_run(r.exe, r.program, kid, 0, NULL, 0, NULL));
    CHECK_NEAR(*(float *)fl_scope_find(r.scope, "w")->tensor.data, 3, 0);
    rig_fini(&r);
}

static void allocates_nothing_from_the_third_step_on(void)
{
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
        rig r;
        fl_fetch got = {"loss", {0}};
        step_init(&r, no_fuse);
        fl_feed x = rig_feed("x", 2, 2, two_rows);
        for (int i = 0; i < 2; i++)
            CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
        uint64_t before = fl_mem_count();
        for (int i = 0; i < 100; i++)
            CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
        CHECK_INT((int64_t)(fl_mem_count() - before), 0);
        fl_tensor_fini(&got.tensor);
        rig_fini(&r);
    }
}

static void follows_a_batch_that_grows_and_shrinks(void)
{
    rig r;
    float rows[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    int64_t sizes[] = {2, 5, 1, 5};
    fl_fetch got = {"y", {0}};
    rig_init(&r,
             "block 0\n  data x: f32[-1,2]\n  param w: f32[2,1]\n"
             "  var y: f32[-1,1]\n  mul(X=x, Y=w) -> Out=y\n",
             false);
    rig_set(&r, "w", (fl_shape){2, {2, 1}}, (float[]){1, 2});
    for (int i = 0; i < 4; i++) {
        fl_feed x = rig_feed("x", sizes[i], 2, rows);
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
        CHECK_INT(got.tensor.shape.dim[0], sizes[i]);
        CHECK_NEAR(((float *)got.tensor.data)[sizes[i] - 1], 3, 0);
    }
    fl_tensor_fini(&got.tensor);
    rig_fini(&r);
}

static void fetches_are_the_callers_own(void)
{
    rig r;
    fl_fetch first = {"w", {0}}, second = {"w", {0}};
    step_init(&r, false);
    fl_feed x = rig_feed("x", 2, 2, two_rows);
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &first));
    float before = *(float *)first.tensor.data;
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &second));
    CHECK_NEAR(*(float *)first.tensor.data, before, 0);
    CHECK(*(float *)second.tensor.data != before);
    fl_tensor_fini(&first.tensor);
    fl_tensor_fini(&second.tensor);
    rig_fini(&r);
}

static void sees_a_program_that_changed(void)
{
    rig r;
    float one = 1;
    fl_fetch got = {"x", {0}};
    rig_init(&r,
             "block 0\n  var x: f32[1]\n"
             "  fill_constant() -> Out=x {shape=[1l], value=3.0, dtype=5}\n",
             false);
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 0, NULL, 1, &got));
    CHECK_NEAR(*(float *)got.tensor.data, 3, 0);
    fl_block *b = fl_program_block(r.program, 0);
    CHECK_OK(fl_op_set_attr(b->ops.at[0],
                            &(fl_attr){"value", FL_ATTR_FLOAT, .f = one}));
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 0, NULL, 1, &got));
    CHECK_NEAR(*(float *)got.tensor.data, 1, 0);
    fl_tensor_fini(&got.tensor);
    rig_fini(&r);
}

static void sees_a_variable_that_was_erased(void)
{
    rig r;
    step_init(&r, false);
    fl_feed x = rig_feed("x", 2, 2, two_rows);
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 0, NULL));
    CHECK(fl_scope_erase(r.scope, "w"));
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 0, NULL), FL_ENOENT,
              "\"w\" holds nothing yet: run the startup program first (in "
              "Python: exe.run(fluid.default_startup_program())), or load it "
              "(op 0 \"mul\" in block 0)");
    rig_set(&r, "w", (fl_shape){2, {2, 1}}, (float[]){1, 1});
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 0, NULL));
    rig_fini(&r);
}

static void runs_a_loaded_program_past_its_feed_and_fetch_ops(void)
{
    rig r;
    fl_fetch got = {"y", {0}};
    rig_init(&r,
             "block 0\n  var feed: feed_minibatch persistable\n"
             "  var fetch: fetch_list persistable\n  var x: f32[-1,2]\n"
             "  var y: f32[-1,2]\n  feed(X=feed) -> Out=x {col=0}\n"
             "  scale(X=x) -> Out=y {scale=2.0}\n"
             "  fetch(X=y) -> Out=fetch {col=0}\n",
             false);
    fl_feed x = rig_feed("x", 2, 2, two_rows);
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
    CHECK_NEAR(((float *)got.tensor.data)[3], 8, 0);
    fl_tensor_fini(&got.tensor);
    rig_fini(&r);
}

static void says_what_is_wrong_with_feeds_and_fetches(void)
{
    rig r;
    fl_fetch lost = {"lost", {0}}, got = {"loss", {0}};
    step_init(&r, false);
    fl_feed x = rig_feed("x", 2, 2, two_rows);
    fl_feed narrow = rig_feed("x", 4, 1, two_rows);
    fl_feed other = rig_feed("z", 2, 2, two_rows);
    fl_feed ids = {"x", {FL_I64, {2, {2, 2}}, .data = (void *)two_rows}};
    fl_feed negative = rig_feed("x", -3, 2, two_rows);
    fl_feed none = {"x", {FL_F32, {2, {2, 2}}}};
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 0, NULL, 1, &got),
              FL_ENOENT,
              "\"x\" is read, but nothing writes it: feed it (fed: nothing) "
              "(op 0 \"mul\" in block 0)");
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &narrow, 1, &got),
              FL_ESHAPE, "feed \"x\" is float32[4,1], expected float32[-1,2]");
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &ids, 1, &got),
              FL_ESHAPE, "feed \"x\" is int64[2,2], expected float32[-1,2]");
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &negative, 1, &got),
              FL_ESHAPE,
              "feed \"x\" is float32[-3,2]: a dimension is negative");
    int64_t off[] = {0, 3};
    fl_feed apart = x;
    apart.tensor.lod = (fl_lod){.levels = 1, .n = {2}, .off = {off}};
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &apart, 1, &got),
              FL_EINVAL,
              "lod: level 0 ends at 3, but there are 2 rows (feed \"x\")");
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &none, 1, &got),
              FL_EINVAL, "feed \"x\": the tensor has no memory");
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &other, 1, &got),
              FL_ENOENT, "feed \"z\": the program has no such variable");
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &lost), FL_ENOENT,
              "fetch \"lost\": the program has no such variable");
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
    fl_tensor_fini(&got.tensor);
    rig_fini(&r);
}

static void goes_on_after_a_step_that_failed(void)
{
    rig r;
    fl_fetch got = {"loss", {0}};
    step_init(&r, false);
    fl_feed x = rig_feed("x", 2, 2, two_rows);
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
    fl_value *w = fl_scope_find(r.scope, "w");
    fl_tensor good = w->tensor;
    w->tensor = (fl_tensor){0};
    rig_set(&r, "w", (fl_shape){2, {3, 1}}, (float[]){1, 1, 1});
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got), FL_ESHAPE,
              "(op 0 \"mul\" in block 0)");
    fl_tensor_fini(&w->tensor);
    w->tensor = good;
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 1, &got));
    fl_tensor_fini(&got.tensor);
    rig_fini(&r);
}

const fl_test fl_tests[] = {
    {"exe feeds, runs and fetches", feeds_runs_and_fetches},
    {"exe keeps only persistable variables", keeps_only_persistable_variables},
    {"exe makes new persistables in the root scope",
     makes_new_persistables_in_the_root_scope},
    {"exe allocates nothing from the third step on",
     allocates_nothing_from_the_third_step_on},
    {"exe follows a batch that grows and shrinks",
     follows_a_batch_that_grows_and_shrinks},
    {"fetches are the caller's own", fetches_are_the_callers_own},
    {"exe sees a program that changed", sees_a_program_that_changed},
    {"exe sees a variable that was erased", sees_a_variable_that_was_erased},
    {"exe runs a loaded program past its feed and fetch ops",
     runs_a_loaded_program_past_its_feed_and_fetch_ops},
    {"exe says what is wrong with feeds and fetches",
     says_what_is_wrong_with_feeds_and_fetches},
    {"exe goes on after a step that failed", goes_on_after_a_step_that_failed},
    {0},
};
