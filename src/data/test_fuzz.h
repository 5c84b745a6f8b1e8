/* SPDX-License-Identifier: Apache-2.0 */
/* test_fuzz.h - any bytes as a file of examples, bad lines skipped. What is
 * read has offsets that fit; what is not has a place in its line. With and
 * without wide.h all is the same. Fuzzers only. */
#ifndef FL_DATA_TEST_FUZZ_H
#define FL_DATA_TEST_FUZZ_H

#include "base/mem.h"
#include "data/number.h"
#include "data/parse.h"
#include "data/wide.h"

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

/* What became of a text. */
typedef struct fuzz_result {
    fl_batch batch;
    fl_index index;
    fl_tensor t[FUZZ_COLUMNS];
    fl_flaw last; /* of the last bad line */
} fuzz_result;

static inline void fuzz_lines(const fl_format *f, const char *text,
                              fuzz_result *r)
{
    fl_batch *b = &r->batch;
    const fl_index *ix = &r->index;
    fl_line l = {.text = text, .end = ix->end};
    uint32_t tokens = 0;
    for (int i = 0; i < ix->n_lines; i++) {
        l.stop = ix->line[i].newline;
        l.end = ix->end + tokens;
        l.n = ix->line[i].tokens - tokens;
        tokens = ix->line[i].tokens;
        const fl_err err = f->row(f, &l, b, &r->last);
        if (!err)
            fl_batch_keep_row(b);
        else
            fl_batch_drop_row(b);
        if (err == FL_EPROTO) {
            must(r->last.at >= l.start && r->last.at <= l.stop);
            fl_flaw_fail(&r->last, "fuzz", i + 1, &l);
        }
        l.start = l.stop + 1;
    }
}

static inline void fuzz_read(const fl_format *f, const fl_schema *s, bool wide,
                             const char *text, size_t n, fuzz_result *r)
{
    *r = (fuzz_result){.index = {.narrow = !wide}};
    fl_batch_init(&r->batch, s);
    r->batch.wide = wide;
    must(!fl_batch_begin(&r->batch, r->t, FL_INDEX_LINES));
    fl_index_scan(&r->index, f->split, text, n);
    fuzz_lines(f, text, r);
    fl_batch_end(&r->batch);
    for (int i = 0; i < s->n_columns; i++) {
        const fl_tensor *t = &r->t[i];
        must(t->lod.levels ? !fl_lod_check(&t->lod, t->shape.dim[0])
                           : t->shape.dim[0] == r->batch.rows);
    }
}

static inline void fuzz_free(fuzz_result *r)
{
    for (int i = 0; i < r->batch.schema->n_columns; i++)
        fl_tensor_fini(&r->t[i]);
    fl_index_fini(&r->index);
    fl_batch_fini(&r->batch);
}

static inline void fuzz_same(const fuzz_result *a, const fuzz_result *b)
{
    must(a->batch.rows == b->batch.rows && a->last.at == b->last.at);
    must(!strcmp(a->last.rule, b->last.rule));
    for (int i = 0; i < a->batch.schema->n_columns; i++) {
        const fl_tensor *x = &a->t[i], *y = &b->t[i];
        must(x->shape.dim[0] == y->shape.dim[0]);
        must(!memcmp(x->data, y->data, fl_tensor_bytes(x)));
        for (int64_t k = 0; x->lod.levels && k < x->lod.n[0]; k++)
            must(x->lod.off[0][k] == y->lod.off[0][k]);
    }
}

static inline void fuzz_format(const fl_format *f, int n,
                               const fl_data_slot *slots, const uint8_t *data,
                               size_t size)
{
    static fuzz_result narrow, wide;
    fl_schema schema;
    fl_arena *a = fl_arena_new();
    char *text = fl_mem_alloc(size + 1 + FL_TEXT_SLACK);
    memcpy(text, data, size);
    text[size] = '\n';
    must(!fl_schema_init(&schema, n, slots, a));
    fuzz_read(f, &schema, false, text, size + 1, &narrow);
    if (fl_wide()) {
        fuzz_read(f, &schema, true, text, size + 1, &wide);
        fuzz_same(&narrow, &wide);
        fuzz_free(&wide);
    }
    fuzz_free(&narrow);
    fl_mem_free(text);
    fl_arena_free(a);
}

#endif
