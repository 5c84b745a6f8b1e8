/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - names as Fluid makes them: fc_0, fc_1, fc_0.w_0. */
#include "build/net.h"

#include "base/str.h"

struct fl_names {
    const char *prefix;
    fl_arena *arena; /* memory of keys and counts */
    fl_map count;    /* key -> int64_t, the next number */
};

fl_names *fl_names_new(const char *prefix)
{
    fl_names *n = fl_mem_alloc(sizeof *n);
    n->arena = fl_arena_new();
    n->prefix = fl_arena_strdup(n->arena, prefix ? prefix : "");
    return n;
}

void fl_names_free(fl_names *n)
{
    if (!n)
        return;
    fl_map_fini(&n->count);
    fl_arena_free(n->arena);
    fl_mem_free(n);
}

static long long next_number(fl_names *n, const char *key)
{
    int64_t *count = fl_map_get(&n->count, key);
    if (!count) {
        count = fl_arena_alloc(n->arena, sizeof *count);
        fl_map_put(&n->count, fl_arena_strdup(n->arena, key), count);
    }
    return (*count)++;
}

const char *fl_names_generate(fl_names *n, fl_arena *a, const char *key)
{
    return fl_arena_printf(a, "%s%s_%lld", n->prefix, key, next_number(n, key));
}

char *fl_names_give(fl_names *n, const char *key)
{
    fl_str s = {0};
    fl_str_printf(&s, "%s%s_%lld", n->prefix, key, next_number(n, key));
    return fl_str_take(&s);
}
