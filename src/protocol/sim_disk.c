/* SPDX-License-Identifier: Apache-2.0 */
/* sim_disk.c - what outlives a simulated server process, and how it dies.
 *
 * A process may be killed before any store to its disk: from then on nothing
 * that it does is kept or sent, and at the end of the event it is gone. This is
 * how a crash between any two stores looks from outside. */
#include "protocol/sim_world.h"

/* The store is made, unless the process is killed before it. */
static bool may_store(sim_server *v)
{
    sim *s = v->sim;
    if (!v->dying && s->crashes && s->now < s->storm_ends &&
        !sim_dice(s, 100)) {
        s->crashes--;
        v->dying = true;
    }
    return !v->dying;
}

/* --- images --- */

static void save_image(sim_server *v, fl_str *place, fl_str *image)
{
    if (may_store(v)) {
        fl_str_fini(place);
        *place = *image;
    } else {
        fl_str_fini(image);
    }
}

void sim_disk_save(sim *s, int party)
{
    sim_server *v = &s->server[sim_host(s, party)];
    fl_str image = {0};
    if (party == sim_coord(s) && fl_coord_changed(s->coord)) {
        fl_coord_image(s->coord, &image);
        save_image(v, &v->disk.coord, &image);
    } else if (party < sim_coord(s) && fl_server_changed(v->server)) {
        fl_server_image(v->server, &image);
        save_image(v, &v->disk.server, &image);
    }
}

/* --- pushes that wait for their round --- */

static void drop_entry(sim_disk *d, int64_t i)
{
    fl_keeper_copies.drop(NULL, d->entry.at[i].bytes);
    fl_remove(&d->entry, i);
}

fl_blob sim_disk_stage(void *self, const fl_push_id *id, fl_blob b)
{
    sim_server *v = self;
    if (may_store(v))
        fl_push(&v->disk.entry,
                (sim_entry){*id, fl_keeper_copies.keep(NULL, b)});
    return fl_keeper_copies.keep(NULL, b);
}

void sim_disk_closed(void *self, int64_t version)
{
    sim_server *v = self;
    if (!may_store(v))
        return;
    for (int64_t i = v->disk.entry.n - 1; i >= 0; i--)
        if (v->disk.entry.at[i].id.round < version)
            drop_entry(&v->disk, i);
}

void sim_disk_forget(sim_server *v, fl_id session)
{
    if (!may_store(v))
        return;
    for (int64_t i = v->disk.entry.n - 1; i >= 0; i--)
        if (fl_id_same(v->disk.entry.at[i].id.session, session))
            drop_entry(&v->disk, i);
    for (int64_t i = v->disk.seen.n - 1; i >= 0; i--)
        if (fl_id_same(v->disk.seen.at[i].session, session))
            fl_remove(&v->disk.seen, i);
}

/* --- what was applied --- */

static sim_seen *seen_of(sim_disk *d, const fl_staged *by)
{
    for (int64_t i = 0; i < d->seen.n; i++)
        if (fl_id_same(d->seen.at[i].session, by->session))
            return &d->seen.at[i];
    fl_push(&d->seen, (sim_seen){.session = by->session, .rank = by->rank});
    return &d->seen.at[d->seen.n - 1];
}

static void mark_push(sim_seen *n, const fl_staged *by)
{
    fl_window_mark(&n->window, by->seq);
    if (by->step > n->step) {
        n->step = by->step;
        n->first = by->first;
    }
}

bool sim_disk_apply(sim_server *v, const sim_apply *a, float value)
{
    const bool async = v->sim->job.async;
    if (async ? fl_window_seen(&seen_of(&v->disk, a->by)->window, a->by->seq)
              : a->round < v->disk.done)
        return false; /* before the restart */
    if (!may_store(v))
        return false;
    v->disk.value = value;
    if (async)
        mark_push(seen_of(&v->disk, a->by), a->by);
    else
        v->disk.done = a->round + 1;
    return true;
}

/* --- starting again --- */

void sim_disk_restore(sim_server *v, int64_t now)
{
    sim *s = v->sim;
    sim_disk *d = &v->disk;
    fl_err err = FL_OK;
    if (d->server.n)
        err = fl_server_restore(v->server, d->server.at, d->server.n, now);
    if (!err && !v->index && d->coord.n)
        err = fl_coord_restore(s->coord, d->coord.at, d->coord.n, now);
    if (err)
        sim_fail(s, 'G', "server %d cannot go on: %s", v->index, fl_errmsg());
    for (int64_t i = 0; i < d->entry.n && !err; i++) {
        const fl_blob copy = fl_keeper_copies.keep(NULL, d->entry.at[i].bytes);
        if (!fl_server_restage(v->server, &d->entry.at[i].id, copy))
            fl_keeper_copies.drop(NULL, copy);
    }
    for (int64_t i = 0; i < d->seen.n && !err; i++)
        fl_server_rewindow(v->server, d->seen.at[i].session, d->seen.at[i].rank,
                           d->seen.at[i].window, d->seen.at[i].step,
                           d->seen.at[i].first);
}

void sim_disk_fini(sim_disk *d)
{
    while (d->entry.n)
        drop_entry(d, d->entry.n - 1);
    fl_vec_fini(&d->entry);
    fl_vec_fini(&d->seen);
    fl_str_fini(&d->server);
    fl_str_fini(&d->coord);
}
