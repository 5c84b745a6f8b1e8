/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c - a catalogue of values, and one undo log for each owner. */
#include "pserver/kept.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

typedef struct kept_value {
    fl_value *value;
    int64_t number; /* in the catalogue */
    fl_buf *other;  /* the slot that does not count; NULL: it was never used */
} kept_value;

struct fl_kept {
    fl_statedir *dir;
    fl_dense *dense;
    FL_VEC(kept_value) value;
    fl_guard *guard; /* one for each owner */
    int owners;
    const fl_extents *tables; /* while it recovers */
    FL_VEC(fl_id) earlier;    /* sessions of earlier processes */
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
    for (int64_t i = 0; i < k->value.n; i++)
        fl_buf_unref(k->value.at[i].other);
    fl_dense_free(k->dense);
    fl_vec_fini(&k->value);
    fl_vec_fini(&k->earlier);
    fl_mem_free(k);
}

void fl_kept_add(fl_kept *k, const char *name, int owner, fl_value *v)
{
    const fl_tensor *t = &v->tensor;
    char shape[FL_SHAPE_TEXT];
    fl_str about = {0};
    fl_str_printf(&about, "%s of owner %d, %s%s", name, owner,
                  fl_dtype_word(t->dtype), fl_shape_text(&t->shape, shape));
    const int64_t number = fl_dense_add(k->dense, about.at, fl_tensor_bytes(t));
    fl_push(&k->value, ((kept_value){v, number, NULL}));
    fl_str_fini(&about);
}

static void drop_mapping(void *mapping)
{
    fl_mapping_unref(mapping);
}

/* Memory of the state as a counted buffer. */
static fl_err lend_slot(const fl_kept *k, void *at, size_t bytes, fl_buf **out)
{
    fl_mapping *m = fl_dense_mapping(k->dense);
    FL_TRY(fl_buf_lend(at, bytes, drop_mapping, m, out));
    fl_mapping_ref(m);
    return FL_OK;
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
        FL_TRY(lend_slot(k, at, bytes, &kept));
        fl_buf_unref(t->buf);
        t->buf = kept;
        t->data = at;
    }
    return FL_OK;
}

static kept_value *find_value(const fl_kept *k, const fl_value *v)
{
    for (int64_t i = 0; i < k->value.n; i++)
        if (k->value.at[i].value == v)
            return &k->value.at[i];
    return NULL;
}

bool fl_kept_has(const fl_kept *k, const fl_value *v)
{
    return find_value(k, v) != NULL;
}

bool fl_kept_may_share(fl_kept *k, const fl_value *v)
{
    kept_value *x = find_value(k, v);
    void *at;
    if (!x || (x->other && fl_buf_shared(x->other)))
        return false;
    return x->other ||
           (!fl_dense_other(k->dense, x->number, &at) &&
            !lend_slot(k, at, fl_tensor_bytes(&v->tensor), &x->other));
}

fl_err fl_kept_claim(fl_kept *k, fl_value *v)
{
    fl_tensor *t = &v->tensor;
    kept_value *x = find_value(k, v);
    if (!x || !x->other)
        return fl_fail(FL_EINVAL, "a value of the state is shared, and has no "
                                  "other slot");
    fl_buf *read = t->buf;
    t->data = fl_dense_flip(k->dense, x->number);
    t->buf = x->other;
    x->other = read;
    return FL_OK;
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

/* --- asynchronous pushes --- */

static bool is_marked_by_all(const fl_kept *k, const fl_seat *of, int64_t seq)
{
    bool all = true;
    for (int i = 0; i < k->owners && all; i++)
        all = fl_windows_seen(k->guard[i].windows, of->session, seq);
    return all;
}

/* The pushes of a session that all owners have marked. An owner is at most a
 * window behind another, because no push is acknowledged before all have it. */
static fl_window common_window(const fl_kept *k, const fl_seat *of)
{
    fl_window w = {.base = of->base > FL_WINDOW ? of->base - FL_WINDOW : 0};
    while (is_marked_by_all(k, of, w.base + 1))
        w.base++;
    for (int i = 0; i < FL_WINDOW; i++)
        if (is_marked_by_all(k, of, w.base + 1 + i))
            w.ahead |= UINT64_C(1) << i;
    return w;
}

/* Whether an owner has applied a push before the one that it was at. */
static bool came_earlier(const fl_guard *at, const fl_undo_task *push)
{
    return fl_windows_seen(at->windows, push->session, push->seq);
}

/* The pushes that owners have applied in part, in the order in which they came.
 * Returns their number. */
static int list_interrupted(const fl_kept *k, fl_undo_task *half)
{
    int n = 0;
    for (int i = 0; i < k->owners; i++) {
        const fl_guard *g = &k->guard[i];
        fl_undo_task task;
        int at = n;
        bool known = false;
        if (!fl_undo_interrupted(g->undo, &task))
            continue;
        for (int j = 0; j < n; j++)
            known |=
                half[j].seq == task.seq &&
                !memcmp(half[j].session, task.session, sizeof task.session);
        while (!known && at > 0 && !came_earlier(g, &half[at - 1]))
            at--;
        if (known)
            continue;
        memmove(&half[at + 1], &half[at], (size_t)(n++ - at) * sizeof *half);
        half[at] = task;
    }
    return n;
}

/* Report the pushes that this owner has marked, and another one has not. */
static void report_half(const fl_kept *k, int owner, fl_server *server)
{
    const fl_windows *own = k->guard[owner].windows;
    fl_seat seat;
    for (int64_t i = 0; fl_windows_next(own, &i, &seat);) {
        const fl_id session = {seat.session[0], seat.session[1]};
        int64_t seq = seat.base > FL_WINDOW ? seat.base - FL_WINDOW : 0;
        while (++seq <= seat.base + FL_WINDOW)
            if (fl_windows_seen(own, seat.session, seq) &&
                !is_marked_by_all(k, &seat, seq))
                fl_server_half_applied(server, session, seq);
    }
}

void fl_kept_resume(fl_kept *k, fl_server *server)
{
    fl_undo_task *half = fl_mem_alloc((size_t)k->owners * sizeof *half);
    fl_seat seat;
    for (int64_t i = 0; fl_windows_next(k->guard[0].windows, &i, &seat);) {
        const fl_id session = {seat.session[0], seat.session[1]};
        fl_push(&k->earlier, session);
        fl_server_rewindow(server, session, (int)seat.rank,
                           common_window(k, &seat), seat.step, seat.first);
    }
    for (int i = 0; i < k->owners; i++)
        report_half(k, i, server);
    const int n = list_interrupted(k, half);
    for (int i = 0; i < n; i++) {
        const fl_id session = {half[i].session[0], half[i].session[1]};
        fl_push(&k->earlier, session);
        fl_server_interrupted(server, session, (int)half[i].rank, half[i].seq);
    }
    fl_mem_free(half);
}

bool fl_kept_is_earlier(const fl_kept *k, fl_id session)
{
    bool is = false;
    for (int64_t i = 0; i < k->earlier.n && !is; i++)
        is = fl_id_same(k->earlier.at[i], session);
    return is;
}

/* --- the undo log --- */

fl_err fl_guard_add(const fl_guard *g, const void *at, size_t bytes)
{
    return fl_undo_add(g->undo, 0, fl_dense_offset(g->dense, at), at, bytes);
}

fl_err fl_guard_add_value(const fl_guard *g, const fl_value *v)
{
    return fl_guard_add(g, v->tensor.data, fl_tensor_bytes(&v->tensor));
}
