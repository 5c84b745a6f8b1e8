/* SPDX-License-Identifier: Apache-2.0 */
/* fifo.h - bytes from one thread to another, or from one process to another
 * that maps the same memory.
 *
 * One side writes, one side reads. Both work on spans of the shared memory
 * itself, so that no further copy is made. A side that has nothing to do may
 * announce that it sleeps; the other side is then told to wake it. The memory
 * is not trusted: an impossible count is reported, and no access leaves the
 * memory. */
#ifndef FL_BASE_FIFO_H
#define FL_BASE_FIFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FL_FIFO = 512 << 10, /* bytes of its buffer; a power of 2 */
};

/* In memory that both map; zero is an empty one. */
typedef struct fl_fifo_memory fl_fifo_memory;
size_t fl_fifo_memory_size(void);

/* One side's view. Thread: one at a time. */
typedef struct fl_fifo {
    fl_fifo_memory *memory;
    uint64_t at; /* bytes that this side has written, or read */
} fl_fifo;

/* How many contiguous bytes can be written at *to; -1: the counts in the memory
 * are invalid. */
int64_t fl_fifo_space(const fl_fifo *f, char **to);
/* n bytes were written. True: wake the reader. */
bool fl_fifo_written(fl_fifo *f, size_t n);

/* How many contiguous bytes can be read at *from; -1: as above. */
int64_t fl_fifo_ready(const fl_fifo *f, const char **from);
/* n bytes were read. True: wake the writer. */
bool fl_fifo_taken(fl_fifo *f, size_t n);

/* Bytes up to the next multiple of `size`, a power of 2. */
size_t fl_fifo_gap(const fl_fifo *f, size_t size);

/* Announce that this side is about to sleep. False: there is something to do,
 * so it must not sleep. After waking it must announce that, too. */
bool fl_fifo_sleep_reader(fl_fifo *f);
bool fl_fifo_sleep_writer(fl_fifo *f);
void fl_fifo_wake_reader(fl_fifo *f);
void fl_fifo_wake_writer(fl_fifo *f);

#endif
