/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - reference-counted memory: a header of one cache line, then the bytes;
 * or memory that belongs to someone else. */
#include "tensor/tensor.h"

#include "base/atomic.h"
#include "base/mem.h"

struct fl_buf {
    fl_count refs;
    size_t size;
    void *at;                  /* either `data`, or memory that was lent */
    void (*drop)(void *owner); /* releases memory that was lent; NULL: the bytes
                                  are in `data` */
    void *owner;
    _Alignas(64) unsigned char data[];
};

fl_err fl_buf_new(size_t size, fl_buf **buf)
{
    fl_buf *b = NULL;
    if (size <= SIZE_MAX - sizeof *b)
        b = fl_mem_try(sizeof *b + size);
    if (!b)
        return fl_fail(FL_ENOMEM, "tensor: %zu bytes of memory were refused",
                       size);
    fl_count_init(&b->refs, 1);
    b->size = size;
    b->at = b->data;
    b->drop = NULL;
    *buf = b;
    return FL_OK;
}

fl_err fl_buf_lend(void *at, size_t size, void (*drop)(void *owner),
                   void *owner, fl_buf **buf)
{
    fl_buf *b = NULL;
    FL_TRY(fl_buf_new(0, &b));
    b->size = size;
    b->at = at;
    b->drop = drop;
    b->owner = owner;
    *buf = b;
    return FL_OK;
}

fl_buf *fl_buf_ref(fl_buf *b)
{
    fl_count_up(&b->refs);
    return b;
}

void fl_buf_unref(fl_buf *b)
{
    if (!b || fl_count_down(&b->refs))
        return;
    if (b->drop)
        b->drop(b->owner);
    fl_mem_free(b);
}

void *fl_buf_data(fl_buf *b)
{
    return b->at;
}

size_t fl_buf_size(const fl_buf *b)
{
    return b->size;
}

bool fl_buf_shared(const fl_buf *b)
{
    return fl_count_get(&b->refs) > 1;
}
