/* SPDX-License-Identifier: Apache-2.0 */
#include "table/directory.h"

#include "state/test_state.h"

static const fl_directory_layout layout = {16, 1024, 5};

/* A state with the directory of a table. */
typedef struct scene {
    fl_statedir *state;
    fl_directory *d;
} scene;

static void open_scene(scene *s)
{
    s->state = test_state();
    CHECK_OK(fl_directory_open(s->state, 3, &layout, &s->d));
}

static void close_scene(scene *s)
{
    fl_directory_free(s->d);
    fl_statedir_close(s->state);
}

static uint32_t extent_at(const scene *s, int slot)
{
    fl_directory_entry e;
    return fl_directory_get(s->d, slot, &e) ? e.extent : 0;
}

/* The first segment has extent 1. It is split into 2 and 3, and 3 is replaced
 * by 4. */
static void change_entries(void *unused)
{
    const fl_directory_entry whole = {1, 0}, low = {2, 1}, high = {3, 1},
                             larger = {4, 1};
    const int half = FL_DIRECTORY_SLOTS / 2;
    scene s;
    open_scene(&s);
    fl_statedir_ready(s.state);
    fl_directory_set(s.d, 0, FL_DIRECTORY_SLOTS,
                     (fl_directory_entry[]){whole, whole});
    fl_directory_set(s.d, 0, FL_DIRECTORY_SLOTS,
                     (fl_directory_entry[]){low, high});
    fl_directory_set(s.d, half, half, (fl_directory_entry[]){larger, larger});
    close_scene(&s);
}

static void remove_state(scene *s)
{
    fl_statedir_set_over(s->state, true);
    fl_statedir_remove(s->state);
    close_scene(s);
}

static void entries_are_found_again(void)
{
    scene s;
    fl_directory_entry e;
    open_scene(&s);
    CHECK_INT(extent_at(&s, 0), 0);
    CHECK_INT(extent_at(&s, FL_DIRECTORY_SLOTS - 1), 0);
    close_scene(&s);
    change_entries(NULL);
    open_scene(&s);
    CHECK(fl_directory_get(s.d, FL_DIRECTORY_SLOTS / 2 - 1, &e));
    CHECK_INT(e.extent, 2);
    CHECK_INT(e.depth, 1);
    CHECK_INT(extent_at(&s, 0), 2);
    CHECK_INT(extent_at(&s, FL_DIRECTORY_SLOTS / 2), 4);
    CHECK_INT(extent_at(&s, FL_DIRECTORY_SLOTS - 1), 4);
    remove_state(&s);
}

/* A change that was written down is carried out; one that was not is none. */
static void a_kill_leaves_no_half_change(void)
{
    static const struct {
        const char *at;
        uint32_t low, high; /* extents of the first and of the last slot */
    } kills[] = {
        {"table.shelf:1", 0, 0}, {"table.redo:1", 1, 1}, {"table.dir:1", 1, 1},
        {"table.shelf:2", 1, 1}, {"table.redo:2", 2, 3}, {"table.dir:2", 2, 3},
        {"table.shelf:3", 2, 3}, {"table.redo:3", 2, 4}, {"table.dir:3", 2, 4},
    };
    for (size_t i = 0; i < sizeof kills / sizeof *kills; i++) {
        scene s;
        CHECK(test_kill_at(kills[i].at, change_entries, NULL));
        open_scene(&s);
        CHECK_INT(extent_at(&s, 0), kills[i].low);
        CHECK_INT(extent_at(&s, FL_DIRECTORY_SLOTS - 1), kills[i].high);
        remove_state(&s);
    }
}

static void another_layout_is_refused(void)
{
    const fl_directory_layout wider = {32, 1024, 5};
    fl_directory *d;
    change_entries(NULL);
    fl_statedir *state = test_state();
    CHECK_ERR(fl_directory_open(state, 3, &wider, &d), FL_EINVAL,
              "table-3 is damaged: its rows have another layout");
    fl_statedir_set_over(state, true);
    fl_statedir_remove(state);
    fl_statedir_close(state);
}

const fl_test fl_tests[] = {
    {"entries of a directory are found again", entries_are_found_again},
    {"a kill leaves no half of a change", a_kill_leaves_no_half_change},
    {"a directory of another layout is refused", another_layout_is_refused},
    {0},
};
