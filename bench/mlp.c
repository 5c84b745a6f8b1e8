/* SPDX-License-Identifier: Apache-2.0 */
/* mlp.c - a step of the click model's dense part, by real processes.
 *
 *     mlp SECONDS                         alone
 *     mlp SECONDS SERVERS TRAINERS MODE   MODE: sync, async
 *
 * 273 -> 400 -> 400 -> 400 -> 2, SGD, batch 100: 1.72 MB of gradients and as
 * much of parameters a step and trainer. One line of JSON: milliseconds a step
 * and where trainer 0 spends them, and the CPU time of all. */
#include "bench.h"

#include <math.h>

enum {
    WIDTH = 273,
    HIDDEN = 400,
    BATCH = 100,
    BATCHES = 16,
    WARM = 20, /* steps before the clock starts */
    MOST = 8,  /* servers, trainers */
    ROWS = 64, /* kinds of operators */
};

typedef struct job {
    double seconds;
    char servers[512]; /* "": none */
    int n_servers, trainers, me;
    bool async;
} job;

/* --- the model --- */

static fl_var *layer(fl_net *n, fl_var *x, int64_t in, int64_t out,
                     const char *act)
{
    fl_init init = {.kind = "normal", .b = 1 / sqrt((double)in)};
    fl_param_attr attr = {.init = &init};
    return FL_LAYER(n, "fc", {"input", .var = x}, {"size", .i = out},
                    {"act", .s = act}, {"param_attr", .attr = &attr});
}

static fl_net *build(fl_engine *e, const char **loss)
{
    fl_net *n = fl_net_new(e);
    fl_net_seed(n, 1);
    fl_var *x = FL_LAYER(n, "data", {"name", .s = "x"}, {"shape", .i = WIDTH});
    fl_var *y = FL_LAYER(n, "data", {"name", .s = "y"}, {"shape", .i = 1},
                         {"dtype", .i = FL_I64});
    fl_var *h = layer(n, x, WIDTH, HIDDEN, "relu");
    h = layer(n, h, HIDDEN, HIDDEN, "relu");
    h = layer(n, h, HIDDEN, HIDDEN, "relu");
    h = layer(n, h, HIDDEN, 2, "softmax");
    fl_var *cost =
        FL_LAYER(n, "mean",
                 {"x", .var = FL_LAYER(n, "cross_entropy", {"input", .var = h},
                                       {"label", .var = y})});
    must(cost && !fl_minimize(n, cost, "sgd",
                              (fl_arg[]){{"learning_rate", .f = 0.01}, {0}}),
         "the network");
    *loss = fl_var_name(cost);
    return n;
}

static fl_cut *cut(const job *j, fl_net *n)
{
    fl_cut *c;
    must(!fl_transpile(fl_net_main(n), fl_net_startup(n),
                       &(fl_transpile_opts){.pservers = j->servers,
                                            .trainers = j->trainers,
                                            .trainer_id = j->me,
                                            .async = j->async},
                       &c),
         "transpile");
    return c;
}

/* --- a server --- */

static int serve(const job *j, const char *endpoint)
{
    const char *loss;
    fl_engine *e = fl_engine_new();
    fl_net *n = build(e, &loss);
    fl_cut *c = cut(j, n);
    fl_exe *exe = fl_exe_new(e, NULL);
    fl_scope *s = fl_scope_new();
    fl_program *program, *startup;
    must(!fl_cut_server(c, endpoint, &program, &startup) &&
             !fl_exe_run(exe, startup, s, 0, NULL, 0, NULL) &&
             !fl_exe_run(exe, program, s, 0, NULL, 0, NULL),
         endpoint);
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_cut_free(c);
    fl_net_free(n);
    fl_engine_free(e);
    return 0;
}

/* --- a trainer --- */

typedef struct data {
    float x[BATCHES][BATCH][WIDTH];
    int64_t y[BATCHES][BATCH];
} data;

static data *make_data(int seed)
{
    data *d = malloc(sizeof *d);
    must(d, "no memory");
    srand((unsigned)seed);
    for (int b = 0; b < BATCHES; b++)
        for (int i = 0; i < BATCH; i++) {
            d->y[b][i] = rand() % 2;
            for (int k = 0; k < WIDTH; k++)
                d->x[b][i][k] = (float)rand() / (float)RAND_MAX - 0.5f +
                                0.1f * (float)d->y[b][i];
        }
    return d;
}

typedef struct trainer {
    fl_exe *exe;
    const fl_program *program;
    fl_scope *scope;
    data *data;
    fl_fetch loss;
} trainer;

static void step(trainer *t, long i)
{
    fl_shape x = {2, {BATCH, WIDTH}}, y = {2, {BATCH, 1}};
    data *d = t->data;
    fl_feed feeds[2] = {
        {"x", fl_tensor_view(FL_F32, &x, d->x[i % BATCHES])},
        {"y", fl_tensor_view(FL_I64, &y, d->y[i % BATCHES])},
    };
    must(!fl_exe_run(t->exe, t->program, t->scope, 2, feeds, 1, &t->loss),
         "step");
}

/* Milliseconds a step in operators of that type; NULL: in all others. */
static double spent(const trainer *t, const char *type, long steps)
{
    static const char *const ours[] = {"send", "send_barrier", "recv"};
    fl_profile_row row[ROWS];
    int n = fl_exe_profile_rows(t->exe, ROWS, row);
    double ns = 0;
    for (int i = 0; i < n && i < ROWS; i++) {
        bool known = false;
        for (int k = 0; k < 3; k++)
            known |= !strcmp(row[i].type, ours[k]);
        if (type ? !strcmp(row[i].type, type) : !known)
            ns += (double)row[i].total;
    }
    return ns * 1e-6 / (double)steps;
}

static double cpu_of(int n, const clockid_t *clock)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += seconds(clock[i]);
    return sum;
}

/* The rule of the job is that all trainers make as many steps: the first one
 * measures how many fit, and says so. */
static void measure(trainer *t, const job *j, int n, const clockid_t *servers)
{
    long steps = 0, warm = WARM;
    const clockid_t own = CLOCK_PROCESS_CPUTIME_ID;
    for (; steps < warm; steps++)
        step(t, steps);
    fl_exe_profile(t->exe, true);
    double began = seconds(CLOCK_MONOTONIC), cpu = seconds(own);
    double theirs = cpu_of(n, servers);
    for (; seconds(CLOCK_MONOTONIC) - began < j->seconds; steps++)
        step(t, steps);
    const long m = steps - warm;
    const double ms = 1e3 / (double)m;
    printf("{\"step_ms\": %.3f, \"compute_ms\": %.3f, \"send_ms\": %.3f, "
           "\"meet_ms\": %.3f, \"receive_ms\": %.3f, \"trainer_cpu_ms\": %.3f, "
           "\"server_cpu_ms\": %.3f, \"steps\": %ld, \"loss\": %.4f}\n",
           ms * (seconds(CLOCK_MONOTONIC) - began), spent(t, NULL, m),
           spent(t, "send", m), spent(t, "send_barrier", m),
           spent(t, "recv", m), ms * (seconds(own) - cpu),
           ms * (cpu_of(n, servers) - theirs), m,
           *(float *)t->loss.tensor.data);
    fflush(stdout);
}

/* Whether whoever started us has closed our input. */
static bool told_to_end(void)
{
    fd_set in;
    struct timeval now = {0};
    FD_ZERO(&in);
    FD_SET(0, &in);
    return select(1, &in, NULL, NULL, &now) > 0;
}

static int train(const job *j, int n, const clockid_t *servers)
{
    const char *loss;
    fl_engine *e = fl_engine_new();
    fl_net *net = build(e, &loss);
    fl_cut *c = j->servers[0] ? cut(j, net) : NULL;
    trainer t = {.exe = fl_exe_new(e, NULL),
                 .program = c ? fl_cut_trainer(c) : fl_net_main(net),
                 .scope = fl_scope_new(),
                 .data = make_data(j->me),
                 .loss = {.name = loss}};
    must(!fl_exe_run(t.exe, c ? fl_cut_trainer_startup(c) : fl_net_startup(net),
                     t.scope, 0, NULL, 0, NULL),
         "start");
    if (!j->me)
        measure(&t, j, n, servers);
    for (long i = 0; j->me && !told_to_end(); i++)
        step(&t, i);
    must(!fl_engine_leave(e, 0, NULL, NULL), "leave");
    fl_fetch_fini(&t.loss);
    fl_exe_free(t.exe);
    fl_scope_free(t.scope);
    fl_cut_free(c);
    fl_net_free(net);
    fl_engine_free(e);
    free(t.data);
    return 0;
}

/* --- all of them --- */

static child start_one(const job *j, const char *what, const char *which)
{
    char secs[32], n[16], m[16];
    snprintf(secs, sizeof secs, "%g", j->seconds);
    snprintf(n, sizeof n, "%d", j->n_servers);
    snprintf(m, sizeof m, "%d", j->trainers);
    return start((const char *[]){"mlp", secs, n, m,
                                  j->async ? "async" : "sync", what, which,
                                  j->servers, NULL});
}

static const char *endpoint_of(const job *j, int i, char out[64])
{
    const char *at = j->servers;
    for (; i; i--)
        at = strchr(at, ',') + 1;
    snprintf(out, 64, "%.*s", (int)strcspn(at, ","), at);
    return out;
}

static int run_job(job *j)
{
    child server[MOST], trainer[MOST];
    clockid_t clock[MOST];
    char text[64];
    free_ports(j->n_servers, j->servers, sizeof j->servers);
    for (int i = 0; i < j->n_servers; i++) {
        server[i] = start_one(j, "server", endpoint_of(j, i, text));
        clock[i] = server[i].cpu;
    }
    for (int i = 1; i < j->trainers; i++) {
        snprintf(text, sizeof text, "%d", i);
        trainer[i] = start_one(j, "trainer", text);
    }
    train(j, j->n_servers, clock);
    for (int i = 1; i < j->trainers; i++)
        stop(&trainer[i]);
    for (int i = 0; i < j->n_servers; i++)
        stop(&server[i]);
    return 0;
}

int main(int argc, char **argv)
{
    job j = {.seconds = argc > 1 ? atof(argv[1]) : 4};
    setenv("FL_LOG", "error", 0);
    setenv("FLUID_LINGER", "0.1", 0);
    if (argc < 5)
        return train(&j, 0, NULL);
    j.n_servers = atoi(argv[2]);
    j.trainers = atoi(argv[3]);
    j.async = !strcmp(argv[4], "async");
    if (j.n_servers < 1 || j.n_servers > MOST || j.trainers < 1 ||
        j.trainers > MOST) {
        fprintf(stderr, "usage: mlp SECONDS [SERVERS TRAINERS sync|async]\n");
        return 2;
    }
    if (argc < 8)
        return run_job(&j);
    snprintf(j.servers, sizeof j.servers, "%s", argv[7]);
    if (!strcmp(argv[5], "server"))
        return serve(&j, argv[6]);
    j.me = atoi(argv[6]);
    return train(&j, 0, NULL);
}
