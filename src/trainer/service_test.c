/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of trainers' programs, in programs that run. */
#include "cluster/test_placement.h"
#include "trainer/service.h"

#include "exec/test_exec.h"
#include "trainer/test_job.h"

typedef struct scene {
    test_job job;
    fl_service *service;
    fl_entropy entropy;
    fl_scope *scope;
    fl_exe *exe;
    fl_program *program;
} scene;

static void open_scene(scene *s, int servers, bool async)
{
    test_job_begin(&s->job, servers, 1, async);
    s->service = fl_service_new();
    s->entropy = fl_entropy_fake(1);
    s->scope = fl_scope_new();
    s->exe = fl_exe_make(&(fl_exec_env){.registry = fl_check_registry(),
                                        .disk = fl_disk_real(),
                                        .entropy = &s->entropy,
                                        .service = s->service});
    s->program = NULL;
}

/* Parse a program; ~0 and ~1 stand for the endpoints of the servers. */
static void read_program(scene *s, const char *text)
{
    fl_str t = {0};
    for (; *text; text++) {
        if (*text == '~')
            fl_str_printf(&t, "\"%s\"", s->job.address[*++text - '0']);
        else
            fl_str_bytes(&t, text, 1);
    }
    fl_program_free(s->program);
    CHECK_OK(fl_program_parse(fl_check_registry(), t.at, &s->program));
    test_place(s->program, &s->job.place);
    fl_str_fini(&t);
}

static fl_err run(scene *s, int n, const fl_feed *feeds, fl_fetch *fetch)
{
    return fl_exe_run(s->exe, s->program, s->scope, n, feeds, fetch ? 1 : 0,
                      fetch);
}

/* Run the program, and check the elements of the value that is fetched. */
static void gives(scene *s, int n, const fl_feed *feeds, const char *name,
                  int count, const float *want)
{
    fl_fetch got = {name, {0}};
    CHECK_OK(run(s, n, feeds, &got));
    CHECK_INT(fl_tensor_numel(&got.tensor), count);
    for (int i = 0; i < count; i++)
        CHECK_NEAR(((float *)got.tensor.data)[i], want[i], 0);
    fl_tensor_fini(&got.tensor);
}

static void close_scene(scene *s)
{
    fl_exe_free(s->exe);
    fl_program_free(s->program);
    fl_scope_free(s->scope);
    fl_service_free(s->service); /* its trainers complete */
    CHECK_INT(test_job_done(&s->job), 1);
    test_job_end(&s->job);
}

static void sends_meets_and_receives(void)
{
    scene s;
    open_scene(&s, 2, false);
    test_job_var(&s.job, 0, "w.block0", 1, 2, 4);
    test_job_var(&s.job, 1, "w.block1", 1, 2, 8);
    read_program(
        &s,
        "block 0\n"
        "  data w.block0@GRAD: f32[1,2]\n"
        "  data w.block1@GRAD: f32[1,2]\n"
        "  var w.block0: f32[1,2]\n"
        "  var w.block1: f32[1,2]\n"
        "  var w: f32[2,2] persistable\n"
        "  var t: f32[1]\n"
        "  var u: f32[1]\n"
        "  var never: f32[1] persistable\n"
        "  send(X=[w.block0@GRAD, w.block1@GRAD]) -> Out=t {epmap=[~0, ~1]}\n"
        "  send(X=never) -> Out=t {epmap=[~1]}\n"
        "  send_barrier(X=t) -> Out=u {endpoints=[~0, ~1]}\n"
        "  recv(X=u) -> Out=[w.block0, w.block1] {epmap=[~0, ~1]}\n"
        "  fetch_barrier() -> Out=[w.block0, w.block1] {endpoints=[~0, ~1]}\n"
        "  concat(X=[w.block0, w.block1]) -> Out=w {axis=0}\n");
    const float one[] = {1, 2};
    const fl_feed feeds[] = {rig_feed("w.block0@GRAD", 1, 2, one),
                             rig_feed("w.block1@GRAD", 1, 2, one)};
    gives(&s, 2, feeds, "w", 4, (float[]){3, 2, 7, 6});
    gives(&s, 2, feeds, "w", 4, (float[]){2, 0, 6, 4});
    gives(&s, 2, feeds, "w", 4, (float[]){1, -2, 5, 2});
    close_scene(&s);
}

static void send_cuts_and_recv_joins(void)
{
    scene s;
    open_scene(&s, 2, true);
    test_job_var(&s.job, 0, "w.block0", 2, 2, 4);
    test_job_var(&s.job, 1, "w.block1", 1, 2, 8);
    read_program(
        &s, "block 0\n"
            "  data w@GRAD: f32[3,2]\n"
            "  param w: f32[3,2]\n"
            "  var t: f32[1]\n"
            "  send(X=w@GRAD) -> Out=t {epmap=[~0, ~1], sections=[2l, 1l], "
            "send_varnames=[\"w.block0@GRAD\", \"w.block1@GRAD\"]}\n"
            "  recv(X=t) -> Out=w {epmap=[~0, ~1], "
            "recv_varnames=[\"w.block0\", \"w.block1\"]}\n");
    const float g[] = {1, 2, 3, 4, 5, 6};
    const fl_feed feed = rig_feed("w@GRAD", 3, 2, g);
    gives(&s, 1, &feed, "w", 6, (float[]){3, 2, 1, 0, 3, 2});
    gives(&s, 1, &feed, "w", 6, (float[]){2, 0, -2, -4, -2, -4});
    close_scene(&s);
}

/* Each section numbers its rows from 0. */
static void send_cuts_rows(void)
{
    scene s;
    open_scene(&s, 2, true);
    test_job_var(&s.job, 0, "w.block0", 2, 1, 0);
    test_job_var(&s.job, 1, "w.block1", 2, 1, 0);
    read_program(&s, "block 0\n"
                     "  var g: selected_rows f32[4,1] persistable\n"
                     "  param w: f32[4,1]\n"
                     "  var t: f32[1]\n"
                     "  send(X=g) -> Out=t {epmap=[~0, ~1], sections=[2l, 2l], "
                     "send_varnames=[\"w.block0@GRAD\", \"w.block1@GRAD\"]}\n"
                     "  recv(X=t) -> Out=w {epmap=[~0, ~1], "
                     "recv_varnames=[\"w.block0\", \"w.block1\"]}\n");
    fl_value *g = fl_scope_var(s.scope, "g");
    g->kind = FL_SELECTED_ROWS;
    CHECK_OK(fl_rows_resize(&g->rows, FL_F32, &(fl_shape){2, {4, 1}}, 3));
    memcpy(g->rows.index.data, (int64_t[]){3, 1, 3}, 3 * sizeof(int64_t));
    memcpy(g->rows.value.data, (float[]){1, 2, 4}, 3 * sizeof(float));
    gives(&s, 0, NULL, "w", 4, (float[]){0, -2, 0, -5});
    g->rows.height = 5;
    CHECK_ERR(run(&s, 0, NULL, NULL), FL_ESHAPE,
              "send: the sections have 4 rows, X has 5");
    close_scene(&s);
}

static void recv_that_another_does_only_sends(void)
{
    scene s;
    open_scene(&s, 1, true);
    test_job_var(&s.job, 0, "w", 1, 1, 3);
    read_program(&s, "block 0\n"
                     "  data w@GRAD: f32[1,1]\n"
                     "  param w: f32[1,1]\n"
                     "  var t: f32[1]\n"
                     "  send(X=w@GRAD) -> Out=t {epmap=[~0]}\n"
                     "  recv(X=t) -> Out=w {epmap=[~0], do_not_run=1}\n");
    const fl_feed feed = rig_feed("w@GRAD", 1, 1, (float[]){1});
    CHECK_OK(run(&s, 1, &feed, NULL));
    CHECK(!fl_scope_find(s.scope, "w")->tensor.data);
    CHECK_NEAR(*(float *)s.job.server[0].var[0].value.data, 2, 0);
    close_scene(&s);
}

static void lookups_ask_for_each_row_once(void)
{
    scene s;
    open_scene(&s, 2, false);
    test_job_var(&s.job, 0, "w.block0", 3, 2, 4);
    test_job_var(&s.job, 1, "w.block1", 2, 2, 8);
    ((float *)s.job.server[0].var[0].value.data)[5] = 5; /* row 2 */
    read_program(
        &s, "block 0\n"
            "  data a: i64[-1,1] lod=1\n"
            "  data b: i64[-1,1]\n"
            "  param w: f32[5,2]\n"
            "  var x: f32[-1,2] lod=1\n"
            "  var y: f32[-1,2]\n"
            "  distributed_lookup_table(Ids=[a, b], W=w) -> Outputs=[x, y] "
            "{table_names=[\"w.block0\", \"w.block1\"], "
            "height_sections=[3l, 2l], endpoints=[~0, ~1], padding_idx=1l}\n");
    fl_tensor w =
        fl_tensor_view(FL_F32, &(fl_shape){2, {5, 2}}, (float[10]){0});
    CHECK_OK(fl_scope_set(s.scope, "w", &w));
    const int64_t a[] = {3, 2, 1, 3}, b[] = {2};
    fl_feed feeds[] = {
        {"a", fl_tensor_view(FL_I64, &(fl_shape){2, {4, 1}}, a)},
        {"b", fl_tensor_view(FL_I64, &(fl_shape){2, {1, 1}}, b)},
    };
    gives(&s, 2, feeds, "x", 8, (float[]){8, 8, 4, 5, 0, 0, 8, 8});
    gives(&s, 2, feeds, "y", 2, (float[]){4, 5});
    feeds[0].tensor.shape.dim[0] = 0; /* no ids */
    gives(&s, 2, feeds, "y", 2, (float[]){4, 5});
    feeds[1].tensor.data = (int64_t[]){5};
    CHECK_ERR(run(&s, 2, feeds, NULL), FL_EINVAL,
              "distributed_lookup_table: id 5 is not a row of \"w\", which "
              "has rows 0 to 4");
    close_scene(&s);
}

static void tables_are_asked_by_the_number_of_a_row(void)
{
    scene s;
    open_scene(&s, 2, false);
    test_job_var(&s.job, 0, "w", 6, 2, 4);
    test_job_var(&s.job, 1, "w", 6, 2, 8);
    read_program(&s, "block 0\n"
                     "  data ids: i64[-1,1]\n"
                     "  var w: f32[6,2] persistable\n"
                     "  var i0: i64[-1,1]\n"
                     "  var i1: i64[-1,1]\n"
                     "  var o0: f32[-1,2]\n"
                     "  var o1: f32[-1,2]\n"
                     "  var x: f32[-1,2]\n"
                     "  fake_init() -> Out=w {shape=[6l, 2l]}\n"
                     "  split_ids(Ids=ids) -> Out=[i0, i1]\n"
                     "  prefetch(X=[i0, i1]) -> Out=[o0, o1] {epmap=[~0, ~1], "
                     "table_name=\"w\"}\n"
                     "  merge_ids(Ids=ids, Rows=[i0, i1], X=[o0, o1]) -> "
                     "Out=x\n");
    const int64_t ids[] = {5, 2, 5};
    const fl_feed feed = {"ids",
                          fl_tensor_view(FL_I64, &(fl_shape){2, {3, 1}}, ids)};
    gives(&s, 1, &feed, "x", 6, (float[]){8, 8, 4, 4, 8, 8});
    const fl_tensor *w = &fl_scope_find(s.scope, "w")->tensor;
    CHECK(w->dtype == FL_F32 && w->shape.dim[0] == 6);
    close_scene(&s);
}

/* --- a program that was not transpiled --- */

#define TEST_OF_TWO                                                            \
    "block 0\n"                                                                \
    "  data a: i64[-1,1]\n"                                                    \
    "  data b: i64[-1,1]\n"                                                    \
    "  param w: f32[5,2]\n"                                                    \
    "  var x: f32[-1,2]\n"                                                     \
    "  var y: f32[-1,2]\n"                                                     \
    "  lookup_table(W=w, Ids=a) -> Out=x {padding_idx=1l}\n"                   \
    "  lookup_table(W=w, Ids=b) -> Out=y {padding_idx=1l}\n"

/* A trainer without a copy of w starts, then runs a program that is in no job.
 */
static void start_and_read(scene *s, int n, const fl_piece *pieces)
{
    fl_placement place = s->job.place;
    place.n_pieces = n;
    place.pieces = pieces;
    read_program(s, "block 0\n  param w: f32[5,2]\n"
                    "  fill_constant() -> Out=w {shape=[5l, 2l]}\n"
                    "  recv() -> Out=w {epmap=[~0]}\n"
                    "  fetch_barrier() {endpoints=[~0]}\n");
    test_place(s->program, &place);
    fl_block_var(fl_program_block(s->program, 0), "w")->absent = true;
    CHECK_OK(run(s, 0, NULL, NULL));
    fl_program_free(s->program);
    CHECK_OK(fl_program_parse(fl_check_registry(), TEST_OF_TWO, &s->program));
}

static void a_test_looks_up_on_servers(void)
{
    scene s;
    open_scene(&s, 2, false);
    test_job_var(&s.job, 1, "w.block0", 3, 2, 4);
    test_job_var(&s.job, 0, "w.block1", 2, 2, 8);
    const fl_piece pieces[] = {
        {"w", "w.block1", 0, 6, {2, {2, 2}}},
        {"v", "v", 0, 0, {2, {5, 2}}},
        {"w", "w.block0", 1, 0, {2, {3, 2}}},
    };
    start_and_read(&s, 3, pieces);
    const int64_t a[] = {4, 1, 0}, b[] = {2};
    fl_feed feeds[] = {
        {"a", fl_tensor_view(FL_I64, &(fl_shape){2, {3, 1}}, a)},
        {"b", fl_tensor_view(FL_I64, &(fl_shape){2, {1, 1}}, b)},
    };
    gives(&s, 2, feeds, "x", 6, (float[]){8, 8, 0, 0, 4, 4});
    gives(&s, 2, feeds, "y", 2, (float[]){4, 4});
    feeds[1].tensor.data = (int64_t[]){5};
    CHECK_ERR(run(&s, 2, feeds, NULL), FL_EINVAL,
              "id 5 is not a row of \"w\", which has rows 0 to 4");
    close_scene(&s);
}

/* Servers number the rows of such a table by id. */
static void a_test_looks_up_by_id(void)
{
    scene s;
    open_scene(&s, 2, false);
    test_job_var(&s.job, 0, "w", 6, 2, 4);
    test_job_var(&s.job, 1, "w", 6, 2, 8);
    ((float *)s.job.server[1].var[0].value.data)[6] = 5; /* id 3 */
    const fl_piece pieces[] = {{"w", "w", 0, FL_BY_ID, {2, {3, 2}}},
                               {"w", "w", 1, FL_BY_ID, {2, {3, 2}}}};
    start_and_read(&s, 2, pieces);
    const int64_t a[] = {4, 1, 3, 3}, b[] = {5};
    fl_feed feeds[] = {
        {"a", fl_tensor_view(FL_I64, &(fl_shape){2, {4, 1}}, a)},
        {"b", fl_tensor_view(FL_I64, &(fl_shape){2, {1, 1}}, b)},
    };
    gives(&s, 2, feeds, "x", 8, (float[]){4, 4, 0, 0, 5, 8, 5, 8});
    gives(&s, 2, feeds, "y", 2, (float[]){8, 8});
    feeds[1].tensor.data = (int64_t[]){-3};
    CHECK_ERR(run(&s, 2, feeds, NULL), FL_EINVAL,
              "id -3 is not a row of \"w\"");
    feeds[1].tensor.data = (int64_t[]){INT64_MAX};
    CHECK_ERR(run(&s, 2, feeds, NULL), FL_EINVAL,
              "id 9223372036854775807 is not a row of \"w\", which has rows 0 "
              "to 9223372036854775806");
    close_scene(&s);
}

/* One process takes part in two jobs, one after the other, and runs the same
 * test program in both. */
static void a_test_asks_the_newest_job(void)
{
    scene s, next;
    const int64_t id[] = {4};
    const fl_tensor ids = fl_tensor_view(FL_I64, &(fl_shape){2, {1, 1}}, id);
    const fl_feed feeds[] = {{"a", ids}, {"b", ids}};
    open_scene(&s, 2, false);
    test_job_var(&s.job, 1, "w", 5, 2, 4);
    start_and_read(&s, 1, &(fl_piece){"w", "w", 1, 0, {2, {5, 2}}});
    gives(&s, 2, feeds, "x", 2, (float[]){4, 4});
    next = s;
    next.program = NULL;
    test_job_begin(&next.job, 1, 1, true);
    test_job_var(&next.job, 0, "w", 5, 2, 8);
    start_and_read(&next, 1, &(fl_piece){"w", "w", 0, 0, {2, {5, 2}}});
    gives(&s, 2, feeds, "x", 2, (float[]){8, 8});
    close_scene(&s);
    fl_program_free(next.program);
    CHECK_INT(test_job_done(&next.job), 1);
    test_job_end(&next.job);
}

static void programs_without_a_job_say_so(void)
{
    scene s;
    open_scene(&s, 1, false);
    read_program(&s, "block 0\n  send_barrier() {endpoints=[~0]}\n");
    CHECK_OK(run(&s, 0, NULL, NULL));
    read_program(&s, "block 0\n  param w: f32[1]\n"
                     "  recv() -> Out=w {epmap=[\"elsewhere:1\"]}\n");
    CHECK_ERR(run(&s, 0, NULL, NULL), FL_EINVAL,
              "recv: \"elsewhere:1\" is not among the job's 1 servers");
    fl_program_free(s.program);
    CHECK_OK(fl_program_parse(
        fl_check_registry(),
        "block 0\n  send_barrier() {endpoints=[\"a:1\"]}\n", &s.program));
    CHECK_ERR(run(&s, 0, NULL, NULL), FL_EINVAL,
              "send_barrier: the program is not part of a job");
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"a program sends, meets and receives", sends_meets_and_receives},
    {"send cuts and recv joins", send_cuts_and_recv_joins},
    {"send cuts rows", send_cuts_rows},
    {"a recv that another does only sends", recv_that_another_does_only_sends},
    {"lookups ask for each row once", lookups_ask_for_each_row_once},
    {"tables are asked by the number of a row",
     tables_are_asked_by_the_number_of_a_row},
    {"a test looks up on servers", a_test_looks_up_on_servers},
    {"a test looks up by id", a_test_looks_up_by_id},
    {"a test asks the newest job", a_test_asks_the_newest_job},
    {"programs without a job say so", programs_without_a_job_say_so},
    {0},
};
