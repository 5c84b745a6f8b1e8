/* table.c - rows are found many at a time.
 *
 * A row that is not in a cache costs two waits for memory, one for the head of
 * its bin and one for the row itself, and most of the first is the translation
 * of its address. So ids are looked up in blocks, in passes that are short:
 * the more of them are under way at a time, the more waits are shared.
 *
 *     ask     for the bins of all ids
 *     match   tags, and ask for the rows that have the right one
 *     settle  compare ids, and use the rows
 *
 * Making a row may move others. So rows that are to be written are found, and
 * made, before the first one is written. */
#include "table/table_in.h"

#include "op/kernel.h"

enum {
    BLOCK = 128,    /* ids */
    GROUP = 8,      /* rows that are used together */
    AHEAD = 16,     /* rows between asking and writing */
    LINE = 64,      /* bytes that memory is read by */
    LINES_MAX = 16, /* of a row that are asked for */
    FAR = 2 /* how memory is asked for: into the second cache, which has many
             * more requests under way than the first */
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
    fl_bins_init(t);
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
    fl_bins_fini(t);
    fl_vec_fini(&t->found);
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

uint64_t fl_table_key_of(const fl_table *t)
{
    return t->opts.key;
}

/* --- finding rows --- */

typedef struct block {
    int64_t n;
    const int64_t *id;
    uint64_t hash[BLOCK];
    const char *bin[BLOCK]; /* where the id may lie.. */
    uint64_t match[BLOCK];  /* ..in one of these rows */
    char *row[BLOCK];       /* where it does, or NULL */
} block;

/* Rows that are used together. */
typedef struct group {
    int64_t n;
    const int64_t *id;
    char *const *row; /* or NULL */
} group;

/* What is done with rows: those of the ids from `at` on. */
typedef struct use {
    void (*rows)(const struct use *u, int64_t at, const group *g);
    size_t touched; /* bytes from a row's start */
    size_t from;    /* read, load: where in a row */
    int state;      /* read: or FL_TABLE_VALUE */
    const fl_table *table;
    char *out;          /* read */
    const char *in;     /* apply, load */
    size_t in_bytes;    /* of a row of it */
    const fl_hyper *by; /* apply */
} use;

static void ask_bins(const fl_table *t, block *b)
{
    for (int64_t i = 0; i < b->n; i++) {
        const uint64_t hash = fl_table_hash(t, b->id[i]);
        const fl_shelf *s = fl_table_shelf(t, hash);
        b->hash[i] = hash;
        b->bin[i] = fl_shelf_bin(t, s, fl_shelf_home(s, hash));
        __builtin_prefetch(b->bin[i], 0, FAR);
    }
}

static inline void ask_row(const char *row, size_t touched)
{
    __builtin_prefetch(row, 0, FAR);
    __builtin_prefetch(row + touched - 1, 0, FAR);
    for (size_t at = LINE; at + LINE < touched; at += LINE)
        __builtin_prefetch(row + at, 0, FAR);
}

/* Rows with the tag: one, most likely that of the id. */
static inline void ask_rows(const fl_table *t, block *b, int64_t i,
                            size_t touched)
{
    b->match[i] = fl_bin_match(b->bin[i], fl_bin_tag(b->hash[i]));
    for (uint64_t m = b->match[i]; m; m &= m - 1)
        ask_row(fl_bin_row(t, b->bin[i], fl_match_first(m)), touched);
}

/* Whose own bin is full may be in another, which all such ask for together. */
FL_CLONES static void probe(const fl_table *t, block *b, size_t touched)
{
    int16_t late[BLOCK];
    int n_late = 0;
    ask_bins(t, b);
    for (int64_t i = 0; i < b->n; i++) {
        ask_rows(t, b, i, touched);
        if (b->match[i] || fl_bin_count(b->bin[i]) < t->bin_rows)
            continue;
        const fl_shelf *s = fl_table_shelf(t, b->hash[i]);
        b->bin[i] = fl_shelf_next(t, s, b->bin[i]);
        __builtin_prefetch(b->bin[i], 0, FAR);
        late[n_late++] = (int16_t)i;
    }
    for (int k = 0; k < n_late; k++)
        ask_rows(t, b, late[k], touched);
}

/* From where it may be to where it is. */
static inline void settle(const fl_table *t, block *b, int64_t i)
{
    for (uint64_t m = b->match[i]; m; m &= m - 1) {
        b->row[i] = fl_bin_row(t, b->bin[i], fl_match_first(m));
        if (fl_row_id(b->row[i]) == b->id[i])
            return;
    }
    b->row[i] = NULL;
    if (fl_bin_count(b->bin[i]) == t->bin_rows)
        b->row[i] = fl_bins_find(t, b->id[i], b->hash[i]);
}

static size_t touched_of(size_t bytes)
{
    const size_t most = (size_t)LINES_MAX * LINE;
    return bytes < most ? bytes : most;
}

static void use_rows(const use *u, block *b, int64_t at)
{
    for (int64_t i = 0, end; i < b->n; i = end) {
        end = i + GROUP < b->n ? i + GROUP : b->n;
        for (int64_t k = i; k < end; k++)
            settle(u->table, b, k);
        u->rows(u, at + i, &(group){end - i, b->id + i, b->row + i});
    }
}

static void walk(const use *u, int64_t n, const int64_t *id)
{
    const size_t touched = touched_of(u->touched);
    block b;
    for (int64_t at = 0; at < n; at += b.n) {
        b.n = n - at < BLOCK ? n - at : BLOCK;
        b.id = id + at;
        probe(u->table, &b, touched);
        use_rows(u, &b, at);
    }
}

/* --- finding rows to be written --- */

/* Not there when the block was probed; but ids may be equal. */
static fl_err make(fl_table *t, block *b, int64_t i)
{
    b->row[i] = fl_bins_find(t, b->id[i], b->hash[i]);
    if (b->row[i])
        return FL_OK;
    return fl_bins_add(t, b->id[i], b->hash[i], &b->row[i]);
}

static fl_err make_block(fl_table *t, block *b)
{
    const size_t touched = sizeof(int64_t); /* the rest when it is written */
    probe(t, b, touched);
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t moves = t->moves;
        settle(t, b, i);
        if (!b->row[i])
            FL_TRY(make(t, b, i));
        if (t->moves != moves)
            probe(t, b, touched); /* those to come */
    }
    return FL_OK;
}

static fl_err make_all(fl_table *t, int64_t n, const int64_t *id)
{
    block b;
    for (int64_t at = 0; at < n; at += b.n) {
        b.n = n - at < BLOCK ? n - at : BLOCK;
        b.id = id + at;
        FL_TRY(make_block(t, &b));
        memcpy(t->found.at + at, b.row, (size_t)b.n * sizeof *b.row);
    }
    return FL_OK;
}

/* All are found before the first is written: what is refused changes nothing
 * that can be read. Rows that moved are found again. */
static fl_err write_rows(fl_table *t, const use *u, int64_t n,
                         const int64_t *id)
{
    const size_t touched = touched_of(u->touched);
    int64_t moves;
    fl_vec_reserve((void **)&t->found.at, &t->found.cap, n, sizeof(char *));
    do {
        moves = t->moves;
        FL_TRY(make_all(t, n, id));
    } while (t->moves != moves);
    for (int64_t i = 0; i < n; i += GROUP) {
        const int64_t m = n - i < GROUP ? n - i : GROUP;
        for (int64_t k = i + AHEAD; k < i + AHEAD + m && k < n; k++)
            ask_row(t->found.at[k], touched);
        u->rows(u, i, &(group){m, id + i, t->found.at + i});
    }
    return FL_OK;
}

/* --- what is done with them --- */

/* Bytes from a row's start. */
static size_t place_of(const fl_table *t, int state)
{
    return state < 0 ? sizeof(int64_t) : t->state[state];
}

FL_CLONES static void read_rows(const use *u, int64_t at, const group *g)
{
    const size_t bytes = u->table->bytes;
    char *to = u->out + (size_t)at * bytes;
    for (int64_t i = 0; i < g->n; i++, to += bytes)
        if (g->row[i])
            fl_row_copy(to, g->row[i] + u->from, bytes);
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
    walk(&u, n, id);
    return FL_OK;
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
                   .touched = t->stride,
                   .in = grad,
                   .by = h};
    return write_rows(t, &u, n, id);
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
                   .touched = from + bytes,
                   .from = from,
                   .in = rows->data,
                   .in_bytes = bytes};
    return write_rows(t, &u, n, id);
}
