/* SPDX-License-Identifier: Apache-2.0 */
/* table_file_fuzz.c - loads a table from a file of the fuzzer's bytes.
 *
 * The variable has the type and shape that the file says, so that rows are
 * read, or another shape, so that the file must be refused. The first byte
 * chooses. */
#include "table/file.h"

#include "base/memdisk.h"

#include <stdlib.h>

enum {
    LISTED = 1, /* the file has selected rows */
    OTHER = 2,  /* the variable has another shape */
    STATE = 4,  /* a state is loaded, not the values */
    WIDTH_MOST = 64,
    BUDGET = 8 << 20
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static fl_piece variable(const fl_record *r, uint8_t choice)
{
    fl_piece k = {"emb", "emb", choice >> 3 & 1, FL_BY_ID, r->shape};
    if (choice & LISTED)
        k.shape.dim[0] = r->height;
    if (choice & OTHER)
        k.shape.dim[1]++;
    return k;
}

static void load(const fl_disk *d, const fl_piece *k, fl_dtype dtype,
                 uint8_t choice)
{
    static const fl_rule rule = {.state = {{"Moment", "MomentOut"}}};
    fl_budget budget = {.limit = BUDGET};
    const fl_table_opts opts = {.name = "emb",
                                .dtype = dtype,
                                .width = k->shape.dim[1],
                                .start = {FL_START_UNIFORM, -1, 1},
                                .rule = &rule,
                                .budget = &budget};
    const int servers = 1 + (choice >> 3 & 1) + (choice >> 4 & 1);
    const int state = choice & STATE ? 0 : FL_TABLE_VALUE;
    fl_table *t;
    fl_record r;
    if (fl_table_new(&opts, &t))
        return;
    if (!fl_table_file_open(d, "f", k, dtype, &r)) {
        if (choice & OTHER)
            abort();
        if (!fl_table_file_load(t, state, &r, k, servers, NULL, NULL) &&
            fl_table_rows(t) > r.shape.dim[0])
            abort();
        fl_record_close(&r);
    }
    fl_table_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t choice = size ? data[0] : 0;
    const fl_kind kind = choice & LISTED ? FL_SELECTED_ROWS : FL_LOD_TENSOR;
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    fl_record r;
    if (size && !fl_disk_write(d, "f", data + 1, size - 1, false) &&
        !fl_record_open(d, "f", kind, &r)) {
        const fl_piece k = variable(&r, choice);
        const fl_dtype dtype = r.dtype;
        fl_record_close(&r);
        if (k.shape.rank == 2 && k.shape.dim[1] > 0 &&
            k.shape.dim[1] <= WIDTH_MOST &&
            fl_table_file_kind(k.shape.dim[0]) == kind)
            load(d, &k, dtype, choice);
    }
    fl_memdisk_free(m);
    return 0;
}
