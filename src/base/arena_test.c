/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/mem.h"
#include "base/test.h"

#include <string.h>

static void memory_is_zeroed_and_aligned(void)
{
    fl_arena *a = fl_arena_new();
    for (size_t size = 1; size < 100000; size = size * 3 + 1) {
        unsigned char *p = fl_arena_alloc(a, size);
        CHECK_INT((int64_t)((uintptr_t)p % 16), 0);
        for (size_t i = 0; i < size; i++)
            CHECK(!p[i]);
        memset(p, 0xff, size);
    }
    fl_arena_free(a);
}

static void texts_are_copied(void)
{
    fl_arena *a = fl_arena_new();
    char text[] = "abc";
    char *s = fl_arena_strdup(a, text), *f = fl_arena_printf(a, "%s-%d", s, 42);
    text[0] = 'x';
    CHECK_STR(s, "abc");
    CHECK_STR(f, "abc-42");
    CHECK(fl_arena_dup(a, NULL, 0));
    fl_arena_free(a);
}

static void reset_gives_zeroed_memory_again_without_malloc(void)
{
    fl_arena *a = fl_arena_new();
    for (int i = 0; i < 3; i++)
        memset(fl_arena_alloc(a, 3000), 0xff, 3000);
    fl_arena_reset(a);
    uint64_t before = fl_mem_count();
    for (int i = 0; i < 10; i++) {
        unsigned char *p = fl_arena_alloc(a, 3000);
        for (int k = 0; k < 3000; k++)
            CHECK(!p[k]);
        memset(p, 0xff, 3000);
        fl_arena_reset(a);
    }
    CHECK_INT((int64_t)(fl_mem_count() - before), 0);
    fl_arena_free(a);
}

static void empty_arenas_end(void)
{
    fl_arena *a = fl_arena_new();
    fl_arena_reset(a);
    fl_arena_free(a);
    fl_arena_free(NULL);
}

const fl_test fl_tests[] = {
    {"arena memory is zeroed and aligned", memory_is_zeroed_and_aligned},
    {"arena copies texts", texts_are_copied},
    {"arena reset gives zeroed memory without malloc",
     reset_gives_zeroed_memory_again_without_malloc},
    {"empty arenas end", empty_arenas_end},
    {0},
};
