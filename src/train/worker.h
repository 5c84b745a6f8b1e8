/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - one thread of a training: a reader, a plan, and what it counts.
 *
 *     fl_reader_next -> feeds (views) -> fl_plan_run -> tally, texts
 *
 * Parameters are common to all plans. A program that has a place in a job
 * talks to servers, and a trainer's end takes one caller at a time: workers
 * then run their steps in turn. A communicator takes gradients from several
 * workers: where one runs, there is no turn. */
#ifndef FL_TRAIN_WORKER_H
#define FL_TRAIN_WORKER_H

#include "base/atomic.h"
#include "data/dataset.h"
#include "exec/plan.h"
#include "train/common.h"
#include "trainer/service.h"

#include <pthread.h>

/* What a worker has done. Sums of late are taken by who looks. */
typedef struct fl_tally {
    int64_t examples, batches;
    int64_t reading, computing; /* ns */
    int64_t waiting;            /* for its turn, for servers */
    double loss;                /* sum of late */
    int64_t losses;
    double auc; /* the last; NAN: none */
} fl_tally;

/* Text on its way to the caller's thread; a writer waits while it is full. */
typedef struct fl_texts {
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    fl_str print, debug;
    bool closed; /* nobody takes any more: what comes is dropped */
} fl_texts;

/* What all workers of a training share. */
typedef struct fl_team {
    const fl_train_opts *opts;
    fl_plan_part part;      /* all ops; keeps what is read after a step */
    const char *loss, *auc; /* names; NULL: there is none */
    fl_common common;
    int64_t period;
    fl_communicator *communicator; /* or NULL */
    bool in_turn;
    pthread_mutex_t turn;
    fl_texts texts;

    fl_count wish; /* fl_train_wish: the strongest so far */
    pthread_mutex_t lock;
    fl_err err; /* of the first that failed */
    char *sentence;
} fl_team;

typedef struct fl_worker {
    fl_team *team;
    int index;
    fl_scope *scope; /* its own; NULL: the user's */
    fl_entropy entropy;
    fl_watch watch;
    int64_t waited; /* ns that its steps were blocked for servers */
    fl_plan *plan;
    fl_reader *reader; /* the team's opening */
    int n_columns, n_feeds;
    fl_tensor *tensors; /* of the reader, by column */
    fl_feed *feeds;     /* of those that the program has */
    int *column;        /* by feed */
    int64_t debugged;   /* when it last told times, ns */
    fl_tally told;      /* and what it had done by then */

    pthread_mutex_t lock;
    fl_tally tally;
} fl_worker;

/* Compile the plan. reader: borrowed. */
fl_err fl_worker_init(fl_worker *w, fl_team *team, int index,
                      const fl_exec_env *env, fl_reader *reader) FL_MUST_CHECK;
void fl_worker_fini(fl_worker *w); /* a zeroed one, too */

void fl_worker_run(void *self); /* batch after batch, until the end */

fl_tally fl_worker_look(fl_worker *w, bool take); /* take: sums start anew */

/* --- the team --- */

void fl_team_wish(fl_team *t, fl_train_wish wish); /* the stronger one stays */
fl_train_wish fl_team_wished(const fl_team *t);

void fl_texts_init(fl_texts *o);
void fl_texts_fini(fl_texts *o);
void fl_texts_put(fl_texts *o, fl_str *text, bool debug); /* text is taken */
/* What came meanwhile; empty texts where nothing did. */
void fl_texts_take(fl_texts *o, fl_str *print, fl_str *debug);
void fl_texts_close(fl_texts *o);

#endif
