/* SPDX-License-Identifier: Apache-2.0 */
/* hostile.c - random programs of one operator, as an enemy would write them.
 *
 * Most choices are tame: of a shape at random no rule would ever approve. Sizes
 * come from a few numbers of the program, a shape is mostly that of an input
 * before it, types are mostly the expected ones. */
#include "check/hostile.h"

#include "base/mem.h"
#include "op/frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VARS = 48,            /* variables of a program */
    LIST = 4,             /* inputs of a list at most */
    ELEMENTS = 1 << 12,   /* of a tensor that is made here */
    LONG_EMPTY = 1 << 20, /* rows of one without elements */
    MEMORY = 32 << 20,    /* bytes that an operator may have at once */
    NAME = 16,            /* "v47" */
};

typedef struct maker {
    const uint8_t *at, *end; /* choices that are left; then all are 0 */
    fl_arena *arena;
    fl_value value[VARS];
    int n;
    int64_t size[3]; /* that shapes are made of */
    fl_dtype real;   /* the usual type */
    bool lods;       /* tensors have sequences */
} maker;

#define MUST(ok) ((ok) ? (void)0 : broken(#ok, __LINE__))

static const char *current; /* the operator at hand, for the sentence */

static void broken(const char *what, int line)
{
    fprintf(stderr, "hostile.c:%d: %s: not so: %s (%s)\n", line, current, what,
            fl_errmsg());
    abort();
}

static unsigned next_byte(maker *m)
{
    return m->at < m->end ? *m->at++ : 0;
}

/* One of 0 .. n - 1. */
static int pick(maker *m, int n)
{
    unsigned x = next_byte(m);
    if (n > 64)
        x = x << 8 | next_byte(m);
    return (int)(x % (unsigned)n);
}

static bool chance(maker *m, int percent)
{
    return pick(m, 100) < percent;
}

#define PICK(m, list) (list)[pick(m, (int)(sizeof(list) / sizeof *(list)))]

/* --- Tensors ----------------------------------------------------------- */

static int64_t pick_size(maker *m)
{
    static const int64_t sizes[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 8, 12, 17};
    return PICK(m, sizes);
}

static fl_shape pick_new_shape(maker *m)
{
    static const int ranks[] = {0, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 4, 5, 9};
    fl_shape s = {.rank = PICK(m, ranks)};
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = chance(m, 75) ? m->size[pick(m, 3)] : pick_size(m);
    return s;
}

/* A shape that is nearly that of a variable. */
static fl_shape pick_near_shape(maker *m, const fl_shape *of)
{
    fl_shape s = *of;
    const int at = s.rank ? pick(m, s.rank) : 0;
    switch (pick(m, 6)) {
    case 0:
        s.rank -= s.rank > 0;
        break;
    case 1:
        if (s.rank < FL_MAX_RANK)
            s.dim[s.rank++] = 1;
        break;
    case 2:
        s.dim[at] = pick_size(m);
        break;
    case 3:
        s.dim[at] = 0;
        break;
    case 4:
        for (int i = 1; i < s.rank; i++)
            s.dim[i] = 1;
        break;
    default: /* only the rows are alike */
        s.rank = s.rank ? 1 + pick(m, 3) : 0;
        for (int i = 1; i < s.rank; i++)
            s.dim[i] = pick_size(m);
    }
    return s;
}

static const fl_shape *shape_of(const fl_value *v)
{
    return v->kind == FL_SELECTED_ROWS ? &v->rows.value.shape
                                       : &v->tensor.shape;
}

static fl_shape pick_shape(maker *m)
{
    fl_shape s;
    if (!m->n || chance(m, 30))
        s = pick_new_shape(m);
    else
        s = *shape_of(&m->value[pick(m, m->n)]);
    if (m->n && chance(m, 25))
        s = pick_near_shape(m, &s);
    if (s.rank && chance(m, 2)) { /* many rows of nothing */
        s.dim[0] = LONG_EMPTY;
        s.dim[s.rank - 1] = 0;
    }
    for (int i = 0; fl_shape_numel(&s) > ELEMENTS; i++)
        s.dim[i] = 1;
    int64_t product = 1; /* of all but zeros */
    for (int i = 0; i < s.rank; i++) {
        if (product * s.dim[i] > LONG_EMPTY)
            s.dim[i] = 1;
        product *= s.dim[i] ? s.dim[i] : 1;
    }
    return s;
}

static double pick_real(maker *m)
{
    static const double odd[] = {0,
                                 -1,
                                 1e30,
                                 -1e30,
                                 1e-30,
                                 (double)NAN,
                                 (double)INFINITY,
                                 -(double)INFINITY,
                                 255,
                                 1e300};
    if (chance(m, 10))
        return PICK(m, odd);
    return (pick(m, 41) - 12) / 8.0;
}

static int64_t pick_whole(maker *m)
{
    static const int64_t odd[] = {-1,        -2,        1 << 16,   INT32_MAX,
                                  INT32_MIN, 1LL << 32, 1LL << 62, INT64_MAX,
                                  INT64_MIN, 100,       1000};
    if (chance(m, 12))
        return PICK(m, odd);
    return chance(m, 20) ? m->size[pick(m, 3)] : pick(m, 4);
}

static void fill(maker *m, fl_tensor *t)
{
    const size_t size = fl_dtype_size(t->dtype);
    char *at = t->data;
    const bool whole = chance(m, 30);
    const double start = pick_real(m);
    const bool fixed = chance(m, 30);
    for (int64_t i = 0, n = fl_tensor_numel(t); i < n; i++, at += size) {
        int64_t k;
        double d;
        switch (t->dtype) {
        case FL_F32:
        case FL_F64:
            d = fixed ? start : whole ? (double)pick(m, 4) : pick_real(m);
            MUST(!fl_convert(1, FL_F64, &d, t->dtype, at));
            break;
        case FL_BOOL:
            *at = (char)pick(m, 2);
            break;
        default:
            k = pick_whole(m);
            MUST(!fl_convert(1, FL_I64, &k, t->dtype, at));
        }
    }
}

/* Level by level from the rows outwards. */
static void cut_rows(maker *m, fl_tensor *t)
{
    int64_t off[FL_MAX_LOD][ELEMENTS + 2], rows = t->shape.dim[0];
    fl_lod l = {.levels = 1 + (chance(m, 20) ? pick(m, FL_MAX_LOD) : 0)};
    for (int k = l.levels - 1; k >= 0; k--) {
        int64_t at = 0;
        l.n[k] = 0;
        off[k][l.n[k]++] = 0;
        while (at < rows && l.n[k] <= ELEMENTS) {
            const int64_t left = rows - at;
            const int64_t take = l.n[k] > 8 ? left : pick(m, 4);
            at += take < left ? take : left;
            off[k][l.n[k]++] = at;
        }
        l.off[k] = off[k];
        rows = l.n[k] - 1;
    }
    MUST(!fl_lod_check(&l, t->shape.dim[0]));
    MUST(!fl_lod_copy(&t->lod, &l));
}

static fl_dtype pick_dtype(maker *m, bool whole)
{
    static const fl_dtype all[] = {FL_BOOL, FL_I16, FL_I32, FL_I64, FL_F16,
                                   FL_F32,  FL_F64, FL_U8,  FL_I8};
    if (chance(m, 6))
        return PICK(m, all);
    if (whole != chance(m, 8))
        return chance(m, 70) ? FL_I64 : FL_I32;
    return m->real;
}

static void make_rows(maker *m, fl_value *v, fl_dtype dtype)
{
    fl_shape s = pick_shape(m);
    if (!s.rank)
        s = (fl_shape){1, {1}};
    const int64_t n = s.dim[0] > 64 ? 64 : s.dim[0];
    s.dim[0] = 1 + pick(m, 9); /* the height */
    v->kind = FL_SELECTED_ROWS;
    MUST(!fl_rows_resize(&v->rows, dtype, &s, n));
    fill(m, &v->rows.value);
    for (int64_t i = 0; i < n; i++)
        fl_rows_index(&v->rows)[i] = pick(m, (int)s.dim[0]);
}

static int make_var(maker *m, bool whole)
{
    MUST(m->n < VARS);
    fl_value *v = &m->value[m->n];
    const fl_dtype dtype = pick_dtype(m, whole);
    if (chance(m, 5)) {
        make_rows(m, v, dtype);
        return m->n++;
    }
    const fl_shape s = pick_shape(m);
    v->kind = FL_LOD_TENSOR;
    MUST(!fl_tensor_resize(&v->tensor, dtype, &s));
    fill(m, &v->tensor);
    if (m->lods && s.rank && s.dim[0] <= ELEMENTS && chance(m, 80))
        cut_rows(m, &v->tensor);
    return m->n++;
}

/* A variable of the type and shape of another. */
static int make_like(maker *m, const fl_value *of)
{
    MUST(m->n < VARS);
    fl_value *v = &m->value[m->n];
    MUST(!fl_value_copy(v, of));
    if (v->kind == FL_LOD_TENSOR && v->tensor.data) {
        MUST(!fl_tensor_unique(&v->tensor));
        fill(m, &v->tensor);
    }
    return m->n++;
}

/* A variable for an output: mostly one that holds nothing yet. */
static int make_empty(maker *m)
{
    MUST(m->n < VARS);
    if (chance(m, 4))
        make_rows(m, &m->value[m->n], m->real);
    return m->n++;
}

/* --- Attributes -------------------------------------------------------- */

static int64_t pick_int(maker *m, const char *name, bool wide)
{
    static const int64_t types[] = {0, 1, 2, 3, 4, 5, 6, 20, 21, 7};
    static const int64_t odd[] = {-1,      -2,  -3,     5,         7,
                                  9,       100, 1000,   INT32_MAX, INT32_MIN,
                                  1 << 16, 255, 1 << 30};
    static const int64_t far[] = {1LL << 31, 1LL << 32, 1LL << 33,   1LL << 62,
                                  INT64_MAX, INT64_MIN, -(1LL << 33)};
    if (strstr(name, "dtype") && chance(m, 90))
        return PICK(m, types);
    if (!strcmp(name, "offset") && chance(m, 80))
        return pick(m, 100); /* more may take half a minute, as it should */
    if (!strcmp(name, "offset"))
        return 1LL << 62;
    if (wide && chance(m, 8))
        return PICK(m, far);
    if (chance(m, 20))
        return PICK(m, odd);
    return chance(m, 30) ? m->size[pick(m, 3)] : pick(m, 4);
}

static const char *pick_text(maker *m)
{
    static const char *const texts[] = {"NCHW",
                                        "NHWC",
                                        "AnyLayout",
                                        "",
                                        "SUM",
                                        "AVERAGE",
                                        "SQRT",
                                        "MAX",
                                        "LAST",
                                        "FIRST",
                                        "max",
                                        "avg",
                                        "channel",
                                        "all",
                                        "element",
                                        "none",
                                        "mean",
                                        "sum",
                                        "batchmean",
                                        "reflect",
                                        "edge",
                                        "constant",
                                        "ROC",
                                        "PR",
                                        "sigmoid",
                                        "tanh",
                                        "relu",
                                        "identity",
                                        "bilinear",
                                        "nearest",
                                        "upscale_in_train",
                                        "downgrade_in_infer",
                                        "SAME",
                                        "VALID",
                                        "%s%n"};
    return PICK(m, texts);
}

static void pick_list(maker *m, fl_attr *a, const char *name)
{
    const int n = pick(m, 6);
    int64_t *longs = fl_arena_alloc(m->arena, 8 * sizeof *longs);
    float *floats = fl_arena_alloc(m->arena, 8 * sizeof *floats);
    bool *bools = fl_arena_alloc(m->arena, 8 * sizeof *bools);
    const char **strings = fl_arena_alloc(m->arena, 8 * sizeof *strings);
    a->n = n;
    for (int i = 0; i < n; i++) {
        longs[i] = pick_int(m, name, a->type == FL_ATTR_LONGS);
        floats[i] = (float)pick_real(m);
        bools[i] = pick(m, 2);
        strings[i] = pick_text(m);
    }
    if (a->type == FL_ATTR_FLOATS)
        a->floats = floats;
    else if (a->type == FL_ATTR_BOOLS)
        a->bools = bools;
    else if (a->type == FL_ATTR_STRINGS)
        a->strings = strings;
    else
        a->longs = longs;
}

static void set_attr(maker *m, fl_desc *d, const fl_attr *spec)
{
    fl_attr a = {.name = spec->name, .type = spec->type};
    switch (a.type) {
    case FL_ATTR_FLOAT:
        a.f = (float)pick_real(m);
        break;
    case FL_ATTR_BOOL:
        a.b = pick(m, 2);
        break;
    case FL_ATTR_STRING:
        a.s = pick_text(m);
        break;
    case FL_ATTR_INT:
    case FL_ATTR_LONG:
    case FL_ATTR_BLOCK:
        a.i = pick_int(m, a.name, a.type == FL_ATTR_LONG);
        break;
    default:
        pick_list(m, &a, a.name);
    }
    fl_desc_set_attr(d, &a);
}

static void set_attrs(maker *m, const fl_op_def *def, fl_desc *d)
{
    for (int i = 0; i < FL_ATTRS && def->attr[i].name; i++)
        if (def->attr[i].required || chance(m, 35))
            set_attr(m, d, &def->attr[i]);
}

/* --- The operator ------------------------------------------------------ */

static const char *name_of(maker *m, int var)
{
    char *name = fl_arena_alloc(m->arena, NAME);
    snprintf(name, NAME, "v%d", var);
    return name;
}

static fl_value *resolve(void *self, const char *name)
{
    maker *m = self;
    return &m->value[atoi(name + 1)];
}

/* Slots that mostly hold whole numbers. */
static bool is_whole_slot(const char *slot)
{
    static const char *const words[] = {"Id",      "Label",  "Index",
                                        "Indices", "Len",    "Shape",
                                        "Size",    "Offset", "Rows"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(slot, words[i]))
            return true;
    return !strcmp(slot, "K");
}

static void set_inputs(maker *m, const fl_op_def *def, fl_desc *d)
{
    const bool whole_x = chance(m, 15);
    for (int s = 0; s < FL_SLOTS && def->in[s].name; s++) {
        const char *names[LIST];
        const bool whole = is_whole_slot(def->in[s].name) || (!s && whole_x);
        int n = 1;
        if (def->in[s].flags & FL_OPTIONAL && chance(m, 50))
            continue;
        if (def->in[s].flags & FL_MANY)
            n = chance(m, 95) ? 1 + pick(m, LIST - 1) : 0;
        for (int i = 0; i < n; i++)
            names[i] = chance(m, 2)            ? FL_EMPTY
                       : m->n && chance(m, 15) ? name_of(m, pick(m, m->n))
                                               : name_of(m, make_var(m, whole));
        fl_desc_set_in(d, def->in[s].name, n, names);
    }
}

static void set_outputs(maker *m, const fl_op_def *def, fl_desc *d)
{
    const int inputs = m->n;
    for (int s = 0; s < FL_SLOTS && def->out[s].name; s++) {
        const char *names[LIST];
        int n = 1;
        if (def->out[s].flags & FL_OPTIONAL && chance(m, 15))
            continue;
        if (def->out[s].flags & FL_MANY)
            n = pick(m, LIST + 1);
        for (int i = 0; i < n; i++)
            names[i] = inputs && chance(m, 8) ? name_of(m, pick(m, inputs))
                                              : name_of(m, make_empty(m));
        fl_desc_set_out(d, def->out[s].name, n, names);
    }
}

static void check_tensor(const fl_tensor *t)
{
    const int64_t rows = t->shape.rank ? t->shape.dim[0] : 1;
    const volatile char *at = t->data;
    const size_t bytes = fl_tensor_bytes(t);
    MUST(fl_shape_numel(&t->shape) >= 0);
    MUST(!t->lod.levels || !fl_lod_check(&t->lod, rows));
    if (t->data && t->buf)
        MUST((const char *)t->data + bytes <=
             (const char *)fl_buf_data(t->buf) + fl_buf_size(t->buf));
    if (bytes) /* the sanitizer looks */
        (void)(at[0] + at[bytes - 1]);
}

static void check_outputs(const maker *m)
{
    for (int i = 0; i < m->n; i++) {
        const fl_value *v = &m->value[i];
        if (v->kind == FL_LOD_TENSOR && v->tensor.data)
            check_tensor(&v->tensor);
        if (v->kind == FL_SELECTED_ROWS && v->rows.value.data) {
            check_tensor(&v->rows.value);
            MUST(v->rows.value.shape.dim[0] == v->rows.n);
            MUST(fl_tensor_numel(&v->rows.index) == v->rows.n);
        }
    }
}

static uint64_t entropy(fl_call *c)
{
    return 12345;
}

static fl_err run_block(fl_call *c, int64_t block)
{
    return FL_OK;
}

static fl_err run_op(maker *m, const fl_op_def *def, fl_desc *d)
{
    fl_workspace workspace = {0};
    const fl_hooks hooks = {
        .entropy = entropy, .run_block = run_block, .workspace = &workspace};
    fl_frame f = {0};
    current = def->type;
    fl_mem_limit(MEMORY);
    fl_err err = fl_desc_check(def, d, false);
    if (!err)
        err = fl_frame_init(&f, m->arena, def, d, &hooks, NULL, resolve, m);
    if (!err)
        err = fl_frame_prepare(&f);
    if (!err)
        err = fl_frame_run(&f);
    fl_mem_limit(SIZE_MAX);
    fl_frame_fini(&f);
    fl_mem_free(workspace.data);
    if (!err)
        check_outputs(m);
    return err;
}

/* --- Its rule ---------------------------------------------------------- */

/* What a file may say of a variable: sizes that no tensor has. */
static fl_meta *pick_meta(maker *m, bool whole)
{
    static const int64_t odd[] = {-1,        -1,        -1,        INT32_MAX,
                                  1LL << 31, 1LL << 33, 1LL << 62, INT64_MAX};
    fl_meta *meta = fl_arena_alloc(m->arena, sizeof *meta);
    *meta = (fl_meta){.kind = chance(m, 5) ? FL_SELECTED_ROWS : FL_LOD_TENSOR,
                      .dtype = pick_dtype(m, whole),
                      .shape = pick_shape(m),
                      .lod_level = m->lods ? pick(m, 3) : 0};
    for (int i = 0; i < meta->shape.rank; i++)
        if (chance(m, 30))
            meta->shape.dim[i] = PICK(m, odd);
    return meta;
}

static fl_meta **pick_metas(maker *m, const fl_args *args)
{
    if (!args || !args->n)
        return NULL;
    fl_meta **list = fl_arena_alloc(m->arena, (size_t)args->n * sizeof *list);
    for (int i = 0; i < args->n; i++)
        list[i] = strcmp(args->name[i], FL_EMPTY)
                      ? pick_meta(m, is_whole_slot(args->slot))
                      : NULL;
    return list;
}

/* As when the operator is appended to a program. */
static void run_rule(maker *m, const fl_op_def *def, const fl_desc *d)
{
    fl_infer x = {.def = def};
    current = def->type;
    if (!def->infer || def->flags & FL_OP_NO_INFER ||
        fl_desc_attrs(def, d, m->arena, &x.attr))
        return;
    for (int s = 0; s < FL_SLOTS; s++) {
        const fl_args *in =
            def->in[s].name ? fl_desc_in(d, def->in[s].name) : NULL;
        const fl_args *out =
            def->out[s].name ? fl_desc_out(d, def->out[s].name) : NULL;
        x.n_in[s] = in ? in->n : 0;
        x.n_out[s] = out ? out->n : 0;
        x.in[s] = (const fl_meta *const *)pick_metas(m, in);
        x.out[s] = pick_metas(m, out);
    }
    if (fl_infer_run(&x))
        return;
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < x.n_out[s]; i++)
            for (int k = 0; x.out[s][i] && k < x.out[s][i]->shape.rank; k++)
                MUST(x.out[s][i]->shape.dim[k] >= -1);
}

/* --- Its gradient ------------------------------------------------------ */

static const fl_args *args_of(const fl_desc *fwd, const char *slot)
{
    const fl_args *in = fl_desc_in(fwd, slot);
    return in ? in : fl_desc_out(fwd, slot);
}

/* S@GRAD, like S, or the variables of S themselves. */
static void set_grad_input(maker *m, const fl_desc *fwd, const char *slot,
                           fl_desc *d)
{
    const char *names[LIST];
    const bool grad =
        strlen(slot) > 5 && !strcmp(slot + strlen(slot) - 5, FL_GRAD_SUFFIX);
    char of[64];
    snprintf(of, sizeof of, "%.*s", (int)(strlen(slot) - (grad ? 5 : 0)), slot);
    const fl_args *args = args_of(fwd, of);
    if (!args)
        return;
    for (int i = 0; i < args->n; i++)
        names[i] = !grad || !strcmp(args->name[i], FL_EMPTY)
                       ? args->name[i]
                       : name_of(m, make_like(m, resolve(m, args->name[i])));
    fl_desc_set_in(d, slot, args->n, names);
}

static void set_grad_outputs(maker *m, const fl_op_def *g, const fl_desc *fwd,
                             fl_desc *d)
{
    for (int s = 0; s < FL_SLOTS && g->out[s].name; s++) {
        const char *names[LIST];
        char of[64];
        snprintf(of, sizeof of, "%.*s", (int)strlen(g->out[s].name) - 5,
                 g->out[s].name);
        const fl_args *args = fl_desc_in(fwd, of);
        if (!args || (g->out[s].flags & FL_OPTIONAL && chance(m, 10)))
            continue;
        for (int i = 0; i < args->n; i++)
            names[i] = name_of(m, make_empty(m));
        fl_desc_set_out(d, g->out[s].name, args->n, names);
    }
}

static void exchange_input(maker *m, fl_desc *d)
{
    if (!d->n_in)
        return;
    const fl_args *a = &d->in[pick(m, d->n_in)];
    const char *name = name_of(m, make_var(m, is_whole_slot(a->slot)));
    if (a->n)
        fl_desc_rename_in(d, a->name[pick(m, a->n)], name);
}

static fl_err run_grad(maker *m, const fl_op_def *g, const fl_desc *fwd)
{
    fl_desc *d = fl_desc_new(m->arena, g->type);
    for (int s = 0; s < FL_SLOTS && g->in[s].name; s++)
        set_grad_input(m, fwd, g->in[s].name, d);
    for (int i = 0; i < fwd->n_attr; i++)
        fl_desc_set_attr(d, &fwd->attr[i]);
    if (chance(m, 50))
        exchange_input(m, d);
    if (chance(m, 10))
        set_attrs(m, g, d);
    set_grad_outputs(m, g, fwd, d);
    return run_op(m, g, d);
}

static const fl_op_def *grad_of(const fl_registry *r, const fl_op_def *def)
{
    char type[64];
    if (!def->grad_run)
        return NULL;
    snprintf(type, sizeof type, "%s_grad", def->type);
    return fl_registry_find(r, def->grad_type ? def->grad_type : type);
}

/* Files, the terminal and the planner's own operators are left out. */
static bool may_run(const fl_op_def *def)
{
    return def->run && strcmp(def->type, "print") &&
           !(def->flags & (FL_OP_LOCAL | FL_OP_HIDDEN | FL_OP_HEARS));
}

static const fl_op_def *pick_op(maker *m, const fl_registry *r)
{
    const int n = fl_registry_count(r);
    int i = pick(m, n);
    while (!may_run(fl_registry_at(r, i)))
        i = (i + 1) % n;
    return fl_registry_at(r, i);
}

fl_hostile_result fl_hostile_run(const fl_registry *r, const uint8_t *bytes,
                                 size_t n)
{
    maker *m = fl_mem_alloc(sizeof *m);
    m->at = bytes;
    m->end = bytes + n;
    m->arena = fl_arena_new();
    const fl_op_def *def = pick_op(m, r), *g = grad_of(r, def);
    fl_hostile_result result = {def};
    fl_desc *d = fl_desc_new(m->arena, def->type);
    for (int i = 0; i < 3; i++)
        m->size[i] = pick_size(m);
    m->real = chance(m, 70) ? FL_F32 : FL_F64;
    m->lods = chance(m, strstr(def->type, "sequence") ? 90 : 25);
    set_inputs(m, def, d);
    set_attrs(m, def, d);
    set_outputs(m, def, d);
    run_rule(m, def, d);
    result.ran = !run_op(m, def, d);
    if (result.ran && g)
        result.grad_ran = !run_grad(m, g, d);
    for (int i = 0; i < m->n; i++)
        fl_value_fini(&m->value[i]);
    fl_arena_free(m->arena);
    fl_mem_free(m);
    return result;
}
