/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.h - files of examples, and who reads them.
 *
 * The interface is that of fluid.h: fl_dataset_open gives readers, each for
 * one thread, which share a pass. Where a reader parses ahead, a thread of its
 * own fills a ring of batches:
 *
 *     file -> source -> text -> index -> format -> batch = tensors
 *             gzip,     lines   tokens   numbers   [ring] -> fl_reader_next
 *             command
 *
 * In the ring as without it tensors are swapped, never copied. */
#ifndef FL_DATA_DATASET_H
#define FL_DATA_DATASET_H

#include "base/clock.h"
#include "base/pool.h"
#include "data/criteo.h"
#include "data/records.h"
#include "data/text.h"

#include <pthread.h>

/* A file on its way into memory. */
typedef struct fl_loading {
    struct fl_dataset *dataset;
    struct fl_reader *reader;
    fl_err err;
    char *sentence; /* of err */
} fl_loading;

struct fl_dataset {
    fl_arena *arena; /* of what was set */
    fl_schema schema;
    const fl_format *format;
    fl_criteo_format criteo; /* where the format is that */
    int n_files;
    const char **files;
    const char *pipe; /* NULL: the format reads the files themselves */
    int64_t batch, bad_lines;
    int threads;

    bool loaded;
    int64_t n_records;
    const char **records; /* in the order of reading */
    fl_records *loads;    /* of each file */
    int n_loads;

    fl_pool *pool; /* of a load that goes on, and its parts */
    fl_group group;
    fl_loading *loading;
    int n_loading;

    pthread_mutex_t lock;
    int open; /* readers */
};

/* What the readers of one opening share. Ends with the last of them. */
typedef struct fl_pass {
    fl_dataset *dataset;
    fl_count refs;
    fl_count next; /* file, or batch in memory */

    pthread_mutex_t lock;
    int64_t bad_lines;
    FL_VEC(char *) told; /* sentences of the first */
} fl_pass;

/* Batches that wait for their reader: n of them from `first` on. */
typedef struct fl_ring {
    int size;
    fl_tensor *tensors; /* size times the columns */
    int64_t *rows;
    fl_pool *pool; /* the thread that fills it; NULL: there is none */
    fl_group group;

    pthread_mutex_t lock;
    pthread_cond_t change;
    int first, n;
    bool stop;      /* the reader ends */
    bool ended;     /* no more will come */
    fl_err err;     /* why, if that is a failure */
    char *sentence; /* of err */
} fl_ring;

struct fl_reader {
    fl_pass *pass;
    fl_cancel cancel;
    fl_text text;
    fl_batch batch;
    int file;     /* that it is in; -1: none */
    bool by_file; /* a batch ends where its file does */
    fl_err err;   /* what it failed with, and why */
    char *sentence;
    fl_ring ring;

    pthread_mutex_t lock;
    fl_reader_stats stats;
};

/* What readers share of a pass: files, or batches in memory. */
int64_t fl_dataset_parts(const fl_dataset *d);

/* One reader of a pass that nobody else shares, for a load. */
fl_err fl_pass_new(fl_dataset *d, fl_pass **out) FL_MUST_CHECK;
void fl_pass_unref(fl_pass *p);
fl_err fl_reader_new(fl_pass *p, const fl_reader_opts *opts,
                     fl_reader **out) FL_MUST_CHECK;

/* fl_reader_next without the ring. */
fl_err fl_reader_fill(fl_reader *r, fl_tensor *tensors,
                      int64_t *rows) FL_MUST_CHECK;

/* ring.c: start the thread; end it. */
fl_err fl_ring_start(fl_reader *r, int size) FL_MUST_CHECK;
void fl_ring_stop(fl_reader *r);
fl_err fl_ring_next(fl_reader *r, fl_tensor *tensors,
                    int64_t *rows) FL_MUST_CHECK;

#endif
