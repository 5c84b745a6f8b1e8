/* SPDX-License-Identifier: Apache-2.0 */
/* click.h - a small click model and its batches: every pattern that is fused
 * stands in it. Tests only. */
#ifndef FL_TESTS_CLICK_H
#define FL_TESTS_CLICK_H

#include "fluid.h"

enum {
    SLOTS = 3,
    HEIGHT = 50,
    WIDTH = 4,
    DENSE = 5,
    BATCH = 8,
};

/* is_distributed: the table is one by id. */
static inline fl_var *click_slot(fl_net *n, const char *name,
                                 bool is_distributed)
{
    fl_init uniform = {.kind = "uniform", .a = -0.5, .b = 0.5, .seed = 3};
    fl_param_attr table = {.name = "table", .init = &uniform};
    fl_var *ids = FL_LAYER(n, "data", {"name", .s = name}, {"shape", .i = 1},
                           {"lod_level", .i = 1}, {"dtype", .i = FL_I64});
    fl_var *rows = FL_LAYER(
        n, "embedding", {"input", .var = ids},
        {"size", .n = 2, .ints = (int64_t[]){HEIGHT, WIDTH}},
        {"is_sparse", .b = true}, {"is_distributed", .b = is_distributed},
        {"param_attr", .attr = &table});
    return FL_LAYER(n, "sequence_pool", {"input", .var = rows},
                    {"pool_type", .s = "sum"});
}

static const char *const slot_name[SLOTS] = {"a", "b", "c"};

static inline fl_var *click_net_of(fl_net *n, bool is_distributed)
{
    fl_var *in[SLOTS + 1];
    for (int i = 0; i < SLOTS; i++)
        in[i] = click_slot(n, slot_name[i], is_distributed);
    in[SLOTS] = FL_LAYER(n, "data", {"name", .s = "x"}, {"shape", .i = DENSE});
    fl_var *label = FL_LAYER(n, "data", {"name", .s = "label"},
                             {"shape", .i = 1}, {"dtype", .i = FL_I64});
    fl_var *h = FL_LAYER(n, "concat", {"input", .n = SLOTS + 1, .vars = in},
                         {"axis", .i = 1});
    const char *acts[] = {"relu", "tanh", "sigmoid"};
    for (int i = 0; i < 3; i++)
        h = FL_LAYER(n, "fc", {"input", .var = h}, {"size", .i = 16},
                     {"act", .s = acts[i]});
    h = FL_LAYER(n, "fc", {"input", .var = h}, {"size", .i = 2},
                 {"act", .s = "softmax"});
    fl_var *cost = FL_LAYER(n, "cross_entropy", {"input", .var = h},
                            {"label", .var = label});
    return FL_LAYER(n, "mean", {"x", .var = cost});
}

static inline fl_var *click_net(fl_net *n)
{
    return click_net_of(n, false);
}

typedef struct batch {
    int64_t off[BATCH + 1], id[SLOTS][2 * BATCH], label[BATCH];
    float x[BATCH][DENSE];
    fl_feed feeds[SLOTS + 2];
} batch;

/* One or two ids a row, other ones at each step. */
static inline void make_batch(batch *b, int step)
{
    for (int i = 0; i < BATCH; i++) {
        b->off[i + 1] = b->off[i] + 1 + (i + step) % 2;
        b->label[i] = (i * 3 + step) % 7 < 3;
        for (int j = 0; j < DENSE; j++)
            b->x[i][j] = (float)((i * 5 + j * 3 + step) % 11) / 11 - 0.5f;
    }
    for (int s = 0; s < SLOTS; s++) {
        for (int i = 0; i < 2 * BATCH; i++)
            b->id[s][i] = (i * 7 + s * 13 + step * 5) % HEIGHT;
        b->feeds[s].name = slot_name[s];
        b->feeds[s].tensor = fl_tensor_view(
            FL_I64, &(fl_shape){2, {b->off[BATCH], 1}}, b->id[s]);
        b->feeds[s].tensor.lod =
            (fl_lod){.levels = 1, .n = {BATCH + 1}, .off = {b->off}};
    }
    b->feeds[SLOTS] = (fl_feed){
        "x", fl_tensor_view(FL_F32, &(fl_shape){2, {BATCH, DENSE}}, b->x)};
    b->feeds[SLOTS + 1] = (fl_feed){
        "label", fl_tensor_view(FL_I64, &(fl_shape){2, {BATCH, 1}}, b->label)};
}

#endif
