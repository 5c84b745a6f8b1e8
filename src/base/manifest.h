/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - the list of the files of a save, with their checksums.
 *
 *     fluid manifest 1
 *     kind model
 *     staged .save-0123456789abcdef   only until all files are in place
 *     file 48 1c2d3e4f fc_0.w_0       bytes, CRC-32C, name
 *     ...                             in the order of names
 *     end 5f6a7b8c                    CRC-32C of all bytes above this line
 *
 * In a name, a backslash is written \\ and the end of a line \n. Equal files
 * give an equal manifest: nothing in it tells when or by whom they were saved.
 * stage.h tells how it is written, folder.h how it is used. */
#ifndef FL_BASE_MANIFEST_H
#define FL_BASE_MANIFEST_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

#define FL_MANIFEST "__manifest__" /* file name of the manifest */
#define FL_STAGING                                                             \
    ".save-" /* prefix of the names of locks and staging folders */

typedef struct fl_listed {
    char *name; /* path of a file below the folder */
    int64_t size;
    uint32_t crc;
} fl_listed;

/* Zero is an empty manifest. Thread: one at a time. */
typedef struct fl_manifest {
    char *kind;   /* "model" */
    char *staged; /* the staging folder that files are moved from; or NULL */
    FL_VEC(fl_listed) file; /* sorted by name */
} fl_manifest;

void fl_manifest_fini(fl_manifest *m);

/* Add a file, or replace the one of that name. The name is copied. */
void fl_manifest_put(fl_manifest *m, const char *name, int64_t size,
                     uint32_t crc);
const fl_listed *fl_manifest_find(const fl_manifest *m, const char *name);

void fl_manifest_encode(const fl_manifest *m, fl_str *out); /* appends */

/* Error messages name `path`. Err: EPROTO (damaged), EINVAL (a version that
 * this program does not know). Own: *out, freed with fl_manifest_fini. */
fl_err fl_manifest_decode(const char *path, const char *text, size_t n,
                          fl_manifest *out) FL_MUST_CHECK;

#endif
