/* communicator_in.h - the inside of a communicator, shared by its files.
 *
 *     communicator_make.c  from a program to gradients and parameters
 *     communicator_heap.c  what gathers of a gradient
 *     communicator.c       its threads, and who waits for them
 *
 * No thread holds two of the locks. */
#ifndef FL_TRAINER_COMMUNICATOR_IN_H
#define FL_TRAINER_COMMUNICATOR_IN_H

#include "base/map.h"
#include "base/pool.h"
#include "trainer/communicator.h"

#include <pthread.h>

/* Some rows of a variable, and where they live. */
typedef struct fl_stretch {
    const char *name; /* as the server calls them */
    int server;
    int64_t rows; /* < 0: all */
} fl_stretch;

/* What has gathered of a gradient: a sum, or rows one after the other. */
typedef struct fl_heap {
    int64_t n;    /* that were handed over */
    int64_t room; /* rows that there is memory for */
    fl_value value;
} fl_heap;

/* A gradient. */
typedef struct fl_outflow {
    const char *name;
    int n;
    fl_stretch *to;
    fl_heap away;    /* the sender's, with: */
    fl_rows sum;     /* its rows, each once */
    fl_value whole;  /* one of the two; borrowed */
    fl_value *piece; /* cut from it; only rows are their own */

    pthread_mutex_t lock;
    pthread_cond_t room; /* something went away */
    fl_heap filling;
    bool closed; /* the communicator has failed */
} fl_outflow;

/* A parameter. */
typedef struct fl_inflow {
    const char *name;
    int n;
    fl_stretch *from;
    fl_tensor *coming; /* the receiver's, by piece */

    pthread_mutex_t lock;
    fl_tensor *here;   /* by piece */
    int64_t pulls;     /* how often it came */
    int64_t taken;     /* the pull that was taken last, */
    const void *taker; /* and where to */
} fl_inflow;

struct fl_communicator {
    fl_trainer *trainer;
    fl_arena *arena;
    bool half; /* asynchronous */
    bool fake; /* nothing is sent: for measurements */
    bool pulls_apart;
    int64_t limit;  /* batches that gather before a push, at most */
    int64_t linger; /* ns to wait for more before that */
    int64_t enough; /* batches sent before a pull */
    int n_out, n_in;
    fl_outflow *out;
    fl_inflow *in;
    fl_map grads, params;
    FL_VEC(fl_gradient) partings; /* the sender's, */
    fl_arena *round;              /* and what they point to */
    FL_VEC(fl_lookup) lookups;    /* the receiver's */
    fl_watch watch;               /* of its own threads: ends them */
    pthread_condattr_t monotonic;
    fl_pool *pool;
    fl_group group;

    pthread_mutex_t lock;
    pthread_cond_t send, receive; /* there is something to do */
    pthread_cond_t moved;         /* something was done */
    bool ending;
    int64_t most, touched; /* the highest heap, and when it grew last (ns) */
    int64_t push_wanted, push_done; /* by number */
    int64_t pull_wanted, pull_done;
    int64_t unseen;       /* batches sent since the last pull */
    int workers, arrived; /* half asynchronous, with: */
    int64_t meeting;      /* the number of the next one */
    fl_communicated done;
    fl_err err; /* of the first failure */
    char why[512];
};

/* --- communicator_make.c --- */

fl_err fl_comm_make(fl_communicator *c, const fl_program *p) FL_MUST_CHECK;
void fl_comm_unmake(fl_communicator *c);

/* --- communicator_heap.c --- */

fl_err fl_heap_add(fl_heap *h, const char *name,
                   const fl_value *v) FL_MUST_CHECK;
void fl_heap_fini(fl_heap *h);
/* Rows that are the same become one; then it is cut for the servers. */
fl_err fl_outflow_part(fl_communicator *c, fl_outflow *f) FL_MUST_CHECK;

#endif
