#include "dist/table.h"

#include "base/test.h"

#include <string.h>

enum {
    ROWS = 3000,
    WIDTH = 4
};

static fl_table *table(const char *name, int64_t rows)
{
    float x[200 * WIDTH];
    const fl_shape s = {2, {rows, WIDTH}};
    fl_table *t = NULL;
    for (int i = 0; i < 200 * WIDTH; i++)
        x[i] = (float)i;
    const fl_tensor started = fl_tensor_view(FL_F32, &s, x);
    CHECK_OK(fl_table_new(name, &started, &t));
    return t;
}

/* Rows scattered over all int64. */
static int64_t id_of(int i)
{
    return (int64_t)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15));
}

static void rows_keep_what_was_written(void)
{
    fl_table *t = table("emb", 200);
    fl_tensor row = {0};
    CHECK_INT(fl_table_width(t), WIDTH);
    for (int i = 0; i < ROWS; i++) {
        const int64_t id = id_of(i);
        CHECK_OK(fl_table_read(t, 1, &id, &row));
        ((float *)row.data)[0] = (float)-i;
        CHECK_OK(fl_table_write(t, 1, &id, &row));
    }
    CHECK_INT(fl_table_rows(t), ROWS);
    for (int i = ROWS - 1; i >= 0; i--) {
        const int64_t id = id_of(i);
        CHECK_OK(fl_table_read(t, 1, &id, &row));
        CHECK_NEAR(((float *)row.data)[0], -i, 0);
    }
    CHECK_INT(fl_table_rows(t), ROWS);
    fl_tensor_fini(&row);
    fl_table_free(t);
}

static void a_start_does_not_depend_on_the_order(void)
{
    fl_table *t = table("emb", 200), *u = table("emb", 200);
    fl_tensor a = {0}, b = {0};
    const int64_t up[] = {3, -7, 12}, down[] = {12, 99, -7, 3};
    CHECK_OK(fl_table_read(t, 3, up, &a));
    CHECK_OK(fl_table_read(u, 4, down, &b));
    const float *x = a.data, *y = b.data;
    for (int i = 0; i < WIDTH; i++) {
        CHECK_NEAR(x[i], y[3 * WIDTH + i], 0);
        CHECK_NEAR(x[WIDTH + i], y[2 * WIDTH + i], 0);
        CHECK_NEAR(x[2 * WIDTH + i], y[i], 0);
    }
    CHECK(memcmp(x, x + WIDTH, WIDTH * sizeof *x));
    fl_tensor_fini(&a);
    fl_tensor_fini(&b);
    fl_table_free(t);
    fl_table_free(u);
}

static void tables_start_apart(void)
{
    fl_table *t = table("emb", 200), *u = table("other", 200);
    fl_tensor a = {0}, b = {0};
    const int64_t id = 5;
    CHECK_OK(fl_table_read(t, 1, &id, &a));
    CHECK_OK(fl_table_read(u, 1, &id, &b));
    CHECK(memcmp(a.data, b.data, WIDTH * sizeof(float)));
    fl_tensor_fini(&a);
    fl_tensor_fini(&b);
    fl_table_free(t);
    fl_table_free(u);
}

static void what_is_no_start_is_refused(void)
{
    const int64_t x[] = {1, 2};
    const fl_shape s = {2, {1, 2}};
    fl_tensor started = fl_tensor_view(FL_I64, &s, x);
    fl_table *t = NULL;
    CHECK_ERR(fl_table_new("emb", &started, &t), FL_EINVAL,
              "table \"emb\" was started as int64[1,2], expected rows of");
    CHECK_ERR(fl_table_new("emb", &(fl_tensor){.dtype = FL_F32}, &t), FL_EINVAL,
              "table \"emb\" was started as float32[]");
}

const fl_test fl_tests[] = {
    {"rows of a table keep what was written", rows_keep_what_was_written},
    {"the start of a row does not depend on the order of asking",
     a_start_does_not_depend_on_the_order},
    {"tables of other names start apart", tables_start_apart},
    {"what is no start of a table is refused", what_is_no_start_is_refused},
    {0},
};
