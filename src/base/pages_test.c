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
    {"what cannot be mapped is NULL", what_cannot_be_is_null},
    {"memory that is left is counted", memory_is_counted},
    {0},
};
