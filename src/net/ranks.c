/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - who is connected, who waits for whom, who has failed, and what to
 * say of it. */
#include "net/ranks.h"

#include "base/clock.h"
#include "base/vec.h"
#include "net/address.h"
#include "net/plant.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    REASON = FL_GREETING_REASON,
    CALL = 300, /* bytes of a call and what it is for, as text */
    HOPS = 3,   /* ranks of a way that are named, besides its end */
    WAY = 500,  /* bytes of them, as text */
};

#define LOSS_TIME (2 * FL_SEC) /* for the reason of a connection's end */

typedef enum note_kind {
    NOTE_WAITS = 1, /* the sender waits for `rank`; -1: no more. Its call, an
                     * fl_call_head, follows */
    NOTE_ABORT,     /* `rank` has failed, text tells why */
    NOTE_FAREWELL,  /* the sender needs nobody any more */
} note_kind;

/* A message of a control connection; `size` bytes follow. */
typedef struct note {
    uint32_t kind;
    int32_t rank;
    uint32_t size;
    uint32_t unused;
} note;

typedef struct other {
    bool connected[FL_MESH_CHANNELS];
    bool left;         /* it said farewell */
    int waits_for;     /* the rank it said it waits for; -1: none */
    fl_call_head call; /* in which it waits; number 0: it has not said */
    unsigned char process[FL_SHARE_NAME];
    char address[FL_ADDRESS_TEXT];           /* it came from; "": it has not */
    unsigned char in[sizeof(note) + REASON]; /* a note that is not complete */
    size_t in_size;
} other;

/* A wait for one rank, from the last progress on. */
typedef struct wait {
    int rank;
    int64_t since, limit, next_late; /* ns */
    const char *what;                /* "to connect"; NULL: the call at hand */
    bool told;                       /* the others know of it */
    bool lost; /* its data connection has ended: the wait is for the reason */
} wait;

struct fl_ranks {
    fl_ranks_opts opts;
    other *others; /* [world]; the own one is not connected */
    fl_call_head call;
    fl_mesh_subject about;
    wait wait;
    char reason[REASON];         /* why the last attempt of the join failed */
    FL_VEC(unsigned char) notes; /* not taken yet */
    bool notes_taken;            /* they go when the next one comes */
    char late[REASON + 400];     /* about the wait */
    bool late_is_new;            /* it was not taken yet */
    fl_err failed;
    fl_sentence sentence; /* of failed */
};

static const char *endpoint_of(const fl_ranks *r, int rank)
{
    return r->opts.endpoints[rank];
}

/* Bytes from a peer become text that can be shown. */
static void clean_text(char *text, size_t size)
{
    text[size - 1] = 0;
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

/* "in all-reduce sum of 10 f32 (call 3, for "fc.b@GRAD" and 2 others, after 7
 * steps)" */
static void describe_call(const fl_ranks *r, char out[CALL])
{
    const fl_mesh_subject *a = &r->about;
    char var[120] = "", others[40] = "", steps[40] = "";
    if (a->var)
        snprintf(var, sizeof var, ", for \"%.80s\"", a->var);
    if (a->var && a->others)
        snprintf(others, sizeof others, " and %d other%s", a->others,
                 a->others == 1 ? "" : "s");
    if (a->steps)
        snprintf(steps, sizeof steps, ", after %lld step%s",
                 (long long)a->steps, a->steps == 1 ? "" : "s");
    if (r->call.number)
        snprintf(out, CALL, "in %s (call %llu%s%s%s)", r->call.what,
                 (unsigned long long)r->call.number, var, others, steps);
    else
        snprintf(out, CALL, "while the ranks connect");
}

fl_ranks *fl_ranks_new(const fl_ranks_opts *opts)
{
    fl_ranks *r = fl_mem_alloc(sizeof *r);
    r->opts = *opts;
    r->others = fl_mem_alloc((size_t)opts->world * sizeof *r->others);
    for (int i = 0; i < opts->world; i++)
        r->others[i].waits_for = -1;
    return r;
}

void fl_ranks_free(fl_ranks *r)
{
    if (!r)
        return;
    fl_vec_fini(&r->notes);
    fl_mem_free(r->others);
    fl_mem_free(r);
}

/* --- what comes out ------------------------------------------------------- */

fl_err fl_ranks_check(const fl_ranks *r)
{
    if (r->failed)
        fl_sentence_restore(&r->sentence);
    return r->failed;
}

static void add_bytes(fl_ranks *r, const void *bytes, size_t n)
{
    const int64_t size = r->notes.n + (int64_t)n;
    fl_vec_reserve((void **)&r->notes.at, &r->notes.cap, size, 1);
    memcpy(r->notes.at + r->notes.n, bytes, n);
    r->notes.n = size;
}

static void add_note(fl_ranks *r, note_kind kind, int rank, const void *text,
                     size_t size)
{
    const note n = {.kind = kind, .rank = rank, .size = (uint32_t)size};
    if (r->notes_taken)
        r->notes.n = 0;
    r->notes_taken = false;
    add_bytes(r, &n, sizeof n);
    add_bytes(r, text, size);
}

/* All are told for whom this rank waits, and in which call. */
static void tell_wait(fl_ranks *r, int rank)
{
    add_note(r, NOTE_WAITS, rank, &r->call, sizeof r->call);
}

const void *fl_ranks_take_notes(fl_ranks *r, size_t *size)
{
    if (r->notes_taken || !r->notes.n)
        return NULL;
    r->notes_taken = true;
    *size = (size_t)r->notes.n;
    return r->notes.at;
}

const void *fl_ranks_failure_note(const fl_ranks *r, size_t *size)
{
    *size = (size_t)r->notes.n;
    return r->failed && r->notes.n ? r->notes.at : NULL;
}

const char *fl_ranks_take_late(fl_ranks *r)
{
    const bool is_new = r->late_is_new;
    r->late_is_new = false;
    return is_new ? r->late : NULL;
}

/* --- failures ------------------------------------------------------------- */

static fl_err keep_failure(fl_ranks *r, fl_err code, int origin,
                           const char *reason)
{
    r->failed = code;
    r->sentence = fl_sentence_keep();
    if (!FL_PLANTED(MUTE))
        add_note(r, NOTE_ABORT, origin, reason, strnlen(reason, REASON - 1));
    return code;
}

fl_err fl_ranks_fail(fl_ranks *r, fl_err code)
{
    if (r->failed)
        return fl_ranks_check(r);
    const fl_sentence s = fl_sentence_keep();
    return keep_failure(r, code, r->opts.rank, s.text);
}

fl_err fl_ranks_interrupt(fl_ranks *r)
{
    return fl_ranks_fail(r, fl_fail(FL_EINTR,
                                    "rank %d was interrupted while it waited "
                                    "for rank %d",
                                    r->opts.rank, r->wait.rank));
}

void fl_ranks_give_up(fl_ranks *r, const char *why)
{
    if (!r->failed)
        fl_ranks_fail(r,
                      fl_fail(FL_EIO, "rank %d (%s) has failed: %s",
                              r->opts.rank, endpoint_of(r, r->opts.rank), why));
}

void fl_ranks_leave(fl_ranks *r)
{
    if (!FL_PLANTED(NO_FAREWELL))
        add_note(r, NOTE_FAREWELL, -1, "", 0);
}

/* The rank of a connection has ended its part, and this one needs it. */
static fl_err fail_left(fl_ranks *r, int rank)
{
    char call[CALL];
    describe_call(r, call);
    return fl_ranks_fail(r, fl_fail(FL_EIO,
                                    "rank %d (%s) has ended its part of the "
                                    "job, rank %d still needs it %s: all ranks "
                                    "must make the same calls",
                                    rank, endpoint_of(r, rank), r->opts.rank,
                                    call));
}

static fl_err fail_lost(fl_ranks *r, int rank)
{
    char call[CALL];
    describe_call(r, call);
    return fl_ranks_fail(
        r, fl_fail(FL_EIO, "rank %d (%s): its data connection was lost %s",
                   rank, endpoint_of(r, rank), call));
}

/* --- joining -------------------------------------------------------------- */

static bool is_connected(const fl_ranks *r, int rank)
{
    return r->others[rank].connected[FL_MESH_CONTROL] &&
           r->others[rank].connected[FL_MESH_DATA];
}

/* The wait goes on for another rank; whoever was told is told again. */
static void wait_to(fl_ranks *r, int rank, const char *what)
{
    if (r->wait.told && r->wait.rank != rank && !FL_PLANTED(STALE))
        tell_wait(r, rank);
    r->wait.rank = rank;
    r->wait.what = what;
}

bool fl_ranks_next_server(fl_ranks *r, int *rank, fl_mesh_channel *c)
{
    for (int i = 0; i < r->opts.rank; i++) {
        if (is_connected(r, i))
            continue;
        wait_to(r, i, "to listen");
        *rank = i;
        *c = r->others[i].connected[FL_MESH_CONTROL] ? FL_MESH_DATA
                                                     : FL_MESH_CONTROL;
        return true;
    }
    return false;
}

bool fl_ranks_next_client(fl_ranks *r)
{
    for (int i = r->opts.rank + 1; i < r->opts.world; i++)
        if (!is_connected(r, i)) {
            wait_to(r, i, "to connect");
            return true;
        }
    return false;
}

void fl_ranks_excuse(fl_ranks *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(r->reason, sizeof r->reason, fmt, args);
    va_end(args);
}

static fl_err check_hello(const fl_ranks *r, const fl_hello *h,
                          const char *address)
{
    const int world = r->opts.world, me = r->opts.rank;
    if (h->version != FL_GREETING_VERSION)
        return fl_fail(FL_EINVAL,
                       "%s speaks version %u of the collective protocol, rank "
                       "%d version %d: install the same Fluid everywhere",
                       address, h->version, me, FL_GREETING_VERSION);
    if (h->world != world)
        return fl_fail(FL_EINVAL,
                       "rank %d (%s) is of a job of %d ranks, rank %d (%s) of "
                       "one of %d: give all ranks the same list of endpoints",
                       h->rank, address, h->world, me, endpoint_of(r, me),
                       world);
    if (h->to != me)
        return fl_fail(FL_EINVAL,
                       "rank %d (%s) looks for rank %d at %s, which is rank "
                       "%d: give all ranks the endpoints in the same order",
                       h->rank, address, h->to, endpoint_of(r, me), me);
    if (h->rank == me)
        return fl_fail(FL_EINVAL,
                       "two processes are rank %d: %s and %s; give each its "
                       "own number",
                       h->rank, endpoint_of(r, me), address);
    if (h->rank < me || h->rank >= world || h->channel >= FL_MESH_CHANNELS)
        return fl_fail(FL_EINVAL,
                       "%s says it is rank %d, which does not connect to rank "
                       "%d of %d",
                       address, h->rank, me, world);
    const other *o = &r->others[h->rank];
    if (o->address[0] && memcmp(o->process, h->process, sizeof o->process))
        return fl_fail(FL_EINVAL,
                       "two processes are rank %d: %s and %s; give each its "
                       "own number",
                       h->rank, o->address, address);
    return FL_OK;
}

fl_err fl_ranks_admit(fl_ranks *r, const fl_hello *h, const char *address)
{
    FL_TRY(fl_ranks_check(r));
    const fl_err err = check_hello(r, h, address);
    if (err)
        return fl_ranks_fail(r, err);
    other *o = &r->others[h->rank];
    memcpy(o->process, h->process, sizeof o->process);
    if (!o->address[0])
        snprintf(o->address, sizeof o->address, "%s", address);
    return FL_OK;
}

fl_err fl_ranks_refuse(fl_ranks *r, int rank, const fl_hello_verdict *v)
{
    char reason[REASON];
    memcpy(reason, v->reason, sizeof reason);
    clean_text(reason, sizeof reason);
    return fl_ranks_fail(
        r, fl_fail(FL_EINVAL, "%s (told by rank %d)", reason, rank));
}

void fl_ranks_connected(fl_ranks *r, int rank, fl_mesh_channel c)
{
    r->others[rank].connected[c] = true;
    r->reason[0] = 0;
}

/* --- calls ---------------------------------------------------------------- */

void fl_ranks_about(fl_ranks *r, const fl_mesh_subject *about)
{
    r->about = *about;
}

fl_err fl_ranks_begin_call(fl_ranks *r, const char *fmt, va_list args)
{
    FL_TRY(fl_ranks_check(r));
    r->call.number++;
    memset(r->call.what, 0, sizeof r->call.what);
    vsnprintf(r->call.what, sizeof r->call.what, fmt, args);
    return FL_OK;
}

const fl_call_head *fl_ranks_call(const fl_ranks *r)
{
    return &r->call;
}

fl_err fl_ranks_compare_call(fl_ranks *r, int rank, const fl_call_head *h)
{
    char call[CALL];
    fl_call_head theirs = *h;
    if (FL_PLANTED(ANY_CALL) || !memcmp(h, &r->call, sizeof *h))
        return FL_OK;
    describe_call(r, call);
    clean_text(theirs.what, sizeof theirs.what);
    return fl_ranks_fail(
        r, fl_fail(FL_EPROTO,
                   "rank %d (%s) is in %s (call %llu) while rank %d is %s: all "
                   "ranks must make the same calls",
                   rank, endpoint_of(r, rank), theirs.what,
                   (unsigned long long)theirs.number, r->opts.rank, call));
}

/* Ranks may wait for each other in calls that differ, and exchange no bytes
 * that would tell. */
static fl_err compare_waits(fl_ranks *r)
{
    for (int i = 0; i < r->opts.world; i++)
        if (r->others[i].waits_for >= 0 && r->call.number &&
            r->others[i].call.number == r->call.number)
            FL_TRY(fl_ranks_compare_call(r, i, &r->others[i].call));
    return FL_OK;
}

/* --- notes ---------------------------------------------------------------- */

static fl_err hear_wait(fl_ranks *r, int rank, const note *n, const char *text)
{
    other *o = &r->others[rank];
    o->waits_for = n->rank >= 0 && n->rank < r->opts.world ? n->rank : -1;
    if (n->size == sizeof o->call)
        memcpy(&o->call, text, sizeof o->call);
    return compare_waits(r);
}

static fl_err hear_note(fl_ranks *r, int rank, const note *n, const char *text)
{
    other *o = &r->others[rank];
    char reason[REASON] = "";
    switch (n->kind) {
    case NOTE_WAITS:
        return hear_wait(r, rank, n, text);
    case NOTE_FAREWELL:
        o->left = true;
        return r->wait.lost && r->wait.rank == rank ? fail_left(r, rank)
                                                    : FL_OK;
    case NOTE_ABORT: /* its own failure, or it passes on that of n->rank */
        memcpy(reason, text, n->size);
        clean_text(reason, sizeof reason);
        /* Not all ranks may be connected with the one that failed. */
        return keep_failure(
            r, fl_fail(FL_EENDED, "%s (told by rank %d)", reason, n->rank),
            n->rank, reason);
    }
    return fl_ranks_fail(r, fl_fail(FL_EPROTO,
                                    "rank %d (%s) sent a note of kind %u", rank,
                                    endpoint_of(r, rank), n->kind));
}

/* All notes that are complete. */
static fl_err hear_notes(fl_ranks *r, int rank)
{
    other *o = &r->others[rank];
    for (note n; o->in_size >= sizeof n;) {
        memcpy(&n, o->in, sizeof n);
        if (n.size >= REASON)
            return fl_ranks_fail(
                r, fl_fail(FL_EPROTO,
                           "rank %d (%s) sent a note of %u bytes, %d at most",
                           rank, endpoint_of(r, rank), n.size, REASON - 1));
        const size_t size = sizeof n + n.size;
        if (o->in_size < size)
            break;
        FL_TRY(hear_note(r, rank, &n, (const char *)o->in + sizeof n));
        o->in_size -= size;
        memmove(o->in, o->in + size, o->in_size);
    }
    return FL_OK;
}

fl_err fl_ranks_hear(fl_ranks *r, int rank, const void *bytes, size_t n)
{
    other *o = &r->others[rank];
    FL_TRY(fl_ranks_check(r));
    for (const unsigned char *at = bytes; n;) {
        const size_t room = sizeof o->in - o->in_size;
        const size_t some = n < room ? n : room;
        memcpy(o->in + o->in_size, at, some);
        o->in_size += some;
        at += some;
        n -= some;
        FL_TRY(hear_notes(r, rank));
    }
    return FL_OK;
}

/* --- ends of connections -------------------------------------------------- */

fl_err fl_ranks_end_control(fl_ranks *r, int rank, int error)
{
    other *o = &r->others[rank];
    char call[CALL];
    FL_TRY(fl_ranks_check(r));
    o->connected[FL_MESH_CONTROL] = false;
    if (o->left)
        return FL_OK;
    if (error == ETIMEDOUT || error == EHOSTUNREACH)
        return fl_ranks_fail(
            r, fl_fail(FL_EENDED,
                       "rank %d (%s) cannot be reached any more (%s): look at "
                       "its host and network",
                       rank, endpoint_of(r, rank), strerror(error)));
    describe_call(r, call);
    return fl_ranks_fail(
        r, fl_fail(FL_EENDED,
                   "rank %d (%s) has died: its connection ended before it had "
                   "left the job, which rank %d noticed %s; the output of "
                   "rank %d tells why",
                   rank, endpoint_of(r, rank), r->opts.rank, call, rank));
}

fl_err fl_ranks_end_data(fl_ranks *r, int rank, int64_t now)
{
    FL_TRY(fl_ranks_check(r));
    if (r->others[rank].left)
        return fail_left(r, rank);
    fl_ranks_wait(r, rank, NULL, FL_PLANTED(HASTY) ? 0 : LOSS_TIME, now);
    r->wait.lost = true;
    return FL_OK;
}

/* --- waits ---------------------------------------------------------------- */

void fl_ranks_wait(fl_ranks *r, int rank, const char *what, int64_t limit,
                   int64_t now)
{
    r->wait = (wait){.rank = rank,
                     .what = what,
                     .since = now,
                     .limit = limit,
                     .next_late = now + r->opts.late_after};
}

void fl_ranks_end_wait(fl_ranks *r)
{
    if (r->wait.told)
        tell_wait(r, -1);
    r->wait.told = false;
}

/* Who holds up the wait: follow what ranks said of their own waits, but not
 * back to where the way began. ", which waits for rank 2 (b:1)," */
static void describe_way(const fl_ranks *r, char out[WAY])
{
    int rank = r->wait.rank, hops = 0, n = 0;
    out[0] = 0;
    for (; hops < r->opts.world; hops++) {
        const int next = r->others[rank].waits_for;
        if (next < 0 || next == r->wait.rank || next == r->opts.rank)
            break;
        rank = next;
        if (hops < HOPS)
            n += snprintf(out + n, (size_t)(WAY - n),
                          ", which waits for rank %d (%.60s)", rank,
                          endpoint_of(r, rank));
    }
    if (hops > HOPS)
        n += snprintf(out + n, (size_t)(WAY - n), ", .. for rank %d (%.60s)",
                      rank, endpoint_of(r, rank));
    if (hops)
        snprintf(out + n, (size_t)(WAY - n), ",");
}

/* "rank 0 has waited 5.0 s for rank 1 (a:1), which waits for rank 2 (b:1), in
 * barrier (call 3)" */
static void describe_wait(const fl_ranks *r, int64_t now, char *out,
                          size_t size)
{
    const wait *w = &r->wait;
    char way[WAY], call[CALL];
    describe_way(r, way);
    describe_call(r, call);
    snprintf(out, size, "rank %d has waited %.1f s for rank %d (%s)%s %s%s%s",
             r->opts.rank, (double)(now - w->since) / (double)FL_SEC, w->rank,
             endpoint_of(r, w->rank), way, w->what ? w->what : call,
             r->reason[0] ? ": " : "", r->reason);
}

/* Until the next sentence about a wait: as long as the wait so far, but not
 * longer than a minute where the first one came after five seconds. */
static int64_t late_pause(const fl_ranks *r, int64_t waited)
{
    const int64_t least = r->opts.late_after, most = 12 * least;
    return waited < least ? least : waited > most ? most : waited;
}

int64_t fl_ranks_due(const fl_ranks *r)
{
    const int64_t end = r->wait.since + r->wait.limit;
    return r->wait.next_late < end ? r->wait.next_late : end;
}

fl_err fl_ranks_tick(fl_ranks *r, int64_t now)
{
    wait *w = &r->wait;
    FL_TRY(fl_ranks_check(r));
    if (now >= w->next_late) {
        w->next_late = now + late_pause(r, now - w->since);
        if (!w->told)
            tell_wait(r, w->rank);
        w->told = true;
        describe_wait(r, now, r->late, sizeof r->late);
        r->late_is_new = true;
        FL_TRY(compare_waits(r));
    }
    if (now - w->since < w->limit)
        return FL_OK;
    if (w->lost)
        return fail_lost(r, w->rank);
    char text[sizeof r->late];
    describe_wait(r, now, text, sizeof text);
    return fl_ranks_fail(r, fl_fail(FL_ETIMEOUT, "%s (the limit is %.1f s)",
                                    text, (double)w->limit / (double)FL_SEC));
}
