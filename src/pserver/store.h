/* store.h - a server's parameters, and the threads that own them.
 *
 *     push   is checked where it comes in: names, shapes, rows, NaN
 *     apply  on the owner of each gradient: the mean of what the participants
 *            sent, by rank, then the block of the program that it feeds
 *     pull   on the owner: a share of the memory, or a copy of rows
 *
 * Every block that updates something has one owner, and owners do one thing
 * after the other: no locks on data. A tensor that a pull still shares is
 * copied before it is written. Each owner runs the learning-rate block for
 * itself, on state of its own, so that none waits for another. */
#ifndef FL_PSERVER_STORE_H
#define FL_PSERVER_STORE_H

#include "exec/exe.h"
#include "protocol/server.h"

typedef struct fl_pstore fl_pstore;

typedef struct fl_pstore_opts {
    const fl_exec_env *env;    /* for plans; its watch may end loading */
    const fl_program *program; /* a server's */
    const fl_op *op;           /* its listen_and_serv */
    fl_scope *scope;           /* where its startup program has run */
    int owners;                /* threads; 0 = 1 */
    bool allow_nan;            /* take gradients that are not finite */
    int64_t table_bytes;       /* for all tables; 0: what the machine has */
    size_t max_answer;         /* bytes of values; 0: what a message can have */
    void *self;                /* for the two below, which run on an owner */
    void (*applied)(void *self, const char *why);
    void (*answer)(void *self, fl_peer to, const fl_msg *m); /* m: borrowed */
} fl_pstore_opts;

/* Own: *out is new; what opts points to outlives it. Err: EINVAL, ENOENT. */
fl_err fl_pstore_new(const fl_pstore_opts *opts, fl_pstore **out) FL_MUST_CHECK;

/* Does what it was given, then ends the threads. NULL is fine. */
void fl_pstore_free(fl_pstore *s);

/* What the machine of a server wants. Thread: as that. */
const fl_store *fl_pstore_face(const fl_pstore *s);

/* What is under way, and what was refused. Thread: as the machine. */
void fl_pstore_waits(fl_pstore *s, fl_str *rows);

#endif
