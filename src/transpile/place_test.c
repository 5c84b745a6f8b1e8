/* SPDX-License-Identifier: Apache-2.0 */
/* How parameters are split over servers, and what options do. */
#include "transpile/test_transpile.h"

#include <stdio.h>

/* --- slices --- */

/* One parameter of `rows` x `width` (0: rows only), and its pieces. */
static const char *cut_rows(int64_t rows, int64_t width, int servers,
                            int64_t least)
{
    static char text[512];
    scene s;
    fl_str list = {0}, got = {0};
    scene_begin(&s);
    const fl_param_attr none = {.none = true};
    if (width)
        scene_line(&s, rows, width, &(fl_param_attr){.name = "w"}, &none);
    else
        scene_line(&s, 1, rows, &(fl_param_attr){.name = "v", .frozen = true},
                   &(fl_param_attr){.name = "w"});
    scene_minimize(&s, "sgd", scene_rate);
    for (int i = 0; i < servers; i++)
        fl_str_printf(&list, "h%d:1,", i);
    scene_cut(
        &s, &(fl_transpile_opts){.pservers = list.at, .min_block_size = least});
    CHECK_INT(s.cut->shares.n, 1);
    for (int i = 0; i < s.cut->shares.at[0]->n; i++) {
        const fl_slice *p = &s.cut->shares.at[0]->slice[i];
        fl_str_printf(&got, "%s%lld", i ? " " : "", (long long)p->shape.dim[0]);
        CHECK_INT(p->server, i);
    }
    snprintf(text, sizeof text, "%s", got.at);
    fl_str_fini(&list);
    fl_str_fini(&got);
    scene_end(&s);
    return text;
}

static void cuts_as_fluid_does(void)
{
    CHECK_STR(cut_rows(1000, 1000, 2, 0), "500 500");
    CHECK_STR(cut_rows(1000, 0, 2, 0), "1000");
    CHECK_STR(cut_rows(13, 1, 2, 0), "13");
    CHECK_STR(cut_rows(1000, 64, 2, 0), "500 500");
    CHECK_STR(cut_rows(1000, 64, 10, 0), "143 143 143 143 143 143 142");
    CHECK_STR(cut_rows(20000, 0, 10, 0), "10000 10000");
    CHECK_STR(cut_rows(10, 3, 4, 6), "3 3 3 1");
    CHECK_STR(cut_rows(7, 0, 3, 2), "3 3 1");
    CHECK_STR(cut_rows(5, 100, 10, 1), "1 1 1 1 1");
    CHECK_STR(cut_rows(1000, 1000, 1, 0), "1000");
}

static void ten_servers_share_an_uneven_table(void)
{
    scene s;
    scene_begin(&s);
    scene_line(&s, 1000, 64, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut(&s, &(fl_transpile_opts){
                      .pservers = "h:1,h:2,h:3,h:4,h:5,h:6,h:7,h:8,h:9,h:10",
                      .trainers = 2});
    CHECK_STR(scene_places(&s),
              "b:0 w.block0:1 w.block1:2 w.block2:3 w.block3:4 w.block4:5 "
              "w.block5:6 w.block6:7");
    CHECK_STR(scene_vars(&s, s.cut->server[7], true),
              "w.block6[142,64] w@GRAD.block6[142,64] learning_rate_0[1]");
    CHECK_STR(scene_starts(&s, s.cut->server_startup[7]),
              "fill_constant learning_rate_0, uniform_random w.block6+54912");
    CHECK_STR(scene_blocks(&s, 8), "1/0: \n"); /* it has nothing to do */
    scene_end(&s);
}

/* --- placement --- */

/* Three layers, so that there is something to assign. */
static void begin_deep(scene *s)
{
    scene_begin(s);
    fl_var *x = test_data(s->net, "x", FL_F32, 1, (int64_t[]){4});
    for (int i = 0; i < 3; i++)
        x = TEST_LAYER(s->net, "fc", {"input", .var = x}, {"size", .i = 4});
    s->loss = TEST_LAYER(s->net, "mean", {"x", .var = x});
    scene_minimize(s, "sgd", scene_rate);
}

static void assigns_in_turn(void)
{
    scene s;
    begin_deep(&s);
    scene_cut(&s, &(fl_transpile_opts){.pservers = " h:1 , h:2,h:3, "});
    CHECK_STR(scene_places(&s),
              "fc_0.b_0:0 fc_0.w_0:1 fc_1.b_0:2 fc_1.w_0:0 fc_2.b_0:1 "
              "fc_2.w_0:2");
    scene_end(&s);
}

/* numpy.random.seed(0); shuffle of six gives 5 2 1 3 0 4. */
static void assigns_whole_parameters_in_random_order(void)
{
    scene s;
    begin_deep(&s);
    scene_cut(
        &s, &(fl_transpile_opts){.pservers = "h:1,h:2,h:3", .no_slices = true});
    CHECK_STR(scene_places(&s),
              "fc_0.b_0:1 fc_0.w_0:2 fc_1.b_0:1 fc_1.w_0:0 fc_2.b_0:2 "
              "fc_2.w_0:0");
    scene_end(&s);
}

static void no_slices_are_made_if_not_wanted(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut(&s, &(fl_transpile_opts){
                      .pservers = A "," B, .trainers = 2, .no_slices = true});
    CHECK(!strstr(scene_trainer(&s), "split_byref"));
    CHECK(!strstr(scene_trainer(&s), "concat"));
    scene_end(&s);
}

static void assigns_by_name(void)
{
    scene s;
    begin_deep(&s);
    scene_cut(&s, &(fl_transpile_opts){.pservers = "h:1,h:2",
                                       .split_method = "HashName"});
    const char *once = scene_places(&s);
    fl_cut_free(s.cut);
    scene_cut(&s, &(fl_transpile_opts){.pservers = "h:1,h:2",
                                       .split_method = "HashName"});
    CHECK_STR(scene_places(&s), once);
    CHECK(strstr(once, ":0") && strstr(once, ":1"));
    scene_end(&s);
}

static fl_err all_to_one(void *user, int n, const char *const *pieces,
                         const char **endpoints)
{
    for (int i = 0; i < n; i++)
        endpoints[i] = user;
    return FL_OK;
}

/* Pieces of one parameter on one server do not share their state. */
static void a_dispatcher_may_put_all_on_one(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "adam", scene_rate);
    const fl_dispatcher to_b = {all_to_one, (void *)B};
    scene_cut(&s,
              &(fl_transpile_opts){.pservers = A "," B, .dispatcher = &to_b});
    CHECK_STR(scene_places(&s), "fc_b:1 fc_w.block0:1 fc_w.block1:1");
    CHECK_STR(scene_blocks(&s, 1), "1/0: adam scale scale\n"
                                   "2/0: adam scale scale\n"
                                   "3/0: adam scale scale\n");
    CHECK_STR(scene_lines(&s, s.cut->server[1], "scale(X=fc_w"),
              "scale(X=fc_w_beta1_pow_acc_0) -> Out=fc_w_beta1_pow_acc_0 "
              "{scale=0.9, op_role=2, op_role_var=[\"fc_w\", "
              "\"fc_w@GRAD\"]}\n"
              "scale(X=fc_w_beta2_pow_acc_0) -> Out=fc_w_beta2_pow_acc_0 "
              "{scale=0.999, op_role=2, op_role_var=[\"fc_w\", "
              "\"fc_w@GRAD\"]}\n"
              "scale(X=fc_w_beta1_pow_acc_0.block1) -> "
              "Out=fc_w_beta1_pow_acc_0.block1 {scale=0.9, op_role=2, "
              "op_role_var=[\"fc_w\", \"fc_w@GRAD\"]}\n"
              "scale(X=fc_w_beta2_pow_acc_0.block1) -> "
              "Out=fc_w_beta2_pow_acc_0.block1 {scale=0.999, op_role=2, "
              "op_role_var=[\"fc_w\", \"fc_w@GRAD\"]}\n");
    CHECK(strstr(scene_starts(&s, s.cut->server_startup[1]),
                 "fill_constant fc_w_moment1_0, "
                 "fill_constant fc_w_moment1_0.block1"));
    CHECK_STR(scene_blocks(&s, 0), "1/0: \n");
    scene_end(&s);
}

/* --- options --- */

static void one_trainer_needs_no_sum(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut(&s, &(fl_transpile_opts){.pservers = A "," B});
    CHECK_STR(scene_blocks(&s, 0), "1/0: sgd\n2/0: sgd\n");
    CHECK_STR(scene_lines(&s, s.cut->server[0], "listen_and_serv"),
              "listen_and_serv(X=[fc_b@GRAD, fc_w@GRAD.block1]) {endpoint=\"" A
              "\", sync_mode=true, optimize_blocks=[@1, @2], "
              "grad_to_block_id=[\"fc_b@GRAD:1\", \"fc_w@GRAD.block1:2\"]}\n");
    CHECK(strstr(scene_lines(&s, s.cut->trainer, "send("),
                 "send(X=[fc_w@GRAD.block0, fc_w@GRAD.block1])"));
    scene_end(&s);
}

static void async_trainers_do_not_meet(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut(&s, &(fl_transpile_opts){.pservers = A "," B,
                                       .trainers = 2,
                                       .trainer_id = 1,
                                       .async = true});
    CHECK_STR(scene_trainer(&s),
              "mul elementwise_add elementwise_sub square mean fill_constant "
              "mean_grad square_grad elementwise_sub_grad "
              "elementwise_add_grad send mul_grad split_byref send recv recv "
              "concat");
    CHECK_STR(scene_lines(&s, s.cut->trainer, "recv("),
              "recv(X=__control_var@0) -> Out=fc_b {op_role=4, epmap=[\"" A
              "\"], trainer_id=1, op_role_var=[\"fc_b\", \"fc_b@GRAD\"]}\n"
              "recv(X=__control_var@1) -> Out=[fc_w.block0, fc_w.block1] "
              "{op_role=4, epmap=[\"" B "\", \"" A "\"], trainer_id=1, "
              "op_role_var=[\"fc_w\", \"fc_w@GRAD\"]}\n");
    CHECK_STR(scene_blocks(&s, 0), "1/0: sgd\n2/0: sgd\n");
    CHECK(strstr(scene_lines(&s, s.cut->server[0], "listen_and_serv"),
                 "Fanin=2, optimize_blocks=[@1, @2]")); /* sync_mode is false */
    scene_end(&s);
}

static void sends_can_cut_by_themselves(void)
{
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut(&s, &(fl_transpile_opts){.pservers = A "," B,
                                       .async = true,
                                       .runtime_split_send_recv = true});
    CHECK(!strstr(scene_trainer(&s), "split_byref"));
    CHECK(!strstr(scene_trainer(&s), "concat"));
    CHECK_STR(scene_lines(&s, s.cut->trainer, "X=fc_w@GRAD) -> "),
              "send(X=fc_w@GRAD) -> Out=__control_var@1 {op_role=4, epmap=[\"" B
              "\", \"" A "\"], sections=[500l, 500l], "
              "send_varnames=[\"fc_w@GRAD.block0\", \"fc_w@GRAD.block1\"], "
              "op_role_var=[\"fc_w\", \"fc_w@GRAD\"]}\n");
    CHECK_STR(scene_lines(&s, s.cut->trainer, "Out=fc_w {"),
              "recv(X=__control_var@1) -> Out=fc_w {op_role=4, "
              "recv_varnames=[\"fc_w.block0\", \"fc_w.block1\"], epmap=[\"" B
              "\", \"" A "\"], op_role_var=[\"fc_w\", \"fc_w@GRAD\"]}\n");
    CHECK_STR(scene_types(&s, s.cut->trainer_startup, 0),
              "fill_constant fill_constant uniform_random recv recv "
              "fetch_barrier concat");
    scene_end(&s);
}

static void frozen_parameters_stay(void)
{
    scene s;
    scene_begin(&s);
    scene_line(&s, 13, 1, &(fl_param_attr){.name = "w", .frozen = true},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut2(&s);
    CHECK_STR(scene_places(&s), "b:0");
    CHECK_STR(scene_blocks(&s, 1), "1/0: \n");
    scene_end(&s);
}

/* --- what is refused --- */

static fl_err nowhere(void *user, int n, const char *const *pieces,
                      const char **endpoints)
{
    return all_to_one((void *)"z:9", n, pieces, endpoints);
}

static void says_which_option_is_wrong(void)
{
    static const fl_dispatcher lost = {nowhere};
    const struct {
        fl_transpile_opts opts;
        const char *says;
    } rows[] = {
        {{0}, "pservers is empty, expected host:port,host:port"},
        {{.pservers = "h"}, "server \"h\" has no port, expected host:port"},
        {{.pservers = "h:1,:1"},
         "server \":1\" has no host (pservers is \"h:1,:1\"), expected "
         "host:port; is PADDLE_PSERVER_IPS set?"},
        {{.pservers = "h:None"},
         "server \"h:None\" has no port (pservers is \"h:None\"), expected "
         "host:port; is PADDLE_PSERVER_PORT set?"},
        {{.pservers = "h:0"},
         "server \"h:0\" has the port \"0\", expected a number from 1 to"},
        {{.pservers = "h:99999"}, "server \"h:99999\" has the port \"99999\""},
        {{.pservers = "h:1", .trainers = -3},
         "trainers is -3, expected 1 or more"},
        {{.pservers = "h:1,h:1"},
         "server h:1 is listed twice (servers on one host need different "
         "ports; "},
        {{.pservers = "h:1", .trainers = 2, .trainer_id = -2},
         "trainer_id is -2, but there are 2 trainers"},
        {{.pservers = "h:1", .trainers = 2, .trainer_id = 2},
         "trainer_id is 2, but there are 2 trainers"},
        {{.pservers = "h:1", .split_method = "Dice"},
         "split_method is \"Dice\", expected \"RoundRobin\" or \"HashName\""},
        {{.pservers = "h:1", .async = true, .enable_dc_asgd = true},
         "enable_dc_asgd is not supported yet"},
        {{.pservers = "h:1", .geo_sgd_mode = true},
         "geo_sgd_mode is not supported yet"},
        {{.pservers = "h:1", .dispatcher = &lost},
         "the dispatcher puts \"fc_b\" on \"z:9\", which is not among"},
        {{.pservers = "h:1", .n_params = 1, .params = (const char *[]){"fc_w"}},
         "op \"sgd\" updates \"fc_b\", which params_grads does not list"},
        {{.pservers = "h:1",
          .n_params = 3,
          .params = (const char *[]){"fc_w", "fc_b", "no"}},
         "params_grads lists \"no\", which no op updates"},
    };
    scene s;
    scene_fc(&s);
    scene_minimize(&s, "sgd", scene_rate);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_ERR(
            fl_transpile(s.net->main, s.net->startup, &rows[i].opts, &s.cut),
            FL_EINVAL, rows[i].says);
    scene_end(&s);
}

static void says_what_program_it_cannot_cut(void)
{
    const fl_transpile_opts opts = {.pservers = "h:1"};
    scene s, other;
    fl_cut *none = NULL;
    fl_program *p, *startup;
    scene_fc(&s);
    CHECK_ERR(fl_transpile(s.net->main, s.net->startup, &opts, &none),
              FL_EINVAL, "no op of the program updates a parameter");
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut(&s, &opts);
    CHECK_ERR(fl_transpile(s.cut->trainer, s.net->startup, &opts, &none),
              FL_EINVAL, "the program was transpiled before (op 10 is a send)");
    CHECK_ERR(fl_cut_server(s.cut, "h:2", &p, &startup), FL_ENOENT,
              "\"h:2\" is not among the servers h:1");
    CHECK_ERR(fl_cut_server(s.cut, ":1", &p, &startup), FL_ENOENT,
              "servers h:1; is PADDLE_CURRENT_IP set?");
    scene_begin(&other);
    CHECK_ERR(fl_transpile(s.net->main, other.net->startup, &opts, &none),
              FL_ENOENT, "the startup program has no \"fc_b\"");
    scene_end(&other);
    scene_end(&s);
}

/* --- places --- */

/* The place of server 1 in a line of `rows`. */
static fl_placement place_of(int64_t rows, const fl_transpile_opts *opts)
{
    scene s;
    scene_begin(&s);
    scene_line(&s, rows, 1, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&s, "sgd", scene_rate);
    scene_cut(&s, opts);
    fl_placement placement = *fl_placement_of(s.cut->server[1]->job);
    CHECK_INT(fl_placement_of(s.cut->trainer->job)->server, -1);
    CHECK_INT(fl_placement_of(s.cut->trainer->job)->trainer_id,
              opts->trainer_id);
    CHECK(fl_placement_of(s.cut->trainer->job)->digest[0] ==
          placement.digest[0]);
    CHECK_STR(fl_placement_of(s.cut->trainer_startup->job)->servers[0], "a:1");
    scene_end(&s);
    placement.servers = NULL;
    return placement;
}

static void a_trainer_knows_who_keeps_what(void)
{
    scene s;
    fl_str got = {0};
    fl_program *origin;
    scene_begin(&s);
    scene_line(&s, 1000, 64, &(fl_param_attr){.name = "w"},
               &(fl_param_attr){.name = "b"});
    scene_minimize(&s, "adagrad", scene_rate);
    scene_cut(&s, &(fl_transpile_opts){.pservers = "a:1,b:1", .trainers = 2});
    const fl_placement *placement = fl_placement_of(s.cut->trainer->job);
    for (int i = 0; i < placement->n_pieces; i++) {
        const fl_piece *k = &placement->pieces[i];
        if (!strncmp(k->var, "w", 1))
            fl_str_printf(&got, "%s=%s@%d+%lld ", k->var, k->name, k->server,
                          (long long)k->first);
    }
    CHECK_STR(got.at, "w=w.block1@0+32000 w_moment_0=w_moment_0@0+32000 "
                      "w=w.block0@1+0 w_moment_0=w_moment_0@1+0 ");
    CHECK_OK(fl_program_decode(s.net->main->registry, "origin",
                               placement->origin, placement->origin_size,
                               &origin));
    CHECK(fl_program_block(origin, 0)->ops.n > 10);
    fl_program_free(origin);
    fl_str_fini(&got);
    scene_end(&s);
}

static void every_process_has_a_placement(void)
{
    const fl_transpile_opts opts = {.pservers = "a:1,b:1", .trainers = 2};
    fl_transpile_opts second = opts, three = opts, async = opts, moved = opts;
    second.trainer_id = 1;
    three.trainers = 3;
    async.async = true;
    moved.pservers = "a:1,b:2";
    const fl_placement first = place_of(8, &opts);
    CHECK_INT(first.server, 1);
    CHECK_INT(first.trainers, 2);
    CHECK(place_of(8, &second).digest[1] == first.digest[1]);
    CHECK(place_of(9, &opts).digest[1] != first.digest[1]);
    CHECK(place_of(8, &three).digest[1] != first.digest[1]);
    CHECK(place_of(8, &async).digest[1] != first.digest[1]);
    CHECK(place_of(8, &moved).digest[1] != first.digest[1]);
}

const fl_test fl_tests[] = {
    {"a cut makes pieces as Fluid does", cuts_as_fluid_does},
    {"a cut for ten servers has uneven pieces",
     ten_servers_share_an_uneven_table},
    {"a cut assigns pieces in turn", assigns_in_turn},
    {"a cut assigns whole parameters in random order",
     assigns_whole_parameters_in_random_order},
    {"a cut makes no slices if they are not wanted",
     no_slices_are_made_if_not_wanted},
    {"a cut can assign pieces by name", assigns_by_name},
    {"a cut follows a dispatcher", a_dispatcher_may_put_all_on_one},
    {"a cut for one trainer needs no sum", one_trainer_needs_no_sum},
    {"a cut for async trainers has no barriers", async_trainers_do_not_meet},
    {"a cut can leave slicing to send and recv", sends_can_cut_by_themselves},
    {"a cut leaves frozen parameters where they are", frozen_parameters_stay},
    {"a cut tells trainers who keeps what", a_trainer_knows_who_keeps_what},
    {"a cut gives every process its placement", every_process_has_a_placement},
    {"a cut says which option is wrong", says_which_option_is_wrong},
    {"a cut says which program cannot be cut", says_what_program_it_cannot_cut},
    {0},
};
