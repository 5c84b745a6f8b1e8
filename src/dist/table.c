/* table.c - rows are found many at a time.
 *
 * A row that is not in a cache costs two waits for memory, one in the index
 * and one for the row itself. So ids go through three stages in groups: while
 * the slots of one group are on their way, rows of the group before are asked
 * for, and those of the one before that are used:
 *
 *     hash    find the home of each id, ask for its line
 *     probe   find the slot, ask for the lines of the row
 *     settle  compare ids; what was not found is made where rows are written
 *
 * Making a row may move a shelf, never a row: what was probed stays good. */
#include "dist/table_in.h"

#include "op/kernel.h"

enum {
    GROUP = 32,
    STAGES = 3,
    LINE = 64,     /* bytes that memory is read by */
    LINES_MAX = 16 /* of a row that are asked for */
};

/* --- its life --- */

fl_err fl_table_new(const fl_table_opts *opts, fl_table **out)
{
    if (opts->dtype != FL_F32 && opts->dtype != FL_F64)
        return fl_fail(FL_EINVAL,
                       "table \"%s\" is of %s, expected float32 or float64",
                       opts->name, fl_dtype_word(opts->dtype));
    if (opts->width < 1 || opts->width > INT32_MAX)
        return fl_fail(FL_EINVAL, "table \"%s\" has rows of %lld numbers",
                       opts->name, (long long)opts->width);
    if (opts->rule && opts->rule->whole)
        return fl_fail(FL_EINVAL,
                       "table \"%s\": its rule needs all rows at once",
                       opts->name);
    fl_table *t = fl_mem_alloc(sizeof *t);
    t->opts = *opts;
    t->opts.name = t->name = fl_mem_strdup(opts->name);
    if (!t->opts.budget)
        t->opts.budget = &t->own;
    fl_table_layout(t);
    fl_shelves_init(t);
    const fl_err err = fl_start_init(t);
    if (err) {
        fl_table_free(t);
        return err;
    }
    *out = t;
    return FL_OK;
}

void fl_table_free(fl_table *t)
{
    if (!t)
        return;
    fl_shelves_fini(t);
    fl_chunks_fini(t);
    fl_tensor_fini(&t->pool);
    fl_mem_free(t->name);
    fl_mem_free(t);
}

int64_t fl_table_rows(const fl_table *t)
{
    return t->n;
}

int64_t fl_table_width(const fl_table *t)
{
    return t->opts.width;
}

int64_t fl_table_span(const fl_table *t)
{
    return t->span;
}

int64_t fl_table_bytes(const fl_table *t)
{
    return t->taken;
}

/* --- finding rows --- */

typedef struct group {
    int64_t n;
    const int64_t *id;
    uint64_t hash[GROUP];
    char *row[GROUP];
} group;

/* What is done with rows: those of the ids from `at` on. */
typedef struct use {
    void (*rows)(const struct use *u, int64_t at, const group *g);
    fl_table *makes; /* NULL: rows that are not there stay NULL */
    size_t touched;  /* bytes from a row's start */
    size_t from;     /* read: where in a row */
    int state;       /* read: or FL_TABLE_VALUE */
    const fl_table *table;
    char *out;          /* read */
    const char *in;     /* apply, load */
    size_t in_bytes;    /* of a row of it */
    const fl_hyper *by; /* apply */
} use;

static void hash(const fl_table *t, group *g)
{
    for (int64_t i = 0; i < g->n; i++) {
        const uint64_t h = g->hash[i] = fl_table_hash(g->id[i]);
        const fl_shelf *s = &t->shelf[h >> FL_SHELF_BITS];
        __builtin_prefetch(fl_shelf_home(s, fl_table_tag(h)));
    }
}

/* The first row with the tag, most likely the one. */
FL_CLONES static void probe(const fl_table *t, group *g, size_t touched)
{
    for (int64_t i = 0; i < g->n; i++) {
        const fl_spot tag = fl_table_tag(g->hash[i]);
        const fl_shelf *s = &t->shelf[g->hash[i] >> FL_SHELF_BITS];
        const fl_spot spot = *fl_line_find(fl_shelf_home(s, tag), tag);
        if (!fl_spot_is(spot, tag)) {
            g->row[i] = NULL;
            continue;
        }
        char *row = g->row[i] = fl_table_row(t, spot);
        __builtin_prefetch(row);
        __builtin_prefetch(row + touched - 1);
        for (size_t at = LINE; at + LINE < touched; at += LINE)
            __builtin_prefetch(row + at);
    }
}

static fl_err add_row(fl_table *t, int64_t id, uint64_t h, char **row)
{
    uint32_t at;
    FL_TRY(fl_shelves_reserve(t, h));
    FL_TRY(fl_chunks_next(t, &at));
    *row = fl_table_row(t, at);
    fl_start_row(t, id, *row);
    fl_shelves_add(t, h, at);
    t->fill++;
    t->n++;
    return FL_OK;
}

static fl_err settle(const use *u, group *g)
{
    for (int64_t i = 0; i < g->n; i++) {
        if (g->row[i] && fl_row_id(g->row[i]) == g->id[i])
            continue;
        g->row[i] = fl_shelves_find(u->table, g->id[i], g->hash[i]);
        if (!g->row[i] && u->makes)
            FL_TRY(add_row(u->makes, g->id[i], g->hash[i], &g->row[i]));
    }
    return FL_OK;
}

static fl_err walk(const use *u, int64_t n, const int64_t *id)
{
    group ring[STAGES];
    const fl_table *t = u->table;
    const size_t most = (size_t)LINES_MAX * LINE;
    const size_t touched = u->touched < most ? u->touched : most;
    const int64_t groups = (n + GROUP - 1) / GROUP;
    for (int64_t k = 0; k < groups + STAGES - 1; k++) {
        if (k < groups) {
            group *g = &ring[k % STAGES];
            g->id = id + k * GROUP;
            g->n = n - k * GROUP < GROUP ? n - k * GROUP : GROUP;
            hash(t, g);
        }
        if (k >= 1 && k - 1 < groups)
            probe(t, &ring[(k - 1) % STAGES], touched);
        if (k >= 2) {
            group *g = &ring[(k - 2) % STAGES];
            FL_TRY(settle(u, g));
            u->rows(u, (k - 2) * GROUP, g);
        }
    }
    return FL_OK;
}

/* --- what is done with them --- */

/* Most rows are short: a call for each would cost more than the copy. */
static inline void copy(char *to, const char *from, size_t n)
{
    for (; n >= 32; n -= 32, to += 32, from += 32)
        memcpy(to, from, 32);
    for (; n >= 8; n -= 8, to += 8, from += 8)
        memcpy(to, from, 8);
    if (n)
        memcpy(to, from, 4);
}

FL_CLONES static void read_rows(const use *u, int64_t at, const group *g)
{
    const size_t bytes = u->table->bytes;
    char *to = u->out + (size_t)at * bytes;
    for (int64_t i = 0; i < g->n; i++, to += bytes)
        if (g->row[i])
            copy(to, g->row[i] + u->from, bytes);
        else if (u->state == FL_TABLE_VALUE)
            fl_start_value(u->table, g->id[i], to);
        else
            fl_start_state(u->table, u->state, to);
}

fl_err fl_table_read(const fl_table *t, int state, int64_t n, const int64_t *id,
                     fl_tensor *out)
{
    const fl_shape s = {2, {n, t->opts.width}};
    FL_TRY(fl_tensor_resize(out, t->opts.dtype, &s));
    const size_t from =
        state == FL_TABLE_VALUE ? sizeof(int64_t) : t->state[state];
    const use u = {.rows = read_rows,
                   .table = t,
                   .touched = from + t->bytes,
                   .from = from,
                   .state = state,
                   .out = out->data};
    return walk(&u, n, id);
}

static void apply_rows(const use *u, int64_t at, const group *g)
{
    const fl_table *t = u->table;
    const char *grad = u->in + (size_t)at * t->bytes;
    void *state[FL_RULE_STATES];
    for (int64_t i = 0; i < g->n; i++, grad += t->bytes) {
        for (int s = 0; s < FL_RULE_STATES; s++)
            state[s] = t->state[s] ? g->row[i] + t->state[s] : NULL;
        fl_rule_apply(t->opts.rule, t->opts.dtype, t->opts.width,
                      fl_row_value(g->row[i]), grad, state, u->by);
    }
}

fl_err fl_table_apply(fl_table *t, int64_t n, const int64_t *id,
                      const void *grad, const fl_hyper *h)
{
    if (!t->opts.rule)
        return fl_fail(FL_EINVAL, "table \"%s\" has no rule to be updated by",
                       t->name);
    const use u = {.rows = apply_rows,
                   .table = t,
                   .makes = t,
                   .touched = t->stride,
                   .in = grad,
                   .by = h};
    return walk(&u, n, id);
}

static void load_rows(const use *u, int64_t at, const group *g)
{
    const fl_table *t = u->table;
    const char *in = u->in + (size_t)at * u->in_bytes;
    for (int64_t i = 0; i < g->n; i++, in += u->in_bytes) {
        memcpy(fl_row_value(g->row[i]), in, u->in_bytes);
        if (u->in_bytes == t->bytes)
            fl_start_states(t, g->row[i]);
    }
}

fl_err fl_table_load(fl_table *t, int64_t n, const int64_t *id,
                     const fl_tensor *rows)
{
    const fl_shape *s = &rows->shape;
    char text[FL_SHAPE_TEXT];
    if (rows->dtype != t->opts.dtype || s->rank != 2 || s->dim[0] != n ||
        (s->dim[1] != t->opts.width && s->dim[1] != t->span))
        return fl_fail(FL_ESHAPE,
                       "table \"%s\": %lld rows came as %s%s, expected %s of "
                       "%lld numbers, or %lld with states",
                       t->name, (long long)n, fl_dtype_word(rows->dtype),
                       fl_shape_text(s, text), fl_dtype_word(t->opts.dtype),
                       (long long)t->opts.width, (long long)t->span);
    const use u = {.rows = load_rows,
                   .table = t,
                   .makes = t,
                   .touched = t->stride,
                   .in = rows->data,
                   .in_bytes =
                       (size_t)s->dim[1] * fl_dtype_size(t->opts.dtype)};
    return walk(&u, n, id);
}
