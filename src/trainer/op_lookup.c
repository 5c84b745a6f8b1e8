/* distributed_lookup_table   Outputs i = the rows Ids i of W, whose slices lie
 *                            on servers; rows of padding_idx are zero
 *
 * Each row is asked for once, however often its id occurs: ids are put in
 * order, which also parts them by slice, and all servers are asked at a time.
 * W itself is not read: there may be no copy of it here.
 *
 * An op without table_names is a plan's, in place of the lookups of a program
 * that was not cut (a test on a trainer): the job says where the slices are.
 * Tables by id are then asked as well; id i is numbered as row i / servers of
 * slice i % servers meanwhile, so that order parts these, too. */
#include "exec/plan.h"
#include "trainer/ops_in.h"
#include "trainer/service.h"

fl_err fl_meta_rows_of(const fl_infer *x, const fl_meta *ids, const fl_meta *w,
                       const char *slot, int i)
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

static fl_err infer(fl_infer *x)
{
    const int n = fl_meta_count_in(x, "Ids"),
              m = fl_meta_count_out(x, "Outputs");
    const int slices = fl_meta_attr(x, "table_names")->n;
    FL_TRY(fl_meta_check(x, "W", FL_REALS));
    FL_TRY(fl_meta_check(x, "Ids", FL_SET(FL_I64)));
    if (n != m)
        return fl_fail(FL_EINVAL,
                       "distributed_lookup_table: %d Ids, %d Outputs", n, m);
    if (fl_meta_attr(x, "height_sections")->n != slices ||
        fl_meta_attr(x, "endpoints")->n != slices)
        return fl_fail(FL_EINVAL,
                       "distributed_lookup_table: %d table_names, %d "
                       "height_sections, %d endpoints",
                       slices, fl_meta_attr(x, "height_sections")->n,
                       fl_meta_attr(x, "endpoints")->n);
    for (int i = 0; i < n; i++)
        FL_TRY(fl_meta_rows_of(x, fl_meta_in(x, "Ids", i),
                               fl_meta_in(x, "W", 0), "Outputs", i));
    return FL_OK;
}

/* Rows of W on a server. */
typedef struct slice {
    const char *table;
    int server;
    int64_t rows;
    int64_t first; /* elements of W before it */
} slice;

/* Between calls. */
typedef struct space {
    const fl_placement *place; /* of the job that it asks */
    int64_t room;              /* ids that the arrays have room for */
    int64_t *ids;              /* of all inputs, one after the other */
    int64_t *which;   /* of each its place among the rows; -1: padding */
    fl_row_at *order; /* twice as many */
    int64_t *row;     /* rows asked for, as their slices count them */
    const char **at;  /* and where they are then */
    bool by_id;       /* slice i has the ids i, i + slices, .. */
    int slices;
    slice *slice;
    fl_lookup *ask;
    fl_tensor *got; /* by slice */
} space;

static void end_space(void *scratch)
{
    space *s = scratch;
    if (!s)
        return;
    for (int i = 0; i < s->slices; i++)
        fl_tensor_fini(&s->got[i]);
    fl_mem_free(s->ids);
    fl_mem_free(s->which);
    fl_mem_free(s->order);
    fl_mem_free(s->row);
    fl_mem_free(s->at);
    fl_mem_free(s->slice);
    fl_mem_free(s->ask);
    fl_mem_free(s->got);
    fl_mem_free(s);
}

static fl_err read_slices(fl_call *c, space *s)
{
    const fl_attr *names = fl_attr_get(c, "table_names");
    const fl_attr *rows = fl_attr_get(c, "height_sections");
    const fl_attr *servers = fl_attr_get(c, "endpoints");
    for (int i = 0; i < s->slices; i++) {
        s->slice[i] =
            (slice){.table = names->strings[i], .rows = rows->longs[i]};
        FL_TRY(fl_call_server(c, servers->strings[i], &s->slice[i].server));
    }
    return FL_OK;
}

/* As the job says, in the order of the table; by id, in that of servers. */
static void find_slices(const fl_placement *place, const char *w, space *s)
{
    for (int i = 0; i < place->n_pieces; i++) {
        const fl_piece *k = &place->pieces[i];
        int at = s->slices;
        if (strcmp(k->var, w))
            continue;
        for (; at && s->slice[at - 1].first > k->first; at--)
            s->slice[at] = s->slice[at - 1];
        s->by_id = k->first == FL_BY_ID;
        s->slice[at] =
            (slice){k->name, k->server,
                    s->by_id ? INT64_MAX / place->n_servers : k->shape.dim[0],
                    k->first};
        s->slices++;
    }
}

static fl_err make_space(fl_call *c, const fl_placement *place, space *s)
{
    const int named = fl_attr_get(c, "table_names")->n;
    const size_t most = (size_t)(named ? named : place->n_pieces) + 1;
    s->place = place;
    s->slice = fl_mem_alloc(most * sizeof *s->slice);
    s->ask = fl_mem_alloc(most * sizeof *s->ask);
    s->got = fl_mem_alloc(most * sizeof *s->got);
    s->slices = named;
    if (named)
        return read_slices(c, s);
    find_slices(place, fl_desc_in1(c->desc, "W"), s);
    return FL_OK;
}

/* That of the last call, unless another job keeps the table since then. */
static fl_err space_of(fl_call *c, space **out)
{
    const fl_placement *place;
    space *s = c->scratch;
    FL_TRY(fl_call_place(c, &place));
    if (s && s->place != place) {
        end_space(s);
        s = c->scratch = NULL;
    }
    if (!s) {
        s = fl_mem_alloc(sizeof *s);
        const fl_err err = make_space(c, place, s);
        if (err) {
            end_space(s);
            return err;
        }
        c->scratch = s;
        c->end_scratch = end_space;
    }
    *out = s;
    return FL_OK;
}

static void make_room(space *s, int64_t n)
{
    if (n <= s->room)
        return;
    const size_t room = (size_t)(n > 2 * s->room ? n : 2 * s->room);
    s->ids = fl_mem_grow(s->ids, room * sizeof *s->ids);
    s->which = fl_mem_grow(s->which, room * sizeof *s->which);
    s->order = fl_mem_grow(s->order, 2 * room * sizeof *s->order);
    s->row = fl_mem_grow(s->row, room * sizeof *s->row);
    s->at = fl_mem_grow(s->at, room * sizeof *s->at);
    s->room = (int64_t)room;
}

/* By id: numbers that grow from slice to slice. */
static int64_t number_of(const space *s, int64_t id)
{
    if (!s->by_id || id < 0 || id / s->slices >= s->slice[0].rows)
        return id;
    return id % s->slices * s->slice[0].rows + id / s->slices;
}

static int64_t gather(const fl_call *c, space *s)
{
    int64_t n = 0;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++)
        n += fl_tensor_numel(fl_in_at(c, "Ids", i));
    make_room(s, n);
    int64_t *to = s->ids;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const fl_tensor *ids = fl_in_at(c, "Ids", i);
        if (fl_tensor_numel(ids))
            memcpy(to, ids->data, fl_tensor_bytes(ids));
        to += fl_tensor_numel(ids);
    }
    for (int64_t i = 0; s->by_id && i < n; i++)
        s->ids[i] = number_of(s, s->ids[i]);
    return n;
}

static fl_err no_such_row(const fl_call *c, const space *s, int64_t id)
{
    int64_t all = 0;
    for (int i = 0; i < s->slices; i++)
        all += s->slice[i].rows;
    return fl_fail(FL_EINVAL,
                   "distributed_lookup_table: id %lld, \"%s\" has rows 0 to "
                   "%lld",
                   (long long)id, fl_desc_in1(c->desc, "W"),
                   (long long)(all - 1));
}

/* Each id once, in order; s->ask[i] gets those of slice i. */
static fl_err part(const fl_call *c, space *s, int64_t n)
{
    const int64_t padding = number_of(s, fl_attr_i64(c, "padding_idx"));
    const fl_shape shape = fl_shape_of(1, &n);
    const fl_rows list = {.n = n,
                          .index = fl_tensor_view(FL_I64, &shape, s->ids)};
    const fl_row_at *order = fl_rows_order(&list, s->order);
    int64_t start = 0, m = 0, last = 0;
    int i = 0; /* slice */
    for (int64_t k = 0; k < n; k++) {
        const int64_t at = order[k].at, id = s->ids[at];
        if (padding != -1 && id == padding) {
            s->which[at] = -1;
            continue;
        }
        while (i < s->slices && id >= start + s->slice[i].rows)
            start += s->slice[i++].rows;
        if (id < 0 || i == s->slices)
            return no_such_row(c, s, id);
        if (!m || id != last) {
            fl_lookup *ask = &s->ask[i];
            ask->rows = ask->n++ ? ask->rows : &s->row[m];
            s->row[m++] = s->by_id ? (id - start) * s->slices + i : id - start;
        }
        s->which[at] = m - 1;
        last = id;
    }
    return FL_OK;
}

/* Those with rows to ask for move to the front; how many there are. */
static int address(space *s)
{
    int n = 0;
    for (int i = 0; i < s->slices; i++) {
        fl_lookup ask = s->ask[i];
        if (!ask.n)
            continue;
        ask.table = s->slice[i].table;
        ask.server = s->slice[i].server;
        ask.out = &s->got[i];
        s->ask[n++] = ask;
    }
    return n;
}

/* Where each row that came is. */
static fl_err find_rows(const fl_call *c, space *s, int n, size_t bytes)
{
    const fl_tensor *w = fl_in(c, "W");
    int64_t k = 0;
    for (int i = 0; i < n; i++) {
        const fl_lookup *ask = &s->ask[i];
        if (ask->out->dtype != w->dtype ||
            fl_tensor_bytes(ask->out) != (size_t)ask->n * bytes)
            return fl_fail(FL_ESHAPE,
                           "distributed_lookup_table: rows of \"%s\" came as "
                           "%zu bytes of %s, %zu of %s were expected",
                           ask->table, fl_tensor_bytes(ask->out),
                           fl_dtype_name(ask->out->dtype),
                           (size_t)ask->n * bytes, fl_dtype_name(w->dtype));
        for (int64_t r = 0; r < ask->n; r++)
            s->at[k++] = (const char *)ask->out->data + (size_t)r * bytes;
    }
    return FL_OK;
}

static void scatter(const fl_call *c, const space *s, size_t bytes)
{
    const int64_t *which = s->which;
    for (int i = 0; i < fl_in_count(c, "Ids"); i++) {
        const int64_t n = fl_tensor_numel(fl_in_at(c, "Ids", i));
        fl_tensor *out = fl_out_at(c, "Outputs", i);
        for (int64_t k = 0; out && k < n; k++) {
            char *to = (char *)out->data + (size_t)k * bytes;
            if (which[k] < 0)
                memset(to, 0, bytes);
            else
                memcpy(to, s->at[which[k]], bytes);
        }
        which += n;
    }
}

static fl_err look_up(fl_call *c)
{
    const fl_tensor *w = fl_in(c, "W");
    const size_t bytes = (size_t)w->shape.dim[1] * fl_dtype_size(w->dtype);
    space *s;
    fl_trainer *t;
    FL_TRY(space_of(c, &s));
    FL_TRY(fl_call_trainer(c, &t));
    memset(s->ask, 0, (size_t)s->slices * sizeof *s->ask);
    FL_TRY(part(c, s, gather(c, s)));
    const int asks = address(s);
    if (asks)
        FL_TRY(fl_trainer_lookup(t, fl_call_watch(c), asks, s->ask));
    FL_TRY(find_rows(c, s, asks, bytes));
    scatter(c, s, bytes);
    return FL_OK;
}

const fl_op_def fl_op_distributed_lookup_table = {
    .type = "distributed_lookup_table",
    .in = {{"Ids", FL_MANY}, {"W", FL_UNREAD}},
    .out = {{"Outputs", FL_MANY}},
    .attr =
        {
            {"table_names", FL_ATTR_STRINGS},   /* the slices of W */
            {"height_sections", FL_ATTR_LONGS}, /* their rows */
            {"endpoints", FL_ATTR_STRINGS},     /* and servers */
            {"padding_idx", FL_ATTR_LONG, .i = -1},
            {"trainer_id", FL_ATTR_INT},
        },
    .infer = infer,
    .run = look_up,
};
