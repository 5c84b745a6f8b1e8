/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/placement.h"

#include "base/test.h"

#include <string.h>

static const fl_piece pieces[] = {
    {.var = "w", .name = "w.block0", .shape = {2, {13, 1}}},
    {.var = "b", .name = "b", .server = 1, .shape = {1, {1}}},
};

static fl_placement *make(void)
{
    const char *servers[] = {"a:1", "b:2"};
    return fl_placement_new(&(fl_placement){.n_servers = 2,
                                            .servers = servers,
                                            .trainers = 3,
                                            .async = true,
                                            .digest = {5, 6},
                                            .n_pieces = 2,
                                            .pieces = pieces,
                                            .origin = "program",
                                            .origin_size = 7});
}

static void a_placement_names_its_job(void)
{
    fl_placement *p = make();
    const fl_job j = fl_placement_job(p, &(fl_job){.lease = FL_SEC});
    CHECK(fl_id_same(j.id, (fl_id){5, 6 + FL_PROTOCOL}));
    CHECK_INT(j.servers, 2);
    CHECK_STR(j.endpoints[1], "b:2");
    CHECK_INT(j.trainers, 3);
    CHECK(j.async);
    CHECK_INT(j.lease, FL_SEC);
    CHECK_INT(j.retry, 500 * FL_MS);
    CHECK_STR(j.about, "w.block0 [13,1]\nb [1]\n");
    fl_handle_unref(&p->handle);
}

static void a_placement_is_a_copy_of_its_own(void)
{
    fl_placement *p = make();
    CHECK(p->pieces != pieces && p->pieces[1].name != pieces[1].name);
    CHECK_STR(p->pieces[1].name, "b");
    CHECK_INT(p->pieces[1].server, 1);
    CHECK(!memcmp(p->origin, "program", 7));
    fl_handle *shared = fl_handle_ref(&p->handle);
    fl_handle_unref(&p->handle);
    CHECK_STR(fl_placement_of(shared)->servers[0], "a:1");
    fl_handle_unref(shared);
}

static void rows_by_id_lie_on_the_server_of_the_remainder(void)
{
    CHECK_INT(fl_id_server(7, 3), 1);
    CHECK_INT(fl_id_server(-1, 3), 2);
    CHECK_INT(fl_id_server(INT64_MIN, 2), 0);
}

const fl_test fl_tests[] = {
    {"a placement names its job", a_placement_names_its_job},
    {"a placement is a copy of its own", a_placement_is_a_copy_of_its_own},
    {"rows by id lie on the server of the remainder",
     rows_by_id_lie_on_the_server_of_the_remainder},
    {0},
};
