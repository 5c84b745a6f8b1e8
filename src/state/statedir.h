/* SPDX-License-Identifier: Apache-2.0 */
/* statedir.h - the directory in which a server keeps its memory.
 *
 *     BASE/                    FLUID_STATE_DIR, else /dev/shm/fluid.UID, else
 *                              XDG_RUNTIME_DIR/fluid; mode 0700
 *       JOB-server-J/          first digits of the job's digest; number of the
 *                              server
 *       pserver-HOST:PORT/     of a server that is started without a job
 *         lock                 a record lock; its text says who holds it
 *         head                 what the state belongs to, and whether it is
 *                              complete
 *         setup                of a server that is started without a job: the
 *                              job (pserver/arrival.h)
 *         ..                   mapped files (mapping.h)
 *
 * A state that is not complete ("ready") when its process dies is made anew by
 * the next one. A state that belongs to something else is refused and never
 * removed. */
#ifndef FL_STATE_STATEDIR_H
#define FL_STATE_STATEDIR_H

#include "state/mapping.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_statedir fl_statedir;

typedef struct fl_statedir_opts {
    const char *base; /* NULL: FLUID_STATE_DIR, or the first directory of the
                         list above that has room */
    const char *name; /* of the directory; NULL: that of job and server */
    bool existing;    /* a state that is not there is an error */
    /* If no state is there: make one in the directory `path`, from a copy that
     * is elsewhere. *filled: there was a copy; the state counts as found, and
     * is complete when fl_statedir_ready is called. NULL: there is none. */
    fl_err (*fill)(void *self, const char *name, const char *path,
                   bool *filled);
    void *fill_self;
    const char *job;      /* digest as hexadecimal digits */
    int server;           /* number of the server */
    int owners;           /* threads that own parameters */
    uint64_t id;          /* state id of a new state; not 0 */
    size_t need;          /* bytes that a new state takes at first */
    int64_t wait;         /* ns to wait for a process that holds the lock */
    int64_t wait_serving; /* the same if that process serves */
    bool (*serves)(void *user); /* whether it does; NULL: it does not */
    bool (*poll)(void *user);   /* true ends the wait; NULL: nobody ends it */
    void *user;
} fl_statedir_opts;

/* Take the lock and find the state, or make a new one. Own: *out is new. Err:
 * EINVAL: the state belongs to something else; ETIMEOUT: another process holds
 * it; ENOMEM: no directory has room; ENOENT: there is none that exists; EINTR:
 * poll ended the wait; EIO. */
fl_err fl_statedir_open(const fl_statedir_opts *opts,
                        fl_statedir **out) FL_MUST_CHECK;

/* Whether a state is complete, is that of the job, server and owners of opts,
 * and waits for its server: its job has not ended, and no process holds it. */
bool fl_statedir_waits(const fl_statedir_opts *opts);

/* The path of the complete state of that name. Own: *out is new. Err: ENOENT:
 * there is none. */
fl_err fl_statedir_find(const char *name, char **out) FL_MUST_CHECK;

/* Release the lock. The files stay. NULL is fine. */
void fl_statedir_close(fl_statedir *d);

/* Whether an earlier process left a complete state, or a copy of it. */
bool fl_statedir_found(const fl_statedir *d);

/* All parts of a new state have their first content, or one that was filled has
 * all that its copy lacks: from now on it is used. */
void fl_statedir_ready(fl_statedir *d);

/* Note whether the job has ended, for those who look and for a process that
 * finds the state because this one was killed before it had removed it. */
void fl_statedir_set_over(fl_statedir *d, bool over);
bool fl_statedir_is_over(const fl_statedir *d);

/* Remove all files and the directory; the lock stays held until close. */
void fl_statedir_remove(fl_statedir *d);

/* Whether the files still have their names. */
bool fl_statedir_exists(const fl_statedir *d);

const char *fl_statedir_path(const fl_statedir *d);
uint64_t fl_statedir_id(const fl_statedir *d);
int64_t fl_statedir_incarnation(const fl_statedir *d); /* from 1 on */

/* A file of the state: of `size` zeroed bytes in a new state, as it is in a
 * state that was found. Own: *out has a new reference. Err: those of
 * mapping.h; EINVAL: a file that was found is smaller than `size`. */
fl_err fl_statedir_map(fl_statedir *d, const char *name, size_t size,
                       size_t reserve, fl_mapping **out) FL_MUST_CHECK;

/* A new file, also in a state that was found; one of that name is replaced. */
fl_err fl_statedir_make(fl_statedir *d, const char *name, size_t size,
                        fl_mapping **out) FL_MUST_CHECK;
void fl_statedir_drop(fl_statedir *d, const char *name); /* unlink a file */

/* Call fn for the name of each file of the state. */
void fl_statedir_visit(fl_statedir *d, void (*fn)(void *user, const char *name),
                       void *user);

/* Make a directory that only this user may enter, or check that nobody else may
 * write to it. Err: EINVAL: others may; EIO. */
fl_err fl_statedir_make_private(const char *path) FL_MUST_CHECK;

/* --- any state, for those who look --- */

typedef struct fl_statedir_info {
    char job[33];
    int server;
    int64_t incarnation;
    bool ready, over;
    int64_t bytes;     /* room that all files take */
    int64_t since;     /* seconds since 1970: when the holder took it, or when
                          the last one did */
    int pid;           /* of the process that holds it; 0: nobody does */
    char command[256]; /* of the last process that held it */
    char launch[64];   /* FLUID_JOB of the same process; "": it had none */
} fl_statedir_info;

/* Look at a state directory of any job. Err: ENOENT, EIO; EINVAL: it is none.
 */
fl_err fl_statedir_look(const char *path, fl_statedir_info *out) FL_MUST_CHECK;

/* Whether a directory of that name can be a state; its journal has the same. */
bool fl_statedir_is_name(const char *name);

/* Look at what a process that was killed while it made or removed a state has
 * left: files of a state, without a head, or nothing. Only bytes, since, pid
 * and command are set. Err: ENOENT, EIO; EINVAL: the directory has the name of
 * no state, or other files. */
fl_err fl_statedir_look_at_rest(const char *path,
                                fl_statedir_info *out) FL_MUST_CHECK;

/* Remove a state, or what is left of one. Err: EINVAL: a process holds it, or
 * it is neither; ENOENT, EIO. */
fl_err fl_statedir_discard(const char *path) FL_MUST_CHECK;

/* Remove the states of servers that a launcher has started and that have ended.
 * `launch`: FLUID_JOB of these servers. */
void fl_statedir_sweep(const char *launch);

/* Call fn for the path of each state in the directories of the list above. */
void fl_statedir_each(void (*fn)(void *user, const char *path), void *user);

#endif
