/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/pushers.h"

#include "base/vec.h"
#include "protocol/test_talk.h"

/* The pushers of a server, and the sessions that its store has forgotten. */
typedef struct scene {
    fl_job job;
    fl_store store;
    fl_pushers *ps;
    FL_VEC(fl_id) forgotten;
} scene;

static void forget_session(void *self, fl_id id)
{
    scene *s = self;
    fl_push(&s->forgotten, id);
}

static void open_scene(scene *s)
{
    *s = (scene){.job = fl_job_defaults(
                     (fl_job){.id = job_id, .trainers = 3, .max_parts = 2}),
                 .store = {.self = s,
                           .keep = fl_keeper_copies,
                           .forget = forget_session}};
    s->ps = fl_pushers_new(&s->job, &s->store);
}

static void close_scene(scene *s)
{
    fl_pushers_free(s->ps);
    fl_vec_fini(&s->forgotten);
}

/* Session n of rank n - 1 pushes a word. `count`: as in PUSH. */
static void push_word(scene *s, uint64_t n, int64_t seq, int64_t count,
                      const char *word)
{
    fl_pusher *p = fl_pushers_add(s->ps, session(n), (int)n - 1);
    CHECK_OK(fl_pushers_check(s->ps, p, seq));
    fl_pusher_mark(p, seq);
    fl_pushers_stage(s->ps, p,
                     &(fl_msg){.kind = FL_MSG_PUSH,
                               .session = session(n),
                               .seq = seq,
                               .count = count,
                               .blob = {.at = word, .size = strlen(word)}});
}

static bool is_word(const fl_blob *b, const char *word)
{
    return b->size == strlen(word) && !memcmp(b->at, word, b->size);
}

static void see_a_push_once(void)
{
    scene s;
    open_scene(&s);
    CHECK(!fl_pushers_find(s.ps, session(1)));
    fl_pusher *p = fl_pushers_add(s.ps, session(1), 0);
    CHECK(p == fl_pushers_add(s.ps, session(1), 0));
    CHECK_INT(fl_pushers_count(s.ps), 1);
    CHECK(!fl_pusher_has_seen(p, 2));
    fl_pusher_mark(p, 2);
    fl_pusher_mark(p, 2);
    CHECK(fl_pusher_has_seen(p, 2));
    CHECK(!fl_pusher_has_seen(p, 1));
    close_scene(&s);
}

static void refuse_what_has_no_room(void)
{
    scene s;
    open_scene(&s);
    push_word(&s, 1, 1, 0, "a");
    push_word(&s, 1, 2, 0, "b");
    const fl_pusher *p = fl_pushers_find(s.ps, session(1));
    CHECK_ERR(fl_pushers_check(s.ps, p, 3), FL_EPROTO,
              "push: a round has at most 2 pushes of a trainer");
    CHECK_ERR(fl_pushers_check(s.ps, p, 1000), FL_EPROTO,
              "push: its number is 1000, expected 1 to 66");
    close_scene(&s);
}

static void gather_by_rank_and_number(void)
{
    scene s;
    fl_staged by[3];
    const fl_member members[] = {{0, session(1), 1}, {2, session(3), 1}};
    open_scene(&s);
    push_word(&s, 3, 2, 2, "later");
    CHECK(!fl_pushers_have_all(s.ps, session(3)));
    push_word(&s, 3, 1, 0, "first");
    push_word(&s, 2, 1, 1, "not in the decision");
    push_word(&s, 1, 1, 1, "one");
    CHECK(fl_pushers_have_all(s.ps, session(3)));
    CHECK(!fl_pushers_have_all(s.ps, session(4)));
    CHECK_INT(fl_pushers_gather(s.ps, members, 2, by), 2);
    CHECK_INT(by[0].rank, 0);
    CHECK_INT(by[0].n, 1);
    CHECK(is_word(&by[0].part[0], "one"));
    CHECK_INT(by[1].rank, 2);
    CHECK_INT(by[1].n, 2);
    CHECK(is_word(&by[1].part[0], "first"));
    CHECK(is_word(&by[1].part[1], "later"));
    close_scene(&s);
}

static void count_their_bytes(void)
{
    scene s;
    open_scene(&s);
    push_word(&s, 1, 1, 0, "four");
    push_word(&s, 2, 1, 0, "three");
    CHECK_INT((int64_t)fl_pushers_bytes(s.ps), 9);
    fl_pushers_close_round(s.ps);
    CHECK_INT((int64_t)fl_pushers_bytes(s.ps), 0);
    CHECK_INT(fl_pushers_count(s.ps), 2);
    CHECK(!fl_pushers_have_all(s.ps, session(1)));
    CHECK(fl_pusher_has_seen(fl_pushers_find(s.ps, session(1)), 1));
    close_scene(&s);
}

static bool is_used(const void *used, fl_id session)
{
    return *(const bool *)used;
}

static void flush(scene *s, bool used)
{
    fl_pushers_flush(s->ps, is_used, &used);
}

static void outlive_their_view_in_a_decided_round(void)
{
    scene s;
    const fl_member member = {1, session(2), 1};
    open_scene(&s);
    push_word(&s, 1, 1, 1, "in the decision");
    push_word(&s, 2, 1, 1, "too");
    fl_pushers_retain(s.ps, &member, 1, false);
    CHECK(fl_pushers_have_all(s.ps, session(1)));
    flush(&s, false);
    CHECK_INT(s.forgotten.n, 0);
    fl_pushers_close_round(s.ps);
    CHECK(!fl_pushers_find(s.ps, session(1)));
    CHECK(fl_pushers_find(s.ps, session(2)) != NULL);
    CHECK_INT(s.forgotten.n, 0); /* not before its image is saved */
    flush(&s, false);
    flush(&s, false);
    CHECK_INT(s.forgotten.n, 1);
    CHECK(fl_id_same(s.forgotten.at[0], session(1)));
    close_scene(&s);
}

static void are_forgotten_in_a_round_without_decision(void)
{
    scene s;
    open_scene(&s);
    push_word(&s, 1, 1, 1, "in no decision");
    fl_pushers_retain(s.ps, NULL, 0, true);
    CHECK_INT(fl_pushers_count(s.ps), 0);
    CHECK_INT((int64_t)fl_pushers_bytes(s.ps), 0);
    flush(&s, true);
    CHECK_INT(s.forgotten.n, 0);
    flush(&s, false);
    CHECK_INT(s.forgotten.n, 1);
    close_scene(&s);
}

static void outlive_the_process(void)
{
    scene s, next;
    fl_str bytes = {0};
    fl_image im;
    fl_staged by;
    open_scene(&s);
    push_word(&s, 1, 1, 0, "a");
    im = fl_image_begin(&bytes, FL_IMAGE_SERVER, &s.job, 0);
    fl_pushers_visit(s.ps, &im);
    fl_image_finish(&im);
    open_scene(&next);
    CHECK_OK(
        fl_image_open(&im, bytes.at, bytes.n, FL_IMAGE_SERVER, &next.job, 0));
    fl_pushers_visit(next.ps, &im);
    CHECK_OK(fl_image_check(&im));
    fl_pusher *p = fl_pushers_find(next.ps, session(1));
    CHECK(fl_pusher_has_seen(p, 1));
    /* pushes that the store has kept; the image is older than the second */
    fl_push_id id = {session(1), 0, 1, 0, 0};
    const fl_blob word = {.at = "a", .size = 1};
    CHECK(
        fl_pushers_restage(next.ps, p, &id, fl_keeper_copies.keep(NULL, word)));
    id.seq = id.count = 2;
    CHECK(
        fl_pushers_restage(next.ps, p, &id, fl_keeper_copies.keep(NULL, word)));
    CHECK(fl_pusher_has_seen(p, 2));
    id.seq = 1000;
    CHECK(!fl_pushers_restage(next.ps, p, &id, word));
    CHECK(fl_pushers_have_all(next.ps, session(1)));
    CHECK_INT(
        fl_pushers_gather(next.ps, &(fl_member){0, session(1), 1}, 1, &by), 1);
    CHECK_INT(by.n, 2);
    CHECK_INT((int64_t)fl_pushers_bytes(next.ps), 2);
    fl_str_fini(&bytes);
    close_scene(&next);
    close_scene(&s);
}

static void get_their_windows_from_the_store(void)
{
    scene s;
    open_scene(&s);
    fl_pushers_rewindow(s.ps, session(3), 2, (fl_window){.base = 7});
    const fl_pusher *p = fl_pushers_find(s.ps, session(3));
    CHECK(fl_pusher_has_seen(p, 7));
    CHECK(!fl_pusher_has_seen(p, 8));
    close_scene(&s);
}

const fl_test fl_tests[] = {
    {"pushers see a push once", see_a_push_once},
    {"pushers refuse what has no room", refuse_what_has_no_room},
    {"staged pushes are gathered by rank and number",
     gather_by_rank_and_number},
    {"staged pushes count their bytes", count_their_bytes},
    {"pushers outlive their view in a decided round",
     outlive_their_view_in_a_decided_round},
    {"pushers are forgotten in a round without decision",
     are_forgotten_in_a_round_without_decision},
    {"pushers outlive the process", outlive_the_process},
    {"pushers get their windows from the store",
     get_their_windows_from_the_store},
    {0},
};
