/* SPDX-License-Identifier: Apache-2.0 */
/* sim_party.c - the processes of a simulated job, and its arithmetic.
 *
 * A gradient is a float that depends on rank, round, server and part;
 * the magnitudes differ so much that another order of addition gives another
 * sum. */
#include "protocol/sim_world.h"

#include <stdio.h>

/* A time to rejoin that is longer than all faults last, so that every trainer
 * that can complete does. */
#define PATIENCE (300 * FL_SEC)

static uint64_t hash_number(uint64_t x)
{
    fl_entropy e = fl_entropy_fake(x);
    return e.draw(&e);
}

float sim_gradient(int rank, int64_t round, int server, int part)
{
    const uint64_t h =
        hash_number(((uint64_t)rank << 40) ^ ((uint64_t)round << 20) ^
                    (uint64_t)(server * 64 + part));
    const float x = (float)(h % 2000003) / 3.0f - 333333.0f;
    return x * (float)(1 << (h >> 40) % 12);
}

int sim_parts(int64_t round, int server)
{
    return (int)((round + server) % 3); /* 0: only an empty push */
}

/* --- a store --- */

static fl_err check_push(void *self, const fl_staged *by)
{
    const fl_blob grads = by->part[0];
    if (grads.size && grads.size != sizeof(sim_grad))
        return fl_fail(FL_ESHAPE, "push: %zu bytes", grads.size);
    return FL_OK;
}

/* The arrays are copied. The bytes are not, so that the test fails if the
 * server drops them too early. */
static void begin_apply(void *self, int64_t round, const fl_staged *by, int n)
{
    sim_server *v = self;
    sim_apply a = {.n = n, .round = round};
    a.by = fl_mem_alloc((size_t)(n + 1) * sizeof *a.by);
    for (int i = 0; i < n; i++) {
        const size_t size = (size_t)by[i].n * sizeof *by[i].part;
        fl_blob *part = fl_mem_alloc(size + 1);
        if (size)
            memcpy(part, by[i].part, size);
        a.by[i] = by[i];
        a.by[i].part = part;
    }
    fl_push(&v->apply, a);
    const int64_t longest = sim_dice(v->sim, 8) ? 50 * FL_MS : 4 * FL_SEC;
    sim_at(
        v->sim, (int64_t)sim_dice(v->sim, (uint64_t)longest),
        (sim_event){.kind = SIM_APPLIED, .party = v->index, .life = v->life});
}

/* An asynchronous store goes on with the pushes of the session first. */
static void forget_session(void *self, fl_id session)
{
    sim_server *v = self;
    if (!v->sim->job.async) {
        sim_disk_forget(v, session);
        return;
    }
    fl_push(&v->apply, (sim_apply){.forgets = true, .session = session});
    sim_at(
        v->sim, (int64_t)sim_dice(v->sim, 50 * FL_MS),
        (sim_event){.kind = SIM_APPLIED, .party = v->index, .life = v->life});
}

static void free_apply(sim_apply *a)
{
    for (int i = 0; i < a->n; i++)
        fl_mem_free((void *)a->by[i].part);
    fl_mem_free(a->by);
}

static bool apply_mean(sim_server *v, const sim_apply *a)
{
    float sum = 0;
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < a->by[i].n; k++) {
            const fl_blob b = a->by[i].part[k];
            if (b.size)
                sum += ((const sim_grad *)b.at)->value;
        }
    return sim_disk_apply(v, a, v->disk.value - 0.1f * (sum / (float)a->n));
}

/* Finish the oldest task: a store applies in order. */
void sim_store_done(sim *s, int server)
{
    sim_server *v = &s->server[server];
    sim_apply a = v->apply.at[0];
    fl_remove(&v->apply, 0);
    if (a.snapshot) {
        sim_snapshot_take(v, &a);
        return;
    }
    if (a.forgets) {
        sim_disk_forget(v, a.session);
        return;
    }
    if (apply_mean(v, &a))
        sim_check_apply(s, server, &a);
    free_apply(&a);
    if (!v->dying)
        fl_server_applied(v->server, NULL, s->now);
}

static void read_values(void *self, fl_blob names, fl_peer to,
                        const fl_msg *reply)
{
    sim_server *v = self;
    fl_msg m = *reply;
    float *value = fl_arena_alloc(v->out.arena, sizeof *value);
    *value = v->disk.value;
    m.blob = (fl_blob){value, sizeof *value, NULL};
    if (!v->dying)
        sim_check_read(v->sim, v->index, &m);
    fl_outbox_send(&v->out, to, m);
}

static void start_tick(sim *s, int party)
{
    sim_at(s, 1 + (int64_t)sim_dice(s, 250 * FL_MS),
           (sim_event){
               .kind = SIM_TICK, .party = party, .life = sim_life(s, party)});
}

/* Starts the process, in server 0 with the coordinator. */
static void start_server(sim *s, sim_server *v, int64_t now)
{
    v->store =
        (fl_store){v, fl_keeper_copies, check_push, begin_apply, read_values};
    if (s->job.durability != FL_MEMORY) {
        v->store.stage = sim_disk_stage;
        v->store.closed = sim_disk_closed;
        v->store.forget = forget_session;
    }
    if (s->every)
        v->store.cut = sim_snapshot_cut;
    fl_outbox_init(&v->out);
    v->out.generation = v->generation;
    v->server =
        fl_server_new(&s->job, v->index, v->state, &v->store, &v->out, now);
    start_tick(s, v->index);
    if (v->index)
        return;
    fl_outbox_init(&s->coord_out);
    s->coord_out.generation = v->generation;
    s->coord = fl_coord_new(&s->job, v->state, &s->coord_out, now);
    sim_snapshot_begin(s);
    start_tick(s, sim_coord(s));
}

static void init_server(sim *s, int index, int life, int losses)
{
    sim_server *v = &s->server[index];
    *v = (sim_server){.sim = s, .index = index, .life = life, .losses = losses};
    v->epoch = s->server[0].losses;
    v->state = (fl_state){1 + sim_dice(s, UINT32_MAX), 1};
    start_server(s, v, s->now);
}

/* Ends the process; the disk stays. */
static void fini_server(sim *s, int index)
{
    sim_server *v = &s->server[index];
    for (int64_t k = 0; k < v->apply.n; k++)
        free_apply(&v->apply.at[k]);
    fl_vec_fini(&v->apply);
    v->apply.n = 0;
    fl_server_free(v->server);
    fl_outbox_fini(&v->out);
    if (index)
        return;
    fl_coord_free(s->coord);
    fl_outbox_fini(&s->coord_out);
}

void sim_forget_rounds(sim *s)
{
    for (int64_t i = 0; i < s->round.n; i++) {
        fl_mem_free(s->round.at[i].member);
        fl_mem_free(s->round.at[i].value);
    }
    s->round.n = 0;
}

/* Kill a server and start it without state. With a new coordinator the job
 * begins from the start, if no trainer knows the old state. */
void sim_server_replace(sim *s, int server)
{
    fini_server(s, server);
    sim_disk_fini(&s->server[server].disk);
    init_server(s, server, s->server[server].life + 1,
                s->server[server].losses + 1);
    s->result->replaced++;
    if (server)
        return;
    sim_forget_rounds(s);
    s->run = ++s->runs;
    s->view.n = s->gone.n = s->view_number = s->ended_at = 0;
    for (int i = 0; i < s->job.trainers; i++)
        s->came[i] = false;
}

void sim_server_renew(sim *s, int server)
{
    const int64_t down = s->server[server].down_until;
    fini_server(s, server);
    sim_disk_fini(&s->server[server].disk);
    init_server(s, server, s->server[server].life + 1,
                s->server[server].losses);
    s->server[server].down_until = down;
}

void sim_server_crash(sim *s, int server, int64_t down)
{
    sim_server *v = &s->server[server];
    const int64_t now = s->now + down; /* when it is there again */
    fini_server(s, server);
    v->dying = false;
    v->life++;
    v->state.incarnation++;
    start_server(s, v, now);
    sim_disk_restore(v, now);
    if (!server)
        sim_snapshot_begin(s);
    v->version = fl_server_version(v->server);
    s->result->crashed++;
}

/* --- a trainer --- */

static void on_values(void *self, int server, const fl_msg *m)
{
    sim_proc *p = self;
    sim_check_misled(p->sim, p);
    sim_check_values(p->sim, p, server, m);
}

static void on_ready(void *self, int rank, int64_t round)
{
    sim_proc *p = self;
    sim *s = p->sim;
    int64_t work = 1 + (int64_t)sim_dice(s, 600 * FL_MS);
    if (!sim_dice(s, 60))
        work = 31 *
               FL_SEC; /* three leases: a slow trainer must not count as dead */
    sim_at(s, work,
           (sim_event){.kind = SIM_WORK,
                       .party = sim_trainer(s, p->index),
                       .life = p->life});
}

static void on_fenced(void *self, const char *why)
{
    sim_proc *p = self;
    p->sim->result->fenced++;
    sim_check_fenced(p->sim, p);
}

/* Whether another process holds the rank that p was started with. */
static bool has_rival(const sim_proc *p)
{
    for (int i = 0; i < p->sim->procs; i++) {
        const sim_proc *q = &p->sim->proc[i];
        if (q != p && p->id != FL_ANY_ID && q->client &&
            fl_client_rank(q->client) == p->id)
            return true;
    }
    return false;
}

static void on_over(void *self, int code, const char *why)
{
    sim_proc *p = self;
    int end = 0;
    p->finished = true;
    if (!code) {
        sim_check_misled(p->sim, p);
        sim_check_used(p->sim, p);
    }
    p->sim->result->warned += p->misled;
    p->rewound = code && p->sim->every &&
                 (fl_starts_with(why, "rewound") || p->misled) &&
                 !fl_coord_ended(p->sim->coord, &end, &why);
    p->given_up =
        code && !p->rewound && !fl_coord_ended(p->sim->coord, &end, &why);
    if (p->rewound)
        sim_at(p->sim, 1 + (int64_t)sim_dice(p->sim, 10 * FL_SEC),
               (sim_event){.kind = SIM_START,
                           .party = sim_trainer(p->sim, p->index)});
    p->sim->result->rivals += p->given_up && has_rival(p);
}

static void push_grads(sim *s, sim_proc *p, int server, bool say_last)
{
    const int64_t round = fl_client_round(p->client);
    const int rank = fl_client_rank(p->client);
    const int64_t batch = s->positioned ? fl_client_steps(p->client) + 1 : 0;
    const int parts = sim_parts(!s->job.async ? round
                                : batch       ? batch
                                              : p->steps,
                                server);
    for (int i = 0; i < parts; i++) {
        sim_grad g = {.push = s->push.n,
                      .session = fl_client_session(p->client),
                      .rank = rank,
                      .server = server,
                      .part = i,
                      .parts = parts,
                      .round = round,
                      .batch = batch};
        g.value = sim_gradient(rank, round, server, i);
        fl_push(&s->push, (sim_push){.share = {rank, server, i, batch}});
        if (fl_client_push(p->client, server, (fl_blob){&g, sizeof g, NULL},
                           say_last && i == parts - 1, s->now))
            sim_fail(s, 'F', "%s", fl_errmsg());
    }
}

/* --- steps beside pulls, as a communicator makes them --- */

static void look_again(sim *s, const sim_proc *p)
{
    sim_at(s, 1 + (int64_t)sim_dice(s, 100 * FL_MS),
           (sim_event){.kind = SIM_WORK,
                       .party = sim_trainer(s, p->index),
                       .life = p->life});
}

static void begin_beside(sim *s, sim_proc *p)
{
    p->beside = 1;
    p->beside_session = fl_client_session(p->client);
    look_again(s, p);
}

/* Whether such a step is under way, which then goes on. If the session was
 * lost, the step is made again under its number, unless it counts. */
static bool goes_on_beside(sim *s, sim_proc *p)
{
    if (!fl_id_same(p->beside_session, fl_client_session(p->client)))
        p->beside = 0;
    if (p->beside && !fl_client_pushes(p->client)) {
        p->beside = (p->beside + 1) % 3;
        if (p->beside && fl_client_commit(p->client, s->now))
            sim_fail(s, 'F', "%s", fl_errmsg());
    }
    if (p->beside)
        look_again(s, p);
    return p->beside;
}

void sim_proc_work(sim *s, int proc)
{
    sim_proc *p = &s->proc[proc];
    if (fl_client_now(p->client) != FL_CLIENT_READY)
        return; /* it was fenced: the batch is dropped */
    if (goes_on_beside(s, p))
        return;
    const int64_t made = s->positioned ? fl_client_steps(p->client) : p->steps;
    const int64_t at = s->job.async ? made : fl_client_round(p->client);
    if (at >= p->goal) {
        fl_client_leave(p->client, 0, NULL, s->now);
        return;
    }
    if (s->positioned && fl_client_position(p->client, "position"))
        sim_fail(s, 'F', "%s", fl_errmsg());
    const bool beside = s->positioned && s->job.async && sim_dice(s, 2);
    for (int j = 0; j < s->job.servers; j++)
        push_grads(s, p, j, beside || sim_dice(s, 2));
    p->steps++;
    if (beside)
        begin_beside(s, p);
    else if (fl_client_step(p->client, s->now))
        sim_fail(s, 'F', "%s", fl_errmsg());
}

void sim_proc_start(sim *s, int proc)
{
    sim_proc *p = &s->proc[proc];
    char who[32];
    if (p->client && p->rewound)
        sim_proc_die(s, proc);
    if (p->client)
        return;
    p->rewound = false;
    p->out.generation = 0;
    p->life++;
    p->steps = 0;
    p->finished = false;
    p->open = 0;
    p->app =
        (fl_app){p, fl_keeper_copies, on_values, on_ready, on_fenced, on_over};
    p->entropy = fl_entropy_fake(sim_dice(s, UINT64_MAX));
    p->misled = false;
    p->rank = -1;
    for (int j = 0; j < s->job.servers; j++) {
        p->seen[j] = -1;
        p->used[j] = 0;
    }
    snprintf(who, sizeof who, "proc%d.%d", proc, p->life);
    p->client =
        fl_client_new(&s->job, &p->app, p->id, who, &p->entropy, &p->out);
    fl_client_start(p->client, s->now);
    sim_at(s, 1 + (int64_t)sim_dice(s, 250 * FL_MS),
           (sim_event){.kind = SIM_TICK,
                       .party = sim_trainer(s, proc),
                       .life = p->life});
}

void sim_proc_die(sim *s, int proc)
{
    sim_proc *p = &s->proc[proc];
    fl_client_free(p->client);
    p->client = NULL;
    p->finished = true;
    fl_outbox_clear(&p->out);
}

static void init_proc(sim *s, int index, int id)
{
    sim_proc *p = &s->proc[index];
    *p = (sim_proc){.sim = s, .index = index, .id = id};
    p->goal = 1 + (int)sim_dice(s, (uint64_t)s->opts.rounds);
    p->restarts = 3;
    p->seen = fl_mem_alloc((size_t)s->job.servers * sizeof *p->seen);
    p->used = fl_mem_alloc((size_t)s->job.servers * sizeof *p->used);
    fl_outbox_init(&p->out);
    sim_at(s, (int64_t)sim_dice(s, 8 * FL_SEC),
           (sim_event){.kind = SIM_START, .party = sim_trainer(s, index)});
}

/* --- the job --- */

static int given_or_drawn(sim *s, int value, int least, int most)
{
    const int d = least + (int)sim_dice(s, (uint64_t)(most - least + 1));
    return value ? value : d;
}

void sim_party_init(sim *s)
{
    fl_sim_opts *o = &s->opts;
    const bool async = !sim_dice(s, 5);
    const int64_t rejoin[] = {-1, 0, PATIENCE, PATIENCE};
    o->rounds = given_or_drawn(s, o->rounds, 2, 14);
    s->every = sim_dice(s, 2) ? 0 : 1 + (int64_t)sim_dice(s, FL_SEC);
    s->job = fl_job_defaults(
        (fl_job){.id = {1, 2},
                 .servers = given_or_drawn(s, o->servers, 1, 3),
                 .trainers = given_or_drawn(s, o->trainers, 1, 5),
                 .async = o->async || (async && !o->sync),
                 .durability = sim_dice(s, 2) ? FL_PROCESS : FL_MEMORY,
                 .snapshots = s->every > 0,
                 .start = 120 * FL_SEC,
                 .rejoin = rejoin[sim_dice(s, 4)]});
    if (sim_dice(s, 2))
        s->job.hold = s->job.rejoin;
    o->any_id = !sim_dice(s, 8) || o->any_id;
    s->positioned = sim_dice(s, 2);
    s->procs = s->job.trainers + (!o->any_id && !sim_dice(s, 8));
    s->parties = s->job.servers + 1 + s->procs;
    s->asleep = fl_mem_alloc((size_t)s->parties * sizeof *s->asleep);
    s->cut = fl_mem_alloc((size_t)(s->parties * s->parties) * sizeof *s->cut);
    s->server = fl_mem_alloc((size_t)s->job.servers * sizeof *s->server);
    s->close = fl_mem_alloc((size_t)s->job.servers * sizeof *s->close);
    s->proc = fl_mem_alloc((size_t)s->procs * sizeof *s->proc);
    s->came = fl_mem_alloc((size_t)s->job.trainers * sizeof *s->came);
    s->lost_at = fl_mem_alloc((size_t)s->job.trainers * sizeof *s->lost_at);
    for (int i = 0; i < s->job.servers; i++)
        init_server(s, i, 0, 0);
    for (int i = 0; i < s->job.trainers; i++)
        init_proc(s, i, o->any_id ? FL_ANY_ID : i);
    if (s->procs > s->job.trainers)
        init_proc(s, s->job.trainers,
                  (int)sim_dice(s, (uint64_t)s->job.trainers));
}

void sim_party_fini(sim *s)
{
    for (int i = 0; i < s->job.servers; i++) {
        fini_server(s, i);
        sim_disk_fini(&s->server[i].disk);
        fl_msg_free(s->close[i]);
    }
    fl_mem_free(s->close);
    for (int i = 0; i < s->procs; i++) {
        fl_client_free(s->proc[i].client);
        fl_outbox_fini(&s->proc[i].out);
        fl_mem_free(s->proc[i].seen);
        fl_mem_free(s->proc[i].used);
    }
    for (int64_t i = 0; i < s->heap.n; i++)
        fl_msg_free(s->heap.at[i].msg);
    sim_forget_rounds(s);
    sim_snapshot_fini(s);
    fl_vec_fini(&s->heap);
    fl_vec_fini(&s->call);
    fl_vec_fini(&s->push);
    fl_vec_fini(&s->used);
    fl_vec_fini(&s->round);
    fl_vec_fini(&s->view);
    fl_vec_fini(&s->gone);
    fl_mem_free(s->server);
    fl_mem_free(s->proc);
    fl_mem_free(s->asleep);
    fl_mem_free(s->cut);
    fl_mem_free(s->came);
    fl_mem_free(s->lost_at);
}
