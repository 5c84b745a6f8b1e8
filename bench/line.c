/* SPDX-License-Identifier: Apache-2.0 */
/* line.c - one whole run of "fit a line": batch 20, feed and fetch included.
 *
 *     line SECONDS
 *
 * Prints one line of JSON: the median over runs of a thousand steps. */
#include <fluid.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    BATCH = 20,
    FEATURES = 13,
    RUN = 1000, /* steps between two looks at the clock */
    RUNS = 10000,
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "line: %s: %s\n", what, fl_errmsg());
    exit(1);
}

static fl_var *build(fl_net *n)
{
    fl_var *x =
        FL_LAYER(n, "data", {"name", .s = "x"}, {"shape", .i = FEATURES});
    fl_var *y = FL_LAYER(n, "data", {"name", .s = "y"}, {"shape", .i = 1});
    fl_var *out = FL_LAYER(n, "fc", {"input", .var = x}, {"size", .i = 1});
    fl_var *cost = FL_LAYER(n, "square_error_cost", {"input", .var = out},
                            {"label", .var = y});
    return FL_LAYER(n, "mean", {"x", .var = cost});
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(fl_exe *exe, fl_net *n, fl_scope *s, const char *name,
                    double seconds)
{
    static float x[BATCH][FEATURES], y[BATCH];
    static double us[RUNS];
    for (int i = 0; i < BATCH; i++) {
        for (int j = 0; j < FEATURES; j++)
            x[i][j] = (float)((i * 7 + j * 3) % 11) / 11 - 0.5f;
        y[i] = 22.5f + x[i][3];
    }
    fl_feed feeds[] = {
        {"x", fl_tensor_view(FL_F32, &(fl_shape){2, {BATCH, FEATURES}}, x)},
        {"y", fl_tensor_view(FL_F32, &(fl_shape){2, {BATCH, 1}}, y)},
    };
    fl_fetch loss = {.name = name};
    int runs = 0;
    for (double began = now(); runs < RUNS && now() - began < seconds;) {
        double t = now();
        for (int i = 0; i < RUN; i++)
            if (fl_exe_run(exe, fl_net_main(n), s, 2, feeds, 1, &loss))
                die("step");
        us[runs++] = 1e6 * (now() - t) / RUN;
    }
    qsort(us, (size_t)runs, sizeof *us, ascending);
    printf("{\"task\": \"fit_a_line\", \"batch\": %d, \"step_us_p50\": %.3f, "
           "\"steps\": %d, \"loss\": %g}\n",
           BATCH, us[runs / 2], runs * RUN, *(float *)loss.tensor.data);
    fl_tensor_fini(&loss.tensor);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: line SECONDS\n");
        return 2;
    }
    fl_engine *e = fl_engine_new();
    fl_net *n = fl_net_new(e);
    fl_var *cost = build(n);
    if (fl_minimize(n, cost, "sgd",
                    (fl_arg[]){{"learning_rate", .f = 1e-3}, {0}}))
        die("the network");
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, NULL);
    if (fl_exe_run(exe, fl_net_startup(n), s, 0, NULL, 0, NULL))
        die("start");
    measure(exe, n, s, fl_var_name(cost), atof(argv[1]));
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_net_free(n);
    fl_engine_free(e);
    return 0;
}
