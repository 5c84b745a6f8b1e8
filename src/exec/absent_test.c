/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/absent.h"

#include "exec/plan.h"
#include "exec/test_exec.h"

static void begin(rig *r, const char *text, bool absent)
{
    const char *const names[] = {"w", "w.block0", "w_moment_0"};
    rig_init(r, text, true);
    for (int i = 0; absent && i < 3; i++) {
        fl_var *v = fl_block_var(fl_program_block(r->program, 0), names[i]);
        if (v)
            v->absent = true;
    }
}

static fl_err run(rig *r)
{
    return fl_exe_run(r->exe, r->program, r->scope, 0, NULL, 0, NULL);
}

#define STARTS                                                                 \
    "block 0\n"                                                                \
    "  var w: f32[4,2] persistable\n"                                          \
    "  var w_moment_0: f32[4,2] persistable\n"                                 \
    "  var b: f32[2] persistable\n"                                            \
    "  var w.block0: f32[4,2]\n"                                               \
    "  fill_constant() -> Out=w {shape=[4l, 2l], value=3.0}\n"                 \
    "  fill_constant() -> Out=w_moment_0 {shape=[4l, 2l]}\n"                   \
    "  fill_constant() -> Out=b {shape=[2l], value=3.0}\n"                     \
    "  recv() -> Out=w.block0 {epmap=[\"127.0.0.1:1\"]}\n"                     \
    "  concat(X=[w.block0, w.block0]) -> Out=w\n"

/* No server listens, so a recv that ran would fail. */
static void what_is_absent_is_not_started(void)
{
    rig r;
    begin(&r, STARTS, true);
    CHECK_OK(run(&r));
    CHECK_NEAR(*(float *)fl_scope_find(r.scope, "b")->tensor.data, 3, 0);
    CHECK(fl_value_is_absent(fl_scope_find(r.scope, "w")));
    CHECK(fl_value_is_absent(fl_scope_find(r.scope, "w_moment_0")));
    CHECK_INT(fl_scope_find(r.scope, "w")->tensor.shape.dim[0], 4);
    rig_fini(&r);
}

static void all_else_is_started(void)
{
    rig r;
    begin(&r,
          "block 0\n  var w: f32[4,2] persistable\n"
          "  fill_constant() -> Out=w {shape=[4l, 2l], value=3.0}\n",
          false);
    CHECK_OK(run(&r));
    CHECK_NEAR(*(float *)fl_scope_find(r.scope, "w")->tensor.data, 3, 0);
    rig_fini(&r);
}

/* --- start values that an earlier process has kept --- */

static bool it_is_kept;

static bool is_kept(const fl_program *p)
{
    return it_is_kept;
}

static bool is_absent(const rig *r, const char *name)
{
    return fl_value_is_absent(fl_scope_find(r->scope, name));
}

static fl_err start(rig *r)
{
    return fl_exe_run(r->exe, r->program, r->scope, 0, NULL, 0, NULL);
}

/* `used` is read by another op; `row` has another shape than its variable. */
static void large_start_values_that_are_kept_are_not_made(void)
{
    rig r;
    fl_handle job = {0};
    rig_init(&r,
             "block 0\n"
             "  var w: f32[128,128] persistable\n"
             "  var used: f32[128,128] persistable\n"
             "  var row: f32[99999,2] persistable\n"
             "  var few: f32[2] persistable\n"
             "  var m: f32[1] persistable\n"
             "  fill_constant() -> Out=w {shape=[128,128], value=3.0}\n"
             "  fill_constant() -> Out=used {shape=[128,128], value=3.0}\n"
             "  fill_constant() -> Out=row {shape=[1,2], value=3.0}\n"
             "  fill_constant() -> Out=few {shape=[2], value=3.0}\n"
             "  mean(X=used) -> Out=m\n",
             true);
    fl_exe_free(r.exe);
    r.exe = fl_exe_make(&(fl_exec_env){.registry = fl_check_registry(),
                                       .disk = fl_disk_real(),
                                       .entropy = &r.entropy,
                                       .kept = is_kept});
    it_is_kept = true;
    CHECK_OK(start(&r)); /* it is no part of a job */
    CHECK(!is_absent(&r, "w"));
    fl_count_init(&job.refs, 1);
    fl_program_set_job(r.program, &job);
    for (int i = 0; i < 4; i++) {
        it_is_kept = i % 2;
        fl_scope_free(r.scope);
        r.scope = fl_scope_new();
        CHECK_OK(start(&r));
        CHECK_INT(is_absent(&r, "w"), it_is_kept);
        CHECK(!is_absent(&r, "used") && !is_absent(&r, "few"));
        CHECK_INT(fl_scope_find(r.scope, "row")->tensor.shape.dim[0], 1);
        it_is_kept = !it_is_kept; /* the same scope again */
        CHECK_OK(start(&r));
        CHECK(!is_absent(&r, "w"));
    }
    fl_program_set_job(r.program, NULL);
    rig_fini(&r);
}

/* --- ops that read an absent variable --- */

#define SENTENCE                                                               \
    "\"w\" is on the servers, and this process has no copy of it: look up "    \
    "its rows (embedding), or save all of it (fluid.io.save_persistables)"

static void a_reader_is_told_where_it_is(void)
{
    rig r;
    fl_tensor got = {0};
    begin(&r,
          "block 0\n  var w: f32[4,2] persistable\n  var y: f32[1]\n"
          "  mean(X=w) -> Out=y\n",
          true);
    CHECK_ERR(run(&r), FL_ENOENT, SENTENCE " (op 0 \"mean\" in block 0)");
    CHECK(fl_value_is_absent(fl_scope_find(r.scope, "w")));
    CHECK_ERR(fl_scope_get(r.scope, "w", &got), FL_ENOENT, SENTENCE);
    CHECK_ERR(fl_scope_set(r.scope, "w", &got), FL_ENOENT, SENTENCE);
    rig_fini(&r);
}

static void a_fetch_is_told_where_it_is(void)
{
    rig r;
    fl_fetch got = {"w", {0}};
    begin(&r, "block 0\n  var w: f32[4,2] persistable\n", true);
    CHECK_ERR(fl_exe_run(r.exe, r.program, r.scope, 0, NULL, 1, &got),
              FL_ENOENT, SENTENCE);
    rig_fini(&r);
}

/* A sparse gradient needs the height of the table, but none of its elements. */
static void a_sparse_gradient_needs_its_shape_alone(void)
{
    rig r;
    fl_fetch got = {"w@GRAD", {0}};
    const int64_t ids[] = {3, 1};
    begin(&r,
          "block 0\n  var w: f32[4,2] persistable\n"
          "  data ids: i64[-1,1]\n  data y@GRAD: f32[-1,2]\n"
          "  var w@GRAD: selected_rows f32[4,2]\n"
          "  lookup_table_grad(W=w, Ids=ids, Out@GRAD=y@GRAD) -> "
          "W@GRAD=w@GRAD {is_sparse=true}\n",
          true);
    const fl_feed feeds[] = {
        {"ids", fl_tensor_view(FL_I64, &(fl_shape){2, {2, 1}}, ids)},
        rig_feed("y@GRAD", 2, 2, (float[]){1, 2, 3, 4}),
    };
    CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 2, feeds, 1, &got));
    CHECK_INT(got.rows.height, 4);
    CHECK_INT(got.rows.n, 2);
    fl_fetch_fini(&got);
    rig_fini(&r);
}

static void memory_that_the_user_gave_it_stays(void)
{
    rig r;
    begin(&r,
          "block 0\n  var w: f32[1,2] persistable\n  var y: f32[1]\n"
          "  mean(X=w) -> Out=y\n",
          true);
    rig_set(&r, "w", (fl_shape){2, {1, 2}}, (float[]){1, 3});
    CHECK_OK(run(&r));
    CHECK(!fl_value_is_absent(fl_scope_find(r.scope, "w")));
    rig_fini(&r);
}

/* --- lookups of a program that was not transpiled --- */

/* The ops of the program's plan when w is absent. */
static char *planned(const char *text)
{
    rig r;
    fl_plan *plan;
    begin(&r, text, false);
    const fl_exec_env env = {.registry = fl_check_registry(),
                             .disk = fl_disk_real(),
                             .entropy = &r.entropy};
    fl_value_set_absent(fl_scope_var(r.scope, "w"), FL_F32,
                        &(fl_shape){2, {4, 2}});
    const fl_feed feeds[] = {{"a"}, {"b"}};
    const fl_request o = {
        .program = r.program, .scope = r.scope, .n_feeds = 2, .feeds = feeds};
    CHECK_OK(fl_plan_new(&env, &o, NULL, &plan));
    char *got = fl_plan_text(plan);
    fl_plan_free(plan);
    rig_fini(&r);
    return got;
}

#define TWO                                                                    \
    "block 0\n  var w: f32[4,2] persistable\n"                                 \
    "  data a: i64[-1,1]\n  data b: i64[-1,1]\n"                               \
    "  var x: f32[-1,2]\n  var y: f32[-1,2]\n  var z: f32[-1,2]\n"             \
    "  lookup_table(W=w, Ids=a) -> Out=x\n  relu(X=x) -> Out=z\n"

static void lookups_of_what_is_absent_go_together(void)
{
    char *text = planned(TWO "  lookup_table(W=w, Ids=b) -> Out=y\n");
    CHECK_STR(text, "0 distributed_lookup_table\n0 relu\n");
    fl_free(text);
    text = planned(TWO "  lookup_table(W=w, Ids=b) -> Out=y "
                       "{padding_idx=1l}\n");
    CHECK_STR(text, "0 distributed_lookup_table\n0 relu\n"
                    "0 distributed_lookup_table\n");
    fl_free(text);
}

static void ids_that_are_made_later_are_waited_for(void)
{
    char *text = planned(TWO "  assign(X=a) -> Out=b\n"
                             "  lookup_table(W=w, Ids=b) -> Out=y\n");
    CHECK_STR(text, "0 distributed_lookup_table\n0 relu\n0 assign\n"
                    "0 distributed_lookup_table\n");
    fl_free(text);
}

/* --- a table becomes absent or present --- */

#define LOOKS                                                                  \
    "block 0\n  var w: f32[4,2] persistable\n  data a: i64[-1,1]\n"            \
    "  var x: f32[-1,2]\n  lookup_table(W=w, Ids=a) -> Out=x\n"

static fl_err look_up(rig *r, fl_fetch *got)
{
    const int64_t ids[] = {1};
    const fl_feed feed = {"a",
                          fl_tensor_view(FL_I64, &(fl_shape){2, {1, 1}}, ids)};
    return fl_exe_run(r->exe, r->program, r->scope, 1, &feed, 1, got);
}

/* A test program runs before its trainer starts, while it trains, and with a
 * loaded model. Each time it needs another plan. */
static void a_plan_is_not_used_when_its_table_came_or_went(void)
{
    rig r;
    fl_fetch got = {"x", {0}};
    const float rows[8] = {0, 0, 5, 7};
    const fl_shape shape = {2, {4, 2}};
    begin(&r, LOOKS, false);
    CHECK_INT(look_up(&r, &got), FL_ENOENT);
    CHECK(strstr(fl_errmsg(), "run the startup program first"));
    fl_value_set_absent(fl_scope_var(r.scope, "w"), FL_F32, &shape);
    CHECK_INT(look_up(&r, &got), FL_EINVAL);
    CHECK(strstr(fl_errmsg(), "nothing here connects it to servers"));
    fl_value_fini(fl_scope_find(r.scope, "w"));
    for (int i = 0; i < 2; i++) { /* the second run uses the same plan */
        rig_set(&r, "w", shape, rows);
        CHECK_OK(look_up(&r, &got));
        CHECK_NEAR(((float *)got.tensor.data)[1], 7, 0);
    }
    fl_value_set_absent(fl_scope_find(r.scope, "w"), FL_F32, &shape);
    CHECK_INT(look_up(&r, &got), FL_EINVAL);
    fl_fetch_fini(&got);
    rig_fini(&r);
}

const fl_test fl_tests[] = {
    {"what is absent is not started", what_is_absent_is_not_started},
    {"without a place all is started", all_else_is_started},
    {"large start values that are kept are not made",
     large_start_values_that_are_kept_are_not_made},
    {"a reader of what is absent is told where it is",
     a_reader_is_told_where_it_is},
    {"a fetch of what is absent is told where it is",
     a_fetch_is_told_where_it_is},
    {"a sparse gradient needs the shape of its table alone",
     a_sparse_gradient_needs_its_shape_alone},
    {"memory that the user gave a table stays",
     memory_that_the_user_gave_it_stays},
    {"lookups of what is absent go together",
     lookups_of_what_is_absent_go_together},
    {"ids that are made later are waited for",
     ids_that_are_made_later_are_waited_for},
    {"a plan is not used when its table came or went",
     a_plan_is_not_used_when_its_table_came_or_went},
    {0},
};
