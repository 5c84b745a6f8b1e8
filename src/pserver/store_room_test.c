/* SPDX-License-Identifier: Apache-2.0 */
/* store_room_test.c - a kept store whose tables cannot grow, because its file
 * system is full: owners wait in the middle of a round or push, read pulls, and
 * go on, also in the next process. Snapshots are not in their way. */
#include "base/memdisk.h"
#include "pserver/test_store.h"
#include "state/snapshot.h"
#include "state/test_state.h"

#include <stdlib.h>

enum {
    TABLES = 2,
    ROWS = 3000, /* new ones of each table in a round */
    ROUNDS = 3,
    FULL = 1,     /* the round in which no file can grow */
    MANY = 70000, /* rows, which take more bytes than a snapshot may copy */
};

#define HEIGHT INT64_MAX /* of a table whose ids are hashes */

static const char *const tables[TABLES] = {"emb", "two"};

typedef struct server {
    shop p; /* first: what the store calls back gets it */
    bool async;
    fl_job job;
    fl_recovery *recovery; /* NULL: nothing is kept, and there is room */
    bool dies;             /* the process ends when an owner has no room */
    bool waits[TABLES];    /* who has no room; under the lock of `p` */
    fl_memdisk *disk;      /* of snapshots; NULL: none are taken */
    fl_disk gated;
} server;

/* The thread that writes snapshots waits here before it opens a file. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool shut;
    fl_err (*open)(const fl_disk *d, const char *path, fl_file **out);
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NULL};

static fl_err open_gated(const fl_disk *d, const char *path, fl_file **out)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.shut)
        pthread_cond_wait(&gate.news, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    return gate.open(d, path, out);
}

static void set_gate(bool shut)
{
    pthread_mutex_lock(&gate.lock);
    gate.shut = shut;
    pthread_cond_signal(&gate.news);
    pthread_mutex_unlock(&gate.lock);
}

static bool on_full(void *self, const char *why)
{
    server *v = self;
    if (v->dies)
        raise(SIGKILL);
    CHECK(strstr(why, ": no room for "));
    pthread_mutex_lock(&v->p.lock);
    for (int i = 0; i < TABLES; i++)
        v->waits[i] |= strstr(why, i ? "table \"two\"" : "table \"emb\"") != 0;
    pthread_cond_signal(&v->p.news);
    pthread_mutex_unlock(&v->p.lock);
    return true;
}

/* Two tables of two columns, whose sum is the loss. */
static void cut_tables(server *v)
{
    const fl_init start = {.kind = "uniform", .a = -1, .b = 1, .seed = 3};
    shop *p = &v->p;
    fl_var *e[TABLES];
    scene_begin(&p->s);
    fl_var *ids = test_data(p->s.net, "ids", FL_I64, 1, (int64_t[]){1});
    for (int i = 0; i < TABLES; i++) {
        const fl_param_attr attr = {.name = tables[i], .init = &start};
        e[i] =
            TEST_LAYER(p->s.net, "embedding", {"input", .var = ids},
                       {"size", .n = 2, .ints = (int64_t[]){HEIGHT, 2}},
                       {"is_sparse", .b = true}, {"is_distributed", .b = true},
                       {"param_attr", .attr = &attr});
    }
    fl_var *sum = TEST_LAYER(p->s.net, "elementwise_add", {"x", .var = e[0]},
                             {"y", .var = e[1]});
    p->s.loss = TEST_LAYER(p->s.net, "mean", {"x", .var = sum});
    scene_minimize(&p->s, "adagrad", scene_rate);
    shop_cut(p, &(fl_transpile_opts){
                    .pservers = A, .trainers = 1, .async = v->async});
}

/* Snapshots go to a disk that is never full. */
static void use_disk(server *v, fl_memdisk *disk)
{
    v->disk = disk;
    v->gated = *fl_memdisk_disk(disk);
    gate.open = v->gated.open;
    v->gated.open = open_gated;
    v->p.env.disk = &v->gated;
    v->p.snapshots = "snap";
}

static void open_server_on(server *v, int owners, bool async, bool kept,
                           fl_memdisk *disk)
{
    *v = (server){.async = async};
    cut_tables(v);
    if (disk)
        use_disk(v, disk);
    v->p.full = on_full;
    v->job =
        fl_job_defaults((fl_job){.id = {7, 8}, .trainers = 1, .async = async});
    if (kept)
        CHECK_OK(fl_recovery_open(
            &(fl_recovery_opts){.job = &v->job, .owners = owners, .id = 5},
            &v->recovery));
    v->p.recovery = v->recovery;
    CHECK_OK(shop_try(&v->p, owners, false));
    if (kept)
        fl_statedir_ready(fl_recovery_dir(v->recovery));
}

static void open_server(server *v, int owners, bool async, bool kept)
{
    open_server_on(v, owners, async, kept, NULL);
}

static void close_server(server *v)
{
    shop_close(&v->p);
    if (v->recovery)
        fl_recovery_remove(v->recovery);
    fl_recovery_close(v->recovery);
    if (v->disk)
        fl_memdisk_free(v->disk);
}

/* The gradients of a round: rows of both tables that are not there yet. */
static fl_parcel *make_push(const server *v, int round)
{
    static int64_t id[ROWS];
    static float x[2 * ROWS];
    const fl_shape list = {1, {ROWS}}, s = {2, {ROWS, 2}};
    fl_parcel *p = fl_parcel_new();
    for (int i = 0; i < ROWS; i++) {
        id[i] = round * ROWS + i;
        x[2 * i] = (float)(i % 7);
        x[2 * i + 1] = (float)(round - i % 5);
    }
    for (int i = 0; i < TABLES; i++) {
        const fl_rows r = {HEIGHT, ROWS, fl_tensor_view(FL_I64, &list, id),
                           fl_tensor_view(FL_F32, &s, x)};
        char name[64];
        snprintf(name, sizeof name, "%s@GRAD%s.pserver_0", tables[i],
                 v->async ? "" : ".trainer_0");
        fl_parcel_add_rows(p, name, &r);
    }
    return p;
}

/* Let the store begin to apply a push, which is that of a round. */
static void begin_push(server *v, int round, fl_parcel *push)
{
    const fl_blob blob = fl_parcel_blob(push);
    const fl_staged by = {.session = {1, 1},
                          .n = 1,
                          .part = &blob,
                          .last = true,
                          .seq = round + 1};
    CHECK_OK(v->p.face->check(v->p.face->self, &by));
    v->p.face->apply(v->p.face->self, round, &by, 1);
    fl_keeper_parcels.drop(NULL, blob);
}

/* Own: the result, until the store has applied it. */
static fl_parcel *begin_round(server *v, int round)
{
    fl_parcel *push = make_push(v, round);
    v->p.applied = round;
    begin_push(v, round, push);
    return push;
}

static void end_round(server *v, int round, fl_parcel *push)
{
    shop_wait(&v->p, &v->p.applied, round + 1);
    CHECK_STR(v->p.why, "");
    fl_parcel_unref(push);
}

static void run_round(server *v, int round)
{
    end_round(v, round, begin_round(v, round));
}

/* Both owners wait; the only one of a server waits for the first table. */
static void wait_for_waits(server *v, int owners)
{
    pthread_mutex_lock(&v->p.lock);
    while (!v->waits[0] || v->waits[1] != (owners > 1))
        pthread_cond_wait(&v->p.news, &v->p.lock);
    pthread_mutex_unlock(&v->p.lock);
}

static void check_wait(server *v)
{
    static const int64_t id[] = {0, ROWS, INT64_MIN};
    fl_str rows = {0};
    for (int i = 0; i < TABLES; i++) {
        shop_pull(&v->p, tables[i], 3, id);
        CHECK_INT(v->p.kind, FL_MSG_VALUES);
    }
    CHECK_ERR(fl_pstore_room(v->p.store), FL_ENOMEM, "has to grow");
    fl_pstore_waits(v->p.store, &rows);
    CHECK(strstr(rows.at, "the server waits for room: "));
    fl_str_fini(&rows);
    CHECK_INT(v->p.applied, FULL);
}

/* Round FULL: no file grows until pulls were answered. */
static void run_full_round(server *v, int owners)
{
    test_limit_files(0);
    fl_parcel *push = begin_round(v, FULL);
    wait_for_waits(v, owners);
    check_wait(v);
    test_limit_files(-1);
    end_round(v, FULL, push);
    CHECK_OK(fl_pstore_room(v->p.store));
}

static void add_rows(server *v, fl_str *out)
{
    static int64_t id[ROUNDS * ROWS];
    for (int i = 0; i < ROUNDS * ROWS; i++)
        id[i] = i;
    for (int i = 0; i < TABLES; i++) {
        shop_pull(&v->p, tables[i], ROUNDS * ROWS, id);
        CHECK_INT(v->p.kind, FL_MSG_VALUES);
        for (int64_t k = 0; k < 2 * ROUNDS * ROWS; k++) {
            const float x = shop_value(&v->p, k);
            fl_str_bytes(out, &x, sizeof x);
        }
    }
}

static void check_rows(server *v)
{
    server calm;
    fl_str want = {0}, have = {0};
    open_server(&calm, 1, v->async, false);
    for (int k = 0; k < ROUNDS; k++)
        run_round(&calm, k);
    add_rows(&calm, &want);
    add_rows(v, &have);
    CHECK_INT((int64_t)have.n, (int64_t)want.n);
    CHECK(!memcmp(have.at, want.at, want.n));
    fl_str_fini(&want);
    fl_str_fini(&have);
    close_server(&calm);
}

/* `how`: bit 0: two owners; bit 1: asynchronous. */
static void owners_wait_and_go_on(void)
{
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    for (int how = 0; how < 4; how++) {
        server v;
        open_server(&v, 1 + (how & 1), how & 2, true);
        run_round(&v, 0);
        run_full_round(&v, 1 + (how & 1));
        run_round(&v, 2);
        check_rows(&v);
        close_server(&v);
    }
    unsetenv("FLUID_STATE_DIR");
}

/* The first process, which is killed when an owner has no room. */
static void run_and_die(void *arg)
{
    const int how = *(int *)arg;
    server v;
    open_server(&v, 1 + (how & 1), how & 2, true);
    run_round(&v, 0);
    v.dies = true;
    test_limit_files(0);
    end_round(&v, FULL, begin_round(&v, FULL));
}

/* The next process finds the file system as full as it was. */
static void a_killed_process_goes_on(void)
{
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    for (int how = 0; how < 4; how++) {
        server v;
        CHECK(test_kill_at(NULL, run_and_die, &how));
        test_limit_files(0);
        open_server(&v, 1 + (how & 1), how & 2, true);
        CHECK(fl_statedir_found(fl_recovery_dir(v.recovery)));
        run_full_round(&v, 1 + (how & 1));
        run_round(&v, 2);
        check_rows(&v);
        close_server(&v);
    }
    unsetenv("FLUID_STATE_DIR");
}

/* The job ends meanwhile: nobody waits for room that never comes. */
static void a_store_is_closed_while_owners_wait(void)
{
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    server v;
    open_server(&v, 2, false, true);
    run_round(&v, 0);
    test_limit_files(0);
    fl_parcel *push = begin_round(&v, FULL);
    wait_for_waits(&v, 2);
    fl_pstore_free(v.p.store);
    v.p.store = NULL;
    test_limit_files(-1);
    CHECK_INT(v.p.applied, FULL + 1);
    CHECK(strstr(v.p.why, "no room for "));
    fl_parcel_unref(push);
    close_server(&v);
    unsetenv("FLUID_STATE_DIR");
}

/* --- snapshots --- */

static void begin_snapshot(server *v)
{
    v->p.face->cut(v->p.face->self, &(fl_moment){.number = 1, .version = 1});
}

/* The snapshot has the rows of round 0. */
static void check_snapshot(server *v)
{
    fl_snapshot_part part;
    CHECK_OK(
        fl_snapshot_part_init(&part, fl_memdisk_disk(v->disk), "snap", 1, 0));
    CHECK_INT(part.index.table.n, TABLES);
    for (int i = 0; i < TABLES; i++)
        CHECK_INT(part.index.table.at[i].rows, ROWS);
    fl_snapshot_part_fini(&part);
}

/* The thread asks owners for rows that lack room for others. */
static void a_snapshot_is_written_while_owners_wait(void)
{
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    for (int owners = 1; owners <= 2; owners++) {
        server v;
        open_server_on(&v, owners, false, true, fl_memdisk_new());
        run_round(&v, 0);
        set_gate(true);
        begin_snapshot(&v);
        test_limit_files(0);
        fl_parcel *push = begin_round(&v, FULL);
        wait_for_waits(&v, owners);
        set_gate(false);
        shop_wait(&v.p, &v.p.written, 1);
        check_snapshot(&v);
        CHECK_INT(v.p.applied, FULL);
        test_limit_files(-1);
        end_round(&v, FULL, push);
        run_round(&v, 2);
        check_rows(&v);
        close_server(&v);
    }
    unsetenv("FLUID_STATE_DIR");
}

/* A push for n rows of one table, from row `first` on. */
static fl_parcel *make_rows(int table, int64_t n, int64_t first)
{
    static int64_t id[MANY];
    static float x[2 * MANY];
    char name[64];
    for (int64_t i = 0; i < n; i++) {
        id[i] = first + i;
        x[2 * i] = x[2 * i + 1] = 1;
    }
    snprintf(name, sizeof name, "%s@GRAD.pserver_0", tables[table]);
    return shop_rows(name, HEIGHT, n, 2, id, x);
}

static float pull_first(server *v)
{
    shop_pull(&v->p, tables[0], 1, (int64_t[]){0});
    CHECK_INT(v->p.kind, FL_MSG_VALUES);
    return shop_value(&v->p, 0);
}

/* One owner has no room in the middle of a push, so that it cannot enter the
 * snapshot. The other one may copy no more rows until it has. */
static void a_snapshot_is_given_up_for_an_owner_without_room(void)
{
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    server v;
    open_server_on(&v, 2, true, true, fl_memdisk_new());
    fl_parcel *push[] = {make_rows(0, MANY, 0), make_rows(1, MANY, 0),
                         make_rows(0, MANY, 0)};
    v.p.may_fail = true;
    begin_push(&v, 0, push[0]);
    shop_wait(&v.p, &v.p.applied, 1);
    const float before = pull_first(&v);
    test_limit_files(0);
    begin_push(&v, 1, push[1]);
    pthread_mutex_lock(&v.p.lock);
    while (!v.waits[1])
        pthread_cond_wait(&v.p.news, &v.p.lock);
    pthread_mutex_unlock(&v.p.lock);
    begin_snapshot(&v);
    begin_push(&v, 2, push[2]);
    CHECK(pull_first(&v) != before); /* the first owner has applied push 2 */
    CHECK(!v.waits[0]);
    CHECK_INT(v.p.applied, 1);
    test_limit_files(-1);
    shop_wait(&v.p, &v.p.applied, 3);
    CHECK_STR(v.p.why, "");
    shop_wait(&v.p, &v.p.failed, 1);
    CHECK_INT(v.p.written, 0);
    for (int i = 0; i < 3; i++)
        fl_parcel_unref(push[i]);
    close_server(&v);
    unsetenv("FLUID_STATE_DIR");
}

/* --- a push that one owner has applied, and the other one has not begun --- */

/* Push 2 keeps the second owner waiting. The process ends when the first one
 * has applied push 3 as well. */
static void run_until_apart(void *unused)
{
    server v;
    open_server(&v, 2, true, true);
    run_round(&v, 0);
    const float before = pull_first(&v);
    test_limit_files(0);
    begin_push(&v, 1, make_rows(1, MANY, 0));
    begin_push(&v, 2, make_rows(0, 10, 0));
    while (pull_first(&v) == before)
        ;
    raise(SIGKILL);
}

static int cuts;

static void count_cut(void *self, const fl_moment *cut)
{
    cuts++;
}

static void tell(fl_server *to, const server *v, fl_msg m)
{
    const bool push = m.kind == FL_MSG_PUSH;
    m.job = v->job.id;
    m.view = m.g = 1;
    m.state.id = 8;
    fl_server_recv(to, (fl_peer){push ? FL_PEER_CALL : FL_PEER_COORD, 0, 1}, &m,
                   FL_SEC);
    fl_server_flush(to);
}

/* A push comes again, and is applied. */
static void push_again(fl_server *to, server *v, int64_t seq, fl_parcel *push)
{
    const int done = v->p.applied;
    const fl_blob blob = fl_parcel_blob(push);
    tell(to, v,
         (fl_msg){.kind = FL_MSG_PUSH,
                  .session = {1, 1},
                  .seq = seq,
                  .count = 1,
                  .blob = blob});
    fl_keeper_parcels.drop(NULL, blob);
    shop_wait(&v->p, &v->p.applied, done + 1);
    fl_server_applied(to, NULL, FL_SEC);
    fl_server_flush(to);
    fl_parcel_unref(push);
}

static void a_snapshot_waits_for_owners_that_are_apart(void)
{
    server v;
    fl_outbox out;
    fl_member member = {0, {1, 1}, 1};
    setenv("FLUID_STATE_DIR", fl_test_dir(), 1);
    CHECK(test_kill_at(NULL, run_until_apart, NULL));
    open_server(&v, 2, true, true);
    fl_store store = *v.p.face;
    store.cut = count_cut;
    fl_outbox_init(&out);
    fl_server *to =
        fl_server_new(&v.job, 0, (fl_state){5, 2}, &store, &out, FL_SEC);
    fl_msg view = {.kind = FL_MSG_VIEW, .n_member = 1, .member = &member};
    tell(to, &v, view);
    fl_pstore_resume(v.p.store, to);
    view.snapshot = 1;
    tell(to, &v, view);
    CHECK_INT(cuts, 0);
    push_again(to, &v, 2, make_rows(1, MANY, 0));
    CHECK_INT(cuts, 0);
    push_again(to, &v, 3, make_rows(0, 10, 0));
    CHECK_INT(cuts, 1);
    fl_server_free(to);
    fl_outbox_fini(&out);
    close_server(&v);
    unsetenv("FLUID_STATE_DIR");
}

const fl_test fl_tests[] = {
    {"owners whose tables cannot grow wait, read pulls, and go on",
     owners_wait_and_go_on},
    {"a process that is killed while owners wait for room is followed by one "
     "that goes on",
     a_killed_process_goes_on},
    {"a store is closed while its owners wait for room",
     a_store_is_closed_while_owners_wait},
    {"a snapshot is written while owners wait for room",
     a_snapshot_is_written_while_owners_wait},
    {"a snapshot is given up if an owner that waits for room keeps others "
     "waiting",
     a_snapshot_is_given_up_for_an_owner_without_room},
    {"a snapshot waits for a push that one owner has applied",
     a_snapshot_waits_for_owners_that_are_apart},
    {0},
};
