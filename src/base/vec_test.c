/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include "base/test.h"

typedef struct pair {
    int a, b;
} pair;

static void push_keeps_what_was_there(void)
{
    FL_VEC(pair) v = {0};
    for (int i = 0; i < 1000; i++)
        fl_push(&v, (pair){i, -i});
    CHECK_INT(v.n, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK(v.at[i].a == i && v.at[i].b == -i);
    fl_vec_fini(&v);
    CHECK(!v.at && !v.n && !v.cap);
}

static void insert_and_remove_move_the_rest(void)
{
    FL_VEC(int) v = {0};
    for (int i = 0; i < 8; i++) /* as many as the first memory holds */
        fl_push(&v, i);
    fl_insert(&v, 0, 100);
    fl_insert(&v, v.n, 200);
    fl_insert(&v, 4, 300);
    fl_remove(&v, 1);
    fl_remove(&v, v.n - 1);
    const int want[] = {100, 1, 2, 300, 3, 4, 5, 6, 7};
    CHECK_INT(v.n, 9);
    for (int i = 0; i < 9; i++)
        CHECK_INT(v.at[i], want[i]);
    fl_vec_fini(&v);
}

static void growth_allocates_rarely(void)
{
    FL_VEC(char) v = {0};
    uint64_t before = fl_mem_count();
    for (int i = 0; i < 100000; i++)
        fl_push(&v, 'x');
    CHECK(fl_mem_count() - before <= 15);
    fl_vec_fini(&v);
}

const fl_test fl_tests[] = {
    {"vector push keeps what was there", push_keeps_what_was_there},
    {"vector insert and remove move the rest", insert_and_remove_move_the_rest},
    {"vector growth allocates rarely", growth_allocates_rarely},
    {0},
};
