/* SPDX-License-Identifier: Apache-2.0 */
/* How rules meet sparse gradients, slices and bad input. */
#include "check/check.h"
#include "kernel/rule.h"
#include "op/frame.h"

#include <string.h>

enum {
    ROWS = 5,
    WIDTH = 3,
    SIZE = ROWS * WIDTH,
};

/* One operator with its variables: Param, Grad, LearningRate, states, powers.
 */
typedef struct scene {
    const fl_op_def *def;
    fl_arena *arena;
    fl_desc *desc;
    fl_frame frame;
    fl_value value[FL_SLOTS]; /* by the order of def->in */
} scene;

static fl_value *resolve(void *self, const char *name)
{
    scene *s = self;
    return &s->value[fl_op_slot_in(s->def, name)];
}

static void make_tensor(fl_value *v, int64_t rows, int64_t width)
{
    fl_shape shape = {2, {rows, width}};
    v->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&v->tensor, FL_F32, &shape));
}

static fl_value *var(scene *s, const char *slot)
{
    return resolve(s, slot);
}

static float *data(scene *s, const char *slot)
{
    return var(s, slot)->tensor.data;
}

static void set_number(scene *s, const char *slot, float number)
{
    if (fl_op_slot_in(s->def, slot) < 0)
        return;
    make_tensor(var(s, slot), 1, 1);
    *data(s, slot) = number;
}

static void name_slots(scene *s)
{
    const fl_rule *r = s->def->rule;
    for (int i = 0; i < FL_SLOTS && s->def->in[i].name; i++)
        fl_desc_set_in1(s->desc, s->def->in[i].name, s->def->in[i].name);
    fl_desc_set_out1(s->desc, "ParamOut", "Param");
    for (int i = 0; i < FL_RULE_STATES && r->state[i].in; i++)
        fl_desc_set_out1(s->desc, r->state[i].out, r->state[i].in);
}

/* States are not zero, so that decay shows. */
static void begin(scene *s, const char *type, const fl_attr *attr)
{
    *s = (scene){.arena = fl_arena_new()};
    CHECK_OK(fl_registry_get(fl_check_registry(), type, &s->def));
    s->desc = fl_desc_new(s->arena, type);
    name_slots(s);
    for (; attr && attr->name; attr++)
        fl_desc_set_attr(s->desc, attr);
    if (fl_op_attr(s->def, "mu") >= 0)
        fl_desc_set_attr(s->desc, &(fl_attr){"mu", FL_ATTR_FLOAT, .f = 0.9f});
    const fl_rule *r = s->def->rule;
    make_tensor(var(s, "Param"), ROWS, WIDTH);
    for (int i = 0; i < SIZE; i++)
        data(s, "Param")[i] = 1 + 0.1f * (float)i;
    for (int k = 0; k < FL_RULE_STATES && r->state[k].in; k++) {
        make_tensor(var(s, r->state[k].in), ROWS, WIDTH);
        for (int i = 0; i < SIZE; i++)
            data(s, r->state[k].in)[i] = 0.5f + 0.01f * (float)(i + k);
    }
    set_number(s, "LearningRate", 0.1f);
    set_number(s, "Beta1Pow", 0.81f);
    set_number(s, "Beta2Pow", 0.998f);
    CHECK_OK(fl_frame_init(&s->frame, s->arena, s->def, s->desc, NULL, NULL,
                           resolve, s));
}

static void end(scene *s)
{
    fl_frame_fini(&s->frame);
    for (int i = 0; i < FL_SLOTS; i++)
        fl_value_fini(&s->value[i]);
    fl_arena_free(s->arena);
}

static void step(scene *s)
{
    CHECK_OK(fl_frame_prepare(&s->frame));
    CHECK_OK(fl_frame_run(&s->frame));
}

/* Gradient value i of row r, when it is listed the time-th time. */
static float grad_at(int64_t r, int i, int time)
{
    return 0.5f * (float)(r - 1) + 0.25f * (float)i - 0.375f * (float)time;
}

static void list_rows(scene *s, int n, const int64_t *rows)
{
    fl_value *g = var(s, "Grad");
    fl_shape shape = {2, {ROWS, WIDTH}};
    g->kind = FL_SELECTED_ROWS;
    CHECK_OK(fl_rows_resize(&g->rows, FL_F32, &shape, n));
    for (int i = 0; i < n; i++) {
        int time = 0;
        for (int j = 0; j < i; j++)
            time += rows[j] == rows[i];
        fl_rows_index(&g->rows)[i] = rows[i];
        for (int k = 0; k < WIDTH; k++)
            ((float *)g->rows.value.data)[i * WIDTH + k] =
                grad_at(rows[i], k, time);
    }
}

/* The same gradient, dense. */
static void spread_rows(scene *s, int n, const int64_t *rows)
{
    make_tensor(var(s, "Grad"), ROWS, WIDTH);
    float *g = data(s, "Grad");
    memset(g, 0, SIZE * sizeof *g);
    for (int i = 0; i < n; i++) {
        int time = 0;
        for (int j = 0; j < i; j++)
            time += rows[j] == rows[i];
        for (int k = 0; k < WIDTH; k++)
            g[rows[i] * WIDTH + k] += grad_at(rows[i], k, time);
    }
}

static const int64_t twice[] = {3, 1, 3, 0};

static void check_same(scene *a, scene *b, const char *slot)
{
    CHECK(!memcmp(data(a, slot), data(b, slot), SIZE * sizeof(float)));
}

static const char *const types[] = {"momentum", "adagrad",         "adam",
                                    "adamax",   "decayed_adagrad", "adadelta",
                                    "rmsprop"};

static void rows_agree_with_dense(void)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        scene sparse, dense;
        begin(&sparse, types[t], NULL);
        begin(&dense, types[t], NULL);
        for (int i = 0; i < 3; i++) {
            list_rows(&sparse, 4, twice);
            step(&sparse);
            spread_rows(&dense, 4, twice);
            step(&dense);
        }
        check_same(&sparse, &dense, "Param");
        const fl_rule *r = sparse.def->rule;
        for (int k = 0; k < FL_RULE_STATES && r->state[k].in; k++)
            check_same(&sparse, &dense, r->state[k].in);
        end(&sparse);
        end(&dense);
    }
}

static void sgd_applies_each_row_in_order(void)
{
    scene s;
    begin(&s, "sgd", NULL);
    list_rows(&s, 4, twice);
    float want[SIZE];
    memcpy(want, data(&s, "Param"), sizeof want);
    for (int k = 0; k < WIDTH; k++) {
        want[3 * WIDTH + k] -= 0.1f * grad_at(3, k, 0);
        want[3 * WIDTH + k] -= 0.1f * grad_at(3, k, 1);
        want[1 * WIDTH + k] -= 0.1f * grad_at(1, k, 0);
        want[0 * WIDTH + k] -= 0.1f * grad_at(0, k, 0);
    }
    step(&s);
    CHECK(!memcmp(data(&s, "Param"), want, sizeof want));
    end(&s);
}

/* Which rows of a slot differ from what begin() put there, as digits. */
static const char *changed(scene *s, const char *slot, char text[ROWS + 1])
{
    scene fresh;
    begin(&fresh, s->def->type, NULL);
    int n = 0;
    for (int r = 0; r < ROWS; r++)
        if (memcmp(data(s, slot) + r * WIDTH, data(&fresh, slot) + r * WIDTH,
                   WIDTH * sizeof(float)))
            text[n++] = (char)('0' + r);
    text[n] = 0;
    end(&fresh);
    return text;
}

static void unlisted_rows_of_adam_decay_unless_lazy(void)
{
    const fl_attr lazy[] = {{"lazy_mode", FL_ATTR_BOOL, .b = true}, {0}};
    char text[ROWS + 1];
    scene s;
    begin(&s, "adam", NULL);
    list_rows(&s, 4, twice);
    step(&s);
    CHECK_STR(changed(&s, "Param", text), "01234");
    CHECK_STR(changed(&s, "Moment1", text), "01234");
    end(&s);
    begin(&s, "adam", lazy);
    list_rows(&s, 4, twice);
    step(&s);
    CHECK_STR(changed(&s, "Param", text), "013");
    CHECK_STR(changed(&s, "Moment1", text), "013");
    end(&s);
}

static void listed_rows_are_the_same_lazy_or_not(void)
{
    const fl_attr lazy[] = {{"lazy_mode", FL_ATTR_BOOL, .b = true}, {0}};
    scene a, b;
    begin(&a, "adam", NULL);
    begin(&b, "adam", lazy);
    list_rows(&a, 4, twice);
    list_rows(&b, 4, twice);
    step(&a);
    step(&b);
    CHECK(!memcmp(data(&a, "Param"), data(&b, "Param"),
                  2 * WIDTH * sizeof(float)));
    CHECK(!memcmp(data(&a, "Param") + 3 * WIDTH, data(&b, "Param") + 3 * WIDTH,
                  WIDTH * sizeof(float)));
    end(&a);
    end(&b);
}

static void ftrl_leaves_unlisted_rows_alone(void)
{
    char text[ROWS + 1];
    scene s;
    begin(&s, "ftrl", NULL);
    list_rows(&s, 4, twice);
    step(&s);
    CHECK_STR(changed(&s, "Param", text), "013");
    CHECK_STR(changed(&s, "LinearAccumulator", text), "013");
    end(&s);
}

static void no_rows_means_no_step(void)
{
    char text[ROWS + 1];
    scene s;
    begin(&s, "adam", NULL);
    list_rows(&s, 0, NULL);
    step(&s);
    CHECK_STR(changed(&s, "Moment1", text), "");
    end(&s);
}

static void a_slice_steps_as_the_whole(void)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        scene whole, cut;
        begin(&whole, types[t], NULL);
        begin(&cut, types[t], NULL);
        spread_rows(&whole, 4, twice);
        spread_rows(&cut, 4, twice);
        step(&whole);
        const fl_rule *r = cut.def->rule;
        fl_rule_step in = {cut.def, cut.frame.call.attr, 0.1f, {0.81f, 0.998f}};
        const fl_hyper h = fl_rule_prepare(r, &in);
        CHECK(!r->whole);
        const int from[] = {0, 7, SIZE};
        for (int i = 0; i < 2; i++) {
            void *state[FL_RULE_STATES] = {0};
            for (int k = 0; k < FL_RULE_STATES && r->state[k].in; k++)
                state[k] = data(&cut, r->state[k].in) + from[i];
            fl_rule_apply(r, FL_F32, from[i + 1] - from[i],
                          data(&cut, "Param") + from[i],
                          data(&cut, "Grad") + from[i], state, &h);
        }
        check_same(&whole, &cut, "Param");
        end(&whole);
        end(&cut);
    }
}

static bool has(int slot)
{
    return slot >= 0;
}

static void every_rule_fits_its_operator(void)
{
    const fl_registry *all = fl_check_registry();
    for (int i = 0; i < fl_registry_count(all); i++) {
        const fl_op_def *def = fl_registry_at(all, i);
        const fl_rule *r = def->rule;
        if (!r)
            continue;
        CHECK(r->f32 && r->f64);
        CHECK(has(fl_op_slot_in(def, "Param")));
        CHECK(has(fl_op_slot_in(def, "Grad")));
        for (int k = 0; k < FL_RULE_STATES && r->state[k].in; k++) {
            CHECK(has(fl_op_slot_in(def, r->state[k].in)));
            CHECK(has(fl_op_slot_out(def, r->state[k].out)));
        }
        for (int k = 0; k < FL_RULE_POWERS && r->power[k].slot; k++) {
            CHECK(has(fl_op_slot_in(def, r->power[k].slot)));
            CHECK(has(fl_op_attr(def, r->power[k].attr)));
        }
    }
}

static void other_outputs_leave_the_inputs(void)
{
    fl_check_op(&(fl_op_case){
        .type = "momentum",
        .attr = {{"mu", FL_ATTR_FLOAT, .f = 0.5f}},
        .in = {{"Param", {2}, {1, 2}},
               {"Grad", {2}, {1, -1}},
               {"Velocity", {2}, {2, 4}},
               {"LearningRate", {1}, {0.5}}},
        .out = {{"ParamOut", {2}, {0, 1.5}}, {"VelocityOut", {2}, {2, 1}}},
    });
}

static void a_steady_step_allocates_nothing(void)
{
    scene s;
    begin(&s, "adam", NULL);
    list_rows(&s, 4, twice);
    step(&s);
    uint64_t before = fl_mem_count();
    step(&s);
    CHECK_INT((int64_t)fl_mem_count(), (int64_t)before);
    end(&s);
}

static void says_which_row_is_outside(void)
{
    const int64_t rows[] = {2, 5};
    scene s;
    begin(&s, "sgd", NULL);
    list_rows(&s, 2, rows);
    CHECK_OK(fl_frame_prepare(&s.frame));
    CHECK_ERR(fl_frame_run(&s.frame), FL_EINVAL,
              "sgd: Grad lists row 5, Param has 5 rows");
    end(&s);
}

static void outputs_are_like_the_inputs(void)
{
    CHECK_STR(fl_infer_text("sgd Param=f32[9,8] LearningRate=f32[1] "
                            "Grad=rows:f32[9,8]"),
              "ParamOut=f32[9,8]");
    CHECK_STR(fl_infer_text("momentum{mu=0.9} Param=f64[9] Grad=f64[9] "
                            "Velocity=f64[9] LearningRate=f32[1]"),
              "ParamOut=f64[9] VelocityOut=f64[9]");
}

static void says_what_does_not_fit(void)
{
    CHECK_ERR(
        fl_infer_try(
            "momentum{mu=0.5} Param=rows:f32[2] Grad=f32[2] Velocity=f32[2] "
            "LearningRate=f32[1]"),
        FL_ESHAPE, "momentum: Param is selected_rows, expected a tensor");
    CHECK_ERR(fl_infer_try("momentum{mu=0.5} Param=f32[2] Grad=f32[2] "
                           "Velocity=rows:f32[2] LearningRate=f32[1]"),
              FL_ESHAPE, "momentum: Velocity is selected_rows, expected");
    CHECK_ERR(
        fl_infer_try("sgd Param=f32[9,8] LearningRate=f32[1] Grad=f32[9,7]"),
        FL_ESHAPE, "sgd: Param is [9,8], Grad is [9,7]");
    CHECK_ERR(fl_infer_try("sgd Param=f32[9] LearningRate=f32[1] Grad=f64[9]"),
              FL_ESHAPE, "sgd: Param is f32, Grad is f64");
    CHECK_ERR(fl_infer_try("sgd Param=i64[9] LearningRate=f32[1] Grad=i64[9]"),
              FL_ESHAPE, "sgd: Param is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("sgd Param=f32[9] LearningRate=f32[2] Grad=f32[9]"),
              FL_ESHAPE, "sgd: LearningRate is [2], expected one element");
    CHECK_ERR(fl_infer_try("sgd Param=f32[9] LearningRate=i64[1] Grad=f32[9]"),
              FL_ESHAPE, "sgd: LearningRate is i64, expected f32 or f64");
    CHECK_ERR(fl_infer_try("momentum{mu=0.9} Param=f32[9] Grad=f32[9] "
                           "Velocity=f32[8] LearningRate=f32[1]"),
              FL_ESHAPE, "momentum: Param is [9], Velocity is [8]");
    CHECK_ERR(fl_infer_try("lars_momentum{mu=0.9} Param=f32[9,2] "
                           "Grad=rows:f32[9,2] Velocity=f32[9,2] "
                           "LearningRate=f32[1]"),
              FL_ESHAPE,
              "lars_momentum: Grad is selected rows, expected a dense");
    CHECK_ERR(fl_infer_try("rmsprop{centered=true} Param=f32[9] "
                           "MeanSquare=f32[9] LearningRate=f32[1] Grad=f32[9] "
                           "Moment=f32[9]"),
              FL_EINVAL,
              "rmsprop: centered is true, but input MeanGrad is missing");
}

static void sgd_updates_selected_rows(void)
{
    fl_check_op(&(fl_op_case){
        .type = "sgd",
        .in = {{"Param",
                {3, 2},
                {1, 2, 3, 4, 5, 6},
                .rows = "7,2,9",
                .height = 10},
               {"Grad",
                {3, 2},
                {1, 1, 2, 2, 4, 4},
                .rows = "9,7,9",
                .height = 10},
               {"LearningRate", {1}, {0.5}}},
        .out = {{"ParamOut",
                 {3, 2},
                 {0, 1, 3, 4, 2.5, 3.5},
                 .rows = "7,2,9",
                 .height = 10,
                 .same = "Param"}},
    });
    CHECK_ERR(fl_check_try(&(fl_op_case){
                  .type = "sgd",
                  .in = {{"Param", {1, 1}, {1}, .rows = "7", .height = 10},
                         {"Grad", {1, 1}, {1}, .rows = "3", .height = 10},
                         {"LearningRate", {1}, {0.5}}},
                  .want = {"ParamOut"},
              }),
              FL_EINVAL, "sgd: Grad lists row 3, which Param does not have");
    CHECK_ERR(fl_infer_try("sgd Param=rows:f32[9,2] Grad=f32[9,2] "
                           "LearningRate=f32[1]"),
              FL_ESHAPE,
              "sgd: Param is selected rows f32[9,2], Grad is lod_tensor "
              "f32[9,2], expected selected rows of the same width");
}

const fl_test fl_tests[] = {
    {"sparse steps agree with dense ones to the bit", rows_agree_with_dense},
    {"sgd applies each listed row in order", sgd_applies_each_row_in_order},
    {"adam: unlisted rows decay unless it is lazy",
     unlisted_rows_of_adam_decay_unless_lazy},
    {"adam: listed rows are the same, lazy or not",
     listed_rows_are_the_same_lazy_or_not},
    {"ftrl leaves unlisted rows alone", ftrl_leaves_unlisted_rows_alone},
    {"a gradient without rows is no step", no_rows_means_no_step},
    {"a slice steps as the whole does", a_slice_steps_as_the_whole},
    {"every rule fits its operator", every_rule_fits_its_operator},
    {"outputs of other names leave the inputs", other_outputs_leave_the_inputs},
    {"a steady step allocates nothing", a_steady_step_allocates_nothing},
    {"an update says which row is outside", says_which_row_is_outside},
    {"an update's outputs are like its inputs", outputs_are_like_the_inputs},
    {"an update says what does not fit", says_what_does_not_fit},
    {"sgd updates selected rows", sgd_updates_selected_rows},
    {0},
};
