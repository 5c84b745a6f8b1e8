/* SPDX-License-Identifier: Apache-2.0 */
/* op.h - what an operator is.
 *
 * One struct says all of it: slots, attributes, the shape rule, the kernel, and
 * what its gradient reads. From .grad_in the registry itself makes the operator
 * TYPE_grad: inputs as listed, one output S@GRAD for each input S that may have
 * a gradient (of several, each is optional), the same attributes.
 *
 * Kernels find things by the names in the table. They get what they need from
 * their caller (fl_call) and keep nothing. */
#ifndef FL_OP_OP_H
#define FL_OP_OP_H

#include "op/desc.h"
#include "tensor/value.h"

enum {
    FL_SLOTS = 12, /* inputs, or outputs, of an operator at most */
    FL_ATTRS = 24,
};

/* Operator flags. */
enum {
    FL_OP_DYNAMIC = 1,    /* shapes depend on values: the kernel resizes */
    FL_OP_NO_INFER = 2,   /* nothing is inferred when it is appended */
    FL_OP_HIDDEN = 4,     /* made by the planner only; not for programs */
    FL_OP_LOCAL = 8,      /* touches files or ports of this machine: not for
                           * programs from elsewhere (fl_exec_env.trust) */
    FL_OP_RANDOM = 16,    /* draws numbers: two runs may differ */
    FL_OP_HEARS = 32,     /* what it reads comes to it over the network */
    FL_OP_RANKS = 64,     /* talks to other ranks: once for all places */
    FL_OP_IN_PLACE = 128, /* its first output may lie in the memory of any
                           * input of the same type and shape: an element of an
                           * input is read before the same one is written */
    FL_OP_GRAD_IN_PLACE = 256, /* the same of its gradient */
    FL_OP_BY_ELEMENT = 512,    /* an element of the output depends only on the
                                * elements of the inputs at the same index: slices
                                * may be computed on different machines */
};

/* --- Shapes ------------------------------------------------------------ */

/* What is known of a variable without its elements. */
typedef struct fl_meta {
    fl_kind kind;
    fl_dtype dtype;
    fl_shape shape; /* of FL_SELECTED_ROWS: as if dense, [height, ...] */
    int lod_level;
    const fl_lod *lod; /* run time only: whose LoD an output takes */
} fl_meta;

typedef struct fl_infer fl_infer;

/* Metas by slot. An absent optional input is NULL; so is an output that
 * nobody wants. i counts within a FL_MANY slot. */
const fl_meta *fl_meta_in(const fl_infer *x, const char *slot, int i);
fl_meta *fl_meta_out(const fl_infer *x, const char *slot, int i);
int fl_meta_count_in(const fl_infer *x, const char *slot);
int fl_meta_count_out(const fl_infer *x, const char *slot);
bool fl_meta_running(const fl_infer *x);     /* elements exist: no -1 is left */
const char *fl_meta_type(const fl_infer *x); /* the operator, for sentences */
const fl_attr *fl_meta_attr(const fl_infer *x, const char *name);

/* Set output `slot` i; absent outputs are passed over. kind LOD_TENSOR. */
void fl_meta_set(const fl_infer *x, const char *slot, int i, fl_dtype dtype,
                 const fl_shape *shape);
/* Output takes the LoD of an input. */
void fl_meta_share_lod(const fl_infer *x, const char *in, const char *out);

/* Sets of dtypes for fl_meta_check. */
#define FL_SET(dtype) (1u << (dtype))
#define FL_REALS      (FL_SET(FL_F32) | FL_SET(FL_F64))
#define FL_NUMBERS    (FL_REALS | FL_SET(FL_I64) | FL_SET(FL_I32))
#define FL_OR_ROWS    (1u << 31)    /* selected rows will do, too */
#define FL_ANY        (~FL_OR_ROWS) /* every dtype, but a tensor */

/* Inputs of a slot are tensors of one of these dtypes:
 * "relu: X is i64, expected f32 or f64". */
fl_err fl_meta_check(const fl_infer *x, const char *slot,
                     unsigned types) FL_MUST_CHECK;

/* Input `slot`, where it is there, is a tensor like this; -1 fits any:
 * "mul_grad: Out@GRAD is f32[2,3], expected f32[2,4]". */
fl_err fl_meta_expect(const fl_infer *x, const char *slot, fl_dtype dtype,
                      const fl_shape *shape) FL_MUST_CHECK;

/* An input of which a mean is taken has elements when it runs:
 * "mean: X [0,1] has no elements (an empty batch?)". */
fl_err fl_meta_not_empty(const fl_infer *x, const char *slot) FL_MUST_CHECK;

/* Two inputs have one dtype and dims that may be the same. */
fl_err fl_meta_alike(const fl_infer *x, const char *a,
                     const char *b) FL_MUST_CHECK;

/* Fluid's broadcasting: b, without trailing ones, is a run of a's dims that
 * starts at axis (-1: at the end). fl_fit_of says how: a is [pre, n, post],
 * and b has the n elements. */
fl_err fl_meta_fit(const fl_infer *x, const char *a, const char *b,
                   int64_t axis) FL_MUST_CHECK;
typedef struct fl_fit {
    int64_t pre, n, post;
} fl_fit;
fl_fit fl_fit_of(const fl_shape *a, const fl_shape *b, int64_t axis);

/* Shape rules that many operators share (infer.c). */
fl_err fl_infer_same(fl_infer *x);      /* Out like X, LoD too */
fl_err fl_infer_real(fl_infer *x);      /* the same; X is f32 or f64 */
fl_err fl_infer_broadcast(fl_infer *x); /* Out like X; Y fits X at `axis` */
fl_err fl_infer_scalar(fl_infer *x);    /* Out is [1]; X is f32 or f64 */
fl_err fl_infer_none(fl_infer *x);      /* nothing to say */
/* A gradient element by element: all inputs are alike, X@GRAD is too. */
fl_err fl_infer_grad_alike(fl_infer *x);
/* A gradient that reads all inputs of its forward operator: Out@GRAD is what
 * that one's rule says of Out, and S@GRAD is like S. */
fl_err fl_infer_grad_of_rule(fl_infer *x);

/* --- Running ----------------------------------------------------------- */

typedef struct fl_call fl_call;

/* Memory that a kernel has for the time of one call. Operators that run one
 * after the other share it. Zero is an empty one; free it with
 * fl_mem_free(data). */
typedef struct fl_workspace {
    void *data;
    size_t size; /* bytes */
} fl_workspace;

/* What a kernel may ask of whoever runs it. */
typedef struct fl_hooks {
    fl_err (*run_block)(fl_call *c, int64_t block); /* a sub-block, once */
    uint64_t (*entropy)(fl_call *c);                /* a seed for seed = 0 */
    const struct fl_disk *disk;                     /* files */
    void *service;            /* what send, recv and lookups talk to */
    struct fl_worlds *worlds; /* what c_* operators talk to */
    fl_workspace *workspace;
} fl_hooks;

typedef struct fl_op_def fl_op_def;

/* One call of a kernel: the frame is made once, by the planner. */
struct fl_call {
    const fl_op_def *def;
    const fl_desc *desc;     /* names of the variables, for texts */
    fl_value **in[FL_SLOTS]; /* by the order of def->in; entries may be NULL */
    fl_value **out[FL_SLOTS];
    int n_in[FL_SLOTS], n_out[FL_SLOTS];
    const fl_attr *attr; /* by the order of def->attr; all are set */
    const fl_hooks *hooks;
    void *runner;  /* the hooks' own */
    bool no_views; /* an output outlives the step: views must be copies */
    void *scratch; /* the kernel's own between calls of this frame; freed with
                    * fl_mem_free, or by end_scratch where that is set */
    void (*end_scratch)(void *scratch);
};

/* Tensors by slot; NULL where absent. */
const fl_tensor *fl_in(const fl_call *c, const char *slot);
fl_tensor *fl_out(const fl_call *c, const char *slot);
const fl_tensor *fl_in_at(const fl_call *c, const char *slot, int i);
fl_tensor *fl_out_at(const fl_call *c, const char *slot, int i);
int fl_in_count(const fl_call *c, const char *slot);
int fl_out_count(const fl_call *c, const char *slot);

/* The whole value, where it may be selected rows or an array. */
fl_value *fl_in_value(const fl_call *c, const char *slot, int i);
fl_value *fl_out_value(const fl_call *c, const char *slot, int i);

/* What is written of an output with FL_FILLS: the tensor, or the values of
 * selected rows. */
fl_tensor *fl_out_filled(const fl_call *c, const char *slot);

/* Elements of a tensor slot (0 where absent). */
int64_t fl_numel(const fl_call *c, const char *slot);

/* Attributes; the name and type are the table's (an assertion otherwise). */
int64_t fl_attr_i64(const fl_call *c, const char *name); /* INT, LONG, BLOCK */
float fl_attr_f32(const fl_call *c, const char *name);
bool fl_attr_bool(const fl_call *c, const char *name);
const char *fl_attr_str(const fl_call *c, const char *name);
const fl_attr *fl_attr_get(const fl_call *c, const char *name); /* lists */

/* Output `out` (FL_VIEW) becomes input `in` in the shape that was inferred:
 * shared memory, or a copy where sharing is not allowed. The LoD is what was
 * inferred. */
fl_err fl_view(fl_call *c, const char *in, const char *out) FL_MUST_CHECK;

/* Memory of the kernel's own for n elements of `size` bytes, 16-byte aligned,
 * in c->scratch: grows, and keeps its contents between calls. NULL: it is not
 * to be had, which fl_fail has told; return FL_ENOMEM. */
void *fl_scratch(fl_call *c, int64_t n, size_t size) FL_MUST_CHECK;

/* Memory for this call alone, 64-byte aligned; its contents are undefined. A
 * second call in the same kernel may move it. NULL as above. */
void *fl_workspace_get(fl_call *c, size_t bytes) FL_MUST_CHECK;

/* Is the value one of the inputs? */
bool fl_call_reads(const fl_call *c, const fl_value *v);

/* dtype of the first input that is there, else of the first output. */
fl_dtype fl_call_dtype(const fl_call *c);

typedef fl_err (*fl_kernel)(fl_call *c);

/* --- The operator ------------------------------------------------------ */

/* Emits the gradient as other operators: appends descs (fl_grad_emit). */
typedef struct fl_grads {
    const fl_desc *fwd;
    fl_arena *arena;
    FL_VEC(fl_desc *) descs; /* in order of running */
} fl_grads;

fl_desc *fl_grad_emit(fl_grads *g, const char *type);
/* The same with X = Out@GRAD and Out = X@GRAD. */
fl_desc *fl_grad_back(fl_grads *g, const char *type);

struct fl_op_def {
    const char *type;
    fl_slot in[FL_SLOTS], out[FL_SLOTS]; /* the order of printing */
    fl_attr attr[FL_ATTRS];
    unsigned flags;
    fl_err (*infer)(fl_infer *x); /* the only place that rejects shapes */
    fl_kernel run;                /* may assume that infer passed */

    const char *grad_in[FL_SLOTS]; /* all that grad_run reads: S, S@GRAD */
    fl_kernel grad_run;            /* absent and no make_grad: no gradient */
    const char *grad_type;         /* TYPE_grad unless said */
    fl_err (*grad_infer)(fl_infer *x); /* S@GRAD like S unless said */
    fl_err (*make_grad)(fl_grads *g);  /* the gradient is other operators */

    /* Prepare the run after the next one: called when the inputs of slot
     * ahead_in are those of that run, if all of them are fed. */
    void (*ahead)(fl_call *c);
    const char *ahead_in;

    const fl_op_def *forward;   /* set by the registry: whose gradient it is */
    const struct fl_rule *rule; /* optimisers: the update, row by row */
};

/* --- The registry ------------------------------------------------------ */

/* Thread: immutable once made. */
typedef struct fl_registry fl_registry;

/* Check every table, derive the gradients. EINVAL names the operator whose
 * table is wrong: a type or slot twice, a .grad_in that is neither a slot nor
 * a slot's gradient, .run without .infer. */
fl_err fl_registry_new(const fl_op_def *const *defs, int n,
                       fl_registry **out) FL_MUST_CHECK;
void fl_registry_free(fl_registry *r);

const fl_op_def *fl_registry_find(const fl_registry *r, const char *type);
/* The same; ENOENT: "unknown op \"reluu\"; did you mean \"relu\"?" */
fl_err fl_registry_get(const fl_registry *r, const char *type,
                       const fl_op_def **def) FL_MUST_CHECK;
int fl_registry_count(const fl_registry *r);
const fl_op_def *fl_registry_at(const fl_registry *r, int i);

/* The forward operator that `type` is the derived gradient of, or NULL. */
const fl_op_def *fl_registry_forward(const fl_registry *r, const char *type);

bool fl_op_makes_view(const fl_op_def *def); /* an output is FL_VIEW */
bool fl_op_differentiable(const fl_op_def *def);
int fl_op_slot_in(const fl_op_def *def, const char *slot); /* -1: none */
int fl_op_slot_out(const fl_op_def *def, const char *slot);
int fl_op_attr(const fl_op_def *def, const char *name);

/* Attributes every operator may carry in a program besides its own: op_role and
 * the like, and those that speak to other machines (use_cudnn). */
bool fl_attr_common(const char *name);

/* Slots and attributes of a desc against its table: unknown slot, missing
 * slot, several names where one is allowed, unknown attribute or wrong type.
 * Attributes are converted in place to the table's types. Lenient (a file
 * from elsewhere): unknown attributes are kept, not refused. */
fl_err fl_desc_check(const fl_op_def *def, fl_desc *d,
                     bool lenient) FL_MUST_CHECK;

/* The table's attributes filled from the desc, in the table's order. */
fl_err fl_desc_attrs(const fl_op_def *def, const fl_desc *d, fl_arena *a,
                     const fl_attr **out) FL_MUST_CHECK;

/* Run the shape rule. `in` and `out` are metas by slot and position in the
 * order of the table; a NULL entry is absent. */
struct fl_infer {
    const fl_op_def *def;
    const fl_attr *attr;
    const fl_meta *const *in[FL_SLOTS];
    fl_meta *const *out[FL_SLOTS];
    int n_in[FL_SLOTS], n_out[FL_SLOTS];
    bool running;
};
fl_err fl_infer_run(fl_infer *x) FL_MUST_CHECK;

#endif
