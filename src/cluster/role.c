/* SPDX-License-Identifier: Apache-2.0 */
/* role.c - makes a role from arguments and environment variables.
 *
 * Each setting has a list of variables, in the order in which they are read; if
 * several are set, they must agree. If no list of endpoints is set, endpoints
 * are made from a list of hosts and a port:
 *
 *     role        TRAINING_ROLE  PADDLE_TRAINING_ROLE
 *     trainer id  PADDLE_TRAINER_ID  TRAINER_ID  PADDLE_INIT_TRAINER_ID
 *     trainers    PADDLE_TRAINERS_NUM  PADDLE_TRAINERS  TRAINERS ...
 *     servers     PADDLE_PSERVERS_IP_PORT_LIST  PADDLE_PSERVER_ENDPOINTS
 *                 PSERVERS, or PADDLE_PSERVERS x PADDLE_PORT ...
 *     own server  PADDLE_CURRENT_ENDPOINT  CURRENT_ENDPOINT  SERVER_ENDPOINT,
 *                 or POD_IP x PADDLE_PORT ... */
#include "cluster/role.h"

#include "base/arena.h"
#include "base/endpoint.h"
#include "base/flag.h"
#include "base/str.h"
#include "base/vec.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define DEFAULT "default"
#define PREFIX  "PADDLE_"
#define SETTING "FLUID_"

typedef const char *const names[7];

static names role_names = {"TRAINING_ROLE", "PADDLE_TRAINING_ROLE"};
static names id_names = {"PADDLE_TRAINER_ID", "TRAINER_ID",
                         "PADDLE_INIT_TRAINER_ID"};
static names trainers_names = {"PADDLE_TRAINERS_NUM",
                               "PADDLE_TRAINERS",
                               "TRAINERS",
                               "PADDLE_INIT_NUM_GRADIENT_SERVERS",
                               "VC_TRAINER_NUM",
                               "VC_WORKER_NUM"};
/* Volcano's number of a pod among those of its task. */
static names task_names = {"VC_TASK_INDEX", "VK_TASK_INDEX"};
static names servers_names = {"PADDLE_PSERVERS_IP_PORT_LIST",
                              "PADDLE_PSERVER_ENDPOINTS", "PSERVERS"};
static names own_names = {"PADDLE_CURRENT_ENDPOINT", "CURRENT_ENDPOINT",
                          "SERVER_ENDPOINT"};
static names peers_names = {"PADDLE_TRAINER_ENDPOINTS"};

/* Variables that mpirun (OpenMPI, MPICH) and srun set. They are read for
 * trainers without servers if no other variable has the trainer id. */
static const struct {
    const char *rank, *ranks;
} mpi_names[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

/* The variable with hosts, and the variable with their port or ports. */
typedef struct pair {
    const char *hosts, *port; /* hosts NULL ends a list */
    const char *usual;        /* default port; NULL: none */
} pair;

static const pair server_pairs[] = {
    {"PADDLE_PSERVERS", "PADDLE_PORT", "6174"},
    {"PADDLE_PSERVER_IPS", "PADDLE_PSERVER_PORT", "6174"},
    {"PADDLE_INIT_PSERVERS", "PADDLE_INIT_PORT", "7164"},
    {"VC_PSERVER_HOSTS", "PADDLE_PORT", "6174"}, /* Volcano: tasks "pserver" */
    {"VC_PS_HOSTS", "PADDLE_PORT", "6174"},      /* or "ps" */
    {0},
};
static const pair own_pairs[] = {
    {"POD_IP", "PADDLE_PORT", NULL},
    {"PADDLE_CURRENT_IP", "PADDLE_PSERVER_PORT", NULL},
    {"PADDLE_CURRENT_IP", "PADDLE_PORT", NULL},
    {"POD_IP", "PADDLE_PSERVER_PORT", NULL},
    {"PADDLE_CURRENT_IP", NULL, "6174"},
    {0},
};
static const pair peer_pairs[] = {
    {"PADDLE_TRAINER_IPS", "PADDLE_PSERVER_PORT", "6174"},
    {0},
};

/* Wrong names that people use, and the right ones. These differ too much to be
 * found as misspellings, or do not begin with PADDLE_. */
static const struct {
    const char *wrong, *right;
} misses[] = {
    {"PADDLE_TRAINER_ROLE", "PADDLE_TRAINING_ROLE"},
    {"PADDLE_ROLE", "PADDLE_TRAINING_ROLE"},
    {"TRAINER_ROLE", "TRAINING_ROLE"},
    {"PADDLE_TRAINER_COUNT", "PADDLE_TRAINERS"},
    {"TRIANERS", "TRAINERS"},
};

/* State while a role is made. */
typedef struct making {
    fl_role *r;
    const fl_role_args *args;
    const fl_env *env;
    fl_arena *arena;
    FL_VEC(const char *) notes;
} making;

/* A setting and the name of its source; at NULL: it is not set. */
typedef struct found {
    const char *at, *source;
} found;

typedef struct list {
    const char **at;
    int n;
} list;

static const char *real(void *user, const char *name)
{
    return getenv(name);
}

/* --- texts --- */

/* The text without spaces around it; NULL if it is empty. */
static const char *stripped(fl_arena *a, const char *text, size_t n)
{
    while (n && isspace((unsigned char)*text))
        text++, n--;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    return n ? fl_arena_printf(a, "%.*s", (int)n, text) : NULL;
}

static const char *get_text(const making *m, const char *name)
{
    const char *text = name ? m->env->get(m->env->user, name) : NULL;
    return text ? stripped(m->arena, text, strlen(text)) : NULL;
}

static list split_list(const making *m, const char *text)
{
    list l = {fl_arena_alloc(m->arena, (strlen(text) + 1) * sizeof(char *)), 0};
    while (*text) {
        const size_t n = strcspn(text, ",");
        const char *item = stripped(m->arena, text, n);
        if (item)
            l.at[l.n++] = item;
        text += n + (text[n] == ',');
    }
    return l;
}

static const char *join_list(const making *m, const list *l)
{
    fl_str s = {0};
    for (int i = 0; i < l->n; i++)
        fl_str_printf(&s, "%s%s", i ? ", " : "", l->at[i]);
    const char *text = fl_arena_strdup(m->arena, s.at ? s.at : "");
    fl_str_fini(&s);
    return text;
}

/* Whether two settings are equal. Spaces and case are ignored. */
static bool agree(const making *m, const char *a, const char *b)
{
    const list x = split_list(m, a), y = split_list(m, b);
    for (int i = 0; i < x.n && i < y.n; i++)
        if (strcasecmp(x.at[i], y.at[i]))
            return false;
    return x.n == y.n;
}

/* The argument, or the first variable that is set. `label` names the argument
 * in error messages. */
static fl_err find_setting(const making *m, const char *label, const char *arg,
                           names all, found *out)
{
    *out = (found){arg ? stripped(m->arena, arg, strlen(arg)) : NULL, label};
    if (out->at)
        return FL_OK;
    for (int i = 0; all[i]; i++) {
        const char *text = get_text(m, all[i]);
        if (text && out->at && !agree(m, text, out->at))
            return fl_fail(FL_EINVAL,
                           "%s is \"%s\", but %s is \"%s\"; unset one of them",
                           out->source, out->at, all[i], text);
        if (text && !out->at)
            *out = (found){text, all[i]};
    }
    return FL_OK;
}

static fl_err read_number(const found *f, int *out)
{
    char *end;
    const long n = strtol(f->at, &end, 10);
    if (end == f->at || *end || n < 0 || n > 1000000)
        return fl_fail(
            FL_EINVAL,
            "%s is \"%s\", expected a whole number from 0 to 1000000",
            f->source, f->at);
    *out = (int)n;
    return FL_OK;
}

/* --- endpoints --- */

/* ":6174" of "ps0:6174" or "[::1]:6174"; NULL: there is none. An address such
 * as "::1" has colons, but no port. */
static const char *port_of(const char *endpoint)
{
    const char *colon = strrchr(endpoint, ':');
    if (!colon || !colon[1] || (colon > endpoint && colon[-1] == ':'))
        return NULL;
    return strchr(endpoint, ':') == colon || colon[-1] == ']' ? colon : NULL;
}

static void note(making *m, const char *sentence)
{
    fl_push(&m->notes, sentence);
}

/* Entries without a port get the port that all other entries have. */
static fl_err complete(making *m, list *l, const char *source)
{
    const char *port = NULL;
    for (int i = 0; i < l->n; i++) {
        const char *p = port_of(l->at[i]);
        if (p && port && strcmp(p, port))
            port = ""; /* they differ */
        else if (p && !port)
            port = p;
    }
    for (int i = 0; i < l->n; i++) {
        if (port_of(l->at[i]))
            continue;
        if (!port || !*port)
            return fl_fail(FL_EINVAL,
                           "%s: \"%s\" has no port, expected host:port", source,
                           l->at[i]);
        note(m, fl_arena_printf(m->arena,
                                "%s: \"%s\" has no port, it gets %s as the "
                                "others have",
                                source, l->at[i], port + 1));
        l->at[i] = fl_arena_printf(m->arena, "%s%s", l->at[i], port);
    }
    return FL_OK;
}

static fl_err check_list(const making *m, const list *l, const char *source)
{
    const char *what = fl_arena_printf(m->arena, "%s: ", source);
    for (int i = 0; i < l->n; i++) {
        FL_TRY(fl_endpoint_check(l->at[i], what));
        for (int k = 0; k < i; k++)
            if (!strcmp(l->at[i], l->at[k]))
                return fl_fail(FL_EINVAL, "%s: %s is listed twice", source,
                               l->at[i]);
    }
    return FL_OK;
}

/* Make endpoints of hosts with one port for all, or with one port each. */
static fl_err combine(const making *m, const pair *p, const char *hosts,
                      list *out, const char **source)
{
    const char *set = get_text(m, p->port);
    const list ports = split_list(m, set ? set : p->usual ? p->usual : "");
    *out = split_list(m, hosts);
    *source = set ? fl_arena_printf(m->arena, "%s and %s", p->hosts, p->port)
                  : p->hosts;
    if (ports.n > 1 && ports.n != out->n)
        return fl_fail(FL_EINVAL, "%s has %d ports, but %s has %d hosts",
                       p->port, ports.n, p->hosts, out->n);
    for (int i = 0; i < out->n && ports.n; i++)
        if (!port_of(out->at[i]))
            out->at[i] = fl_arena_printf(m->arena, "%s:%s", out->at[i],
                                         ports.at[ports.n > 1 ? i : 0]);
    return FL_OK;
}

/* Find a list of endpoints, which is set as such or as hosts and ports. */
static fl_err find_list(making *m, const char *arg, names whole,
                        const pair *pairs, list *out, const char **source)
{
    found f;
    *out = (list){0};
    FL_TRY(find_setting(m, "argument endpoints", arg, whole, &f));
    if (f.at) {
        *out = split_list(m, f.at);
        *source = f.source;
    }
    for (; !f.at && pairs->hosts && !out->n; pairs++) {
        const char *hosts = get_text(m, pairs->hosts);
        if (hosts)
            FL_TRY(combine(m, pairs, hosts, out, source));
    }
    FL_TRY(complete(m, out, *source ? *source : ""));
    return check_list(m, out, *source ? *source : "");
}

static bool has_host(const char *endpoint, const char *host)
{
    const char *port = port_of(endpoint);
    const size_t n = port ? (size_t)(port - endpoint) : strlen(endpoint);
    return strlen(host) == n && !strncmp(endpoint, host, n);
}

/* The only endpoint of the list with this host; NULL: none, or several. */
static const char *only_with_host(const list *l, const char *host)
{
    const char *one = NULL;
    for (int i = 0; i < l->n; i++)
        if (has_host(l->at[i], host)) {
            if (one)
                return NULL;
            one = l->at[i];
        }
    return one;
}

static bool is_in(const list *l, const char *text)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->at[i], text))
            return true;
    return false;
}

/* Find the endpoint with a host and a port that are both set. */
static bool find_exact(const making *m, const pair *p, const list *all,
                       found *out)
{
    const char *host = get_text(m, p->hosts), *port = get_text(m, p->port);
    if (!host)
        return false;
    const char *whole =
        port ? fl_arena_printf(m->arena, "%s:%s", host, port) : host;
    if (!is_in(all, whole))
        return false;
    *out = (found){whole, p->hosts};
    if (port)
        out->source = fl_arena_printf(m->arena, "%s and %s", p->hosts, p->port);
    return true;
}

/* Find the only endpoint with a host that is set, whatever its port. */
static bool find_by_host(making *m, const pair *p, const list *all, found *out)
{
    const char *host = get_text(m, p->hosts), *port = get_text(m, p->port);
    const char *one = host ? only_with_host(all, host) : NULL;
    if (!one)
        return false;
    if (port && !strchr(port, ',')) /* it is no list of all ports */
        note(m, fl_arena_printf(
                    m->arena, "%s is %s, but this %s is %s", p->port, port,
                    m->r->duty == FL_DUTY_TRAINER ? "trainer" : "server", one));
    *out = (found){one, p->hosts};
    return true;
}

/* The host of a pair is set, but chooses no endpoint. */
static fl_err fail_own(const making *m, const pair *p, const list *all)
{
    const char *host = get_text(m, p->hosts), *port = get_text(m, p->port);
    bool known = false;
    for (int i = 0; i < all->n; i++)
        known |= has_host(all->at[i], host);
    if (known && port && !strchr(port, ','))
        return fl_fail(
            FL_EINVAL, "%s is \"%s\" and %s is %s, but %s:%s is not one of %s",
            p->hosts, host, p->port, port, host, port, join_list(m, all));
    if (known)
        return fl_fail(FL_EINVAL,
                       "%s is \"%s\", the host of more than one of %s; set %s",
                       p->hosts, host, join_list(m, all), own_names[0]);
    return fl_fail(FL_EINVAL, "%s is \"%s\", which is not one of %s", p->hosts,
                   host, join_list(m, all));
}

/* Find which endpoint of `all` is this process. */
static fl_err find_own(making *m, const list *all, found *out)
{
    FL_TRY(find_setting(m, "argument endpoint", m->args->endpoint, own_names,
                        out));
    if (out->at && !port_of(out->at)) {
        const char *full = only_with_host(all, out->at);
        out->at = full ? full : out->at;
    }
    if (out->at && !is_in(all, out->at))
        return fl_fail(FL_EINVAL, "%s is \"%s\", which is not one of %s",
                       out->source, out->at, join_list(m, all));
    for (const pair *p = own_pairs; !out->at && p->hosts; p++)
        (void)find_exact(m, p, all, out);
    for (const pair *p = own_pairs; !out->at && p->hosts; p++)
        (void)find_by_host(m, p, all, out);
    for (const pair *p = own_pairs; !out->at && p->hosts; p++)
        if (get_text(m, p->hosts))
            return fail_own(m, p, all);
    return FL_OK;
}

/* --- the role --- */

static fl_err read_role(making *m, const found *f)
{
    if (!strcasecmp(f->at, "TRAINER"))
        m->r->duty = FL_DUTY_TRAINER;
    else if (!strcasecmp(f->at, "PSERVER"))
        m->r->duty = FL_DUTY_PSERVER;
    else
        return fl_fail(FL_EINVAL, "%s is \"%s\", expected TRAINER or PSERVER",
                       f->source, f->at);
    m->r->source.duty = f->source;
    return FL_OK;
}

/* Scripts of 2018 set -1 if there is no id. A server ignores it. */
static bool is_no_id(const found *role, const found *id)
{
    return role->at && !strcasecmp(role->at, "PSERVER") && id->at &&
           !strcmp(id->at, "-1");
}

static fl_err read_counts(making *m, const found *role)
{
    fl_role *r = m->r;
    found id, n;
    FL_TRY(find_setting(m, "argument trainer_id", m->args->trainer_id, id_names,
                        &id));
    if (is_no_id(role, &id))
        id.at = NULL;
    FL_TRY(find_setting(m, "argument trainers", m->args->trainers,
                        trainers_names, &n));
    r->trainers = 1;
    r->source.trainer_id = id.at ? id.source : DEFAULT;
    r->source.trainers = n.at ? n.source : DEFAULT;
    if (id.at)
        FL_TRY(read_number(&id, &r->trainer_id));
    if (n.at)
        FL_TRY(read_number(&n, &r->trainers));
    if (n.at && !r->trainers)
        return fl_fail(FL_EINVAL, "%s is 0, expected 1 or more", n.source);
    if (n.at && r->trainer_id >= r->trainers)
        return fl_fail(FL_EINVAL, "%s is %d, but %s is %d: ids go from 0 to %d",
                       r->source.trainer_id, r->trainer_id, n.source,
                       r->trainers, r->trainers - 1);
    return FL_OK;
}

static void keep_list(making *m, const list *l, const char *source)
{
    m->r->n_endpoints = l->n;
    m->r->endpoints = l->at;
    m->r->source.endpoints = source;
}

/* The error for a role without servers. Often only the port is set and the
 * hosts are missing. */
static fl_err fail_without_servers(const making *m, const found *role)
{
    for (const pair *p = server_pairs; p->hosts; p++)
        if (get_text(m, p->port))
            return fl_fail(FL_EINVAL,
                           "%s is %s and %s is %s, but no servers are named; "
                           "set %s=host,host",
                           role->source, role->at, p->port,
                           get_text(m, p->port), p->hosts);
    return fl_fail(FL_EINVAL,
                   "%s is %s, but no servers are named; set "
                   "PADDLE_PSERVER_ENDPOINTS=host:port,host:port",
                   role->source, role->at);
}

/* The number of this pod where Volcano names the servers; task.at NULL: it does
 * not. */
static fl_err find_task(const making *m, const char *source, int pods,
                        found *task, int *index)
{
    *task = (found){0};
    if (!source || !fl_starts_with(source, "VC_"))
        return FL_OK;
    FL_TRY(find_setting(m, "", NULL, task_names, task));
    if (!task->at)
        return FL_OK;
    FL_TRY(read_number(task, index));
    if (*index >= pods)
        return fl_fail(FL_EINVAL,
                       "%s is %d, but the task has %d pods, expected 0 to %d",
                       task->source, *index, pods, pods - 1);
    return FL_OK;
}

static fl_err with_servers(making *m, const found *role, const list *servers,
                           const char *source)
{
    fl_role *r = m->r;
    found own;
    r->mode = FL_MODE_PSERVER;
    if (role->at)
        FL_TRY(read_role(m, role));
    if (!servers->n)
        return fail_without_servers(m, role);
    keep_list(m, servers, source);
    if (!role->at) {
        r->duty = FL_DUTY_TRAINER;
        r->source.duty = DEFAULT;
        note(m, "servers are named, but no role is set: this is a TRAINER");
    }
    found task;
    int index = 0;
    FL_TRY(find_task(m, source,
                     r->duty == FL_DUTY_TRAINER ? r->trainers : servers->n,
                     &task, &index));
    if (r->duty == FL_DUTY_TRAINER) {
        if (task.at && !strcmp(r->source.trainer_id, DEFAULT)) {
            r->trainer_id = index;
            r->source.trainer_id = task.source;
        }
        if (r->trainers > 1 && !strcmp(r->source.trainer_id, DEFAULT))
            note(m, fl_arena_printf(m->arena,
                                    "%s is not set: this is trainer 0 of %d",
                                    id_names[0], r->trainers));
        if (r->trainer_id >= r->trainers) /* their number is not set */
            note(m, fl_arena_printf(m->arena,
                                    "%s is %d, but %s is not set: the job has "
                                    "more trainers than the default of 1",
                                    r->source.trainer_id, r->trainer_id,
                                    trainers_names[0]));
        return FL_OK;
    }
    FL_TRY(find_own(m, servers, &own));
    if (!own.at && task.at)
        own = (found){servers->at[index], task.source};
    if (!own.at && servers->n > 1)
        return fl_fail(FL_EINVAL,
                       "this PSERVER does not know which of %s it is; set "
                       "PADDLE_CURRENT_ENDPOINT",
                       join_list(m, servers));
    r->endpoint = own.at ? own.at : servers->at[0];
    r->source.endpoint = own.at ? own.source : source;
    return FL_OK;
}

/* The rank that an MPI launcher gave, if its job has as many processes. */
static fl_err find_mpi_rank(making *m, int ranks)
{
    fl_role *r = m->r;
    for (size_t i = 0; i < sizeof mpi_names / sizeof *mpi_names; i++) {
        const found rank = {get_text(m, mpi_names[i].rank), mpi_names[i].rank};
        const found n = {get_text(m, mpi_names[i].ranks), mpi_names[i].ranks};
        int size = 0;
        if (!rank.at || !n.at)
            continue;
        FL_TRY(read_number(&n, &size));
        if (size != ranks)
            continue; /* from the shell of an allocation: another job */
        r->source.trainer_id = rank.source;
        return read_number(&rank, &r->trainer_id);
    }
    return FL_OK;
}

fl_err fl_role_mpi(int *rank, int *ranks)
{
    making m = {.env = &(fl_env){.get = real}, .arena = fl_arena_new()};
    fl_err err = fl_fail(FL_EINVAL,
                         "launch: %s is not set; start the launchers of a job "
                         "with --mpi by mpirun, which sets it",
                         mpi_names[0].rank);
    for (size_t i = 0; i < sizeof mpi_names / sizeof *mpi_names; i++) {
        const found r = {get_text(&m, mpi_names[i].rank), mpi_names[i].rank};
        const found n = {get_text(&m, mpi_names[i].ranks), mpi_names[i].ranks};
        if (!r.at || !n.at)
            continue;
        err = read_number(&r, rank);
        if (!err)
            err = read_number(&n, ranks);
        break;
    }
    fl_arena_free(m.arena);
    return err;
}

static fl_err among_trainers(making *m, const list *peers, const char *source)
{
    fl_role *r = m->r;
    found own;
    if (!strcmp(r->source.trainer_id, DEFAULT))
        FL_TRY(find_mpi_rank(m, peers->n));
    r->mode = FL_MODE_COLLECTIVE;
    r->duty = FL_DUTY_TRAINER;
    r->source.duty = source;
    keep_list(m, peers, source);
    if (!strcmp(r->source.trainers, DEFAULT))
        r->source.trainers = source;
    else if (r->trainers != peers->n)
        return fl_fail(FL_EINVAL, "%s is %d, but %s names %d trainers",
                       r->source.trainers, r->trainers, source, peers->n);
    r->trainers = peers->n;
    if (r->trainer_id >= peers->n)
        return fl_fail(FL_EINVAL,
                       "%s is %d, but %s names %d trainers: ids go from 0 to "
                       "%d",
                       r->source.trainer_id, r->trainer_id, source, peers->n,
                       peers->n - 1);
    FL_TRY(find_own(m, peers, &own));
    r->endpoint = own.at ? own.at : peers->at[r->trainer_id];
    r->source.endpoint = own.at ? own.source : source;
    if (strcmp(r->endpoint, peers->at[r->trainer_id]))
        return fl_fail(FL_EINVAL,
                       "%s is %d, which is %s, but %s is %s; ids count the "
                       "list of trainers from 0: correct one of the two",
                       r->source.trainer_id, r->trainer_id,
                       peers->at[r->trainer_id], r->source.endpoint,
                       r->endpoint);
    return FL_OK;
}

static void note_miss(making *m, const char *wrong, const char *right)
{
    if (get_text(m, wrong) && !get_text(m, right))
        note(m, fl_arena_printf(m->arena,
                                "%s is set, but nothing reads it; did you "
                                "mean %s?",
                                wrong, right));
}

static void offer_settings(fl_near *near)
{
    for (const fl_flag *f = fl_flags; f->name; f++)
        fl_near_offer(near, f->name);
    fl_near_offer(near, "FLUID_RESTARTS"); /* set by the launcher */
}

/* Add every variable that is read here to the names that may be suggested. */
static void offer_names(fl_near *near)
{
    const names *const lists[] = {&role_names,    &id_names,  &trainers_names,
                                  &servers_names, &own_names, &peers_names};
    const pair *const pairs[] = {server_pairs, own_pairs, peer_pairs};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (int k = 0; (*lists[i])[k]; k++)
            fl_near_offer(near, (*lists[i])[k]);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (const pair *p = pairs[i]; p->hosts; p++) {
            fl_near_offer(near, p->hosts);
            if (p->port)
                fl_near_offer(near, p->port);
        }
}

/* Note a misspelt variable: PADDLE_TRANING_ROLE is one edit from a name that is
 * read. A short name may differ less than a long one: PADDLE_ROOT is not a
 * misspelt PADDLE_PORT. */
static void note_slip(making *m, const char *name)
{
    fl_near near = {.name = name};
    const bool setting = fl_starts_with(name, SETTING);
    const int rest =
        (int)strlen(name) - (int)strlen(setting ? SETTING : PREFIX);
    const int most = rest / 4 < 2 ? rest / 4 : 2;
    if (setting)
        offer_settings(&near);
    else
        offer_names(&near);
    if (near.best && near.edits && near.edits <= most)
        note_miss(m, name, near.best);
}

/* Note a misspelt variable that does not begin as ours do: TRANING_ROLE or
 * PADLE_TRAINER_ID. Such a variable may belong to any program, so it is noted
 * only if it is one edit from a long name and ends in the same letter:
 * SERVER_ENDPOINTS and TRAINER_IP are probably other things. Names that begin
 * with VC_ are set by Volcano, for tasks of any name. */
static void note_other_slip(making *m, const char *name)
{
    enum {
        SHORTEST = 10 /* bytes */
    };
    fl_near near = {.name = name};
    const size_t n = strlen(name);
    if (n < SHORTEST)
        return;
    offer_names(&near);
    offer_settings(&near);
    if (near.best && near.edits == 1 && strlen(near.best) >= SHORTEST &&
        near.best[strlen(near.best) - 1] == name[n - 1] &&
        !fl_starts_with(near.best, "VC_"))
        note_miss(m, name, near.best);
}

static void note_misses(making *m)
{
    for (size_t i = 0; i < sizeof misses / sizeof *misses; i++)
        note_miss(m, misses[i].wrong, misses[i].right);
    const char *entry;
    for (int i = 0; m->env->at && (entry = m->env->at(m->env->user, i)); i++) {
        const char *name =
            fl_arena_printf(m->arena, "%.*s", (int)strcspn(entry, "="), entry);
        if (fl_starts_with(name, PREFIX) || fl_starts_with(name, SETTING))
            note_slip(m, name);
        else
            note_other_slip(m, name);
    }
}

static fl_err resolve(making *m)
{
    const char *source = NULL, *peers_source = NULL;
    list servers, peers;
    found role;
    FL_TRY(find_setting(m, "argument role", m->args->role, role_names, &role));
    FL_TRY(read_counts(m, &role));
    FL_TRY(find_list(m, m->args->endpoints, servers_names, server_pairs,
                     &servers, &source));
    FL_TRY(find_list(m, NULL, peers_names, peer_pairs, &peers, &peers_source));
    if (servers.n && get_text(m, peer_pairs[0].hosts))
        return fl_fail(FL_EINVAL,
                       "%s names servers, but %s trainers without servers: "
                       "unset one of them",
                       source, peer_pairs[0].hosts);
    if (!servers.n && peers.n)
        return among_trainers(m, &peers, peers_source);
    if (servers.n || role.at)
        return with_servers(m, &role, &servers, source);
    m->r->source.duty = DEFAULT;
    return FL_OK;
}

/* What of a server outlives its process. */
static void read_durability(making *m)
{
    const char *level = get_text(m, "FLUID_DURABILITY");
    m->r->durability = level ? level : "process if there is room";
    m->r->source.durability = level ? "FLUID_DURABILITY" : "default";
}

/* Read settings such as FLUID_STAGED=1000000. Err: EINVAL (a process would
 * refuse one of them). */
static fl_err read_settings(making *m)
{
    FL_VEC(const char *) set = {0};
    fl_err err = FL_OK;
    for (const fl_flag *f = fl_flags; f->name; f++) {
        const char *value = get_text(m, f->name);
        if (value)
            fl_push(&set, fl_arena_printf(m->arena, "%s=%s", f->name, value));
        if (value && !err)
            err = fl_flag_check(f, value);
    }
    m->r->n_settings = (int)set.n;
    m->r->settings =
        fl_arena_dup(m->arena, set.at, (size_t)set.n * sizeof *set.at);
    fl_vec_fini(&set);
    return err;
}

fl_err fl_role_resolve(fl_role *r, const fl_role_args *args, const fl_env *env)
{
    static const fl_role_args none;
    making m = {r, args ? args : &none, env, fl_arena_new()};
    *r = (fl_role){.arena = m.arena};
    fl_err err = read_settings(&m);
    read_durability(&m);
    note_misses(&m);
    const int64_t misspelt = m.notes.n;
    if (!err)
        err = resolve(&m);
    for (int64_t i = 0; err && i < misspelt; i++) /* the likely reason */
        (void)fl_fail_at(err, "%s", m.notes.at[i]);
    r->n_notes = (int)m.notes.n;
    r->notes = fl_arena_dup(m.arena, m.notes.at,
                            (size_t)m.notes.n * sizeof *m.notes.at);
    fl_vec_fini(&m.notes);
    if (err)
        fl_role_fini(r);
    return err;
}

static const char *real_at(void *user, int i)
{
    return environ[i]; /* the last one is NULL */
}

fl_err fl_role_init(fl_role *r, const fl_role_args *args)
{
    return fl_role_resolve(r, args, &(fl_env){.get = real, .at = real_at});
}

void fl_role_fini(fl_role *r)
{
    if (r->arena)
        fl_arena_free(r->arena);
    *r = (fl_role){0};
}

char *fl_role_misspelt(void)
{
    making m = {.env = &(fl_env){.get = real, .at = real_at},
                .arena = fl_arena_new()};
    fl_str s = {0};
    note_misses(&m);
    for (int64_t i = 0; i < m.notes.n; i++)
        fl_str_printf(&s, "%s\n", m.notes.at[i]);
    fl_vec_fini(&m.notes);
    fl_arena_free(m.arena);
    return fl_str_take(&s);
}

/* --- text for users --- */

static void row(fl_str *s, const char *name, const char *value,
                const char *source)
{
    fl_str_printf(s, "%-12s %s", name, value);
    if (source)
        fl_str_printf(s, "  (%s)", source);
    fl_str_add(s, "\n");
}

char *fl_role_text(const fl_role *r)
{
    static const char *const duties[] = {"LOCAL", "TRAINER", "PSERVER"};
    static const char *const modes[] = {"local", "pserver", "collective"};
    fl_str s = {0};
    char id[16], trainers[16];
    snprintf(id, sizeof id, "%d", r->trainer_id);
    snprintf(trainers, sizeof trainers, "%d", r->trainers);
    row(&s, "role", duties[r->duty], r->source.duty);
    row(&s, "mode", modes[r->mode], NULL);
    row(&s, "trainer_id", id, r->source.trainer_id);
    row(&s, "trainers", trainers, r->source.trainers);
    for (int i = 0; i < r->n_endpoints; i++)
        row(&s,
            i                            ? ""
            : r->mode == FL_MODE_PSERVER ? "servers"
                                         : "peers",
            r->endpoints[i], i ? NULL : r->source.endpoints);
    if (r->endpoint)
        row(&s, "endpoint", r->endpoint, r->source.endpoint);
    if (r->mode == FL_MODE_PSERVER)
        row(&s, "durability", r->durability, r->source.durability);
    for (int i = 0; i < r->n_settings; i++)
        row(&s, i ? "" : "settings", r->settings[i], NULL);
    for (int i = 0; i < r->n_notes; i++)
        fl_str_printf(&s, "note: %s\n", r->notes[i]);
    return fl_str_take(&s);
}
