/* SPDX-License-Identifier: Apache-2.0 */
/* fifo.c - two counts that only grow, each written by one side.
 *
 *     written                      read
 *     |  counted by the writer     |  counted by the reader
 *     data[written % FL_FIFO] is the next byte to be written
 *
 * Sleeping: the sleeper sets its flag, then looks again; the other side counts,
 * then looks at the flag. Both are sequentially consistent, so one of them sees
 * what the other did. */
#include "base/fifo.h"

#include <stdatomic.h>

struct fl_fifo_memory {
    _Alignas(64) _Atomic uint64_t written;
    _Atomic uint32_t writer_sleeps;
    _Alignas(64) _Atomic uint64_t read;
    _Atomic uint32_t reader_sleeps;
    _Alignas(64) char data[FL_FIFO];
};

size_t fl_fifo_memory_size(void)
{
    return sizeof(fl_fifo_memory);
}

/* Bytes up to the end of the memory, where the next ones wrap around. */
static uint64_t span_at(uint64_t at)
{
    return FL_FIFO - at % FL_FIFO;
}

static int64_t least_span(uint64_t a, uint64_t b)
{
    return (int64_t)(a < b ? a : b);
}

int64_t fl_fifo_space(const fl_fifo *f, char **to)
{
    const uint64_t used =
        f->at - atomic_load_explicit(&f->memory->read, memory_order_acquire);
    *to = f->memory->data + f->at % FL_FIFO;
    return used > FL_FIFO ? -1 : least_span(FL_FIFO - used, span_at(f->at));
}

bool fl_fifo_written(fl_fifo *f, size_t n)
{
    f->at += n;
    atomic_store(&f->memory->written, f->at);
    return atomic_load(&f->memory->reader_sleeps) &&
           atomic_exchange(&f->memory->reader_sleeps, 0);
}

int64_t fl_fifo_ready(const fl_fifo *f, const char **from)
{
    const uint64_t there =
        atomic_load_explicit(&f->memory->written, memory_order_acquire) - f->at;
    *from = f->memory->data + f->at % FL_FIFO;
    return there > FL_FIFO ? -1 : least_span(there, span_at(f->at));
}

bool fl_fifo_taken(fl_fifo *f, size_t n)
{
    f->at += n;
    atomic_store(&f->memory->read, f->at);
    return atomic_load(&f->memory->writer_sleeps) &&
           atomic_exchange(&f->memory->writer_sleeps, 0);
}

size_t fl_fifo_gap(const fl_fifo *f, size_t size)
{
    return (size_t)(-f->at & (size - 1));
}

bool fl_fifo_sleep_reader(fl_fifo *f)
{
    const char *from;
    atomic_store(&f->memory->reader_sleeps, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (!fl_fifo_ready(f, &from))
        return true;
    atomic_store(&f->memory->reader_sleeps, 0);
    return false;
}

bool fl_fifo_sleep_writer(fl_fifo *f)
{
    char *to;
    atomic_store(&f->memory->writer_sleeps, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (!fl_fifo_space(f, &to))
        return true;
    atomic_store(&f->memory->writer_sleeps, 0);
    return false;
}

void fl_fifo_wake_reader(fl_fifo *f)
{
    atomic_store_explicit(&f->memory->reader_sleeps, 0, memory_order_relaxed);
}

void fl_fifo_wake_writer(fl_fifo *f)
{
    atomic_store_explicit(&f->memory->writer_sleeps, 0, memory_order_relaxed);
}
