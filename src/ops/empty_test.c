/* SPDX-License-Identifier: Apache-2.0 */
/* empty_test.c - tensors with billions of rows and no element in them take no
 * memory, and must take no time either: a program from elsewhere may have
 * them. */
#include "check/check.h"

#include <time.h>

#define MANY ((int64_t)1 << 32)

static const struct {
    const char *type, *in[2], *out[2];
    fl_shape shape;
} cases[] = {
    {"cumsum", {"X"}, {"Out"}, {2, {MANY, 0}}},
    {"argsort", {"X"}, {"Out", "Indices"}, {2, {MANY, 0}}},
    {"matmul", {"X", "Y"}, {"Out"}, {3, {MANY, 0, 0}}},
    {"affine_channel_grad",
     {"X", "Out@GRAD"},
     {"Bias@GRAD"},
     {4, {MANY / 2, 2, 0, 1}}},
};

static void set_empty(fl_vars *v, fl_desc *d, const char *slot,
                      const fl_shape *shape)
{
    fl_value *x = fl_vars_get(v, slot);
    x->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&x->tensor, FL_F32, shape));
    fl_desc_set_in1(d, slot, slot);
}

static void rows_without_elements_take_no_time(void)
{
    const clock_t began = clock();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fl_vars v;
        fl_vars_init(&v);
        fl_desc *d = fl_desc_new(v.arena, cases[i].type);
        for (int k = 0; k < 2 && cases[i].in[k]; k++)
            set_empty(&v, d, cases[i].in[k], &cases[i].shape);
        for (int k = 0; k < 2 && cases[i].out[k]; k++)
            fl_desc_set_out1(d, cases[i].out[k], cases[i].out[k]);
        if (cases[i].shape.rank == 4)
            for (int k = 0; k < 2; k++) {
                const char *slot = k ? "Scale" : "Bias";
                fl_vars_set(&v, slot, 2, (float[]){1, 1});
                fl_desc_set_in1(d, slot, slot);
            }
        CHECK_OK(fl_vars_run(&v, d));
        fl_vars_fini(&v);
    }
    /* of the processor: no machine counts to 2^32 in a second */
    CHECK((clock() - began) / CLOCKS_PER_SEC < 1);
}

const fl_test fl_tests[] = {
    {"rows without elements take no time", rows_without_elements_take_no_time},
    {0},
};
