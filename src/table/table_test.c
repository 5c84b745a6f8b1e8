/* SPDX-License-Identifier: Apache-2.0 */
#include "table/table.h"

#include "base/random.h"
#include "base/test.h"
#include "base/vec.h"
#include "check/check.h"

#include <math.h>
#include <stdlib.h>

enum {
    WIDTH = 4,
    MANY = 20000
};

static const fl_rule *rule_of(const char *type, const fl_op_def **def)
{
    CHECK_OK(fl_registry_get(fl_check_registry(), type, def));
    CHECK((*def)->rule != NULL);
    return (*def)->rule;
}

static const fl_rule *sgd(void)
{
    const fl_op_def *def;
    return rule_of("sgd", &def);
}

static fl_table *table(const fl_table_opts *opts)
{
    fl_table_opts o = *opts;
    fl_table *t = NULL;
    o.name = o.name ? o.name : "emb";
    o.width = o.width ? o.width : WIDTH;
    o.dtype = o.dtype ? o.dtype : FL_F32;
    CHECK_OK(fl_table_new(&o, &t));
    return t;
}

static const fl_table_start uniform = {FL_START_UNIFORM, -1, 1, .seed = 7};

static fl_table *simple(void)
{
    return table(&(fl_table_opts){.rule = sgd(), .start = uniform});
}

/* Ids from the whole range of int64, with both ends. */
static int64_t id_of(int64_t i)
{
    static const int64_t ends[] = {0, -1, 1, INT64_MIN, INT64_MAX};
    if (i < 5)
        return ends[i];
    return (int64_t)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
}

static void read_one(const fl_table *t, int64_t id, float out[WIDTH])
{
    fl_tensor row = {0};
    CHECK_OK(fl_table_read(t, FL_TABLE_VALUE, 1, &id, &row));
    memcpy(out, row.data, WIDTH * sizeof *out);
    fl_tensor_fini(&row);
}

static bool same_row(const fl_table *t, const fl_table *u, int64_t id)
{
    float a[WIDTH], b[WIDTH];
    read_one(t, id, a);
    read_one(u, id, b);
    return !memcmp(a, b, sizeof a);
}

/* --- against a plain model --- */

typedef struct model {
    fl_table *t;
    fl_rng rng;
    bool made[MANY];
    float row[MANY][WIDTH];
    int64_t n; /* rows that were added */
} model;

enum {
    BATCH = 150
};

/* Draw different ids; `which` gets their indices. */
static int64_t draw_ids(model *m, int64_t among, int64_t *which, int64_t *id)
{
    const int64_t n = 1 + fl_rng_next(&m->rng) % BATCH;
    int64_t k = fl_rng_next(&m->rng) % among;
    for (int64_t i = 0; i < n; i++) {
        which[i] = k;
        id[i] = id_of(k);
        k = (k + 1 + fl_rng_next(&m->rng) % 7) % among;
    }
    return n < among / 7 ? n : 1;
}

static void know(model *m, int64_t k)
{
    m->n += !m->made[k];
    m->made[k] = true;
}

static void update_both(model *m, int64_t among)
{
    const fl_hyper h = {.lr = 0.5};
    int64_t which[BATCH], id[BATCH];
    float g[BATCH][WIDTH];
    const int64_t n = draw_ids(m, among, which, id);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < WIDTH; k++) {
            g[i][k] = fl_rng_f32(&m->rng);
            m->row[which[i]][k] -= 0.5f * g[i][k];
            know(m, which[i]);
        }
    CHECK_OK(fl_table_apply(m->t, n, id, g, &h, NULL));
}

static void load_both(model *m, int64_t among)
{
    int64_t which[BATCH], id[BATCH];
    float x[BATCH][WIDTH];
    const int64_t n = draw_ids(m, among, which, id);
    const fl_shape s = {2, {n, WIDTH}};
    const fl_tensor rows = fl_tensor_view(FL_F32, &s, x);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < WIDTH; k++) {
            x[i][k] = m->row[which[i]][k] = fl_rng_f32(&m->rng);
            know(m, which[i]);
        }
    CHECK_OK(fl_table_load(m->t, FL_TABLE_VALUE, n, id, &rows));
}

static void read_both(model *m, int64_t among)
{
    int64_t which[BATCH], id[BATCH];
    fl_tensor out = {0};
    const int64_t n = draw_ids(m, among, which, id);
    CHECK_OK(fl_table_read(m->t, FL_TABLE_VALUE, n, id, &out));
    const float *x = out.data;
    for (int64_t i = 0; i < n; i++)
        CHECK(!memcmp(x + i * WIDTH, m->row[which[i]], sizeof *m->row));
    fl_tensor_fini(&out);
}

static void a_table_is_what_a_plain_model_is(void)
{
    model *m = fl_mem_alloc(sizeof *m);
    m->rng = fl_rng_of(11);
    m->t = simple();
    for (int64_t i = 0; i < MANY; i++)
        read_one(m->t, id_of(i), m->row[i]);
    for (int step = 0; step < 3000; step++) {
        const int64_t among = 20 + (int64_t)step * MANY / 3000;
        switch (fl_rng_next(&m->rng) % 3) {
        case 0:
            update_both(m, among < MANY ? among : MANY);
            break;
        case 1:
            load_both(m, among < MANY ? among : MANY);
            break;
        default:
            read_both(m, MANY);
        }
        CHECK_INT(fl_table_rows(m->t), m->n);
    }
    CHECK(m->n > MANY / 2);
    for (int64_t i = 0; i < MANY; i++) {
        float x[WIDTH];
        read_one(m->t, id_of(i), x);
        CHECK(!memcmp(x, m->row[i], sizeof x));
    }
    fl_table_free(m->t);
    fl_mem_free(m);
}

/* --- starts --- */

static void touch(fl_table *t, int64_t id)
{
    const float zero[8 * WIDTH] = {0};
    CHECK_OK(fl_table_apply(t, 1, &id, zero, &(fl_hyper){.lr = 1}, NULL));
}

static void a_start_depends_on_nothing_else(void)
{
    fl_table *one = simple();
    fl_table *of[3] = {simple(), simple(), simple()};
    for (int64_t i = 0; i < 1000; i++)
        touch(one, id_of(i));
    for (int64_t i = 999; i >= 0; i--)
        touch(of[(uint64_t)id_of(i) % 3], id_of(i));
    for (int64_t i = 0; i < 1100; i++)
        CHECK(same_row(one, of[(uint64_t)id_of(i) % 3], id_of(i)));
    CHECK_INT(fl_table_rows(one), fl_table_rows(of[0]) + fl_table_rows(of[1]) +
                                      fl_table_rows(of[2]));
    for (int i = 0; i < 3; i++)
        fl_table_free(of[i]);
    fl_table_free(one);
}

static void reading_makes_no_row(void)
{
    fl_table *t = simple();
    float before[WIDTH], after[WIDTH];
    read_one(t, -5, before);
    CHECK_INT(fl_table_rows(t), 0);
    CHECK_INT(fl_table_bytes(t), 0);
    touch(t, -5);
    read_one(t, -5, after);
    CHECK(!memcmp(before, after, sizeof after));
    CHECK_INT(fl_table_rows(t), 1);
    fl_table_free(t);
}

static void names_and_seeds_start_apart(void)
{
    fl_table_start other = uniform;
    other.seed = 8;
    fl_table *t = simple();
    fl_table *u = table(&(fl_table_opts){.name = "two", .start = uniform});
    fl_table *v = table(&(fl_table_opts){.start = other});
    CHECK(!same_row(t, u, 5));
    CHECK(!same_row(t, v, 5));
    CHECK(!same_row(u, v, 5));
    fl_table_free(t);
    fl_table_free(u);
    fl_table_free(v);
}

typedef struct spread {
    double mean, deviation, low, high;
} spread;

static spread spread_of(const fl_table_start *start, fl_dtype dtype)
{
    fl_table *t = table(&(fl_table_opts){.start = *start, .dtype = dtype});
    fl_tensor out = {0};
    int64_t id[5000];
    spread s = {0, 0, INFINITY, -INFINITY};
    for (int64_t i = 0; i < 5000; i++)
        id[i] = i;
    CHECK_OK(fl_table_read(t, FL_TABLE_VALUE, 5000, id, &out));
    const int64_t n = fl_tensor_numel(&out);
    for (int64_t i = 0; i < n; i++) {
        const double x =
            dtype == FL_F64 ? ((double *)out.data)[i] : ((float *)out.data)[i];
        s.mean += x / (double)n;
        s.deviation += x * x / (double)n;
        s.low = fmin(s.low, x);
        s.high = fmax(s.high, x);
    }
    s.deviation = sqrt(s.deviation - s.mean * s.mean);
    fl_tensor_fini(&out);
    fl_table_free(t);
    return s;
}

static void starts_are_spread_as_was_asked(void)
{
    static const struct {
        fl_table_start start;
        spread want;
    } cases[] = {
        {{FL_START_CONSTANT, 0.25}, {0.25, 0, 0.25, 0.25}},
        {{FL_START_UNIFORM, -2, 4}, {1, 1.732, -2, 4}},
        {{FL_START_NORMAL, 3, 2}, {3, 2, -7, 13}},
        {{FL_START_TRUNCATED, 1, 0.5}, {1, 0.44, 0, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int wide = 0; wide < 2; wide++) {
            const spread *want = &cases[i].want;
            const spread s = spread_of(&cases[i].start, wide ? FL_F64 : FL_F32);
            CHECK_NEAR(s.mean, want->mean, 0.05);
            CHECK_NEAR(s.deviation, want->deviation, 0.05);
            CHECK(s.low >= want->low && s.high <= want->high);
        }
}

static void numbers_are_picked_where_they_were_given(void)
{
    const float x[] = {3, 5, 9};
    const fl_shape s = {1, {3}};
    const fl_tensor from = fl_tensor_view(FL_F32, &s, x);
    const fl_table_start start = {FL_START_PICKED, .from = &from};
    const spread got = spread_of(&start, FL_F32);
    CHECK_NEAR(got.low, 3, 0);
    CHECK_NEAR(got.high, 9, 0);
    CHECK_NEAR(got.mean, 17 / 3.0, 0.1);
}

/* --- rules --- */

/* The parameter and its states as the dense operator has them. */
typedef struct dense {
    int64_t n; /* elements */
    double *p, *g, *state[FL_RULE_STATES];
} dense;

enum {
    ROWS = 100,
    STEPS = 5
};

static void set(fl_dtype dtype, void *at, int64_t i, double x)
{
    if (dtype == FL_F64)
        ((double *)at)[i] = x;
    else
        ((float *)at)[i] = (float)x;
}

static void step_both(fl_table *t, const fl_rule *r, fl_dtype dtype, dense *d,
                      const fl_hyper *h, int step)
{
    const size_t row = WIDTH * fl_dtype_size(dtype);
    int64_t id[ROWS];
    char *g = fl_mem_alloc(ROWS * row);
    for (int64_t i = 0; i < d->n; i++)
        set(dtype, d->g, i, (double)((i * 37 + step * 11) % 23) / 7 - 1.5);
    for (int64_t i = 0; i < ROWS; i++) { /* in reverse order for the table */
        id[i] = id_of(ROWS - 1 - i);
        memcpy(g + (size_t)i * row, (char *)d->g + (size_t)(ROWS - 1 - i) * row,
               row);
    }
    CHECK_OK(fl_table_apply(t, ROWS, id, g, h, NULL));
    fl_rule_apply(r, dtype, d->n, d->p, d->g, (void *const *)d->state, h);
    fl_mem_free(g);
}

static void check_rule(const char *type, fl_dtype dtype)
{
    const fl_op_def *def;
    const fl_rule *r = rule_of(type, &def);
    const size_t bytes = ROWS * WIDTH * fl_dtype_size(dtype);
    fl_table *t = table(&(fl_table_opts){.dtype = dtype,
                                         .rule = r,
                                         .start = uniform,
                                         .state = {0.25, 0.5, 0.75}});
    dense d = {ROWS * WIDTH, fl_mem_alloc(bytes), fl_mem_alloc(bytes), {0}};
    fl_tensor out = {0};
    int64_t id[ROWS], states = 0;
    for (int64_t i = 0; i < ROWS; i++)
        id[i] = id_of(i);
    for (int k = 0; k < FL_RULE_STATES && r->state[k].in; k++, states++) {
        d.state[k] = fl_mem_alloc(bytes);
        for (int64_t i = 0; i < d.n; i++)
            set(dtype, d.state[k], i, 0.25 * (k + 1));
    }
    CHECK_INT(fl_table_span(t), WIDTH * (1 + states));
    CHECK_OK(fl_table_read(t, FL_TABLE_VALUE, ROWS, id, &out));
    memcpy(d.p, out.data, bytes);
    const fl_rule_step s = {def, def->attr, 0.1, {0.9, 0.999}};
    const fl_hyper h = fl_rule_prepare(r, &s);
    for (int i = 0; i < STEPS; i++)
        step_both(t, r, dtype, &d, &h, i);
    CHECK_OK(fl_table_read(t, FL_TABLE_VALUE, ROWS, id, &out));
    CHECK(!memcmp(d.p, out.data, bytes));
    for (int k = 0; k < FL_RULE_STATES; k++) {
        if (k < states) {
            CHECK_OK(fl_table_read(t, k, ROWS, id, &out));
            CHECK(!memcmp(d.state[k], out.data, bytes));
        }
        fl_mem_free(d.state[k]);
    }
    fl_mem_free(d.p);
    fl_mem_free(d.g);
    fl_tensor_fini(&out);
    fl_table_free(t);
}

static void rows_have_the_bits_of_the_dense_operator(void)
{
    static const char *const types[] = {"sgd",      "momentum", "adagrad",
                                        "adam",     "adamax",   "ftrl",
                                        "adadelta", "rmsprop"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        check_rule(types[i], FL_F32);
        check_rule(types[i], FL_F64);
    }
}

/* --- memory --- */

static fl_err load_many(fl_table *t, int64_t from, int64_t to)
{
    enum {
        PART = 1000
    };
    int64_t id[PART];
    float *x = fl_mem_alloc(PART * 10 * sizeof *x);
    fl_err err = FL_OK;
    for (int64_t n; from < to && !err; from += n) {
        n = to - from < PART ? to - from : PART;
        const fl_shape s = {2, {n, fl_table_width(t)}};
        const fl_tensor rows = fl_tensor_view(FL_F32, &s, x);
        for (int64_t i = 0; i < n; i++)
            id[i] = id_of(from + i);
        err = fl_table_load(t, FL_TABLE_VALUE, n, id, &rows);
    }
    fl_mem_free(x);
    return err;
}

static void a_row_takes_what_is_stated(void)
{
    enum {
        PLENTY = 1000000
    };
    fl_budget budget = {0};
    fl_table *t = table(
        &(fl_table_opts){.width = 10, .start = uniform, .budget = &budget});
    CHECK_OK(load_many(t, 0, PLENTY));
    CHECK_INT(fl_table_rows(t), PLENTY);
    const double raw = PLENTY * (8 + 10 * sizeof(float));
    CHECK((double)fl_table_bytes(t) < 1.3 * raw);
    CHECK((double)fl_table_bytes(t) > 1.15 * raw);
    CHECK_INT(fl_count_get(&budget.used), fl_table_bytes(t));
    fl_table_free(t);
    CHECK_INT(fl_count_get(&budget.used), 0);
}

static void a_full_table_says_so_and_keeps_its_rows(void)
{
    fl_budget budget = {.limit = 1 << 20};
    fl_table *small = table(&(fl_table_opts){
        .name = "small", .rule = sgd(), .start = uniform, .budget = &budget});
    fl_table *t = table(&(fl_table_opts){
        .width = 10, .start = uniform, .rule = sgd(), .budget = &budget});
    touch(small, 1);
    CHECK_ERR(load_many(t, 0, 100000), FL_ENOMEM,
              "table \"emb\" is full: its ");
    CHECK_ERR(load_many(t, 0, 100000), FL_ENOMEM,
              "of the 1.0 MB that they may have; raise FLUID_TABLE_MEMORY, add "
              "servers, or use fewer ids");
    const int64_t rows = fl_table_rows(t);
    CHECK(rows > 5000 && rows < 20000);
    CHECK(fl_count_get(&budget.used) <= budget.limit);
    CHECK_OK(load_many(t, 0, rows)); /* rows that exist */
    CHECK_INT(fl_table_rows(t), rows);
    touch(small, 1);
    fl_table_free(t);
    CHECK_OK(load_many(small, 0, 1000)); /* now there is room */
    fl_table_free(small);
    CHECK_INT(fl_count_get(&budget.used), 0);
}

/* --- scanning --- */

typedef struct dump {
    FL_VEC(int64_t) id;
    FL_VEC(float) x;
} dump;

/* Scan a table, n rows at a time; add `grow` rows between two parts. */
static dump dump_of(fl_table *t, int64_t n, int64_t grow)
{
    dump d = {0};
    fl_tensor id = {0}, rows = {0};
    fl_table_cursor c = {0};
    int64_t next = MANY;
    for (;;) {
        CHECK_OK(fl_table_scan(t, &c, n, &id, &rows));
        const int64_t m = id.shape.dim[0];
        CHECK(m <= n && rows.shape.dim[0] == m);
        CHECK_INT(rows.shape.dim[1], fl_table_span(t));
        CHECK(m || c.done);
        if (!m)
            break;
        for (int64_t i = 0; i < m; i++)
            fl_push(&d.id, ((int64_t *)id.data)[i]);
        for (int64_t i = 0; i < m * fl_table_span(t); i++)
            fl_push(&d.x, ((float *)rows.data)[i]);
        for (int64_t i = 0; i < grow; i++)
            touch(t, id_of(next++));
    }
    fl_tensor_fini(&id);
    fl_tensor_fini(&rows);
    return d;
}

static void drop_dump(dump *d)
{
    fl_vec_fini(&d->id);
    fl_vec_fini(&d->x);
}

static fl_table *with_state(void)
{
    const fl_op_def *def;
    return table(&(fl_table_opts){
        .rule = rule_of("adagrad", &def), .start = uniform, .state = {0.5}});
}

/* A table with n updated rows, which were added in this or the reverse order.
 */
static fl_table *filled(int64_t n, bool backwards)
{
    fl_table *t = with_state();
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = backwards ? n - 1 - k : k, id = id_of(i);
        const float x = (float)(i % 100), g[WIDTH] = {x, 1, x, 2};
        CHECK_OK(fl_table_apply(t, 1, &id, g, &(fl_hyper){.lr = 0.1}, NULL));
    }
    return t;
}

static bool same_dump(const dump *a, const dump *b)
{
    return a->id.n == b->id.n && a->x.n == b->x.n &&
           !memcmp(a->id.at, b->id.at, (size_t)a->id.n * sizeof *a->id.at) &&
           !memcmp(a->x.at, b->x.at, (size_t)a->x.n * sizeof *a->x.at);
}

static void a_table_reads_out_in_one_order(void)
{
    fl_table *t = filled(5000, false), *u = filled(5000, true);
    dump a = dump_of(t, 7, 0), b = dump_of(u, 1000000, 0);
    CHECK_INT(a.id.n, 5000);
    CHECK(same_dump(&a, &b));
    for (int64_t i = 1; i < a.id.n; i++)
        CHECK(fl_table_order(0, a.id.at[i - 1]) <
              fl_table_order(0, a.id.at[i]));
    fl_table *v = with_state();
    const fl_shape s = {2, {a.id.n, 2 * WIDTH}};
    const fl_tensor rows = fl_tensor_view(FL_F32, &s, a.x.at);
    CHECK_OK(fl_table_load(v, FL_TABLE_WHOLE, a.id.n, a.id.at, &rows));
    dump c = dump_of(v, 64, 0);
    CHECK(same_dump(&a, &c));
    drop_dump(&a);
    drop_dump(&b);
    drop_dump(&c);
    fl_table_free(t);
    fl_table_free(u);
    fl_table_free(v);
}

static void parts_of_rows_are_loaded_apart(void)
{
    fl_table *t = filled(100, false), *u = with_state();
    const int parts[] = {0, FL_TABLE_VALUE}; /* in either order */
    int64_t id[200];
    fl_tensor x = {0};
    for (int64_t i = 0; i < 200; i++)
        id[i] = id_of(i);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(fl_table_read(t, parts[i], 100, id, &x));
        CHECK_OK(fl_table_load(u, parts[i], 100, id, &x));
    }
    dump a = dump_of(t, 1000, 0), b = dump_of(u, 1000, 0);
    CHECK(same_dump(&a, &b));
    const float ones[WIDTH] = {1, 1, 1, 1};
    const fl_tensor one =
        fl_tensor_view(FL_F32, &(fl_shape){2, {1, WIDTH}}, ones);
    CHECK_OK(fl_table_load(u, 0, 1, id + 150, &one));
    CHECK_OK(fl_table_read(u, FL_TABLE_VALUE, 1, id + 150, &x));
    CHECK_OK(fl_table_load(t, FL_TABLE_VALUE, 1, id + 150, &x));
    drop_dump(&b);
    b = dump_of(u, 1000, 0);
    CHECK_INT(b.id.n, 101);
    CHECK_OK(fl_table_load(t, 0, 1, id + 150, &one));
    drop_dump(&a);
    a = dump_of(t, 1000, 0);
    CHECK(same_dump(&a, &b)); /* loading the state had added start values */
    drop_dump(&a);
    drop_dump(&b);
    fl_tensor_fini(&x);
    fl_table_free(t);
    fl_table_free(u);
}

static int by_order(const void *a, const void *b)
{
    const uint64_t x = fl_table_order(0, *(const int64_t *)a),
                   y = fl_table_order(0, *(const int64_t *)b);
    return x < y ? -1 : x > y;
}

static void a_table_that_grows_reads_out_whole(void)
{
    fl_table *t = filled(3000, false);
    dump d = dump_of(t, 100, 40);
    CHECK(fl_table_rows(t) > 4000);
    CHECK(d.id.n >= 3000 && d.id.n <= fl_table_rows(t));
    for (int64_t i = 1; i < d.id.n; i++) /* no id twice */
        CHECK(fl_table_order(0, d.id.at[i - 1]) <
              fl_table_order(0, d.id.at[i]));
    for (int64_t i = 0; i < 3000; i++) {
        const int64_t id = id_of(i);
        CHECK(bsearch(&id, d.id.at, (size_t)d.id.n, sizeof id, by_order));
    }
    drop_dump(&d);
    fl_table_free(t);
}

static void an_empty_table_reads_out_nothing(void)
{
    fl_table *t = simple();
    dump d = dump_of(t, 10, 0);
    CHECK_INT(d.id.n, 0);
    fl_table_free(t);
}

/* --- errors --- */

static void what_is_no_table_is_refused(void)
{
    const fl_op_def *def;
    fl_table *t = NULL;
    CHECK_ERR(fl_table_new(&(fl_table_opts){"emb", FL_I64, 2}, &t), FL_EINVAL,
              "table \"emb\" is of int64, expected float32 or float64");
    CHECK_ERR(fl_table_new(&(fl_table_opts){"emb", FL_F32, 0}, &t), FL_EINVAL,
              "table \"emb\" has rows of 0 numbers");
    CHECK_ERR(
        fl_table_new(&(fl_table_opts){"emb", FL_F32, 2,
                                      .rule = rule_of("lars_momentum", &def)},
                     &t),
        FL_EINVAL, "its rule needs all rows at once");
    CHECK_ERR(
        fl_table_new(
            &(fl_table_opts){"emb", FL_F32, 2, .start = {FL_START_PICKED}}, &t),
        FL_EINVAL, "table \"emb\" starts with 0 numbers of nothing");
    CHECK(t == NULL);
}

static void rows_that_do_not_fit_are_refused(void)
{
    const float x[3 * WIDTH] = {0};
    const int64_t id = 1;
    const fl_shape s = {2, {1, 3 * WIDTH}};
    const fl_tensor rows = fl_tensor_view(FL_F32, &s, x);
    fl_table *t = with_state();
    CHECK_ERR(fl_table_load(t, FL_TABLE_VALUE, 1, &id, &rows), FL_ESHAPE,
              "1 rows came as float32[1,12], expected float32 of 4 numbers "
              "each");
    fl_table_free(t);
    t = table(&(fl_table_opts){.start = uniform});
    CHECK_ERR(fl_table_apply(t, 1, &id, x, &(fl_hyper){0}, NULL), FL_EINVAL,
              "table \"emb\" has no rule");
    CHECK_INT(fl_table_rows(t), 0);
    fl_table_free(t);
}

const fl_test fl_tests[] = {
    {"a table is what a plain model is", a_table_is_what_a_plain_model_is},
    {"a start depends on seed, name, id and column alone",
     a_start_depends_on_nothing_else},
    {"reading makes no row", reading_makes_no_row},
    {"names and seeds start apart", names_and_seeds_start_apart},
    {"starts are spread as was asked", starts_are_spread_as_was_asked},
    {"starts are picked from numbers that were given",
     numbers_are_picked_where_they_were_given},
    {"rows have the bits of the dense operator",
     rows_have_the_bits_of_the_dense_operator},
    {"a row takes the memory that is stated", a_row_takes_what_is_stated},
    {"a full table says so and keeps its rows",
     a_full_table_says_so_and_keeps_its_rows},
    {"a table reads out in one order", a_table_reads_out_in_one_order},
    {"parts of rows are loaded apart", parts_of_rows_are_loaded_apart},
    {"a table that grows reads out whole", a_table_that_grows_reads_out_whole},
    {"an empty table reads out nothing", an_empty_table_reads_out_nothing},
    {"what is no table is refused", what_is_no_table_is_refused},
    {"rows that do not fit are refused", rows_that_do_not_fit_are_refused},
    {0},
};
