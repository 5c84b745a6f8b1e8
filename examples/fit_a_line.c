/* SPDX-License-Identifier: Apache-2.0 */
/* fit_a_line.c - the first chapter: house prices from thirteen numbers.
 *
 *     fit_a_line train HOUSING_DATA MODEL_DIR
 *     fit_a_line infer HOUSING_DATA MODEL_DIR
 *
 * Trains on the first 404 rows until a batch's loss is under 10, at most for
 * 100 passes, and saves the model; infer loads it and prints its predictions
 * for the other 102 rows. */
#include <fluid.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 506,
    TRAIN = 404, /* the first 80 % */
    FEATURES = 13,
    BATCH = 20,
    PASSES = 100,
};

typedef struct housing {
    float x[ROWS][FEATURES];
    float y[ROWS];
} housing;

static int fail(const char *what)
{
    fprintf(stderr, "fit_a_line: %s: %s\n", what, fl_errmsg());
    return 1;
}

/* Each feature becomes (x - mean) / (max - min) over all rows. */
static void normalise(double (*x)[FEATURES + 1], housing *h)
{
    for (int j = 0; j < FEATURES; j++) {
        double min = x[0][j], max = x[0][j], sum = 0;
        for (int i = 0; i < ROWS; i++) {
            min = x[i][j] < min ? x[i][j] : min;
            max = x[i][j] > max ? x[i][j] : max;
            sum += x[i][j];
        }
        for (int i = 0; i < ROWS; i++)
            h->x[i][j] = (float)((x[i][j] - sum / ROWS) / (max - min));
    }
    for (int i = 0; i < ROWS; i++)
        h->y[i] = (float)x[i][FEATURES];
}

static int read_housing(const char *path, housing *h)
{
    static double x[ROWS][FEATURES + 1];
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        return 1;
    }
    for (int i = 0; i < ROWS * (FEATURES + 1); i++)
        if (fscanf(f, "%lf", &x[i / (FEATURES + 1)][i % (FEATURES + 1)]) != 1) {
            fprintf(stderr, "%s: row %d column %d is no number\n", path,
                    i / (FEATURES + 1) + 1, i % (FEATURES + 1) + 1);
            fclose(f);
            return 1;
        }
    fclose(f);
    normalise(x, h);
    return 0;
}

/* The same order every time: a small generator of our own. */
static void shuffle(int *order, unsigned *state)
{
    for (int i = TRAIN - 1; i > 0; i--) {
        *state = *state * 1664525u + 1013904223u;
        int j = (int)((*state >> 8) % (unsigned)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static fl_var *build(fl_net *n, fl_var **predict)
{
    fl_var *x =
        FL_LAYER(n, "data", {"name", .s = "x"}, {"shape", .i = FEATURES});
    fl_var *y = FL_LAYER(n, "data", {"name", .s = "y"}, {"shape", .i = 1});
    *predict = FL_LAYER(n, "fc", {"input", .var = x}, {"size", .i = 1});
    fl_var *cost = FL_LAYER(n, "square_error_cost", {"input", .var = *predict},
                            {"label", .var = y});
    return FL_LAYER(n, "mean", {"x", .var = cost});
}

/* One pass over the shuffled rows: the mean loss, and the least. */
static fl_err run_pass(fl_exe *exe, fl_program *p, fl_scope *s,
                       const housing *h, const int *order, fl_fetch *loss,
                       double *mean, double *least)
{
    int batches = 0;
    *mean = 0;
    for (int at = 0; at < TRAIN; at += BATCH, batches++) {
        static float x[BATCH][FEATURES], y[BATCH];
        int n = TRAIN - at < BATCH ? TRAIN - at : BATCH;
        for (int i = 0; i < n; i++) {
            memcpy(x[i], h->x[order[at + i]], sizeof x[i]);
            y[i] = h->y[order[at + i]];
        }
        fl_feed feeds[] = {
            {"x", fl_tensor_view(FL_F32, &(fl_shape){2, {n, FEATURES}}, x)},
            {"y", fl_tensor_view(FL_F32, &(fl_shape){2, {n, 1}}, y)},
        };
        fl_err err = fl_exe_run(exe, p, s, 2, feeds, 1, loss);
        if (err)
            return err;
        double l = *(float *)loss->tensor.data;
        *mean += l;
        *least = l < *least ? l : *least;
    }
    *mean /= batches;
    return FL_OK;
}

static fl_err run_passes(fl_exe *exe, fl_program *p, fl_scope *s,
                         const housing *h, fl_fetch *loss, double *least)
{
    int order[TRAIN];
    unsigned state = 7;
    fl_err err = FL_OK;
    for (int i = 0; i < TRAIN; i++)
        order[i] = i;
    *least = 1e9;
    for (int pass = 1; pass <= PASSES && *least >= 10 && !err; pass++) {
        double mean;
        shuffle(order, &state);
        err = run_pass(exe, p, s, h, order, loss, &mean, least);
        if (!err && (pass <= 4 || pass % 4 == 0 || *least < 10))
            printf("pass %3d   mean loss %8.3f   least of a batch %8.3f\n",
                   pass, mean, *least);
    }
    return err;
}

static int train(fl_engine *e, fl_net *n, const housing *h, const char *dir)
{
    fl_net_seed(n, 1);
    fl_var *predict, *cost = build(n, &predict);
    if (fl_minimize(n, cost, "sgd",
                    (fl_arg[]){{"learning_rate", .f = 0.001}, {0}}))
        return fail("the network");
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, NULL);
    fl_fetch loss = {.name = fl_var_name(cost)};
    double least = 1e9;
    fl_err err = fl_exe_run(exe, fl_net_startup(n), s, 0, NULL, 0, NULL);
    if (!err)
        err = run_passes(exe, fl_net_main(n), s, h, &loss, &least);
    const char *feeds[] = {"x"}, *targets[] = {fl_var_name(predict)};
    if (!err)
        err = fl_model_save(e, fl_net_main(n), s, dir, 1, feeds, 1, targets,
                            NULL);
    int code = err ? fail("training") : least >= 10;
    if (!err)
        printf(code ? "no batch got under 10 in 100 passes; saved in %s\n"
                    : "the loss of a batch is under 10; saved in %s\n",
               dir);
    fl_tensor_fini(&loss.tensor);
    fl_exe_free(exe);
    fl_scope_free(s);
    return code;
}

static int infer(fl_engine *e, const housing *h, const char *dir)
{
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, NULL);
    fl_model m = {0};
    fl_fetch out = {0};
    fl_err err = fl_model_load(e, dir, s, NULL, &m);
    if (!err) {
        fl_shape shape = {2, {ROWS - TRAIN, FEATURES}};
        fl_feed feed = {m.feeds[0],
                        fl_tensor_view(FL_F32, &shape, h->x[TRAIN])};
        out.name = m.fetches[0];
        err = fl_exe_run(exe, m.program, s, 1, &feed, 1, &out);
    }
    for (int i = 0; i < ROWS - TRAIN && !err; i++) {
        float price = ((float *)out.tensor.data)[i];
        printf("%a %.4f %.4f\n", price, price, h->y[TRAIN + i]);
    }
    int code = err ? fail("inference") : 0;
    fl_tensor_fini(&out.tensor);
    fl_model_fini(&m);
    fl_exe_free(exe);
    fl_scope_free(s);
    return code;
}

int main(int argc, char **argv)
{
    static housing h;
    if (argc != 4 || (strcmp(argv[1], "train") && strcmp(argv[1], "infer"))) {
        fprintf(stderr, "usage: fit_a_line train|infer HOUSING_DATA DIR\n");
        return 2;
    }
    if (read_housing(argv[2], &h))
        return 1;
    fl_engine *e = fl_engine_new();
    fl_net *n = fl_net_new(e);
    int code = strcmp(argv[1], "train") ? infer(e, &h, argv[3])
                                        : train(e, n, &h, argv[3]);
    fl_net_free(n);
    fl_engine_free(e);
    return code;
}
