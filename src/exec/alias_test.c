/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are written twice, viewed, fed or shared: every run of a plan
 * must give what the first one gave. */
#include "exec/test_exec.h"

static const float rows[] = {-1, 2, 3, -4, 5, 6};

/* Run three times, and check each time that `name` has the n elements `want`.
 */
static void check_runs(rig *r, int n_feeds, const fl_feed *feeds,
                       const char *name, int n, const float *want)
{
    fl_fetch got = {name, {0}};
    for (int run = 0; run < 3; run++) {
        CHECK_OK(
            fl_exe_run(r->exe, r->program, r->scope, n_feeds, feeds, 1, &got));
        CHECK_INT(fl_tensor_numel(&got.tensor), n);
        for (int i = 0; i < n; i++)
            CHECK_NEAR(((float *)got.tensor.data)[i], want[i], 0);
    }
    fl_tensor_fini(&got.tensor);
}

static void a_view_that_is_written_leaves_its_source(void)
{
    rig r;
    rig_init(&r,
             "block 0\n  data x: f32[-1,3]\n  var a: f32[-1,3]\n"
             "  var b: f32[6]\n  var c: f32[-1,3]\n"
             "  scale(X=x) -> Out=a {scale=1.0}\n"
             "  reshape(X=a) -> Out=b {shape=[6]}\n"
             "  relu(X=b) -> Out=b\n"
             "  scale(X=a) -> Out=c {scale=1.0}\n",
             true);
    fl_feed x = rig_feed("x", 2, 3, rows);
    check_runs(&r, 1, &x, "c", 6, rows);
    check_runs(&r, 1, &x, "b", 6, (float[]){0, 2, 3, 0, 5, 6});
    rig_fini(&r);
}

static void a_source_that_is_written_leaves_its_view(void)
{
    rig r;
    rig_init(&r,
             "block 0\n  data x: f32[-1,3]\n  var a: f32[-1,3]\n"
             "  var b: f32[6]\n"
             "  scale(X=x) -> Out=a {scale=1.0}\n"
             "  reshape(X=a) -> Out=b {shape=[6]}\n"
             "  relu(X=a) -> Out=a\n",
             true);
    fl_feed x = rig_feed("x", 2, 3, rows);
    check_runs(&r, 1, &x, "b", 6, rows);
    rig_fini(&r);
}

static void a_parameter_that_is_updated_leaves_its_view(void)
{
    rig r;
    fl_fetch got[] = {{"v", {0}}, {"w", {0}}};
    rig_init(&r,
             "block 0\n  param w: f32[2,1]\n  var lr: f32[1] persistable\n"
             "  var v: f32[2]\n"
             "  reshape(X=w) -> Out=v {shape=[2]}\n"
             "  sgd(Param=w, LearningRate=lr, Grad=w) -> ParamOut=w\n",
             true);
    rig_set(&r, "w", (fl_shape){2, {2, 1}}, (float[]){8, 16});
    rig_set(&r, "lr", (fl_shape){1, {1}}, (float[]){0.5f});
    for (float w = 8; w > 1; w /= 2) {
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 0, NULL, 2, got));
        CHECK_NEAR(*(float *)got[0].tensor.data, w, 0);
        CHECK_NEAR(*(float *)got[1].tensor.data, w / 2, 0);
    }
    fl_tensor_fini(&got[0].tensor);
    fl_tensor_fini(&got[1].tensor);
    rig_fini(&r);
}

static void a_name_may_have_two_shapes_in_one_run(void)
{
    rig r;
    fl_fetch got[] = {{"a", {0}}, {"b", {0}}};
    rig_init(&r,
             "block 0\n  data x: f32[-1]\n  var t: f32[-1]\n"
             "  var a: f32[-1]\n  var b: f32[-1]\n"
             "  relu(X=x) -> Out=t\n"
             "  scale(X=t) -> Out=a {scale=2.0}\n"
             "  fill_constant() -> Out=t {shape=[2l], value=3.0, dtype=5}\n"
             "  scale(X=t) -> Out=b {scale=2.0}\n",
             true);
    for (int run = 0; run < 3; run++) {
        float mine[] = {0, 0, 0, 0, (float)run};
        fl_feed x = {"x", fl_tensor_view(FL_F32, &(fl_shape){1, {5}}, mine)};
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 2, got));
        CHECK_INT(fl_tensor_numel(&got[0].tensor), 5);
        CHECK_NEAR(((float *)got[0].tensor.data)[4], 2 * run, 0);
        CHECK_INT(fl_tensor_numel(&got[1].tensor), 2);
        CHECK_NEAR(((float *)got[1].tensor.data)[1], 6, 0);
    }
    fl_tensor_fini(&got[0].tensor);
    fl_tensor_fini(&got[1].tensor);
    rig_fini(&r);
}

static void fed_memory_is_never_written(void)
{
    rig r;
    float mine[] = {-1, 2, 3, -4, 5, 6};
    rig_init(&r, "block 0\n  data x: f32[-1,3]\n  relu(X=x) -> Out=x\n", true);
    fl_feed x = rig_feed("x", 2, 3, mine);
    check_runs(&r, 1, &x, "x", 6, (float[]){0, 2, 3, 0, 5, 6});
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(mine[i], rows[i], 0);
    rig_fini(&r);
}

static void a_fed_variable_can_be_fetched_twice(void)
{
    rig r;
    fl_fetch got[] = {{"x", {0}}, {"x", {0}}};
    rig_init(&r, "block 0\n  data x: f32[-1,3]\n", false);
    fl_feed x = rig_feed("x", 2, 3, rows);
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 2, got));
    CHECK(got[0].tensor.data != got[1].tensor.data);
    for (int i = 0; i < 2; i++) {
        CHECK_NEAR(((float *)got[i].tensor.data)[5], 6, 0);
        fl_tensor_fini(&got[i].tensor);
    }
    rig_fini(&r);
}

static void a_name_is_fed_once(void)
{
    rig r;
    rig_init(&r, "block 0\n  data x: f32[-1,3]\n", false);
    fl_feed x[] = {rig_feed("x", 2, 3, rows), rig_feed("x", 1, 3, rows)};
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 2, x, 0, NULL), FL_EINVAL,
              "feed \"x\": it is fed twice");
    rig_fini(&r);
}

static void a_fed_parameter_stays_in_the_scope(void)
{
    rig r;
    float mine[] = {3, 4};
    rig_init(&r,
             "block 0\n  param w: f32[1,2]\n  var y: f32[1,2]\n"
             "  scale(X=w) -> Out=y {scale=2.0}\n",
             false);
    fl_feed w = rig_feed("w", 1, 2, mine);
    check_runs(&r, 1, &w, "y", 2, (float[]){6, 8});
    mine[0] = 100; /* the scope has a copy */
    fl_value *v = fl_scope_find(r.scope, "w");
    CHECK_NEAR(*(float *)v->tensor.data, 3, 0);
    check_runs(&r, 0, NULL, "y", 2, (float[]){6, 8});
    rig_fini(&r);
}

/* Block 1 sometimes changes the shape of y, though y is not in Out. */
static void a_block_that_writes_in_secret_is_seen(void)
{
    rig r;
    bool yes[] = {false, true, false};
    int64_t want[] = {6, 1, 6};
    fl_fetch got = {"z", {0}};
    rig_init(&r,
             "block 0\n  data x: f32[-1]\n  data if: bool[1]\n"
             "  var y: f32[-1]\n  var z: f32[-1]\n"
             "  var s: step_scopes\n"
             "  relu(X=x) -> Out=y\n"
             "  conditional_block(Cond=if) -> Scope=s "
             "{sub_block=@1, is_scalar_condition=true}\n"
             "  scale(X=y) -> Out=z {scale=2.0}\n"
             "block 1 parent=0\n"
             "  fill_constant() -> Out=y {shape=[1l], value=9.0, dtype=5}\n",
             true);
    for (int i = 0; i < 3; i++) {
        fl_feed feeds[] = {
            {"x", fl_tensor_view(FL_F32, &(fl_shape){1, {6}}, rows)},
            {"if", fl_tensor_view(FL_BOOL, &(fl_shape){1, {1}}, &yes[i])}};
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 2, feeds, 1, &got));
        CHECK_INT(fl_tensor_numel(&got.tensor), want[i]);
        CHECK_NEAR(*(float *)got.tensor.data, yes[i] ? 18 : 0, 0);
    }
    fl_tensor_fini(&got.tensor);
    rig_fini(&r);
}

static void a_new_name_in_a_child_hides_its_parents(void)
{
    rig r;
    fl_fetch got = {"y", {0}};
    rig_init(&r,
             "block 0\n  param w: f32[1]\n  var y: f32[1]\n"
             "  scale(X=w) -> Out=y {scale=2.0}\n",
             false);
    fl_scope *kid = fl_scope_child(r.scope);
    rig_set(&r, "w", (fl_shape){1, {1}}, (float[]){1});
    CHECK_OK(fl_exe_run(r.exe, r.program, kid, 0, NULL, 1, &got));
    CHECK_NEAR(*(float *)got.tensor.data, 2, 0);
    fl_value *v = fl_scope_var(kid, "w");
    v->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_copy(&v->tensor, &fl_scope_find(r.scope, "w")->tensor));
    *(float *)v->tensor.data = 5;
    CHECK_OK(fl_exe_run(r.exe, r.program, kid, 0, NULL, 1, &got));
    CHECK_NEAR(*(float *)got.tensor.data, 10, 0);
    fl_tensor_fini(&got.tensor);
    rig_fini(&r);
}

static void a_program_may_end_before_its_plan(void)
{
    rig r;
    rig_init(&r, "block 0\n  data x: f32[-1,3]\n  relu(X=x) -> Out=x\n", false);
    fl_feed x = rig_feed("x", 2, 3, rows);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &x, 0, NULL));
        fl_program *next = fl_program_clone(r.program, false);
        fl_program_free(r.program);
        r.program = next;
    }
    rig_fini(&r);
}

static void two_programs_share_a_scope(void)
{
    rig r;
    fl_program *other;
    rig_init(&r,
             "block 0\n  param w: f32[-1]\n  var y: f32[-1]\n"
             "  scale(X=w) -> Out=y {scale=2.0}\n",
             false);
    CHECK_OK(fl_program_parse(
        fl_check_registry(),
        "block 0\n  param w: f32[-1]\n"
        "  fill_constant() -> Out=w {shape=[3l], value=7.0, dtype=5}\n",
        &other));
    rig_set(&r, "w", (fl_shape){1, {1}}, (float[]){1});
    check_runs(&r, 0, NULL, "y", 1, (float[]){2});
    CHECK_OK(fl_exe_run(r.exe, other, r.scope, 0, NULL, 0, NULL));
    check_runs(&r, 0, NULL, "y", 3, (float[]){14, 14, 14});
    fl_program_free(other);
    rig_fini(&r);
}

const fl_test fl_tests[] = {
    {"a view that is written leaves its source as it was",
     a_view_that_is_written_leaves_its_source},
    {"a source that is written leaves its view as it was",
     a_source_that_is_written_leaves_its_view},
    {"a parameter that is updated leaves its view as it was",
     a_parameter_that_is_updated_leaves_its_view},
    {"a name may have two shapes in one run",
     a_name_may_have_two_shapes_in_one_run},
    {"fed memory is never written", fed_memory_is_never_written},
    {"a fed variable can be fetched twice",
     a_fed_variable_can_be_fetched_twice},
    {"a name is fed once", a_name_is_fed_once},
    {"a fed parameter stays in the scope", a_fed_parameter_stays_in_the_scope},
    {"a block that writes in secret is seen",
     a_block_that_writes_in_secret_is_seen},
    {"a new name in a child scope hides its parent's",
     a_new_name_in_a_child_hides_its_parents},
    {"a program may end before its plan", a_program_may_end_before_its_plan},
    {"two programs share a scope", two_programs_share_a_scope},
    {0},
};
