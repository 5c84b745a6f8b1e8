/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h - records on a disk, which survive the loss of the host.
 *
 *     FOLDER/
 *       journal-00000000000000000001   records 1, 2, ..
 *       journal-00000000000000000417   records 417, ..: it was turned there
 *
 * A record has a kind, bytes and a running number. fl_journal_add copies it and
 * returns; a thread of the journal writes all records that wait, as a group,
 * and syncs the file once. So the number of syncs does not grow with the number
 * of callers. Then the callback says up to which number all is on the disk.
 *
 * Readers stop at the first record that is not whole, and say where and why. A
 * group that was not written as a whole, because the disk was full, is written
 * again into a new file. So are the records of a process that goes on after a
 * loss: no file is ever cut or changed.
 *
 * The disk is full: records wait in memory until fl_journal_retry finds room;
 * fl_journal_check tells callers not to add more. A write fails otherwise, or
 * a sync fails: nobody knows what of the file is on the disk, so the journal
 * has failed for good, and no more is ever reported as written. */
#ifndef FL_STATE_JOURNAL_H
#define FL_STATE_JOURNAL_H

#include "base/disk.h"

#include <stdbool.h>
#include <stdint.h>

/* Thread: any. */
typedef struct fl_journal fl_journal;

typedef struct fl_journal_opts {
    const fl_disk *disk;
    const char *folder; /* it is made if it is not there */
    uint64_t owner;     /* id of the state that the records belong to */
    uint64_t next;      /* number of the first record; at least 1 */
    size_t most;        /* bytes that may wait for the disk; 0: 64 MB */
    /* All records up to this number are on the disk. It may be called with the
     * same number again. Thread: that of the journal, with no lock. NULL:
     * nobody is told. */
    void (*written)(void *user, uint64_t number);
    /* The disk is full (ENOMEM), or the journal has failed for good (EIO).
     * Thread: as above. NULL: nobody is told. */
    void (*failed)(void *user, fl_err err, const char *why);
    void *user;
} fl_journal_opts;

/* Begin a new file; the files that are there stay. Own: *out is new. Err: EIO,
 * ENOENT. Blocks: until the file is on the disk. */
fl_err fl_journal_new(const fl_journal_opts *opts,
                      fl_journal **out) FL_MUST_CHECK;

/* Write what waits, unless the journal has failed or the disk is full, and
 * close the file. Blocks. NULL is fine. */
void fl_journal_free(fl_journal *j);

/* Whether there is room for a record of `bytes` bytes. Err: ENOMEM: too much
 * waits for the disk, or the disk is full; ask again later; EIO: the journal
 * has failed. */
fl_err fl_journal_check(fl_journal *j, size_t bytes) FL_MUST_CHECK;

/* Append a record, which consists of n parts. *number is the number that it
 * gets. It is accepted also if there is no room for it: large records should
 * ask fl_journal_check first. Err: EIO: the journal has failed. */
fl_err fl_journal_add(fl_journal *j, uint32_t kind, const fl_part *part, int n,
                      uint64_t *number) FL_MUST_CHECK;

/* Bytes of all records since the last fl_journal_turn. */
uint64_t fl_journal_bytes(fl_journal *j);

/* The number up to which all records are on the disk. */
uint64_t fl_journal_written(fl_journal *j);

/* Wait until the record is on the disk. Err: ETIMEOUT after `timeout` ns;
 * ENOMEM: the disk is full; EIO: the journal has failed. */
fl_err fl_journal_wait(fl_journal *j, uint64_t number,
                       int64_t timeout) FL_MUST_CHECK;

/* Look whether the disk has room again; does nothing unless it was full. The
 * callbacks tell the result. */
void fl_journal_retry(fl_journal *j);

/* Write the records that are added from now on to a new file, as at the cut of
 * a snapshot. *first is the number of the first of them. */
void fl_journal_turn(fl_journal *j, uint64_t *first);

/* Remove files that have only records below `first`: a snapshot has them. */
void fl_journal_drop(fl_journal *j, uint64_t first);

/* --- reading --- */

typedef struct fl_journal_record {
    uint64_t number;
    uint32_t kind;
    const void *bytes;
    size_t n;
} fl_journal_record;

/* What was found. */
typedef struct fl_journal_end {
    uint64_t next; /* number of the first record that is not there */
    bool torn;     /* bytes follow the last whole record */
    int64_t at;    /* where, in the last such file */
    char why[256]; /* file, offset and reason; "": nothing is torn */
} fl_journal_end;

/* Call fn for each record from the number `from` on, in order. An error of fn
 * ends it. Err: EINVAL: a file belongs to another state; ENOENT: the oldest
 * file begins after `from`; EIO, ENOMEM; fn's. No file is fine. */
fl_err fl_journal_read(const fl_disk *disk, const char *folder, uint64_t owner,
                       uint64_t from,
                       fl_err (*fn)(void *user, const fl_journal_record *r),
                       void *user, fl_journal_end *end) FL_MUST_CHECK;

/* Whether a journal has records, or lacks the file that begins with `first`.
 * Err: EIO. */
fl_err fl_journal_has_more(const fl_disk *disk, const char *folder,
                           uint64_t first, bool *has) FL_MUST_CHECK;

/* Remove all files of a journal. Err: EIO. */
fl_err fl_journal_remove(const fl_disk *disk, const char *folder) FL_MUST_CHECK;

#endif
