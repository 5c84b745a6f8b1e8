/* SPDX-License-Identifier: Apache-2.0 */
/* clicks.h - the click model of the benchmarks, and click logs in memory. */
#ifndef FL_BENCH_CLICKS_H
#define FL_BENCH_CLICKS_H

#include "bench.h"

#include <math.h>

enum {
    DENSE = 13,
    SLOTS = 26,
    WIDTH = 10,
    HEIGHT = 1000001,
    HIDDEN = 400,
    PARTS = 5,     /* files that are read, */
    ROWS = 100000, /* up to so many rows */
    WARM = 20,     /* steps before the clock starts */
    FEEDS = SLOTS + 2,
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

static inline void *need(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p)
        exit(1);
    return p;
}

/* A line: 13 and 13 values, then 26 times 1 and an id, then 1 and a label. */
static inline int read_line(FILE *f, clicks *c)
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

/* From file `first` on. */
static inline void read_clicks(const char *dir, int first, int batch, clicks *c)
{
    c->x = need(ROWS * sizeof *c->x);
    c->y = need(ROWS * sizeof *c->y);
    for (int j = 0; j < SLOTS; j++)
        c->id[j] = need(ROWS * sizeof *c->id[j]);
    for (int part = first; part < first + PARTS && c->n < ROWS; part++) {
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

static inline fl_var *hidden(fl_net *n, fl_var *x, int64_t fan_in, int64_t size,
                             const char *act)
{
    fl_init init = {.kind = "normal", .b = 1 / sqrt((double)fan_in)};
    fl_param_attr attr = {.init = &init};
    return FL_LAYER(n, "fc", {"input", .var = x}, {"size", .i = size},
                    {"act", .s = act}, {"param_attr", .attr = &attr});
}

static inline fl_var *slot(fl_net *n, const char *name)
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

static inline fl_var *build_clicks(fl_net *n, clicks *c)
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
    cost = FL_LAYER(n, "reduce_sum", {"input", .var = cost});
    must(cost && !fl_minimize(n, cost, "sgd",
                              (fl_arg[]){{"learning_rate", .f = 1e-4}, {0}}),
         "the network");
    return cost;
}

static inline void feed_clicks(const clicks *c, int at, fl_feed *feeds)
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

#endif
