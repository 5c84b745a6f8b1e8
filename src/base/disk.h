/* SPDX-License-Identifier: Apache-2.0 */
/* disk.h - files, through an interface that a simulator can replace.
 *
 *     FL_TRY(disk->read(disk, path, limit, &bytes));
 *
 * Every sentence names the path. ENOENT: it is not there; EIO: all else. */
#ifndef FL_BASE_DISK_H
#define FL_BASE_DISK_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

typedef struct fl_file fl_file;       /* open for appending, or reading */
typedef FL_VEC(char *) fl_file_names; /* each ends with fl_mem_free */
typedef struct fl_disk fl_disk;

/* Bytes that lie somewhere; a file is written from several of them. */
typedef struct fl_part {
    const void *at;
    size_t n;
} fl_part;

/* Thread: any for the real one; see memdisk.h for the other. */
struct fl_disk {
    void *self; /* the implementation's own */

    /* Bytes of a file. */
    fl_err (*size)(const fl_disk *d, const char *path, int64_t *bytes);

    /* The whole file into `out`, whose old content is dropped. EINVAL when it
     * is larger than `limit` bytes; ENOMEM rather than an end. */
    fl_err (*read)(const fl_disk *d, const char *path, size_t limit,
                   fl_str *out);

    /* The whole file at once: readers see the old one or the new one, also
     * after a crash. With `sync` it survives a loss of power once this
     * returns. */
    fl_err (*write)(const fl_disk *d, const char *path, const fl_part *part,
                    int64_t n, bool sync);

    fl_err (*mkdirs)(const fl_disk *d, const char *path); /* parents too */
    /* A new directory that only its owner may use. The path ends with XXXXXX,
     * which become letters that nobody can guess. */
    fl_err (*mkdtemp)(const fl_disk *d, char *path);

    /* Names (not paths) in a directory, sorted; appended to `out`. */
    fl_err (*list)(const fl_disk *d, const char *path, fl_file_names *out);

    /* A file or an empty directory. */
    fl_err (*remove)(const fl_disk *d, const char *path);
    fl_err (*rename)(const fl_disk *d, const char *from, const char *to);

    /* A file that grows, made when absent. Own: *out, until close. */
    fl_err (*open)(const fl_disk *d, const char *path, fl_file **out);
    fl_err (*append)(fl_file *f, const void *bytes, size_t n);
    fl_err (*sync)(fl_file *f);  /* what was appended survives */
    fl_err (*close)(fl_file *f); /* EIO: what was appended is not there */

    /* What lies at a path now survives a loss of power: the bytes of a file, or
     * the names in a directory. */
    fl_err (*persist)(const fl_disk *d, const char *path);

    /* The same for all files and names below a directory. It may take along
     * what others have written to the same file system: for many files this is
     * still faster than to ask for each. */
    fl_err (*persist_tree)(const fl_disk *d, const char *path);

    /* Be the only holder of the lock at a path, among all processes: a file
     * that is made here and removed with the lock. Waits up to `ms`
     * milliseconds; ETIMEOUT: another holds it. A process that dies holds none.
     * *out is NULL where the file system has no locks. Own: *out, until
     * unlock. */
    fl_err (*lock)(const fl_disk *d, const char *path, int ms, fl_file **out);
    void (*unlock)(fl_file *f); /* NULL is fine */

    /* A file to read parts of: it stays this one though another takes its
     * place. Own: *out, until close. */
    fl_err (*look)(const fl_disk *d, const char *path, fl_file **out,
                   int64_t *bytes);
    /* Exactly n bytes; EIO where it ends before them. */
    fl_err (*read_at)(fl_file *f, int64_t from, void *to, size_t n);
};

const fl_disk *fl_disk_real(void);

/* The same for a file that lies in one piece. */
fl_err fl_disk_write(const fl_disk *d, const char *path, const void *bytes,
                     size_t n, bool sync) FL_MUST_CHECK;

/* Make the directories above a file that is about to be written. */
fl_err fl_disk_make_parents(const fl_disk *d, const char *path) FL_MUST_CHECK;

/* A directory and all that is in it; it is fine if it is not there. */
fl_err fl_disk_remove_tree(const fl_disk *d, const char *path) FL_MUST_CHECK;

void fl_file_names_fini(fl_file_names *n);

#endif
