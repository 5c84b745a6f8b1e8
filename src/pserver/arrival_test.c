/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/arrival.h"

#include "pserver/test_server.h"

static const float ten[] = {10, 20};

/* A job on one server, and what arrives of it. */
typedef struct desk {
    town t;
    fl_arrival *a;
    fl_msg m;
    bool done;
} desk;

static void desk_open(desk *d, int trainers)
{
    *d = (desk){0};
    town_cut(&d->t, 1, trainers, false);
    d->a = fl_arrival_new(
        &(fl_arrival_opts){.env = &d->t.host[0].env, .trainers = 2});
    d->m = (fl_msg){.kind = FL_MSG_SETUP, .count = 2, .job = {3, 4}};
}

static void desk_close(desk *d)
{
    fl_arrival_free(d->a);
    town_close(&d->t);
}

static fl_err take(desk *d, int64_t seq, fl_parcel *p)
{
    d->m.seq = seq;
    d->m.blob = fl_parcel_blob(p);
    const fl_err err = fl_arrival_take(d->a, &d->m, &d->done);
    fl_keeper_parcels.drop(NULL, d->m.blob);
    fl_parcel_unref(p);
    return err;
}

static fl_err take_first(desk *d, const fl_program *program,
                         const fl_program *startup, const char *servers)
{
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_bytes(p, "servers", servers, strlen(servers));
    parcel_add_program(p, "program", program);
    parcel_add_program(p, "startup", startup);
    return take(d, 1, p);
}

static fl_err take_programs(desk *d)
{
    const fl_cut *c = d->t.s.cut;
    return take_first(d, c->server[0], c->server_startup[0], d->t.all);
}

static fl_err take_start(desk *d, const char *name, int64_t first, int64_t n)
{
    const fl_shape shape = {2, {2, 1}};
    const fl_tensor t = fl_tensor_view(FL_F32, &shape, ten);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_slice(p, name, &t, first, n);
    return take(d, 2, p);
}

static void programs_and_start_values_make_a_server(void)
{
    desk d;
    desk_open(&d, 2);
    d.m.about = "servers x\ntrainers 2\nmode synchronous\nw [2,1]\n";
    CHECK_OK(take_programs(&d));
    CHECK(!d.done);
    CHECK_OK(take_programs(&d)); /* a repeat has no effect */
    CHECK_OK(take_start(&d, "w", 0, 2));
    CHECK(d.done);
    const fl_placement *place = fl_placement_of(fl_arrival_program(d.a)->job);
    CHECK_INT(place->n_servers, 1);
    CHECK_STR(place->servers[0], d.t.endpoint[0]);
    CHECK_INT(place->trainers, 2);
    CHECK(!place->async);
    CHECK_STR(place->about, "w [2,1]\n");
    CHECK(place->digest[0] == 3 && place->digest[1] + FL_PROTOCOL == 4);
    CHECK_STR(fl_arrival_op(d.a)->desc.type, "listen_and_serv");
    const fl_value *w = fl_scope_find(fl_arrival_scope(d.a), "w");
    CHECK_NEAR(((const float *)w->tensor.data)[1], 20, 0);
    desk_close(&d);
}

static void a_state_keeps_the_job_without_its_values(void)
{
    desk d;
    desk_open(&d, 2);
    d.m.about = "servers x\ntrainers 2\nmode synchronous\nw [2,1]\n";
    CHECK_OK(take_programs(&d));
    CHECK_OK(take_start(&d, "w", 0, 2));
    fl_packet *kept = fl_arrival_encode(d.a, "host:77");
    fl_arena *arena = fl_arena_new();
    fl_msg m;
    bool done = false;
    CHECK_OK(fl_msg_decode(NULL, kept, arena, &m));
    CHECK_STR(m.text, "host:77");
    fl_arrival *again = fl_arrival_new(
        &(fl_arrival_opts){.env = &d.t.host[0].env, .trainers = 2});
    CHECK_OK(fl_arrival_take(again, &m, &done));
    CHECK(done);
    const fl_placement *was = fl_placement_of(fl_arrival_program(d.a)->job);
    const fl_placement *is = fl_placement_of(fl_arrival_program(again)->job);
    CHECK_STR(is->servers[0], was->servers[0]);
    CHECK_STR(is->about, was->about);
    CHECK(!memcmp(is->digest, was->digest, sizeof is->digest));
    const fl_value *w = fl_scope_find(fl_arrival_scope(again), "w");
    CHECK_INT(fl_tensor_numel(&w->tensor), 2);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arrival_free(again);
    fl_arena_free(arena);
    fl_packet_unref(kept);
    desk_close(&d);
}

static void parts_come_in_order(void)
{
    desk d;
    desk_open(&d, 2);
    CHECK_ERR(take_start(&d, "w", 0, 2), FL_EPROTO,
              "setup: part 2 of 2 came after part 0 of 0");
    CHECK_ERR(take(&d, 1, fl_parcel_new()), FL_EPROTO,
              "setup: part 1 has no bytes under the name \"program\"");
    desk_close(&d);
}

static void another_number_of_trainers_is_named(void)
{
    desk d;
    desk_open(&d, 3);
    CHECK_ERR(take_programs(&d), FL_EINVAL,
              "setup: this server was started for 2 trainers "
              "(--num_gradient_servers=2), and trainer 0 says 3 "
              "(num_gradient_servers of paddle.init)");
    desk_close(&d);
}

static void operators_that_touch_the_machine_are_refused(void)
{
    desk d;
    desk_open(&d, 2);
    fl_program *bad = fl_program_clone(d.t.s.cut->server_startup[0], false);
    fl_desc *save = fl_desc_new(bad->arena, "save");
    fl_desc_set_in1(save, "X", "w");
    fl_set_str(save, "file_path", "/tmp/never_written");
    CHECK_OK(fl_block_append_op(fl_program_block(bad, 0), save, NULL));
    CHECK_ERR(take_first(&d, d.t.s.cut->server[0], bad, d.t.all), FL_EINVAL,
              "setup: the startup program has an op \"save\", which a server "
              "does not take from trainers");
    fl_program_free(bad);
    desk_close(&d);
}

static void a_program_that_is_no_servers_is_refused(void)
{
    desk d;
    desk_open(&d, 2);
    const fl_cut *c = d.t.s.cut;
    CHECK(take_first(&d, c->server_startup[0], c->server_startup[0], d.t.all) ==
          FL_EINVAL);
    CHECK(strstr(fl_errmsg(), "setup: the program is not that of a server"));
    desk_close(&d);
}

static void variables_must_fit_into_memory(void)
{
    desk d;
    desk_open(&d, 2);
    fl_arrival_free(d.a);
    d.a = fl_arrival_new(
        &(fl_arrival_opts){.env = &d.t.host[0].env, .trainers = 2, .most = 16});
    CHECK(take_programs(&d) == FL_ENOMEM);
    CHECK(strstr(fl_errmsg(), "have more than 16 bytes; start more servers"));
    desk_close(&d);
}

static void a_list_of_servers_is_checked(void)
{
    desk d;
    desk_open(&d, 2);
    const fl_cut *c = d.t.s.cut;
    CHECK(take_first(&d, c->server[0], c->server_startup[0], "a:1,b") ==
          FL_EINVAL);
    CHECK(strstr(fl_errmsg(), "setup: server "));
    d.m.server = 1;
    fl_arrival_free(d.a);
    d.a = fl_arrival_new(
        &(fl_arrival_opts){.env = &d.t.host[0].env, .trainers = 2});
    CHECK_ERR(
        take_programs(&d), FL_EPROTO,
        "setup: trainer 0 calls this server 1, but its list has 1 servers, "
        "counted from 0");
    desk_close(&d);
}

static void start_values_are_checked(void)
{
    desk d;
    desk_open(&d, 2);
    CHECK_OK(take_programs(&d));
    CHECK(take_start(&d, "v", 0, 2) == FL_EINVAL);
    CHECK(strstr(fl_errmsg(), "\"v\"") &&
          strstr(fl_errmsg(), "is for no variable of this server"));
    CHECK(take_start(&d, "b", 0, 2) == FL_EINVAL);
    CHECK(strstr(fl_errmsg(), "has more elements than the variable"));
    desk_close(&d);
}

const fl_test fl_tests[] = {
    {"programs and start values make a server",
     programs_and_start_values_make_a_server},
    {"a state keeps the job without its values",
     a_state_keeps_the_job_without_its_values},
    {"parts come in order", parts_come_in_order},
    {"another number of trainers is named",
     another_number_of_trainers_is_named},
    {"operators that touch the machine are refused",
     operators_that_touch_the_machine_are_refused},
    {"a program that is no server's is refused",
     a_program_that_is_no_servers_is_refused},
    {"variables must fit into memory", variables_must_fit_into_memory},
    {"a list of servers is checked", a_list_of_servers_is_checked},
    {"start values are checked", start_values_are_checked},
    {0},
};
