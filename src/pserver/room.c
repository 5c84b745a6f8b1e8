/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - a queue of calls for each owner, and the wait for room. */
#include "pserver/room.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* An owner that lacks room tries so often. */
#define EACH (200 * FL_MS)

typedef struct read_call {
    void (*fn)(void *arg);
    void *arg;
} read_call;

typedef struct seat {
    FL_VEC(read_call) reads; /* in order */
    char why[1024];          /* why the owner waits; "": it does not */
} seat;

struct fl_room {
    fl_room_opts opts;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t news;  /* of an owner that waits: a call came, or the end */
    bool ending;
    seat *owner;
};

fl_room *fl_room_new(const fl_room_opts *opts)
{
    pthread_condattr_t monotonic;
    fl_room *r = fl_mem_alloc(sizeof *r);
    r->opts = *opts;
    r->owner = fl_mem_alloc((size_t)opts->owners * sizeof *r->owner);
    pthread_mutex_init(&r->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&r->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return r;
}

void fl_room_free(fl_room *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->opts.owners; i++)
        fl_vec_fini(&r->owner[i].reads);
    fl_mem_free(r->owner);
    pthread_cond_destroy(&r->news);
    pthread_mutex_destroy(&r->lock);
    fl_mem_free(r);
}

void fl_room_end(fl_room *r)
{
    pthread_mutex_lock(&r->lock);
    r->ending = true;
    pthread_cond_broadcast(&r->news);
    pthread_mutex_unlock(&r->lock);
}

void fl_room_add(fl_room *r, int owner, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&r->lock);
    fl_push(&r->owner[owner].reads, ((read_call){fn, arg}));
    if (r->owner[owner].why[0])
        pthread_cond_broadcast(&r->news);
    pthread_mutex_unlock(&r->lock);
}

bool fl_room_read(fl_room *r, int owner)
{
    seat *s = &r->owner[owner];
    read_call next = {0};
    pthread_mutex_lock(&r->lock);
    if (s->reads.n) {
        next = s->reads.at[0];
        fl_remove(&s->reads, 0);
    }
    pthread_mutex_unlock(&r->lock);
    if (next.fn)
        next.fn(next.arg);
    return next.fn != NULL;
}

/* Run calls for a while. False: nobody shall wait any more. */
static bool pause_owner(fl_room *r, int owner)
{
    const int64_t at = fl_clock_now(fl_clock_real()) + EACH;
    const struct timespec until = {.tv_sec = (time_t)(at / FL_SEC),
                                   .tv_nsec = (long)(at % FL_SEC)};
    bool over = false, ending = false;
    while (!over && !ending) {
        while (fl_room_read(r, owner))
            ;
        pthread_mutex_lock(&r->lock);
        ending = r->ending;
        if (!ending && !r->owner[owner].reads.n)
            over = pthread_cond_timedwait(&r->news, &r->lock, &until) != 0;
        pthread_mutex_unlock(&r->lock);
    }
    return !ending;
}

static void set_why(fl_room *r, int owner, const char *why)
{
    seat *s = &r->owner[owner];
    pthread_mutex_lock(&r->lock);
    snprintf(s->why, sizeof s->why, "%s", why);
    pthread_mutex_unlock(&r->lock);
}

/* The error at hand is a lack of room. False: it stays one. */
static bool wait_for_room(fl_room *r, int owner)
{
    const fl_sentence why = fl_sentence_keep();
    bool on = r->opts.full && r->opts.full(r->opts.self, owner, why.text);
    if (on) {
        set_why(r, owner, why.text);
        on = pause_owner(r, owner);
    }
    fl_sentence_restore(&why);
    return on;
}

fl_err fl_room_take(fl_room *r, int owner, fl_err (*fn)(void *of, bool *lacks),
                    void *of)
{
    bool lacks = false;
    fl_err err = fn(of, &lacks);
    if (!lacks)
        return err;
    while (lacks && wait_for_room(r, owner)) {
        lacks = false;
        err = fn(of, &lacks);
    }
    set_why(r, owner, "");
    return err;
}

fl_err fl_room_check(fl_room *r)
{
    fl_sentence why = {""};
    pthread_mutex_lock(&r->lock);
    for (int i = 0; i < r->opts.owners && !why.text[0]; i++)
        snprintf(why.text, sizeof why.text, "%s", r->owner[i].why);
    pthread_mutex_unlock(&r->lock);
    return why.text[0] ? fl_fail(FL_ENOMEM, "%s", why.text) : FL_OK;
}
