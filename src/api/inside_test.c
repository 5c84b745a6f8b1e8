/* SPDX-License-Identifier: Apache-2.0 */
/* What fluid.h shows of programs, tables and runs; nothing else is included
 * but the test frame. */
#include "base/test.h"
#include "fluid.h"

#include <string.h>

typedef struct world {
    fl_engine *e;
    fl_program *main, *startup;
    fl_names *names;
    fl_net *n;
} world;

static void begin(world *w)
{
    w->e = fl_engine_new();
    w->main = fl_program_new(w->e);
    w->startup = fl_program_new(w->e);
    w->names = fl_names_new(NULL);
    w->n = fl_net_over(w->main, w->startup, w->names);
}

static void end(world *w)
{
    fl_net_free(w->n);
    fl_names_free(w->names);
    fl_program_free(w->main);
    fl_program_free(w->startup);
    fl_engine_free(w->e);
}

static fl_var *data(world *w, const char *name, int64_t width)
{
    fl_var *v =
        FL_LAYER(w->n, "data", {"name", .s = name}, {"shape", .i = width});
    CHECK(v);
    return v;
}

static fl_var *loss_of(world *w)
{
    fl_var *h = FL_LAYER(w->n, "fc", {"input", .var = data(w, "x", 2)},
                         {"size", .i = 1});
    fl_var *loss = FL_LAYER(w->n, "mean", {"x", .var = h});
    CHECK_OK(fl_net_error(w->n));
    return loss;
}

/* --- programs --- */

static void blocks_show_vars_and_ops(void)
{
    world w;
    fl_var *vars[8];
    begin(&w);
    loss_of(&w);
    fl_block *b = fl_program_block(w.main, 0);
    const fl_block_info i = fl_block_look(b);
    CHECK(i.program == w.main);
    CHECK_INT(i.parent, -1);
    CHECK_INT(i.n_ops, 3);
    CHECK_INT(fl_block_vars(b, 8, vars), i.n_vars);
    CHECK_STR(fl_var_name(vars[0]), "x");
    CHECK_STR(fl_var_name(vars[1]), "fc_0.w_0");
    CHECK_STR(fl_op_look(fl_block_op(b, 0))->type, "mul");
    CHECK(!fl_block_op(b, 3));
    CHECK(!fl_program_block(w.main, 1));
    CHECK_INT(fl_block_look(fl_program_add_block(w.main, 0)).idx, 1);
    end(&w);
}

static void vars_can_be_changed(void)
{
    world w;
    fl_var *v;
    begin(&w);
    fl_block *b = fl_program_block(w.main, 0);
    fl_var_info like = {"v", .dtype = FL_F32, .shape = {1, {3}}};
    CHECK_OK(fl_block_declare(b, &like, &v));
    const uint64_t version = fl_program_version(w.main);
    const fl_regularizer decay = {.kind = "l2", .coeff = 0.5f};
    const fl_param_info param = {.trainable = true, .regularizer = &decay};
    fl_var_info to = fl_var_look(v);
    CHECK(to.kind == FL_LOD_TENSOR && to.block == b);
    to.shape = (fl_shape){2, {4, 5}};
    to.persistable = true;
    to.param = &param;
    fl_var_set(v, &to);
    CHECK(fl_program_version(w.main) > version);
    CHECK_INT(fl_var_shape(v)->dim[1], 5);
    CHECK(fl_var_look(v).persistable);
    CHECK(fl_var_look(v).param != &param); /* a copy */
    CHECK_STR(fl_var_look(v).param->regularizer->kind, "l2");
    CHECK_ERR(fl_block_declare(b, &like, &v), FL_EINVAL, "\"v\" is f32[4,5]");
    CHECK_OK(fl_block_rename_var(b, "v", "u"));
    CHECK_STR(fl_var_name(v), "u");
    CHECK(fl_block_remove_var(b, "u"));
    CHECK(!fl_block_var(b, "u"));
    end(&w);
}

static fl_desc scale_of(fl_args *in, fl_args *out, fl_attr *attr)
{
    return (fl_desc){.type = "scale",
                     .n_in = 1,
                     .n_out = 1,
                     .n_attr = 1,
                     .in = in,
                     .out = out,
                     .attr = attr};
}

static void ops_enter_with_what_the_net_writes(void)
{
    world w;
    fl_op *op;
    begin(&w);
    data(&w, "x", 2);
    const char *x = "x", *y = "y";
    fl_args in = {"X", 1, &x}, out = {"Out", 1, &y};
    fl_attr by = {"scale", FL_ATTR_FLOAT, .f = 3};
    const fl_desc d = scale_of(&in, &out, &by);
    fl_net_state s = fl_net_look(w.n);
    const char *const who[] = {"  File \"a.py\", line 3", "    y = x * 3"};
    s.role = FL_ROLE_OPTIMIZE;
    s.role_var[0] = "x";
    s.scope = "/a/";
    s.n_callstack = 2;
    s.callstack = who;
    fl_net_set(w.n, &s);
    fl_block *b = fl_program_block(w.main, 0);
    CHECK_OK(fl_net_add_op(w.n, b, -1, &d, &op));
    CHECK_INT(fl_op_index(op), 0);
    CHECK(fl_op_block(op) == b);
    char *text = fl_op_proto(op);
    CHECK(strstr(text, "name: \"op_role\"\n  type: INT\n  i: 2\n"));
    CHECK(strstr(text, "s: \"/a/\"\n"));
    CHECK(strstr(text, "strings: \"    y = x * 3\"\n"));
    fl_free(text);
    CHECK_OK(fl_op_set_attr(op, &(fl_attr){"scale", FL_ATTR_INT, .i = 7}));
    CHECK(fl_op_remove_attr(op, "op_callstack"));
    CHECK(!fl_op_remove_attr(op, "op_callstack"));
    for (int i = 0; i < fl_op_look(op)->n_attr; i++)
        if (!strcmp(fl_op_look(op)->attr[i].name, "scale"))
            CHECK(fl_op_look(op)->attr[i].f == 7);
    fl_block_remove_op(b, 0);
    CHECK_INT(fl_op_index(op), -1);
    end(&w);
}

static void bytes_come_back(void)
{
    world w;
    void *bytes;
    size_t n;
    fl_program *again;
    begin(&w);
    loss_of(&w);
    CHECK_OK(fl_program_encode(w.main, &bytes, &n));
    CHECK_OK(fl_program_read(w.e, "it", bytes, n, &again));
    char *a = fl_program_proto(w.main), *b = fl_program_proto(again);
    CHECK_STR(b, a);
    CHECK_ERR(fl_program_read(w.e, "it", bytes, n / 2, &again), FL_EPROTO,
              "it");
    fl_program_take(w.main, again);
    fl_program_free(again);
    CHECK_INT(fl_block_look(fl_program_block(w.main, 0)).n_ops, 3);
    fl_free(a);
    fl_free(b);
    fl_free(bytes);
    end(&w);
}

/* --- tables --- */

static const fl_signature *find(const fl_signature *rows, int n,
                                const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

static void tables_list_layers(void)
{
    fl_engine *e = fl_engine_new();
    const fl_signature *rows, *fc, *tanh;
    const int n = fl_layer_table(e, &rows);
    fc = find(rows, n, "fc");
    tanh = find(rows, n, "tanh"); /* an operator without a row of its own */
    CHECK(fc && tanh);
    CHECK_STR(fc->args[0].name, "input");
    CHECK(!fc->args[0].value);
    CHECK_STR(fc->args[2].value, "1");
    CHECK_STR(fl_arg_type_name(fc->args[1].type), "int");
    CHECK_STR(tanh->args[0].name, "x");
    CHECK(!find(rows, n, "tanh_grad"));
    const int n_optimizers = fl_optimizer_table(e, &rows);
    CHECK(find(rows, n_optimizers, "Adam")->n_args == 7);
    fl_engine_free(e);
}

static void tables_list_ops(void)
{
    fl_engine *e = fl_engine_new();
    const fl_op_info *rows;
    int found = 0;
    for (int i = fl_op_table(e, &rows) - 1; i >= 0; i--) {
        CHECK(strncmp(rows[i].type, "fused_", 6));
        if (strcmp(rows[i].type, "sum"))
            continue;
        found++;
        CHECK(rows[i].in[0].flags & FL_MANY);
        CHECK(rows[i].differentiable);
    }
    CHECK_INT(found, 1);
    fl_engine_free(e);
}

static void names_count_by_key(void)
{
    fl_names *n = fl_names_new("a/");
    const char *want[] = {"a/fc_0", "a/fc_1", "a/b_0"};
    const char *key[] = {"fc", "fc", "b"};
    for (int i = 0; i < 3; i++) {
        char *name = fl_names_give(n, key[i]);
        CHECK_STR(name, want[i]);
        fl_free(name);
    }
    fl_names_free(n);
}

/* --- optimisers of one's own --- */

typedef struct own {
    int begun, updated, finished, role;
    fl_net *net;
} own;

static fl_err on_begin(void *user, fl_optimizer *o, const fl_param_grads *pgs)
{
    own *me = user;
    me->begun++;
    return fl_optimizer_accumulator(o, "speed", pgs->at[0].param, 1, NULL,
                                    NULL);
}

static fl_err on_update(void *user, fl_optimizer *o, const fl_param_grad *pg)
{
    own *me = user;
    fl_var *rate, *out;
    me->updated++;
    me->role = fl_net_look(me->net).role;
    fl_err err = fl_optimizer_rate(o, pg->param, &rate);
    return err ? err
               : fl_var_math(me->net, "*", pg->grad, rate, 0, false, &out);
}

static fl_err on_finish(void *user, fl_optimizer *o, const fl_param_grads *pgs)
{
    own *me = user;
    me->finished++;
    return FL_OK;
}

static void optimisers_of_ones_own_are_called(void)
{
    world w;
    fl_optimizer *o;
    fl_ops ops = {0};
    fl_var *rate = NULL;
    begin(&w);
    own me = {.net = w.n};
    const fl_optimizer_hooks hooks = {on_begin, on_update, on_finish, &me};
    const fl_arg args[] = {{"learning_rate", .f = 0.5}, {0}};
    fl_var *loss = loss_of(&w);
    CHECK_OK(fl_optimizer_custom(w.n, &hooks, args, &o));
    CHECK_OK(fl_optimizer_rate(o, NULL, &rate));
    CHECK(!rate);
    CHECK_OK(fl_optimizer_minimize(o, loss, NULL, NULL, &ops));
    CHECK_OK(fl_optimizer_rate(o, NULL, &rate));
    CHECK_STR(fl_var_name(rate), "learning_rate_0");
    CHECK_INT(me.begun, 1);
    CHECK_INT(me.updated, 2); /* weight and bias */
    CHECK_INT(me.finished, 1);
    CHECK_INT(me.role, FL_ROLE_OPTIMIZE);
    CHECK_INT(ops.n, 2);
    fl_var *b = fl_block_var(fl_program_block(w.main, 0), "fc_0.b_0");
    CHECK_STR(fl_var_name(fl_optimizer_get(o, "speed", b)), "fc_0.b_0_speed_0");
    fl_free(ops.at);
    fl_optimizer_free(o);
    end(&w);
}

/* A hook over the table's: it counts, and lets the table do the rest. */
typedef struct counting {
    fl_optimizer_hooks table;
    int updated;
} counting;

static fl_err count_update(void *user, fl_optimizer *o, const fl_param_grad *pg)
{
    counting *me = user;
    me->updated++;
    return me->table.update(me->table.user, o, pg);
}

static void hooks_may_ask_the_table(void)
{
    world w;
    fl_optimizer *o;
    fl_ops ops = {0};
    begin(&w);
    counting me = {.updated = 0};
    const fl_arg args[] = {{"learning_rate", .f = 0.5}, {0}};
    fl_var *loss = loss_of(&w);
    CHECK_OK(fl_optimizer_new(w.n, "adagrad", args, &o));
    fl_optimizer_hooks hooks = fl_optimizer_hook(o, &(fl_optimizer_hooks){0});
    me.table = hooks;
    hooks.update = count_update;
    hooks.user = &me;
    fl_optimizer_hook(o, &hooks);
    CHECK_OK(fl_optimizer_minimize(o, loss, NULL, NULL, &ops));
    CHECK_INT(me.updated, 2);
    CHECK_INT(ops.n, 2);
    CHECK_STR(fl_op_look(ops.at[0])->type, "adagrad");
    fl_free(ops.at);
    fl_optimizer_free(o);
    end(&w);
}

/* --- values and runs --- */

static void values_are_one_thing(void)
{
    fl_value *v = fl_value_new();
    fl_tensor *t;
    fl_rows *r;
    CHECK_INT(fl_value_kind(v), 0);
    CHECK_OK(fl_value_rows(v, &r));
    CHECK_OK(fl_rows_resize(r, FL_F32, &(fl_shape){2, {10, 3}}, 2));
    CHECK_INT(r->value.shape.dim[0], 2);
    CHECK_ERR(fl_value_tensor(v, &t), FL_EINVAL, "holds a");
    fl_value_free(v);
}

static void selected_rows_are_fetched(void)
{
    world w;
    begin(&w);
    const int64_t three[] = {3, 1, 3}, size[] = {5, 2};
    fl_var *ids = FL_LAYER(w.n, "data", {"name", .s = "ids"}, {"shape", .i = 1},
                           {"dtype", .i = FL_I64});
    fl_var *rows =
        FL_LAYER(w.n, "embedding", {"input", .var = ids},
                 {"size", 2, .ints = size}, {"is_sparse", .b = true});
    fl_var *loss = FL_LAYER(w.n, "reduce_sum", {"input", .var = rows});
    fl_param_grads pgs = {0};
    CHECK_OK(fl_backward(w.n, loss, NULL, &pgs));
    fl_free(pgs.at);
    fl_exe *exe = fl_exe_new(w.e, NULL);
    fl_scope *s = fl_scope_new();
    CHECK_OK(fl_exe_run(exe, fl_net_startup(w.n), s, 0, NULL, 0, NULL));
    const fl_shape shape = {2, {3, 1}};
    const fl_feed feed = {"ids", fl_tensor_view(FL_I64, &shape, three)};
    fl_fetch got = {"embedding_0.w_0@GRAD"};
    for (int i = 0; i < 2; i++)
        CHECK_OK(fl_exe_run(exe, w.main, s, 1, &feed, 1, &got));
    CHECK_INT(got.kind, FL_SELECTED_ROWS);
    CHECK(!got.tensor.data);
    CHECK_INT(got.rows.height, 5);
    CHECK_INT(got.rows.n, 3);
    CHECK(!memcmp(got.rows.index.data, three, sizeof three));
    CHECK_INT(((float *)got.rows.value.data)[5], 1);
    fl_fetch_fini(&got);
    CHECK(!got.rows.value.data && !got.kind);
    fl_scope_free(s);
    fl_exe_free(exe);
    end(&w);
}

static int stop(void *user)
{
    return ++*(int *)user > 0;
}

static void runs_can_be_ended(void)
{
    world w;
    begin(&w);
    int asked = 0;
    fl_var *x = FL_LAYER(w.n, "fill_constant", {"shape", .i = 3},
                         {"dtype", .i = FL_F32}, {"value", .f = 2});
    for (int i = 0; i < 8; i++)
        x = FL_LAYER(w.n, "scale", {"x", .var = x}, {"scale", .f = 2});
    fl_exe *exe = fl_exe_new(w.e, &(fl_exe_opts){.poll = stop, .user = &asked});
    fl_scope *s = fl_scope_new();
    CHECK_ERR(fl_exe_run(exe, w.main, s, 0, NULL, 0, NULL), FL_EINTR,
              "interrupted");
    CHECK_INT(asked, 1);
    fl_exe_free(exe);
    fl_scope_free(s);
    end(&w);
}

static void profiles_name_the_ops(void)
{
    world w;
    fl_profile_row rows[4];
    begin(&w);
    FL_LAYER(w.n, "fill_constant", {"shape", .i = 3}, {"dtype", .i = FL_F32},
             {"value", .f = 2});
    fl_exe *exe = fl_exe_new(w.e, NULL);
    fl_scope *s = fl_scope_new();
    CHECK_OK(fl_exe_run(exe, w.main, s, 0, NULL, 0, NULL));
    CHECK_INT(fl_exe_profile_rows(exe, 4, rows), 0);
    fl_exe_profile(exe, true);
    for (int i = 0; i < 3; i++)
        CHECK_OK(fl_exe_run(exe, w.main, s, 0, NULL, 0, NULL));
    fl_exe_profile(exe, false);
    CHECK_OK(fl_exe_run(exe, w.main, s, 0, NULL, 0, NULL));
    CHECK_INT(fl_exe_profile_rows(exe, 4, rows), 1);
    CHECK_STR(rows[0].type, "fill_constant");
    CHECK_INT(rows[0].calls, 3);
    char *trace = fl_exe_profile_trace(exe);
    CHECK(strstr(trace, "\"name\": \"fill_constant\""));
    fl_free(trace);
    fl_exe_free(exe);
    fl_scope_free(s);
    end(&w);
}

static void a_fetch_may_come_out_empty(void)
{
    world w;
    fl_var *v;
    begin(&w);
    const fl_var_info like = {"v", .dtype = FL_F32, .shape = {1, {3}}};
    CHECK_OK(fl_block_declare(fl_program_block(w.main, 0), &like, &v));
    fl_scope *s = fl_scope_new();
    for (int lenient = 0; lenient < 2; lenient++) {
        fl_exe *exe = fl_exe_new(w.e, &(fl_exe_opts){.lenient = lenient});
        fl_fetch got = {"v", {0}};
        const fl_err err = fl_exe_run(exe, w.main, s, 0, NULL, 1, &got);
        CHECK_INT(err, lenient ? FL_OK : FL_ENOENT);
        CHECK(!got.tensor.data);
        fl_exe_free(exe);
    }
    fl_scope_free(s);
    end(&w);
}

static void errors_say_who_made_the_op(void)
{
    world w;
    begin(&w);
    const char *const who[] = {"  File \"net.py\", line 3", "    y = mul(x)"};
    fl_net_state st = fl_net_look(w.n);
    st.n_callstack = 2;
    st.callstack = who;
    fl_net_set(w.n, &st);
    loss_of(&w);
    const float x[2] = {1, 2};
    fl_feed feed = {"x", fl_tensor_view(FL_F32, &(fl_shape){2, {1, 2}}, x)};
    fl_exe *exe = fl_exe_new(w.e, &(fl_exe_opts){.no_fuse = true});
    fl_scope *s = fl_scope_new(); /* the startup program was not run */
    CHECK_ERR(fl_exe_run(exe, w.main, s, 1, &feed, 0, NULL), FL_ENOENT,
              "(op 0 \"mul\" in block 0; File \"net.py\", line 3: "
              "y = mul(x))");
    fl_exe_free(exe);
    fl_scope_free(s);
    end(&w);
}

static void some_variables_are_saved(void)
{
    world w;
    begin(&w);
    loss_of(&w);
    fl_exe *exe = fl_exe_new(w.e, NULL);
    fl_scope *s = fl_scope_new(), *other = fl_scope_new();
    const char *names[] = {"fc_0.b_0"}, *wrong[] = {"fc_9"};
    fl_tensor got = {0};
    CHECK_OK(fl_exe_run(exe, w.startup, s, 0, NULL, 0, NULL));
    CHECK_OK(fl_save_vars(w.e, w.main, s, fl_test_dir(), "all", 1, names));
    CHECK_OK(fl_load_vars(w.e, w.main, other, fl_test_dir(), "all", 1, names));
    CHECK_OK(fl_scope_get(other, "fc_0.b_0", &got));
    CHECK(!fl_scope_find(other, "fc_0.w_0"));
    CHECK_ERR(fl_save_vars(w.e, w.main, s, fl_test_dir(), NULL, 1, wrong),
              FL_ENOENT, "no variable \"fc_9\"");
    fl_tensor_fini(&got);
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_scope_free(other);
    end(&w);
}

const fl_test fl_tests[] = {
    {"a block shows its vars and ops", blocks_show_vars_and_ops},
    {"a var can be changed, renamed, removed", vars_can_be_changed},
    {"an op enters with what the net writes on it",
     ops_enter_with_what_the_net_writes},
    {"a program's bytes come back, and it can be replaced", bytes_come_back},
    {"tables list layers and optimisers", tables_list_layers},
    {"tables list operators that programs may hold", tables_list_ops},
    {"names count by key", names_count_by_key},
    {"an optimiser of one's own is called", optimisers_of_ones_own_are_called},
    {"hooks may ask the table", hooks_may_ask_the_table},
    {"selected rows are fetched", selected_rows_are_fetched},
    {"a value is a tensor or rows, not both", values_are_one_thing},
    {"a run can be ended", runs_can_be_ended},
    {"a profile names the ops", profiles_name_the_ops},
    {"a fetch may come out empty", a_fetch_may_come_out_empty},
    {"an error says who made the op", errors_say_who_made_the_op},
    {"some variables are saved and loaded", some_variables_are_saved},
    {0},
};
