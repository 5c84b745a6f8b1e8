/* multislot_fuzz.c - any bytes as a file of examples, with bad lines skipped.
 * What is read has offsets that fit; what is not has a place in its line. */
#include "data/batch.h"
#include "data/number.h"
#include "data/parse.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const fl_data_slot slots[] = {
    {"x", FL_F32, .sparse = true},
    {"skipped", FL_I64, .sparse = true, .unused = true},
    {"y", FL_I64, .shape = {2, {-1, 2}}},
};

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void read_lines(const fl_index *ix, const char *text, fl_batch *b)
{
    fl_flaw flaw;
    fl_line l = {.text = text, .end = ix->end};
    uint32_t tokens = 0;
    for (int i = 0; i < ix->n_lines; i++) {
        l.stop = ix->line[i].newline;
        l.end = ix->end + tokens;
        l.n = ix->line[i].tokens - tokens;
        tokens = ix->line[i].tokens;
        const fl_err err = fl_multislot.row(&fl_multislot, &l, b, &flaw);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fl_schema schema;
    fl_batch batch;
    fl_index ix = {0};
    fl_tensor t[2] = {0};
    fl_arena *a = fl_arena_new();
    char *text = fl_mem_alloc(size + 1 + FL_TEXT_SLACK);
    memcpy(text, data, size);
    text[size] = '\n';
    must(!fl_schema_init(&schema, 3, slots, a));
    fl_batch_init(&batch, &schema);
    must(!fl_batch_begin(&batch, t, FL_INDEX_LINES));
    fl_index_scan(&ix, FL_SPLIT_BLANKS, text, size + 1);
    read_lines(&ix, text, &batch);
    fl_batch_end(&batch);
    must(!fl_lod_check(&t[0].lod, t[0].shape.dim[0]));
    must(t[1].shape.dim[0] == batch.rows);
    fl_tensor_fini(&t[0]);
    fl_tensor_fini(&t[1]);
    fl_batch_fini(&batch);
    fl_index_fini(&ix);
    fl_mem_free(text);
    fl_arena_free(a);
    return 0;
}
