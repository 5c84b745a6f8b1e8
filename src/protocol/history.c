/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - the snapshots of a job: due, being written, whole, gone back to.
 *
 *     number:  due --begin--> being written --committed--> whole
 *                               '--begin of the next--> given up
 *
 * Easy to get wrong: the folder may hold snapshots of other runs of the same
 * job. The job may only go back to one of its own history, so every whole
 * snapshot has origins: the states of server 0 that have taken it or have begun
 * with it. Two snapshots are of one history if the state that has taken the
 * newer one is an origin of the older one. */
#include "protocol/history.h"
#include "protocol/plant.h"

struct fl_history {
    const fl_job *job;
    fl_outbox *out;
    int64_t every; /* ns; 0: none are taken */
    int64_t next;  /* when the next one is due */
    int64_t last;  /* the last number that was given */
    int64_t whole; /* the newest one that the job can go back to; 0: none */
    FL_VEC(fl_history_origin) origin; /* of those that are whole */
    int64_t number;                   /* that is being written; 0: none is */
    int64_t version;                  /* of that one */
    int64_t until;                    /* when that one is given up */
    fl_str image;                     /* of that one */
    int64_t *written; /* the newest one of each server; job->servers elements */
    int64_t rewind;   /* the one that the job goes back to; 0: none */
    int64_t next_generation; /* rewind: the generation that begins with it */
    int64_t damaged; /* the newest one that a server cannot restore; 0: none */
    int64_t base;    /* the one that this generation began with */
};

/* The newest snapshot below `limit` that a state of server 0 has taken or begun
 * with; 0: there is none. */
static int64_t newest_of(const fl_history_origin *at, int64_t n, uint64_t state,
                         int64_t limit)
{
    int64_t newest = 0;
    for (int64_t i = 0; i < n && state; i++) {
        const bool same = at[i].state == state || FL_PLANTED(OTHERRUN);
        if (same && at[i].snapshot < limit && at[i].snapshot > newest)
            newest = at[i].snapshot;
    }
    return newest;
}

int64_t fl_history_older(const fl_history_origin *at, int64_t n, int64_t number)
{
    for (int64_t i = 0; i < n; i++)
        if (at[i].snapshot == number && at[i].taken)
            return newest_of(at, n, at[i].state, number);
    return 0;
}

fl_history *fl_history_new(const fl_job *job, fl_outbox *out)
{
    fl_history *h = fl_mem_alloc(sizeof *h);
    h->job = job;
    h->out = out;
    h->written = fl_mem_alloc((size_t)job->servers * sizeof *h->written);
    return h;
}

void fl_history_free(fl_history *h)
{
    if (!h)
        return;
    fl_str_fini(&h->image);
    fl_vec_fini(&h->origin);
    fl_mem_free(h->written);
    fl_mem_free(h);
}

void fl_history_visit(fl_history *h, fl_image *im)
{
    fl_image_count(im, &h->base, 0, INT64_MAX - 1);
    fl_image_count(im, &h->whole, 0, INT64_MAX - 1);
    fl_image_count(im, &h->last, 0, INT64_MAX - 1);
}

/* --- taking --- */

void fl_history_open(fl_history *h, int64_t every, int64_t last,
                     const fl_history_origin *found, int64_t n, int64_t now)
{
    h->every = every;
    h->next = now + every;
    if (last > h->last)
        h->last = last;
    h->origin.n = 0;
    for (int64_t i = 0; i < n; i++)
        fl_push(&h->origin, found[i]);
}

bool fl_history_due(const fl_history *h, int64_t now)
{
    return h->every && now >= h->next && (!h->number || now >= h->until);
}

/* Servers that have not written the snapshot in time are named. */
static void note_unwritten(fl_history *h)
{
    for (int i = 0; i < h->job->servers; i++) {
        char name[96];
        if (h->written[i] < h->number)
            fl_outbox_note(h->out,
                           "snapshot %lld is given up: %s has not written it",
                           (long long)h->number,
                           fl_job_server(h->job, i, name, sizeof name));
    }
}

fl_str *fl_history_begin(fl_history *h, int64_t version, int64_t now)
{
    if (h->number)
        note_unwritten(h);
    h->number = ++h->last;
    h->next = now + h->every;
    h->until = now + (h->every > h->job->reach ? h->every : h->job->reach);
    h->version = version;
    h->image.n = 0;
    return &h->image;
}

int64_t fl_history_writing(const fl_history *h)
{
    return h->number;
}

void fl_history_wrote(fl_history *h, int server, int64_t number)
{
    if (number > h->written[server])
        h->written[server] = number;
}

bool fl_history_written(const fl_history *h, int64_t *version,
                        const fl_str **image)
{
    if (!h->number || h->rewind)
        return false;
    for (int i = 0; i < h->job->servers; i++)
        if (h->written[i] < h->number)
            return false;
    *version = h->version;
    *image = &h->image;
    return true;
}

void fl_history_committed(fl_history *h, int64_t number, int64_t oldest)
{
    if (h->number == number)
        h->number = 0;
    if (!oldest)
        return;
    h->whole = number;
    fl_push(&h->origin, (fl_history_origin){number, h->out->state.id, true});
    for (int64_t i = 0; i < h->origin.n; i++)
        if (h->origin.at[i].snapshot < oldest)
            fl_remove(&h->origin, i--);
}

/* --- going back --- */

void fl_history_rewind(fl_history *h, int64_t base)
{
    h->base = base;
    h->whole = base;
}

int64_t fl_history_base(const fl_history *h)
{
    return h->base;
}

int64_t fl_history_newest(fl_history *h, uint64_t was)
{
    if (!h->whole)
        h->whole = newest_of(h->origin.at, h->origin.n, was, INT64_MAX);
    return h->whole;
}

void fl_history_go_back(fl_history *h, int server, int64_t known)
{
    const int64_t own = h->out->generation;
    char name[96];
    if (h->rewind)
        return;
    h->rewind = h->whole;
    h->next_generation = (known > own ? known : own) + 1;
    fl_outbox_note(h->out,
                   "%s was started again and has lost its parameters: the job "
                   "goes back to snapshot %lld",
                   fl_job_server(h->job, server, name, sizeof name),
                   (long long)h->rewind);
}

bool fl_history_go_further(fl_history *h, int server, int64_t number,
                           const char *why)
{
    char name[96];
    if (!h->rewind) /* it has gone back to `number` already */
        h->next_generation = h->out->generation + 1;
    h->rewind = fl_history_older(h->origin.at, h->origin.n, number);
    if (!h->rewind) /* nobody knows who has taken it: then this state has */
        h->rewind =
            newest_of(h->origin.at, h->origin.n, h->out->state.id, number);
    h->damaged = number > h->damaged ? number : h->damaged;
    if (!h->rewind)
        return false;
    fl_outbox_note(h->out,
                   "%s cannot restore snapshot %lld: %s; the job goes back "
                   "to snapshot %lld",
                   fl_job_server(h->job, server, name, sizeof name),
                   (long long)number, why, (long long)h->rewind);
    return true;
}

int64_t fl_history_rewinds(const fl_history *h)
{
    return h->rewind;
}

int64_t fl_history_next_generation(const fl_history *h)
{
    return h->next_generation;
}

int64_t fl_history_damaged(const fl_history *h)
{
    return h->damaged;
}
