/* SPDX-License-Identifier: Apache-2.0 */
#include "state/staging.h"
#include "state/test_state.h"

#include <stdio.h>
#include <string.h>

enum {
    LIMIT = 8 << 20
};

typedef struct stage {
    fl_statedir *dir;
    fl_staging *staging;
} stage;

static stage open_stage(void)
{
    stage s = {test_state(), NULL};
    CHECK_OK(fl_staging_new(s.dir, LIMIT, &s.staging));
    fl_statedir_ready(s.dir);
    return s;
}

static void close_stage(stage *s)
{
    fl_staging_free(s->staging);
    fl_statedir_close(s->dir);
}

static void remove_stage(stage *s)
{
    fl_statedir_remove(s->dir);
    close_stage(s);
}

/* Keep a push of some bytes, all equal to its number. */
static void *keep_push(stage *s, int64_t round, uint64_t session, int64_t seq,
                       size_t size)
{
    void *at;
    CHECK_OK(fl_staging_take(s->staging, size, 5, &at));
    CHECK_INT((int64_t)(((uintptr_t)at + 5) % 64), 0);
    memset(at, (int)seq, size);
    fl_staging_keep(s->staging, &(fl_staging_entry){.session = {1, session},
                                                    .seq = seq,
                                                    .round = round,
                                                    .at = at,
                                                    .size = size});
    return at;
}

static int count_entries(const stage *s)
{
    fl_staging_entry e;
    int n = 0;
    for (int64_t i = 0; fl_staging_next(s->staging, &i, &e); n++)
        for (size_t k = 0; k < e.size; k++)
            CHECK_INT(((const unsigned char *)e.at)[k], e.seq);
    return n;
}

static void keep_three(void *arg)
{
    stage s = open_stage();
    for (int i = 1; i <= 3; i++)
        keep_push(&s, 0, 1, i, 1000 * (size_t)i);
    close_stage(&s);
}

static void a_push_is_kept_once_it_is_counted(void)
{
    for (int n = 1; n <= 10; n++) {
        char at[32];
        snprintf(at, sizeof at, "*:%d", n);
        CHECK(test_kill_at(at, keep_three, NULL) == (n < 10));
        stage s = open_stage();
        CHECK_INT(count_entries(&s), n == 10 ? 3 : n / 3);
        remove_stage(&s);
    }
}

static void entries_of_a_closed_round_are_dropped(void)
{
    stage s = open_stage();
    void *a = keep_push(&s, 4, 1, 1, 5000), *b = keep_push(&s, 4, 2, 2, 5000);
    fl_staging_close(s.staging, 4); /* round 4 is still open */
    CHECK_INT(count_entries(&s), 2);
    fl_staging_give(s.staging, a); /* its entry still names it */
    void *c = keep_push(&s, 4, 1, 3, 5000);
    CHECK(c != a);
    CHECK_INT(count_entries(&s), 3);
    fl_staging_close(s.staging, 5);
    CHECK_INT(count_entries(&s), 0);
    CHECK(keep_push(&s, 5, 1, 4, 5000) == a); /* the room is free again */
    fl_staging_give(s.staging, b);
    fl_staging_give(s.staging, c);
    remove_stage(&s);
}

static void pushes_of_a_session_that_left_give_their_room_back(void)
{
    stage s = open_stage();
    void *a = keep_push(&s, 0, 1, 1, 3000);
    keep_push(&s, 0, 2, 2, 3000);
    fl_staging_forget(s.staging, (uint64_t[]){1, 1});
    fl_staging_give(s.staging, a);
    CHECK_INT(count_entries(&s), 1);
    CHECK(keep_push(&s, 0, 2, 3, 3000) == a);
    close_stage(&s);
    s = open_stage();
    CHECK_INT(count_entries(&s), 2);
    remove_stage(&s);
}

static void a_full_stage_is_named(void)
{
    stage s = open_stage();
    void *at;
    CHECK_ERR(fl_staging_take(s.staging, 2 * LIMIT, 0, &at), FL_ENOMEM,
              "/stage: cannot have ");
    CHECK_OK(fl_staging_take(s.staging, LIMIT / 2, 0, &at));
    remove_stage(&s);
}

const fl_test fl_tests[] = {
    {"a push is kept once it is counted, and not before",
     a_push_is_kept_once_it_is_counted},
    {"entries of a closed round are dropped, and their room is free",
     entries_of_a_closed_round_are_dropped},
    {"pushes of a session that left give their room back",
     pushes_of_a_session_that_left_give_their_room_back},
    {"a stage that is full is named", a_full_stage_is_named},
    {0},
};
