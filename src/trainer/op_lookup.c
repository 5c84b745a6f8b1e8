/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of tables that servers hold.
 *
 *     distributed_lookup_table  Outputs i = the rows Ids i of W; rows of
 *                               padding_idx are zero
 *     fused_lookup_concat       the same, each summed up by sequence where
 *                               `pool`, and a concat of the results with Dense:
 *                               Out and order as fused_embed_concat's. Where
 *                               lists the different ids for fused_embed_rows
 *     prefetch                  Out i = the rows X i, asked of server i
 *     lookup_sparse_table       Out = the rows Ids of a table that grows. It
 *                               stands in programs of servers and never runs.
 *
 * The first two ask for each row once, however often its id occurs: they sort
 * the ids, which also separates them by piece, and ask all servers at once. W
 * itself is not read: there may be no copy of it here.
 *
 * If a communicator runs, they ask for the rows of the next batch while this
 * one is computed, if whoever runs the plan knows it (fl_plan_look_ahead).
 * These rows are then a step older. In a synchronous job, the rows come with
 * the parameters at the end of the step and are as new as these. In other jobs
 * without a communicator a step sees all that was sent before it.
 *
 * Without table_names the op was put into a plan in place of a lookup_table of
 * a program that was not transpiled (a test program on a trainer). The
 * placement then says where the pieces are. Such a table may have rows by id:
 * id i is row i / servers of piece i % servers, so that sorting separates the
 * ids of different servers. */
#include "exec/plan.h"
#include "kernel/embed.h"
#include "kernel/move.h"
#include "trainer/service.h"

/* Output `slot` i has a row of w for each id of `ids`, whose last dim is 1. */
static fl_err set_rows_of(const fl_infer *x, const fl_meta *ids,
                          const fl_meta *w, const char *slot, int i)
{
    char text[FL_SHAPE_TEXT];
    fl_shape s = ids->shape;
    if (w->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "%s: W is %s, expected [v,d]",
                       fl_meta_type(x), fl_shape_text(&w->shape, text));
    if (s.rank < 1 || s.dim[s.rank - 1] != 1)
        return fl_fail(FL_ESHAPE, "%s: Ids is %s, expected [.., 1]",
                       fl_meta_type(x), fl_shape_text(&s, text));
    s.dim[s.rank - 1] = w->shape.dim[1];
    fl_meta_set(x, slot, i, w->dtype, &s);
    fl_meta *out = fl_meta_out(x, slot, i);
    if (out) {
        out->lod_level = ids->lod_level;
        out->lod = ids->lod;
    }
    return FL_OK;
}

/* --- distributed_lookup_table --- */

static fl_err infer_distributed(fl_infer *x)
{
    const int n = fl_meta_count_in(x, "Ids"),
              m = fl_meta_count_out(x, "Outputs");
    const int pieces = fl_meta_attr(x, "table_names")->n;
    FL_TRY(fl_meta_check(x, "W", FL_REALS));
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    if (n != m)
        return fl_fail(FL_EINVAL,
                       "distributed_lookup_table: there are %d Ids and %d "
                       "Outputs, expected as many",
                       n, m);
    if (fl_meta_attr(x, "height_sections")->n != pieces ||
        fl_meta_attr(x, "endpoints")->n != pieces)
        return fl_fail(
            FL_EINVAL,
            "distributed_lookup_table: there are %d table_names, %d "
            "height_sections and %d endpoints, expected as many of each",
            pieces, fl_meta_attr(x, "height_sections")->n,
            fl_meta_attr(x, "endpoints")->n);
    for (int i = 0; i < n; i++)
        FL_TRY(set_rows_of(x, fl_meta_in(x, "Ids", i), fl_meta_in(x, "W", 0),
                           "Outputs", i));
    return FL_OK;
}

/* Rows of W that one server holds. */
typedef struct piece {
    const char *table;
    int server;
    int64_t rows;
    int64_t first; /* elements of W before these rows; or FL_BY_ID */
} piece;

/* The rows of one batch. Its memory is kept from one run to the next. */
typedef struct request {
    int64_t room;     /* ids that the next five arrays have memory for */
    int64_t *ids;     /* ids of all inputs, one input after the other */
    int64_t *which;   /* by id: its index in `row` and `values`; -1: padding */
    fl_row_at *order; /* memory for fl_rows_order: twice as many */
    int64_t *row;     /* rows to ask for, with the server's numbers */
    int64_t *list;    /* the different ids, in the order of `row` */
    int64_t n, m;     /* ids; different ids */
    fl_tensor values; /* values of these rows, after the answer */
    int n_lookups;
    fl_lookup *lookups; /* by piece; those with rows move to the front */
    fl_tensor *answers; /* by lookup: views of `values` */
    uint64_t ticket;    /* of fl_trainer_ask; 0: it was not asked ahead */
} request;

/* Memory that an op keeps from one run to the next. */
typedef struct state {
    const fl_placement *place; /* of the job whose servers are asked */
    bool by_id; /* rows by id: piece i has the ids i, i + n, .. */
    int n;      /* pieces */
    int longer; /* rows by id: pieces that have a row more than the others, so
                   that they have the ids below INT64_MAX together */
    piece *pieces;
    request now;   /* of this run, or asked ahead of the next one */
    request ahead; /* asked ahead of the run after that, if it has a ticket */
} state;

static void free_request(request *r)
{
    fl_tensor_fini(&r->values);
    fl_mem_free(r->ids);
    fl_mem_free(r->which);
    fl_mem_free(r->order);
    fl_mem_free(r->row);
    fl_mem_free(r->list);
    fl_mem_free(r->lookups);
    fl_mem_free(r->answers);
}

static void free_state(void *scratch)
{
    state *s = scratch;
    if (!s)
        return;
    free_request(&s->now);
    free_request(&s->ahead);
    fl_mem_free(s->pieces);
    fl_mem_free(s);
}

static fl_err read_pieces(fl_call *c, state *s)
{
    const fl_attr *names = fl_attr_get(c, "table_names");
    const fl_attr *rows = fl_attr_get(c, "height_sections");
    const fl_attr *servers = fl_attr_get(c, "endpoints");
    for (int i = 0; i < s->n; i++) {
        s->pieces[i] =
            (piece){.table = names->strings[i], .rows = rows->longs[i]};
        FL_TRY(fl_call_server(c, servers->strings[i], &s->pieces[i].server));
    }
    return FL_OK;
}

/* Find the pieces in the placement. They are sorted by their rows; if the table
 * has rows by id, they are sorted by server. */
static void find_pieces(const fl_placement *place, const char *w, state *s)
{
    for (int i = 0; i < place->n_pieces; i++) {
        const fl_piece *k = &place->pieces[i];
        int at = s->n;
        if (strcmp(k->var, w))
            continue;
        for (; at && s->pieces[at - 1].first > k->first; at--)
            s->pieces[at] = s->pieces[at - 1];
        s->by_id = k->first == FL_BY_ID;
        s->pieces[at] = (piece){k->name, k->server, k->shape.dim[0], k->first};
        s->n++;
    }
    s->longer = s->n ? (int)(INT64_MAX % s->n) : 0;
    for (int i = 0; i < s->n && s->by_id; i++)
        s->pieces[i].rows = INT64_MAX / s->n + (i < s->longer);
}

static fl_err init_state(fl_call *c, const fl_placement *place, state *s)
{
    const int named = fl_attr_get(c, "table_names")->n;
    const size_t most = (size_t)(named ? named : place->n_pieces) + 1;
    s->place = place;
    s->pieces = fl_mem_alloc(most * sizeof *s->pieces);
    request *const both[] = {&s->now, &s->ahead};
    for (int i = 0; i < 2; i++) {
        both[i]->lookups = fl_mem_alloc(most * sizeof *both[i]->lookups);
        both[i]->answers = fl_mem_alloc(most * sizeof *both[i]->answers);
    }
    s->n = named;
    if (named)
        return read_pieces(c, s);
    find_pieces(place, fl_desc_in1(c->desc, "W"), s);
    return FL_OK;
}

/* The state of the last run, unless another job holds the table now. */
static fl_err get_state(fl_call *c, state **out)
{
    const fl_placement *place;
    state *s = c->scratch;
    FL_TRY(fl_call_placement(c, &place));
    if (s && s->place != place) {
        free_state(s);
        s = c->scratch = NULL;
    }
    if (!s) {
        s = fl_mem_alloc(sizeof *s);
        const fl_err err = init_state(c, place, s);
        if (err) {
            free_state(s);
            return err;
        }
        c->scratch = s;
        c->end_scratch = free_state;
    }
    *out = s;
    return FL_OK;
}

static void reserve_ids(request *r, int64_t n)
{
    if (n <= r->room)
        return;
    const size_t room = (size_t)(n > 2 * r->room ? n : 2 * r->room);
    r->ids = fl_mem_grow(r->ids, room * sizeof *r->ids);
    r->which = fl_mem_grow(r->which, room * sizeof *r->which);
    r->order = fl_mem_grow(r->order, 2 * room * sizeof *r->order);
    r->row = fl_mem_grow(r->row, room * sizeof *r->row);
    r->list = fl_mem_grow(r->list, room * sizeof *r->list);
    r->room = (int64_t)room;
}

/* Map an id of a table with rows by id to a number, so that the ids of one
 * piece have consecutive numbers. */
static int64_t number_id(const state *s, int64_t id)
{
    if (!s->by_id || id < 0 || id == INT64_MAX)
        return id;
    const int64_t i = id % s->n; /* piece */
    return i * s->pieces[s->n - 1].rows + (i < s->longer ? i : s->longer) +
           id / s->n;
}

static void copy_ids(const fl_call *c, const state *s, request *r)
{
    r->n = 0;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++)
        r->n += fl_tensor_numel(fl_in_at(c, "Ids", i));
    reserve_ids(r, r->n);
    int64_t *to = r->ids;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const fl_tensor *ids = fl_in_at(c, "Ids", i);
        if (fl_tensor_numel(ids))
            memcpy(to, ids->data, fl_tensor_bytes(ids));
        to += fl_tensor_numel(ids);
    }
    for (int64_t i = 0; s->by_id && i < r->n; i++)
        r->ids[i] = number_id(s, r->ids[i]);
}

static fl_err fail_row(const fl_call *c, const state *s, int64_t id)
{
    int64_t all = 0;
    for (int i = 0; i < s->n; i++)
        all += s->pieces[i].rows;
    return fl_fail(FL_EINVAL,
                   "distributed_lookup_table: id %lld is not a row of \"%s\", "
                   "which has rows 0 to %lld",
                   (long long)id, fl_desc_in1(c->desc, "W"),
                   (long long)(all - 1));
}

/* Sort the ids, drop repeats, and give the rows of piece i to r->lookups[i]. */
static fl_err assign_rows(const fl_call *c, const state *s, request *r)
{
    const int64_t padding = number_id(s, fl_attr_i64(c, "padding_idx"));
    const fl_shape shape = fl_shape_of(1, &r->n);
    const fl_rows all = {.n = r->n,
                         .index = fl_tensor_view(FL_I64, &shape, r->ids)};
    const fl_row_at *order = fl_rows_order(&all, r->order);
    const int64_t low = r->n ? r->ids[order->at] : 0;
    int64_t start = 0, last = 0, m = 0;
    int i = 0; /* piece */
    memset(r->lookups, 0, (size_t)s->n * sizeof *r->lookups);
    for (int64_t k = 0; k < r->n; k++) {
        const int64_t at = order[k].at, id = low + (int64_t)order[k].row;
        if (m && id == last) {
            r->which[at] = m - 1;
            continue;
        }
        if (padding != -1 && id == padding) {
            r->which[at] = -1;
            continue;
        }
        while (i < s->n && id >= start + s->pieces[i].rows)
            start += s->pieces[i++].rows;
        if (id < 0 || i == s->n)
            return fail_row(c, s, id);
        fl_lookup *to = &r->lookups[i];
        to->rows = to->n++ ? to->rows : &r->row[m];
        r->row[m] = s->by_id ? (id - start) * s->n + i : id - start;
        r->list[m] = s->by_id ? r->row[m] : id;
        r->which[at] = m++;
        last = id;
    }
    r->m = m;
    return FL_OK;
}

/* Move the lookups that have rows to the front; each gets its part of
 * `values`. */
static void address_lookups(const state *s, request *r)
{
    char *to = r->values.data;
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        fl_lookup one = r->lookups[i];
        if (!one.n)
            continue;
        const fl_shape shape = {2, {one.n, r->values.shape.dim[1]}};
        r->answers[n] = fl_tensor_view(r->values.dtype, &shape, to);
        to += fl_tensor_bytes(&r->answers[n]);
        one.table = s->pieces[i].table;
        one.server = s->pieces[i].server;
        one.out = &r->answers[n];
        r->lookups[n++] = one;
    }
    r->n_lookups = n;
}

/* Make the request for the ids of the op's inputs. */
static fl_err fill_request(const fl_call *c, const state *s, request *r)
{
    const fl_tensor *w = fl_in(c, "W");
    copy_ids(c, s, r);
    FL_TRY(assign_rows(c, s, r));
    const fl_shape shape = {2, {r->m, w->shape.dim[1]}};
    FL_TRY(fl_tensor_resize(&r->values, w->dtype, &shape));
    address_lookups(s, r);
    return FL_OK;
}

/* An answer that does not fit has got memory of its own. */
static fl_err check_answers(request *r)
{
    const char *at = r->values.data;
    fl_err err = FL_OK;
    for (int i = 0; i < r->n_lookups; i++) {
        const fl_lookup *to = &r->lookups[i];
        const size_t bytes = (size_t)to->n * (size_t)r->values.shape.dim[1] *
                             fl_dtype_size(r->values.dtype);
        if (to->out->data != at && !err)
            err = fl_fail(FL_ESHAPE,
                          "distributed_lookup_table: rows of \"%s\" came as "
                          "%zu bytes of %s, %zu of %s were expected",
                          to->table, fl_tensor_bytes(to->out),
                          fl_dtype_name(to->out->dtype), bytes,
                          fl_dtype_name(r->values.dtype));
        fl_tensor_fini(to->out);
        at += bytes;
    }
    return err;
}

/* --- asking ahead --- */

static void swap_requests(state *s)
{
    const request was = s->now;
    s->now = s->ahead;
    s->ahead = was;
}

/* Whether the rows of the op's inputs were asked for ahead with this request.
 */
static bool is_for_inputs(const fl_call *c, const state *s, const request *r)
{
    int64_t at = 0;
    if (!r->ticket)
        return false;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const fl_tensor *ids = fl_in_at(c, "Ids", i);
        const int64_t *id = ids->data, n = fl_tensor_numel(ids);
        if (n > r->n - at)
            return false;
        for (int64_t k = 0; k < n; k++)
            if (r->ids[at + k] != number_id(s, id[k]))
                return false;
        at += n;
    }
    return at == r->n;
}

/* Ask for the rows of the run after the next one. If something is wrong, that
 * run reports it. */
static void look_ahead(fl_call *c)
{
    state *s;
    fl_trainer *t;
    if (get_state(c, &s) || fl_call_trainer(c, &t))
        return;
    if (s->place->async && !fl_call_communicator(c))
        return;
    if (s->ahead.ticket) /* the next run takes these */
        swap_requests(s);
    s->ahead.ticket = 0;
    if (!fill_request(c, s, &s->ahead) && s->ahead.n_lookups)
        s->ahead.ticket =
            fl_trainer_ask(t, s->ahead.n_lookups, s->ahead.lookups);
}

/* Get the rows of all ids of the inputs: *out has them. */
static fl_err look_up_all(fl_call *c, request **out)
{
    state *s;
    fl_trainer *t;
    FL_TRY(get_state(c, &s));
    FL_TRY(fl_call_trainer(c, &t));
    request *r = &s->now;
    bool asked = is_for_inputs(c, s, r);
    if (!asked && is_for_inputs(c, s, &s->ahead)) {
        swap_requests(s);
        asked = true;
    }
    const uint64_t ticket = asked ? r->ticket : 0;
    r->ticket = 0;
    if (!ticket)
        FL_TRY(fill_request(c, s, r));
    if (r->n_lookups) {
        const fl_watch *by = fl_call_watch(c);
        const fl_err err =
            ticket ? fl_trainer_answer(t, by, ticket, r->n_lookups, r->lookups)
                   : fl_trainer_lookup(t, by, r->n_lookups, r->lookups);
        const fl_err bad = check_answers(r);
        FL_TRY(err ? err : bad);
    }
    *out = r;
    return FL_OK;
}

/* Row r of `to` = the sum of the rows that e has for it. */
static void copy_rows(const request *r, const fl_embed *e, void *to)
{
    if (r->values.dtype == FL_F64)
        fl_embed_get_f64(e, r->values.data, to);
    else
        fl_embed_get_f32(e, r->values.data, to);
}

static fl_err distributed_lookup(fl_call *c)
{
    request *r;
    int64_t first = 0;
    FL_TRY(look_up_all(c, &r));
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const int64_t n = fl_tensor_numel(fl_in_at(c, "Ids", i));
        const int64_t width = r->values.shape.dim[1];
        const fl_embed e = {.ids = r->which + first,
                            .n = n,
                            .rows = n,
                            .width = width,
                            .step = width,
                            .padding = -1};
        fl_tensor *out = fl_out_at(c, "Outputs", i);
        if (out)
            copy_rows(r, &e, out->data);
        first += n;
    }
    return FL_OK;
}

/* --- fused_lookup_concat --- */

static fl_err infer_concat(fl_infer *x)
{
    fl_shape where = {1, {1}};
    FL_TRY(fl_embed_infer_concat(x));
    for (int i = 0; i < fl_meta_count_in(x, "Ids"); i++) {
        const int64_t n = fl_meta_in(x, "Ids", i)->shape.dim[0];
        where.dim[0] = fl_dim_add(where.dim[0], fl_dim_mul(2, n));
    }
    fl_meta_set(x, "Where", 0, FL_I64, &where);
    return FL_OK;
}

static fl_err lookup_concat(fl_call *c)
{
    fl_tensor *y = fl_out(c, "Out"), *where = fl_out(c, "Where");
    const size_t size = fl_dtype_size(y->dtype);
    int64_t *list = where ? where->data : NULL;
    fl_embed_walk walk = {.c = c, .table = "W", .step = y->shape.dim[1]};
    fl_embed_part part;
    request *r;
    FL_TRY(fl_embed_cut_lod(c));
    FL_TRY(look_up_all(c, &r));
    if (list) {
        list[0] = r->m;
        memcpy(list + 1, r->which, (size_t)r->n * sizeof *list);
        memcpy(list + 1 + r->n, r->list, (size_t)r->m * sizeof *list);
    }
    while (fl_embed_next(&walk, &part)) {
        char *to = (char *)y->data + (size_t)part.column * size;
        const size_t bytes = (size_t)part.width * size;
        part.ids.ids = r->which + part.first;
        part.ids.padding = -1;
        if (part.dense)
            fl_move_runs(y->shape.dim[0], bytes, to, (size_t)walk.step * size,
                         part.dense->data, bytes);
        else
            copy_rows(r, &part.ids, to);
    }
    return FL_OK;
}

/* --- prefetch, lookup_sparse_table --- */

static fl_err infer_prefetch(fl_infer *x)
{
    return fl_meta_check(x, "X", FL_SET(FL_I64));
}

/* split_ids has sorted the ids by server. Servers number the rows as the whole
 * table does. */
static fl_err prefetch(fl_call *c)
{
    const fl_attr *to = fl_attr_get(c, "epmap");
    const int n = fl_in_count(c, "X");
    fl_lookup *lookups = fl_scratch(c, n, sizeof *lookups);
    fl_trainer *t;
    if (!lookups)
        return FL_ENOMEM;
    if (to->n != n || fl_out_count(c, "Out") != n)
        return fl_fail(FL_EINVAL,
                       "prefetch: there are %d X, %d Out and %d servers in "
                       "epmap, expected as many of each",
                       n, fl_out_count(c, "Out"), to->n);
    FL_TRY(fl_call_trainer(c, &t));
    for (int i = 0; i < n; i++) {
        const fl_tensor *ids = fl_in_at(c, "X", i);
        lookups[i] = (fl_lookup){.table = fl_attr_str(c, "table_name"),
                                 .n = fl_tensor_numel(ids),
                                 .rows = ids->data,
                                 .out = fl_out_at(c, "Out", i)};
        FL_TRY(fl_call_server(c, to->strings[i], &lookups[i].server));
        fl_out_value(c, "Out", i)->kind = FL_LOD_TENSOR;
    }
    return fl_trainer_lookup(t, fl_call_watch(c), n, lookups);
}

static fl_err infer_sparse(fl_infer *x)
{
    FL_TRY(fl_meta_check(x, "W", FL_REALS | FL_OR_ROWS));
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    return set_rows_of(x, fl_meta_in(x, "Ids", 0), fl_meta_in(x, "W", 0), "Out",
                       0);
}

#define PIECES                                                                 \
    {"table_names", FL_ATTR_STRINGS},       /* the pieces of W */              \
        {"height_sections", FL_ATTR_LONGS}, /* rows of each piece */           \
    {                                                                          \
        "endpoints", FL_ATTR_STRINGS                                           \
    } /* server of each piece */

const fl_op_def fl_op_distributed_lookup_table = {
    .type = "distributed_lookup_table",
    .in = {{"Ids", FL_MANY}, {"W", FL_UNREAD}},
    .out = {{"Outputs", FL_MANY}},
    .attr =
        {
            PIECES,
            {"padding_idx", FL_ATTR_LONG, .i = -1},
            {"trainer_id", FL_ATTR_INT},
        },
    .infer = infer_distributed,
    .run = distributed_lookup,
    .ahead = look_ahead,
    .ahead_in = "Ids",
};

const fl_op_def fl_op_fused_lookup_concat = {
    .type = "fused_lookup_concat",
    .in = {{"Ids", FL_MANY},
           {"W", FL_UNREAD},
           {"Dense", FL_MANY | FL_OPTIONAL}},
    .out = {{"Out"}, {"Where", FL_OPTIONAL}},
    .attr =
        {
            PIECES,
            {"order", FL_ATTR_INTS, .required = true},
            {"pool", FL_ATTR_BOOL},
            {"padding_idx", FL_ATTR_LONG, .i = -1},
        },
    .flags = FL_OP_HIDDEN,
    .infer = infer_concat,
    .run = lookup_concat,
    .ahead = look_ahead,
    .ahead_in = "Ids",
};

/* Dynamic: the number of ids, and so of rows of Out, is known at run time only.
 */
const fl_op_def fl_op_prefetch = {
    .type = "prefetch",
    .in = {{"X", FL_MANY}},
    .out = {{"Out", FL_MANY}},
    .attr =
        {
            {"epmap", FL_ATTR_STRINGS},
            {"table_name", FL_ATTR_STRING},
            {"trainer_id", FL_ATTR_INT},
        },
    .flags = FL_OP_DYNAMIC,
    .infer = infer_prefetch,
    .run = prefetch,
};

const fl_op_def fl_op_lookup_sparse_table = {
    .type = "lookup_sparse_table",
    .in = {{"W"}, {"Ids"}},
    .out = {{"Out"}},
    .attr =
        {
            {"is_sparse", FL_ATTR_BOOL, .b = true},
            {"is_distributed", FL_ATTR_BOOL, .b = true},
            {"padding_idx", FL_ATTR_LONG, .i = -1},
            {"auto_grown_table", FL_ATTR_BOOL, .b = true},
            {"is_test", FL_ATTR_BOOL},
            /* the op that sets the values of a new row, and its numbers
             * (value; min, max; mean, std) */
            {"start", FL_ATTR_STRING, .ours = true},
            {"start_a", FL_ATTR_FLOAT, .ours = true},
            {"start_b", FL_ATTR_FLOAT, .ours = true},
            {"start_seed", FL_ATTR_INT, .ours = true},
        },
    .infer = infer_sparse,
};
