/* SPDX-License-Identifier: Apache-2.0 */
/* click_ps.c - samples a second of the click model with parameter servers.
 *
 *     click_ps DATA_DIR BATCH SECONDS SERVERS TRAINERS [sync]
 *
 * Real processes, asynchronous with a communicator unless `sync` is said; each
 * trainer has one thread and trains on a dataset of its own, in memory. With 0
 * servers each trains alone. One line of JSON: what all trainers do together,
 * and the CPU time that a step takes of a trainer and of all servers. */
#include "clicks.h"

#include <poll.h>

enum {
    MOST = 8, /* servers, trainers */
};

typedef struct job {
    const char *data;
    int batch;
    double length; /* seconds */
    char servers[512];
    int n_servers, trainers, me;
    bool sync;
    bool ops; /* print the times of operators */
} job;

typedef struct party {
    fl_engine *e;
    fl_net *net;
    fl_cut *cut;
    fl_exe *exe;
    fl_scope *scope;
    clicks names;
    fl_dataset *data; /* a trainer's */
    double until;     /* when its training ends */
    bool warming;     /* it trains on until it is told to go */
    bool ready;       /* it has said that it may be told */
} party;

static void begin(party *p, const job *j)
{
    p->e = fl_engine_new();
    p->net = fl_net_new(p->e);
    fl_net_seed(p->net, 1);
    must(build_clicks(p->net, &p->names), "the model");
    p->exe = fl_exe_new(p->e, NULL);
    p->scope = fl_scope_new();
    if (!j->n_servers)
        return;
    must(!fl_transpile(fl_net_main(p->net), fl_net_startup(p->net),
                       &(fl_transpile_opts){.pservers = j->servers,
                                            .trainers = j->trainers,
                                            .trainer_id = j->me,
                                            .async = !j->sync,
                                            .runtime_split_send_recv = true},
                       &p->cut),
         "transpile");
}

static void run(party *p, const fl_program *program)
{
    must(!fl_exe_run(p->exe, program, p->scope, 0, NULL, 0, NULL), "run");
}

static void end(party *p)
{
    fl_exe_free(p->exe);
    fl_scope_free(p->scope);
    fl_cut_free(p->cut);
    fl_net_free(p->net);
    fl_engine_free(p->e);
}

static int serve(const job *j, const char *endpoint)
{
    party p = {0};
    fl_program *program, *startup;
    begin(&p, j);
    must(!fl_cut_server(p.cut, endpoint, &program, &startup), endpoint);
    run(&p, startup);
    run(&p, program);
    end(&p);
    return 0;
}

/* --- a trainer --- */

static const fl_program *main_of(const party *p)
{
    return p->cut ? fl_cut_trainer(p->cut) : fl_net_main(p->net);
}

/* Logs from file j->me on. */
static void load_clicks(party *p, const job *j)
{
    char path[PARTS][512];
    const char *files[PARTS];
    fl_data_slot slots[FEEDS] = {
        {"dense_input", FL_F32, .shape = {2, {-1, DENSE}}}};
    for (int i = 0; i < SLOTS; i++)
        slots[1 + i] = (fl_data_slot){p->names.name[i], FL_I64, .sparse = true};
    slots[1 + SLOTS] = (fl_data_slot){"label", FL_I64, .shape = {2, {-1, 1}}};
    for (int i = 0; i < PARTS; i++) {
        snprintf(path[i], sizeof path[i], "%s/multislot/part-%d", j->data,
                 j->me + i);
        files[i] = path[i];
    }
    p->data = fl_dataset_new();
    must(!fl_dataset_set(p->data, &(fl_dataset_opts){.n_slots = FEEDS,
                                                     .slots = slots,
                                                     .n_files = PARTS,
                                                     .files = files,
                                                     .batch = j->batch}) &&
             !fl_dataset_load(p->data) && !fl_dataset_wait(p->data, -1),
         "the clicks");
}

/* Whether a warm trainer has been told to go. It says that it is ready and
 * trains on meanwhile: in synchronous jobs, others wait for its steps. */
static bool is_told(party *p)
{
    struct pollfd in = {.fd = 0, .events = POLLIN};
    if (!p->ready) {
        printf("ready\n");
        fflush(stdout);
        p->ready = true;
    }
    return poll(&in, 1, 0) == 1;
}

static int is_over(void *self)
{
    party *p = self;
    const bool late = seconds(CLOCK_MONOTONIC) >= p->until;
    return late && (!p->warming || is_told(p)) ? FL_END_STEP : FL_GO_ON;
}

/* Train for so long. Returns the number of steps. */
static int64_t train_for(party *p, const job *j, double length, double *loss)
{
    const fl_train_opts opts = {.program = main_of(p),
                                .scope = p->scope,
                                .dataset = p->data,
                                .threads = 1,
                                .status = "off",
                                .debug = j->ops,
                                .poll = is_over,
                                .user = p};
    int64_t steps = 0;
    p->until = seconds(CLOCK_MONOTONIC) + length;
    while (!is_over(p)) {
        fl_progress done;
        must(!fl_train(p->e, &opts, &done), "training");
        steps += done.batches;
        *loss = done.loss;
    }
    return steps;
}

/* Says how many steps it made, and the CPU time of that. */
static void measure(party *p, const job *j)
{
    const clockid_t own = CLOCK_PROCESS_CPUTIME_ID;
    double loss = 0;
    char go;
    p->warming = true;
    train_for(p, j, 0.2, &loss);
    p->warming = false;
    must(read(0, &go, 1) == 1, "nobody says go");
    const double began = seconds(CLOCK_MONOTONIC), cpu = seconds(own);
    const int64_t steps = train_for(p, j, j->length, &loss);
    printf("%lld %.6f %.6f %.4f\n", (long long)steps,
           seconds(CLOCK_MONOTONIC) - began, seconds(own) - cpu,
           loss / j->batch);
    fflush(stdout);
}

static int train(const job *j)
{
    party p = {0};
    begin(&p, j);
    load_clicks(&p, j);
    must(j->sync || !p.cut ||
             !fl_communicator_start(p.e, fl_cut_trainer(p.cut)),
         "communicator");
    run(&p, p.cut ? fl_cut_trainer_startup(p.cut) : fl_net_startup(p.net));
    measure(&p, j);
    must(!fl_engine_leave(p.e, 0, NULL, NULL), "leave");
    fl_dataset_free(p.data);
    end(&p);
    return 0;
}

/* --- all of them --- */

static child start_one(const job *j, const char *what, const char *which)
{
    char batch[16], length[32], n[16], m[16];
    snprintf(batch, sizeof batch, "%d", j->batch);
    snprintf(length, sizeof length, "%g", j->length);
    snprintf(n, sizeof n, "%d", j->n_servers);
    snprintf(m, sizeof m, "%d", j->trainers);
    return start((const char *[]){"click_ps", j->data, batch, length, n, m,
                                  j->sync ? "sync" : "async", what, which,
                                  j->servers, NULL});
}

static void start_all(job *j, child *server, child *trainer)
{
    char text[512];
    free_ports(j->n_servers, j->servers, sizeof j->servers);
    const char *at = j->servers;
    for (int i = 0; i < j->n_servers; i++) {
        snprintf(text, sizeof text, "%.*s", (int)strcspn(at, ","), at);
        server[i] = start_one(j, "server", text);
        at += strcspn(at, ",") + 1;
    }
    for (int i = 0; i < j->trainers; i++) {
        snprintf(text, sizeof text, "%d", i);
        trainer[i] = start_one(j, "trainer", text);
    }
}

static double cpu_of(int n, const child *c)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += seconds(c[i].cpu);
    return sum;
}

static int run_job(job *j)
{
    child server[MOST], trainer[MOST];
    char line[256];
    double rate = 0, cpu = 0, loss = 0, servers;
    long all = 0;
    start_all(j, server, trainer);
    for (int i = 0; i < j->trainers; i++)
        must(fgets(line, sizeof line, trainer[i].out), "a trainer has failed");
    servers = cpu_of(j->n_servers, server);
    for (int i = 0; i < j->trainers; i++)
        must(write(trainer[i].in, "g", 1) == 1, "go");
    for (int i = 0; i < j->trainers; i++) {
        long steps;
        double wall, used;
        must(fgets(line, sizeof line, trainer[i].out) &&
                 sscanf(line, "%ld %lf %lf %lf", &steps, &wall, &used, &loss) ==
                     4,
             "a trainer has failed");
        rate += (double)steps * j->batch / wall;
        cpu += used;
        all += steps;
    }
    servers = cpu_of(j->n_servers, server) - servers;
    for (int i = 0; i < j->trainers; i++)
        stop(&trainer[i]);
    for (int i = 0; i < j->n_servers; i++)
        stop(&server[i]);
    printf("{\"task\": \"click_ps\", \"servers\": %d, \"trainers\": %d, "
           "\"batch\": %d, \"samples_per_s\": %.0f, \"step_us\": %.1f, "
           "\"trainer_cpu_us\": %.1f, \"server_cpu_us\": %.1f, "
           "\"loss\": %.4f}\n",
           j->n_servers, j->trainers, j->batch, rate,
           1e6 * j->batch * j->trainers / rate, 1e6 * cpu / (double)all,
           1e6 * servers / (double)all, loss);
    return 0;
}

int main(int argc, char **argv)
{
    job j = {.ops = getenv("CLICK_PS_OPS") != NULL};
    setenv("FL_LOG", "error", 0);
    setenv("FLUID_LINGER", "0.1", 0);
    if (argc > 5) {
        j.data = argv[1];
        j.batch = atoi(argv[2]);
        j.length = atof(argv[3]);
        j.n_servers = atoi(argv[4]);
        j.trainers = atoi(argv[5]);
    }
    j.sync = argc > 6 && !strcmp(argv[6], "sync");
    if (j.batch < 1 || j.n_servers < 0 || j.n_servers > MOST ||
        j.trainers < 1 || j.trainers > MOST) {
        fprintf(stderr,
                "usage: click_ps DATA_DIR BATCH SECONDS SERVERS TRAINERS "
                "[sync]\n");
        return 2;
    }
    if (argc < 10)
        return run_job(&j);
    snprintf(j.servers, sizeof j.servers, "%s", argv[9]);
    if (!strcmp(argv[7], "server"))
        return serve(&j, argv[8]);
    j.me = atoi(argv[8]);
    return train(&j);
}
