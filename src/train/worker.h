/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - one thread of a training: a reader, a plan, and what it counts.
 *
 *     fl_reader_next -> feeds (views) -> fl_plan_run -> tally, texts
 *
 * All plans share the parameters. If the program is in a job with servers,
 * workers run their steps in turn, because a trainer (fl_trainer) has one
 * caller at a time. With a communicator, which takes gradients from several
 * workers, they need not take turns. */
#ifndef FL_TRAIN_WORKER_H
#define FL_TRAIN_WORKER_H

#include "base/atomic.h"
#include "data/dataset.h"
#include "exec/plan.h"
#include "train/common.h"
#include "train/positions.h"
#include "trainer/service.h"

#include <pthread.h>

/* What a worker has done. */
typedef struct fl_tally {
    int64_t examples, batches;
    int64_t reading, computing; /* ns */
    int64_t waiting;            /* ns for its turn and for servers */
    double loss;    /* sum of losses since the last fl_worker_look(take) */
    int64_t losses; /* number of losses in the sum */
    double auc;     /* the last AUC; NAN: none */
} fl_tally;

/* Text from workers to the caller's thread; a writer waits while it is full. */
typedef struct fl_texts {
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    fl_str print, debug;
    bool closed; /* further text is dropped */
} fl_texts;

/* What all workers of a training share. */
typedef struct fl_team {
    const fl_train_opts *opts;
    fl_plan_part part; /* all ops; keeps values that are read after a step */
    const char *loss, *auc; /* names; NULL: there is none */
    fl_common common;
    int64_t period;
    fl_communicator *communicator; /* NULL: none runs */
    fl_positions *positions;       /* borrowed; used in turn */
    bool in_turn;
    pthread_mutex_t turn;
    fl_texts texts;

    fl_count wish; /* fl_train_wish: the strongest so far */
    pthread_mutex_t lock;
    fl_err err; /* the first error of a worker */
    char *sentence;
} fl_team;

typedef struct fl_worker {
    fl_team *team;
    int index;
    fl_scope *scope; /* the worker's; NULL: it uses that of the user */
    fl_entropy entropy;
    fl_watch watch;
    int64_t waited; /* ns that its steps have waited for servers */
    fl_plan *plan;
    fl_reader *reader; /* borrowed */
    int n_columns, n_feeds;
    fl_tensor *tensors; /* columns of the reader's batch */
    fl_tensor *next;    /* columns of the batch after it */
    fl_uses used;       /* what the batch has used of the data */
    fl_uses next_used;  /* the same of the batch after it */
    int64_t n_next;     /* examples of that batch; 0: it was not read yet */
    bool looks_ahead;   /* the next batch is read before a step */
    fl_feed *feeds;     /* the columns that the program uses */
    int *column;        /* column of each feed */
    int64_t debugged;   /* when it last printed times, ns */
    fl_tally told;      /* what it had done at that time */

    pthread_mutex_t lock;
    fl_tally tally;
} fl_worker;

/* Compile the plan. reader: borrowed. */
fl_err fl_worker_init(fl_worker *w, fl_team *team, int index,
                      const fl_exec_env *env, fl_reader *reader) FL_MUST_CHECK;
void fl_worker_fini(fl_worker *w); /* also of a zeroed worker */

void fl_worker_run(void *self); /* train on all batches of the reader */

fl_tally fl_worker_look(fl_worker *w, bool take); /* take: reset the sums */

/* --- the team --- */

void fl_team_wish(fl_team *t, fl_train_wish wish); /* keeps the stronger one */
fl_train_wish fl_team_wished(const fl_team *t);

void fl_texts_init(fl_texts *o);
void fl_texts_fini(fl_texts *o);
void fl_texts_put(fl_texts *o, fl_str *text, bool debug); /* empties text */
/* Move the texts since the last call to *print and *debug. */
void fl_texts_take(fl_texts *o, fl_str *print, fl_str *debug);
void fl_texts_close(fl_texts *o);

#endif
