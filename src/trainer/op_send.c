/* SPDX-License-Identifier: Apache-2.0 */
/* What a trainer's program sends to servers and receives from them.
 *
 *     send           X* to the servers of epmap; Out* is a token
 *     fused_mul_send mul_grad's Y@GRAD and its send: the product adds to what
 *                    the communicator has gathered, if one runs
 *     recv           Out* from the servers of epmap, after X*
 *     send_barrier   all gradients were sent: meet the other trainers;
 *                    half_async: meet the other threads of this trainer
 *     fetch_barrier  all values were received
 *
 * If a communicator runs, send gives it the gradients, and a recv that follows
 * a send takes what it has pulled. The recv of a startup program always asks
 * the servers.
 *
 * A token is a variable without a value that only fixes the order of ops, so
 * its shape is not checked. */
#include "exec/plan.h"
#include "kernel/gemm.h"
#include "trainer/service.h"

enum {
    PIECES_FEW = 8 /* pieces of a value that need no memory of their own */
};

static const char *input_name(const fl_call *c, int i)
{
    return fl_desc_in(c->desc, "X")->name[i];
}

/* Check that epmap has one server for each of n pieces. */
static fl_err check_servers(const fl_call *c, int n)
{
    const fl_attr *to = fl_attr_get(c, "epmap");
    if (to->n == n)
        return FL_OK;
    return fl_fail(FL_EINVAL, "%s: epmap has %d servers for %d pieces",
                   c->def->type, to->n, n);
}

static fl_err piece_server(fl_call *c, int i, int *server)
{
    return fl_call_server(c, fl_attr_get(c, "epmap")->strings[i], server);
}

/* --- send --- */

static fl_err send_piece(fl_call *c, fl_trainer *t, int i, const char *name,
                         const fl_value *v)
{
    int server;
    FL_TRY(piece_server(c, i, &server));
    return fl_trainer_send(t, fl_call_watch(c), server, name, v);
}

static fl_err check_sections(const fl_call *c, const fl_value *x)
{
    const fl_attr *rows = fl_attr_get(c, "sections");
    const fl_attr *names = fl_attr_get(c, "send_varnames");
    int64_t sum = 0;
    if (fl_in_count(c, "X") != 1 || rows->n != names->n)
        return fl_fail(FL_EINVAL,
                       "send: %d sections and %d send_varnames for %d X",
                       rows->n, names->n, fl_in_count(c, "X"));
    for (int i = 0; i < rows->n; i++)
        if (rows->longs[i] < 0 ||
            __builtin_add_overflow(sum, rows->longs[i], &sum))
            return fl_fail(FL_EINVAL, "send: section %d has %lld rows", i,
                           (long long)rows->longs[i]);
    const bool sparse = x->kind == FL_SELECTED_ROWS;
    const fl_shape *s = &x->tensor.shape;
    const int64_t height = sparse ? x->rows.height : s->rank ? s->dim[0] : 1;
    if (height != sum)
        return fl_fail(FL_ESHAPE,
                       "send: the sections have %lld rows, X has "
                       "%lld",
                       (long long)sum, (long long)height);
    return FL_OK;
}

/* Send the rows of X in pieces; the program has no op that splits it. */
static fl_err send_sections(fl_call *c, fl_trainer *t, const fl_value *x)
{
    const fl_attr *rows = fl_attr_get(c, "sections");
    const fl_attr *names = fl_attr_get(c, "send_varnames");
    int64_t start = 0;
    FL_TRY(check_sections(c, x));
    for (int i = 0; i < names->n; i++) {
        fl_value piece = {0};
        fl_err err = fl_value_slice(&piece, x, start, rows->longs[i]);
        if (!err)
            err = send_piece(c, t, i, names->strings[i], &piece);
        if (piece.kind == FL_SELECTED_ROWS)
            fl_value_fini(&piece);
        FL_TRY(err);
        start += rows->longs[i];
    }
    return FL_OK;
}

static bool has_value(const fl_value *v)
{
    return v && (v->kind == FL_SELECTED_ROWS ||
                 (v->kind == FL_LOD_TENSOR && v->tensor.data));
}

static fl_err send_to_communicator(fl_call *c, fl_communicator *to)
{
    for (int i = 0; i < fl_in_count(c, "X"); i++) {
        const fl_value *x = fl_in_value(c, "X", i);
        if (has_value(x))
            FL_TRY(
                fl_communicator_put(to, input_name(c, i), x, fl_call_watch(c)));
    }
    return FL_OK;
}

/* Send gradient i of the op to the servers, whole or in pieces. */
static fl_err send_value(fl_call *c, fl_trainer *t, int i, const char *name,
                         const fl_value *x)
{
    return fl_attr_get(c, "send_varnames")->n ? send_sections(c, t, x)
                                              : send_piece(c, t, i, name, x);
}

static fl_err send(fl_call *c)
{
    const fl_attr *names = fl_attr_get(c, "send_varnames");
    const int n = fl_in_count(c, "X");
    fl_communicator *communicator = fl_call_communicator(c);
    fl_trainer *t;
    if (communicator)
        return send_to_communicator(c, communicator);
    FL_TRY(fl_call_trainer(c, &t));
    FL_TRY(check_servers(c, names->n ? names->n : n));
    for (int i = 0; i < n; i++) {
        const fl_value *x = fl_in_value(c, "X", i);
        if (!has_value(x))
            continue; /* no op has computed this gradient */
        FL_TRY(send_value(c, t, i, input_name(c, i), x));
    }
    return FL_OK;
}

/* --- fused_mul_send --- */

static fl_err infer_mul_send(fl_infer *x)
{
    const fl_meta *w = fl_meta_in(x, "Y", 0);
    fl_meta_set(x, "Y@GRAD", 0, w->dtype, &w->shape);
    return FL_OK;
}

/* sum = X^T Out@GRAD, or sum += that. */
static void multiply(const void *self, bool first, void *sum)
{
    const fl_call *c = self;
    const fl_tensor *x = fl_in(c, "X"), *w = fl_in(c, "Y");
    const int64_t rows =
        fl_shape_span(&x->shape, 0, (int)fl_attr_i64(c, "x_num_col_dims"));
    fl_gemm(w->dtype, true, false, w->shape.dim[0], w->shape.dim[1], rows, 1,
            x->data, fl_in(c, "Out@GRAD")->data, first ? 0 : 1, sum);
}

static fl_err mul_send(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "Y");
    const char *name = fl_desc_out1(c->desc, "Y@GRAD");
    fl_communicator *communicator = fl_call_communicator(c);
    fl_trainer *t;
    if (communicator)
        return fl_communicator_make(
            communicator, name, &(fl_addend){w->dtype, &w->shape, multiply, c},
            fl_call_watch(c));
    const fl_attr *names = fl_attr_get(c, "send_varnames");
    FL_TRY(fl_call_trainer(c, &t));
    FL_TRY(check_servers(c, names->n ? names->n : 1));
    multiply(c, true, fl_out(c, "Y@GRAD")->data);
    return send_value(c, t, 0, name, fl_out_value(c, "Y@GRAD", 0));
}

/* --- recv --- */

static fl_err recv_piece(fl_call *c, fl_trainer *t, int i, const char *name,
                         fl_tensor *out)
{
    int server;
    FL_TRY(piece_server(c, i, &server));
    return fl_trainer_recv(t, fl_call_watch(c), server, name, out);
}

/* Check that a received value has the shape that later ops were prepared for.
 */
static fl_err check_shape(const char *name, const fl_shape *had,
                          const fl_shape *has)
{
    char was[FL_SHAPE_TEXT], is[FL_SHAPE_TEXT];
    if (!had->rank || fl_shape_equal(had, has))
        return FL_OK;
    return fl_fail(FL_ESHAPE,
                   "recv: the server has sent \"%s\" as %s, expected %s", name,
                   fl_shape_text(has, is), fl_shape_text(had, was));
}

/* A piece of a value before it is copied to its place. */
typedef struct piece {
    fl_received pulled; /* its item in the last pull */
    fl_tensor own;      /* its value, if it was not pulled */
} piece;

static fl_err take_piece(fl_call *c, fl_trainer *t, int i, const char *name,
                         piece *p)
{
    int server;
    FL_TRY(piece_server(c, i, &server));
    FL_TRY(fl_trainer_take(t, fl_call_watch(c), server, name, &p->pulled,
                           &p->own));
    if (p->pulled.item && p->pulled.item->kind != FL_LOD_TENSOR)
        return fl_item_tensor(p->pulled.item, &p->own); /* says what came */
    return FL_OK;
}

static const fl_shape *piece_shape(const piece *p)
{
    return p->pulled.item ? &p->pulled.item->shape : &p->own.shape;
}

static fl_dtype piece_dtype(const piece *p)
{
    return p->pulled.item ? p->pulled.item->dtype : p->own.dtype;
}

static fl_err add_piece_rows(fl_shape *all, const piece *p, int i)
{
    fl_shape s = *piece_shape(p);
    if (!s.rank)
        return fl_fail(FL_ESHAPE, "recv: piece %d has no rows", i);
    if (!i) {
        *all = s;
        return FL_OK;
    }
    const int64_t rows = all->dim[0] + s.dim[0];
    s.dim[0] = all->dim[0];
    if (!fl_shape_equal(all, &s))
        return fl_fail(FL_ESHAPE, "recv: piece %d is not as wide as the first",
                       i);
    all->dim[0] = rows;
    return FL_OK;
}

static size_t copy_piece(const piece *p, char *to)
{
    const fl_item *item = p->pulled.item;
    const size_t bytes = item ? item->data.size : fl_tensor_bytes(&p->own);
    if (item)
        fl_bytes_copy(item->data, 0, to, bytes);
    else if (bytes)
        memcpy(to, p->own.data, bytes);
    return bytes;
}

static fl_err join_pieces(fl_tensor *out, const piece *pieces, int n)
{
    const fl_dtype type = piece_dtype(&pieces[0]);
    fl_shape all = {0};
    for (int i = 0; i < n; i++) {
        FL_TRY(add_piece_rows(&all, &pieces[i], i));
        if (piece_dtype(&pieces[i]) != type)
            return fl_fail(FL_ESHAPE, "recv: piece %d is %s, the first is %s",
                           i, fl_dtype_name(piece_dtype(&pieces[i])),
                           fl_dtype_name(type));
    }
    FL_TRY(fl_tensor_resize(out, type, &all));
    char *to = out->data;
    for (int i = 0; i < n; i++)
        to += copy_piece(&pieces[i], to);
    return FL_OK;
}

/* Receive pieces and join them; the program has no op that does it. */
static fl_err recv_pieces(fl_call *c, fl_trainer *t, fl_tensor *out)
{
    const fl_attr *names = fl_attr_get(c, "recv_varnames");
    const int n = names->n;
    piece few[PIECES_FEW] = {0}, *pieces = few;
    fl_err err = FL_OK;
    if (n == 1)
        return recv_piece(c, t, 0, names->strings[0], out);
    if (n > PIECES_FEW)
        pieces = fl_mem_alloc((size_t)n * sizeof *pieces);
    for (int i = 0; i < n && !err; i++)
        err = take_piece(c, t, i, names->strings[i], &pieces[i]);
    if (!err)
        err = join_pieces(out, pieces, n);
    for (int i = 0; i < n; i++) {
        fl_parcel_unref(pieces[i].pulled.parcel);
        fl_tensor_fini(&pieces[i].own);
    }
    if (pieces != few)
        fl_mem_free(pieces);
    return err;
}

static fl_err recv_into(fl_call *c, fl_trainer *t, int i, bool pieces)
{
    const char *name = fl_desc_out(c->desc, "Out")->name[i];
    fl_value *v = fl_out_value(c, "Out", i);
    if (!v)
        return FL_OK;
    const fl_shape had = v->tensor.data ? v->tensor.shape : (fl_shape){0};
    FL_TRY(pieces ? recv_pieces(c, t, &v->tensor)
                  : recv_piece(c, t, i, name, &v->tensor));
    v->kind = FL_LOD_TENSOR;
    return check_shape(name, &had, &v->tensor.shape);
}

static fl_err take_parameter(fl_call *c, fl_communicator *from)
{
    fl_value *v = fl_out_value(c, "Out", 0);
    return v ? fl_communicator_take(from, fl_desc_out1(c->desc, "Out"),
                                    &v->tensor)
             : FL_OK;
}

static fl_err recv(fl_call *c)
{
    const int pieces = fl_attr_get(c, "recv_varnames")->n;
    const int n = fl_out_count(c, "Out");
    fl_communicator *communicator =
        fl_in_count(c, "X") ? fl_call_communicator(c) : NULL;
    fl_trainer *t;
    if (communicator)
        return take_parameter(c, communicator);
    FL_TRY(fl_call_trainer(c, &t));
    if (fl_attr_i64(c, "do_not_run")) /* another op receives the value */
        return fl_trainer_flush(t, fl_call_watch(c));
    if (pieces && n != 1)
        return fl_fail(FL_EINVAL, "recv: %d recv_varnames for %d Out", pieces,
                       n);
    FL_TRY(check_servers(c, pieces ? pieces : n));
    for (int i = 0; i < n; i++)
        FL_TRY(recv_into(c, t, i, pieces));
    return FL_OK;
}

/* --- barriers --- */

static fl_err send_barrier(fl_call *c)
{
    fl_trainer *t;
    if (fl_attr_bool(c, "half_async")) {
        fl_communicator *communicator = fl_call_communicator(c);
        return communicator
                   ? fl_communicator_barrier(communicator, fl_call_watch(c))
                   : FL_OK; /* the first recv ends the step */
    }
    FL_TRY(fl_call_trainer(c, &t));
    return fl_trainer_step(t, fl_call_watch(c));
}

/* There is nothing to wait for: a recv returns when the value has arrived. But
 * a startup program may have no recv; then this op creates the trainer. */
static fl_err fetch_barrier(fl_call *c)
{
    fl_trainer *t;
    return fl_call_trainer(c, &t);
}

/* NO_INFER: X may be missing, and tokens have no shape. */
#define DESTINATION                                                            \
    {"epmap", FL_ATTR_STRINGS},      /* the server of each piece */            \
        {"sections", FL_ATTR_LONGS}, /* rows of each piece */                  \
    {                                                                          \
        "send_varnames", FL_ATTR_STRINGS                                       \
    } /* name of each piece */

const fl_op_def fl_op_send = {
    .type = "send",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL | FL_TOKEN}},
    .attr =
        {
            DESTINATION,
            {"trainer_id", FL_ATTR_INT},
            {"num", FL_ATTR_INT},
        },
    .flags = FL_OP_NO_INFER,
    .infer = fl_infer_none,
    .run = send,
};

/* NO_INFER: Y@GRAD is lent to the network, so no other value may share its
 * memory. */
const fl_op_def fl_op_fused_mul_send = {
    .type = "fused_mul_send",
    .in = {{"X"}, {"Out@GRAD"}, {"Y", FL_UNREAD}},
    .out = {{"Y@GRAD"}, {"Out", FL_MANY | FL_OPTIONAL | FL_TOKEN}},
    .attr = {DESTINATION, {"x_num_col_dims", FL_ATTR_INT, .i = 1}},
    .flags = FL_OP_NO_INFER | FL_OP_HIDDEN,
    .infer = infer_mul_send,
    .run = mul_send,
};

/* Not DYNAMIC: a parameter keeps its shape; recv checks that. */
const fl_op_def fl_op_recv = {
    .type = "recv",
    .in = {{"X", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY}},
    .attr =
        {
            {"epmap", FL_ATTR_STRINGS},
            {"recv_varnames", FL_ATTR_STRINGS}, /* the pieces of Out */
            {"trainer_id", FL_ATTR_INT},
            {"num", FL_ATTR_INT},
            {"do_not_run", FL_ATTR_INT}, /* a communicator receives */
        },
    .flags = FL_OP_NO_INFER,
    .infer = fl_infer_none,
    .run = recv,
};

const fl_op_def fl_op_send_barrier = {
    .type = "send_barrier",
    .in = {{"X", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL | FL_TOKEN}},
    .attr =
        {
            {"endpoints", FL_ATTR_STRINGS},
            {"trainer_id", FL_ATTR_INT},
            {"half_async", FL_ATTR_BOOL},
        },
    .flags = FL_OP_NO_INFER,
    .infer = fl_infer_none,
    .run = send_barrier,
};

const fl_op_def fl_op_fetch_barrier = {
    .type = "fetch_barrier",
    .in = {{"X", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out", FL_MANY | FL_OPTIONAL | FL_TOKEN}},
    .attr =
        {
            {"endpoints", FL_ATTR_STRINGS},
            {"trainer_id", FL_ATTR_INT},
        },
    .flags = FL_OP_NO_INFER,
    .infer = fl_infer_none,
    .run = fetch_barrier,
};
