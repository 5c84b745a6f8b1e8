/* SPDX-License-Identifier: Apache-2.0 */
/* pod.c - the one process of a job that a pod of Kubernetes runs.
 *
 * k8s.c writes the manifests. A process learns everything from the name of its
 * pod and the two counts in its command:
 *
 *     click-server-0          server 0 of job "click", of a StatefulSet
 *     click-trainer-1-x7k2p   trainer 1, of a Job
 *     click-server-0.click-server:6174   where the others find server 0
 *
 * Easy to get wrong: a StatefulSet starts a process again that has ended well,
 * and a server of a finished job would wait for trainers for ever. So the pod
 * of a server that is done stays until it is deleted. */
#include "launch/launch.h"

#include "base/flag.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PORT = 6174,
    NAME = 256 /* bytes of a pod's name, with the NUL */
};

/* The parts of the name of a pod. */
typedef struct pod_name {
    bool server;
    int id;  /* of the server or trainer */
    int job; /* bytes of the name of the job, with which it begins */
} pod_name;

/* Keep the last "-server-0" or "-trainer-0": the name of a job may look like
 * one, too. */
static void find_kind(const char *pod, const char *kind, bool server,
                      pod_name *found)
{
    const char *at = pod;
    while ((at = strstr(at + 1, kind))) {
        char *end;
        const long id = strtol(at + strlen(kind), &end, 10);
        if (isdigit((unsigned char)at[strlen(kind)]) &&
            (!*end || *end == '-') && id <= FL_MOST_PROCESSES &&
            at - pod > found->job)
            *found = (pod_name){server, (int)id, (int)(at - pod)};
    }
}

static fl_err read_name(const char *pod, pod_name *out)
{
    *out = (pod_name){0};
    if (*pod) {
        find_kind(pod, "-server-", true, out);
        find_kind(pod, "-trainer-", false, out);
    }
    if (!out->job)
        return fl_fail(FL_EINVAL,
                       "launch: this pod is called \"%s\", expected a name "
                       "like click-server-0 or click-trainer-0-x7k2p; --pod is "
                       "for pods of paddle k8s, which find their name in "
                       "POD_NAME",
                       pod);
    return FL_OK;
}

fl_err fl_pod_check(const fl_launch_opts *o)
{
    const char *flag = !o->pod                         ? NULL
                       : o->collective                 ? "mode collective"
                       : o->hosts                      ? "hosts"
                       : o->mpi                        ? "mpi"
                       : o->slurm                      ? "slurm"
                       : o->cluster_node_ips           ? "cluster_node_ips"
                       : o->endpoints && *o->endpoints ? "endpoints"
                                                       : NULL;
    return flag ? fl_fail(FL_EINVAL,
                          "launch: --pod takes all hosts from the name of the "
                          "pod; leave out --%s",
                          flag)
                : FL_OK;
}

fl_err fl_launch_join_pod(fl_launch *l)
{
    const fl_launch_opts *o = l->opts;
    const char *pod = fl_flag_text("POD_NAME");
    char host[NAME] = "";
    pod_name is;
    if (!pod && !gethostname(host, sizeof host - 1))
        pod = host;
    FL_TRY(read_name(pod ? pod : "", &is));
    const int most = is.server ? o->servers : o->trainers;
    if (is.id >= most)
        return fl_fail(FL_EINVAL,
                       "launch: this pod is called \"%s\", but --%s is %d: "
                       "the number in its name must be less",
                       pod, is.server ? "server_num" : "worker_num", most);
    for (int i = 0; i < o->servers; i++)
        fl_push(&l->endpoints,
                fl_arena_printf(l->arena, "%.*s-server-%d.%.*s-server:%d",
                                is.job, pod, i, is.job, pod,
                                o->start_port ? o->start_port : PORT));
    l->nodes = 1;
    l->node = 0;
    fl_launch_add(l, is.server, is.id,
                  is.server ? l->endpoints.at[is.id] : NULL, NULL, 0);
    return FL_OK;
}

void fl_pod_rest(const fl_launch *l)
{
    sigset_t ends;
    int got;
    if (!l->opts->pod || !l->procs.at[0].server || l->first >= 0 || l->asks)
        return;
    fprintf(stderr, "launch: the job is done; this pod stays until it is "
                    "deleted, since its StatefulSet would start it again\n");
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigwait(&ends, &got);
}
