/* table.c - rows are found many at a time.
 *
 * A row that is not in a cache costs two waits for memory, one in the index
 * and one for the row itself. So ids are looked up in blocks, each in two
 * passes, which ask for memory long before they read it:
 *
 *     probe   ask for the homes of ids to come; find the spot of this one
 *     use     ask for rows to come; compare ids; what was not found is made,
 *             where rows are written
 *
 * Making a row may move a shelf, never a row: what was probed stays good. */
#include "dist/table_in.h"

#include "op/kernel.h"

enum {
    BLOCK = 512,   /* ids */
    GROUP = 8,     /* rows that are used together */
    AHEAD = 24,    /* ids between asking and reading: 3 groups */
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

typedef struct block {
    int64_t n;
    const int64_t *id;
    uint64_t hash[BLOCK];
    char *row[BLOCK]; /* or NULL */
} block;

/* Rows that are used together. */
typedef struct group {
    int64_t n;
    const int64_t *id;
    char *const *row;
} group;

/* What is done with rows: those of the ids from `at` on. */
typedef struct use {
    void (*rows)(const struct use *u, int64_t at, const group *g);
    fl_table *makes; /* NULL: rows that are not there stay NULL */
    size_t touched;  /* bytes from a row's start */
    size_t from;     /* read, load: where in a row */
    int state;       /* read: or FL_TABLE_VALUE */
    const fl_table *table;
    char *out;          /* read */
    const char *in;     /* apply, load */
    size_t in_bytes;    /* of a row of it */
    const fl_hyper *by; /* apply */
} use;

static inline fl_spot *home(const fl_table *t, uint64_t hash)
{
    return fl_shelf_home(&t->shelf[hash >> FL_SHELF_BITS], fl_table_tag(hash));
}

static inline void ask_home(const fl_table *t, block *b, int64_t i)
{
    b->hash[i] = fl_table_hash(b->id[i]);
    __builtin_prefetch(home(t, b->hash[i]));
}

/* The first row with the tag, most likely the one. */
static inline char *row_at(const fl_table *t, fl_spot spot, fl_spot tag)
{
    return fl_spot_is(spot, tag) ? fl_table_row(t, spot) : NULL;
}

/* Who is not in its own line has to wait for another, which all such do
 * together. */
FL_CLONES static void probe(const fl_table *t, block *b)
{
    int16_t late[BLOCK];
    int n_late = 0;
    for (int64_t i = 0; i < AHEAD && i < b->n; i++)
        ask_home(t, b, i);
    for (int64_t i = 0; i < b->n; i++) {
        if (i + AHEAD < b->n)
            ask_home(t, b, i + AHEAD);
        const fl_spot tag = fl_table_tag(b->hash[i]);
        const fl_spot *line = home(t, b->hash[i]);
        const int below = fl_line_below(line, tag);
        if (below < FL_LINE_SPOTS) {
            b->row[i] = row_at(t, line[below], tag);
            continue;
        }
        __builtin_prefetch(line + FL_LINE_SPOTS);
        late[n_late++] = (int16_t)i;
    }
    for (int k = 0; k < n_late; k++) {
        const uint64_t hash = b->hash[late[k]];
        const fl_spot tag = fl_table_tag(hash);
        fl_spot *next = home(t, hash) + FL_LINE_SPOTS;
        b->row[late[k]] = row_at(t, *fl_line_find(next, tag), tag);
    }
}

/* Rows from i up to `end`. */
static inline void ask_rows(const block *b, int64_t i, int64_t end,
                            size_t touched)
{
    for (; i < end && i < b->n; i++) {
        const char *row = b->row[i];
        if (!row)
            continue; /* there is no page to look for */
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

static fl_err settle(const use *u, block *b, int64_t i, int64_t end)
{
    for (; i < end; i++) {
        if (b->row[i] && fl_row_id(b->row[i]) == b->id[i])
            continue;
        b->row[i] = fl_shelves_find(u->table, b->id[i], b->hash[i]);
        if (!b->row[i] && u->makes)
            FL_TRY(add_row(u->makes, b->id[i], b->hash[i], &b->row[i]));
    }
    return FL_OK;
}

static fl_err use_rows(const use *u, block *b, int64_t at)
{
    const size_t most = (size_t)LINES_MAX * LINE;
    const size_t touched = u->touched < most ? u->touched : most;
    ask_rows(b, 0, AHEAD, touched);
    for (int64_t i = 0, end; i < b->n; i = end) {
        end = i + GROUP < b->n ? i + GROUP : b->n;
        ask_rows(b, i + AHEAD, i + AHEAD + GROUP, touched);
        FL_TRY(settle(u, b, i, end));
        u->rows(u, at + i, &(group){end - i, b->id + i, b->row + i});
    }
    return FL_OK;
}

static fl_err walk(const use *u, int64_t n, const int64_t *id)
{
    block b;
    for (int64_t at = 0; at < n; at += b.n) {
        b.n = n - at < BLOCK ? n - at : BLOCK;
        b.id = id + at;
        probe(u->table, &b);
        FL_TRY(use_rows(u, &b, at));
    }
    return FL_OK;
}

/* --- what is done with them --- */

/* Bytes from a row's start. */
static size_t place_of(const fl_table *t, int state)
{
    return state < 0 ? sizeof(int64_t) : t->state[state];
}

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
    const size_t from = place_of(t, state);
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
    const char *in = u->in + (size_t)at * u->in_bytes;
    for (int64_t i = 0; i < g->n; i++, in += u->in_bytes)
        memcpy(g->row[i] + u->from, in, u->in_bytes);
}

fl_err fl_table_load(fl_table *t, int state, int64_t n, const int64_t *id,
                     const fl_tensor *rows)
{
    const fl_shape *s = &rows->shape;
    const int64_t width = state == FL_TABLE_WHOLE ? t->span : t->opts.width;
    char text[FL_SHAPE_TEXT];
    if (rows->dtype != t->opts.dtype || s->rank != 2 || s->dim[0] != n ||
        s->dim[1] != width)
        return fl_fail(FL_ESHAPE,
                       "table \"%s\": %lld rows came as %s%s, expected %s of "
                       "%lld numbers each",
                       t->name, (long long)n, fl_dtype_word(rows->dtype),
                       fl_shape_text(s, text), fl_dtype_word(t->opts.dtype),
                       (long long)width);
    const size_t from = place_of(t, state);
    const size_t bytes = (size_t)width * fl_dtype_size(t->opts.dtype);
    const use u = {.rows = load_rows,
                   .table = t,
                   .makes = t,
                   .touched = from + bytes,
                   .from = from,
                   .in = rows->data,
                   .in_bytes = bytes};
    return walk(&u, n, id);
}
