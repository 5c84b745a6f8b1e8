/* SPDX-License-Identifier: Apache-2.0 */
/* sim.c - what a seed determines, what a simulated rank does, and what is
 * checked. */
#include "collective/sim.h"

#include "base/clock.h"
#include "collective/reducer.h"
#include "net/sim_net.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS = 5,
    STEPS = 4,
    VALUES = 7,
    TEXT = 1024,
};

#define JOIN_LIMIT (30 * FL_SEC)
#define WAIT_LIMIT (20 * FL_SEC)
#define RUN_LIMIT  (400 * FL_SEC) /* no run takes that long unless it hangs */
#define LATE       (9 * FL_SEC)   /* by now all have heard who is late */

static const char *const fault_names[] = {
    "no fault",    "stopped",      "cut off",       "strangers",
    "killed",      "hung",         "lost",          "a connection is cut",
    "raises",      "leaves early", "skips a value", "another world",
    "another key", "twice",
};

typedef struct sim sim;

/* One rank and its result. */
typedef struct rank {
    sim *of;
    int number;
    bool joined, all_done;
    int64_t wrong; /* wrong numbers in its results */
    fl_err err;
    int64_t ended_at;
    char sentence[TEXT], late[TEXT];
    bool named_wrongly; /* it reported a rank as late that was not late */
    fl_value value[VALUES];
    bool pending[VALUES];
} rank;

struct sim {
    sim_net *net;
    uint64_t seed;
    int ranks, processes; /* SIM_TWICE has one process more */
    int steps;
    int count[STEPS];            /* values of a step */
    int64_t size[STEPS][VALUES]; /* elements */
    int64_t pause[STEPS];        /* longest pause of a rank before a step */
    sim_fault fault;
    int victim, other; /* with SIM_CUT: `other` is the rank at the other end */
    int fault_step;    /* step of a fault that happens in the program */
    int64_t fault_at, heals_at;
    bool keyed;
    bool struck; /* the fault has happened */
    rank rank[SIM_PROCESSES];
    const char *endpoints[SIM_PROCESSES + 1];
    fl_str *report;
    bool broken;
};

static bool ends_the_job(sim_fault f)
{
    return f >= SIM_KILLED;
}

static int64_t draw(sim *s, int64_t below)
{
    return (int64_t)sim_net_dice(s->net, (uint64_t)below);
}

/* --- what a rank does ----------------------------------------------------- */

static bool is_stopped(void *user)
{
    const rank *r = user;
    return sim_net_killed(r->of->net, (int)(r - r->of->rank));
}

static bool names_rank(const char *sentence, int number)
{
    char name[20];
    const int n = snprintf(name, sizeof name, "rank %d", number);
    for (const char *at = sentence; (at = strstr(at, name)); at++)
        if (at[n] < '0' || at[n] > '9')
            return true;
    return false;
}

/* F: whoever has waited for long names the rank that is stopped. */
static void note_late(void *user, const char *sentence)
{
    rank *r = user;
    const char *waited = strstr(sentence, "has waited ");
    snprintf(r->late, TEXT, "%s", sentence);
    if (r->of->fault != SIM_HUNG || !r->of->struck || !r->joined || !waited)
        return;
    if (atof(waited + strlen("has waited ")) * (double)FL_SEC > (double)LATE &&
        r->number != r->of->victim && !names_rank(sentence, r->of->victim))
        r->named_wrongly = true;
}

static float input_of(int number, int step, int value, int64_t i)
{
    return (float)((i + 3 * step + value) % 7 + number);
}

static float sum_of(const sim *s, int step, int value, int64_t i)
{
    float sum = 0;
    for (int k = 0; k < s->ranks; k++)
        sum += input_of(k, step, value, i);
    return sum;
}

static fl_err fill_value(rank *r, int step, int value)
{
    const int64_t n = r->of->size[step][value];
    fl_value *v = &r->value[value];
    v->kind = FL_LOD_TENSOR;
    FL_TRY(fl_tensor_resize(&v->tensor, FL_F32, &(fl_shape){1, {n}}));
    for (int64_t i = 0; i < n; i++)
        ((float *)v->tensor.data)[i] = input_of(r->number, step, value, i);
    return FL_OK;
}

/* This rank is the one whose program goes wrong now. */
static bool strays(const rank *r, sim_fault f, int step)
{
    sim *s = r->of;
    const bool now =
        s->fault == f && r->number == s->victim && step == s->fault_step;
    s->struck |= now;
    return now;
}

static fl_err run_step(rank *r, fl_backend *b, fl_reducer *reducer, int step)
{
    const sim *s = r->of;
    const bool skips = strays(r, SIM_SKIPS, step);
    sim_net_sleep(s->net, draw(r->of, s->pause[step]));
    for (int i = skips; i < s->count[step]; i++) {
        FL_TRY(fill_value(r, step, i));
        FL_TRY(fl_reducer_add(reducer,
                              &(fl_reduction){.how = FL_REDUCE_SUM,
                                              .var = "w@GRAD",
                                              .value = &r->value[i],
                                              .pending = &r->pending[i]}));
    }
    FL_TRY(fl_reducer_wait(reducer, is_stopped, r));
    for (int i = skips; i < s->count[step]; i++)
        for (int64_t k = 0; k < s->size[step][i]; k++)
            r->wrong +=
                ((float *)r->value[i].tensor.data)[k] != sum_of(s, step, i, k);
    float root = (float)r->number;
    FL_TRY(b->broadcast(b->self, step % s->ranks, &root, sizeof root));
    r->wrong += root != (float)(step % s->ranks);
    return FL_OK;
}

static fl_err run_steps(rank *r, fl_backend *b)
{
    const sim *s = r->of;
    fl_reducer *reducer = fl_reducer_new(b, s->ranks, r->number, false);
    fl_err err = FL_OK;
    int step = 0;
    for (; !err && step < s->steps && !strays(r, SIM_LEAVES, step); step++) {
        if (strays(r, SIM_RAISES, step)) {
            b->fail(b->self, "ValueError: a wrong number");
            err = fl_fail(FL_EINVAL, "rank %d raises", r->number);
        }
        if (!err)
            err = run_step(r, b, reducer, step);
    }
    const fl_sentence why = fl_sentence_keep();
    fl_reducer_free(reducer);
    fl_sentence_restore(&why);
    r->all_done = step == s->steps;
    return err;
}

static void run_rank(void *user, int i)
{
    sim *s = user;
    rank *r = &s->rank[i];
    const bool other = s->fault == SIM_OTHER_KEY && i == s->victim;
    const bool more = s->fault == SIM_OTHER_WORLD && i == s->victim;
    fl_backend b;
    r->err = fl_backend_ring(
        &(fl_mesh_opts){.endpoints = s->endpoints,
                        .world = s->ranks + more,
                        .rank = r->number,
                        .key = other ? "another key" : "the key",
                        .key_size = s->keyed ? other ? 11 : 7 : 0,
                        .listener = sim_net_listener(s->net, i),
                        .no_sharing = true,
                        .join_timeout = JOIN_LIMIT,
                        .timeout = WAIT_LIMIT,
                        .poll = is_stopped,
                        .late = note_late,
                        .user = r},
        &b);
    r->joined = !r->err;
    if (!r->err)
        r->err = run_steps(r, &b);
    if (r->err)
        snprintf(r->sentence, TEXT, "%s", fl_errmsg());
    if (r->joined)
        b.free(b.self);
    for (int k = 0; k < VALUES; k++)
        fl_value_fini(&r->value[k]);
    r->ended_at = sim_net_now(s->net);
}

/* --- what a seed draws ---------------------------------------------------- */

static void strike(void *user)
{
    sim *s = user;
    s->struck = true;
    switch (s->fault) {
    case SIM_KILLED:
        sim_net_kill(s->net, s->victim);
        break;
    case SIM_STOPPED:
    case SIM_HUNG:
        sim_net_stop(s->net, s->victim, s->heals_at);
        break;
    case SIM_CUT_OFF:
    case SIM_LOST:
        sim_net_isolate(s->net, s->victim, s->heals_at);
        break;
    case SIM_CUT:
        s->other = sim_net_cut(s->net, s->victim);
        break;
    case SIM_STRANGERS:
        for (int i = 0; i < 3; i++)
            sim_net_stranger(s->net, (int)draw(s, s->ranks),
                             (size_t)draw(s, 400));
        break;
    default:
        break;
    }
}

static void draw_program(sim *s)
{
    s->steps = 1 + (int)draw(s, STEPS);
    for (int i = 0; i < s->steps; i++) {
        s->count[i] = 1 + (int)draw(s, VALUES);
        s->pause[i] = 1 + draw(s, draw(s, 2) ? FL_SEC : FL_MS);
        const int64_t large = draw(s, 2) ? 16000 : 300; /* elements */
        for (int k = 0; k < s->count[i]; k++)
            s->size[i][k] = 1 + draw(s, draw(s, 8) ? large : 30000);
    }
}

static void draw_fault(sim *s)
{
    s->fault = (sim_fault)draw(s, SIM_FAULTS);
    s->victim = s->other = (int)draw(s, s->ranks);
    s->fault_step = (int)draw(s, s->steps);
    s->fault_at = FL_SEC + draw(s, 4 * FL_SEC);
    s->heals_at = s->fault_at + 1 + draw(s, 4 * FL_SEC);
    s->keyed = s->fault == SIM_OTHER_KEY || draw(s, 2);
    s->processes = s->ranks + (s->fault == SIM_TWICE);
    if (s->fault == SIM_HUNG)
        s->heals_at = s->fault_at + WAIT_LIMIT + draw(s, 60 * FL_SEC);
    if (s->fault == SIM_LOST)
        s->heals_at = INT64_MAX;
    if (s->fault == SIM_TWICE && !s->victim)
        s->victim = 1; /* ranks connect to lower ranks, so no rank would meet a
                          second rank 0 */
}

static sim *new_sim(uint64_t seed, fl_str *report)
{
    static const int64_t delays[] = {50000, 2 * FL_MS, 100 * FL_MS,
                                     400 * FL_MS};
    static const size_t windows[] = {900, 8 << 10, 200 << 10};
    sim *s = fl_mem_alloc(sizeof *s);
    fl_entropy e = fl_entropy_fake(seed + 77);
    s->seed = seed;
    s->report = report;
    s->ranks = 2 + (int)(e.draw(&e) % (RANKS - 1));
    s->net = sim_net_new(&(sim_net_opts){
        .seed = seed,
        .processes = s->ranks + 1,
        .delay = delays[e.draw(&e) % 4],
        .window = windows[e.draw(&e) % 3],
        .cores = e.draw(&e) % 2 ? 64 : 0,
        .limit = RUN_LIMIT,
    });
    draw_program(s);
    draw_fault(s);
    for (int i = 0; i <= s->ranks; i++)
        s->endpoints[i] = sim_net_endpoint(s->net, i);
    for (int i = 0; i <= s->ranks; i++) {
        s->rank[i].of = s;
        s->rank[i].number = i < s->ranks ? i : s->victim;
        if (i < s->processes)
            sim_net_start(s->net, i, FL_SEC + draw(s, 2 * FL_SEC), run_rank, s);
        else
            sim_net_kill(s->net, i);
    }
    if (s->fault < SIM_RAISES)
        sim_net_at(s->net, s->fault_at, strike, s);
    else
        s->struck = s->fault >= SIM_OTHER_WORLD;
    return s;
}

/* --- what must hold ------------------------------------------------------- */

static void fail_sim(sim *s, char letter, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void fail_sim(sim *s, char letter, const char *fmt, ...)
{
    va_list args;
    char text[2 * TEXT];
    if (s->broken)
        return;
    s->broken = true;
    fl_str_printf(s->report, "seed %llu breaks %c (%s, rank %d, at %.3f s): ",
                  (unsigned long long)s->seed, letter, fault_names[s->fault],
                  s->victim, (double)s->fault_at / (double)FL_SEC);
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fl_str_add(s->report, text);
    for (int i = 0; i < s->processes; i++) {
        const rank *r = &s->rank[i];
        fl_str_printf(s->report, "\n  rank %d at %.3f s: error %d %s%s",
                      r->number, (double)r->ended_at / (double)FL_SEC, r->err,
                      r->sentence, r->joined ? "" : " (never joined)");
    }
    fl_str_add(s->report, "\n");
}

/* A rank that never met the others can only say who was not there. */
static bool names_one_that_ended(const sim *s, const rank *r)
{
    for (int i = 0; i < s->ranks; i++)
        if (sim_net_ended(s->net, i) && s->rank[i].ended_at <= r->ended_at &&
            names_rank(r->sentence, i))
            return true;
    return false;
}

static bool names_the_cause(const sim *s, const rank *r)
{
    /* Where each of two has met some ranks, ranks wait in a circle. */
    if (s->fault == SIM_TWICE && strstr(r->sentence, "has waited"))
        return true;
    return names_rank(r->sentence, s->victim) ||
           (s->other >= 0 && names_rank(r->sentence, s->other)) ||
           (!r->joined && names_one_that_ended(s, r));
}

static void check_rank(sim *s, int i)
{
    const rank *r = &s->rank[i];
    const bool may_fail = ends_the_job(s->fault) && s->struck;
    if (sim_net_killed(s->net, i))
        return;
    if (r->wrong && !r->err)
        fail_sim(s, 'A', "rank %d has %lld wrong numbers", r->number,
                 (long long)r->wrong);
    if (r->err && !may_fail)
        fail_sim(s, 'B', "rank %d fails", r->number);
    if (r->err && r->number != s->victim && !names_the_cause(s, r))
        fail_sim(s, 'C', "rank %d does not name the cause", r->number);
    if (!r->err && !r->all_done && r->number != s->victim)
        fail_sim(s, 'C', "rank %d ends early without an error", r->number);
    if (!r->err && s->fault >= SIM_LEAVES && s->fault <= SIM_OTHER_KEY &&
        s->struck && r->number != s->victim)
        fail_sim(s, 'C', "rank %d does not notice", r->number);
    if (sim_net_left_open(s->net, i))
        fail_sim(s, 'E', "rank %d leaves %d descriptors open", r->number,
                 sim_net_left_open(s->net, i));
    if (r->named_wrongly)
        fail_sim(s, 'F', "rank %d says: %s", r->number, r->late);
}

bool sim_run(uint64_t seed, sim_result *result, fl_str *report)
{
    sim *s = new_sim(seed, report);
    if (!sim_net_run(s->net))
        fail_sim(s, 'D', "not all ranks have ended");
    for (int i = 0; i < s->processes; i++)
        check_rank(s, i);
    *result = (sim_result){.ok = !s->broken,
                           .trace = sim_net_trace(s->net),
                           .events = sim_net_events(s->net),
                           .fault = s->fault,
                           .ended_well = true};
    for (int i = 0; i < s->ranks; i++)
        result->ended_well &= !s->rank[i].err;
    sim_net_free(s->net);
    fl_mem_free(s);
    return result->ok;
}
