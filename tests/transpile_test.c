/* SPDX-License-Identifier: Apache-2.0 */
/* Cut programs, run: what servers start is what the whole program starts. */
#include "base/test.h"

#include <stdio.h>
#include <string.h>

#define SERVERS "h:1,h:2,h:3"
enum {
    ROWS = 10,
    WIDTH = 6,
};

/* An initialiser of one's own: numbers, and then twice as large. */
static fl_err doubled(const fl_init *self, fl_net *n, fl_var *v)
{
    const fl_init uniform = {"uniform", .a = 1, .b = 2, .seed = 3};
    fl_program *startup = fl_net_startup(n);
    fl_block *b = fl_program_block(startup, 0);
    fl_err err = fl_init_emit(&uniform, n, v);
    const char *name = fl_var_name(v);
    const fl_args in = {"X", 1, (const char *[]){name}};
    const fl_args out = {"Out", 1, (const char *[]){name}};
    const fl_attr scale = {"scale", FL_ATTR_FLOAT, .f = 2};
    const fl_desc d = {.type = "scale",
                       .n_in = 1,
                       .in = (fl_args *)&in,
                       .n_out = 1,
                       .out = (fl_args *)&out,
                       .n_attr = 1,
                       .attr = (fl_attr *)&scale};
    return err ? err : fl_block_insert_op(b, -1, &d, NULL);
}

static fl_tensor get(fl_scope *s, const char *name)
{
    fl_tensor t = {0};
    CHECK_OK(fl_scope_get(s, name, &t));
    return t;
}

static fl_scope *run(fl_engine *e, fl_program *p)
{
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, NULL);
    CHECK_OK(fl_exe_run(exe, p, s, 0, NULL, 0, NULL));
    fl_exe_free(exe);
    return s;
}

/* Rows `at` and on of `whole` are those of `name` on a server. */
static int64_t check_rows(fl_scope *whole, fl_scope *server, const char *of,
                          const char *name, int64_t at)
{
    fl_tensor all = get(whole, of), part = get(server, name);
    const int64_t n = part.shape.dim[0];
    const size_t row = WIDTH * sizeof(float);
    CHECK_INT(part.shape.dim[1], WIDTH);
    CHECK(!memcmp((char *)all.data + (size_t)at * row, part.data,
                  (size_t)n * row));
    fl_tensor_fini(&all);
    fl_tensor_fini(&part);
    return n;
}

static void start(const fl_init *init)
{
    fl_engine *e = fl_engine_new();
    fl_net *n = fl_net_new(e);
    fl_net_seed(n, 90);
    const fl_param_attr attr = {.name = "w", .init = init};
    fl_var *x = FL_LAYER(n, "data", {"name", .s = "x"}, {"shape", .i = ROWS});
    fl_var *y = FL_LAYER(n, "fc", {"input", .var = x}, {"size", .i = WIDTH},
                         {"param_attr", .attr = &attr});
    fl_var *loss = FL_LAYER(n, "mean", {"x", .var = y});
    CHECK_OK(fl_minimize(n, loss, "adam",
                         (fl_arg[]){{"learning_rate", .f = 0.5}, {0}}));
    const fl_transpile_opts opts = {
        .pservers = SERVERS, .trainers = 2, .min_block_size = WIDTH};
    fl_cut *cut;
    CHECK_OK(fl_transpile(fl_net_main(n), fl_net_startup(n), &opts, &cut));
    fl_scope *whole = run(e, fl_net_startup(n));
    /* fc_0.b_0 and w.block2 are on the first; rows are 4, 4, 2 */
    static const char *const holders[] = {"h:2", "h:3", "h:1"};
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        fl_program *p, *startup;
        char name[32];
        CHECK_OK(fl_cut_server(cut, holders[i], &p, &startup));
        fl_scope *s = run(e, startup);
        snprintf(name, sizeof name, "w.block%d", i);
        check_rows(whole, s, "w_moment1_0", "w_moment1_0", at);
        at += check_rows(whole, s, "w", name, at);
        fl_scope_free(s);
    }
    CHECK_INT(at, ROWS);
    fl_scope_free(whole);
    fl_cut_free(cut);
    fl_net_free(n);
    fl_engine_free(e);
}

static void pieces_start_as_the_whole(void)
{
    float values[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++)
        values[i] = (float)i / 7;
    const fl_tensor array =
        fl_tensor_view(FL_F32, &(fl_shape){2, {ROWS, WIDTH}}, values);
    const fl_init inits[] = {
        {"constant", .a = 3},
        {"uniform", .a = -1, .b = 1},
        {"normal", .a = 1, .b = 2},
        {"truncated_normal", .a = 0, .b = 1},
        {"xavier"},
        {"xavier", .gaussian = true, .seed = 7},
        {"msra"},
        {"array", .array = &array},
        {"mine", .emit = doubled},
    };
    for (size_t i = 0; i < sizeof inits / sizeof *inits; i++)
        start(&inits[i]);
}

const fl_test fl_tests[] = {
    {"pieces on servers start as the whole does", pieces_start_as_the_whole},
    {0},
};
