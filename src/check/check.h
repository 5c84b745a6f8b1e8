/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - an operator's test is a table: inputs, attributes, outputs.
 *
 *     fl_check_op(&(fl_op_case){
 *         .type = "leaky_relu",
 *         .attr = {{"alpha", FL_ATTR_FLOAT, .f = 0.5f}},
 *         .in = {{"X", {2, 2}, {-2, -1, 1, 3}}},
 *         .out = {{"Out", {2, 2}, {-1, -0.5, 1, 3}}},
 *         .grad = {"X"},
 *     });
 *
 * runs the shape rule and the kernel in f32 and in f64 and compares shapes,
 * types, LoD and elements; then compares the registered gradient with central
 * differences in f64, and the f32 gradient with the f64 one. What was checked
 * is noted in $FL_CHECKED_DIR for the meta-test. Tests only. */
#ifndef FL_CHECK_CHECK_H
#define FL_CHECK_CHECK_H

#include "base/map.h"
#include "base/test.h"
#include "op/op.h"

enum {
    FL_CASE_ARGS = 10,
    FL_CASE_VALUES = 256,
};

/* A list attribute: {"axis", FL_ATTR_INTS, FL_CASE_INTS(1, 0)}. */
#define FL_CASE_INTS(...)                                                      \
    .n = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                   \
    .longs = (int64_t[])                                                       \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* One tensor. A slot that stands several times in a row is a list. */
typedef struct fl_case_arg {
    const char *slot; /* NULL ends the list */
    int64_t dim[6];   /* ends with 0; none: [1] if there are values */
    double value[FL_CASE_VALUES];
    const char *dtype; /* "i64", "bool" ...; NULL: f32, then f64 */
    const char *lod;   /* offsets: "0,2,5", levels apart by ";" */
    const char *rows;  /* selected rows "3,1,3": value has a row for each */
    int64_t height;    /* of selected rows */
    const char *same;  /* output: the variable is this input slot's, in place */
    bool empty;        /* dim holds a 0 on purpose: {0, 4} is [0,4] */
} fl_case_arg;

typedef struct fl_op_case {
    const char *type;
    fl_attr attr[FL_ATTRS];
    fl_case_arg in[FL_CASE_ARGS];
    fl_case_arg out[FL_CASE_ARGS];  /* those given are compared */
    const char *grad[FL_CASE_ARGS]; /* input slots whose gradient is checked */
    const char *want[FL_CASE_ARGS]; /* outputs made but not compared */
    double tolerance;               /* 0: 1e-5, relative above 1 */
    double grad_tolerance;          /* 0: 1e-5 */
} fl_op_case;

void fl_check_op(const fl_op_case *c);

/* Run the case once, in f32, and compare nothing: what a kernel refuses. */
fl_err fl_check_try(const fl_op_case *c);

/* Variables by name, made on first use, for tests that run operators by hand:
 *
 *     fl_vars v;
 *     fl_vars_init(&v);
 *     fl_desc *d = fl_desc_new(v.arena, "assign");
 *     fl_desc_set_in1(d, "X", "x"); ...
 *     CHECK_OK(fl_vars_run(&v, d));
 *     fl_vars_fini(&v); */
typedef struct fl_vars {
    fl_arena *arena;
    fl_map values; /* name -> fl_value */
    fl_hooks hooks;
    fl_workspace workspace;
    void *runner;
} fl_vars;

void fl_vars_init(fl_vars *v);
void fl_vars_fini(fl_vars *v);
fl_value *fl_vars_get(fl_vars *v, const char *name);
/* f32 [n] with these elements. */
fl_tensor *fl_vars_set(fl_vars *v, const char *name, int64_t n,
                       const float *elements);
fl_err fl_vars_run(fl_vars *v, fl_desc *d);

/* Every operator, made once per process. */
const fl_registry *fl_check_registry(void);

/* Note that `type` was checked by hand (an op that no case can hold: files,
 * sub-blocks, random numbers); `grad`: its gradient too. */
void fl_checked(const char *type, bool grad);

/* The shape rule alone, as text:
 *     fl_infer_text("relu X=f32[-1,8]")            "Out=f32[-1,8]"
 *     fl_infer_text("concat{axis=1} X=f32[2,3] X=f32[2,4]")
 * Attributes in braces: ints, floats (with a point), true/false, [1,2] lists,
 * "strings". Metas may carry a LoD level: f32[-1,8]/1, or be rows: rows f32..
 * as X=rows:f32[9,8]. All outputs are asked for. The text lives until the next
 * call. fl_infer_try gives the error instead. */
const char *fl_infer_text(const char *op);
fl_err fl_infer_try(const char *op);

#endif
