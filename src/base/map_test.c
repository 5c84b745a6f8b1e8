/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"
#include "base/test.h"

#include <stdio.h>

static void finds_what_was_put(void)
{
    static char key[1000][16];
    fl_map m = {0};
    for (int i = 0; i < 1000; i++) {
        snprintf(key[i], sizeof key[i], "k%d", i);
        fl_map_put(&m, key[i], key[i]);
    }
    for (int i = 0; i < 1000; i++)
        CHECK(fl_map_get(&m, key[i]) == key[i]);
    CHECK(!fl_map_get(&m, "k1000"));
    CHECK_INT(m.live, 1000);
    fl_map_fini(&m);
}

static void keeps_the_order_of_insertion(void)
{
    fl_map m = {0};
    const char *key[] = {"z", "a", "m"};
    for (int i = 0; i < 3; i++)
        fl_map_put(&m, key[i], &m);
    fl_map_remove(&m, "a");
    fl_map_put(&m, "a", &m);
    const char *want[] = {"z", "m", "a"};
    int i = 0;
    for (fl_entry *e = NULL; (e = fl_map_next(&m, e)); i++)
        CHECK_STR(e->key, want[i]);
    CHECK_INT(i, 3);
    fl_map_fini(&m);
}

static void has_no_first_entry_when_empty(void)
{
    const fl_map m = {0};
    CHECK(!fl_map_next(&m, NULL));
}

static void replaces_and_removes(void)
{
    int one, two;
    fl_map m = {0};
    fl_map_put(&m, "k", &one);
    fl_map_put(&m, "k", &two);
    CHECK(fl_map_get(&m, "k") == &two);
    CHECK_INT(m.live, 1);
    CHECK(fl_map_remove(&m, "k"));
    CHECK(!fl_map_remove(&m, "k"));
    CHECK(!fl_map_get(&m, "k"));
    fl_map_fini(&m);
}

static void stays_right_when_entries_come_and_go(void)
{
    static char key[5000][16];
    fl_map m = {0};
    for (int i = 0; i < 5000; i++) {
        snprintf(key[i], sizeof key[i], "%d", i);
        fl_map_put(&m, key[i], key[i]);
        if (i >= 3)
            CHECK(fl_map_remove(&m, key[i - 3]));
    }
    CHECK_INT(m.live, 3);
    CHECK(fl_map_get(&m, "4999") == key[4999]);
    CHECK(!fl_map_get(&m, "17"));
    CHECK(m.n_slot <= 64);
    fl_map_fini(&m);
}

const fl_test fl_tests[] = {
    {"map finds what was put", finds_what_was_put},
    {"map keeps the order of insertion", keeps_the_order_of_insertion},
    {"map replaces and removes", replaces_and_removes},
    {"map stays right when entries come and go",
     stays_right_when_entries_come_and_go},
    {"map has no first entry when it is empty", has_no_first_entry_when_empty},
    {0},
};
