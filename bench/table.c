/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - rows of a sparse table read on one core, beside a plain gather.
 *
 *     table ROWS SECONDS [WIDTH]
 *
 * Fills a table with ROWS rows of WIDTH floats (10), then reads random ones in
 * requests of 2600 (a batch of 100 with 26 slots), and as many rows of one flat
 * array, where a row's number is its place: the limit. Seconds are those of the
 * process, so that others on the machine do not count. Prints one line of JSON.
 */
#include "table/table.h"
#include "base/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    REQUEST = 2600, /* ids */
    REQUESTS = 400,
    FILL = 1 << 16, /* rows that are made at once */
    AHEAD = 24      /* rows of the flat array that are asked for early */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "table: %s: %s\n", what, fl_errmsg());
    exit(1);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Ids scattered over all int64. */
static int64_t id_of(uint64_t i)
{
    return (int64_t)(i * UINT64_C(0x9e3779b97f4a7c15));
}

static fl_table *fill(int64_t rows, int64_t width)
{
    static int64_t id[FILL];
    const fl_shape s = {2, {FILL, width}};
    fl_tensor values = {0};
    fl_table *t;
    if (fl_table_new(&(fl_table_opts){.name = "bench",
                                      .dtype = FL_F32,
                                      .width = width,
                                      .start = {FL_START_UNIFORM, -1, 1}},
                     &t) ||
        fl_tensor_resize(&values, FL_F32, &s))
        die("new");
    memset(values.data, 0, fl_tensor_bytes(&values));
    for (int64_t at = 0; at < rows; at += FILL) {
        const int64_t n = rows - at < FILL ? rows - at : FILL;
        for (int64_t i = 0; i < n; i++)
            id[i] = id_of((uint64_t)(at + i));
        values.shape.dim[0] = n;
        if (fl_table_load(t, FL_TABLE_VALUE, n, id, &values))
            die("fill");
    }
    fl_tensor_fini(&values);
    return t;
}

/* Rows of the table a second. */
static double read_table(fl_table *t, const uint32_t *number, double seconds)
{
    static int64_t id[REQUEST * REQUESTS];
    fl_tensor out = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < REQUEST * REQUESTS; i++)
        id[i] = id_of(number[i]);
    const double start = now();
    while (now() - start < seconds)
        for (int64_t k = 0; k < REQUESTS; k++, n += REQUEST)
            if (fl_table_read(t, FL_TABLE_VALUE, REQUEST, id + k * REQUEST,
                              &out))
                die("read");
    const double rate = (double)n / (now() - start);
    fl_tensor_fini(&out);
    return rate;
}

static void gather(const float *from, int64_t width, const uint32_t *number,
                   float *to)
{
    const size_t bytes = (size_t)width * sizeof *from;
    for (int64_t i = 0; i < REQUEST; i++) {
        const char *ahead =
            (const char *)(from + (int64_t)number[i + AHEAD] * width);
        const float *row = from + (int64_t)number[i] * width;
        __builtin_prefetch(ahead, 0, 2);
        __builtin_prefetch(ahead + bytes - 1, 0, 2);
        if (width == 10)
            memcpy(to + i * width, row, 10 * sizeof *row);
        else
            memcpy(to + i * width, row, bytes);
    }
}

/* Rows of a flat array a second. */
static double read_flat(int64_t rows, int64_t width, const uint32_t *number,
                        double seconds)
{
    const size_t bytes = (size_t)(rows * width) * sizeof(float);
    float *from = fl_pages_map(bytes);
    float *to = calloc((size_t)(REQUEST * width), sizeof *to);
    int64_t n = 0;
    if (!from || !to)
        die("no memory for the flat array");
    for (int64_t i = 0; i < rows * width; i += 16)
        from[i] = 1;
    const double start = now();
    while (now() - start < seconds)
        for (int64_t k = 0; k < REQUESTS - 1; k++, n += REQUEST)
            gather(from, width, number + k * REQUEST, to);
    const double rate = (double)n / (now() - start);
    fl_pages_unmap(from, bytes);
    free(to);
    return rate;
}

int main(int argc, char **argv)
{
    static uint32_t number[REQUEST * REQUESTS];
    uint64_t x = 88172645463325252u;
    if (argc < 3)
        return fprintf(stderr, "usage: table ROWS SECONDS [WIDTH]\n"), 2;
    const int64_t rows = atoll(argv[1]), width = argc > 3 ? atoll(argv[3]) : 10;
    const double seconds = atof(argv[2]);
    for (int64_t i = 0; i < REQUEST * REQUESTS; i++)
        number[i] = (uint32_t)(next_random(&x) % (uint64_t)rows);
    const double start = now();
    fl_table *t = fill(rows, width);
    const double filled = now() - start;
    const double ours = read_table(t, number, seconds);
    const double bytes = (double)fl_table_bytes(t) / (double)rows;
    const double huge = (double)fl_memory_look(true).huge;
    fl_table_free(t);
    const double limit = read_flat(rows, width, number, seconds);
    printf("{\"rows_per_s\": %.0f, \"gather_per_s\": %.0f, "
           "\"made_per_s\": %.0f, \"bytes_per_row\": %.1f, "
           "\"huge_share\": %.2f}\n",
           ours, limit, (double)rows / filled, bytes,
           huge / bytes / (double)rows);
    return 0;
}
