/* key.c - compared at every run: numbers first, then names. */
#include "exec/key.h"

#include <string.h>

fl_key fl_key_of(const fl_order *o, fl_arena *a)
{
    fl_key k = {.program_uid = o->program->uid,
                .program_version = o->program->version,
                .scope_uid = fl_scope_uid(o->scope),
                .scope_changes = fl_scope_changes(o->scope),
                .n_feeds = o->n_feeds,
                .n_fetches = o->n_fetches};
    k.feeds = fl_arena_alloc(a, (size_t)k.n_feeds * sizeof *k.feeds);
    k.fetches = fl_arena_alloc(a, (size_t)k.n_fetches * sizeof *k.fetches);
    for (int i = 0; i < k.n_feeds; i++)
        k.feeds[i] = fl_arena_strdup(a, o->feeds[i].name);
    for (int i = 0; i < k.n_fetches; i++)
        k.fetches[i] = fl_arena_strdup(a, o->fetches[i].name);
    return k;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || !strcmp(a, b);
}

bool fl_key_fits(const fl_key *k, const fl_order *o)
{
    if (k->program_uid != o->program->uid ||
        k->program_version != o->program->version ||
        k->scope_uid != fl_scope_uid(o->scope) ||
        k->scope_changes != fl_scope_changes(o->scope) ||
        k->n_feeds != o->n_feeds || k->n_fetches != o->n_fetches)
        return false;
    for (int i = 0; i < k->n_feeds; i++)
        if (!same_name(k->feeds[i], o->feeds[i].name))
            return false;
    for (int i = 0; i < k->n_fetches; i++)
        if (!same_name(k->fetches[i], o->fetches[i].name))
            return false;
    return true;
}

bool fl_key_stale(const fl_key *k, const fl_program *p)
{
    return k->program_uid == p->uid && k->program_version != p->version;
}
