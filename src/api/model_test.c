/* SPDX-License-Identifier: Apache-2.0 */
#include "api/engine.h"
#include "base/str.h"
#include "base/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A trained-for-a-step network, its scope and what it predicts. */
typedef struct world {
    fl_engine *e;
    fl_net *n;
    fl_scope *s;
    fl_exe *exe;
    fl_var *predict;
} world;

static const float x[] = {1, 2, 3, -4, 5, 6};
static const float y[] = {1, 2, 3};

static fl_feed feed_x(const char *name)
{
    return (fl_feed){name, fl_tensor_view(FL_F32, &(fl_shape){2, {3, 2}}, x)};
}

static void world_init(world *w)
{
    *w = (world){.e = fl_engine_new(), .s = fl_scope_new()};
    w->n = fl_net_new(w->e);
    w->exe = fl_exe_new(w->e, NULL);
    fl_net_seed(w->n, 11);
    fl_var *in = FL_LAYER(w->n, "data", {"name", .s = "x"}, {"shape", .i = 2});
    fl_var *want =
        FL_LAYER(w->n, "data", {"name", .s = "y"}, {"shape", .i = 1});
    fl_var *h = FL_LAYER(w->n, "fc", {"input", .var = in}, {"size", .i = 4},
                         {"act", .s = "tanh"});
    fl_var *kept =
        FL_LAYER(w->n, "dropout", {"x", .var = h}, {"dropout_prob", .f = 0.5});
    w->predict = FL_LAYER(w->n, "fc", {"input", .var = kept}, {"size", .i = 1});
    fl_var *cost =
        FL_LAYER(w->n, "square_error_cost", {"input", .var = w->predict},
                 {"label", .var = want});
    fl_var *loss = FL_LAYER(w->n, "mean", {"x", .var = cost});
    CHECK_OK(fl_minimize(w->n, loss, "adam", NULL));
    CHECK_OK(fl_exe_run(w->exe, fl_net_startup(w->n), w->s, 0, NULL, 0, NULL));
    fl_feed feeds[] = {
        feed_x("x"),
        {"y", fl_tensor_view(FL_F32, &(fl_shape){2, {3, 1}}, y)},
    };
    CHECK_OK(fl_exe_run(w->exe, fl_net_main(w->n), w->s, 2, feeds, 0, NULL));
}

static void world_fini(world *w)
{
    fl_exe_free(w->exe);
    fl_scope_free(w->s);
    fl_net_free(w->n);
    fl_engine_free(w->e);
}

static const char *path(const char *name)
{
    static char text[512];
    snprintf(text, sizeof text, "%s/%s", fl_test_dir(), name);
    return text;
}

static void save(world *w, const char *dir, const fl_model_opts *opts)
{
    const char *feeds[] = {"x"}, *targets[] = {fl_var_name(w->predict)};
    CHECK_OK(fl_model_save(w->e, fl_net_main(w->n), w->s, dir, 1, feeds, 1,
                           targets, opts));
}

/* What a loaded model says, in an engine and a scope of its own. */
static void ask(const char *dir, const fl_model_opts *opts, float *out)
{
    fl_engine *e = fl_engine_new();
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, NULL);
    fl_model m;
    CHECK_OK(fl_model_load(e, dir, s, opts, &m));
    CHECK_INT(m.n_feeds, 1);
    CHECK_STR(m.feeds[0], "x");
    CHECK_STR(m.fetches[0], "save_infer_model/scale_0");
    fl_feed feed = feed_x(m.feeds[0]);
    fl_fetch got = {m.fetches[0], {0}};
    CHECK_OK(fl_exe_run(exe, m.program, s, 1, &feed, 1, &got));
    memcpy(out, got.tensor.data, 3 * sizeof *out);
    fl_tensor_fini(&got.tensor);
    fl_model_fini(&m);
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_engine_free(e);
}

static void loads_as_it_was_saved_in_both_layouts(void)
{
    world w;
    float each[3], all[3];
    fl_model_opts one_file = {.model_file = "m", .params_file = "p"};
    world_init(&w);
    save(&w, path("each"), NULL);
    CHECK(!access(path("each/__model__"), R_OK));
    CHECK(!access(path("each/fc_0.w_0"), R_OK));
    CHECK(access(path("each/fc_0.w_0_moment1_0"), R_OK));
    ask(path("each"), NULL, each);
    save(&w, path("all"), &one_file);
    CHECK(!access(path("all/p"), R_OK));
    ask(path("all"), &one_file, all);
    CHECK(!memcmp(each, all, sizeof each));
    CHECK(each[0] != 0);
    world_fini(&w);
}

static void leaves_the_program_as_it_was(void)
{
    world w;
    world_init(&w);
    char *before = fl_program_text(fl_net_main(w.n));
    save(&w, path("untouched"), NULL);
    char *after = fl_program_text(fl_net_main(w.n));
    CHECK_STR(after, before);
    fl_free(before);
    fl_free(after);
    world_fini(&w);
}

static void persistables_go_and_come_back(void)
{
    world w;
    fl_tensor was = {0}, now = {0};
    float zero[8] = {0};
    world_init(&w);
    CHECK_OK(fl_scope_get(w.s, "fc_0.w_0_moment1_0", &was));
    CHECK_OK(
        fl_save_persistables(w.e, fl_net_main(w.n), w.s, path("ckpt"), NULL));
    fl_tensor zeros = fl_tensor_view(FL_F32, &(fl_shape){2, {2, 4}}, zero);
    CHECK_OK(fl_scope_set(w.s, "fc_0.w_0_moment1_0", &zeros));
    CHECK_OK(
        fl_load_persistables(w.e, fl_net_main(w.n), w.s, path("ckpt"), NULL));
    CHECK_OK(fl_scope_get(w.s, "fc_0.w_0_moment1_0", &now));
    CHECK(!memcmp(was.data, now.data, 8 * sizeof(float)));
    CHECK(memcmp(now.data, zero, sizeof zero));
    fl_tensor_fini(&was);
    fl_tensor_fini(&now);
    world_fini(&w);
}

static void cut(const char *file, long to)
{
    CHECK_INT(truncate(file, to), 0);
}

static void a_bad_file_changes_nothing(void)
{
    world w;
    fl_tensor was = {0}, now = {0};
    world_init(&w);
    CHECK_OK(
        fl_save_persistables(w.e, fl_net_main(w.n), w.s, path("bad"), NULL));
    CHECK_OK(fl_scope_get(w.s, "fc_0.b_0", &was));
    ((float *)was.data)[0] += 1;
    CHECK_OK(fl_scope_set(w.s, "fc_0.b_0", &was));
    cut(path("bad/fc_1.w_0"), 30); /* the last but one to be read */
    CHECK_ERR(
        fl_load_persistables(w.e, fl_net_main(w.n), w.s, path("bad"), NULL),
        FL_EPROTO, "bad/fc_1.w_0");
    CHECK_OK(fl_scope_get(w.s, "fc_0.b_0", &now));
    CHECK(!memcmp(was.data, now.data, 4 * sizeof(float)));
    fl_tensor_fini(&was);
    fl_tensor_fini(&now);
    world_fini(&w);
}

static void says_what_is_wrong(void)
{
    world w;
    fl_model m;
    fl_scope *empty = fl_scope_new();
    const char *feeds[] = {"x"}, *targets[] = {"nowhere"};
    world_init(&w);
    CHECK_ERR(fl_model_save(w.e, fl_net_main(w.n), w.s, path("t"), 1, feeds, 1,
                            targets, NULL),
              FL_ENOENT, "nowhere");
    CHECK_ERR(
        fl_save_persistables(w.e, fl_net_main(w.n), empty, path("t"), NULL),
        FL_ENOENT, "holds nothing yet; run the startup program first");
    CHECK_ERR(fl_model_load(w.e, path("absent"), w.s, NULL, &m), FL_ENOENT,
              "/absent does not exist, expected a saved folder");
    save(&w, path("short"), NULL);
    cut(path("short/__model__"), 100);
    CHECK_ERR(fl_model_load(w.e, path("short"), w.s, NULL, &m), FL_EPROTO,
              "short/__model__");
    fl_scope_free(empty);
    world_fini(&w);
}

/* --- a model that the original program wrote --- */

enum {
    ROWS = 506,
    TRAIN = 404,
    COLUMNS = 14,
};

static void write_original(const char *name)
{
    fl_str bytes = {0};
    char file[600];
    fl_test_original(name, &bytes);
    snprintf(file, sizeof file, "%s/%s", path("original"), name);
    CHECK_OK(fl_disk_make_parents(fl_disk_real(), file));
    CHECK_OK(fl_disk_write(fl_disk_real(), file, bytes.at, bytes.n, false));
    fl_str_fini(&bytes);
}

static void read_housing(float (*features)[COLUMNS - 1], float *price)
{
    static double v[ROWS][COLUMNS];
    char file[512];
    const char *shared = getenv("FLUID_SHARED");
    snprintf(file, sizeof file, "%s/data/uci_housing/housing.data",
             shared ? shared : "../shared");
    FILE *f = fopen(file, "r");
    if (!f)
        fl_test_skip("no housing.data at FLUID_SHARED");
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK_INT(fscanf(f, "%lf", &v[i / COLUMNS][i % COLUMNS]), 1);
    fclose(f);
    for (int j = 0; j < COLUMNS - 1; j++) {
        double min = v[0][j], max = v[0][j], sum = 0;
        for (int i = 0; i < ROWS; i++) {
            min = v[i][j] < min ? v[i][j] : min;
            max = v[i][j] > max ? v[i][j] : max;
            sum += v[i][j];
        }
        for (int i = 0; i < ROWS; i++)
            features[i][j] = (float)((v[i][j] - sum / ROWS) / (max - min));
    }
    for (int i = 0; i < ROWS; i++)
        price[i] = (float)v[i][COLUMNS - 1];
}

static double mean_square(const float *a, const float *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sum / n;
}

static void the_originals_model_scores_as_it_did(void)
{
    static float features[ROWS][COLUMNS - 1], price[ROWS];
    const char *files[] = {"__model__", "fc_0.w_0", "fc_0.b_0"};
    for (int i = 0; i < 3; i++)
        write_original(files[i]);
    read_housing(features, price); /* from here on nothing is skipped */
    fl_engine *e = fl_engine_new();
    fl_scope *s = fl_scope_new();
    fl_exe *exe = fl_exe_new(e, NULL);
    fl_model m;
    CHECK_OK(fl_model_load(e, path("original"), s, NULL, &m));
    fl_shape shape = {2, {ROWS, COLUMNS - 1}};
    fl_feed feed = {m.feeds[0], fl_tensor_view(FL_F32, &shape, features)};
    fl_fetch got = {m.fetches[0], {0}};
    CHECK_OK(fl_exe_run(exe, m.program, s, 1, &feed, 1, &got));
    const float *out = got.tensor.data;
    CHECK_NEAR(mean_square(out, price, TRAIN), 83.9350, 1e-4);
    CHECK_NEAR(mean_square(out + TRAIN, price + TRAIN, ROWS - TRAIN), 23.1420,
               1e-4);
    CHECK_NEAR(out[TRAIN], 12.2740, 1e-4);
    CHECK_NEAR(out[TRAIN + 1], 12.3355, 1e-4);
    fl_tensor_fini(&got.tensor);
    fl_model_fini(&m);
    fl_exe_free(exe);
    fl_scope_free(s);
    fl_engine_free(e);
}

const fl_test fl_tests[] = {
    {"model loads as it was saved in both layouts",
     loads_as_it_was_saved_in_both_layouts},
    {"saving a model leaves the program as it was",
     leaves_the_program_as_it_was},
    {"persistables go and come back", persistables_go_and_come_back},
    {"a bad file changes nothing", a_bad_file_changes_nothing},
    {"model says what is wrong", says_what_is_wrong},
    {"the original's model scores as it did",
     the_originals_model_scores_as_it_did},
    {0},
};
