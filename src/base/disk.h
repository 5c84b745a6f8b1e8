/* SPDX-License-Identifier: Apache-2.0 */
/* disk.h - files, through an interface that a simulator can replace.
 *
 *     FL_TRY(disk->read(disk, path, limit, &bytes));
 *
 * Every error message names the path. ENOENT: it does not exist; EIO: any other
 * error. */
#ifndef FL_BASE_DISK_H
#define FL_BASE_DISK_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

typedef struct fl_file fl_file;       /* open for appending or reading */
typedef FL_VEC(char *) fl_file_names; /* each freed with fl_mem_free */
typedef struct fl_disk fl_disk;

/* Some bytes in memory. A file may be written from several parts. */
typedef struct fl_part {
    const void *at;
    size_t n;
} fl_part;

/* Thread: any for the real disk; memdisk.h has another one for tests. */
struct fl_disk {
    void *self; /* data of the implementation */

    /* The size of a file in bytes. */
    fl_err (*size)(const fl_disk *d, const char *path, int64_t *bytes);

    /* Read the whole file into `out`, whose old content is dropped. Err: EINVAL
     * if it is larger than `limit` bytes; ENOMEM. */
    fl_err (*read)(const fl_disk *d, const char *path, size_t limit,
                   fl_str *out);

    /* Replace the whole file: readers see the old file or the new one, also
     * after a crash. With `sync` the new file survives a loss of power once
     * this returns. */
    fl_err (*write)(const fl_disk *d, const char *path, const fl_part *part,
                    int64_t n, bool sync);

    fl_err (*mkdirs)(const fl_disk *d, const char *path); /* parents too */
    /* Make a directory that only its owner may use. The XXXXXX at the end of
     * the path are replaced by random letters. */
    fl_err (*mkdtemp)(const fl_disk *d, char *path);

    /* Append the names (not paths) in a directory, sorted, to `out`. */
    fl_err (*list)(const fl_disk *d, const char *path, fl_file_names *out);

    /* Remove a file or an empty directory. */
    fl_err (*remove)(const fl_disk *d, const char *path);
    fl_err (*rename)(const fl_disk *d, const char *from, const char *to);

    /* Open a file for appending; it is created if it does not exist. Own: *out,
     * until close. */
    fl_err (*open)(const fl_disk *d, const char *path, fl_file **out);
    fl_err (*append)(fl_file *f, const void *bytes, size_t n);
    fl_err (*sync)(fl_file *f); /* appended bytes now survive a loss of power */
    fl_err (*close)(fl_file *f); /* EIO: appended bytes may be lost */

    /* Sync the bytes of a file, or the names in a directory, so that they
     * survive a loss of power. */
    fl_err (*persist)(const fl_disk *d, const char *path);

    /* The same for all files and names below a directory. This may sync the
     * whole file system, which is faster than many single calls. */
    fl_err (*persist_tree)(const fl_disk *d, const char *path);

    /* Lock a path against all other processes. The lock is a file, which is
     * created here and removed by unlock. Waits up to `ms` milliseconds;
     * ETIMEOUT: another process holds it. A lock ends with its process. *out is
     * NULL if the file system has no locks. Own: *out, until unlock. */
    fl_err (*lock)(const fl_disk *d, const char *path, int ms, fl_file **out);
    void (*unlock)(fl_file *f); /* NULL is fine */

    /* Open a file to read parts of it. The handle keeps this file even if
     * another one replaces it at the path. Own: *out, until close. */
    fl_err (*look)(const fl_disk *d, const char *path, fl_file **out,
                   int64_t *bytes);
    /* Read exactly n bytes. Err: EIO if the file ends before them. */
    fl_err (*read_at)(fl_file *f, int64_t from, void *to, size_t n);
};

const fl_disk *fl_disk_real(void);

/* `write` of a file whose bytes are contiguous. */
fl_err fl_disk_write(const fl_disk *d, const char *path, const void *bytes,
                     size_t n, bool sync) FL_MUST_CHECK;

/* Make the directories of a path that is to be written. */
fl_err fl_disk_make_parents(const fl_disk *d, const char *path) FL_MUST_CHECK;

/* Remove a directory and everything in it. A missing directory is fine. */
fl_err fl_disk_remove_tree(const fl_disk *d, const char *path) FL_MUST_CHECK;

void fl_file_names_fini(fl_file_names *n);

#endif
