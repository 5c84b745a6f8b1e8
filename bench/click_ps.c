/* SPDX-License-Identifier: Apache-2.0 */
/* click_ps.c - samples a second of the click model with parameter servers.
 *
 *     click_ps DATA_DIR BATCH SECONDS SERVERS TRAINERS [sync]
 *
 * Real processes, asynchronous with a communicator unless `sync` is said; each
 * trainer has one thread and logs of its own, in memory. One line of JSON: what
 * all trainers do together, and the CPU time that a step takes of a trainer and
 * of all servers. */
#include "clicks.h"

enum {
    MOST = 8,   /* servers, trainers */
    KINDS = 128 /* of operators */
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
    clicks clicks;
    fl_var *cost;
} party;

static void begin(party *p, const job *j)
{
    p->e = fl_engine_new();
    p->net = fl_net_new(p->e);
    fl_net_seed(p->net, 1);
    p->cost = build_clicks(p->net, &p->clicks);
    must(!fl_transpile(fl_net_main(p->net), fl_net_startup(p->net),
                       &(fl_transpile_opts){.pservers = j->servers,
                                            .trainers = j->trainers,
                                            .trainer_id = j->me,
                                            .async = !j->sync,
                                            .runtime_split_send_recv = true},
                       &p->cut),
         "transpile");
    p->exe = fl_exe_new(p->e, NULL);
    p->scope = fl_scope_new();
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

static void step(party *p, int *at, fl_fetch *loss)
{
    fl_feed feeds[FEEDS];
    const clicks *c = &p->clicks;
    feed_clicks(c, *at, feeds);
    must(!fl_exe_run(p->exe, fl_cut_trainer(p->cut), p->scope, FEEDS, feeds, 1,
                     loss),
         "step");
    *at = *at + 2 * c->batch <= c->n ? *at + c->batch : 0;
}

static void print_times(const party *p, long steps)
{
    fl_profile_row row[KINDS];
    const int n = fl_exe_profile_rows(p->exe, KINDS, row);
    for (int i = 0; i < n && i < KINDS; i++)
        fprintf(stderr, "%-32s %9.1f us in %g calls\n", row[i].type,
                1e-3 * (double)row[i].total / (double)steps,
                (double)row[i].calls / (double)steps);
}

/* Says how many steps it made, and the CPU time of that. */
static void measure(party *p, const job *j)
{
    const clockid_t own = CLOCK_PROCESS_CPUTIME_ID;
    fl_fetch loss = {.name = fl_var_name(p->cost)};
    double mean = 0;
    int at = 0;
    char go;
    for (int i = 0; i < WARM; i++)
        step(p, &at, &loss);
    printf("ready\n");
    fflush(stdout);
    must(read(0, &go, 1) == 1, "nobody says go");
    if (j->ops)
        fl_exe_profile(p->exe, true);
    const double began = seconds(CLOCK_MONOTONIC), cpu = seconds(own);
    long steps = 0;
    for (; seconds(CLOCK_MONOTONIC) - began < j->length; steps++) {
        step(p, &at, &loss);
        mean = 0.99 * mean + 0.01 * *(float *)loss.tensor.data / j->batch;
    }
    printf("%ld %.6f %.6f %.4f\n", steps, seconds(CLOCK_MONOTONIC) - began,
           seconds(own) - cpu, mean);
    fflush(stdout);
    if (j->ops)
        print_times(p, steps);
    fl_tensor_fini(&loss.tensor);
}

static int train(const job *j)
{
    party p = {0};
    read_clicks(j->data, j->me, j->batch, &p.clicks);
    begin(&p, j);
    must(j->sync || !fl_communicator_start(p.e, fl_cut_trainer(p.cut)),
         "communicator");
    run(&p, fl_cut_trainer_startup(p.cut));
    measure(&p, j);
    must(!fl_engine_leave(p.e, 0, NULL, NULL), "leave");
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
    if (j.batch < 1 || j.n_servers < 1 || j.n_servers > MOST ||
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
