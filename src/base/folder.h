/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - the files of a folder as its last complete save left them.
 *
 * A folder without a manifest is read as it is: folders that PaddlePaddle saved
 * have none. Files that a manifest lists are compared with it, others are not.
 * While a save moves its files into place, files that are still in its staging
 * folder are read there. Reading changes nothing on the disk and takes no lock.
 */
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

/* Check that `dir` is a folder that can be read; fl_folder_init takes a missing
 * one for an empty one. Err: ENOENT: it does not exist; EIO. */
fl_err fl_folder_need(const fl_disk *disk, const char *dir) FL_MUST_CHECK;

/* Whether a save was completed since fl_folder_init. */
bool fl_folder_has_changed(const fl_folder *f);

/* Call `read` with the folder, and call it again if another save was completed
 * meanwhile, so that all files that it reads are of one save. `read` may be
 * called again after a success, too. */
typedef fl_err (*fl_folder_fn)(const fl_folder *f, void *user);
fl_err fl_folder_visit(const fl_disk *disk, const char *dir, fl_folder_fn read,
                       void *user) FL_MUST_CHECK;

/* Read a whole file. Err: EINVAL (larger than `limit` bytes), EPROTO (it
 * differs from what was saved), ENOENT. */
fl_err fl_folder_read(const fl_folder *f, const char *name, size_t limit,
                      fl_str *out) FL_MUST_CHECK;

/* The path of a file. The file may be moved before it is opened; if opening
 * gives ENOENT, call this again. Own: *path, freed with fl_mem_free. */
fl_err fl_folder_find(const fl_folder *f, const char *name,
                      char **path) FL_MUST_CHECK;
/* Compare all bytes of an open file with the manifest. */
fl_err fl_folder_check(const fl_folder *f, const char *name, fl_file *file,
                       int64_t bytes) FL_MUST_CHECK;

/* --- one file by its path ---
 *
 * The folder is the part before the last slash. A file that is written into a
 * folder with a manifest is entered in it. Elsewhere the file is written
 * atomically, without a manifest. */
fl_err fl_file_read(const fl_disk *disk, const char *path, size_t limit,
                    fl_str *out) FL_MUST_CHECK;
fl_err fl_file_write(const fl_disk *disk, const char *path, const fl_part *part,
                     int64_t n) FL_MUST_CHECK;

#endif
