/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - snapshots of a job's servers on disk.
 *
 *     BASE/                        FLUID_SNAPSHOT_DIR
 *       snapshot-7/                numbers grow
 *         server-0/index           what the server holds; see snapshot.c
 *                  data            its tensors, then the rows of its tables
 *                  __manifest__
 *         server-1/..
 *         job                      version, mode, who wrote it
 *         coordinator              ranks and positions
 *         __manifest__             written last: now the snapshot is whole
 *       lock                       of server 0: snapshot_lock.h
 *
 * Both kinds of folders are written by stage.h: whatever is killed, a reader
 * finds them whole or not at all. The manifest of the snapshot lists those of
 * the servers, so that damage anywhere is found. If servers do not share the
 * directory, each has its own part in its own, and server 0 has the rest.
 *
 * One that a server could not restore is set aside as snapshot-7.damaged.
 *
 * A variable that is cut over servers is kept as pieces with the range of each:
 * so any number of servers can read it. */
#ifndef FL_STATE_SNAPSHOT_H
#define FL_STATE_SNAPSHOT_H

#include "base/disk.h"
#include "base/stage.h"

#include <stdbool.h>
#include <stdint.h>

#define FL_SNAPSHOT_KIND "snapshot"
#define FL_SNAPSHOT_PART "snapshot-part"

enum {
    FL_SNAPSHOT_KEEP = 2,  /* whole ones that are kept */
    FL_SNAPSHOT_RANK = 10, /* dimensions of a tensor at most */
};

/* --- the job as a whole --- */

typedef struct fl_snapshot_job {
    int64_t number;
    int64_t version; /* synchronous: rounds that are in it */
    int64_t generation;
    int servers, trainers;
    bool async;
    uint64_t state;  /* state id of server 0, which tells runs of a job apart */
    char digest[33]; /* of the job */
    char run[64];    /* FLUID_JOB of server 0; "": it had none */
} fl_snapshot_job;

/* The folder of a snapshot. Own: new. */
char *fl_snapshot_path(const char *base, int64_t number);

/* The highest number in the directory, whole, set aside or not, and the newest
 * snapshot that is whole; 0: there is none. A directory that is not there has
 * none. Err: EIO. */
fl_err fl_snapshot_find(const fl_disk *disk, const char *base, int64_t *last,
                        int64_t *whole) FL_MUST_CHECK;

/* Append the numbers of those that are whole, the oldest first. Err: EIO. */
typedef FL_VEC(int64_t) fl_snapshot_numbers;
fl_err fl_snapshot_list(const fl_disk *disk, const char *base,
                        fl_snapshot_numbers *out) FL_MUST_CHECK;

/* A server cannot restore it: rename it, so that nobody tries again. Own: *path
 * is its new path, also after an error. Err: EIO, ENOENT. */
fl_err fl_snapshot_set_aside(const fl_disk *disk, const char *base,
                             int64_t number, char **path) FL_MUST_CHECK;

/* All parts are written: make the snapshot whole. Then remove older ones except
 * FL_SNAPSHOT_KEEP, what was killed before it was whole, and what was set aside
 * before the oldest that is left. Err: EIO; ENOMEM:
 * a part is too large. */
fl_err fl_snapshot_commit(const fl_disk *disk, const char *base,
                          const fl_snapshot_job *job, const void *coordinator,
                          size_t n) FL_MUST_CHECK;

/* What a whole snapshot says. Own: *coordinator, which is checked. Err: ENOENT,
 * EPROTO: it is damaged; EIO. */
fl_err fl_snapshot_read(const fl_disk *disk, const char *base, int64_t number,
                        fl_snapshot_job *job,
                        fl_str *coordinator) FL_MUST_CHECK;

/* Server 0 begins snapshot `number`: remove older ones that are not whole. They
 * were given up, and their room may be needed. */
void fl_snapshot_clear(const fl_disk *disk, const char *base, int64_t number);

/* Remove this server's part of snapshots that are older than the newest
 * FL_SNAPSHOT_KEEP + 1, where server 0 does not see them. */
void fl_snapshot_tidy(const fl_disk *disk, const char *base, int server,
                      int64_t number);

/* --- a server's part --- */

/* A tensor, or a piece of one. */
typedef struct fl_snapshot_tensor {
    char *name;    /* on the server */
    char *var;     /* of the whole variable */
    int64_t first; /* index of the first element in the variable */
    int dtype;     /* fl_dtype */
    int rank;
    int64_t dim[FL_SNAPSHOT_RANK];
    int64_t at, bytes; /* in `data` */
} fl_snapshot_tensor;

/* Rows of a table: `rows` times an id of 8 bytes and `row` bytes. */
typedef struct fl_snapshot_table {
    char *name;
    int dtype;
    int64_t row;
    int64_t rows;
    int64_t at; /* in `data` */
} fl_snapshot_table;

typedef struct fl_snapshot_index {
    int server, servers;
    int64_t number, version;
    fl_str image; /* of the server's machine */
    FL_VEC(fl_snapshot_tensor) tensor;
    FL_VEC(fl_snapshot_table) table;
} fl_snapshot_index;

void fl_snapshot_index_fini(fl_snapshot_index *x);

/* Begin to write the part of a server: the file `data` is open. What a killed
 * process has left of this part is removed. fl_stage_fini in any case. */
fl_err fl_snapshot_begin(fl_stage *s, const fl_disk *disk, const char *base,
                         const fl_snapshot_index *x) FL_MUST_CHECK;

/* All of `data` is written. Err: EINVAL: a name has an end of line; EIO. */
fl_err fl_snapshot_end(fl_stage *s, const fl_snapshot_index *x) FL_MUST_CHECK;

/* A part that is read. */
typedef struct fl_snapshot_part {
    fl_snapshot_index index;
    const fl_disk *disk;
    fl_file *data;
} fl_snapshot_part;

/* Open the part of a server; all its bytes are checked. fl_snapshot_part_fini
 * after success. Err: ENOENT: it is not there; EPROTO: it is damaged; EIO. */
fl_err fl_snapshot_part_init(fl_snapshot_part *p, const fl_disk *disk,
                             const char *base, int64_t number,
                             int server) FL_MUST_CHECK;
void fl_snapshot_part_fini(fl_snapshot_part *p);

/* --- for those who look --- */

/* Call fn for the number of each snapshot, the oldest first. */
fl_err fl_snapshot_each(const fl_disk *disk, const char *base,
                        void (*fn)(void *user, int64_t number), void *user);

/* Call fn for the folder of each part that is there. */
fl_err fl_snapshot_parts(const fl_disk *disk, const char *path,
                         void (*fn)(void *user, const char *path), void *user);

#endif
