/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - files that become visible together, or not at all.
 *
 *     fl_stage s;
 *     fl_err err = fl_stage_init(&s, disk, "model", "model");
 *     if (!err)
 *         err = fl_stage_write(&s, "w", parts, n);
 *     if (!err)
 *         err = fl_stage_commit(&s);
 *     fl_stage_fini(&s);
 *
 * New files are written into a staging folder inside the folder that they are
 * for. When all are complete, a manifest is renamed into place, and then the
 * files are moved. Readers that use folder.h see the old files before that
 * rename and the new ones after it, even if the process is killed or the power
 * is lost at any point. docs/saving.md has the order of all steps.
 *
 * Any number of processes may stage files for one folder at once: each has a
 * staging folder of its own, and commits exclude each other. The last commit
 * wins as a whole. Files that a save does not write stay, in the folder and in
 * the manifest, unless the save replaces the folder. */
#ifndef FL_BASE_STAGE_H
#define FL_BASE_STAGE_H

#include "base/disk.h"
#include "base/manifest.h"

/* Thread: one at a time. */
typedef struct fl_stage {
    const fl_disk *disk;
    char *dir;
    bool made;        /* the folder was created by this save */
    char *path;       /* the staging folder; NULL: there is none */
    fl_file *alive;   /* a lock that this process holds while it lives, so that
                         others do not remove the staging folder */
    fl_manifest list; /* the staged files */
    bool replaces;    /* set by the caller, after fl_stage_init: files that this
                         save does not write are removed from the folder */
    bool committed;   /* readers see the new files */
    bool failed;      /* the disk returned an error */
    /* The file that is being written. */
    fl_file *file;
    char *name; /* NULL: none */
    int64_t size;
    uint32_t crc;
} fl_stage;

/* Make the folder and a staging folder in it. Earlier saves that were killed
 * are finished if they were committed, and removed otherwise. `kind` says what
 * the folder holds; a folder holds one kind. Call fl_stage_fini also after an
 * error. */
fl_err fl_stage_init(fl_stage *s, const fl_disk *disk, const char *dir,
                     const char *kind) FL_MUST_CHECK;

/* Write a file from several parts; or open one, append to it and close it. Only
 * one file is open at a time. A name is a path below the folder
 * (fl_path_check). */
fl_err fl_stage_write(fl_stage *s, const char *name, const fl_part *part,
                      int64_t n) FL_MUST_CHECK;
fl_err fl_stage_open(fl_stage *s, const char *name) FL_MUST_CHECK;
fl_err fl_stage_append(fl_stage *s, const void *bytes, size_t n) FL_MUST_CHECK;
fl_err fl_stage_close(fl_stage *s) FL_MUST_CHECK;

/* The path of a temporary file for the caller; it is removed after the save.
 * Own: the caller frees the path with fl_mem_free. */
char *fl_stage_scratch(const fl_stage *s);

/* Make all staged files visible. After an error, s->committed says whether
 * readers see the new files: if so, some were not moved into place yet, and the
 * next save moves them. */
fl_err fl_stage_commit(fl_stage *s) FL_MUST_CHECK;

/* Remove what was not committed. The last error message is kept. */
void fl_stage_fini(fl_stage *s);

#endif
