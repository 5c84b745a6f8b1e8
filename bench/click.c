/* click.c - samples a second of the click model, data in memory.
 *
 *     click DATA_DIR BATCH SECONDS [nofuse]
 *
 * DATA_DIR/multislot/part-0.. as bench/clicks.py writes them. One thread.
 * Prints one line of JSON. */
#include <fluid.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    DENSE = 13,
    SLOTS = 26,
    WIDTH = 10,
    HEIGHT = 1000001,
    HIDDEN = 400,
    PARTS = 5,
    ROWS = 100000,
    WARM = 20, /* steps before the clock starts */
};

typedef struct clicks {
    float (*x)[DENSE];
    int64_t *id[SLOTS];
    int64_t *y;
    int n;
    char name[SLOTS][8];
    int64_t *offsets; /* one id a row */
    int batch;
} clicks;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "click: %s: %s\n", what, fl_errmsg());
    exit(1);
}

static void *need(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        exit(1);
    return p;
}

/* A line: 13 and 13 values, then 26 times 1 and an id, then 1 and a label. */
static int read_line(FILE *f, clicks *c)
{
    int count, i = c->n;
    if (fscanf(f, "%d", &count) != 1 || count != DENSE)
        return 0;
    for (int j = 0; j < DENSE; j++)
        if (fscanf(f, "%f", &c->x[i][j]) != 1)
            return 0;
    for (int j = 0; j < SLOTS; j++)
        if (fscanf(f, "%d %ld", &count, &c->id[j][i]) != 2)
            return 0;
    return fscanf(f, "%d %ld", &count, &c->y[i]) == 2 && ++c->n;
}

static void read_clicks(const char *dir, int batch, clicks *c)
{
    c->x = need(ROWS * sizeof *c->x);
    c->y = need(ROWS * sizeof *c->y);
    for (int j = 0; j < SLOTS; j++)
        c->id[j] = need(ROWS * sizeof *c->id[j]);
    for (int part = 0; part < PARTS && c->n < ROWS; part++) {
        char path[512];
        snprintf(path, sizeof path, "%s/multislot/part-%d", dir, part);
        FILE *f = fopen(path, "r");
        if (!f) {
            perror(path);
            exit(1);
        }
        while (c->n < ROWS && read_line(f, c))
            ;
        fclose(f);
    }
    c->batch = batch;
    c->offsets = need((size_t)(batch + 1) * sizeof *c->offsets);
    for (int i = 0; i <= batch; i++)
        c->offsets[i] = i;
}

static fl_var *hidden(fl_net *n, fl_var *x, int64_t fan_in, int64_t size,
                      const char *act)
{
    fl_init init = {.kind = "normal", .b = 1 / sqrt((double)fan_in)};
    fl_param_attr attr = {.init = &init};
    return FL_LAYER(n, "fc", {"input", .var = x}, {"size", .i = size},
                    {"act", .s = act}, {"param_attr", .attr = &attr});
}

static fl_var *slot(fl_net *n, const char *name)
{
    fl_init uniform = {.kind = "uniform", .a = -1, .b = 1};
    fl_param_attr table = {.name = "SparseFeatFactors", .init = &uniform};
    int64_t size[] = {HEIGHT, WIDTH};
    fl_var *ids = FL_LAYER(n, "data", {"name", .s = name}, {"shape", .i = 1},
                           {"lod_level", .i = 1}, {"dtype", .i = FL_I64});
    fl_var *rows = FL_LAYER(
        n, "embedding", {"input", .var = ids}, {"size", .n = 2, .ints = size},
        {"is_sparse", .b = true}, {"param_attr", .attr = &table});
    return FL_LAYER(n, "sequence_pool", {"input", .var = rows},
                    {"pool_type", .s = "sum"});
}

static fl_var *build(fl_net *n, clicks *c)
{
    fl_var *in[SLOTS + 1];
    for (int j = 0; j < SLOTS; j++) {
        snprintf(c->name[j], sizeof c->name[j], "C%d", j + 1);
        in[j] = slot(n, c->name[j]);
    }
    in[SLOTS] = FL_LAYER(n, "data", {"name", .s = "dense_input"},
                         {"shape", .i = DENSE});
    fl_var *label = FL_LAYER(n, "data", {"name", .s = "label"},
                             {"shape", .i = 1}, {"dtype", .i = FL_I64});
    fl_var *h = FL_LAYER(n, "concat", {"input", .n = SLOTS + 1, .vars = in},
                         {"axis", .i = 1});
    h = hidden(n, h, SLOTS * WIDTH + DENSE, HIDDEN, "relu");
    h = hidden(n, h, HIDDEN, HIDDEN, "relu");
    h = hidden(n, h, HIDDEN, HIDDEN, "relu");
    h = hidden(n, h, HIDDEN, 2, "softmax");
    fl_var *cost = FL_LAYER(n, "cross_entropy", {"input", .var = h},
                            {"label", .var = label});
    return FL_LAYER(n, "reduce_sum", {"input", .var = cost});
}

static void feed_batch(const clicks *c, int at, fl_feed *feeds)
{
    fl_shape column = {2, {c->batch, 1}}, wide = {2, {c->batch, DENSE}};
    for (int j = 0; j < SLOTS; j++) {
        feeds[j].name = c->name[j];
        feeds[j].tensor = fl_tensor_view(FL_I64, &column, c->id[j] + at);
        feeds[j].tensor.lod =
            (fl_lod){.levels = 1, .n = {c->batch + 1}, .off = {c->offsets}};
    }
    feeds[SLOTS].name = "dense_input";
    feeds[SLOTS].tensor = fl_tensor_view(FL_F32, &wide, c->x[at]);
    feeds[SLOTS + 1].name = "label";
    feeds[SLOTS + 1].tensor = fl_tensor_view(FL_I64, &column, c->y + at);
}

/* Steps for so many seconds; one line of JSON. */
static void measure(fl_exe *exe, fl_net *n, fl_scope *s, const clicks *c,
                    const char *loss_name, double seconds)
{
    fl_feed feeds[SLOTS + 2];
    fl_fetch loss = {.name = loss_name};
    long steps = 0;
    double mean = 0, began = now();
    for (int at = 0; steps < WARM || now() - began < seconds; steps++) {
        if (steps == WARM)
            began = now();
        feed_batch(c, at, feeds);
        if (fl_exe_run(exe, fl_net_main(n), s, SLOTS + 2, feeds, 1, &loss))
            die("step");
        mean = 0.99 * mean + 0.01 * *(float *)loss.tensor.data / c->batch;
        at = at + 2 * c->batch <= c->n ? at + c->batch : 0;
    }
    double us = 1e6 * (now() - began) / (double)(steps - WARM);
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("{\"task\": \"ctr\", \"batch\": %d, \"samples_per_s\": %.0f, "
           "\"step_us\": %.1f, \"steps\": %ld, \"loss\": %.4f, "
           "\"rss_mb\": %ld}\n",
           c->batch, c->batch * 1e6 / us, us, steps - WARM, mean,
           use.ru_maxrss / 1024);
    fl_tensor_fini(&loss.tensor);
}

int main(int argc, char **argv)
{
    if (argc < 4 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: click DATA_DIR BATCH SECONDS [nofuse]\n");
        return 2;
    }
    clicks c = {0};
    read_clicks(argv[1], atoi(argv[2]), &c);
    fl_engine *e = fl_engine_new();
    fl_net *n = fl_net_new(e);
    fl_net_seed(n, 1);
    fl_var *cost = build(n, &c);
    if (fl_minimize(n, cost, "sgd",
                    (fl_arg[]){{"learning_rate", .f = 1e-4}, {0}}))
        die("the network");
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, &(fl_exe_opts){.no_fuse = argc > 4});
    if (fl_exe_run(exe, fl_net_startup(n), s, 0, NULL, 0, NULL))
        die("start");
    measure(exe, n, s, &c, fl_var_name(cost), atof(argv[3]));
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_net_free(n);
    fl_engine_free(e);
    return 0;
}
