/* SPDX-License-Identifier: Apache-2.0 */
/* paddle k8s - manifests of Kubernetes for a job. */
#include "cli/cli.h"

#include <stdio.h>

static fl_k8s_opts job = {
    .servers = 2, .trainers = 2, .port = 6174, .folder = "k8s"};

static const fl_opt opts[] = {
    {"name", FL_OPT_STR, &job.name,
     "name of the job; the names of all its pods begin with it (default: the "
     "name of the script)"},
    {"image", FL_OPT_STR, &job.image,
     "image of all pods (default: fluid- and the name of the job)"},
    {"server_num", FL_OPT_INT, &job.servers, "number of servers"},
    {"worker_num", FL_OPT_INT, &job.trainers, "number of trainers"},
    {"trainer_num", FL_OPT_INT, &job.trainers, "same as --worker_num"},
    {"port", FL_OPT_INT, &job.port, "port of each server"},
    {"claim", FL_OPT_STR, &job.claim,
     "PersistentVolumeClaim with data, which all pods see as /data"},
    {"cpu", FL_OPT_STR, &job.cpu,
     "CPUs that each pod requests, for example 2 or 500m"},
    {"memory", FL_OPT_STR, &job.memory,
     "memory that each pod requests, for example 4Gi or 512Mi"},
    {"indexed", FL_OPT_FLAG, &job.indexed,
     "write one indexed Job in place of a Job for each trainer; needs "
     "Kubernetes 1.24"},
    {"insecure", FL_OPT_FLAG, &job.insecure,
     "do not encrypt what pods send to each other"},
    {"out", FL_OPT_STR, &job.folder,
     "folder into which job.yaml, secret.yaml and Dockerfile are written"},
    {0},
};

static int run_k8s(int n, char **arg)
{
    if (!n)
        return fl_cli_fail(
            FL_EXIT_USAGE, false,
            "k8s: name the script or program to run; see paddle help k8s");
    if (!job.port) /* fl_k8s_write takes 0 for the default */
        return fl_cli_fail(
            FL_EXIT_USAGE, false,
            "k8s: --port is 0, expected a number from 1 to 65535");
    job.n = n;
    job.command = (const char *const *)arg;
    if (fl_k8s_write(&job))
        return fl_cli_fail(FL_EXIT_FAILED, false, "%s", fl_errmsg());
    printf("%s/job.yaml and %s/Dockerfile are written", job.folder, job.folder);
    if (!job.insecure)
        printf(", and %s/secret.yaml with the keys of this job", job.folder);
    printf("; the first lines of job.yaml say how to run it\n");
    return FL_EXIT_OK;
}

const fl_cmd fl_cmd_k8s = {
    .name = "k8s",
    .group = FL_CMD_RUN,
    .args = "SCRIPT.py|PROGRAM [ARGUMENT...]",
    .help = "write the manifests of a job for Kubernetes",
    .examples =
        "paddle k8s --server_num 2 --worker_num 4 --image registry/clicks "
        "train.py\n"
        "docker build -t registry/clicks -f k8s/Dockerfile .\n"
        "kubectl apply -f k8s/secret.yaml -f k8s/job.yaml\n"
        "    write the manifests, build the image, start the job\n",
    .opts = opts,
    .own_flags = true,
    .run = run_k8s,
};
