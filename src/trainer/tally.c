/* tally.c - counts of this trainer, with those of the others.
 *
 * Beside the machine: whatever comes of it, the trainer trains on. So nothing
 * is asked twice, and who does not answer in time is not waited for; but while
 * a call is under way, which may take longer than that, none is made. */
#include "trainer/trainer_in.h"

#include "wire/codec.h"

#include <stdio.h>

/* --- the call --- */

static fl_err read_answer(const fl_trainer *t, const fl_rpc_reply *reply,
                          fl_arena *arena, fl_msg *m)
{
    const char *from = t->line[0].address;
    if (reply->end == FL_RPC_LATE) /* before the caller's own clock said so */
        return fl_fail(FL_ETIMEOUT, "%s has not answered a tally in time",
                       from);
    if (reply->end != FL_RPC_OK)
        return fl_fail(FL_EIO, "%s: %s", from, reply->text);
    FL_TRY(fl_msg_decode(from, reply->packet, arena, m));
    if (m->kind != FL_MSG_VALUES)
        return fl_fail(FL_EPROTO, "%s answers %s: %s", from,
                       fl_msg_name(m->kind), m->text ? m->text : "");
    return FL_OK;
}

static void on_sum(void *self, uint64_t id, const fl_rpc_reply *reply)
{
    fl_trainer *t = ((fl_connection *)self)->trainer;
    fl_arena *arena = fl_arena_new();
    fl_msg m = {0};
    const fl_err err = read_answer(t, reply, arena, &m);
    fl_parcel *came = fl_parcel_of(m.blob);
    fl_link_lock(t);
    fl_tallying *y = &t->tallying;
    y->under_way = false;
    y->err = err;
    snprintf(y->why, sizeof y->why, "%s", err ? fl_errmsg() : "");
    y->trainers = m.count;
    fl_parcel_unref(y->sum);
    y->sum = came ? fl_parcel_ref(came) : NULL;
    pthread_cond_broadcast(&t->moved);
    fl_link_unlock(t);
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_arena_free(arena);
}

/* The counts go as a copy: a call may outlive its caller's patience. */
static fl_err call(fl_trainer *t, const char *name, int64_t n,
                   const int64_t *counts, int64_t limit)
{
    const fl_shape shape = fl_shape_of(1, &n);
    fl_connection *first = &t->line[0];
    fl_tensor copy = {0};
    FL_TRY(fl_tensor_resize(&copy, FL_I64, &shape));
    memcpy(copy.data, counts, fl_tensor_bytes(&copy));
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, name, &copy);
    fl_tensor_fini(&copy);
    const fl_msg m = {.kind = FL_MSG_TALLY,
                      .job = t->job.id,
                      .session = t->open_session,
                      .blob = fl_parcel_blob(p)};
    t->tallying.under_way = true;
    fl_rpc_call(t->rpc, first->peer, fl_msg_method(m.kind), fl_msg_encode(&m),
                limit, (fl_rpc_done){on_sum, first, 0});
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(p);
    return FL_OK;
}

/* --- the caller --- */

static bool is_answered(const fl_trainer *t, const void *unused)
{
    return !t->tallying.under_way;
}

static fl_err take_sum(const fl_trainer *t, const char *name, int64_t n,
                       int64_t *counts, int *trainers)
{
    const fl_tallying *y = &t->tallying;
    if (y->err)
        return fl_fail(y->err, "%s", y->why);
    const fl_item *item = y->sum ? fl_parcel_find(y->sum, name) : NULL;
    if (!item || item->kind != FL_LOD_TENSOR || item->dtype != FL_I64 ||
        fl_shape_numel(&item->shape) != n || y->trainers < 1 ||
        y->trainers > t->job.trainers)
        return fl_fail(FL_EPROTO,
                       "%s has not sent the %lld counts of \"%s\" of 1 to %d "
                       "trainers",
                       t->line[0].address, (long long)n, name, t->job.trainers);
    fl_bytes_copy(item->data, 0, counts, (size_t)n * sizeof *counts);
    *trainers = (int)y->trainers;
    return FL_OK;
}

static fl_err tally(fl_trainer *t, const fl_watch *by, int64_t limit,
                    const char *name, int64_t n, int64_t *counts, int *trainers)
{
    if (!t->open.id || t->over) /* it has not joined, or nobody is there */
        return fl_fail(FL_EIO, "the coordinator %s is not connected",
                       t->line[0].address);
    if (t->tallying.under_way)
        return fl_fail(FL_ETIMEOUT, "%s has not answered the tally before",
                       t->line[0].address);
    FL_TRY(call(t, name, n, counts, limit));
    FL_TRY(fl_trainer_wait(t, is_answered, NULL, by, fl_link_now() + limit));
    return take_sum(t, name, n, counts, trainers);
}

fl_err fl_trainer_tally(fl_trainer *t, const fl_watch *by, int64_t limit,
                        const char *name, int64_t n, int64_t *counts,
                        int *trainers)
{
    if (n < 1 || n > FL_TALLY_MOST)
        return fl_fail(FL_EINVAL, "\"%s\" has %lld counts, 1 to %d are told",
                       name, (long long)n, FL_TALLY_MOST);
    FL_TRY(fl_trainer_check_process(t));
    fl_link_lock(t);
    return fl_trainer_exit(t, tally(t, by, limit, name, n, counts, trainers));
}
