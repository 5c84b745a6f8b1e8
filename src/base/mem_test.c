/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include "base/test.h"

static uintptr_t offset(const void *p, uintptr_t of)
{
    return (uintptr_t)p % of;
}

static void gives_lines_and_huge_pages(void)
{
    void *small = fl_mem_try(100), *large = fl_mem_try(5 << 20);
    CHECK(small && large);
    CHECK_INT((int64_t)offset(small, 64), 0);
    CHECK_INT((int64_t)offset(large, 2 << 20), 0);
    fl_mem_free(small);
    fl_mem_free(large);
}

static void refuses_what_cannot_be(void)
{
    CHECK(!fl_mem_try(SIZE_MAX));
    CHECK(!fl_mem_try((size_t)PTRDIFF_MAX));
}

static void counts_each_allocation(void)
{
    uint64_t before = fl_mem_count();
    void *p = fl_mem_grow(fl_mem_alloc(1), 1000);
    fl_mem_free(p);
    CHECK_INT((int64_t)(fl_mem_count() - before), 2);
}

const fl_test fl_tests[] = {
    {"memory starts at a cache line, large memory at a huge page",
     gives_lines_and_huge_pages},
    {"memory that cannot be had is refused", refuses_what_cannot_be},
    {"memory counts each allocation", counts_each_allocation},
    {0},
};
