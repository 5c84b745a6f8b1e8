/* SPDX-License-Identifier: Apache-2.0 */
#include "op/frame.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/test.h"

#include <string.h>

/* Variables by name, made when asked for; "?" cannot be had. */
typedef struct world {
    fl_arena *arena;
    fl_map values;
    fl_frame frame;
    fl_desc *desc;
} world;

static fl_value *value_of(void *self, const char *name)
{
    world *w = self;
    fl_value *v = fl_map_get(&w->values, name);
    if (!strcmp(name, "?")) {
        CHECK(fl_fail(FL_ENOENT, "no variable \"?\""));
        return NULL;
    }
    if (!v) {
        v = fl_arena_alloc(w->arena, sizeof *v);
        fl_map_put(&w->values, fl_arena_strdup(w->arena, name), v);
    }
    return v;
}

static void world_init(world *w, const char *x, const char *out)
{
    memset(w, 0, sizeof *w);
    w->arena = fl_arena_new();
    w->desc = fl_desc_new(w->arena, "op");
    fl_desc_set_in1(w->desc, "X", x);
    fl_desc_set_out1(w->desc, "Out", out);
}

static void world_fini(world *w)
{
    fl_frame_fini(&w->frame);
    for (fl_entry *e = NULL; (e = fl_map_next(&w->values, e));)
        fl_value_fini(e->value);
    fl_map_fini(&w->values);
    fl_arena_free(w->arena);
}

static float *floats(world *w, const char *name, int64_t n)
{
    fl_value *v = value_of(w, name);
    v->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&v->tensor, FL_F32, &(fl_shape){1, {n}}));
    float *x = v->tensor.data;
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)i;
    return x;
}

static fl_err init(world *w, const fl_op_def *def)
{
    return fl_frame_init(&w->frame, w->arena, def, w->desc, NULL, NULL,
                         value_of, w);
}

static fl_err step(world *w)
{
    FL_TRY(fl_frame_prepare(&w->frame));
    return fl_frame_run(&w->frame);
}

/* Out = X + by, by way of scratch memory. */
static fl_err add_by(fl_call *c)
{
    const float *x = fl_in(c, "X")->data;
    fl_tensor *out = fl_out(c, "Out");
    int64_t n = fl_numel(c, "X");
    float *sum = fl_scratch(c, n, sizeof *sum);
    if (!sum)
        return FL_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        sum[i] = x[i] + fl_attr_f32(c, "by");
    if (out)
        memcpy(out->data, sum, (size_t)n * sizeof *sum);
    return FL_OK;
}

static const fl_op_def plus = {
    .type = "plus",
    .in = {{"X"}, {"Y", FL_OPTIONAL}},
    .out = {{"Out"}},
    .attr = {{"by", FL_ATTR_FLOAT, .f = 1}},
    .infer = fl_infer_same,
    .run = add_by,
};

static void runs_again_without_allocating(void)
{
    world w;
    world_init(&w, "x", "y");
    floats(&w, "x", 5);
    CHECK_OK(init(&w, &plus));
    CHECK_OK(step(&w));
    uint64_t before = fl_mem_count();
    for (int i = 0; i < 3; i++)
        CHECK_OK(step(&w));
    CHECK_INT(fl_mem_count() - before, 0);
    const fl_tensor *y = &value_of(&w, "y")->tensor;
    CHECK_INT(fl_tensor_numel(y), 5);
    CHECK(((float *)y->data)[4] == 5);
    CHECK(!fl_in_value(&w.frame.call, "Y", 0));
    world_fini(&w);
}

static void follows_the_shape_of_each_run(void)
{
    world w;
    world_init(&w, "x", "y");
    floats(&w, "x", 5);
    CHECK_OK(init(&w, &plus));
    CHECK_OK(step(&w));
    floats(&w, "x", 9);
    CHECK_OK(step(&w));
    CHECK_INT(fl_tensor_numel(&value_of(&w, "y")->tensor), 9);
    world_fini(&w);
}

static void in_place_keeps_elements_and_spares_shares(void)
{
    world w;
    fl_tensor share = {0};
    world_init(&w, "x", "x");
    floats(&w, "x", 3);
    CHECK_OK(fl_tensor_ref(&share, &value_of(&w, "x")->tensor));
    CHECK_OK(init(&w, &plus));
    CHECK_OK(step(&w));
    CHECK(((float *)value_of(&w, "x")->tensor.data)[2] == 3);
    CHECK(((float *)share.data)[2] == 2);
    fl_tensor_fini(&share);
    world_fini(&w);
}

static fl_err infer_longer(fl_infer *x)
{
    fl_meta_set(x, "Out", 0, FL_F32, &(fl_shape){1, {7}});
    return FL_OK;
}

static fl_err infer_wider(fl_infer *x)
{
    fl_meta_set(x, "Out", 0, FL_F64, &(fl_shape){1, {3}});
    return FL_OK;
}

static fl_err infer_upright(fl_infer *x)
{
    fl_meta_set(x, "Out", 0, FL_F32, &(fl_shape){2, {3, 1}});
    return FL_OK;
}

static void in_place_cannot_change_type_or_shape(void)
{
    world w;
    fl_op_def def = plus;
    def.infer = infer_longer;
    world_init(&w, "x", "x");
    floats(&w, "x", 3);
    CHECK_OK(init(&w, &def));
    CHECK_ERR(step(&w), FL_EINVAL, "plus: output Out is also an input");
    def.infer = infer_wider;
    CHECK_ERR(step(&w), FL_EINVAL, "f32[3] cannot become lod_tensor f64[3]");
    def.infer =
        infer_upright; /* kernels read X's shape after Out has its own */
    CHECK_ERR(step(&w), FL_EINVAL, "f32[3] cannot become lod_tensor f32[3,1]");
    world_fini(&w);
}

static void lod_is_shared_or_dropped(void)
{
    world w;
    int64_t off[] = {0, 1, 3};
    fl_lod lod = {.levels = 1, .n = {3}, .off = {off}};
    fl_op_def def = plus;
    world_init(&w, "x", "y");
    floats(&w, "x", 3);
    CHECK_OK(fl_lod_copy(&value_of(&w, "x")->tensor.lod, &lod));
    CHECK_OK(init(&w, &def));
    CHECK_OK(fl_frame_prepare(&w.frame));
    CHECK(fl_lod_equal(&value_of(&w, "y")->tensor.lod, &lod));
    def.infer = infer_longer;
    CHECK_OK(fl_frame_prepare(&w.frame));
    CHECK_INT(value_of(&w, "y")->tensor.lod.levels, 0);
    world_fini(&w);
}

static fl_err infer_longer_with_lod(fl_infer *x)
{
    FL_TRY(infer_longer(x));
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

static fl_err infer_flat(fl_infer *x)
{
    fl_meta_set(x, "Out", 0, FL_F32, &(fl_shape){2, {1, 3}});
    return FL_OK;
}

static void lod_that_does_not_fit_is_dropped(void)
{
    world w;
    int64_t off[] = {0, 1, 3};
    fl_lod lod = {.levels = 1, .n = {3}, .off = {off}};
    fl_op_def def = plus;
    def.infer = infer_longer_with_lod;
    world_init(&w, "x", "y");
    floats(&w, "x", 3);
    CHECK_OK(fl_lod_copy(&value_of(&w, "x")->tensor.lod, &lod));
    CHECK_OK(init(&w, &def));
    CHECK_OK(fl_frame_prepare(&w.frame));
    CHECK_INT(value_of(&w, "y")->tensor.lod.levels, 0);
    world_fini(&w);
}

/* plus with a second output. */
static const fl_op_def masked = {
    .type = "masked",
    .in = {{"X"}},
    .out = {{"Out"}, {"Mask", FL_INTERMEDIATE}},
    .attr = {{"by", FL_ATTR_FLOAT, .f = 1}},
    .infer = fl_infer_same,
    .run = add_by,
};

static void two_outputs_are_two_variables(void)
{
    world w;
    world_init(&w, "x", "y");
    fl_desc_set_out1(w.desc, "Mask", "y");
    CHECK_ERR(init(&w, &masked), FL_EINVAL,
              "masked: outputs Out and Mask are both \"y\"");
    world_fini(&w);
}

static void a_view_in_place_drops_sequences_too(void)
{
    world w;
    int64_t off[] = {0, 1, 3};
    fl_lod lod = {.levels = 1, .n = {3}, .off = {off}};
    fl_op_def def = plus;
    def.out[0].flags = FL_VIEW;
    def.infer = infer_flat;
    world_init(&w, "x", "x");
    floats(&w, "x", 3);
    CHECK_OK(fl_lod_copy(&value_of(&w, "x")->tensor.lod, &lod));
    CHECK_OK(init(&w, &def));
    CHECK_OK(fl_frame_prepare(&w.frame));
    CHECK_INT(value_of(&w, "x")->tensor.lod.levels, 0);
    world_fini(&w);
}

static const fl_op_def two_gradients = {
    .type = "two_grad",
    .in = {{"X"}},
    .out = {{"Out@GRAD"}, {"Mask@GRAD"}},
    .infer = fl_infer_none,
    .run = add_by,
    .forward = &plus,
};

static void a_gradient_of_nothing_is_refused(void)
{
    world w;
    world_init(&w, "x", "y");
    w.desc = fl_desc_new(w.arena, "two_grad");
    fl_desc_set_in1(w.desc, "X", "x");
    fl_desc_set_out1(w.desc, "Mask@GRAD", "z");
    floats(&w, "x", 3);
    CHECK_OK(init(&w, &two_gradients));
    CHECK_ERR(step(&w), FL_EINVAL,
              "two_grad: output Mask@GRAD \"z\" has no shape, because input "
              "Mask is missing");
    world_fini(&w);
}

static void an_empty_name_is_absent(void)
{
    world w;
    world_init(&w, "x", FL_EMPTY);
    floats(&w, "x", 3);
    CHECK_OK(init(&w, &plus));
    CHECK_OK(step(&w));
    CHECK(!fl_out(&w.frame.call, "Out"));
    world_fini(&w);
}

static void says_what_is_not_there(void)
{
    world w;
    world_init(&w, "x", "y");
    CHECK_OK(init(&w, &plus));
    CHECK_ERR(step(&w), FL_ENOENT, "plus: input X \"x\" holds nothing yet");
    fl_desc_set_in1(w.desc, "X", "?");
    CHECK_ERR(init(&w, &plus), FL_ENOENT, "no variable \"?\"");
    fl_desc_set_in1(w.desc, "X", FL_EMPTY);
    CHECK_OK(init(&w, &plus));
    CHECK_ERR(step(&w), FL_EINVAL, "plus: input X is missing");
    world_fini(&w);
}

static void says_that_there_is_no_kernel(void)
{
    world w;
    fl_op_def def = plus;
    def.run = NULL;
    world_init(&w, "x", "y");
    floats(&w, "x", 3);
    CHECK_OK(init(&w, &def));
    CHECK_ERR(step(&w), FL_EINVAL,
              "plus: this process has no kernel for the operator");
    world_fini(&w);
}

static void scratch_memory_lasts_and_grows(void)
{
    fl_call c = {0};
    char *at = fl_scratch(&c, 10, 1);
    CHECK_INT((uintptr_t)at % 16, 0);
    memcpy(at, "0123456789", 10);
    CHECK(fl_scratch(&c, 4, 1) == at);
    at = fl_scratch(&c, 100000, 1);
    CHECK(!memcmp(at, "0123456789", 10));
    fl_mem_free(c.scratch);
}

static void scratch_memory_that_is_refused_is_an_error(void)
{
    fl_call c = {.def = &plus};
    char *at = fl_scratch(&c, 3, 1);
    memcpy(at, "abc", 3);
    CHECK(!fl_scratch(&c, INT64_MAX, 8)); /* the product does not fit */
    CHECK_STR(fl_errmsg(), "plus: memory for 9223372036854775807 times 8 "
                           "bytes was refused");
    fl_mem_limit(1000);
    CHECK(!fl_scratch(&c, 1000, 1));
    fl_mem_limit(SIZE_MAX);
    CHECK(!memcmp(fl_scratch(&c, 3, 1), "abc", 3)); /* it still has its own */
    fl_mem_free(c.scratch);
}

static fl_err infer_nothing(fl_infer *x)
{
    return FL_OK;
}

/* What a kernel sizes must not be what it reads. */
static void an_output_of_unknown_shape_is_no_input(void)
{
    world w;
    fl_op_def def = plus;
    def.flags = FL_OP_DYNAMIC;
    def.infer = infer_nothing;
    world_init(&w, "x", "x");
    floats(&w, "x", 3);
    CHECK_OK(init(&w, &def));
    CHECK_ERR(step(&w), FL_EINVAL,
              "plus: output Out is also an input; its shape depends on the "
              "values of inputs");
    world_fini(&w);
}

static fl_err infer_square(fl_infer *x)
{
    fl_meta_set(x, "Out", 0, FL_F32, &(fl_shape){2, {2, 2}});
    return FL_OK;
}

static fl_err view(fl_call *c)
{
    return fl_view(c, "X", "Out");
}

static void a_view_in_place_keeps_its_elements(void)
{
    world w;
    fl_op_def def = {.type = "look",
                     .in = {{"X"}, {"Y"}},
                     .out = {{"Out", FL_VIEW}},
                     .infer = fl_infer_same,
                     .run = add_by};
    world_init(&w, "x", "y");
    fl_desc_set_in1(w.desc, "Y", "y");
    floats(&w, "x", 3);
    floats(&w, "y", 5);
    CHECK_OK(init(&w, &def));
    CHECK_ERR(step(&w), FL_EINVAL, "f32[5] cannot become lod_tensor f32[3]");
    world_fini(&w);
}

static void a_view_shares_unless_it_may_not(void)
{
    world w;
    fl_op_def def = {.type = "view",
                     .in = {{"X"}},
                     .out = {{"Out", FL_VIEW}},
                     .infer = infer_square,
                     .run = view};
    world_init(&w, "x", "y");
    float *x = floats(&w, "x", 4);
    const fl_tensor *y = &value_of(&w, "y")->tensor;
    CHECK_OK(init(&w, &def));
    CHECK_OK(step(&w));
    CHECK(y->data == x);
    CHECK_INT(y->shape.rank, 2);
    w.frame.call.no_views = true;
    CHECK_OK(step(&w));
    CHECK(y->data != x);
    CHECK(((float *)y->data)[3] == 3);
    CHECK_INT(y->shape.rank, 2);
    world_fini(&w);
}

const fl_test fl_tests[] = {
    {"a frame runs again without allocating", runs_again_without_allocating},
    {"a frame follows the shape of each run", follows_the_shape_of_each_run},
    {"in place keeps elements and spares those who share",
     in_place_keeps_elements_and_spares_shares},
    {"in place cannot change type or shape",
     in_place_cannot_change_type_or_shape},
    {"LoD is shared or dropped", lod_is_shared_or_dropped},
    {"LoD that does not fit the rows is dropped",
     lod_that_does_not_fit_is_dropped},
    {"a view in place drops sequences, too",
     a_view_in_place_drops_sequences_too},
    {"two outputs are two variables", two_outputs_are_two_variables},
    {"a gradient of nothing is refused", a_gradient_of_nothing_is_refused},
    {"an empty name is absent", an_empty_name_is_absent},
    {"a frame says what is not there", says_what_is_not_there},
    {"a frame says that there is no kernel", says_that_there_is_no_kernel},
    {"scratch memory lasts and grows", scratch_memory_lasts_and_grows},
    {"scratch memory that is refused is an error",
     scratch_memory_that_is_refused_is_an_error},
    {"an output of unknown shape is no input",
     an_output_of_unknown_shape_is_no_input},
    {"a view in place keeps its elements", a_view_in_place_keeps_its_elements},
    {"a view shares unless it may not", a_view_shares_unless_it_may_not},
    {0},
};
