/* SPDX-License-Identifier: Apache-2.0 */
/* room_test.c - an owner without room waits, reads pulls, and goes on. The
 * pulls and the end come while it waits: fl_room_opts.full brings them. */
#include "pserver/room.h"

#include "base/test.h"

typedef struct scene {
    fl_room *room;
    int lacking;  /* how often there is no room yet */
    int tries;    /* calls of take_room */
    int reads;    /* pulls that were read */
    int fulls;    /* calls of on_full */
    int parked;   /* pulls that were read while a push would be parked */
    bool ends;    /* the store is closed while the owner waits */
    bool refuses; /* nobody waits */
} scene;

static fl_err take_room(void *of, bool *lacks)
{
    scene *s = of;
    s->tries++;
    if (s->tries > s->lacking)
        return FL_OK;
    *lacks = true;
    return fl_fail(FL_ENOMEM, "extent-0: no room for 4096 bytes more");
}

static void read_pull(void *arg)
{
    scene *s = arg;
    s->reads++;
    s->parked += fl_room_check(s->room) != FL_OK;
}

static bool on_full(void *self, int owner, const char *why)
{
    scene *s = self;
    s->fulls++;
    CHECK_STR(why, "extent-0: no room for 4096 bytes more");
    fl_room_add(s->room, 0, read_pull, s);
    if (s->ends)
        fl_room_end(s->room);
    return !s->refuses;
}

static void open_scene(scene *s)
{
    s->room =
        fl_room_new(&(fl_room_opts){.owners = 1, .full = on_full, .self = s});
}

static void takes_room_at_once(void)
{
    scene s = {0};
    open_scene(&s);
    CHECK_OK(fl_room_take(s.room, 0, take_room, &s));
    CHECK_INT(s.tries, 1);
    CHECK_INT(s.fulls, 0);
    CHECK(!fl_room_read(s.room, 0));
    fl_room_free(s.room);
}

static void reads_pulls_while_it_waits(void)
{
    scene s = {.lacking = 2};
    open_scene(&s);
    CHECK_OK(fl_room_take(s.room, 0, take_room, &s));
    CHECK_INT(s.tries, 3);
    CHECK_INT(s.fulls, 2);
    CHECK_INT(s.reads, 2);
    CHECK_INT(s.parked, 2);
    CHECK_OK(fl_room_check(s.room)); /* nobody waits any more */
    CHECK(!fl_room_read(s.room, 0)); /* the tasks of these pulls find none */
    fl_room_free(s.room);
}

static void fails_when_the_store_is_closed(void)
{
    scene s = {.lacking = 1, .ends = true};
    open_scene(&s);
    CHECK_ERR(fl_room_take(s.room, 0, take_room, &s), FL_ENOMEM,
              "extent-0: no room for 4096 bytes more");
    CHECK_INT(s.tries, 1);
    CHECK_INT(s.reads, 1);
    fl_room_free(s.room);
}

static void fails_if_nobody_is_to_wait(void)
{
    scene s = {.lacking = 1, .refuses = true};
    open_scene(&s);
    CHECK_ERR(fl_room_take(s.room, 0, take_room, &s), FL_ENOMEM,
              "extent-0: no room for 4096 bytes more");
    CHECK_INT(s.reads, 0);
    CHECK(fl_room_read(s.room, 0));
    CHECK_INT(s.parked, 0); /* pushes are taken */
    fl_room_free(s.room);
}

/* Two owners, on one thread: when owner 0 has no room for the second time,
 * owner 1 begins to wait, and goes on. */
typedef struct pair {
    scene own[2];
    fl_room *room;
    int fulls;
} pair;

static bool on_full_of_two(void *self, int owner, const char *why)
{
    pair *p = self;
    CHECK_INT(owner, p->fulls == 2);
    if (++p->fulls != 2)
        return true;
    for (int i = 0; i < 2; i++)
        fl_room_add(p->room, i, read_pull, &p->own[i]);
    CHECK_OK(fl_room_take(p->room, 1, take_room, &p->own[1]));
    CHECK_INT(p->own[1].reads, 1);
    CHECK_INT(p->own[0].reads, 0); /* an owner reads its own pulls */
    CHECK_ERR(fl_room_check(p->room), FL_ENOMEM, "no room for 4096 bytes more");
    return true;
}

static void owners_wait_apart(void)
{
    pair p = {.own = {{.lacking = 2}, {.lacking = 1}}};
    p.room = fl_room_new(
        &(fl_room_opts){.owners = 2, .full = on_full_of_two, .self = &p});
    p.own[0].room = p.own[1].room = p.room;
    CHECK_OK(fl_room_take(p.room, 0, take_room, &p.own[0]));
    CHECK_INT(p.own[0].reads, 1);
    CHECK_INT(p.fulls, 3);
    CHECK_OK(fl_room_check(p.room));
    fl_room_free(p.room);
}

const fl_test fl_tests[] = {
    {"room is taken at once if there is some", takes_room_at_once},
    {"an owner without room reads pulls while it waits",
     reads_pulls_while_it_waits},
    {"an owner without room fails when the store is closed",
     fails_when_the_store_is_closed},
    {"an owner without room fails if nobody is to wait",
     fails_if_nobody_is_to_wait},
    {"owners without room wait apart", owners_wait_apart},
    {0},
};
