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
                       "distributed_lookup_table: %d Ids, %d Outputs", n, m);
    if (fl_meta_attr(x, "height_sections")->n != pieces ||
        fl_meta_attr(x, "endpoints")->n != pieces)
        return fl_fail(FL_EINVAL,
                       "distributed_lookup_table: %d table_names, %d "
                       "height_sections, %d endpoints",
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

/* Memory that an op keeps from one run to the next. */
typedef struct state {
    const fl_placement *place; /* of the job whose servers are asked */
    int64_t room;     /* ids that the next four arrays have memory for */
    int64_t *ids;     /* ids of all inputs, one input after the other */
    int64_t *which;   /* by id: its index in `row` and `values`; -1: padding */
    fl_row_at *order; /* memory for fl_rows_order: twice as many */
    int64_t *row;     /* rows to ask for, with the server's numbers */
    fl_tensor values; /* values of these rows, after the answer */
    bool by_id;       /* rows by id: piece i has the ids i, i + n, .. */
    int n;            /* pieces */
    piece *pieces;
    fl_lookup *lookups; /* by piece; those with rows move to the front */
    fl_tensor *answers; /* by lookup: views of `values` */
} state;

static void free_state(void *scratch)
{
    state *s = scratch;
    if (!s)
        return;
    fl_tensor_fini(&s->values);
    fl_mem_free(s->ids);
    fl_mem_free(s->which);
    fl_mem_free(s->order);
    fl_mem_free(s->row);
    fl_mem_free(s->pieces);
    fl_mem_free(s->lookups);
    fl_mem_free(s->answers);
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
        s->pieces[at] =
            (piece){k->name, k->server,
                    s->by_id ? INT64_MAX / place->n_servers : k->shape.dim[0],
                    k->first};
        s->n++;
    }
}

static fl_err init_state(fl_call *c, const fl_placement *place, state *s)
{
    const int named = fl_attr_get(c, "table_names")->n;
    const size_t most = (size_t)(named ? named : place->n_pieces) + 1;
    s->place = place;
    s->pieces = fl_mem_alloc(most * sizeof *s->pieces);
    s->lookups = fl_mem_alloc(most * sizeof *s->lookups);
    s->answers = fl_mem_alloc(most * sizeof *s->answers);
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

static void reserve_ids(state *s, int64_t n)
{
    if (n <= s->room)
        return;
    const size_t room = (size_t)(n > 2 * s->room ? n : 2 * s->room);
    s->ids = fl_mem_grow(s->ids, room * sizeof *s->ids);
    s->which = fl_mem_grow(s->which, room * sizeof *s->which);
    s->order = fl_mem_grow(s->order, 2 * room * sizeof *s->order);
    s->row = fl_mem_grow(s->row, room * sizeof *s->row);
    s->room = (int64_t)room;
}

/* Map an id of a table with rows by id to a number, so that the ids of one
 * piece have consecutive numbers. */
static int64_t number_id(const state *s, int64_t id)
{
    if (!s->by_id || id < 0 || id / s->n >= s->pieces[0].rows)
        return id;
    return id % s->n * s->pieces[0].rows + id / s->n;
}

static int64_t copy_ids(const fl_call *c, state *s)
{
    int64_t n = 0;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++)
        n += fl_tensor_numel(fl_in_at(c, "Ids", i));
    reserve_ids(s, n);
    int64_t *to = s->ids;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const fl_tensor *ids = fl_in_at(c, "Ids", i);
        if (fl_tensor_numel(ids))
            memcpy(to, ids->data, fl_tensor_bytes(ids));
        to += fl_tensor_numel(ids);
    }
    for (int64_t i = 0; s->by_id && i < n; i++)
        s->ids[i] = number_id(s, s->ids[i]);
    return n;
}

static fl_err fail_row(const fl_call *c, const state *s, int64_t id)
{
    int64_t all = 0;
    for (int i = 0; i < s->n; i++)
        all += s->pieces[i].rows;
    return fl_fail(FL_EINVAL,
                   "distributed_lookup_table: id %lld, \"%s\" has rows 0 to "
                   "%lld",
                   (long long)id, fl_desc_in1(c->desc, "W"),
                   (long long)(all - 1));
}

/* Sort the ids, drop repeats, and give the rows of piece i to s->lookups[i]. *m
 * is the number of rows. `list`, unless it is NULL, gets their ids. */
static fl_err assign_rows(const fl_call *c, state *s, int64_t n, int64_t *list,
                          int64_t *m)
{
    const int64_t padding = number_id(s, fl_attr_i64(c, "padding_idx"));
    const fl_shape shape = fl_shape_of(1, &n);
    const fl_rows all = {.n = n,
                         .index = fl_tensor_view(FL_I64, &shape, s->ids)};
    const fl_row_at *order = fl_rows_order(&all, s->order);
    int64_t start = 0, last = 0;
    int i = 0; /* piece */
    *m = 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = order[k].at, id = s->ids[at];
        if (padding != -1 && id == padding) {
            s->which[at] = -1;
            continue;
        }
        while (i < s->n && id >= start + s->pieces[i].rows)
            start += s->pieces[i++].rows;
        if (id < 0 || i == s->n)
            return fail_row(c, s, id);
        if (!*m || id != last) {
            fl_lookup *to = &s->lookups[i];
            to->rows = to->n++ ? to->rows : &s->row[*m];
            s->row[*m] = s->by_id ? (id - start) * s->n + i : id - start;
            if (list)
                list[*m] = s->by_id ? s->row[*m] : id;
            ++*m;
        }
        s->which[at] = *m - 1;
        last = id;
    }
    return FL_OK;
}

/* Move the lookups that have rows to the front; each gets its part of
 * `values`. Returns how many have. */
static int address_lookups(state *s)
{
    char *to = s->values.data;
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        fl_lookup one = s->lookups[i];
        if (!one.n)
            continue;
        const fl_shape shape = {2, {one.n, s->values.shape.dim[1]}};
        s->answers[n] = fl_tensor_view(s->values.dtype, &shape, to);
        to += fl_tensor_bytes(&s->answers[n]);
        one.table = s->pieces[i].table;
        one.server = s->pieces[i].server;
        one.out = &s->answers[n];
        s->lookups[n++] = one;
    }
    return n;
}

/* An answer that does not fit has got memory of its own. */
static fl_err check_answers(state *s, int n)
{
    const char *at = s->values.data;
    fl_err err = FL_OK;
    for (int i = 0; i < n; i++) {
        const fl_lookup *to = &s->lookups[i];
        const size_t bytes = (size_t)to->n * (size_t)s->values.shape.dim[1] *
                             fl_dtype_size(s->values.dtype);
        if (to->out->data != at && !err)
            err = fl_fail(FL_ESHAPE,
                          "distributed_lookup_table: rows of \"%s\" came as "
                          "%zu bytes of %s, %zu of %s were expected",
                          to->table, fl_tensor_bytes(to->out),
                          fl_dtype_name(to->out->dtype), bytes,
                          fl_dtype_name(s->values.dtype));
        fl_tensor_fini(to->out);
        at += bytes;
    }
    return err;
}

/* Ask for the rows of all ids: s->values gets them, s->which says where.
 * `list`, unless it is NULL, gets the *m different ids. */
static fl_err look_up_all(fl_call *c, state **out, int64_t *list, int64_t *m)
{
    const fl_tensor *w = fl_in(c, "W");
    state *s;
    fl_trainer *t;
    FL_TRY(get_state(c, &s));
    FL_TRY(fl_call_trainer(c, &t));
    memset(s->lookups, 0, (size_t)s->n * sizeof *s->lookups);
    FL_TRY(assign_rows(c, s, copy_ids(c, s), list, m));
    const fl_shape shape = {2, {*m, w->shape.dim[1]}};
    FL_TRY(fl_tensor_resize(&s->values, w->dtype, &shape));
    const int n = address_lookups(s);
    if (n) {
        const fl_err err =
            fl_trainer_lookup(t, fl_call_watch(c), n, s->lookups);
        const fl_err bad = check_answers(s, n);
        FL_TRY(err ? err : bad);
    }
    *out = s;
    return FL_OK;
}

/* Row r of `to` = the sum of the rows that e has for it. */
static void copy_rows(const state *s, const fl_embed *e, void *to)
{
    if (s->values.dtype == FL_F64)
        fl_embed_get_f64(e, s->values.data, to);
    else
        fl_embed_get_f32(e, s->values.data, to);
}

static fl_err distributed_lookup(fl_call *c)
{
    state *s;
    int64_t first = 0, m;
    FL_TRY(look_up_all(c, &s, NULL, &m));
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const int64_t n = fl_tensor_numel(fl_in_at(c, "Ids", i));
        const int64_t width = s->values.shape.dim[1];
        const fl_embed e = {.ids = s->which + first,
                            .n = n,
                            .rows = n,
                            .width = width,
                            .step = width,
                            .padding = -1};
        fl_tensor *out = fl_out_at(c, "Outputs", i);
        if (out)
            copy_rows(s, &e, out->data);
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
    const int64_t n = fl_embed_count_ids(c);
    int64_t *list = where ? where->data : NULL, m;
    fl_embed_walk walk = {.c = c, .table = "W", .step = y->shape.dim[1]};
    fl_embed_part part;
    state *s;
    FL_TRY(fl_embed_cut_lod(c));
    FL_TRY(look_up_all(c, &s, list ? list + 1 + n : NULL, &m));
    if (list) {
        list[0] = m;
        memcpy(list + 1, s->which, (size_t)n * sizeof *list);
    }
    while (fl_embed_next(&walk, &part)) {
        char *to = (char *)y->data + (size_t)part.column * size;
        const size_t bytes = (size_t)part.width * size;
        part.ids.ids = s->which + part.first;
        part.ids.padding = -1;
        if (part.dense)
            fl_move_runs(y->shape.dim[0], bytes, to, (size_t)walk.step * size,
                         part.dense->data, bytes);
        else
            copy_rows(s, &part.ids, to);
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
        return fl_fail(FL_EINVAL, "prefetch: %d X, %d Out, %d servers in epmap",
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
