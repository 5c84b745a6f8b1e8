/* SPDX-License-Identifier: Apache-2.0 */
/* sim_snapshot.c - snapshots of simulated servers, and how a job goes back. */
#include "protocol/sim_world.h"

static sim_snapshot *find_snapshot(sim *s, int64_t number)
{
    for (int64_t i = 0; i < s->snapshot.n; i++)
        if (s->snapshot.at[i].number == number)
            return &s->snapshot.at[i];
    fl_push(&s->snapshot, (sim_snapshot){.number = number});
    sim_snapshot *n = &s->snapshot.at[s->snapshot.n - 1];
    n->part = fl_mem_alloc((size_t)s->job.servers * sizeof *n->part);
    return n;
}

/* --- taking one --- */

void sim_snapshot_cut(void *self, const fl_moment *cut)
{
    sim_server *v = self;
    sim *s = v->sim;
    sim_part *p = &find_snapshot(s, cut->number)->part[v->index];
    fl_str_fini(&p->image);
    fl_str_bytes(&p->image, cut->image, cut->n);
    p->version = cut->version;
    p->written = false;
    fl_push(&v->apply, (sim_apply){.snapshot = cut->number});
    sim_at(
        s, (int64_t)sim_dice(s, 500 * FL_MS),
        (sim_event){.kind = SIM_APPLIED, .party = v->index, .life = v->life});
}

void sim_snapshot_take(sim_server *v, const sim_apply *a)
{
    sim *s = v->sim;
    sim_part *p = &find_snapshot(s, a->snapshot)->part[v->index];
    p->value = v->disk.value;
    p->written = true;
    fl_server_written(v->server, a->snapshot, s->now);
}

void sim_snapshot_begin(sim *s)
{
    FL_VEC(fl_history_origin) found = {0};
    int64_t last = 0;
    if (!s->every)
        return;
    for (int64_t i = 0; i < s->snapshot.n; i++) {
        const sim_snapshot *n = &s->snapshot.at[i];
        last = n->number > last ? n->number : last;
        for (int64_t k = 0; k < n->state.n && n->whole; k++)
            fl_push(&found, (fl_history_origin){n->number, n->state.at[k], !k});
    }
    fl_coord_snapshots(s->coord, s->every, last, found.at, found.n, s->now);
    fl_vec_fini(&found);
}

/* The newest whole snapshot below `limit`, or NULL. */
static sim_snapshot *find_below(const sim *s, int64_t limit)
{
    sim_snapshot *found = NULL;
    for (int64_t i = 0; i < s->snapshot.n; i++) {
        sim_snapshot *n = &s->snapshot.at[i];
        if (n->whole && n->number < limit &&
            (!found || n->number > found->number))
            found = n;
    }
    return found;
}

/* Two are kept. The number of the older one. */
static int64_t remove_old(sim *s, int64_t newest)
{
    const sim_snapshot *older = find_below(s, newest);
    sim_snapshot *n;
    while (older && (n = find_below(s, older->number)))
        n->whole = false;
    return older ? older->number : newest;
}

static void commit_snapshot(sim *s)
{
    fl_coord_moment cut;
    if (!fl_coord_written(s->coord, &cut))
        return;
    sim_snapshot *n = find_snapshot(s, cut.number);
    bool whole = true;
    for (int i = 0; i < s->job.servers; i++) {
        whole = whole && n->part[i].written;
        if (!s->job.async && n->part[i].version != cut.version)
            sim_fail(s, 'C', "snapshot %lld has version %lld of server %d",
                     (long long)cut.number, (long long)n->part[i].version, i);
    }
    if (!whole)
        sim_fail(s, 'C', "snapshot %lld misses a part", (long long)cut.number);
    fl_str_fini(&n->coord);
    fl_str_bytes(&n->coord, cut.image, cut.n);
    n->version = cut.version;
    n->generation = cut.generation;
    n->whole = true;
    n->run = s->run;
    fl_push(&n->state, s->server[0].state.id);
    fl_coord_committed(s->coord, cut.number, remove_old(s, cut.number));
    if (!s->storm || s->now >= s->storm_ends)
        return;
    const sim_snapshot *older = find_below(s, cut.number);
    const bool second = older && older->run != n->run; /* a rare chance */
    if (second || !sim_dice(s, 2))
        n->part[sim_dice(s, (uint64_t)s->job.servers)].damaged = true;
    if (second || !sim_dice(s, 4))
        sim_at(s, second ? 0 : (int64_t)sim_dice(s, 3 * FL_SEC),
               (sim_event){.kind = SIM_REPLACE});
}

/* --- going back --- */

/* What the checks know is that of the snapshot. */
static void rewind_checks(sim *s, const sim_snapshot *n)
{
    const size_t size = (size_t)s->job.servers * sizeof(float);
    sim_forget_rounds(s);
    for (int64_t k = 0; k < n->version && !s->job.async; k++) {
        sim_round r = {.value = fl_mem_alloc(size),
                       .member = fl_mem_alloc(sizeof *r.member)};
        for (int i = 0; i < s->job.servers; i++)
            r.value[i] = n->part[i].value;
        fl_push(&s->round, r);
    }
    s->view.n = s->gone.n = s->view_number = 0;
    for (int i = 0; i < s->job.trainers; i++) {
        s->came[i] = false;
        s->lost_at[i] = 0;
    }
}

/* A state that has taken or begun with a newer snapshot, which cannot be
 * restored, belongs to this one as well. */
static void inherit_states(sim *s, int64_t number)
{
    sim_snapshot *to = find_snapshot(s, number);
    for (int64_t i = 0; i < s->snapshot.n; i++) {
        const sim_snapshot *n = &s->snapshot.at[i];
        for (int64_t k = 0; k < n->state.n && n->number > number; k++)
            fl_push(&to->state, n->state.at[k]);
    }
}

/* The last decision of the time before arrives once more. */
static void repeat_close(sim *s, int server)
{
    if (s->close[server])
        sim_at(s, (int64_t)sim_dice(s, FL_SEC),
               (sim_event){.kind = SIM_MSG,
                           .party = server,
                           .from = {FL_PEER_COORD, 0, 0},
                           .life = s->server[server].life,
                           .msg = fl_msg_dup(s->close[server])});
}

static void rewind_server(sim *s, int server, int64_t number,
                          int64_t generation)
{
    const sim_snapshot n = *find_snapshot(s, number);
    sim_server *v = &s->server[server];
    const uint64_t by = server ? fl_server_coordinator(v->server) : 0;
    fl_err err;
    if (!n.whole) {
        sim_fail(s, 'Q', "server %d goes back to snapshot %lld, which is none",
                 server, (long long)number);
        return;
    }
    sim_break_calls(s, server);
    sim_server_renew(s, server);
    repeat_close(s, server);
    v->generation = v->out.generation = generation;
    v->disk.value = n.part[server].value;
    v->disk.done = v->version = n.part[server].version;
    err = fl_server_rewind(v->server, n.part[server].version, by,
                           n.part[server].image.at, n.part[server].image.n);
    if (!server && !err) {
        s->coord_out.generation = generation;
        err = fl_coord_rewind(s->coord, n.coord.at, n.coord.n, number, false);
        inherit_states(s, number);
        fl_push(&find_snapshot(s, number)->state, v->state.id);
        s->run = n.run;
        rewind_checks(s, &n);
        s->result->rewound++;
    }
    fl_server_image(v->server, &v->disk.server); /* with the values */
    if (!server)
        fl_coord_image(s->coord, &v->disk.coord);
    if (err)
        sim_fail(s, 'G', "server %d cannot go back: %s", server, fl_errmsg());
}

/* A server cannot restore the snapshot. The coordinator has chosen an older
 * one, or has ended the job. */
static void set_aside(sim *s, int64_t number)
{
    sim_snapshot *damaged = find_snapshot(s, number);
    int64_t generation;
    const int64_t to = fl_coord_rewinds(s->coord, &generation);
    const sim_snapshot *older = find_below(s, number);
    const int64_t right =
        older && older->run == damaged->run ? older->number : 0;
    if (to != right)
        sim_fail(s, 'Q',
                 "the job goes back from snapshot %lld to %lld, not %lld",
                 (long long)number, (long long)to, (long long)right);
    damaged->whole = false;
    damaged->aside = true;
    s->result->damaged++;
}

/* Whether server 0 goes back, or cannot. */
static bool rewind_coordinator(sim *s)
{
    int64_t generation, number;
    bool refused = false;
    if ((number = fl_coord_damaged(s->coord)) &&
        !find_snapshot(s, number)->aside)
        set_aside(s, number);
    while ((number = fl_coord_rewinds(s->coord, &generation)) &&
           find_snapshot(s, number)->part[0].damaged) {
        fl_coord_cannot_rewind(s->coord, "it is damaged", s->now);
        set_aside(s, number);
        refused = true;
    }
    if (number && !s->broken)
        rewind_server(s, 0, number, generation);
    else if (refused)
        sim_drain(s, sim_coord(s)); /* the job has ended */
    return number || refused;
}

void sim_snapshot_settle(sim *s, int party)
{
    const int host = sim_host(s, party);
    int64_t generation, number;
    if (!s->every || party > sim_coord(s) || s->broken)
        return;
    if (!host)
        commit_snapshot(s);
    if (!host && rewind_coordinator(s))
        return;
    fl_server *server = s->server[host].server;
    number = fl_server_rewinds(server, &generation);
    if (number && (find_snapshot(s, number)->part[host].damaged ||
                   find_snapshot(s, number)->aside)) {
        fl_server_cannot_rewind(server, "it is damaged", s->now);
        sim_drain(s, host);
    } else if (number) {
        rewind_server(s, host, number, generation);
    }
}

void sim_snapshot_fini(sim *s)
{
    for (int64_t i = 0; i < s->snapshot.n; i++) {
        sim_snapshot *n = &s->snapshot.at[i];
        for (int k = 0; k < s->job.servers; k++)
            fl_str_fini(&n->part[k].image);
        fl_mem_free(n->part);
        fl_str_fini(&n->coord);
        fl_vec_fini(&n->state);
    }
    fl_vec_fini(&s->snapshot);
}
