/* SPDX-License-Identifier: Apache-2.0 */
/* Executors on several threads. The thread sanitizer runs this, too. */
#include "exec/test_exec.h"

#include <pthread.h>

enum {
    THREADS = 2,
    STEPS = 200,
};

/* Trainers that share parameters update them without locks, on purpose. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:trainer_on_shared_parameters\n";
}

/* One step of sgd on mean(relu(x * w)), with a view in between. */
static const char text[] =
    "block 0\n"
    "  data x: f32[-1,2]\n"
    "  param w: f32[2,1]\n"
    "  var lr: f32[1] persistable\n"
    "  var y: f32[-1,1]\n  var z: f32[-1]\n  var loss: f32[1]\n"
    "  var loss@GRAD: f32[1]\n  var z@GRAD: f32[-1]\n"
    "  var y@GRAD: f32[-1,1]\n  var w@GRAD: f32[2,1]\n"
    "  mul(X=x, Y=w) -> Out=y\n"
    "  reshape(X=y) -> Out=z {shape=[-1]}\n"
    "  mean(X=z) -> Out=loss\n"
    "  fill_constant() -> Out=loss@GRAD {shape=[1l], value=1.0, dtype=5}\n"
    "  mean_grad(X=z, Out@GRAD=loss@GRAD) -> X@GRAD=z@GRAD\n"
    "  reshape_grad(X=y, Out@GRAD=z@GRAD) -> X@GRAD=y@GRAD\n"
    "  mul_grad(X=x, Y=w, Out@GRAD=y@GRAD) -> Y@GRAD=w@GRAD\n"
    "  sgd(Param=w, LearningRate=lr, Grad=w@GRAD) -> ParamOut=w\n";

/* Each trainer has an executor; program and registry are common. */
typedef struct trainer {
    pthread_t thread;
    const fl_program *program;
    fl_scope *scope;
    fl_entropy entropy;
    fl_err err;
    float loss;
} trainer;

static void train(trainer *t)
{
    const float rows[] = {1, 2, 3, 4, 5, 6};
    fl_fetch got = {"loss", {0}};
    fl_exe *exe = fl_exe_make(&(fl_exec_env){.registry = fl_check_registry(),
                                             .disk = fl_disk_real(),
                                             .entropy = &t->entropy});
    for (int i = 0; i < STEPS && !t->err; i++) {
        fl_feed x = rig_feed("x", 1 + i % 3, 2, rows);
        t->err = fl_exe_run(exe, t->program, t->scope, 1, &x, 1, &got);
    }
    t->loss = t->err ? 0 : *(float *)got.tensor.data;
    fl_tensor_fini(&got.tensor);
    fl_exe_free(exe);
}

static void *trainer_alone(void *self)
{
    train(self);
    return NULL;
}

static void *trainer_on_shared_parameters(void *self)
{
    train(self);
    return NULL;
}

static void run(trainer *t, void *(*body)(void *))
{
    for (int i = 0; i < THREADS; i++) {
        t[i].entropy = fl_entropy_fake(1);
        CHECK(!pthread_create(&t[i].thread, NULL, body, &t[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(!pthread_join(t[i].thread, NULL));
        CHECK_OK(t[i].err);
    }
}

static void start(rig *r)
{
    rig_init(r, text, false);
    rig_set(r, "w", (fl_shape){2, {2, 1}}, (float[]){1, 1});
    rig_set(r, "lr", (fl_shape){1, {1}}, (float[]){0.01f});
}

static void scopes_of_their_own_do_not_meet(void)
{
    rig r[THREADS];
    trainer t[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) {
        start(&r[i]);
        t[i].program = r[0].program; /* programs may be shared */
        t[i].scope = r[i].scope;
    }
    run(t, trainer_alone);
    CHECK_NEAR(t[0].loss, t[1].loss, 0);
    CHECK(t[0].loss < -1); /* this loss falls without limit */
    for (int i = 0; i < THREADS; i++)
        rig_fini(&r[i]);
}

static void trainers_may_share_parameters(void)
{
    rig r;
    trainer t[THREADS] = {0};
    start(&r);
    for (int i = 0; i < THREADS; i++) {
        t[i].program = r.program;
        t[i].scope = r.scope;
    }
    run(t, trainer_on_shared_parameters);
    CHECK(t[0].loss < -1 && t[1].loss < -1);
    rig_fini(&r);
}

const fl_test fl_tests[] = {
    {"executors with scopes of their own do not meet",
     scopes_of_their_own_do_not_meet},
    {"executors may train shared parameters", trainers_may_share_parameters},
    {0},
};
