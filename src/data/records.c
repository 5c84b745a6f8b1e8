/* SPDX-License-Identifier: Apache-2.0 */
/* records.c - copies rows of a batch to contiguous records, and back. */
#include "data/records.h"

enum {
    CHUNK = 1 << 20 /* bytes; a chunk for a larger record is larger */
};

void fl_records_fini(fl_records *r)
{
    for (int64_t i = 0; i < r->chunks.n; i++)
        fl_mem_free(r->chunks.at[i]);
    fl_vec_fini(&r->chunks);
    fl_vec_fini(&r->at);
    r->used = r->size = 0;
}

/* The values of a column that belong to a row. */
typedef struct span {
    const char *at;
    size_t bytes;
    uint32_t n;
} span;

static span find_span(const fl_batch *b, int column, int64_t row)
{
    const fl_column *c = &b->column[column];
    const fl_schema_slot *s = &b->schema->slot[b->schema->slot_of[column]];
    const size_t size = fl_dtype_size(s->dtype);
    const int64_t from = c->off ? c->off[row] : row * s->width;
    const int64_t n = c->off ? c->off[row + 1] - from : s->width;
    return (span){(const char *)c->data + (size_t)from * size, (size_t)n * size,
                  (uint32_t)n};
}

static size_t size_of(const fl_batch *b, int64_t row)
{
    size_t size = 0;
    for (int i = 0; i < b->schema->n_columns; i++)
        size += find_span(b, i, row).bytes +
                (b->column[i].off ? sizeof(uint32_t) : 0);
    return size;
}

static fl_err reserve_chunk(fl_records *r, size_t bytes)
{
    if (r->size - r->used >= bytes)
        return FL_OK;
    const size_t size = bytes > CHUNK ? bytes : CHUNK;
    char *chunk = fl_mem_try(size);
    if (!chunk)
        return fl_fail(FL_ENOMEM,
                       "no memory for more than %lld examples of this file",
                       (long long)r->at.n);
    fl_push(&r->chunks, chunk);
    r->size = size;
    r->used = 0;
    return FL_OK;
}

static char *put_bytes(char *to, const void *from, size_t n)
{
    memcpy(to, from, n);
    return to + n;
}

fl_err fl_records_add(fl_records *r, const fl_batch *b)
{
    for (int64_t row = 0; row < b->rows; row++) {
        const size_t size = size_of(b, row);
        FL_TRY(reserve_chunk(r, size));
        char *to = r->chunks.at[r->chunks.n - 1] + r->used;
        fl_push(&r->at, to);
        r->used += size;
        for (int i = 0; i < b->schema->n_columns; i++) {
            const span s = find_span(b, i, row);
            if (b->column[i].off)
                to = put_bytes(to, &s.n, sizeof s.n);
            to = put_bytes(to, s.at, s.bytes);
        }
    }
    return FL_OK;
}

fl_err fl_record_get(const char *record, fl_batch *b)
{
    for (int i = 0; i < b->schema->n_columns; i++) {
        fl_column *c = &b->column[i];
        const fl_schema_slot *s = &b->schema->slot[b->schema->slot_of[i]];
        const size_t size =
            s->dtype == FL_F32 ? sizeof(float) : sizeof(int64_t);
        uint32_t n = (uint32_t)s->width;
        if (c->off) {
            memcpy(&n, record, sizeof n);
            record += sizeof n;
        }
        if (c->n + n > c->cap)
            FL_TRY(fl_column_grow(b, i, n));
        memcpy((char *)c->data + (size_t)c->n * size, record, n * size);
        record += n * size;
        c->n += n;
    }
    fl_batch_keep_row(b);
    return FL_OK;
}
