/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"

#include "base/test.h"

static void pages_are_zeroed_and_aligned(void)
{
    static const size_t sizes[] = {1, 4096, 100000, FL_HUGE_PAGE,
                                   3 * FL_HUGE_PAGE + 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *p = fl_pages_map(sizes[i]);
        CHECK(p != NULL);
        CHECK(!p[0] && !p[sizes[i] - 1]);
        if (sizes[i] >= FL_HUGE_PAGE)
            CHECK_INT((int64_t)((uintptr_t)p % FL_HUGE_PAGE), 0);
        p[0] = p[sizes[i] - 1] = 1;
        fl_pages_unmap(p, sizes[i]);
    }
}

static void pages_grow_and_keep_what_they_hold(void)
{
    size_t size = FL_HUGE_PAGE;
    char *p = fl_pages_map(size);
    for (int i = 0; i < 8; i++) {
        const size_t larger = size + FL_HUGE_PAGE;
        void *in_the_way = fl_pages_map(4096);
        p[size - 1] = (char)(i + 1);
        p = fl_pages_grow(p, size, larger);
        CHECK(p != NULL);
        CHECK_INT((int64_t)((uintptr_t)p % FL_HUGE_PAGE), 0);
        CHECK(!p[size] && !p[larger - 1]);
        for (int k = 0; k <= i; k++)
            CHECK_INT(p[(size_t)(k + 1) * FL_HUGE_PAGE - 1], k + 1);
        fl_pages_unmap(in_the_way, 4096);
        size = larger;
    }
    CHECK(!fl_pages_grow(p, size, SIZE_MAX / 2));
    CHECK_INT(p[FL_HUGE_PAGE - 1], 1);
    fl_pages_unmap(p, size);
}

static void what_cannot_be_is_null(void)
{
    CHECK(!fl_pages_map(0));
    CHECK(!fl_pages_map(SIZE_MAX));
    CHECK(!fl_pages_map(SIZE_MAX / 2 - FL_HUGE_PAGE));
    fl_pages_unmap(NULL, 10);
}

static void memory_is_counted(void)
{
    const fl_memory m = fl_memory_look(false), h = fl_memory_look(true);
    CHECK(m.total > 0 && m.left > 0 && m.left <= m.total);
    CHECK_INT(m.huge, -1);
    CHECK(h.huge >= -1);
}

const fl_test fl_tests[] = {
    {"pages are zeroed, big ones aligned", pages_are_zeroed_and_aligned},
    {"pages grow and keep what they hold", pages_grow_and_keep_what_they_hold},
    {"what cannot be mapped is NULL", what_cannot_be_is_null},
    {"memory that is left is counted", memory_is_counted},
    {0},
};
