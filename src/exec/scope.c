/* SPDX-License-Identifier: Apache-2.0 */
/* scope.c - a map from names to values, with a parent. */
#include "exec/scope.h"

#include "base/atomic.h"
#include "base/map.h"
#include "base/str.h"

#include <pthread.h>

struct fl_scope {
    fl_scope *parent;
    uint64_t uid;
    pthread_mutex_t lock;
    fl_map values; /* key owned -> fl_value, owned */
    FL_VEC(fl_scope *) kids;
    uint64_t changes;
};

static fl_scope *make_scope(fl_scope *parent)
{
    static fl_count next_uid;
    fl_scope *s = fl_mem_alloc(sizeof *s);
    s->parent = parent;
    s->uid = (uint64_t)fl_count_next(&next_uid);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

fl_scope *fl_scope_new(void)
{
    return make_scope(NULL);
}

fl_scope *fl_scope_child(fl_scope *parent)
{
    fl_scope *s = make_scope(parent);
    pthread_mutex_lock(&parent->lock);
    fl_push(&parent->kids, s);
    pthread_mutex_unlock(&parent->lock);
    return s;
}

fl_scope *fl_scope_private(fl_scope *parent)
{
    return make_scope(parent);
}

static void free_value(const char *key, fl_value *v)
{
    fl_value_fini(v);
    fl_mem_free(v);
    fl_mem_free((char *)key);
}

void fl_scope_free(fl_scope *s)
{
    if (!s)
        return;
    fl_scope_drop_kids(s);
    for (fl_entry *e = NULL; (e = fl_map_next(&s->values, e));)
        free_value(e->key, e->value);
    fl_map_fini(&s->values);
    fl_vec_fini(&s->kids);
    pthread_mutex_destroy(&s->lock);
    fl_mem_free(s);
}

void fl_scope_drop_kids(fl_scope *s)
{
    for (int64_t i = 0; i < s->kids.n; i++)
        fl_scope_free(s->kids.at[i]);
    s->kids.n = 0;
}

fl_value *fl_scope_var(fl_scope *s, const char *name)
{
    pthread_mutex_lock(&s->lock);
    fl_value *v = fl_map_get(&s->values, name);
    if (!v) {
        v = fl_mem_alloc(sizeof *v);
        fl_map_put(&s->values, fl_mem_strdup(name), v);
        s->changes += s->parent != NULL; /* it may hide a name of a parent */
    }
    pthread_mutex_unlock(&s->lock);
    return v;
}

fl_value *fl_scope_find(fl_scope *s, const char *name)
{
    for (; s; s = s->parent) {
        pthread_mutex_lock(&s->lock);
        fl_value *v = fl_map_get(&s->values, name);
        pthread_mutex_unlock(&s->lock);
        if (v)
            return v;
    }
    return NULL;
}

bool fl_scope_erase(fl_scope *s, const char *name)
{
    const char *key = NULL;
    fl_value *v = NULL;
    pthread_mutex_lock(&s->lock);
    for (fl_entry *e = NULL; !v && (e = fl_map_next(&s->values, e));)
        if (!strcmp(e->key, name)) {
            key = e->key;
            v = e->value;
        }
    if (v) {
        fl_map_remove(&s->values, name);
        s->changes++;
    }
    pthread_mutex_unlock(&s->lock);
    if (v)
        free_value(key, v);
    return v;
}

fl_scope *fl_scope_root(fl_scope *s)
{
    while (s->parent)
        s = s->parent;
    return s;
}

void fl_scope_each(fl_scope *s,
                   void (*fn)(void *self, const char *name, fl_value *v),
                   void *self)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&s->values, e));)
        fn(self, e->key, e->value);
}

uint64_t fl_scope_uid(const fl_scope *s)
{
    return s->uid;
}

uint64_t fl_scope_changes(fl_scope *s)
{
    uint64_t sum = 0;
    for (; s; s = s->parent) {
        pthread_mutex_lock(&s->lock);
        sum += s->changes;
        pthread_mutex_unlock(&s->lock);
    }
    return sum;
}

/* --- files that tables are loaded from --- */

static char *note_name(const char *name)
{
    fl_str s = {0};
    fl_str_printf(&s, "%s@FILE", name);
    return fl_str_take(&s);
}

fl_err fl_scope_set_file(fl_scope *s, const char *name, const char *path)
{
    const fl_shape shape = {1, {(int64_t)strlen(path) + 1}};
    const fl_tensor text = fl_tensor_view(FL_U8, &shape, path);
    char *own = note_name(name);
    fl_value *v = fl_scope_var(s, own);
    fl_mem_free(own);
    v->kind = FL_RAW;
    return fl_tensor_copy(&v->tensor, &text);
}

const char *fl_scope_file(fl_scope *s, const char *name)
{
    char *own = note_name(name);
    const fl_value *v = fl_scope_find(s, own);
    fl_mem_free(own);
    return v ? v->tensor.data : NULL;
}
