/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - the files of a folder as its last complete save left them.
 *
 * A folder without a manifest is read as it is: models of the original have
 * none. Files that a manifest lists are compared with it, others are not. While
 * a save moves its files into place, those that still lie in its staging folder
 * are read there. Reading changes nothing on the disk and takes no lock. */
#ifndef FL_BASE_FOLDER_H
#define FL_BASE_FOLDER_H

#include "base/disk.h"
#include "base/manifest.h"

/* Thread: one at a time. */
typedef struct fl_folder {
    const fl_disk *disk;
    char *dir;
    char *path;           /* of the manifest */
    fl_str text;          /* of the manifest */
    fl_manifest manifest; /* kind NULL: there is none */
} fl_folder;

/* Err: EPROTO, EINVAL as of fl_manifest_decode; EIO. */
fl_err fl_folder_init(fl_folder *f, const fl_disk *disk,
                      const char *dir) FL_MUST_CHECK;
void fl_folder_fini(fl_folder *f);

/* Has a save been completed since then? */
bool fl_folder_has_changed(const fl_folder *f);

/* Call read with the folder, and once more from the start when it failed
 * because another save was completed meanwhile: what it reads is of one save.
 * It must be able to run again after a success, too. */
typedef fl_err (*fl_folder_fn)(const fl_folder *f, void *user);
fl_err fl_folder_visit(const fl_disk *disk, const char *dir, fl_folder_fn read,
                       void *user) FL_MUST_CHECK;

/* A whole file. EINVAL when it is larger than `limit` bytes. EPROTO: it is not
 * the one that was saved. ENOENT. */
fl_err fl_folder_read(const fl_folder *f, const char *name, size_t limit,
                      fl_str *out) FL_MUST_CHECK;

/* Where a file lies. It may be moved into place before it is opened: then
 * that gives ENOENT, and it is to be found again. Own: *path, fl_mem_free. */
fl_err fl_folder_find(const fl_folder *f, const char *name,
                      char **path) FL_MUST_CHECK;
/* All bytes of a file that is open are compared with the manifest. */
fl_err fl_folder_check(const fl_folder *f, const char *name, fl_file *file,
                       int64_t bytes) FL_MUST_CHECK;

/* --- one file by its path ---
 *
 * The folder is what stands before the last slash. A file that is written into
 * a folder with a manifest is entered there; else it is written alone, whole or
 * not at all. */
fl_err fl_file_read(const fl_disk *disk, const char *path, size_t limit,
                    fl_str *out) FL_MUST_CHECK;
fl_err fl_file_write(const fl_disk *disk, const char *path, const fl_part *part,
                     int64_t n) FL_MUST_CHECK;

#endif
