/* Training as a part of a job, with servers that a test can hold up. */
#include "train/train.h"

#include "data/test_data.h"
#include "dist/service.h"
#include "dist/test_job.h"
#include "exec/test_exec.h"

enum {
    HELD = 10 /* polls, of which there are 20 a second */
};

typedef struct scene {
    test_job job;
    fl_service *service;
    fl_entropy entropy;
    fl_exec_env env;
    fl_program *program;
    fl_scope *scope;
    fl_dataset *dataset;
    int polls;
} scene;

static void open_scene(scene *s, bool async)
{
    test_job_begin(&s->job, 1, 1, async);
    test_job_var(&s->job, 0, "w", 2, 2, 1);
    s->service = fl_service_new();
    s->entropy = fl_entropy_fake(1);
    s->env = (fl_exec_env){.registry = fl_check_registry(),
                           .disk = fl_disk_real(),
                           .entropy = &s->entropy,
                           .service = s->service};
    s->scope = fl_scope_new();
    s->polls = 0;
    const char *log = test_file("log", "2 1 2 1 3 1 0\n2 1 2 1 4 1 1\n");
    s->dataset =
        test_set(&(fl_dataset_opts){.n_files = 1, .files = &log, .batch = 1});
}

/* The program of this text, in which ~ is the server. */
static void read_program(scene *s, const char *text)
{
    fl_str t = {0};
    for (; *text; text++)
        if (*text == '~')
            fl_str_printf(&t, "\"%s\"", s->job.address[0]);
        else
            fl_str_bytes(&t, text, 1);
    CHECK_OK(fl_program_parse(fl_check_registry(), t.at, &s->program));
    fl_program_set_place(s->program, &s->job.place);
    fl_str_fini(&t);
}

static void close_scene(scene *s)
{
    fl_dataset_free(s->dataset);
    fl_program_free(s->program);
    fl_scope_free(s->scope);
    fl_service_free(s->service); /* completes */
    CHECK_INT(test_job_done(&s->job), 1);
    test_job_end(&s->job);
}

/* Servers answer nothing before. */
static int let_go(void *user)
{
    scene *s = user;
    if (++s->polls == HELD)
        pthread_mutex_unlock(&s->job.lock);
    return FL_GO_ON;
}

static void waits_for_servers_are_no_computing(void)
{
    scene s;
    fl_progress p;
    open_scene(&s, false);
    read_program(&s, "block 0\n"
                     "  data x: f32[-1,2]\n"
                     "  param w: f32[2,2]\n"
                     "  recv() -> Out=w {epmap=[~]}\n");
    pthread_mutex_lock(&s.job.lock);
    CHECK_OK(fl_train_run(&s.env,
                          &(fl_train_opts){.program = s.program,
                                           .scope = s.scope,
                                           .dataset = s.dataset,
                                           .status = "off",
                                           .poll = let_go,
                                           .user = &s},
                          &p));
    CHECK(s.polls >= HELD);
    CHECK_INT(p.batches, 2);
    CHECK(p.waiting > 0.6);
    CHECK_NEAR(p.reading + p.computing + p.waiting, 1, 1e-9);
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"waits for servers are no computing", waits_for_servers_are_no_computing},
    {0},
};
