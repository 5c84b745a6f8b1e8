/* SPDX-License-Identifier: Apache-2.0 */
/* sim_fault.c - draws and carries out the faults of a simulated job. */
#include "protocol/sim_world.h"

void sim_fault_plan(sim *s)
{
    static const int drops[] = {0, 20, 100, 200}, twice[] = {0, 50, 200};
    static const int64_t delays[] = {2 * FL_MS, 50 * FL_MS, 2 * FL_SEC,
                                     6 * FL_SEC};
    fl_sim_weather w = s->opts.weather;
    if (w == FL_SIM_DRAWN)
        w = (fl_sim_weather)(FL_SIM_CALM + (sim_dice(s, 10) + 8) / 9 +
                             (sim_dice(s, 10) > 1));
    if (w > FL_SIM_STORM)
        w = FL_SIM_STORM;
    s->delay = 2 * FL_MS;
    s->storm_ends = (int64_t)sim_dice(s, 60 * FL_SEC) + 10 * FL_SEC;
    if (w == FL_SIM_CALM)
        return;
    s->drop = drops[sim_dice(s, 4)];
    s->twice = twice[sim_dice(s, 3)];
    s->delay = delays[sim_dice(s, 4)];
    s->storm = w == FL_SIM_STORM;
    sim_at(s, (int64_t)sim_dice(s, 10 * FL_SEC),
           (sim_event){.kind = SIM_FAULT});
    if (s->storm && !sim_dice(s, 6))
        sim_at(s, (int64_t)sim_dice(s, (uint64_t)s->storm_ends),
               (sim_event){.kind = SIM_REPLACE});
    if (!s->storm || s->job.durability == FL_MEMORY)
        return;
    s->crashes = (int)sim_dice(s, 5);
    for (uint64_t i = sim_dice(s, 4); i; i--)
        sim_at(s, (int64_t)sim_dice(s, (uint64_t)s->storm_ends),
               (sim_event){.kind = SIM_CRASH});
}

/* When a process dies, the kernel closes its connections. (When a host dies,
 * they stay open.) */
static void close_calls(sim *s, const sim_proc *p)
{
    for (int64_t i = 0; i < s->call.n; i++) {
        const sim_call *c = &s->call.at[i];
        if (c->proc == p->index && c->life == p->life &&
            (c->open ? p->open == (uint64_t)i + 1 : !c->answered))
            sim_at(s, (int64_t)sim_dice(s, 100 * FL_MS),
                   (sim_event){.kind = SIM_HANGUP,
                               .party = c->party,
                               .life = sim_life(s, c->party),
                               .number = (uint64_t)i + 1});
    }
}

static void maybe_restart(sim *s, sim_proc *p)
{
    if (p->restarts-- <= 0 || !sim_dice(s, 6)) {
        p->given_up = true;
        return;
    }
    p->finished = false;
    sim_at(s, (int64_t)sim_dice(s, 20 * FL_SEC),
           (sim_event){.kind = SIM_START, .party = sim_trainer(s, p->index)});
}

static void kill_one(sim *s, sim_proc *p)
{
    if (!p->client || p->finished)
        return;
    s->result->kills++;
    if (sim_dice(s, 2))
        close_calls(s, p);
    sim_proc_die(s, p->index);
    maybe_restart(s, p);
}

/* A trainer's program raises an exception: the process sends FAILED and ends
 * when that is acknowledged. */
static void fail_one(sim *s, sim_proc *p)
{
    if (!p->client || p->finished)
        return;
    fl_client_leave(p->client, 3, "division by zero", s->now);
    sim_drain(s, sim_trainer(s, p->index));
}

static void cut_link(sim *s)
{
    const int a = (int)sim_dice(s, (uint64_t)s->parties);
    const int b = (int)sim_dice(s, (uint64_t)s->job.servers);
    const int64_t until = s->now + (int64_t)sim_dice(s, 15 * FL_SEC);
    s->cut[a * s->parties + b] = until;
    if (sim_dice(s, 3)) /* otherwise cut one direction only */
        s->cut[b * s->parties + a] = until;
}

static void break_open_call(sim *s, sim_proc *p)
{
    if (!p->client || !p->open)
        return;
    sim_at(s, 1,
           (sim_event){.kind = SIM_HANGUP,
                       .party = sim_coord(s),
                       .life = sim_life(s, sim_coord(s)),
                       .number = p->open});
    sim_at(s, 1,
           (sim_event){.kind = SIM_BROKEN,
                       .party = sim_trainer(s, p->index),
                       .life = p->life});
    p->open = 0;
}

static void sleep_one(sim *s, int party, uint64_t longest)
{
    s->asleep[party] = s->now + (int64_t)sim_dice(s, longest);
}

/* Break all calls to a process that is killed. */
void sim_break_calls(sim *s, int server)
{
    for (int64_t i = 0; i < s->call.n; i++) {
        sim_call *c = &s->call.at[i];
        sim_proc *p = &s->proc[c->proc];
        if (sim_host(s, c->party) != server || c->gone)
            continue;
        c->gone = true;
        if (c->life != p->life || (c->answered && !c->open))
            continue;
        if (c->open && p->open == (uint64_t)i + 1)
            p->open = 0;
        sim_at(s, 1 + (int64_t)sim_dice(s, 100 * FL_MS),
               (sim_event){.kind = SIM_BROKEN,
                           .party = sim_trainer(s, c->proc),
                           .life = c->life,
                           .number = c->open ? 0 : c->tag});
    }
}

static void replace_one(sim *s, int server, int64_t down)
{
    if (s->server[server].left || (!server && s->coord_left))
        return;
    sim_break_calls(s, server);
    sim_server_replace(s, server);
    s->server[server].down_until = s->asleep[server] = s->now + down;
}

void sim_replace(sim *s)
{
    const bool all = sim_dice(s, 2);
    const int one = (int)sim_dice(s, (uint64_t)s->job.servers);
    const bool soon = s->every && sim_dice(s, 2);
    const int64_t down = (int64_t)sim_dice(s, soon ? 100 * FL_MS : 20 * FL_SEC);
    for (int i = 0; i < s->job.servers; i++)
        if (all || i == one)
            replace_one(s, i, down);
    if (all && s->every && !sim_dice(s, 3)) /* nobody knows the job any more */
        for (int i = 0; i < s->procs; i++)
            kill_one(s, &s->proc[i]);
}

static void crash_for(sim *s, int server, int64_t down)
{
    if (s->server[server].left || (!server && s->coord_left))
        return;
    sim_break_calls(s, server);
    sim_server_crash(s, server, down);
    s->server[server].down_until = s->asleep[server] = s->now + down;
}

void sim_crash_one(sim *s, int server)
{
    crash_for(s, server, (int64_t)sim_dice(s, 15 * FL_SEC));
}

/* Sometimes everything is killed. */
void sim_crash(sim *s)
{
    const bool all = !sim_dice(s, 3);
    const int one = (int)sim_dice(s, (uint64_t)s->job.servers);
    const int64_t down = (int64_t)sim_dice(s, 20 * FL_SEC);
    for (int i = 0; i < s->job.servers; i++)
        if (all || i == one)
            crash_for(s, i, down);
    if (all && !sim_dice(s, 3))
        for (int i = 0; i < s->procs; i++)
            kill_one(s, &s->proc[i]);
}

static void strike_once(sim *s)
{
    const int n = (int)sim_dice(s, (uint64_t)s->procs);
    sim_proc *p = &s->proc[n];
    switch (sim_dice(s, 11)) {
    case 10: /* all trainers die at once */
        for (int i = 0; i < s->procs; i++)
            kill_one(s, &s->proc[i]);
        break;
    case 0:
    case 1:
    case 2:
        kill_one(s, p);
        break;
    case 3:
    case 4:
        sleep_one(s, sim_trainer(s, n), 25 * FL_SEC);
        break;
    case 5:
        sleep_one(s, (int)sim_dice(s, (uint64_t)s->job.servers), 15 * FL_SEC);
        break;
    case 6:
        if (!sim_dice(s, 3))
            fail_one(s, p);
        break;
    case 7:
        break_open_call(s, p);
        break;
    default:
        cut_link(s);
    }
}

void sim_fault(sim *s)
{
    if (s->now >= s->storm_ends) { /* no more faults: the job must end now */
        s->drop = s->twice = 0;
        s->delay = 2 * FL_MS;
        return;
    }
    if (s->storm)
        strike_once(s);
    sim_at(s, (int64_t)sim_dice(s, 8 * FL_SEC), (sim_event){.kind = SIM_FAULT});
}
