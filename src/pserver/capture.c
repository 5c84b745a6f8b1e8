/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c - values at one moment. A tensor is divided into blocks:
 *
 *     waiting --writer takes it--> busy ----------> written
 *        '----owner copies it----> saved --writer-----^
 *
 * Easy to get wrong: an owner that waits for the writer serves it meanwhile,
 * because the writer may wait for rows of this owner. For the same reason the
 * writer may not depend on an owner that waits for something else: see
 * fl_writer_opts.serve and fl_writer_lacks_room. */
#include "pserver/capture.h"

#include "base/failpoint.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 1 << 20, /* bytes of a tensor that are written at a time */
    CHUNK = 1 << 20, /* bytes of rows that are read at a time */
};

typedef enum block_state {
    WAITING,
    BUSY,
    SAVED,
    WRITTEN
} block_state;

typedef struct block {
    block_state state;
    char *copy; /* SAVED */
} block;

typedef struct captured {
    const fl_value *value;
    int owner;
    char *name, *var;
    int64_t first;
    fl_dtype dtype;
    fl_shape shape;
    const char *data;
    size_t bytes;
    block *block;
    size_t blocks;
    bool written;
} captured;

/* Rows that changed before they were read, by id. Thread: the owner. */
typedef struct old_rows {
    int64_t *id;
    int64_t *at; /* index of the copy; -1: there was no row; -2: unused */
    int64_t size, n;
    FL_VEC(char *) copy;
    FL_VEC(int64_t) unused; /* copies that were written */
} old_rows;

typedef struct captured_table {
    const fl_table *table;
    int owner;
    char *name;
    fl_dtype dtype;
    size_t row; /* bytes of value and states */
    fl_table_cursor cursor;
    old_rows old;
    fl_tensor id, rows; /* what was read last */
    fl_err err;
    bool wanted, ready; /* under the lock */
} captured_table;

struct fl_capture {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int left;    /* owners that have not come */
    int waiting; /* owners that wait for the writer */
    bool over;
    size_t limit, copies, peak; /* bytes of copies */
    const captured *urgent;     /* that an owner waits for */
    FL_VEC(captured) value;     /* by address of the value */
    FL_VEC(captured_table) table;
};

fl_capture *fl_capture_new(int owners, size_t limit)
{
    fl_capture *c = fl_mem_alloc(sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->news, NULL);
    c->left = owners;
    c->limit = limit;
    return c;
}

static void free_old(old_rows *o)
{
    for (int64_t i = 0; i < o->copy.n; i++)
        fl_mem_free(o->copy.at[i]);
    fl_vec_fini(&o->copy);
    fl_vec_fini(&o->unused);
    fl_mem_free(o->id);
    fl_mem_free(o->at);
    *o = (old_rows){0};
}

void fl_capture_free(fl_capture *c)
{
    if (!c)
        return;
    for (int64_t i = 0; i < c->value.n; i++) {
        captured *v = &c->value.at[i];
        for (size_t k = 0; v->block && k < v->blocks; k++)
            fl_mem_free(v->block[k].copy);
        fl_mem_free(v->block);
        fl_mem_free(v->name);
        fl_mem_free(v->var);
    }
    for (int64_t i = 0; i < c->table.n; i++) {
        captured_table *t = &c->table.at[i];
        free_old(&t->old);
        fl_tensor_fini(&t->id);
        fl_tensor_fini(&t->rows);
        fl_mem_free(t->name);
    }
    fl_vec_fini(&c->value);
    fl_vec_fini(&c->table);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->lock);
    fl_mem_free(c);
}

static int by_value(const void *a, const void *b)
{
    const captured *x = a, *y = b;
    return ((uintptr_t)x->value > (uintptr_t)y->value) -
           ((uintptr_t)x->value < (uintptr_t)y->value);
}

void fl_capture_add(fl_capture *c, int owner, fl_value *v, const char *name,
                    const char *var, int64_t first)
{
    fl_push(&c->value, ((captured){.value = v,
                                   .owner = owner,
                                   .name = fl_mem_strdup(name),
                                   .var = fl_mem_strdup(var),
                                   .first = first}));
    qsort(c->value.at, (size_t)c->value.n, sizeof *c->value.at, by_value);
}

void fl_capture_add_table(fl_capture *c, int owner, const fl_table *t,
                          const char *name)
{
    fl_push(&c->table,
            ((captured_table){
                .table = t, .owner = owner, .name = fl_mem_strdup(name)}));
}

/* --- on an owner's thread: tensors --- */

static size_t block_bytes(const captured *v, size_t i)
{
    const size_t from = i * BLOCK;
    return v->bytes - from < BLOCK ? v->bytes - from : BLOCK;
}

static void look_at_value(captured *v)
{
    const fl_tensor *t = &v->value->tensor;
    v->dtype = t->dtype;
    v->shape = t->shape;
    v->data = t->data;
    v->bytes = fl_tensor_bytes(t);
    v->blocks = (v->bytes + BLOCK - 1) / BLOCK;
    v->block = fl_mem_alloc((v->blocks + 1) * sizeof *v->block);
}

static void look_at_table(captured_table *t)
{
    fl_tensor id = {0}, rows = {0};
    t->err = fl_table_scan(t->table, &(fl_table_cursor){0}, 0, &id, &rows);
    t->dtype = rows.dtype;
    t->row = (size_t)fl_table_span(t->table) * fl_dtype_size(rows.dtype);
    fl_tensor_fini(&id);
    fl_tensor_fini(&rows);
}

bool fl_capture_enter(fl_capture *c, int owner)
{
    for (int64_t i = 0; i < c->value.n; i++)
        if (c->value.at[i].owner == owner)
            look_at_value(&c->value.at[i]);
    for (int64_t i = 0; i < c->table.n; i++)
        if (c->table.at[i].owner == owner)
            look_at_table(&c->table.at[i]);
    pthread_mutex_lock(&c->lock);
    const bool last = !--c->left;
    pthread_mutex_unlock(&c->lock);
    return last;
}

/* Under the lock: count copies. */
static void count_copies(fl_capture *c, size_t bytes)
{
    c->copies += bytes;
    if (c->copies > c->peak)
        c->peak = c->copies;
}

/* Under the lock. Thread: an owner's. */
static void wait_for_writer(fl_capture *c)
{
    c->waiting++;
    pthread_cond_wait(&c->news, &c->lock);
    c->waiting--;
}

/* Under the lock: until the block may be written. */
static void claim_block(fl_capture *c, const captured *v, size_t i)
{
    block *b = &v->block[i];
    const size_t n = block_bytes(v, i);
    while (!c->over && (b->state == BUSY ||
                        (b->state == WAITING && c->copies + n > c->limit))) {
        c->urgent = v;
        wait_for_writer(c);
    }
    if (c->over || b->state != WAITING)
        return;
    b->copy = fl_mem_alloc(n);
    memcpy(b->copy, v->data + i * BLOCK, n);
    b->state = SAVED;
    count_copies(c, n);
}

void fl_capture_claim(fl_capture *c, const fl_value *v)
{
    captured *found =
        c->value.n ? bsearch(&(captured){.value = v}, c->value.at,
                             (size_t)c->value.n, sizeof *c->value.at, by_value)
                   : NULL;
    if (!found)
        return;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < found->blocks && !found->written; i++)
        claim_block(c, found, i);
    pthread_mutex_unlock(&c->lock);
}

/* --- on an owner's thread: rows --- */

static int64_t *find_old(const old_rows *o, int64_t id)
{
    uint64_t at = (uint64_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    if (!o->size)
        return NULL;
    for (;; at++) {
        const int64_t i = (int64_t)(at & (uint64_t)(o->size - 1));
        if (o->at[i] == -2 || o->id[i] == id)
            return &o->at[i];
    }
}

static void grow_old(old_rows *o)
{
    old_rows more = {.size = o->size ? o->size * 2 : 1024};
    more.id = fl_mem_alloc((size_t)more.size * sizeof *more.id);
    more.at = fl_mem_alloc((size_t)more.size * sizeof *more.at);
    for (int64_t i = 0; i < more.size; i++)
        more.at[i] = -2;
    for (int64_t i = 0; i < o->size; i++) {
        if (o->at[i] == -2)
            continue;
        int64_t *to = find_old(&more, o->id[i]);
        more.id[to - more.at] = o->id[i];
        *to = o->at[i];
    }
    fl_mem_free(o->id);
    fl_mem_free(o->at);
    o->id = more.id;
    o->at = more.at;
    o->size = more.size;
}

/* The index of memory for a copy. */
static int64_t take_copy(old_rows *o, size_t row)
{
    if (o->unused.n)
        return o->unused.at[--o->unused.n];
    fl_push(&o->copy, fl_mem_alloc(row + 1));
    return o->copy.n - 1;
}

/* Save a row as it is. The number of bytes that this takes. */
static size_t save_row(captured_table *t, int64_t id)
{
    old_rows *o = &t->old;
    if (2 * (o->n + 1) > o->size)
        grow_old(o);
    int64_t *at = find_old(o, id);
    if (*at != -2)
        return 0;
    const int64_t copy = take_copy(o, t->row);
    const bool is = fl_table_copy(t->table, id, o->copy.at[copy]);
    if (!is)
        fl_push(&o->unused, copy);
    o->id[at - o->at] = id;
    *at = is ? copy : -1;
    o->n++;
    return is ? t->row : 0;
}

static captured_table *find_table(fl_capture *c, const fl_table *t)
{
    for (int64_t i = 0; i < c->table.n; i++)
        if (c->table.at[i].table == t)
            return &c->table.at[i];
    return NULL;
}

/* Under the lock: the table of this owner that the writer waits for. */
static captured_table *find_wanted(fl_capture *c, int owner)
{
    for (int64_t i = 0; i < c->table.n; i++)
        if (c->table.at[i].owner == owner && c->table.at[i].wanted)
            return &c->table.at[i];
    return NULL;
}

/* Put old rows in place of those that were read, and leave out new ones. The
 * number of bytes of copies that are not needed any more. */
static size_t use_old(captured_table *t)
{
    old_rows *o = &t->old;
    int64_t *id = t->id.data, n = 0;
    size_t freed = 0;
    char *rows = t->rows.data;
    for (int64_t i = 0; i < t->id.shape.dim[0]; i++) {
        const int64_t *at = find_old(o, id[i]);
        if (at && *at == -1)
            continue;
        id[n] = id[i];
        if (at && *at >= 0) {
            memcpy(rows + (size_t)n * t->row, o->copy.at[*at], t->row);
            fl_push(&o->unused, *at);
            freed += t->row;
        } else if (n != i) {
            memcpy(rows + (size_t)n * t->row, rows + (size_t)i * t->row,
                   t->row);
        }
        n++;
    }
    t->id.shape.dim[0] = t->rows.shape.dim[0] = n;
    return freed;
}

/* Read the next rows, at least one that counts or all. */
static size_t read_chunk(captured_table *t)
{
    const int64_t most = CHUNK / (int64_t)(t->row + 8) + 1;
    size_t freed = 0;
    do {
        t->err = fl_table_scan(t->table, &t->cursor, most, &t->id, &t->rows);
        if (t->err)
            break;
        freed += use_old(t);
    } while (!t->id.shape.dim[0] && !t->cursor.done);
    return freed;
}

void fl_capture_serve(fl_capture *c, int owner)
{
    pthread_mutex_lock(&c->lock);
    captured_table *t = c->over ? NULL : find_wanted(c, owner);
    pthread_mutex_unlock(&c->lock);
    if (!t)
        return;
    const size_t freed = read_chunk(t);
    pthread_mutex_lock(&c->lock);
    c->copies -= freed;
    t->wanted = false;
    t->ready = true;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
}

/* Until the copies are within their limit; the writer is served meanwhile. */
static void wait_for_room(fl_capture *c, int owner)
{
    pthread_mutex_lock(&c->lock);
    while (!c->over && c->copies > c->limit) {
        if (find_wanted(c, owner)) {
            pthread_mutex_unlock(&c->lock);
            fl_capture_serve(c, owner);
            pthread_mutex_lock(&c->lock);
        } else {
            wait_for_writer(c);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

void fl_capture_rows(fl_capture *c, int owner, const fl_table *t, int64_t n,
                     const int64_t *id)
{
    captured_table *to = find_table(c, t);
    const uint64_t key = fl_table_key_of(t);
    size_t bytes = 0;
    if (!to || to->cursor.done)
        return;
    for (int64_t i = 0; i < n; i++)
        if (fl_table_order(key, id[i]) >= to->cursor.next)
            bytes += save_row(to, id[i]);
    pthread_mutex_lock(&c->lock);
    count_copies(c, bytes);
    pthread_mutex_unlock(&c->lock);
    wait_for_room(c, owner);
}

/* --- on the thread that writes --- */

static fl_err stopped(void)
{
    return fl_fail(FL_EINTR, "the snapshot was stopped");
}

static fl_err write_block(fl_capture *c, captured *v, size_t i, fl_stage *to)
{
    block *b = &v->block[i];
    const size_t n = block_bytes(v, i);
    pthread_mutex_lock(&c->lock);
    const bool over = c->over;
    if (b->state == WAITING)
        b->state = BUSY;
    pthread_mutex_unlock(&c->lock);
    fl_failpoint_hit("snapshot.block");
    const fl_err err =
        over ? stopped()
             : fl_stage_append(to, b->copy ? b->copy : v->data + i * BLOCK, n);
    pthread_mutex_lock(&c->lock);
    if (b->copy)
        c->copies -= n;
    fl_mem_free(b->copy);
    b->copy = NULL;
    b->state = WRITTEN;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
    return err;
}

static fl_err write_value(fl_capture *c, captured *v, fl_stage *to,
                          fl_snapshot_index *index)
{
    fl_snapshot_tensor t = {.name = fl_mem_strdup(v->name),
                            .var = fl_mem_strdup(v->var),
                            .first = v->first,
                            .dtype = (int)v->dtype,
                            .rank = v->shape.rank,
                            .at = to->size,
                            .bytes = (int64_t)v->bytes};
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = v->shape.dim[i];
    fl_push(&index->tensor, t);
    for (size_t i = 0; i < v->blocks; i++)
        FL_TRY(write_block(c, v, i, to));
    pthread_mutex_lock(&c->lock);
    v->written = true;
    c->urgent = c->urgent == v ? NULL : c->urgent;
    pthread_mutex_unlock(&c->lock);
    return FL_OK;
}

/* The value that an owner waits for, or the first one. */
static captured *next_value(fl_capture *c)
{
    captured *next = NULL;
    pthread_mutex_lock(&c->lock);
    for (int64_t i = 0; i < c->value.n; i++) {
        captured *v = &c->value.at[i];
        if (!v->written && (!next || v == c->urgent))
            next = v;
    }
    pthread_mutex_unlock(&c->lock);
    return next;
}

/* Wait until the owner has read rows. */
static fl_err want_rows(fl_capture *c, captured_table *t,
                        void (*poke)(void *user, int owner), void *user)
{
    pthread_mutex_lock(&c->lock);
    t->wanted = true;
    t->ready = false;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
    poke(user, t->owner);
    pthread_mutex_lock(&c->lock);
    while (!t->ready && !c->over)
        pthread_cond_wait(&c->news, &c->lock);
    const bool over = c->over;
    pthread_mutex_unlock(&c->lock);
    return over ? stopped() : t->err;
}

static fl_err write_rows(const captured_table *t, fl_stage *to)
{
    const int64_t n = t->id.shape.dim[0];
    const size_t one = sizeof(int64_t) + t->row;
    char *bytes = fl_mem_alloc((size_t)(n + 1) * one);
    for (int64_t i = 0; i < n; i++) {
        memcpy(bytes + (size_t)i * one, (const int64_t *)t->id.data + i,
               sizeof(int64_t));
        memcpy(bytes + (size_t)i * one + sizeof(int64_t),
               (const char *)t->rows.data + (size_t)i * t->row, t->row);
    }
    fl_failpoint_hit("snapshot.block");
    const fl_err err = fl_stage_append(to, bytes, (size_t)n * one);
    fl_mem_free(bytes);
    return err;
}

static fl_err write_table(fl_capture *c, captured_table *t, fl_stage *to,
                          fl_snapshot_index *index,
                          void (*poke)(void *user, int owner), void *user)
{
    fl_snapshot_table x = {.name = fl_mem_strdup(t->name),
                           .dtype = (int)t->dtype,
                           .row = (int64_t)t->row,
                           .at = to->size};
    fl_err err;
    do {
        err = want_rows(c, t, poke, user);
        if (!err)
            err = write_rows(t, to);
        x.rows += err ? 0 : t->id.shape.dim[0];
    } while (!err && t->id.shape.dim[0]);
    fl_push(&index->table, x);
    return err;
}

fl_err fl_capture_write(fl_capture *c, fl_stage *to, fl_snapshot_index *index,
                        void (*poke)(void *user, int owner), void *user)
{
    fl_err err = FL_OK;
    for (captured *v; !err && (v = next_value(c));)
        err = write_value(c, v, to, index);
    for (int64_t i = 0; i < c->table.n && !err; i++)
        err = write_table(c, &c->table.at[i], to, index, poke, user);
    pthread_mutex_lock(&c->lock);
    const bool over = c->over; /* owners may have written what was read last */
    pthread_mutex_unlock(&c->lock);
    return err ? err : over ? stopped() : FL_OK;
}

bool fl_capture_stop(fl_capture *c)
{
    pthread_mutex_lock(&c->lock);
    const bool stops = !c->over;
    c->over = true;
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->lock);
    return stops;
}

int fl_capture_waiting(fl_capture *c)
{
    pthread_mutex_lock(&c->lock);
    const int waiting = c->waiting;
    pthread_mutex_unlock(&c->lock);
    return waiting;
}

size_t fl_capture_peak(fl_capture *c)
{
    pthread_mutex_lock(&c->lock);
    const size_t peak = c->peak;
    pthread_mutex_unlock(&c->lock);
    return peak;
}
