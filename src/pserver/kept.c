/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c - a catalogue of values, and one undo log for each owner. */
#include "pserver/kept.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

typedef struct kept_value {
    fl_value *value;
    int64_t number; /* in the catalogue */
} kept_value;

struct fl_kept {
    fl_statedir *dir;
    fl_dense *dense;
    FL_VEC(kept_value) value;
    fl_guard *guard; /* one for each owner */
    int owners;
    const fl_extents *tables; /* while it recovers */
};

fl_err fl_kept_new(fl_statedir *dir, int owners, bool async, fl_kept **out)
{
    fl_kept *k = fl_mem_alloc(sizeof *k);
    fl_err err = FL_OK;
    k->dir = dir;
    k->dense = fl_dense_new();
    k->owners = owners;
    k->guard = fl_mem_alloc((size_t)owners * sizeof *k->guard);
    for (int i = 0; i < owners && !err; i++) {
        k->guard[i].dense = k->dense;
        err = fl_undo_new(dir, i, &k->guard[i].undo);
        if (!err && async)
            err = fl_windows_new(dir, i, &k->guard[i].windows);
    }
    if (err) {
        fl_kept_free(k);
        return err;
    }
    *out = k;
    return FL_OK;
}

void fl_kept_free(fl_kept *k)
{
    if (!k)
        return;
    for (int i = 0; i < k->owners; i++) {
        fl_undo_free(k->guard[i].undo);
        fl_windows_free(k->guard[i].windows);
    }
    fl_mem_free(k->guard);
    fl_dense_free(k->dense);
    fl_vec_fini(&k->value);
    fl_mem_free(k);
}

void fl_kept_add(fl_kept *k, const char *name, int owner, fl_value *v)
{
    const fl_tensor *t = &v->tensor;
    char shape[FL_SHAPE_TEXT];
    fl_str about = {0};
    fl_str_printf(&about, "%s of owner %d, %s%s", name, owner,
                  fl_dtype_word(t->dtype), fl_shape_text(&t->shape, shape));
    fl_push(&k->value, ((kept_value){v, fl_dense_add(k->dense, about.at,
                                                     fl_tensor_bytes(t))}));
    fl_str_fini(&about);
}

static void drop_mapping(void *mapping)
{
    fl_mapping_unref(mapping);
}

fl_err fl_kept_map(fl_kept *k)
{
    FL_TRY(fl_dense_map(k->dense, k->dir));
    for (int64_t i = 0; i < k->value.n; i++) {
        fl_tensor *t = &k->value.at[i].value->tensor;
        const size_t bytes = fl_tensor_bytes(t);
        void *at = fl_dense_at(k->dense, k->value.at[i].number);
        if (!fl_statedir_found(k->dir))
            memcpy(at, t->data, bytes);
        fl_buf *kept;
        FL_TRY(fl_buf_lend(at, bytes, drop_mapping, fl_dense_mapping(k->dense),
                           &kept));
        fl_mapping_ref(fl_dense_mapping(k->dense));
        fl_buf_unref(t->buf);
        t->buf = kept;
        t->data = at;
    }
    return FL_OK;
}

bool fl_kept_has(const fl_kept *k, const fl_value *v)
{
    for (int64_t i = 0; i < k->value.n; i++)
        if (k->value.at[i].value == v)
            return true;
    return false;
}

const fl_guard *fl_kept_guard(const fl_kept *k, int owner)
{
    return &k->guard[owner];
}

static void *find_place(void *self, uint32_t space, uint64_t offset,
                        size_t bytes)
{
    const fl_kept *k = self;
    if (!space)
        return fl_dense_find(k->dense, offset, bytes);
    return fl_extents_place(k->tables, space, offset, bytes);
}

fl_err fl_kept_recover(fl_kept *k, const fl_extents *tables)
{
    k->tables = tables;
    for (int i = 0; i < k->owners; i++) {
        const fl_guard *g = &k->guard[i];
        fl_undo_task task;
        FL_TRY(fl_undo_recover(g->undo, &(fl_spaces){k, find_place}));
        if (g->windows && fl_undo_interrupted(g->undo, &task) &&
            fl_windows_seen(g->windows, task.session, task.seq))
            fl_undo_finish(g->undo);
    }
    return FL_OK;
}

fl_err fl_guard_add(const fl_guard *g, const void *at, size_t bytes)
{
    return fl_undo_add(g->undo, 0, fl_dense_offset(g->dense, at), at, bytes);
}

fl_err fl_guard_add_value(const fl_guard *g, const fl_value *v)
{
    return fl_guard_add(g, v->tensor.data, fl_tensor_bytes(&v->tensor));
}
