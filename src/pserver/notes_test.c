/* SPDX-License-Identifier: Apache-2.0 */
#include "pserver/notes.h"

#include "base/mem.h"
#include "base/test.h"

/* Check all lines since the last call, each with a newline behind. */
static void check_lines(fl_notes *n, const char *want)
{
    fl_str text = {0};
    char **lines = fl_notes_take(n);
    for (int i = 0; lines && lines[i]; i++) {
        fl_str_printf(&text, "%s\n", lines[i]);
        fl_mem_free(lines[i]);
    }
    fl_mem_free(lines);
    CHECK_STR(text.at ? text.at : "", want);
    fl_str_fini(&text);
}

static void lines_are_taken_once(void)
{
    fl_outbox box;
    fl_notes *n = fl_notes_new();
    fl_outbox_init(&box);
    CHECK(!fl_notes_take(n));
    fl_notes_add(n, "first %d", 1);
    fl_outbox_note(&box, "100%% of %s", "a machine");
    fl_notes_add_outbox(n, &box);
    check_lines(n, "first 1\n100% of a machine\n");
    CHECK(!fl_notes_take(n));
    fl_notes_write(NULL);
    fl_outbox_fini(&box);
    fl_notes_free(n);
}

static void trainers_join_and_leave(void)
{
    const fl_member both[] = {{0, {1, 10}, 1}, {2, {1, 12}, 2}},
                    other[] = {{2, {1, 13}, 4}};
    const fl_leave left[] = {
        {2, {1, 12}, 3, FL_LEFT_CALL, FL_SEC},
        {2, {1, 11}, 1, FL_LEFT_FAILED, 9 * FL_SEC},
    };
    fl_notes *n = fl_notes_new();
    fl_notes_begin(n, 3);
    fl_notes_view(n, &(fl_msg){.member = both, .n_member = 2});
    check_lines(n, "trainer 0 has joined; 2 of 3 are here\n"
                   "trainer 2 has joined; 2 of 3 are here\n");
    fl_notes_view(n, &(fl_msg){.member = both, .n_member = 2});
    check_lines(n, "");
    fl_notes_view(
        n,
        &(fl_msg){.member = other, .n_member = 1, .left = left, .n_left = 2});
    check_lines(n, "trainer 0 has left; 1 of 3 are here\n"
                   "trainer 2 has left; 1 of 3 are here; rank 2 lost: its open "
                   "call broke 1.0 s ago (view 3)\n"
                   "trainer 2 has joined; 1 of 3 are here\n");
    fl_notes_begin(n, 3); /* the job goes back: it has no trainer yet */
    fl_notes_view(n, &(fl_msg){.member = other, .n_member = 1});
    check_lines(n, "trainer 2 has joined; 1 of 3 are here\n");
    fl_notes_free(n);
}

static void versions_are_noted_once_a_minute(void)
{
    fl_fake_clock c;
    fl_notes *n = fl_notes_new();
    fl_fake_clock_init(&c, FL_SEC);
    fl_notes_begin(n, 1);
    fl_notes_version(n, 0, &c.clock);
    check_lines(n, "");
    fl_notes_version(n, 1, &c.clock);
    check_lines(n, "version 1: the job trains\n");
    fl_fake_clock_move(&c, 60 * FL_SEC - 1);
    fl_notes_version(n, 100, &c.clock);
    check_lines(n, "");
    fl_fake_clock_move(&c, 1);
    fl_notes_version(n, 1, &c.clock);
    check_lines(n, ""); /* nothing was applied since */
    fl_notes_version(n, 121, &c.clock);
    check_lines(n, "version 121, 2 a second\n");
    fl_notes_begin(n, 1);
    fl_notes_version(n, 7, &c.clock);
    check_lines(n, "version 7: the job trains\n");
    fl_notes_free(n);
}

const fl_test fl_tests[] = {
    {"lines are taken once", lines_are_taken_once},
    {"trainers join and leave", trainers_join_and_leave},
    {"versions are noted once a minute", versions_are_noted_once_a_minute},
    {0},
};
