/* SPDX-License-Identifier: Apache-2.0 */
/* Temporaries share memory, and the results do not change. */
#include "exec/test_exec.h"

#include "base/str.h"

#include <stdio.h>

enum {
    WIDE = 1000, /* elements of a tensor */
    FLOATS = WIDE * (int)sizeof(float),
};

/* Run a program once with a feed x and one fetch. Returns its plan. */
static fl_plan *run_plan(rig *r, int n, const float *x, const char *fetch)
{
    fl_plan *plan;
    fl_feed feed = rig_feed("x", n, WIDE / 10, x);
    fl_fetch got = {fetch, {0}};
    CHECK_OK(fl_exe_plan(
        r->exe, &(fl_request){r->program, r->scope, 1, 1, &feed, &got}, &plan));
    CHECK_OK(fl_plan_run(plan, &feed, &got));
    fl_fetch_fini(&got);
    return plan;
}

static void check_bytes(const char *ops, size_t least, size_t most)
{
    rig r;
    float x[WIDE] = {0};
    fl_str text = {0};
    fl_str_printf(&text,
                  "block 0\n  data x: f32[10,100]\n  var a: f32[10,100]\n"
                  "  var b: f32[10,100]\n  var c: f32[10,100]\n"
                  "  var d: f32[10,100]\n  var e: f32[10,100]\n%s",
                  ops);
    rig_init(&r, text.at, true);
    const size_t bytes = fl_plan_bytes(run_plan(&r, 10, x, "e"));
    CHECK(bytes >= least && bytes <= most);
    rig_fini(&r);
    fl_str_fini(&text);
}

static void a_chain_needs_two(void)
{
    check_bytes("  softmax(X=x) -> Out=a\n  softmax(X=a) -> Out=b\n"
                "  softmax(X=b) -> Out=c\n  softmax(X=c) -> Out=d\n"
                "  softmax(X=d) -> Out=e\n",
                2 * FLOATS, 2 * FLOATS + 64);
}

static void a_chain_in_place_needs_one(void)
{
    check_bytes("  relu(X=x) -> Out=a\n  scale(X=a) -> Out=b\n"
                "  relu(X=b) -> Out=c\n  elementwise_add(X=c, Y=x) -> Out=d\n"
                "  relu(X=d) -> Out=e\n",
                FLOATS, FLOATS + 64);
}

static void a_value_that_is_read_later_keeps_its_memory(void)
{
    check_bytes("  relu(X=x) -> Out=a\n  relu(X=a) -> Out=b\n"
                "  relu(X=b) -> Out=c\n  relu(X=c) -> Out=d\n"
                "  elementwise_add(X=a, Y=d) -> Out=e\n",
                2 * FLOATS, 2 * FLOATS + 64);
}

static void a_view_keeps_its_source(void)
{
    rig r;
    float x[] = {-1, 2, 3, -4, 5, 6};
    rig_init(&r,
             "block 0\n  data x: f32[-1,3]\n  var a: f32[-1,3]\n"
             "  var v: f32[6]\n  var b: f32[-1,3]\n  var c: f32[-1,3]\n"
             "  var d: f32[6]\n"
             "  scale(X=x) -> Out=a {scale=2.0}\n"
             "  reshape(X=a) -> Out=v {shape=[6]}\n"
             "  scale(X=x) -> Out=b {scale=-1.0}\n"
             "  scale(X=b) -> Out=c {scale=-1.0}\n"
             "  scale(X=v) -> Out=d {scale=0.5}\n",
             true);
    fl_feed feed = rig_feed("x", 2, 3, x);
    fl_fetch got = {"d", {0}};
    for (int run = 0; run < 3; run++) {
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &feed, 1, &got));
        for (int i = 0; i < 6; i++)
            CHECK_NEAR(((float *)got.tensor.data)[i], x[i], 0);
    }
    fl_fetch_fini(&got);
    rig_fini(&r);
}

/* --- random programs --- */

enum {
    ROWS = 6,
    COLUMNS = 5,
    STEPS = 30,
    PROGRAMS = 300,
};

static uint64_t draw(fl_entropy *e, uint64_t n)
{
    return e->draw(e) % n;
}

/* Each step reads variables v0 .. of the same shape; v0 is fed. Some kernels
 * may write in place, others not; some outputs are views. */
static char *random_program(fl_entropy *e)
{
    static const char *const ops[] = {
        "relu(X=v%d) -> Out=v%d",
        "tanh(X=v%d) -> Out=v%d",
        "softmax(X=v%d) -> Out=v%d",
        "cumsum(X=v%d) -> Out=v%d {axis=1}",
        "reverse(X=v%d) -> Out=v%d {axis=[0]}",
        "reshape(X=v%d) -> Out=v%d {shape=[-1,5]}",
    };
    static const char *const pairs[] = {
        "elementwise_add(X=v%d, Y=v%d) -> Out=v%d",
        "elementwise_mul(X=v%d, Y=v%d) -> Out=v%d",
        "sum(X=[v%d, v%d]) -> Out=v%d",
        "relu_grad(Out=v%d, Out@GRAD=v%d) -> X@GRAD=v%d",
    };
    fl_str s = {0};
    fl_str_printf(&s, "block 0\n  data v0: f32[-1,%d]\n", COLUMNS);
    for (int i = 1; i <= STEPS; i++)
        fl_str_printf(&s, "  var v%d: f32[-1,%d]\n", i, COLUMNS);
    for (int i = 1; i <= STEPS; i++) {
        const int from = i > 6 ? i - 6 : 0; /* most lives are short */
        const int a = from + (int)draw(e, (uint64_t)(i - from));
        const int b = (int)draw(e, (uint64_t)i);
        fl_str_printf(&s, "  ");
        if (draw(e, 2))
            fl_str_printf(&s, ops[draw(e, 6)], a, i);
        else
            fl_str_printf(&s, pairs[draw(e, 4)], a, b, i);
        fl_str_printf(&s, "\n");
    }
    return fl_str_take(&s);
}

/* Compare a run that fetches every variable, so that none shares memory, with a
 * run that fetches only the last one. */
static void compare_runs(const char *text)
{
    static char names[STEPS][16];
    rig r;
    fl_fetch all[STEPS] = {0}, last = {0};
    float x[2 * ROWS * COLUMNS];
    for (int i = 0; i < 2 * ROWS * COLUMNS; i++)
        x[i] = (float)(i % 7) - 3;
    for (int i = 0; i < STEPS; i++) {
        snprintf(names[i], sizeof names[i], "v%d", i + 1);
        all[i].name = names[i];
    }
    last.name = names[STEPS - 1];
    rig_init(&r, text, true);
    for (int run = 0; run < 5; run++) { /* the batch grows and shrinks */
        const int rows = run == 2 ? 2 * ROWS : run == 3 ? 2 : ROWS;
        fl_feed feed = rig_feed("v0", rows, COLUMNS, x);
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &feed, STEPS, all));
        CHECK_OK(fl_exe_run(r.exe, r.program, r.scope, 1, &feed, 1, &last));
        const fl_tensor *t = &all[STEPS - 1].tensor;
        CHECK_INT(fl_tensor_numel(&last.tensor), rows * COLUMNS);
        if (memcmp(t->data, last.tensor.data, fl_tensor_bytes(t)))
            print_error("%s", text);
        CHECK(!memcmp(t->data, last.tensor.data, fl_tensor_bytes(t)));
    }
    for (int i = 0; i < STEPS; i++)
        fl_fetch_fini(&all[i]);
    fl_fetch_fini(&last);
    rig_fini(&r);
}

static void sharing_changes_no_bits(void)
{
    fl_entropy e = fl_entropy_fake(7);
    for (int i = 0; i < PROGRAMS; i++) {
        char *text = random_program(&e);
        compare_runs(text);
        fl_mem_free(text);
    }
}

static void a_batch_that_varies_allocates_nothing_in_the_end(void)
{
    rig r;
    float x[WIDE] = {0};
    rig_init(&r,
             "block 0\n  data x: f32[-1,100]\n  var a: f32[-1,100]\n"
             "  var b: f32[-1,100]\n  var c: f32[-1,100]\n  var d: f32[1]\n"
             "  softmax(X=x) -> Out=a\n  softmax(X=a) -> Out=b\n"
             "  softmax(X=b) -> Out=c\n  mean(X=c) -> Out=d\n",
             true);
    for (int n = 1; n <= 10; n++)
        run_plan(&r, n, x, "d");
    const fl_plan *plan = run_plan(&r, 10, x, "d");
    const size_t bytes = fl_plan_bytes(plan);
    for (int n = 1; n <= 10; n++)
        run_plan(&r, n, x, "d");
    CHECK_INT((int64_t)fl_plan_bytes(plan), (int64_t)bytes);
    rig_fini(&r);
}

const fl_test fl_tests[] = {
    {"a chain needs two regions", a_chain_needs_two},
    {"a chain in place needs one region", a_chain_in_place_needs_one},
    {"a value that is read later keeps its memory",
     a_value_that_is_read_later_keeps_its_memory},
    {"a view keeps its source's memory", a_view_keeps_its_source},
    {"sharing changes no bits", sharing_changes_no_bits},
    {"a batch that varies allocates nothing in the end",
     a_batch_that_varies_allocates_nothing_in_the_end},
    {0},
};
