/* SPDX-License-Identifier: Apache-2.0 */
#include "table/file.h"

#include "base/memdisk.h"
#include "base/test.h"
#include "tensor/file.h"

enum {
    ROWS = 1000,
    WIDTH = 3,
    STEP = 7 /* every seventh row was trained */
};

static const fl_rule rule = {.state = {{"Moment", "MomentOut"}}};

static fl_table *table(void)
{
    fl_table *t = NULL;
    CHECK_OK(fl_table_new(&(fl_table_opts){.name = "emb",
                                           .dtype = FL_F32,
                                           .width = WIDTH,
                                           .start = {FL_START_UNIFORM, -1, 1},
                                           .rule = &rule,
                                           .state = {0.5}},
                          &t));
    return t;
}

static fl_piece kept(int server, int64_t rows)
{
    return (fl_piece){"emb", "emb", server, FL_BY_ID, {2, {rows, WIDTH}}};
}

/* A table in which value and state of every STEP-th row are its number. */
static fl_table *trained(void)
{
    fl_table *t = table();
    for (int64_t id = 0; id < ROWS; id += STEP) {
        const float x[WIDTH] = {(float)id, 1, 2};
        const fl_tensor row =
            fl_tensor_view(FL_F32, &(fl_shape){2, {1, WIDTH}}, x);
        CHECK_OK(fl_table_load(t, FL_TABLE_VALUE, 1, &id, &row));
        CHECK_OK(fl_table_load(t, 0, 1, &id, &row));
    }
    return t;
}

static void read_all(const fl_table *t, int state, fl_tensor *out)
{
    int64_t id[ROWS];
    for (int64_t i = 0; i < ROWS; i++)
        id[i] = i;
    CHECK_OK(fl_table_read(t, state, ROWS, id, out));
}

static void save(const fl_disk *d, const char *path, const fl_table *t,
                 int state)
{
    fl_value v = {.kind = FL_LOD_TENSOR};
    read_all(t, state, &v.tensor);
    CHECK_OK(fl_values_save(d, path, 1, (const fl_value *[]){&v}, false));
    fl_value_fini(&v);
}

static void load(const fl_disk *d, const char *path, fl_table *t, int state,
                 const fl_piece *k, int servers)
{
    fl_record r;
    CHECK_OK(fl_table_file_open(d, path, k, FL_F32, &r));
    CHECK_OK(fl_table_file_load(t, state, &r, k, servers, NULL, NULL));
    fl_record_close(&r);
}

/* Compare row by row, each with the table of the server that has it. */
static void check_equal(fl_table *const *by_server, int servers,
                        const fl_table *whole, int state)
{
    fl_tensor want = {0}, got = {0};
    read_all(whole, state, &want);
    for (int64_t id = 0; id < ROWS; id++) {
        const fl_table *t = by_server[fl_id_server(id, servers)];
        CHECK_OK(fl_table_read(t, state, 1, &id, &got));
        CHECK(!memcmp(got.data, (float *)want.data + id * WIDTH,
                      WIDTH * sizeof(float)));
    }
    fl_tensor_fini(&want);
    fl_tensor_fini(&got);
}

static void each_server_takes_its_own_rows(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_table *whole = trained(), *t[3];
    save(d, "value", whole, FL_TABLE_VALUE);
    save(d, "state", whole, 0);
    for (int servers = 1; servers <= 3; servers++) {
        int64_t rows = 0;
        for (int s = 0; s < servers; s++) {
            const fl_piece k = kept(s, ROWS);
            t[s] = table();
            load(d, "state", t[s], 0, &k, servers);
            load(d, "value", t[s], FL_TABLE_VALUE, &k, servers);
            rows += fl_table_rows(t[s]);
        }
        CHECK_INT(rows, fl_table_rows(
                            whole)); /* rows with start values were not added */
        check_equal(t, servers, whole, FL_TABLE_VALUE);
        check_equal(t, servers, whole, 0);
        for (int s = 0; s < servers; s++)
            fl_table_free(t[s]);
    }
    fl_table_free(whole);
    fl_memdisk_free(m);
}

static void rows_that_changed_go_back_to_their_start(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    const fl_piece k = kept(0, ROWS);
    fl_table *fresh = table(), *t = trained();
    save(d, "value", fresh, FL_TABLE_VALUE);
    load(d, "value", t, FL_TABLE_VALUE, &k, 1);
    check_equal(&t, 1, fresh, FL_TABLE_VALUE);
    fl_table_free(fresh);
    fl_table_free(t);
    fl_memdisk_free(m);
}

static void a_vast_table_has_the_rows_that_are_listed(void)
{
    enum {
        LISTED = 4
    };
    const int64_t vast = INT64_C(1000000000000);
    const int64_t id[LISTED] = {vast - 1, -5, 8, 0};
    const fl_shape s = {2, {LISTED, WIDTH}};
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_str bytes = {0};
    float x[LISTED * WIDTH], *row;
    fl_tensor got = {0};
    for (int i = 0; i < LISTED * WIDTH; i++)
        x[i] = (float)i;
    CHECK_INT(fl_table_file_kind(vast), FL_SELECTED_ROWS);
    CHECK_INT(fl_table_file_kind(INT32_MAX), FL_LOD_TENSOR);
    fl_rows_head(LISTED, &bytes);
    fl_str_bytes(&bytes, id, sizeof id);
    fl_rows_tail(vast, FL_F32, &s, &bytes);
    fl_str_bytes(&bytes, x, sizeof x);
    CHECK_OK(fl_disk_write(d, "vast", bytes.at, bytes.n, false));
    for (int server = 0; server < 2; server++) {
        const fl_piece k = kept(server, vast);
        fl_table *t = table();
        load(d, "vast", t, FL_TABLE_VALUE, &k, 2);
        CHECK_INT(fl_table_rows(t), 2);
        CHECK_OK(fl_table_read(t, FL_TABLE_VALUE, LISTED, id, &got));
        for (int i = 0; i < LISTED; i++) {
            row = (float *)got.data + i * WIDTH;
            CHECK((row[0] == x[i * WIDTH]) ==
                  (fl_id_server(id[i], 2) == server));
        }
        fl_table_free(t);
    }
    fl_tensor_fini(&got);
    fl_str_fini(&bytes);
    fl_memdisk_free(m);
}

static void what_is_no_file_of_the_table_is_refused(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    const fl_piece more = kept(0, ROWS + 1), vast = kept(0, INT64_MAX);
    fl_table *t = table();
    fl_record r;
    save(d, "value", t, FL_TABLE_VALUE);
    CHECK_ERR(fl_table_file_open(d, "value", &more, FL_F32, &r), FL_ESHAPE,
              "value: it has float32[1000,3], but \"emb\" is float32[1001,3]");
    CHECK_ERR(fl_table_file_open(d, "value",
                                 &(fl_piece){.var = "emb",
                                             .first = FL_BY_ID,
                                             .shape = {2, {ROWS, 3}}},
                                 FL_F64, &r),
              FL_ESHAPE,
              "value: it has float32[1000,3], but \"emb\" is float64");
    CHECK_ERR(fl_table_file_open(d, "value", &vast, FL_F32, &r), FL_EPROTO,
              "value: ");
    fl_table_free(t);
    fl_memdisk_free(m);
}

static int stop(void *unused)
{
    return 1;
}

static void loading_can_be_interrupted(void)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    const fl_piece k = kept(0, ROWS);
    fl_table *whole = trained(), *t = table();
    fl_record r;
    save(d, "value", whole, FL_TABLE_VALUE);
    CHECK_OK(fl_table_file_open(d, "value", &k, FL_F32, &r));
    CHECK_ERR(fl_table_file_load(t, FL_TABLE_VALUE, &r, &k, 1, stop, NULL),
              FL_EINTR, "value: loading was interrupted");
    CHECK_INT(fl_table_rows(t), 0);
    fl_record_close(&r);
    fl_table_free(whole);
    fl_table_free(t);
    fl_memdisk_free(m);
}

const fl_test fl_tests[] = {
    {"each server takes its own rows", each_server_takes_its_own_rows},
    {"rows that changed go back to their start",
     rows_that_changed_go_back_to_their_start},
    {"a vast table has the rows that are listed",
     a_vast_table_has_the_rows_that_are_listed},
    {"what is no file of the table is refused",
     what_is_no_file_of_the_table_is_refused},
    {"loading can be interrupted", loading_can_be_interrupted},
    {0},
};
