/* SPDX-License-Identifier: Apache-2.0 */
/* test_fuzz.h - any bytes as a file of examples, bad lines skipped. What is
 * read has offsets that fit; what is not has a place in its line. Fuzzers
 * only. */
#ifndef FL_DATA_TEST_FUZZ_H
#define FL_DATA_TEST_FUZZ_H

#include "base/mem.h"
#include "data/number.h"
#include "data/parse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FUZZ_COLUMNS = 32
};

static inline void must(bool ok)
{
    if (!ok)
        abort();
}

static inline void fuzz_lines(const fl_format *f, const fl_index *ix,
                              const char *text, fl_batch *b)
{
    fl_flaw flaw;
    fl_line l = {.text = text, .end = ix->end};
    uint32_t tokens = 0;
    for (int i = 0; i < ix->n_lines; i++) {
        l.stop = ix->line[i].newline;
        l.end = ix->end + tokens;
        l.n = ix->line[i].tokens - tokens;
        tokens = ix->line[i].tokens;
        const fl_err err = f->row(f, &l, b, &flaw);
        if (!err)
            fl_batch_keep_row(b);
        else
            fl_batch_drop_row(b);
        if (err == FL_EPROTO) {
            must(flaw.at >= l.start && flaw.at <= l.stop);
            fl_flaw_fail(&flaw, "fuzz", i + 1, &l);
        }
        l.start = l.stop + 1;
    }
}

static inline void fuzz_format(const fl_format *f, int n,
                               const fl_data_slot *slots, const uint8_t *data,
                               size_t size)
{
    fl_schema schema;
    fl_batch batch;
    fl_index ix = {0};
    fl_tensor t[FUZZ_COLUMNS] = {0};
    fl_arena *a = fl_arena_new();
    char *text = fl_mem_alloc(size + 1 + FL_TEXT_SLACK);
    memcpy(text, data, size);
    text[size] = '\n';
    must(!fl_schema_init(&schema, n, slots, a));
    fl_batch_init(&batch, &schema);
    must(!fl_batch_begin(&batch, t, FL_INDEX_LINES));
    fl_index_scan(&ix, f->split, text, size + 1);
    fuzz_lines(f, &ix, text, &batch);
    fl_batch_end(&batch);
    for (int i = 0; i < schema.n_columns; i++) {
        must(t[i].lod.levels ? !fl_lod_check(&t[i].lod, t[i].shape.dim[0])
                             : t[i].shape.dim[0] == batch.rows);
        fl_tensor_fini(&t[i]);
    }
    fl_batch_fini(&batch);
    fl_index_fini(&ix);
    fl_mem_free(text);
    fl_arena_free(a);
}

#endif
