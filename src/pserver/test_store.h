/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.h - the store of server 0 of a transpiled network. Tests only. */
#ifndef FL_PSERVER_TEST_STORE_H
#define FL_PSERVER_TEST_STORE_H

#include "base/test.h"
#include "exec/exe.h"
#include "pserver/store.h"
#include "transpile/test_transpile.h"
#include "wire/parcel.h"

#include <pthread.h>
#include <stdio.h>

typedef struct shop {
    scene s;
    fl_entropy entropy;
    fl_exec_env env;
    fl_exe *exe;
    fl_scope *scope;
    fl_pstore *store;
    const fl_store *face;
    size_t max_answer; /* for the store */
    pthread_mutex_t lock;
    pthread_cond_t news;
    int applied;                  /* rounds that were applied */
    char why[512];                /* error of the last round; "": none */
    uint64_t allocated, prepared; /* by the thread that applied it, in all */
    int answers;
    fl_msg_kind kind; /* of the last answer */
    int code;
    char text[512];
    fl_parcel *values;
    fl_recovery *recovery;                     /* option of the store */
    int64_t table_bytes;                       /* option of the store */
    bool (*full)(void *self, const char *why); /* option of the store */
    const char *snapshots;                     /* option of the store */
    int written;   /* parts of snapshots that were written */
    bool may_fail; /* parts of snapshots may fail, and */
    int failed;    /* so many have */
} shop;

static inline void shop_applied(void *self, const char *why)
{
    shop *p = self;
    pthread_mutex_lock(&p->lock);
    p->applied++;
    p->allocated = fl_mem_count();
    p->prepared = fl_frame_prepared();
    snprintf(p->why, sizeof p->why, "%s", why ? why : "");
    pthread_cond_signal(&p->news);
    pthread_mutex_unlock(&p->lock);
}

static inline void shop_answer(void *self, fl_peer to, const fl_msg *m)
{
    shop *p = self;
    pthread_mutex_lock(&p->lock);
    p->answers++;
    p->kind = m->kind;
    p->code = m->code;
    snprintf(p->text, sizeof p->text, "%s", m->text ? m->text : "");
    fl_parcel_unref(p->values);
    p->values = NULL;
    if (fl_parcel_of(m->blob))
        p->values = fl_parcel_ref(fl_parcel_of(m->blob));
    pthread_cond_signal(&p->news);
    pthread_mutex_unlock(&p->lock);
}

static inline void shop_written(void *self, int64_t number, const char *why)
{
    shop *p = self;
    CHECK(!why || p->may_fail);
    pthread_mutex_lock(&p->lock);
    p->written += !why;
    p->failed += why != NULL;
    pthread_cond_signal(&p->news);
    pthread_mutex_unlock(&p->lock);
}

static inline void shop_wait(shop *p, const int *count, int until)
{
    pthread_mutex_lock(&p->lock);
    while (*count < until)
        pthread_cond_wait(&p->news, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

/* --- its life --- */

/* Transpile the network that was built since scene_begin, and start the store
 * of server 0. */
static inline void shop_cut(shop *p, const fl_transpile_opts *opts)
{
    scene_cut(&p->s, opts);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->news, NULL);
    p->entropy = fl_entropy_fake(1);
    p->env = (fl_exec_env){.registry = fl_check_registry(),
                           .disk = fl_disk_real(),
                           .entropy = &p->entropy,
                           .no_fuse = true};
    p->exe = fl_exe_make(&p->env);
    p->scope = fl_scope_new();
    CHECK_OK(fl_exe_run(p->exe, p->s.cut->server_startup[0], p->scope, 0, NULL,
                        0, NULL));
}

static inline fl_err shop_try(shop *p, int owners, bool allow_nan)
{
    const fl_program *program = p->s.cut->server[0];
    FL_TRY(fl_pstore_new(
        &(fl_pstore_opts){.env = &p->env,
                          .program = program,
                          .op = fl_program_block(program, 0)->ops.at[0],
                          .scope = p->scope,
                          .owners = owners,
                          .allow_nan = allow_nan,
                          .max_answer = p->max_answer,
                          .recovery = p->recovery,
                          .table_bytes = p->table_bytes,
                          .self = p,
                          .applied = shop_applied,
                          .full = p->full,
                          .snapshots = p->snapshots,
                          .written = shop_written,
                          .answer = shop_answer},
        &p->store));
    p->face = fl_pstore_ops(p->store);
    return FL_OK;
}

static inline void shop_open(shop *p, const fl_transpile_opts *opts)
{
    shop_cut(p, opts);
    CHECK_OK(shop_try(p, 1, false));
}

static inline void shop_close(shop *p)
{
    fl_pstore_free(p->store);
    fl_parcel_unref(p->values);
    fl_exe_free(p->exe);
    fl_scope_free(p->scope);
    scene_end(&p->s);
    pthread_cond_destroy(&p->news);
    pthread_mutex_destroy(&p->lock);
}

/* ids -> embedding [10, 2] -> mean. The embedding is distributed or only
 * sparse.
 */
static inline void shop_begin_rows(shop *p, const char *optimizer,
                                   const fl_arg *args, bool distributed)
{
    *p = (shop){0};
    scene_begin(&p->s);
    const fl_init start = {.kind = "uniform", .a = -1, .b = 1, .seed = 3};
    const fl_param_attr attr = {.name = "emb", .init = &start};
    fl_var *ids = test_data(p->s.net, "ids", FL_I64, 1, (int64_t[]){1});
    fl_var *e = TEST_LAYER(
        p->s.net, "embedding", {"input", .var = ids},
        {"size", .n = 2, .ints = (int64_t[]){10, 2}}, {"is_sparse", .b = true},
        {"is_distributed", .b = distributed}, {"param_attr", .attr = &attr});
    p->s.loss = TEST_LAYER(p->s.net, "mean", {"x", .var = e});
    scene_minimize(&p->s, optimizer, args);
}

/* --- values of the scope --- */

static inline void shop_set(shop *p, const char *name, int64_t n,
                            const float *x)
{
    fl_value *v = fl_scope_find(p->scope, name);
    CHECK(v != NULL);
    CHECK_INT(fl_tensor_numel(&v->tensor), n);
    memcpy(v->tensor.data, x, (size_t)n * sizeof *x);
}

static inline const float *shop_get(shop *p, const char *name)
{
    fl_value *v = fl_scope_find(p->scope, name);
    CHECK(v != NULL && v->kind == FL_LOD_TENSOR && v->tensor.data);
    return v->tensor.data;
}

/* --- pushes and pulls --- */

/* A parcel with one gradient of shape [n] or [n, width]. */
static inline fl_parcel *shop_grad(const char *name, int64_t n, int64_t width,
                                   const float *x)
{
    const fl_shape s = {width ? 2 : 1, {n, width}};
    const fl_tensor t = fl_tensor_view(FL_F32, &s, x);
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, name, &t);
    return p;
}

static inline fl_parcel *shop_rows(const char *name, int64_t height, int64_t n,
                                   int64_t width, const int64_t *row,
                                   const float *x)
{
    const fl_shape list = {1, {n}}, s = {2, {n, width}};
    const fl_rows r = {height, n, fl_tensor_view(FL_I64, &list, row),
                       fl_tensor_view(FL_F32, &s, x)};
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add_rows(p, name, &r);
    return p;
}

/* The result of fl_store.check for a push. Own: takes the parcel. */
static inline fl_err shop_check(shop *p, fl_parcel *parcel)
{
    fl_parcel_scan(parcel);
    const fl_blob b = fl_parcel_blob(parcel);
    const fl_staged by = {1, {1, 1}, 1, &b, true};
    const fl_err err = p->face->check(p->face->self, &by);
    fl_keeper_parcels.drop(NULL, b);
    fl_parcel_unref(parcel);
    return err;
}

/* Apply a round of n participants with one push each (NULL: an empty push), and
 * wait. Own: takes the parcels. */
static inline void shop_round(shop *p, int n, fl_parcel *const *parcel)
{
    fl_staged by[8];
    fl_blob blob[8];
    for (int i = 0; i < n; i++) {
        blob[i] = parcel[i] ? fl_parcel_blob(parcel[i]) : (fl_blob){0};
        by[i] = (fl_staged){i, {1, (uint64_t)i}, 1, &blob[i], true};
        CHECK_OK(p->face->check(p->face->self, &by[i]));
    }
    const int until = p->applied + 1;
    p->face->apply(p->face->self, until - 1, by, n);
    shop_wait(p, &p->applied, until);
    for (int i = 0; i < n; i++) {
        fl_keeper_parcels.drop(NULL, blob[i]);
        fl_parcel_unref(parcel[i]);
    }
}

#define SHOP_ROUND(p, ...)                                                     \
    shop_round(p, sizeof((fl_parcel *[]){__VA_ARGS__}) / sizeof(fl_parcel *),  \
               (fl_parcel *[]){__VA_ARGS__})

/* Pull, and wait for the answer. Own: takes the parcel. */
static inline void shop_ask(shop *p, fl_parcel *want)
{
    const int until = p->answers + 1;
    const fl_blob b = fl_parcel_blob(want);
    p->face->read(p->face->self, b, (fl_peer){FL_PEER_CALL, 0, 1},
                  &(fl_msg){.kind = FL_MSG_VALUES, .round = 7});
    fl_keeper_parcels.drop(NULL, b);
    fl_parcel_unref(want);
    shop_wait(p, &p->answers, until);
}

static inline void shop_pull(shop *p, const char *name, int64_t n,
                             const int64_t *rows)
{
    fl_parcel *want = fl_parcel_new();
    if (name)
        fl_parcel_want(want, name, n, rows);
    shop_ask(p, want);
}

/* Element i of the only value in the answer. */
static inline float shop_value(const shop *p, int64_t i)
{
    float x;
    CHECK(p->values != NULL && p->values->n == 1);
    fl_bytes_copy(p->values->item[0].data, (size_t)i * sizeof x, &x, sizeof x);
    return x;
}

#endif
