/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks are threads of this process. Each has its own worlds, scope and
 * executor, and runs programs as a user would. */
#include "collective/world.h"

#include "base/test.h"
#include "check/check.h"
#include "exec/exe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST = 4,
    TEXT = 1024,
};

typedef struct job job;

typedef struct member {
    job *of;
    int rank;
    fl_entropy entropy;
    fl_worlds *worlds;
    fl_scope *scope;
    fl_exe *exe;
    const char *text; /* text of the program that it runs */
    fl_err err;
    char sentence[TEXT];
    float x[64]; /* results of the body */
    int64_t index[64], n;
} member;

struct job {
    int ranks;
    int held[MOST]; /* bound sockets that keep the ports for this test */
    char endpoints[MOST][40];
    const char *text;
    fl_err (*body)(member *m);
    member member[MOST];
};

/* Bind a free port without listening, so that no other process gets it. */
static int hold_port(char text[40])
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t size = sizeof a;
    const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CHECK(!bind(fd, (struct sockaddr *)&a, size));
    CHECK(!getsockname(fd, (struct sockaddr *)&a, &size));
    snprintf(text, 40, "127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

static fl_err run_text(member *m, const char *text)
{
    fl_program *p;
    FL_TRY(fl_program_parse(fl_check_registry(), text, &p));
    const fl_err err = fl_exe_run(m->exe, p, m->scope, 0, NULL, 0, NULL);
    fl_program_free(p);
    return err;
}

/* Join, and make two rings of the same ranks. */
static fl_err join(member *m)
{
    const job *j = m->of;
    fl_str s = {0}, others = {0};
    for (int i = 0; i < j->ranks; i++)
        if (i != m->rank)
            fl_str_printf(&others, "%s\"%s\"", others.n ? ", " : "",
                          j->endpoints[i]);
    fl_str_add(&s, "block 0\n");
    for (int ring = 0; ring < 2; ring++)
        fl_str_printf(&s,
                      "  var id%d: raw persistable\n"
                      "  c_gen_nccl_id() -> Out=id%d {rank=%d, "
                      "endpoint=\"%s\", other_endpoints=%s[%s]}\n"
                      "  c_comm_init(X=id%d) {nranks=%d, rank=%d, "
                      "ring_id=%d}\n",
                      ring, ring, m->rank, j->endpoints[m->rank],
                      others.n ? "" : "strings", others.n ? others.at : "",
                      ring, j->ranks, m->rank, ring);
    const fl_err err = run_text(m, s.at);
    fl_str_fini(&s);
    fl_str_fini(&others);
    return err;
}

static void *run_member(void *arg)
{
    member *m = arg;
    m->entropy = fl_entropy_fake(1);
    m->worlds = fl_worlds_new();
    m->scope = fl_scope_new();
    m->exe = fl_exe_make(&(fl_exec_env){.registry = fl_check_registry(),
                                        .disk = fl_disk_real(),
                                        .entropy = &m->entropy,
                                        .worlds = m->worlds});
    m->err = join(m);
    if (!m->err)
        m->err = m->of->body(m);
    if (m->err)
        snprintf(m->sentence, TEXT, "%s", fl_errmsg());
    fl_worlds_leave(m->worlds, m->err, m->sentence);
    fl_exe_free(m->exe);
    fl_worlds_free(m->worlds);
    fl_scope_free(m->scope);
    return NULL;
}

static void run_job(job *j, int ranks, const char *text,
                    fl_err (*body)(member *m))
{
    pthread_t thread[MOST];
    *j = (job){.ranks = ranks, .text = text, .body = body};
    fl_check_registry(); /* must be made before threads use it */
    for (int i = 0; i < ranks; i++) {
        j->held[i] = hold_port(j->endpoints[i]);
        j->member[i] = (member){.of = j, .rank = i, .text = text};
    }
    for (int i = ranks; i-- > 0;)
        CHECK(!pthread_create(&thread[i], NULL, run_member, &j->member[i]));
    for (int i = 0; i < ranks; i++) {
        pthread_join(thread[i], NULL);
        close(j->held[i]);
    }
}

static void check_all_ok(const job *j)
{
    for (int i = 0; i < j->ranks; i++) {
        CHECK_STR(j->member[i].sentence, "");
        CHECK_OK(j->member[i].err);
    }
}

static void check_all_say(const job *j, const char *part)
{
    for (int i = 0; i < j->ranks; i++)
        if (!strstr(j->member[i].sentence, part))
            CHECK_STR(j->member[i].sentence, part);
}

/* --- values --------------------------------------------------------------- */

static void set_tensor(member *m, const char *name, int64_t n, float first,
                       float step)
{
    fl_value *v = fl_scope_var(m->scope, name);
    v->kind = FL_LOD_TENSOR;
    if (fl_tensor_resize(&v->tensor, FL_F32, &(fl_shape){1, {n}}))
        return;
    for (int64_t i = 0; i < n; i++)
        ((float *)v->tensor.data)[i] = first + step * (float)i;
}

static void get_tensor(member *m, const char *name, int64_t at)
{
    const fl_tensor *t = &fl_scope_find(m->scope, name)->tensor;
    memcpy(m->x + at, t->data, fl_tensor_bytes(t));
}

static void close_to(float got, double want)
{
    CHECK((double)got > want - 1e-5 && (double)got < want + 1e-5);
}

static const char four_calls[] =
    "block 0\n"
    "  var a: f32[3] persistable\n"
    "  var b: f32[2] persistable\n"
    "  var c: f32[40000] persistable\n"
    "  var d: f32[2] persistable\n"
    "  c_allreduce_sum(X=a) -> Out=a {ring_id=0}\n"
    "  c_allreduce_sum(X=c) -> Out=c {ring_id=0}\n"
    "  c_allreduce_sum(X=b) -> Out=b {ring_id=0}\n"
    "  c_allreduce_max(X=d) -> Out=d {ring_id=0}\n"
    "  c_sync_comm_stream(X=[a, b, c, d]) -> Out=[a, b, c, d] {ring_id=0}\n"
    "  scale(X=a) -> Out=a {scale=0.5}\n";

static fl_err reduce_twice(member *m)
{
    const float rank = (float)m->rank;
    fl_program *p;
    fl_err err = FL_OK;
    FL_TRY(fl_program_parse(fl_check_registry(), m->text, &p));
    for (int run = 0; run < 2 && !err; run++) {
        set_tensor(m, "a", 3, rank, 1);
        set_tensor(m, "b", 2, 10 * rank, 1);
        set_tensor(m, "c", 40000, 0.1f * rank, 1e-6f);
        set_tensor(m, "d", 2, -rank, 1);
        err = fl_exe_run(m->exe, p, m->scope, 0, NULL, 0, NULL);
    }
    get_tensor(m, "a", 0);
    get_tensor(m, "b", 3);
    get_tensor(m, "d", 5);
    m->x[7] = ((float *)fl_scope_find(m->scope, "c")->tensor.data)[39999];
    fl_program_free(p);
    return err;
}

static void check_four_calls(const job *j)
{
    const double n = j->ranks, sum = n * (n - 1) / 2;
    for (int i = 0; i < j->ranks; i++) {
        const float *x = j->member[i].x;
        for (int k = 0; k < 3; k++)
            close_to(x[k], (sum + n * k) / 2);
        close_to(x[3], 10 * sum);
        close_to(x[4], 10 * sum + n);
        close_to(x[5], 0);
        close_to(x[6], 1);
        close_to(x[7], 0.1 * sum + n * 0.039999);
        CHECK(!memcmp(x, j->member[0].x, sizeof j->member[0].x));
    }
}

static void programs_reduce_over_all_ranks(void)
{
    for (int ranks = 1; ranks <= MOST; ranks++) {
        job j;
        run_job(&j, ranks, four_calls, reduce_twice);
        check_all_ok(&j);
        check_four_calls(&j);
    }
}

static void overlap_gives_the_same_bits(void)
{
    job with, without;
    setenv("FLUID_OVERLAP", "1", 1);
    run_job(&with, 3, four_calls, reduce_twice);
    check_all_ok(&with);
    setenv("FLUID_OVERLAP", "0", 1);
    run_job(&without, 3, four_calls, reduce_twice);
    unsetenv("FLUID_OVERLAP");
    check_all_ok(&without);
    check_four_calls(&with);
    for (int i = 0; i < 3; i++)
        CHECK(!memcmp(with.member[i].x, without.member[i].x,
                      sizeof with.member[i].x));
}

static void ranks_with_a_key_meet(void)
{
    char path[500];
    snprintf(path, sizeof path, "%s/key-XXXXXX", fl_test_dir());
    const int fd = mkstemp(path); /* of mode 0600 */
    job j;
    CHECK_INT(write(fd, "0123456789abcdef", 16), 16);
    setenv("FLUID_JOB_KEY_FILE", path, 1);
    run_job(&j, 2, four_calls, reduce_twice);
    CHECK(!fchmod(fd, 0644));
    check_all_ok(&j);
    check_four_calls(&j);
    run_job(&j, 2, four_calls, reduce_twice);
    unsetenv("FLUID_JOB_KEY_FILE");
    check_all_say(&j, "has mode 0644, so that others can use it");
    unlink(path);
    close(fd);
}

/* Each is more than an int64_t has of ns. */
static void a_limit_may_be_very_long(void)
{
    job j;
    setenv("FLUID_START", "1e12", 1);
    setenv("FLUID_COLLECTIVE_TIMEOUT", "1e300", 1);
    run_job(&j, 2, four_calls, reduce_twice);
    unsetenv("FLUID_START");
    unsetenv("FLUID_COLLECTIVE_TIMEOUT");
    check_all_ok(&j);
    check_four_calls(&j);
}

static void an_unknown_backend_is_refused(void)
{
    job j;
    setenv("FLUID_COLLECTIVE", "../evil", 1);
    run_job(&j, 1, four_calls, reduce_twice);
    check_all_say(&j, "is \"../evil\", expected ring or mpi");
    setenv("FLUID_COLLECTIVE", "pigeons", 1);
    run_job(&j, 1, four_calls, reduce_twice);
    unsetenv("FLUID_COLLECTIVE");
    check_all_say(&j, "is \"pigeons\", but its library cannot be loaded");
}

/* scale reads the sum without a c_sync_comm_stream before it. */
static const char without_sync[] =
    "block 0\n"
    "  var a: f32[3] persistable\n"
    "  c_allreduce_sum(X=a) -> Out=a {ring_id=1}\n"
    "  scale(X=a) -> Out=a {scale=2.0}\n"
    "  c_sync_comm_stream(X=a) -> Out=a {ring_id=1}\n";

static fl_err reduce_a(member *m)
{
    set_tensor(m, "a", 3, (float)m->rank, 1);
    FL_TRY(run_text(m, m->text));
    get_tensor(m, "a", 0);
    return FL_OK;
}

static void a_result_that_is_read_early_is_waited_for(void)
{
    job j;
    setenv("FLUID_OVERLAP", "1", 1);
    run_job(&j, 2, without_sync, reduce_a);
    unsetenv("FLUID_OVERLAP");
    check_all_ok(&j);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 3; k++)
            close_to(j.member[i].x[k], 2 * (1 + 2 * k));
}

static const char other_calls[] =
    "block 0\n"
    "  var a: f32[4] persistable\n"
    "  var g: f32[8] persistable\n"
    "  var s: f32[2] persistable\n"
    "  var r: f32[4] persistable\n"
    "  c_allgather(X=a) -> Out=g {ring_id=0, nranks=2}\n"
    "  c_reducescatter(X=a) -> Out=s {ring_id=1, nranks=2}\n"
    "  allreduce(X=a) -> Out=r {reduce_type=1}\n"
    "  c_broadcast(X=a) -> Out=a {ring_id=0, root=1}\n";

static fl_err call_others(member *m)
{
    set_tensor(m, "a", 4, 1 + (float)m->rank, 1);
    FL_TRY(run_text(m, m->text));
    get_tensor(m, "g", 0);
    get_tensor(m, "s", 8);
    get_tensor(m, "r", 10);
    get_tensor(m, "a", 14);
    return FL_OK;
}

static void programs_gather_scatter_and_broadcast(void)
{
    static const float want[2][18] = {
        {1, 2, 3, 4, 2, 3, 4, 5, 3, 5, 2, 6, 12, 20, 2, 3, 4, 5},
        {1, 2, 3, 4, 2, 3, 4, 5, 7, 9, 2, 6, 12, 20, 2, 3, 4, 5}};
    job j;
    run_job(&j, 2, other_calls, call_others);
    check_all_ok(&j);
    for (int i = 0; i < 2; i++)
        CHECK(!memcmp(j.member[i].x, want[i], sizeof want[i]));
}

/* --- gradients ------------------------------------------------------------ */

enum {
    IN = 4 /* elements of X on each rank */
};

static float weight_of(int rank, int i)
{
    return 1 + (float)(3 * rank + i) / 2;
}

/* The gradient that the table makes of a call, as text. */
static fl_err print_gradient(const char *type, int64_t n_out, fl_str *out)
{
    const fl_op_def *def = fl_registry_find(fl_check_registry(), type);
    fl_arena *arena = fl_arena_new();
    const char *x = "a", *y = "y";
    fl_desc *call = fl_desc_new(arena, type);
    fl_desc_set_in(call, "X", 1, &x);
    fl_desc_set_out(call, "Out", 1, &y);
    fl_desc_set_attr(call, &(fl_attr){"ring_id", FL_ATTR_INT, .i = 1});
    if (strcmp(type, "c_allreduce_sum"))
        fl_desc_set_attr(call, &(fl_attr){"nranks", FL_ATTR_INT, .i = 2});
    fl_grads g = {.fwd = call, .arena = arena};
    FL_TRY(def->make_grad(&g));
    const fl_desc *back = g.descs.at[0];
    const fl_attr *ranks = fl_desc_attr(back, "nranks");
    fl_str_printf(out,
                  "block 0\n"
                  "  var y@GRAD: f32[%lld] persistable\n"
                  "  var a@GRAD: f32[%d] persistable\n"
                  "  %s(X=%s) -> Out=%s {ring_id=%lld",
                  (long long)n_out, IN, back->type,
                  fl_desc_in(back, "X")->name[0],
                  fl_desc_out(back, "Out")->name[0],
                  (long long)fl_desc_attr(back, "ring_id")->i);
    if (ranks)
        fl_str_printf(out, ", nranks=%lld", (long long)ranks->i);
    fl_str_add(out, "}\n");
    fl_vec_fini(&g.descs);
    fl_arena_free(arena);
    return FL_OK;
}

/* This rank's part of the loss, the sum of weights times outputs, where element
 * k of rank q is larger by 1; q -1: none. */
static fl_err find_loss(member *m, const char *type, int64_t n_out, int q,
                        int k, float *loss)
{
    char text[300];
    snprintf(text, sizeof text,
             "block 0\n"
             "  var a: f32[%d] persistable\n"
             "  var y: f32[%lld] persistable\n"
             "  %s(X=a) -> Out=y {ring_id=1%s}\n",
             IN, (long long)n_out, type, n_out == IN ? "" : ", nranks=2");
    set_tensor(m, "a", IN, (float)m->rank, 1);
    if (m->rank == q)
        ((float *)fl_scope_find(m->scope, "a")->tensor.data)[k] += 1;
    FL_TRY(run_text(m, text));
    const float *y = fl_scope_find(m->scope, "y")->tensor.data;
    *loss = 0;
    for (int i = 0; i < n_out; i++)
        *loss += weight_of(m->rank, i) * y[i];
    return FL_OK;
}

/* x: the loss, then for each element of both ranks; then the gradient. */
static fl_err compare_gradient(member *m)
{
    const char *type = m->text;
    const int64_t n_out = strstr(type, "gather")    ? 2 * IN
                          : strstr(type, "scatter") ? IN / 2
                                                    : IN;
    fl_str back = {0};
    FL_TRY(find_loss(m, type, n_out, -1, 0, &m->x[0]));
    for (int i = 0; i < 2 * IN; i++)
        FL_TRY(find_loss(m, type, n_out, i / IN, i % IN, &m->x[1 + i]));
    set_tensor(m, "y@GRAD", n_out, weight_of(m->rank, 0), 0.5f);
    fl_err err = print_gradient(type, n_out, &back);
    if (!err)
        err = run_text(m, back.at);
    fl_str_fini(&back);
    if (!err)
        get_tensor(m, "a@GRAD", 1 + 2 * IN);
    return err;
}

static void gradients_of_calls_agree_with_differences(void)
{
    static const char *const types[] = {"c_allreduce_sum", "c_allgather",
                                        "c_reducescatter"};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        job j;
        run_job(&j, 2, types[t], compare_gradient);
        check_all_ok(&j);
        const float *a = j.member[0].x, *b = j.member[1].x;
        for (int i = 0; i < 2 * IN; i++)
            close_to(j.member[i / IN].x[1 + 2 * IN + i % IN],
                     (double)(a[1 + i] + b[1 + i] - a[0] - b[0]));
        fl_checked(types[t], true);
    }
}

/* --- selected rows -------------------------------------------------------- */

static const char sparse_call[] =
    "block 0\n"
    "  var g: selected_rows f32[9,2] persistable\n"
    "  c_allreduce_sum(X=g) -> Out=g {ring_id=0}\n"
    "  c_sync_comm_stream(X=g) -> Out=g {ring_id=0}\n";

/* Rank r has r rows, all with the index 5 - r; rank 0 has none. */
static fl_err gather_rows(member *m)
{
    fl_value *v = fl_scope_var(m->scope, "g");
    fl_rows *rows = &v->rows;
    v->kind = FL_SELECTED_ROWS;
    FL_TRY(fl_rows_resize(rows, FL_F32, &(fl_shape){2, {9, 2}}, m->rank));
    rows->height = 9;
    for (int i = 0; i < m->rank; i++) {
        fl_rows_index(rows)[i] = 5 - m->rank;
        ((float *)rows->value.data)[2 * i] = (float)m->rank;
        ((float *)rows->value.data)[2 * i + 1] = (float)i;
    }
    FL_TRY(run_text(m, m->text));
    m->n = rows->n;
    memcpy(m->index, rows->index.data, (size_t)m->n * sizeof *m->index);
    memcpy(m->x, rows->value.data, (size_t)m->n * 2 * sizeof *m->x);
    return FL_OK;
}

static void selected_rows_come_in_the_order_of_ranks(void)
{
    static const int64_t index[] = {4, 3, 3, 2, 2, 2};
    static const float x[] = {1, 0, 2, 0, 2, 1, 3, 0, 3, 1, 3, 2};
    for (int overlap = 0; overlap < 2; overlap++) {
        job j;
        setenv("FLUID_OVERLAP", overlap ? "1" : "0", 1);
        run_job(&j, 4, sparse_call, gather_rows);
        unsetenv("FLUID_OVERLAP");
        check_all_ok(&j);
        for (int i = 0; i < 4; i++) {
            CHECK_INT(j.member[i].n, 6);
            CHECK(!memcmp(j.member[i].index, index, sizeof index));
            CHECK(!memcmp(j.member[i].x, x, sizeof x));
        }
    }
}

/* Two slots of one table. Lookups and their gradients are fused around the
 * collective calls, and the results must be the same as without fusion. */
static const char lookups[] =
    "block 0\n"
    "  var a: i64[2,1] persistable\n"
    "  var b: i64[2,1] persistable\n"
    "  var w: f32[9,2] persistable\n"
    "  var ea: f32[2,2]\n"
    "  var eb: f32[2,2]\n"
    "  var y: f32[2,4] persistable\n"
    "  var da: f32[2,2]\n"
    "  var db: f32[2,2]\n"
    "  var ga: selected_rows f32[9,2]\n"
    "  var gb: selected_rows f32[9,2]\n"
    "  var g: selected_rows f32[9,2] persistable\n"
    "  lookup_table(Ids=a, W=w) -> Out=ea {is_sparse=true}\n"
    "  lookup_table(Ids=b, W=w) -> Out=eb {is_sparse=true}\n"
    "  concat(X=[ea, eb]) -> Out=y {axis=1}\n"
    "  concat_grad(X=[ea, eb], Out@GRAD=y) -> X@GRAD=[da, db] {axis=1}\n"
    "  lookup_table_grad(Ids=a, W=w, Out@GRAD=da) -> W@GRAD=ga "
    "{is_sparse=true}\n"
    "  lookup_table_grad(Ids=b, W=w, Out@GRAD=db) -> W@GRAD=gb "
    "{is_sparse=true}\n"
    "  sum(X=[ga, gb]) -> Out=g\n"
    "  c_allreduce_sum(X=g) -> Out=g {ring_id=0}\n"
    "  c_sync_comm_stream(X=g) -> Out=g {ring_id=0}\n";

static void set_ids(member *m, const char *id_name, int64_t first)
{
    fl_value *v = fl_scope_var(m->scope, id_name);
    v->kind = FL_LOD_TENSOR;
    if (fl_tensor_resize(&v->tensor, FL_I64, &(fl_shape){2, {2, 1}}))
        return;
    ((int64_t *)v->tensor.data)[0] = first;
    ((int64_t *)v->tensor.data)[1] = first + 1;
}

static fl_err look_up(member *m)
{
    fl_value *w = fl_scope_var(m->scope, "w");
    set_ids(m, "a", m->rank);
    set_ids(m, "b", 5 + m->rank);
    w->kind = FL_LOD_TENSOR;
    FL_TRY(fl_tensor_resize(&w->tensor, FL_F32, &(fl_shape){2, {9, 2}}));
    for (int i = 0; i < 18; i++)
        ((float *)w->tensor.data)[i] = (float)i;
    FL_TRY(run_text(m, m->text));
    const fl_rows *rows = &fl_scope_find(m->scope, "g")->rows;
    m->n = rows->n;
    memcpy(m->index, rows->index.data, (size_t)m->n * sizeof *m->index);
    memcpy(m->x, rows->value.data, (size_t)m->n * 2 * sizeof *m->x);
    return FL_OK;
}

static void lookups_are_fused_around_ranks(void)
{
    static const int64_t index[] = {0, 1, 5, 6, 1, 2, 6, 7};
    job j;
    run_job(&j, 2, lookups, look_up);
    check_all_ok(&j);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(j.member[i].n, 8);
        CHECK(!memcmp(j.member[i].index, index, sizeof index));
        for (int k = 0; k < 8; k++) /* the gradient equals the row */
            for (int d = 0; d < 2; d++)
                close_to(j.member[i].x[2 * k + d], 2 * (double)index[k] + d);
    }
}

/* --- faults --------------------------------------------------------------- */

static fl_err run_another(member *m)
{
    set_tensor(m, "a", m->rank == 1 ? 4 : 3, 0, 0);
    return run_text(m, m->rank == 1
                           ? "block 0\n"
                             "  var a: f32[4] persistable\n"
                             "  c_allreduce_sum(X=a) -> Out=a {ring_id=0}\n"
                           : "block 0\n"
                             "  var a: f32[3] persistable\n"
                             "  c_allreduce_sum(X=a) -> Out=a {ring_id=0}\n");
}

static void another_program_is_explained_to_all(void)
{
    job j;
    run_job(&j, 3, NULL, run_another);
    check_all_say(&j, "rank 1 runs another program than rank 0; the first "
                      "difference is: rank 0 has `var a: f32[3] persistable`, "
                      "rank 1 has `var a: f32[4] persistable`");
}

/* The programs are equal, but the sizes of fed variables differ. */
static fl_err run_other_shapes(member *m)
{
    set_tensor(m, "a", m->rank == 1 ? 4 : 3, 0, 0);
    return run_text(m, "block 0\n"
                       "  var a: f32[-1] persistable\n"
                       "  c_allreduce_sum(X=a) -> Out=a {ring_id=0}\n");
}

static void another_shape_is_explained_to_all(void)
{
    job j;
    run_job(&j, 2, NULL, run_other_shapes);
    check_all_say(&j, "all-reduce sum of 3 f32");
    check_all_say(&j, "all-reduce sum of 4 f32");
    check_all_say(&j, "for \"a\"");
}

/* Rank 1 fails after its first step. */
static fl_err fail_in_step(member *m)
{
    fl_program *p;
    fl_err err = FL_OK;
    FL_TRY(fl_program_parse(fl_check_registry(), four_calls, &p));
    for (int run = 0; run < 3 && !err; run++) {
        if (m->rank == 1 && run == 1)
            err = fl_fail(FL_EINVAL, "a bad line in the data");
        set_tensor(m, "a", 3, 0, 1);
        set_tensor(m, "b", 2, 0, 1);
        set_tensor(m, "c", 40000, 0, 1);
        set_tensor(m, "d", 2, 0, 1);
        if (!err)
            err = fl_exe_run(m->exe, p, m->scope, 0, NULL, 0, NULL);
    }
    fl_program_free(p);
    return err;
}

static void a_rank_that_fails_is_named_with_its_reason(void)
{
    job j;
    run_job(&j, 3, NULL, fail_in_step);
    check_all_say(&j, "a bad line in the data");
    CHECK(strstr(j.member[0].sentence, "rank 1 (127.0.0.1:"));
    CHECK(strstr(j.member[2].sentence, "rank 1 (127.0.0.1:"));
}

/* The program of rank 1 fails between a reduction and the wait for it. */
static fl_err fail_between(member *m)
{
    fl_program *p;
    FL_TRY(fl_program_parse(fl_check_registry(),
                            "block 0\n"
                            "  var a: f32[-1] persistable\n"
                            "  var b: f32[3] persistable\n"
                            "  var c: f32[-1] persistable\n"
                            "  c_allreduce_sum(X=a) -> Out=a {ring_id=0}\n"
                            "  elementwise_add(X=b, Y=c) -> Out=b {axis=-1}\n"
                            "  c_sync_comm_stream(X=a) -> Out=a {ring_id=0}\n",
                            &p));
    set_tensor(m, "a", 40000, 0, 1);
    set_tensor(m, "b", 3, 0, 1);
    set_tensor(m, "c", m->rank == 1 ? 2 : 3, 0, 1);
    fl_err err = fl_exe_run(m->exe, p, m->scope, 0, NULL, 0, NULL);
    if (m->rank == 1 && err) {
        set_tensor(m, "c", 3, 0, 1);
        err = fl_exe_run(m->exe, p, m->scope, 0, NULL, 0, NULL);
    }
    fl_program_free(p);
    return err;
}

static void a_run_that_stops_in_a_step_fails_on_all_ranks(void)
{
    for (int overlap = 0; overlap < 2; overlap++) {
        job j;
        setenv("FLUID_OVERLAP", overlap ? "1" : "0", 1);
        run_job(&j, 2, NULL, fail_between);
        unsetenv("FLUID_OVERLAP");
        CHECK(strstr(j.member[1].sentence,
                     "the last run stopped in the middle of a step"));
        /* With overlap the reduction was made before the failure. */
        if (!overlap)
            CHECK(strstr(j.member[0].sentence,
                         "it stopped in the middle of a step"));
    }
}

static fl_err run_nothing(member *m)
{
    return FL_OK;
}

static void calls_need_ranks(void)
{
    static const char text[] = "block 0\n"
                               "  var a: f32[3] persistable\n"
                               "  c_allreduce_sum(X=a) -> Out=a {ring_id=7}\n";
    job j;
    run_job(&j, 1, text, reduce_a);
    check_all_say(&j, "ring 7 has no ranks yet: run the startup program first");
    run_job(&j, 1, NULL, run_nothing);
    check_all_ok(&j);
    CHECK_ERR(fl_check_try(&(fl_op_case){.type = "c_allreduce_sum",
                                         .in = {{"X", {1}, {1}}},
                                         .out = {{"Out", {1}, {0}}}}),
              FL_EINVAL,
              "c_allreduce_sum: nothing here connects it to other ranks; only "
              "ranks can run it: exe.run of the program that ");
}

const fl_test fl_tests[] = {
    {"programs reduce over one to four ranks", programs_reduce_over_all_ranks},
    {"overlap gives the same bits", overlap_gives_the_same_bits},
    {"ranks with a key meet", ranks_with_a_key_meet},
    {"a limit may be very long", a_limit_may_be_very_long},
    {"an unknown backend is refused", an_unknown_backend_is_refused},
    {"a result that is read early is waited for",
     a_result_that_is_read_early_is_waited_for},
    {"programs gather, scatter and broadcast",
     programs_gather_scatter_and_broadcast},
    {"gradients of calls agree with differences",
     gradients_of_calls_agree_with_differences},
    {"selected rows come in the order of ranks",
     selected_rows_come_in_the_order_of_ranks},
    {"lookups are fused around ranks", lookups_are_fused_around_ranks},
    {"another program is explained to all",
     another_program_is_explained_to_all},
    {"another shape is explained to all", another_shape_is_explained_to_all},
    {"a rank that fails is named with its reason",
     a_rank_that_fails_is_named_with_its_reason},
    {"a run that stops in a step fails on all ranks",
     a_run_that_stops_in_a_step_fails_on_all_ranks},
    {"calls need ranks", calls_need_ranks},
    {0},
};
