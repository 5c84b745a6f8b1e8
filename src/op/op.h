/* SPDX-License-Identifier: Apache-2.0 */
/* op.h - the definition of an operator, its kernel's view of a call, and the
 * registry.
 *
 * One struct, fl_op_def, describes an operator: slots, attributes, shape rule,
 * kernel, and the inputs of its gradient. From .grad_in the registry derives
 * the operator TYPE_grad: it has the listed inputs, one output S@GRAD for each
 * input S that may have a gradient (optional if there are several), and the
 * same attributes.
 *
 * Kernels get tensors and attributes from their fl_call by the names in the
 * table. They have no state except fl_scratch. */
#ifndef FL_OP_OP_H
#define FL_OP_OP_H

#include "op/desc.h"
#include "tensor/value.h"

enum {
    FL_SLOTS = 12, /* largest number of inputs, and of outputs */
    FL_ATTRS = 24, /* largest number of attributes */
};

/* Operator flags. */
enum {
    FL_OP_DYNAMIC = 1,    /* shapes of outputs depend on elements of inputs: the
                           * kernel resizes the outputs */
    FL_OP_NO_INFER = 2,   /* the shape rule does not run when the op is added to
                           * a program */
    FL_OP_HIDDEN = 4,     /* only plans contain it; programs may not */
    FL_OP_LOCAL = 8,      /* it uses files or ports of this machine: programs
                           * from elsewhere may not run it (fl_exec_env.trust) */
    FL_OP_RANDOM = 16,    /* it draws random numbers: two runs may differ */
    FL_OP_HEARS = 32,     /* its inputs arrive over the network during the run:
                           * no op has to write them before it */
    FL_OP_RANKS = 64,     /* it communicates with other ranks: with several
                           * places it runs once */
    FL_OP_IN_PLACE = 128, /* its first output may use the memory of any input of
                           * the same dtype and shape: an element of an input is
                           * read before the same element is written */
    FL_OP_GRAD_IN_PLACE = 256, /* FL_OP_IN_PLACE holds for its gradient op */
    FL_OP_BY_ELEMENT = 512,    /* an element of the output depends only on the
                                * elements of the inputs at the same index: slices
                                * may be computed on different machines */
};

/* --- Shapes ------------------------------------------------------------ */

/* Type and shape of a variable. */
typedef struct fl_meta {
    fl_kind kind;
    fl_dtype dtype;
    fl_shape shape; /* of FL_SELECTED_ROWS: the dense shape, [height, ...] */
    int lod_level;
    const fl_lod *lod; /* at run time: the LoD of an input, or the one that an
                          output gets; NULL in a program */
} fl_meta;

typedef struct fl_infer fl_infer;

/* The meta of a variable by slot; i is its index in an FL_MANY slot. NULL: an
 * optional input is absent, or an output is not needed. */
const fl_meta *fl_meta_in(const fl_infer *x, const char *slot, int i);
fl_meta *fl_meta_out(const fl_infer *x, const char *slot, int i);
int fl_meta_count_in(const fl_infer *x, const char *slot);
int fl_meta_count_out(const fl_infer *x, const char *slot);
/* Whether this is a run: inputs have elements, and no dimension is -1. */
bool fl_meta_running(const fl_infer *x);
const char *fl_meta_type(const fl_infer *x); /* for error messages */
const fl_attr *fl_meta_attr(const fl_infer *x, const char *name);

/* Make output `slot` i a tensor of this dtype and shape. Nothing happens if the
 * output is absent. */
void fl_meta_set(const fl_infer *x, const char *slot, int i, fl_dtype dtype,
                 const fl_shape *shape);
/* Give output `out` the LoD of input `in`. */
void fl_meta_share_lod(const fl_infer *x, const char *in, const char *out);

/* Sets of dtypes for fl_meta_check. */
#define FL_SET(dtype) (1u << (dtype))
#define FL_REALS      (FL_SET(FL_F32) | FL_SET(FL_F64))
#define FL_NUMBERS    (FL_REALS | FL_SET(FL_I64) | FL_SET(FL_I32))
#define FL_OR_ROWS    (1u << 31)    /* selected rows are also allowed */
#define FL_ANY        (~FL_OR_ROWS) /* tensors of every dtype */

/* Check that the inputs of a slot are tensors of one of these dtypes. Err:
 * "relu: X is i64, expected f32 or f64". */
fl_err fl_meta_check(const fl_infer *x, const char *slot,
                     unsigned types) FL_MUST_CHECK;

/* Check that input `slot`, unless it is absent, is a tensor of this dtype and
 * shape; -1 fits any dimension. Err: "mul_grad: Out@GRAD is f32[2,3], expected
 * f32[2,4]". */
fl_err fl_meta_expect(const fl_infer *x, const char *slot, fl_dtype dtype,
                      const fl_shape *shape) FL_MUST_CHECK;

/* Check that an input whose mean is computed has elements at run time. Err:
 * "mean: X [0,1] has no elements (an empty batch?)". */
fl_err fl_meta_not_empty(const fl_infer *x, const char *slot) FL_MUST_CHECK;

/* Check that two inputs have the same dtype and shape; -1 fits any dimension.
 */
fl_err fl_meta_alike(const fl_infer *x, const char *a,
                     const char *b) FL_MUST_CHECK;

/* Check that Fluid can broadcast b over a: the dims of b, without trailing
 * ones, are consecutive dims of a from `axis` on (-1: b's dims are a's last
 * ones). fl_fit_of gives the sizes: a is [pre, n, post], and b has n elements.
 */
fl_err fl_meta_fit(const fl_infer *x, const char *a, const char *b,
                   int64_t axis) FL_MUST_CHECK;
typedef struct fl_fit {
    int64_t pre, n, post;
} fl_fit;
fl_fit fl_fit_of(const fl_shape *a, const fl_shape *b, int64_t axis);

/* Shape rules that many operators share (infer.c). */
fl_err fl_infer_same(fl_infer *x);      /* Out has dtype, shape and LoD of X */
fl_err fl_infer_real(fl_infer *x);      /* the same; X is f32 or f64 */
fl_err fl_infer_broadcast(fl_infer *x); /* the same; Y is broadcast over X */
fl_err fl_infer_scalar(fl_infer *x);    /* Out is [1]; X is f32 or f64 */
fl_err fl_infer_none(fl_infer *x);      /* checks and sets nothing */
/* For a gradient that is computed element by element: all inputs and X@GRAD
 * have the same dtype and shape. */
fl_err fl_infer_grad_alike(fl_infer *x);
/* For a gradient op that has all inputs of its forward op: Out@GRAD must have
 * the shape that the forward rule gives Out, and S@GRAD gets the shape of S. */
fl_err fl_infer_grad_of_rule(fl_infer *x);

/* --- Running ----------------------------------------------------------- */

typedef struct fl_call fl_call;

/* Memory that a kernel uses during one call; the operators of a plan share it,
 * because they run one after the other. Zero is an empty workspace. Own: free
 * `data` with fl_mem_free. */
typedef struct fl_workspace {
    void *data;
    size_t size; /* bytes */
} fl_workspace;

/* Services of the executor for kernels. */
typedef struct fl_hooks {
    fl_err (*run_block)(fl_call *c, int64_t block); /* run a sub-block once */
    uint64_t (*entropy)(fl_call *c); /* a seed for ops whose seed is 0 */
    const struct fl_disk *disk;      /* access to files */
    void *service;            /* connections to servers, for send and recv */
    struct fl_worlds *worlds; /* connections to ranks, for c_* operators */
    fl_workspace *workspace;
} fl_hooks;

typedef struct fl_op_def fl_op_def;

/* The arguments of a kernel. A frame (frame.h) contains it and is made once for
 * all runs of a plan. */
struct fl_call {
    const fl_op_def *def;
    const fl_desc *desc;     /* names of the variables, for messages */
    fl_value **in[FL_SLOTS]; /* in the order of def->in; entries may be NULL */
    fl_value **out[FL_SLOTS];
    int n_in[FL_SLOTS], n_out[FL_SLOTS];
    const fl_attr *attr; /* in the order of def->attr; all are set */
    const fl_hooks *hooks;
    void *runner;  /* data of the executor for the hooks */
    bool no_views; /* an output is used after the step: it must be a copy, not a
                    * view */
    void *scratch; /* memory of the kernel that is kept between runs of this
                    * frame; freed by end_scratch, or with fl_mem_free if that
                    * is NULL */
    void (*end_scratch)(void *scratch);
};

/* The tensor in a slot; NULL: absent. */
const fl_tensor *fl_in(const fl_call *c, const char *slot);
fl_tensor *fl_out(const fl_call *c, const char *slot);
const fl_tensor *fl_in_at(const fl_call *c, const char *slot, int i);
fl_tensor *fl_out_at(const fl_call *c, const char *slot, int i);
int fl_in_count(const fl_call *c, const char *slot);
int fl_out_count(const fl_call *c, const char *slot);

/* The value in a slot, which may be a tensor, selected rows or an array. */
fl_value *fl_in_value(const fl_call *c, const char *slot, int i);
fl_value *fl_out_value(const fl_call *c, const char *slot, int i);

/* The tensor that the kernel writes for an FL_FILLS output: the output, or the
 * values of its selected rows. */
fl_tensor *fl_out_filled(const fl_call *c, const char *slot);

/* The number of elements of the tensor in a slot; 0: absent. */
int64_t fl_numel(const fl_call *c, const char *slot);

/* Attributes. Name and type must be those of the table (an assertion). */
int64_t fl_attr_i64(const fl_call *c, const char *name); /* INT, LONG, BLOCK */
float fl_attr_f32(const fl_call *c, const char *name);
bool fl_attr_bool(const fl_call *c, const char *name);
const char *fl_attr_str(const fl_call *c, const char *name);
const fl_attr *fl_attr_get(const fl_call *c, const char *name); /* lists */

/* Give output `out` (FL_VIEW) the elements of input `in` in the inferred shape
 * and LoD: it shares their memory, or is a copy if sharing is not allowed. */
fl_err fl_view(fl_call *c, const char *in, const char *out) FL_MUST_CHECK;

/* c->scratch with room for n elements of `size` bytes, 16-byte aligned. Its
 * contents are kept between runs of the frame. NULL: there is not enough memory
 * (fl_fail was called); return FL_ENOMEM. */
void *fl_scratch(fl_call *c, int64_t n, size_t size) FL_MUST_CHECK;

/* Memory for the duration of this call, 64-byte aligned; its contents are
 * undefined. A second request in the same kernel may move it. NULL: as above.
 */
void *fl_workspace_get(fl_call *c, size_t bytes) FL_MUST_CHECK;

/* Whether the value is one of the inputs. */
bool fl_call_reads(const fl_call *c, const fl_value *v);

/* The dtype of the first input that is not absent, or else of the first output.
 */
fl_dtype fl_call_dtype(const fl_call *c);

typedef fl_err (*fl_kernel)(fl_call *c);

/* --- The operator ------------------------------------------------------ */

/* The gradient ops of one op while make_grad appends them. */
typedef struct fl_grads {
    const fl_desc *fwd; /* the op whose gradient it is */
    fl_arena *arena;
    FL_VEC(fl_desc *) descs; /* in the order in which they run */
} fl_grads;

/* Append an op of this type and return it, so that make_grad can fill it. */
fl_desc *fl_grad_emit(fl_grads *g, const char *type);
/* The same; its input X is set to Out@GRAD, and its output Out to X@GRAD. */
fl_desc *fl_grad_back(fl_grads *g, const char *type);

struct fl_op_def {
    const char *type;
    fl_slot in[FL_SLOTS], out[FL_SLOTS]; /* in the order of printing */
    fl_attr attr[FL_ATTRS];
    unsigned flags;
    fl_err (*infer)(fl_infer *x); /* the shape rule; only it rejects shapes */
    fl_kernel run;                /* the kernel; relies on infer */

    const char *grad_in[FL_SLOTS]; /* slots that grad_run reads: S, S@GRAD */
    fl_kernel grad_run;            /* kernel of TYPE_grad; if this and make_grad
                                      are NULL, there is no gradient */
    const char *grad_type;         /* NULL: TYPE_grad */
    fl_err (*grad_infer)(fl_infer *x); /* shape rule of the gradient op; NULL:
                                          S@GRAD gets the shape of S */
    fl_err (*make_grad)(fl_grads *g);  /* appends other ops as the gradient */

    /* Called before a run with the inputs of slot ahead_in that the run after
     * it will have, if all of them are fed: the operator can begin what takes
     * long (fl_plan_look_ahead). */
    void (*ahead)(fl_call *c);
    const char *ahead_in;

    const fl_op_def *forward; /* set by the registry in gradient ops: the
                                 operator whose gradient it is */
    const struct fl_rule
        *rule; /* optimisers: the update rule (kernel/rule.h) */
};

/* --- The registry ------------------------------------------------------ */

/* Thread: immutable once made. */
typedef struct fl_registry fl_registry;

/* Check the table of every operator and derive the gradient operators. Own:
 * *out. Err: EINVAL names the operator whose table is wrong: a type or slot
 * occurs twice, a name in .grad_in is neither a slot nor the gradient of one,
 * .run is set without .infer. */
fl_err fl_registry_new(const fl_op_def *const *defs, int n,
                       fl_registry **out) FL_MUST_CHECK;
void fl_registry_free(fl_registry *r);

const fl_op_def *fl_registry_find(const fl_registry *r, const char *type);
/* The same. Err: ENOENT: "unknown op \"reluu\"; did you mean \"relu\"?" */
fl_err fl_registry_get(const fl_registry *r, const char *type,
                       const fl_op_def **def) FL_MUST_CHECK;
int fl_registry_count(const fl_registry *r);
const fl_op_def *fl_registry_at(const fl_registry *r, int i);

/* The operator whose derived gradient is `type`; NULL: none. */
const fl_op_def *fl_registry_forward(const fl_registry *r, const char *type);

bool fl_op_makes_view(const fl_op_def *def); /* it has an FL_VIEW output */
bool fl_op_differentiable(const fl_op_def *def);
int fl_op_slot_in(const fl_op_def *def, const char *slot); /* -1: none */
int fl_op_slot_out(const fl_op_def *def, const char *slot);
int fl_op_attr(const fl_op_def *def, const char *name);

/* Whether every operator may have this attribute in a program: op_role and the
 * like, and attributes for other hardware, which are ignored (use_cudnn). */
bool fl_attr_common(const char *name);

/* Check the slots and attributes of a desc against the table of its operator,
 * and convert attributes in place to the types of the table. With `lenient`
 * (for a file from elsewhere) unknown attributes are kept. Err: EINVAL: a slot
 * is unknown or missing or has several names where one is allowed, an attribute
 * is unknown or has a wrong type. */
fl_err fl_desc_check(const fl_op_def *def, fl_desc *d,
                     bool lenient) FL_MUST_CHECK;

/* All attributes of the table, in its order, with the values of the desc or
 * else the defaults. Own: *out is in the arena. */
fl_err fl_desc_attrs(const fl_op_def *def, const fl_desc *d, fl_arena *a,
                     const fl_attr **out) FL_MUST_CHECK;

/* The arguments of a shape rule. */
struct fl_infer {
    const fl_op_def *def;
    const fl_attr *attr;
    const fl_meta *const *in[FL_SLOTS]; /* in the order of the table; a NULL
                                           entry is absent */
    fl_meta *const *out[FL_SLOTS];
    int n_in[FL_SLOTS], n_out[FL_SLOTS];
    bool running; /* this is a run, not the construction of a program */
};
fl_err fl_infer_run(fl_infer *x) FL_MUST_CHECK; /* run the shape rule */

#endif
