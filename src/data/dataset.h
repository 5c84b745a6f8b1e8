/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.h - files of examples, and the readers of a pass over them.
 *
 * fluid.h has the interface: fl_dataset_open gives readers, one for each
 * thread, which share a pass. If a reader parses ahead, another thread fills a
 * ring of batches for it:
 *
 *     file -> source -> text -> index -> format -> batch = tensors
 *             gzip,     lines   tokens   numbers   [ring] -> fl_reader_next
 *             command
 *
 * Tensors are swapped, never copied, with and without a ring. */
#ifndef FL_DATA_DATASET_H
#define FL_DATA_DATASET_H

#include "base/clock.h"
#include "base/pool.h"
#include "data/criteo.h"
#include "data/position.h"
#include "data/records.h"
#include "data/text.h"

#include <pthread.h>

/* One thread of a load. */
typedef struct fl_loading {
    struct fl_dataset *dataset;
    struct fl_reader *reader;
    fl_err err;
    char *sentence; /* of err */
} fl_loading;

struct fl_dataset {
    fl_arena *arena; /* memory of the settings */
    fl_schema schema;
    const fl_format *format;
    fl_criteo_format criteo; /* used if the format is Criteo */
    int n_files;
    const char **files;
    const char *pipe; /* NULL: the files are read directly */
    int64_t batch, bad_lines;
    int threads;

    bool loaded;
    int64_t n_records;
    const char **records; /* in the order in which they are read */
    uint32_t shuffles;    /* checksum of the seeds of all shuffles */
    fl_records *loads;    /* records of each file */
    int n_loads;

    fl_pool *pool; /* threads of a running load; NULL: none runs */
    fl_group group;
    fl_loading *loading;
    int n_loading;

    pthread_mutex_t lock;
    int open; /* number of open readers */
};

/* State that the readers of one fl_dataset_open share. It is freed with the
 * last of them. */
typedef struct fl_pass {
    fl_dataset *dataset;
    fl_count refs;
    fl_count next;    /* next file, or next batch in memory */
    fl_position from; /* what the pass skips, because it was used before */

    pthread_mutex_t lock;
    int64_t bad_lines;
    FL_VEC(char *) told; /* error messages of the first bad lines */
} fl_pass;

/* Batches that were parsed ahead: n of them, from index `first` on. */
typedef struct fl_ring {
    int size;
    fl_tensor *tensors; /* size * columns tensors */
    int64_t *rows;
    fl_uses *uses; /* what each batch has used, see fl_reader_used */
    fl_pool *pool; /* the thread that fills the ring; NULL: there is no ring */
    fl_group group;

    pthread_mutex_t lock;
    pthread_cond_t change;
    int first, n;
    bool stop;      /* the reader is being freed */
    bool ended;     /* there are no more batches */
    fl_err err;     /* the error that ended it, if any */
    char *sentence; /* of err */
} fl_ring;

struct fl_reader {
    fl_pass *pass;
    fl_cancel cancel;
    fl_text text;
    fl_batch batch;
    int file;       /* index of the open file; -1: none */
    fl_uses filled; /* what the last fl_reader_fill has used */
    fl_uses used;   /* what the last fl_reader_next has used */
    bool by_file;   /* a batch does not cross the end of a file */
    fl_err err;     /* the error that ended it */
    char *sentence;
    fl_ring ring;

    pthread_mutex_t lock;
    fl_reader_stats stats;
};

/* A checksum of the settings that decide the examples and their order: files,
 * batch size, command, shuffles. */
uint32_t fl_dataset_digest(const fl_dataset *d);

/* fl_dataset_open without the examples that a position has used. `from` is
 * copied; NULL: all examples. */
fl_err fl_dataset_open_at(fl_dataset *d, int n, const fl_reader_opts *opts,
                          const fl_position *from,
                          fl_reader **readers) FL_MUST_CHECK;

/* How much of its parts is used up after the last batch of fl_reader_next.
 * Borrowed until the next call. */
const fl_uses *fl_reader_used(const fl_reader *r);

/* The number of parts of a pass: files, or batches in memory. */
int64_t fl_dataset_parts(const fl_dataset *d);

/* A new pass, and a new reader of a pass. fl_dataset_open and loads use them.
 */
fl_err fl_pass_new(fl_dataset *d, fl_pass **out) FL_MUST_CHECK;
void fl_pass_unref(fl_pass *p);
fl_err fl_reader_new(fl_pass *p, const fl_reader_opts *opts,
                     fl_reader **out) FL_MUST_CHECK;

/* fl_reader_next without the ring. */
fl_err fl_reader_fill(fl_reader *r, fl_tensor *tensors,
                      int64_t *rows) FL_MUST_CHECK;

/* Start the thread of the ring, and end it. Defined in ring.c. */
fl_err fl_ring_start(fl_reader *r, int size) FL_MUST_CHECK;
void fl_ring_stop(fl_reader *r);
fl_err fl_ring_next(fl_reader *r, fl_tensor *tensors,
                    int64_t *rows) FL_MUST_CHECK;

#endif
