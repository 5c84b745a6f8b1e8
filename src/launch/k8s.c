/* SPDX-License-Identifier: Apache-2.0 */
/* k8s.c - a job as plain manifests of Kubernetes, and a Dockerfile.
 *
 *     Service, StatefulSet   the servers: each has a name that stays
 *     Job                    one for each trainer, since a Job of Kubernetes
 *                            1.20 does not number its pods; or one that does
 *     Secret                 certificate, key and authority, in its own file
 *
 * Pods of both kinds of Job have the same form of name, from which pod.c reads
 * everything. All files but the Secret depend only on the options. */
#include "launch/launch.h"

#include "base/certs.h"
#include "base/disk.h"
#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECRET "secret.yaml"

enum {
    PORT = 6174,
    MOST_NAME = 40, /* bytes; "-trainer-999-x7k2p" must fit into a label */
    TRIES = 6,      /* failed pods that a trainer may have */
    REJOIN = 120,   /* s that a round waits for a trainer whose pod has ended */
    AWAY = 30,      /* s until the trainer of a lost node is replaced */
    GRACE = 30,     /* s between SIGTERM and SIGKILL */
    CERTIFICATE_DAYS = 3650
};

/* The options with their defaults, and the text of a file. */
typedef struct manifest {
    fl_k8s_opts o;
    fl_arena *arena;
    fl_str out;
} manifest;

/* --- options --- */

/* The name of a job from that of a script, as a DNS label: "click" for
 * "jobs/Click.py". */
static const char *name_of_script(manifest *m)
{
    const char *path = m->o.command[0], *slash = strrchr(path, '/');
    char *name = fl_arena_strdup(m->arena, slash ? slash + 1 : path);
    if (fl_ends_with(name, ".py"))
        name[strlen(name) - 3] = 0;
    for (char *c = name; *c; c++)
        *c =
            isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
    return name;
}

static fl_err check_name(const char *name)
{
    const size_t n = strlen(name);
    bool good = n && n <= MOST_NAME && islower((unsigned char)name[0]) &&
                name[n - 1] != '-';
    for (const char *c = name; *c; c++)
        good &= islower((unsigned char)*c) || isdigit((unsigned char)*c) ||
                *c == '-';
    if (!good)
        return fl_fail(FL_EINVAL,
                       "k8s: \"%s\" cannot be the name of a job, expected a "
                       "small letter, then at most %d small letters, digits "
                       "and dashes; choose one with --name",
                       name, MOST_NAME - 1);
    return FL_OK;
}

/* Check a quantity of Kubernetes: a number, and perhaps a unit. */
static fl_err check_quantity(const char *flag, const char *text,
                             const char *units, const char *expected)
{
    char *end;
    if (!text)
        return FL_OK;
    const double number = strtod(text, &end);
    const size_t n = strlen(end);
    bool known = !n;
    for (const char *at = units; *at && n && !known; at += *at == ' ') {
        const size_t size = strcspn(at, " ");
        known = size == n && !strncmp(at, end, n);
        at += size;
    }
    if (end == text || !isdigit((unsigned char)*text) || number <= 0 || !known)
        return fl_fail(FL_EINVAL, "k8s: --%s is \"%s\", expected %s", flag,
                       text, expected);
    return FL_OK;
}

static fl_err check_options(manifest *m)
{
    fl_k8s_opts *o = &m->o;
    if (o->n < 1)
        return fl_fail(
            FL_EINVAL,
            "k8s: no program was given: name a script or a command to run");
    if (!o->name)
        o->name = name_of_script(m);
    if (!o->image)
        o->image = fl_arena_printf(m->arena, "fluid-%s", o->name);
    if (!o->port)
        o->port = PORT;
    if (!o->folder)
        o->folder = "k8s";
    if (o->servers < 1 || o->servers > FL_MOST_PROCESSES || o->trainers < 1 ||
        o->trainers > FL_MOST_PROCESSES)
        return fl_fail(FL_EINVAL,
                       "k8s: %d servers and %d trainers were asked for, "
                       "expected 1 to %d of each; see --server_num and "
                       "--worker_num",
                       o->servers, o->trainers, FL_MOST_PROCESSES);
    if (o->port < 1 || o->port > 65535)
        return fl_fail(FL_EINVAL,
                       "k8s: --port is %d, expected a number from 1 to 65535",
                       o->port);
    FL_TRY(check_quantity("cpu", o->cpu, "m",
                          "a number of CPUs such as 2 or 500m"));
    FL_TRY(check_quantity("memory", o->memory, "k M G T P E Ki Mi Gi Ti Pi Ei",
                          "bytes such as 4Gi or 512Mi"));
    if (fl_ends_with(o->command[0], ".py") && access(o->command[0], R_OK))
        FL_WARN("k8s: script %s: %s; the Dockerfile copies the folder in which "
                "docker build is started, so the script must be in that one",
                o->command[0], strerror(errno));
    return check_name(o->name);
}

/* --- YAML --- */

/* Append a text in double quotes that is valid in JSON and in YAML. */
static void put_text(fl_str *s, const char *text)
{
    fl_str_add(s, "\"");
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fl_str_printf(s, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            fl_str_printf(s, "\\u%04x", c);
        else
            fl_str_bytes(s, text, 1);
    }
    fl_str_add(s, "\"");
}

static void put_labels(manifest *m, const char *role)
{
    fl_str_printf(&m->out, "{fluid-job: %s, fluid-role: %s}", m->o.name, role);
}

static void put_kind(manifest *m, const char *api, const char *kind,
                     const char *suffix)
{
    fl_str_printf(&m->out,
                  "---\n"
                  "apiVersion: %s\n"
                  "kind: %s\n"
                  "metadata:\n"
                  "  name: %s-%s\n"
                  "  labels: {fluid-job: %s}\n",
                  api, kind, m->o.name, suffix, m->o.name);
}

/* Append a word of a command. Kubernetes would replace $(NAME) by a variable,
 * and reads $$ as $. */
static void put_word(fl_str *s, const char *word)
{
    fl_str plain = {0};
    for (; *word; word++) {
        if (*word == '$' && (word[1] == '$' || word[1] == '('))
            fl_str_add(&plain, "$");
        fl_str_bytes(&plain, word, 1);
    }
    put_text(s, plain.at ? plain.at : "");
    fl_str_fini(&plain);
}

static void put_command(manifest *m)
{
    const fl_k8s_opts *o = &m->o;
    fl_str_printf(&m->out,
                  "        command: [paddle, launch, --pod, --server_num, "
                  "\"%d\", --worker_num, \"%d\",\n"
                  "          --start_port, \"%d\", --log_dir, /tmp/logs",
                  o->servers, o->trainers, o->port);
    for (int i = 0; i < o->n; i++) {
        fl_str_add(&m->out, i ? ", " : ",\n          ");
        put_word(&m->out, o->command[i]);
    }
    fl_str_add(&m->out, "]\n");
}

static void put_env(manifest *m)
{
    fl_str_printf(
        &m->out,
        "        env:\n"
        "        - name: POD_NAME\n"
        "          valueFrom: {fieldRef: {fieldPath: metadata.name}}\n"
        "        - {name: FLUID_REJOIN, value: \"%d\"}\n",
        REJOIN);
    if (!m->o.insecure)
        fl_str_add(&m->out,
                   "        - {name: FLUID_TLS_CERT, value: /tls/tls.crt}\n"
                   "        - {name: FLUID_TLS_KEY, value: /tls/tls.key}\n"
                   "        - {name: FLUID_TLS_CA, value: /tls/ca.crt}\n");
}

static void put_resources(manifest *m)
{
    const char *const names[] = {"cpu", "memory"};
    const char *const values[] = {m->o.cpu, m->o.memory};
    if (!m->o.cpu && !m->o.memory)
        return;
    fl_str_add(&m->out, "        resources:\n          requests:\n");
    for (int i = 0; i < 2; i++)
        if (values[i]) {
            fl_str_printf(&m->out, "            %s: ", names[i]);
            put_text(&m->out, values[i]);
            fl_str_add(&m->out, "\n");
        }
}

/* Write the mounts of the container, and the volumes of the pod after it. */
static void put_volumes(manifest *m)
{
    const fl_k8s_opts *o = &m->o;
    fl_str_add(&m->out, "        volumeMounts:\n"
                        "        - {name: memory, mountPath: /dev/shm}\n");
    if (!o->insecure)
        fl_str_add(&m->out, "        - {name: tls, mountPath: /tls, "
                            "readOnly: true}\n");
    if (o->claim)
        fl_str_add(&m->out, "        - {name: data, mountPath: /data}\n");
    fl_str_add(&m->out, "      volumes:\n"
                        "      - {name: memory, emptyDir: {medium: Memory}}\n");
    if (!o->insecure)
        fl_str_printf(&m->out,
                      "      - name: tls\n"
                      "        secret: {secretName: %s-tls, defaultMode: 288} "
                      "# 0440\n",
                      o->name);
    if (o->claim) {
        fl_str_add(&m->out, "      - name: data\n"
                            "        persistentVolumeClaim: {claimName: ");
        put_text(&m->out, o->claim);
        fl_str_add(&m->out, "}\n");
    }
}

/* The probe of Kubernetes does not speak TLS, so a command in the container
 * checks the server. */
static void put_probe(manifest *m)
{
    const fl_k8s_opts *o = &m->o;
    fl_str_printf(&m->out,
                  "        ports:\n"
                  "        - {name: grpc, containerPort: %d}\n"
                  "        readinessProbe:\n",
                  o->port);
    if (o->indexed && o->insecure)
        fl_str_printf(&m->out, "          grpc: {port: %d}\n", o->port);
    else
        fl_str_printf(&m->out,
                      "          exec: {command: [sh, -c, 'paddle why "
                      "\"$POD_NAME.%s-server:%d\"']}\n",
                      o->name, o->port);
    fl_str_add(&m->out, "          periodSeconds: 5\n"
                        "          timeoutSeconds: 5\n");
}

/* Write what both kinds of pod have in common, up to the list of containers. */
static void put_pod(manifest *m, const char *role)
{
    fl_str_add(&m->out, "  template:\n    metadata:\n      labels: ");
    put_labels(m, role);
    fl_str_printf(&m->out,
                  "\n"
                  "      annotations: {sidecar.istio.io/inject: \"false\"}\n"
                  "    spec:\n"
                  "      automountServiceAccountToken: false\n"
                  "      terminationGracePeriodSeconds: %d\n",
                  GRACE);
}

static void put_container(manifest *m, const char *role)
{
    fl_str_printf(&m->out,
                  "      containers:\n      - name: %s\n        image: ", role);
    put_text(&m->out, m->o.image);
    fl_str_add(&m->out, "\n        imagePullPolicy: IfNotPresent\n");
    put_command(m);
    put_env(m);
    if (!strcmp(role, "server"))
        put_probe(m);
    put_resources(m);
    put_volumes(m);
}

/* --- the objects --- */

static void put_head(manifest *m)
{
    const char *secret = m->o.insecure ? "" : " -f secret.yaml";
    fl_str_printf(
        &m->out,
        "# Job %s: %d servers and %d trainers. Made by paddle k8s.\n"
        "#\n"
        "#     kubectl apply%s -f job.yaml\n"
        "#     kubectl logs -f --prefix -l fluid-job=%s,fluid-role=trainer\n"
        "#     kubectl wait --timeout=-1s --for=condition=complete job -l "
        "fluid-job=%s\n"
        "#     kubectl delete%s -f job.yaml\n",
        m->o.name, m->o.servers, m->o.trainers, secret, m->o.name, m->o.name,
        secret);
}

/* publishNotReadyAddresses: servers find each other by name before they are
 * ready. */
static void put_service(manifest *m)
{
    put_kind(m, "v1", "Service", "server");
    fl_str_add(&m->out, "spec:\n"
                        "  clusterIP: None\n"
                        "  publishNotReadyAddresses: true\n"
                        "  selector: ");
    put_labels(m, "server");
    fl_str_printf(&m->out, "\n  ports:\n  - {name: grpc, port: %d}\n",
                  m->o.port);
}

static void put_servers(manifest *m)
{
    put_kind(m, "apps/v1", "StatefulSet", "server");
    fl_str_printf(&m->out,
                  "spec:\n"
                  "  serviceName: %s-server\n"
                  "  replicas: %d\n"
                  "  podManagementPolicy: Parallel\n"
                  "  selector:\n    matchLabels: ",
                  m->o.name, m->o.servers);
    put_labels(m, "server");
    fl_str_add(&m->out, "\n");
    put_pod(m, "server");
    put_container(m, "server");
}

/* Write the pod of a trainer, after the fields of its Job. */
static void put_trainer(manifest *m, int trainers)
{
    static const char *const away[] = {"unreachable", "not-ready"};
    fl_str_printf(&m->out, "  backoffLimit: %d\n", TRIES * trainers);
    put_pod(m, "trainer");
    fl_str_add(&m->out, "      restartPolicy: Never\n      tolerations:\n");
    for (int i = 0; i < 2; i++)
        fl_str_printf(&m->out,
                      "      - {key: node.kubernetes.io/%s, operator: Exists, "
                      "effect: NoExecute, tolerationSeconds: %d}\n",
                      away[i], AWAY);
    put_container(m, "trainer");
}

static void put_trainers(manifest *m)
{
    if (m->o.indexed) {
        put_kind(m, "batch/v1", "Job", "trainer");
        fl_str_printf(&m->out,
                      "spec:\n"
                      "  completionMode: Indexed\n"
                      "  completions: %d\n"
                      "  parallelism: %d\n",
                      m->o.trainers, m->o.trainers);
        put_trainer(m, m->o.trainers);
        return;
    }
    for (int i = 0; i < m->o.trainers; i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, "trainer-%d", i);
        put_kind(m, "batch/v1", "Job", suffix);
        fl_str_add(&m->out, "spec:\n");
        put_trainer(m, 1);
    }
}

/* Write PEM as a block of lines. */
static void put_pem(manifest *m, const char *name, const char *pem)
{
    fl_str_printf(&m->out, "  %s: |\n", name);
    while (*pem) {
        const size_t n = strcspn(pem, "\n");
        fl_str_printf(&m->out, "    %.*s\n", (int)n, pem);
        pem += n + (pem[n] == '\n');
    }
}

/* All pods use one certificate, which names all servers. */
static fl_err put_secret(manifest *m)
{
    char *certificate, *key;
    fl_str hosts = {0};
    fl_ca *ca;
    FL_TRY(fl_ca_new(&ca));
    for (int i = 0; i < m->o.servers; i++)
        fl_str_printf(&hosts, "%s%s-server-%d.%s-server", i ? "," : "",
                      m->o.name, i, m->o.name);
    const fl_err err =
        fl_ca_issue(ca, hosts.at, CERTIFICATE_DAYS, &certificate, &key);
    fl_str_fini(&hosts);
    if (!err) {
        put_kind(m, "v1", "Secret", "tls");
        fl_str_add(&m->out, "stringData:\n");
        put_pem(m, "tls.crt", certificate);
        put_pem(m, "tls.key", key);
        put_pem(m, "ca.crt", fl_ca_pem(ca));
        fl_mem_free(certificate);
        fl_mem_free(key);
    }
    fl_ca_free(ca);
    return err;
}

/* The packages are those of python/paddle/_needs.py. The folder of the build
 * has the manifests, too. Its files are copied in a stage of their own, since a
 * file that a later line removes would stay in the image. */
static void put_dockerfile(manifest *m)
{
    fl_str_printf(
        &m->out,
        "# The image of job %s. Made by paddle k8s. Fluid's wheel (make wheel) "
        "and the script are in\n"
        "# the folder of the build:\n"
        "#\n"
        "#     docker build -t %s -f %s/Dockerfile .\n"
        "FROM debian:bookworm-slim AS files\n"
        "COPY . /work\n"
        "# The keys of jobs stay out of images.\n"
        "RUN grep -rlZ --include=" SECRET " fluid-job /work | xargs -0r rm -f\n"
        "\n"
        "FROM debian:bookworm-slim\n"
        "RUN apt-get update && apt-get install -y --no-install-recommends \\\n"
        "        python3 python3-pip python3-numpy \\\n"
        "        libdnnl2 libgrpc29 libprotobuf-c1 libgomp1 zlib1g \\\n"
        "        $(dpkg --print-architecture | sed -n "
        "'s/^amd64$/libipsec-mb1/p') && \\\n"
        "    rm -rf /var/lib/apt/lists/*\n"
        "COPY fluid_engine-*.whl /tmp/\n"
        "RUN pip install --break-system-packages --no-deps "
        "/tmp/fluid_engine-*.whl && \\\n"
        "    rm /tmp/fluid_engine-*.whl\n"
        "WORKDIR /work\n"
        "COPY --from=files /work /work\n",
        m->o.name, m->o.image, m->o.folder);
}

/* --- files --- */

/* Write the text so far to a file. `mode` says whether others may read it. */
static fl_err save_text(manifest *m, const char *name, mode_t mode)
{
    const char *path = fl_arena_printf(m->arena, "%s/%s", m->o.folder, name);
    (void)unlink(path); /* an existing file may have another mode */
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    const bool good =
        fd >= 0 && write(fd, m->out.at, m->out.n) == (ssize_t)m->out.n;
    const int why = errno;
    m->out.n = 0;
    if ((fd >= 0 && close(fd)) || !good)
        return fl_fail(FL_EIO, "k8s: %s: %s", path,
                       good ? strerror(errno) : strerror(why));
    return FL_OK;
}

static fl_err write_files(manifest *m)
{
    FL_TRY(check_options(m));
    const fl_err err = fl_disk_real()->mkdirs(fl_disk_real(), m->o.folder);
    if (err)
        return fl_fail_at(err, "choose another folder with --out");
    put_head(m);
    put_service(m);
    put_servers(m);
    put_trainers(m);
    FL_TRY(save_text(m, "job.yaml", 0644));
    put_dockerfile(m);
    FL_TRY(save_text(m, "Dockerfile", 0644));
    if (m->o.insecure)
        return FL_OK;
    FL_TRY(put_secret(m));
    return save_text(m, SECRET, 0600);
}

fl_err fl_k8s_write(const fl_k8s_opts *opts)
{
    manifest m = {.o = *opts, .arena = fl_arena_new()};
    const fl_err err = write_files(&m);
    fl_str_fini(&m.out);
    fl_arena_free(m.arena);
    return err;
}
