/* SPDX-License-Identifier: Apache-2.0 */
/* env.c - the environment of a process of a job, in every dialect of Fluid's
 * documents.
 *
 * All variables with the same meaning are set. Variables that would mean
 * something else in this job (one port for all servers) are removed. */
#include "base/flag.h"
#include "base/str.h"
#include "launch/launch.h"

#include <stdio.h>
#include <unistd.h>

typedef FL_VEC(char *) env_list;

/* Variables that are copied to other hosts: settings of Fluid and of the
 * libraries that it uses. --export names more. */
static const char *const exported[] = {"FLUID_", "FL_",   "FLAGS_", "PADDLE_",
                                       "GLOG_",  "GRPC_", "OMP_",   "PYTHON"};

/* Files of a process in memory, in the order of FL_TLS_FD and on. */
static const char *const tls_names[FL_TLS_FILES] = {
    "FLUID_TLS_CERT", "FLUID_TLS_KEY", "FLUID_TLS_CA"};

/* Variables that this file sets, or that would contradict those. They are never
 * inherited. */
static const char *const ours[] = {
    "TRAINING_ROLE",
    "PADDLE_TRAINING_ROLE",
    "PADDLE_TRAINERS_NUM",
    "PADDLE_TRAINERS",
    "TRAINERS",
    "PADDLE_TRAINER_ID",
    "TRAINER_ID",
    "PADDLE_PSERVERS_IP_PORT_LIST",
    "PADDLE_PSERVER_ENDPOINTS",
    "PSERVERS",
    "PADDLE_PSERVERS",
    "PADDLE_PSERVER_IPS",
    "PADDLE_PORT",
    "PADDLE_PSERVER_PORT",
    "POD_IP",
    "PADDLE_CURRENT_IP",
    "CURRENT_ENDPOINT",
    "PADDLE_CURRENT_ENDPOINT",
    "SERVER_ENDPOINT",
    "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_TRAINER_IPS",
    "PADDLE_INIT_TRAINER_ID",
    "PADDLE_INIT_NUM_GRADIENT_SERVERS",
    "PADDLE_INIT_PSERVERS",
    "PADDLE_INIT_PORT",
    "PADDLE_CLUSTER_TRAIN",
    "FLAGS_selected_gpus",
    "FLUID_PORT_HELD",
    "FLUID_JOB_KEY_FD",
    "FLUID_RESTARTS",
    "FLUID_LAUNCHED",
    "FLUID_JOB",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
};

/* Whether the entry is "NAME=value" for this name. */
static bool has_name(const char *entry, const char *name, size_t n)
{
    return strcspn(entry, "=") == n && !memcmp(entry, name, n);
}

static bool is_ours(const char *entry)
{
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (has_name(entry, ours[i], strlen(ours[i])))
            return true;
    return false;
}

bool fl_launch_is_exported(const fl_launch *l, const char *entry)
{
    const char *more = l->opts->exported ? l->opts->exported : "";
    for (size_t i = 0; i < sizeof exported / sizeof *exported; i++)
        if (fl_starts_with(entry, exported[i]))
            return true;
    for (more += strspn(more, ", "); *more; more += strspn(more, ", ")) {
        const size_t n = strcspn(more, ", ");
        if (has_name(entry, more, n))
            return true;
        more += n;
    }
    return false;
}

/* Set a variable; an older value of it is removed. */
static void set_variable(fl_launch *l, env_list *env, const char *name,
                         const char *value)
{
    for (int64_t i = env->n; i-- > 0;)
        if (has_name(env->at[i], name, strlen(name)))
            fl_remove(env, i);
    fl_push(env, fl_arena_printf(l->arena, "%s=%s", name, value));
}

static void set_all(fl_launch *l, env_list *env, const char *value,
                    const char *const *names)
{
    for (; *names; names++)
        set_variable(l, env, *names, value);
}

static char *number(fl_launch *l, int n)
{
    return fl_arena_printf(l->arena, "%d", n);
}

/* The part of each endpoint to list: all of it, its host, or its port. */
typedef enum part_of {
    WHOLE,
    HOST,
    PORT
} part_of;

static const char *part(fl_launch *l, const char *endpoint, part_of which)
{
    const char *colon = strrchr(endpoint, ':');
    if (which == WHOLE)
        return endpoint;
    if (which == PORT)
        return colon + 1;
    return fl_arena_printf(l->arena, "%.*s", (int)(colon - endpoint), endpoint);
}

static const char *joined(fl_launch *l, part_of which)
{
    fl_str s = {0};
    for (int64_t i = 0; i < l->endpoints.n; i++)
        fl_str_printf(&s, "%s%s", i ? "," : "",
                      part(l, l->endpoints.at[i], which));
    const char *text = fl_arena_printf(l->arena, "%s", s.at ? s.at : "");
    fl_str_fini(&s);
    return text;
}

static void set_ids(fl_launch *l, env_list *env, const fl_proc *p)
{
    set_all(l, env, number(l, p->id),
            (const char *[]){"PADDLE_TRAINER_ID", "TRAINER_ID", NULL});
}

static void set_own(fl_launch *l, env_list *env, const fl_proc *p)
{
    set_all(l, env, p->endpoint,
            (const char *[]){"CURRENT_ENDPOINT", "PADDLE_CURRENT_ENDPOINT",
                             "SERVER_ENDPOINT", NULL});
    set_all(l, env, part(l, p->endpoint, HOST),
            (const char *[]){"POD_IP", "PADDLE_CURRENT_IP", NULL});
    set_variable(l, env, "FLUID_PORT_HELD", "1");
}

/* Set the variables of a rank of a collective job. */
static void set_rank(fl_launch *l, env_list *env, const fl_proc *p)
{
    set_all(l, env, number(l, (int)l->endpoints.n),
            (const char *[]){"PADDLE_TRAINERS_NUM", "PADDLE_TRAINERS",
                             "TRAINERS", NULL});
    set_variable(l, env, "PADDLE_TRAINER_ENDPOINTS", joined(l, WHOLE));
    set_ids(l, env, p);
    set_own(l, env, p);
    if (p->gpu)
        set_variable(l, env, "FLAGS_selected_gpus", p->gpu);
    if (l->key)
        set_variable(l, env, "FLUID_JOB_KEY_FD", number(l, FL_KEY_FD));
}

/* Set the variables of servers and of trainers with servers. */
static void set_served(fl_launch *l, env_list *env, const fl_proc *p)
{
    set_all(l, env, number(l, l->opts->trainers * l->nodes),
            (const char *[]){"PADDLE_TRAINERS_NUM", "PADDLE_TRAINERS",
                             "TRAINERS", "PADDLE_INIT_NUM_GRADIENT_SERVERS",
                             NULL});
    set_all(l, env, joined(l, WHOLE),
            (const char *[]){"PADDLE_PSERVERS_IP_PORT_LIST",
                             "PADDLE_PSERVER_ENDPOINTS", "PSERVERS", NULL});
    set_all(l, env, joined(l, HOST),
            (const char *[]){"PADDLE_PSERVERS", "PADDLE_PSERVER_IPS", NULL});
    set_variable(l, env, "PADDLE_CLUSTER_TRAIN", "True"); /* scripts of v2 */
    if (p->server) {
        set_own(l, env, p);
        set_variable(l, env, "PADDLE_PORT", part(l, p->endpoint, PORT));
    } else {
        set_ids(l, env, p);
        set_variable(l, env, "PADDLE_INIT_TRAINER_ID", number(l, p->id));
        set_variable(l, env, "PADDLE_PORT", joined(l, PORT));
    }
}

/* The list in the arena, with the NULL that ends it. */
static char **take_list(fl_launch *l, env_list *env)
{
    fl_push(env, NULL);
    char **out =
        fl_arena_dup(l->arena, env->at, (size_t)env->n * sizeof *env->at);
    fl_vec_fini(env);
    return out;
}

char **fl_launch_env_of(fl_launch *l, char *const *more)
{
    env_list env = {0};
    for (char **e = environ; *e; e++) {
        bool keep = !is_ours(*e);
        for (char *const *m = more; *m && keep; m++)
            keep = !has_name(*e, *m, strcspn(*m, "="));
        if (keep)
            fl_push(&env, *e);
    }
    for (; *more; more++)
        fl_push(&env, *more);
    set_variable(l, &env, "FLUID_JOB", l->mark);
    return take_list(l, &env);
}

char **fl_launch_env(fl_launch *l, const fl_proc *p)
{
    env_list env = {0};
    for (char **e = environ; *e; e++)
        if (!is_ours(*e) && (!p->host || fl_launch_is_exported(l, *e)))
            fl_push(&env, *e);
    set_all(l, &env, p->server ? "PSERVER" : "TRAINER",
            (const char *[]){"TRAINING_ROLE", "PADDLE_TRAINING_ROLE", NULL});
    if (l->opts->collective)
        set_rank(l, &env, p);
    else
        set_served(l, &env, p);
    for (int i = 0; i < FL_TLS_FILES && l->with_tls; i++)
        set_variable(
            l, &env, tls_names[i],
            fl_arena_printf(l->arena, "/proc/self/fd/%d", FL_TLS_FD + i));
    if (!fl_flag_text("FLUID_REJOIN")) /* s that others wait for it */
        set_variable(l, &env, "FLUID_REJOIN",
                     l->opts->max_restarts ? "60" : "0");
    if (!fl_flag_text("FLUID_REJOIN_FAILED") && l->killed_only)
        set_variable(l, &env, "FLUID_REJOIN_FAILED", "0");
    if (!l->opts->collective)
        set_variable(l, &env, "FLUID_DURABILITY", fl_launch_level(l));
    if (l->restarts + p->restarts)
        set_variable(l, &env, "FLUID_RESTARTS",
                     number(l, l->restarts + p->restarts));
    set_variable(l, &env, "FLUID_LAUNCHED",
                 "1"); /* at Ctrl-C trainers save, then leave */
    if (!p->host)      /* an agent has its own FLUID_JOB */
        set_variable(l, &env, "FLUID_JOB", l->mark);
    return take_list(l, &env);
}

/* Whether an entry of fl_launch_env is one of this process itself. */
static bool is_inherited(const char *entry)
{
    char **e = environ;
    while (*e && *e != entry)
        e++;
    return *e != NULL;
}

/* A command as a shell reads it back. */
static void show_words(fl_launch *l, char *const *words)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                "UVWXYZ0123456789_-+=:,./@%";
    for (; *words; words++) {
        const bool is_plain = **words && !(*words)[strspn(*words, plain)];
        fprintf(stderr, " %s", is_plain ? *words : fl_launch_quoted(l, *words));
    }
    fputc('\n', stderr);
}

void fl_launch_show_env(fl_launch *l)
{
    char name[32];
    fprintf(stderr, "launch: nothing is started (--dry_run); each process "
                    "would run\n   ");
    show_words(l, l->argv);
    for (int64_t i = 0; i < l->hosts.n; i++) {
        fprintf(stderr, "host %s is reached by\n   ", l->hosts.at[i].name);
        show_words(l, fl_host_command(l, &l->hosts.at[i]));
    }
    if (l->hosts.n)
        fprintf(stderr, "their workspace is %s", l->hosts.at[0].folder);
    if (l->hosts.n && l->opts->package)
        fprintf(stderr, ", to which the files of %s are sent",
                l->opts->package);
    if (l->hosts.n)
        fputc('\n', stderr);
    for (int64_t i = 0; i < l->procs.n; i++) {
        const fl_proc *p = &l->procs.at[i];
        fprintf(stderr, "%s%s%s, log %s\n", fl_proc_name(p, name),
                p->host ? " on host " : "", p->host ? p->host->name : "",
                p->log);
        for (char **e = fl_launch_env(l, p); *e; e++)
            if (p->host || !is_inherited(*e))
                fprintf(stderr, "    %s\n", *e);
    }
}
