/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on several places. The thread sanitizer runs this, too. */
#include "base/pool.h"
#include "base/vec.h"
#include "exec/test_exec.h"
#include "ops/ops.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* One step of sgd on mean(x * w). */
#define VARS                                                                   \
    "block 0\n"                                                                \
    "  data x: f32[-1,2]\n"                                                    \
    "  param w: f32[2,1]\n"                                                    \
    "  var lr: f32[1] persistable\n"                                           \
    "  var y: f32[-1,1]\n"                                                     \
    "  var loss: f32[1]\n"                                                     \
    "  var loss@GRAD: f32[1]\n"                                                \
    "  var y@GRAD: f32[-1,1]\n"                                                \
    "  var w@GRAD: f32[2,1]\n"
#define FORWARD                                                                \
    "  mul(X=x, Y=w) -> Out=y\n"                                               \
    "  mean(X=y) -> Out=loss\n"
#define BACKWARD                                                               \
    "  fill_constant() -> Out=loss@GRAD {shape=[1l], value=1.0, dtype=5, "     \
    "op_role=257}\n"                                                           \
    "  mean_grad(X=y, Out@GRAD=loss@GRAD) -> X@GRAD=y@GRAD {op_role=1}\n"      \
    "  mul_grad(X=x, Y=w, Out@GRAD=y@GRAD) -> Y@GRAD=w@GRAD {op_role=1, "      \
    "op_role_var=[\"w\", \"w@GRAD\"]}\n"
#define UPDATE                                                                 \
    "  sgd(Param=w, LearningRate=lr, Grad=w@GRAD) -> ParamOut=w {op_role=2}\n"

static const float rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

static void start(rig *r, const char *text)
{
    rig_init(r, text, false);
    rig_set(r, "w", (fl_shape){2, {2, 1}}, (float[]){1, 1});
    rig_set(r, "lr", (fl_shape){1, {1}}, (float[]){0.5f});
}

static fl_err run(rig *r, int places, int64_t n_rows, fl_fetch *got)
{
    fl_feed x = rig_feed("x", n_rows, 2, rows);
    return fl_exe_run_places(r->exe, &(fl_places){.n = places}, r->program,
                             r->scope, 1, &x, got ? 1 : 0, got);
}

static void check_floats(const fl_tensor *t, int n, const float *want)
{
    CHECK_INT(fl_tensor_numel(t), n);
    for (int i = 0; i < n; i++)
        CHECK_NEAR(((float *)t->data)[i], want[i], 1e-6);
}

static void check_var(rig *r, const char *name, int n, const float *want)
{
    check_floats(&fl_scope_find(r->scope, name)->tensor, n, want);
}

/* --- gradients --- */

static void gradients_are_the_mean_of_places(void)
{
    rig r;
    fl_fetch loss = {"loss", {0}};
    start(&r, VARS FORWARD BACKWARD UPDATE);
    CHECK_OK(run(&r, 2, 4, &loss));
    check_floats(&loss.tensor, 2, (float[]){5, 13});
    /* columns of x have means 4 and 5 */
    check_var(&r, "w", 2, (float[]){1 - 0.5f * 4, 1 - 0.5f * 5});
    fl_tensor_fini(&loss.tensor);
    rig_fini(&r);
}

static void places_count_alike_though_the_last_has_more_rows(void)
{
    rig r;
    fl_fetch loss = {"loss", {0}};
    start(&r, VARS FORWARD BACKWARD UPDATE);
    CHECK_OK(run(&r, 2, 5, &loss)); /* 2 rows and 3 */
    check_floats(&loss.tensor, 2, (float[]){5, 15});
    check_var(&r, "w", 2, (float[]){1 - 0.25f * (2 + 7), 1 - 0.25f * (3 + 8)});
    fl_tensor_fini(&loss.tensor);
    rig_fini(&r);
}

static void gradients_may_be_summed(void)
{
    rig r;
    start(&r, VARS FORWARD BACKWARD UPDATE);
    fl_feed x = rig_feed("x", 4, 2, rows);
    fl_places sum = {.n = 2, .scale = FL_GRAD_SUM};
    CHECK_OK(fl_exe_run_places(r.exe, &sum, r.program, r.scope, 1, &x, 0, 0));
    check_var(&r, "w", 2, (float[]){1 - 0.5f * 8, 1 - 0.5f * 10});
    rig_fini(&r);
}

static void the_gradient_of_the_loss_may_be_fed(void)
{
    rig r;
    float seeds[] = {0.5f, 2};
    fl_shape two = {1, {2}};
    fl_feed feeds[2] = {
        rig_feed("x", 4, 2, rows),
        {"loss@GRAD", fl_tensor_view(FL_F32, &two, seeds)},
    };
    fl_places fed = {.n = 2, .scale = FL_GRAD_FED};
    start(&r, VARS FORWARD BACKWARD UPDATE);
    CHECK_OK(
        fl_exe_run_places(r.exe, &fed, r.program, r.scope, 2, feeds, 0, 0));
    check_var(&r, "w", 2,
              (float[]){1 - 0.5f * (0.5f * 2 + 2 * 6),
                        1 - 0.5f * (0.5f * 3 + 2 * 7)});
    CHECK_ERR(
        fl_exe_run_places(r.exe, &fed, r.program, r.scope, 1, feeds, 0, 0),
        FL_ENOENT, "\"loss@GRAD\" is read, but nothing writes it");
    rig_fini(&r);
}

static void a_persistable_gradient_is_summed_where_it_is(void)
{
    rig r;
    static const char text[] =
        "block 0\n  data x: f32[-1,2]\n  param w: f32[2,1]\n"
        "  var lr: f32[1] persistable\n  var y: f32[-1,1]\n"
        "  var loss: f32[1]\n  var loss@GRAD: f32[1]\n  var y@GRAD: f32[-1,1]\n"
        "  var w@GRAD: f32[2,1] persistable\n" FORWARD BACKWARD UPDATE;
    start(&r, text);
    for (int i = 0; i < 2; i++)
        CHECK_OK(run(&r, 2, 4, NULL));
    check_var(&r, "w@GRAD", 2, (float[]){4, 5});
    check_var(&r, "w", 2, (float[]){1 - 4, 1 - 5});
    rig_fini(&r);
}

/* --- fetches --- */

static void what_is_common_comes_from_every_place(void)
{
    rig r;
    fl_fetch got[] = {{"w", {0}}, {"w@GRAD", {0}}, {"y", {0}}};
    fl_feed x = rig_feed("x", 4, 2, rows);
    start(&r, VARS FORWARD BACKWARD);
    CHECK_OK(fl_exe_run_places(r.exe, &(fl_places){.n = 2}, r.program, r.scope,
                               1, &x, 3, got));
    check_floats(&got[0].tensor, 4, (float[]){1, 1, 1, 1});
    check_floats(&got[1].tensor, 4, (float[]){4, 5, 4, 5});
    check_floats(&got[2].tensor, 4, (float[]){3, 7, 11, 15});
    CHECK_INT(got[1].tensor.shape.dim[0], 4);
    CHECK_INT(got[1].tensor.shape.dim[1], 1);
    for (int i = 0; i < 3; i++)
        fl_tensor_fini(&got[i].tensor);
    rig_fini(&r);
}

static void fetched_shapes_that_do_not_fit_are_named(void)
{
    rig r;
    fl_fetch got = {"z", {0}};
    rig_init(&r,
             "block 0\n  data x: f32[-1,2]\n  var z: f32[2,-1]\n"
             "  transpose(X=x) -> Out=z {axis=[1, 0]}\n",
             false);
    CHECK_ERR(run(&r, 2, 5, &got), FL_ESHAPE,
              "float32[2,3] cannot be joined with float32[2,2] (fetch \"z\" of "
              "2 places)");
    rig_fini(&r);
}

/* --- feeds --- */

static void a_small_batch_has_fewer_places(void)
{
    rig r;
    fl_fetch loss = {"loss", {0}};
    start(&r, VARS FORWARD BACKWARD UPDATE);
    CHECK_OK(run(&r, 4, 3, &loss));
    check_floats(&loss.tensor, 3, (float[]){3, 7, 11});
    check_var(&r, "w", 2, (float[]){1 - 0.5f * 3, 1 - 0.5f * 4});
    CHECK_OK(run(&r, 4, 1, &loss));
    CHECK_INT(loss.tensor.shape.dim[0], 1);
    CHECK_ERR(run(&r, 0, 1, &loss), FL_EINVAL, "a run on 0 places");
    fl_tensor_fini(&loss.tensor);
    rig_fini(&r);
}

static void places_may_be_fed_apart(void)
{
    rig r;
    fl_fetch y = {"y", {0}};
    fl_feed x[] = {rig_feed("x", 1, 2, rows), rig_feed("x", 3, 2, rows + 2)};
    fl_places apart = {.n = 2, .apart = true};
    start(&r, VARS FORWARD);
    CHECK_OK(fl_exe_run_places(r.exe, &apart, r.program, r.scope, 1, x, 1, &y));
    check_floats(&y.tensor, 4, (float[]){3, 7, 11, 15});
    fl_tensor_fini(&y.tensor);
    rig_fini(&r);
}

static void sequences_stay_whole(void)
{
    rig r;
    fl_fetch sum = {"sum", {0}}, x = {"x", {0}};
    fl_feed feed = rig_feed("x", 5, 1, (float[]){1, 2, 3, 4, 5});
    int64_t outer[] = {0, 2, 3}, inner[] = {0, 1, 3, 5};
    feed.tensor.lod = (fl_lod){2, {3, 4}, {outer, inner}, NULL};
    rig_init(&r,
             "block 0\n  data x: f32[-1,1] lod=2\n  var sum: f32[-1,1]\n"
             "  var i: i32[-1,1]\n"
             "  sequence_pool(X=x) -> Out=sum, MaxIndex=i "
             "{pooltype=\"SUM\"}\n",
             false);
    CHECK_OK(fl_exe_run_places(r.exe, &(fl_places){.n = 3}, r.program, r.scope,
                               1, &feed, 1, &sum));
    check_floats(&sum.tensor, 3, (float[]){1, 5, 9});
    CHECK_OK(fl_exe_run_places(r.exe, &(fl_places){.n = 2}, r.program, r.scope,
                               1, &feed, 1, &x));
    CHECK(fl_lod_equal(&x.tensor.lod, &feed.tensor.lod));
    fl_tensor_fini(&sum.tensor);
    fl_tensor_fini(&x.tensor);
    rig_fini(&r);
}

/* --- state --- */

static void the_first_place_keeps_running_means(void)
{
    rig r;
    fl_fetch got = {"mean", {0}};
    const float one = 1, zero = 0;
    rig_init(&r,
             "block 0\n  data x: f32[-1,1]\n  param scale: f32[1]\n"
             "  param bias: f32[1]\n  var mean: f32[1] persistable\n"
             "  var var: f32[1] persistable\n  var y: f32[-1,1]\n"
             "  var m: f32[1]\n  var v: f32[1]\n"
             "  batch_norm(X=x, Scale=scale, Bias=bias, Mean=mean, "
             "Variance=var) -> Y=y, MeanOut=mean, VarianceOut=var, "
             "SavedMean=m, SavedVariance=v {momentum=0.5}\n",
             false);
    rig_set(&r, "scale", (fl_shape){1, {1}}, &one);
    rig_set(&r, "bias", (fl_shape){1, {1}}, &zero);
    rig_set(&r, "mean", (fl_shape){1, {1}}, &zero);
    rig_set(&r, "var", (fl_shape){1, {1}}, &one);
    for (int i = 0; i < 2; i++) {
        fl_feed x = rig_feed("x", 4, 1, (float[]){2, 4, 10, 30});
        CHECK_OK(fl_exe_run_places(r.exe, &(fl_places){.n = 2}, r.program,
                                   r.scope, 1, &x, 1, &got));
        fl_scope_drop_kids(r.scope); /* must not free the scopes of places */
    }
    check_var(&r, "mean", 1, (float[]){0.5f * 1.5f + 0.5f * 3});
    check_floats(&got.tensor, 2, (float[]){2.25f, 0.5f * 1.5f + 0.5f * 20});
    fl_tensor_fini(&got.tensor);
    rig_fini(&r);
}

static void schedules_count_a_step_once(void)
{
    rig r;
    const float zero = 0;
    static const char text[] = VARS
        "  var step: f32[1] persistable\n"
        "  increment(X=step) -> Out=step {step=1.0, op_role=16}\n"
        "  scale(X=step) -> Out=lr {scale=0.5, op_role=16}\n" FORWARD BACKWARD
            UPDATE;
    start(&r, text);
    rig_set(&r, "step", (fl_shape){1, {1}}, &zero);
    CHECK_OK(run(&r, 2, 4, NULL));
    check_var(&r, "step", 1, (float[]){1});
    check_var(&r, "w", 2, (float[]){1 - 0.5f * 4, 1 - 0.5f * 5});
    rig_fini(&r);
}

static void a_schedule_that_the_loss_reads_is_on_every_place(void)
{
    rig r;
    const float zero = 0;
    fl_fetch z = {"z", {0}};
    static const char text[] =
        VARS "  var step: f32[1] persistable\n  var rate: f32[1]\n"
             "  var z: f32[-1,1]\n"
             "  increment(X=step) -> Out=step {step=1.0, op_role=16}\n"
             "  scale(X=step) -> Out=rate {scale=0.5, op_role=16}\n" FORWARD
             "  elementwise_mul(X=y, Y=rate) -> Out=z\n" BACKWARD
             "  sgd(Param=w, LearningRate=rate, Grad=w@GRAD) -> ParamOut=w "
             "{op_role=2}\n";
    start(&r, text);
    rig_set(&r, "step", (fl_shape){1, {1}}, &zero);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(run(&r, 2, 4, &z));
        check_var(&r, "step", 1, (float[]){(float)i + 1});
        if (!i)
            check_floats(&z.tensor, 4, (float[]){1.5f, 3.5f, 5.5f, 7.5f});
    }
    check_var(&r, "w", 2, (float[]){1 - 1.5f * 4, 1 - 1.5f * 5});
    fl_tensor_fini(&z.tensor);
    rig_fini(&r);
}

static void what_follows_the_update_runs_once(void)
{
    rig r;
    fl_fetch norm = {"norm", {0}};
    start(&r, VARS "  var norm: f32[1]\n" FORWARD BACKWARD UPDATE
                   "  mean(X=w) -> Out=norm\n");
    CHECK_OK(run(&r, 2, 4, &norm));
    check_floats(&norm.tensor, 2, (float[]){-1.25f, -1.25f});
    fl_tensor_fini(&norm.tensor);
    rig_fini(&r);
    start(&r, VARS "  var z: f32[-1,1]\n" FORWARD BACKWARD UPDATE
                   "  mul(X=x, Y=w) -> Out=z\n");
    CHECK_ERR(run(&r, 2, 4, NULL), FL_EINVAL,
              "op 6 \"mul\" comes after the update and reads \"x\"");
    CHECK_OK(run(&r, 1, 4, NULL));
    rig_fini(&r);
}

static void a_failure_names_the_place(void)
{
    rig r;
    fl_feed x[] = {rig_feed("x", 2, 2, rows), rig_feed("x", 2, 1, rows)};
    fl_places apart = {.n = 2, .apart = true};
    start(&r, VARS FORWARD);
    CHECK_ERR(fl_exe_run_places(r.exe, &apart, r.program, r.scope, 1, x, 0, 0),
              FL_ESHAPE, "expected float32[-1,2]) (place 2 of 2)");
    rig_fini(&r);
}

static void allocates_nothing_when_nothing_changes(void)
{
    rig r;
    fl_fetch loss = {"loss", {0}};
    start(&r, VARS FORWARD BACKWARD UPDATE);
    for (int i = 0; i < 3; i++)
        CHECK_OK(run(&r, 2, 4, &loss));
    const uint64_t before = fl_mem_count();
    for (int i = 0; i < 20; i++)
        CHECK_OK(run(&r, 2, 4, &loss));
    CHECK_INT((int64_t)(fl_mem_count() - before), 0);
    fl_tensor_fini(&loss.tensor);
    rig_fini(&r);
}

/* --- threads --- */

/* State that the operators of this test share between places. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int here, polled;
    char names[2][16];
} hall = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

/* Wait until *count is 2, at most five minutes. */
static bool wait_for(const int *count)
{
    struct timespec end;
    int e = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 300;
    while (*count < 2 && !e)
        e = pthread_cond_timedwait(&hall.came, &hall.lock, &end);
    return !e;
}

static fl_err meet(fl_call *c)
{
    pthread_mutex_lock(&hall.lock);
    if (hall.here < 2)
        pthread_getname_np(pthread_self(), hall.names[hall.here],
                           sizeof hall.names[0]);
    hall.here++;
    pthread_cond_broadcast(&hall.came);
    const bool met = wait_for(&hall.here);
    pthread_mutex_unlock(&hall.lock);
    return met ? FL_OK : fl_fail(FL_ETIMEOUT, "meet: nobody else came");
}

static fl_err linger(fl_call *c)
{
    pthread_mutex_lock(&hall.lock);
    const bool polled = wait_for(&hall.polled);
    pthread_mutex_unlock(&hall.lock);
    return polled ? FL_OK : fl_fail(FL_ETIMEOUT, "linger: nobody polled");
}

static int poll_twice(void *user)
{
    pthread_mutex_lock(&hall.lock);
    const bool second = ++hall.polled >= 2;
    pthread_cond_broadcast(&hall.came);
    pthread_mutex_unlock(&hall.lock);
    return second;
}

static const fl_op_def op_meet = {
    .type = "meet", .in = {{"X"}}, .infer = fl_infer_none, .run = meet};
static const fl_op_def op_linger = {
    .type = "linger", .in = {{"X"}}, .infer = fl_infer_none, .run = linger};

/* Run a program on two places with the operators above. */
static fl_err run_in_hall(const char *text, int (*poll)(void *user),
                          int *threads)
{
    FL_VEC(const fl_op_def *) ops = {0};
    fl_registry *registry;
    fl_program *p;
    for (int i = 0; i < fl_ops_count; i++)
        fl_push(&ops, fl_ops_table[i]);
    fl_push(&ops, &op_meet);
    fl_push(&ops, &op_linger);
    CHECK_OK(fl_registry_new(ops.at, (int)ops.n, &registry));
    CHECK_OK(fl_program_parse(registry, text, &p));
    fl_entropy entropy = fl_entropy_fake(1);
    fl_watch watch = {.clock = fl_clock_real(), .poll = poll};
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_make(&(fl_exec_env){.registry = registry,
                                             .disk = fl_disk_real(),
                                             .entropy = &entropy,
                                             .watch = &watch});
    fl_exe_profile(exe, true);
    hall.here = hall.polled = 0;
    fl_feed x = rig_feed("x", 4, 2, rows);
    fl_err err =
        fl_exe_run_places(exe, &(fl_places){.n = 2}, p, s, 1, &x, 0, NULL);
    char *trace = fl_exe_profile_trace(exe);
    *threads = (strstr(trace, "\"tid\": 1}") != NULL) +
               (strstr(trace, "\"tid\": 2}") != NULL);
    fl_mem_free(trace);
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_program_free(p);
    fl_registry_free(registry);
    fl_vec_fini(&ops);
    return err;
}

static void places_run_at_the_same_time(void)
{
    int threads;
    CHECK_OK(run_in_hall("block 0\n  data x: f32[-1,2]\n  meet(X=x)\n", NULL,
                         &threads));
    CHECK_INT(hall.here, 2);
    CHECK_INT(threads, 2);
    CHECK(strcmp(hall.names[0], hall.names[1]));
    for (int i = 0; i < 2; i++)
        CHECK(!strncmp(hall.names[i], "place-", 6));
}

static void a_poll_ends_the_run_of_all_places(void)
{
    int threads;
    CHECK_ERR(run_in_hall("block 0\n  data x: f32[-1,2]\n  linger(X=x)\n",
                          poll_twice, &threads),
              FL_EINTR, "the run was interrupted");
    CHECK_INT(hall.polled, 2);
}

const fl_test fl_tests[] = {
    {"gradients are the mean of places", gradients_are_the_mean_of_places},
    {"places count alike though the last has more rows",
     places_count_alike_though_the_last_has_more_rows},
    {"gradients of places may be summed", gradients_may_be_summed},
    {"the gradient of the loss may be fed",
     the_gradient_of_the_loss_may_be_fed},
    {"a persistable gradient is summed where it is",
     a_persistable_gradient_is_summed_where_it_is},
    {"what is common comes from every place",
     what_is_common_comes_from_every_place},
    {"fetched shapes that do not fit are named",
     fetched_shapes_that_do_not_fit_are_named},
    {"a small batch has fewer places", a_small_batch_has_fewer_places},
    {"places may be fed apart", places_may_be_fed_apart},
    {"sequences stay whole on places", sequences_stay_whole},
    {"the first place keeps running means",
     the_first_place_keeps_running_means},
    {"schedules count a step once", schedules_count_a_step_once},
    {"a schedule that the loss reads is on every place",
     a_schedule_that_the_loss_reads_is_on_every_place},
    {"what follows the update runs once", what_follows_the_update_runs_once},
    {"a failure names the place", a_failure_names_the_place},
    {"places allocate nothing when nothing changes",
     allocates_nothing_when_nothing_changes},
    {"places run at the same time", places_run_at_the_same_time},
    {"a poll ends the run of all places", a_poll_ends_the_run_of_all_places},
    {0},
};
