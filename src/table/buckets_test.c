/* SPDX-License-Identifier: Apache-2.0 */
#include "table/table.h"

#include "base/test.h"
#include "base/vec.h"
#include "check/check.h"

static const fl_table_start uniform = {FL_START_UNIFORM, -1, 1, .seed = 7};

static fl_table *table(int64_t width, const char *rule, fl_budget *budget)
{
    const fl_op_def *def;
    fl_table *t = NULL;
    CHECK_OK(fl_registry_get(fl_check_registry(), rule, &def));
    CHECK_OK(fl_table_new(&(fl_table_opts){.name = "emb",
                                           .dtype = FL_F32,
                                           .width = width,
                                           .start = uniform,
                                           .rule = def->rule,
                                           .budget = budget},
                          &t));
    return t;
}

/* The id whose hash is `hash`. */
static int64_t id_with(uint64_t hash)
{
    uint64_t x = hash ^ (hash >> 31) ^ (hash >> 62);
    x *= UINT64_C(0x319642b2d24d8ec3);
    x = (x ^ (x >> 27) ^ (x >> 54)) * UINT64_C(0x96de1b173f119089);
    x = x ^ (x >> 30) ^ (x >> 60);
    CHECK(fl_table_order(0, (int64_t)x) == hash);
    return (int64_t)x;
}

static int64_t scattered(uint64_t i)
{
    return (int64_t)(i * UINT64_C(0x9e3779b97f4a7c15));
}

/* Load rows; row i has the value first + i. */
static fl_err load(fl_table *t, int64_t n, const int64_t *id, float first)
{
    const int64_t width = fl_table_width(t);
    float *x = fl_mem_alloc((size_t)(n * width) * sizeof *x);
    for (int64_t i = 0; i < n * width; i++)
        x[i] = first + (float)(i / width);
    const fl_tensor rows =
        fl_tensor_view(FL_F32, &(fl_shape){2, {n, width}}, x);
    const fl_err err = fl_table_load(t, FL_TABLE_VALUE, n, id, &rows);
    fl_mem_free(x);
    return err;
}

static void check_read(const fl_table *t, int64_t n, const int64_t *id,
                       float first)
{
    const int64_t width = fl_table_width(t);
    fl_tensor out = {0};
    CHECK_OK(fl_table_read(t, FL_TABLE_VALUE, n, id, &out));
    const float *x = out.data;
    for (int64_t i = 0; i < n; i++)
        CHECK(x[i * width] == first + (float)i &&
              x[i * width + width - 1] == first + (float)i);
    fl_tensor_fini(&out);
}

/* Check that a scan reads every row once, in order. */
static void check_scan(const fl_table *t, int64_t part)
{
    fl_table_cursor c = {0};
    fl_tensor id = {0}, rows = {0};
    uint64_t last = 0;
    int64_t n = 0;
    for (;;) {
        CHECK_OK(fl_table_scan(t, &c, part, &id, &rows));
        if (!id.shape.dim[0])
            break;
        for (int64_t i = 0; i < id.shape.dim[0]; i++, n++) {
            const uint64_t hash =
                fl_table_order(fl_table_key_of(t), ((int64_t *)id.data)[i]);
            CHECK(!n || hash > last);
            last = hash;
        }
    }
    CHECK_INT(n, fl_table_rows(t));
    fl_tensor_fini(&id);
    fl_tensor_fini(&rows);
}

/* --- where rows lie --- */

/* The worst case: all rows have the same home bucket. */
static void check_neighbours(uint64_t first)
{
    enum {
        MANY = 5000
    };
    static int64_t id[MANY], other[MANY];
    fl_table *t = table(4, "sgd", NULL);
    for (uint64_t i = 0; i < MANY; i++) {
        id[i] = id_with(first + i);
        other[i] = scattered(i);
    }
    for (int64_t i = 0; i < MANY; i += 500) { /* other rows in between */
        CHECK_OK(load(t, 500, id + i, (float)i));
        CHECK_OK(load(t, 100, other + i / 5, (float)(i / 5)));
    }
    check_read(t, MANY, id, 0);
    check_read(t, MANY / 5, other, 0);
    CHECK_INT(fl_table_rows(t), MANY + MANY / 5);
    check_scan(t, 1000);
    fl_table_free(t);
}

/* Ids that share a bucket under one key do not under another key. */
static void a_key_scatters_neighbours(void)
{
    enum {
        MANY = 5000,
        PARTS = 1024
    };
    static int64_t id[MANY];
    const uint64_t key = fl_table_key((const uint64_t[2]){3, 4});
    bool hit[PARTS] = {false};
    int parts = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        id[i] = id_with((UINT64_C(1) << 40) + i);
        bool *at = &hit[fl_table_order(key, id[i]) / (UINT64_MAX / PARTS + 1)];
        parts += !*at;
        *at = true;
    }
    CHECK(parts > PARTS * 9 / 10);
    fl_table *t = NULL;
    CHECK_OK(fl_table_new(&(fl_table_opts){.name = "emb",
                                           .dtype = FL_F32,
                                           .width = 4,
                                           .key = key,
                                           .start = uniform},
                          &t));
    CHECK_OK(load(t, MANY, id, 0));
    check_read(t, MANY, id, 0);
    check_scan(t, 1000);
    fl_table_free(t);
}

static void neighbours_among_hashes_find_places(void)
{
    check_neighbours(UINT64_C(1) << 40);
    check_neighbours(UINT64_MAX -
                     4999); /* the search wraps to the first bucket */
    check_neighbours(UINT64_MAX / 2 - 100);
}

static void wide_rows_move_as_short_ones_do(void)
{
    enum {
        MANY = 110000, /* 88 MB: a segment is split */
        WIDE = 200
    };
    int64_t *id = fl_mem_alloc(MANY * sizeof *id);
    fl_table *t = table(WIDE, "sgd", NULL);
    for (uint64_t i = 0; i < MANY; i++)
        id[i] = scattered(i);
    for (int64_t i = 0; i < MANY; i += 1000)
        CHECK_OK(load(t, 1000, id + i, (float)i));
    for (int64_t i = 0; i < MANY; i += 1000)
        check_read(t, 1000, id + i, (float)i);
    check_scan(t, 4096);
    CHECK((double)fl_table_bytes(t) < 1.3 * MANY * (8 + WIDE * 4));
    fl_table_free(t);
    fl_mem_free(id);
}

static void of_equal_ids_the_last_counts(void)
{
    const int64_t id[] = {5, 9, 5, -1, 9, 5}, once[] = {-1, 9, 5};
    fl_table *t = table(2, "sgd", NULL);
    CHECK_OK(load(t, 6, id, 10));
    CHECK_INT(fl_table_rows(t), 3);
    check_read(t, 3, once, 13);
    fl_table_free(t);
}

/* --- memory --- */

static void few_rows_take_little(void)
{
    const int64_t id[] = {1, 2, 3};
    fl_table *t = table(10, "sgd", NULL), *wide = table(64, "adam", NULL);
    CHECK_OK(load(t, 3, id, 0));
    CHECK(fl_table_bytes(t) <= 1600);
    CHECK_OK(load(wide, 3, id, 0));
    CHECK(fl_table_bytes(wide) <= 24 << 10);
    fl_table_free(t);
    fl_table_free(wide);
}

static void what_is_refused_changes_no_row(void)
{
    enum {
        MANY = 20000,
        WIDTH = 8
    };
    fl_budget budget = {.limit = 256 << 10};
    fl_table *t = table(WIDTH, "sgd", &budget);
    float *grad = fl_mem_alloc(MANY * WIDTH * sizeof *grad);
    int64_t *id = fl_mem_alloc(MANY * sizeof *id);
    for (int64_t i = 0; i < MANY; i++)
        id[i] = scattered((uint64_t)i);
    for (int64_t i = 0; i < MANY * WIDTH; i++)
        grad[i] = 1;
    CHECK_OK(load(t, 1000, id, 0));
    CHECK_ERR(fl_table_apply(t, MANY, id, grad, &(fl_hyper){.lr = 1}, NULL),
              FL_ENOMEM, "table \"emb\" is full");
    check_read(t, 1000, id, 0);
    CHECK(fl_count_get(&budget.used) > budget.limit * 3 / 4);
    CHECK_OK(fl_table_apply(t, 1000, id, grad, &(fl_hyper){.lr = 1}, NULL));
    check_read(t, 1000, id, -1);
    check_scan(t, 100);
    fl_table_free(t);
    CHECK_INT(fl_count_get(&budget.used), 0);
    fl_mem_free(grad);
    fl_mem_free(id);
}

const fl_test fl_tests[] = {
    {"a key scatters ids whose hashes are neighbours",
     a_key_scatters_neighbours},
    {"neighbours among hashes find places",
     neighbours_among_hashes_find_places},
    {"wide rows move as short ones do", wide_rows_move_as_short_ones_do},
    {"of equal ids the last one counts", of_equal_ids_the_last_counts},
    {"few rows take little", few_rows_take_little},
    {"what is refused changes no row", what_is_refused_changes_no_row},
    {0},
};
