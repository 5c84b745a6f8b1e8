/* SPDX-License-Identifier: Apache-2.0 */
/* shard_test.c - where the values of a server come from, and what is left of
 * them after its end. */
#include "pserver/shard.h"

#include "base/path.h"
#include "pserver/test_store.h"

#include <stdlib.h>

static const fl_transpile_opts one = {.pservers = A, .trainers = 1};
static const float grads[] = {2, 4};

/* A process of server 0. */
typedef struct process {
    shop p;
    fl_job job;
    fl_snapshots snapshots;
    fl_shard *shard;
    fl_outbox out;
    fl_server *server;
} process;

static bool never_wait(void *self, const char *why)
{
    return false;
}

static void ignore_durable(void *self, uint64_t number)
{
}

/* The startup program has set w to 10, 20. */
static void begin_process(process *v, fl_durability level)
{
    *v = (process){0};
    scene_begin(&v->p.s);
    scene_line(&v->p.s, 2, 1, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&v->p.s, "sgd", scene_rate);
    shop_cut(&v->p, &one);
    shop_set(&v->p, "w", 2, (const float[]){10, 20});
    v->job = fl_job_defaults(
        (fl_job){.id = {7, 9}, .trainers = 1, .durability = level});
}

static fl_err try_open(process *v, bool existing, bool brought)
{
    const fl_program *program = v->p.s.cut->server[0];
    return fl_shard_open(
        &(fl_shard_opts){.env = &v->p.env,
                         .program = program,
                         .op = fl_program_block(program, 0)->ops.at[0],
                         .scope = v->p.scope,
                         .place = fl_placement_of(program->job),
                         .job = &v->job,
                         .snapshots = &v->snapshots,
                         .existing = existing,
                         .brought = brought,
                         .self = &v->p,
                         .applied = shop_applied,
                         .full = never_wait,
                         .answer = shop_answer,
                         .durable = ignore_durable},
        &v->shard);
}

/* Open the shard, and let its server begin. */
static void open_process(process *v, bool existing)
{
    CHECK_OK(try_open(v, existing, false));
    fl_outbox_init(&v->out);
    v->p.face = fl_shard_ops(v->shard);
    v->server = fl_server_new(&v->job, 0, fl_shard_state(v->shard), v->p.face,
                              &v->out, FL_SEC);
    CHECK_OK(fl_shard_restore(v->shard, v->server, NULL, FL_SEC));
    CHECK_OK(fl_shard_begin(v->shard, v->server));
}

static void end_process(process *v)
{
    shop_close(&v->p);
    if (!v->server)
        return;
    fl_server_free(v->server);
    fl_outbox_fini(&v->out);
}

static void close_process(process *v, bool remove)
{
    fl_shard_stop(v->shard);
    fl_shard_close(v->shard, remove);
    end_process(v);
}

static void save_image(process *v)
{
    fl_str image = {0};
    fl_server_image(v->server, &image);
    fl_shard_save(v->shard, image.at, image.n, NULL, 0);
    CHECK_OK(fl_shard_check_saved(v->shard));
    fl_str_fini(&image);
}

/* Leave the state of a job whose w is 9, 18. */
static void leave_state(uint64_t *id)
{
    process v;
    begin_process(&v, FL_PROCESS);
    open_process(&v, false);
    CHECK(fl_shard_keeps(v.shard));
    CHECK_INT(fl_shard_state(v.shard).incarnation, 1);
    *id = fl_shard_state(v.shard).id;
    CHECK_OK(fl_shard_check_room(v.shard, 1000));
    SHOP_ROUND(&v.p, shop_grad("w@GRAD", 2, 1, grads));
    CHECK_STR(v.p.why, "");
    save_image(&v);
    close_process(&v, false);
}

static void a_shard_goes_on_with_its_state(void)
{
    process v;
    uint64_t id;
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    leave_state(&id);
    begin_process(&v, FL_PROCESS);
    open_process(&v, true);
    CHECK(fl_shard_state(v.shard).id == id);
    CHECK_INT(fl_shard_state(v.shard).incarnation, 2);
    shop_pull(&v.p, "w", -1, NULL);
    CHECK_NEAR(shop_value(&v.p, 0), 9, 0);
    CHECK_NEAR(shop_value(&v.p, 1), 18, 0);
    close_process(&v, true);
    begin_process(&v, FL_PROCESS);
    CHECK_ERR(try_open(&v, true, false), FL_ENOENT,
              "which was removed since; start this server again");
    end_process(&v);
    unsetenv("FLUID_STATE_DIR");
}

static void a_job_without_an_image_leaves_nothing(void)
{
    process v;
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    begin_process(&v, FL_PROCESS);
    open_process(&v, false);
    close_process(&v, false);
    begin_process(&v, FL_PROCESS);
    CHECK_INT(try_open(&v, true, false), FL_ENOENT);
    end_process(&v);
    unsetenv("FLUID_STATE_DIR");
}

/* A state that was found belongs to an earlier process. */
static void what_was_brought_is_undone(void)
{
    process v;
    uint64_t id;
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    begin_process(&v, FL_PROCESS);
    CHECK_OK(try_open(&v, false, true));
    fl_shard_undo(v.shard);
    CHECK_INT(try_open(&v, true, true), FL_ENOENT);
    end_process(&v);
    leave_state(&id);
    begin_process(&v, FL_PROCESS);
    CHECK_OK(try_open(&v, false, true));
    (void)fl_fail(FL_EINVAL, "the job cannot begin");
    fl_shard_undo(v.shard);
    CHECK_STR(fl_errmsg(), "the job cannot begin");
    end_process(&v);
    begin_process(&v, FL_PROCESS);
    open_process(&v, true);
    CHECK(fl_shard_state(v.shard).id == id);
    close_process(&v, true);
    unsetenv("FLUID_STATE_DIR");
}

/* The path of the only folder in `dir` with that end; NULL: there is none. */
static char *find_folder(const char *dir, const char *end)
{
    fl_file_names names = {0};
    char *found = NULL;
    CHECK_OK(fl_disk_real()->list(fl_disk_real(), dir, &names));
    for (int64_t i = 0; i < names.n && !found; i++)
        if (fl_ends_with(names.at[i], end))
            found = fl_path_join(dir, names.at[i]);
    fl_file_names_fini(&names);
    return found;
}

/* The host was lost, and somebody has removed a file of the base: each try to
 * begin the job is refused, and what is left of the journal stays. */
static void a_refused_journal_stays(void)
{
    static const char *const file[] = {"after", "dense", "head"};
    for (int k = 0; k < 3; k++) {
        process v;
        char *journals = fl_path_join(fl_test_dir(), "journals");
        setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
        setenv("FLUID_JOURNAL_DIR", journals, 1);
        begin_process(&v, FL_HOST);
        open_process(&v, false);
        save_image(&v);
        close_process(&v, false);
        char *state = find_folder(fl_test_dir(), "-server-0");
        char *dir = find_folder(journals, "-server-0");
        char *base = fl_path_join(dir, "base");
        char *path = fl_path_join(base, file[k]);
        CHECK_OK(fl_disk_remove_tree(fl_disk_real(), state));
        CHECK_OK(fl_disk_real()->remove(fl_disk_real(), path));
        for (int i = 0; i < 2; i++) {
            begin_process(&v, FL_HOST);
            CHECK_ERR(try_open(&v, false, true), FL_EPROTO,
                      "remove it to begin the job anew");
            CHECK(strstr(fl_errmsg(), dir));
            end_process(&v);
        }
        char *still = find_folder(journals, "-server-0");
        CHECK(still);
        CHECK_OK(fl_disk_remove_tree(fl_disk_real(), journals));
        fl_mem_free(still);
        fl_mem_free(path);
        fl_mem_free(base);
        fl_mem_free(dir);
        fl_mem_free(state);
        fl_mem_free(journals);
    }
    unsetenv("FLUID_JOURNAL_DIR");
    unsetenv("FLUID_STATE_DIR");
}

/* The state directory would be below a file. */
static void the_default_level_falls_back_to_memory(void)
{
    process v;
    char path[512];
    fl_str text = {0};
    snprintf(path, sizeof path, "%s/file", fl_test_dir());
    CHECK_OK(fl_disk_write(fl_disk_real(), path, "x", 1, false));
    snprintf(path, sizeof path, "%s/file/state", fl_test_dir());
    setenv("FLUID_STATE_DIR", path, 1);
    begin_process(&v, FL_PROCESS);
    CHECK(try_open(&v, false, false) != FL_OK);
    CHECK(strstr(fl_errmsg(), path));
    v.job.or_memory = true;
    CHECK(try_open(&v, true, false) != FL_OK); /* the state has the values */
    open_process(&v, false);
    CHECK(!fl_shard_keeps(v.shard));
    fl_shard_about(v.shard, true, &text);
    CHECK_STR(text.at, "durability memory");
    shop_pull(&v.p, "w", -1, NULL);
    CHECK_NEAR(shop_value(&v.p, 1), 20, 0);
    fl_str_fini(&text);
    close_process(&v, true);
    unsetenv("FLUID_STATE_DIR");
}

const fl_test fl_tests[] = {
    {"a shard goes on with its state", a_shard_goes_on_with_its_state},
    {"a job without an image leaves nothing",
     a_job_without_an_image_leaves_nothing},
    {"what was brought is undone if the job cannot begin",
     what_was_brought_is_undone},
    {"a journal that is refused stays", a_refused_journal_stays},
    {"the default level falls back to memory",
     the_default_level_falls_back_to_memory},
    {0},
};
