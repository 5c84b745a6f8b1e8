/* SPDX-License-Identifier: Apache-2.0 */
/* Training in a job whose servers a test can delay. */
#include "cluster/test_placement.h"
#include "train/train.h"

#include "data/test_data.h"
#include "exec/test_exec.h"
#include "trainer/service.h"
#include "trainer/test_job.h"

#include <math.h>

enum {
    HELD = 10 /* polls before servers answer; there are 20 a second */
};

/* A trainer of the job, with all that a process has. */
typedef struct party {
    test_job *job;
    fl_service *service;
    fl_entropy entropy;
    fl_exec_env env;
    fl_program *program;
    fl_scope *scope;
    fl_dataset *dataset;
    int polls;
} party;

/* Parse a program; ~ stands for the endpoint of the server. */
static fl_program *read_program(const test_job *j, int id, const char *text)
{
    fl_str t = {0};
    fl_program *p;
    fl_placement place = j->place;
    place.trainer_id = id;
    for (; *text; text++)
        if (*text == '~')
            fl_str_printf(&t, "\"%s\"", j->address[0]);
        else
            fl_str_bytes(&t, text, 1);
    CHECK_OK(fl_program_parse(fl_check_registry(), t.at, &p));
    test_place(p, &place);
    fl_str_fini(&t);
    return p;
}

static void come(party *p, test_job *j, int id, const char *program,
                 const char *lines)
{
    char name[16];
    snprintf(name, sizeof name, "log-%d", id);
    const char *log = test_file(name, lines);
    *p = (party){.job = j,
                 .service = fl_service_new(),
                 .entropy = fl_entropy_fake(1),
                 .program = read_program(j, id, program),
                 .scope = fl_scope_new()};
    p->env = (fl_exec_env){.registry = fl_check_registry(),
                           .disk = fl_disk_real(),
                           .entropy = &p->entropy,
                           .service = p->service};
    p->dataset =
        test_set(&(fl_dataset_opts){.n_files = 1, .files = &log, .batch = 1});
}

static void leave(party *p)
{
    fl_dataset_free(p->dataset);
    fl_program_free(p->program);
    fl_scope_free(p->scope);
    fl_service_free(p->service); /* the trainer completes */
}

static fl_progress train(party *p, const fl_train_opts *opts)
{
    fl_train_opts o = *opts;
    fl_progress out;
    o.program = p->program;
    o.scope = p->scope;
    o.dataset = p->dataset;
    o.status = "off";
    o.user = p;
    CHECK_OK(fl_train_run(&p->env, &o, &out));
    return out;
}

/* --- waits --- */

static const char receives[] = "block 0\n"
                               "  data x: f32[-1,2]\n"
                               "  param w: f32[2,2]\n"
                               "  recv() -> Out=w {epmap=[~]}\n";

/* Servers do not answer before this poll. */
static int let_go(void *user)
{
    party *p = user;
    if (++p->polls == HELD)
        pthread_mutex_unlock(&p->job->lock);
    return FL_GO_ON;
}

static void waits_for_servers_are_no_computing(void)
{
    test_job j;
    party p;
    test_job_begin(&j, 1, 1, false);
    test_job_var(&j, 0, "w", 2, 2, 1);
    come(&p, &j, 0, receives, "2 1 2 1 3 1 0\n2 1 2 1 4 1 1\n");
    pthread_mutex_lock(&j.lock);
    const fl_progress done = train(&p, &(fl_train_opts){.poll = let_go});
    CHECK(p.polls >= HELD);
    CHECK_INT(done.batches, 2);
    CHECK(done.waiting > 0.6);
    CHECK_NEAR(done.reading + done.computing + done.waiting, 1, 1e-9);
    leave(&p);
    CHECK_INT(test_job_done(&j), 1);
    test_job_end(&j);
}

/* --- rows --- */

/* Adds up the rows of all batches, and sends something. */
static const char sums[] =
    "block 0\n"
    "  data ids: i64[-1,1] lod=1\n"
    "  param w: f32[4,1]\n"
    "  var y: f32[-1,1] lod=1\n"
    "  var m: f32[1]\n"
    "  var all: f32[1] persistable\n"
    "  var b@GRAD: f32[1] persistable\n"
    "  var t: f32[1]\n"
    "  distributed_lookup_table(Ids=ids, W=w) -> Outputs=y "
    "{table_names=[\"w\"], height_sections=[4l], endpoints=[~]}\n"
    "  reduce_sum(X=y) -> Out=m {reduce_all=true}\n"
    "  sum(X=[all, m]) -> Out=all\n"
    "  send(X=b@GRAD) -> Out=t {epmap=[~]}\n";

/* Trains on batches whose rows add up to 1 + 2 + 2 + (0 + 3) = 8; returns how
 * often the server was asked. */
static int adds_up_rows(bool async)
{
    test_job j;
    party p;
    test_job_begin(&j, 1, 1, async);
    test_job_var(&j, 0, "w", 4, 1, 0);
    test_job_var(&j, 0, "b", 1, 1, 0);
    for (int i = 0; i < 4; i++)
        ((float *)j.server[0].var[0].value.data)[i] = (float)i;
    come(&p, &j, 0, sums,
         "2 0 0 1 1 1 0\n2 0 0 1 2 1 0\n2 0 0 1 2 1 0\n2 0 0 2 0 3 1 0\n");
    const fl_tensor zero =
        fl_tensor_view(FL_F32, &(fl_shape){1, {1}}, (float[]){0});
    const fl_tensor w =
        fl_tensor_view(FL_F32, &(fl_shape){2, {4, 1}}, (float[4]){0});
    CHECK_OK(fl_scope_set(p.scope, "all", &zero));
    CHECK_OK(fl_scope_set(p.scope, "w", &w));
    CHECK_OK(fl_scope_set(p.scope, "b@GRAD", &zero));
    if (async)
        CHECK_OK(fl_service_start_communicator(p.service, p.program));
    CHECK_INT(train(&p, &(fl_train_opts){0}).batches, 4);
    CHECK_NEAR(*(float *)fl_scope_find(p.scope, "all")->tensor.data, 8, 0);
    leave(&p);
    const int asked = j.server[0].pulls;
    test_job_end(&j);
    return asked;
}

static void every_batch_gets_its_own_rows(void)
{
    const int asked = adds_up_rows(false);
    CHECK_INT(adds_up_rows(true), asked); /* ahead, and not twice */
}

/* --- one AUC --- */

/* The prediction is the last element of x. */
#define COUNTS                                                                 \
    "block 0\n"                                                                \
    "  data x: f32[-1,2]\n"                                                    \
    "  data label: i64[-1,1]\n"                                                \
    "  param w: f32[2,2]\n"                                                    \
    "  var pos: i64[1,101] persistable\n"                                      \
    "  var neg: i64[1,101] persistable\n"                                      \
    "  var area: f64[1]\n"                                                     \
    "  auc(Predict=x, Label=label, StatPos=pos, StatNeg=neg) -> AUC=area, "    \
    "StatPosOut=pos, StatNegOut=neg {num_thresholds=100, slide_steps=0}\n"

static void come_to_count(party *p, test_job *j, int id, const char *lines)
{
    static const int64_t zeros[101];
    const fl_shape shape = {2, {1, 101}};
    const fl_tensor t = fl_tensor_view(FL_I64, &shape, zeros);
    come(p, j, id, COUNTS "  recv() -> Out=w {epmap=[~]}\n", lines);
    CHECK_OK(fl_scope_set(p->scope, "pos", &t));
    CHECK_OK(fl_scope_set(p->scope, "neg", &t));
}

static void shows(party *p, bool infer, double auc, int trainers)
{
    const fl_progress done = train(p, &(fl_train_opts){.infer = infer});
    CHECK_NEAR(done.auc, auc, 1e-12);
    CHECK_INT(done.auc_trainers, trainers);
}

/* All predictions of a are right, all of b are wrong. */
static void begin_counting(test_job *j, party *a, party *b)
{
    test_job_begin(j, 1, 2, true);
    test_job_var(j, 0, "w", 2, 2, 1);
    come_to_count(a, j, 0, "2 0 .9 1 3 1 1\n2 0 .2 1 3 1 0\n");
    come_to_count(b, j, 1, "2 0 .3 1 3 1 1\n2 0 .8 1 3 1 0\n");
}

static void the_auc_is_that_of_all_trainers(void)
{
    test_job j;
    party a, b;
    begin_counting(&j, &a, &b);
    shows(&a, false, 1, 1);
    shows(&b, false, 0.75, 2);
    shows(&a, false, 8. / 9, 2); /* a has counted twice as many examples as b */
    leave(&a);
    leave(&b);
    CHECK_INT(test_job_done(&j), 2);
    test_job_end(&j);
}

/* A program that was cloned before it was transpiled has no placement. */
static void lose_place(party *p)
{
    fl_program_free(p->program);
    CHECK_OK(fl_program_parse(fl_check_registry(), COUNTS, &p->program));
}

static void passes_that_do_not_train_are_merged_apart(void)
{
    test_job j;
    party a, b;
    begin_counting(&j, &a, &b);
    shows(&a, false, 1, 1);
    shows(&b, true, 0, 1);
    lose_place(&a);
    lose_place(&b);
    shows(&a, true, 8. / 9, 2);
    shows(&b, false, 0, 1); /* without a placement: only its own counts */
    leave(&a);
    leave(&b);
    test_job_end(&j);
}

static void one_without_files_takes_no_step(void)
{
    test_job j;
    party p;
    test_job_begin(&j, 1, 1, true);
    test_job_var(&j, 0, "w", 2, 2, 1);
    come_to_count(&p, &j, 0, "2 0 .9 1 3 1 1\n");
    shows(&p, false, 0, 1);
    fl_dataset_free(p.dataset);
    p.dataset = test_set(&(fl_dataset_opts){.batch = 1});
    const fl_progress none = train(&p, &(fl_train_opts){0});
    CHECK(!none.batches && isnan(none.loss) && isnan(none.auc));
    lose_place(&p);
    CHECK_INT(train(&p, &(fl_train_opts){.infer = true}).batches, 0);
    leave(&p);
    test_job_end(&j);
}

const fl_test fl_tests[] = {
    {"waits for servers are no computing", waits_for_servers_are_no_computing},
    {"every batch gets its own rows, also if they are asked for ahead",
     every_batch_gets_its_own_rows},
    {"the AUC is that of all trainers", the_auc_is_that_of_all_trainers},
    {"passes that do not train are merged apart",
     passes_that_do_not_train_are_merged_apart},
    {"one without files takes no step", one_without_files_takes_no_step},
    {0},
};
