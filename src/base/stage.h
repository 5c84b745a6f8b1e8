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
 * for; a manifest is renamed into place when all are whole, and then they are
 * moved. Whoever reads by folder.h sees the old files up to that rename and the
 * new ones after it, though the process be killed or the power lost at any
 * point. docs/saving.md has the order of all steps.
 *
 * Any number of processes may stage files for one folder at once: each has a
 * staging folder of its own, and commits exclude each other. The last commit
 * wins as a whole. Files that a save does not write stay, in the folder and in
 * the manifest. */
#ifndef FL_BASE_STAGE_H
#define FL_BASE_STAGE_H

#include "base/disk.h"
#include "base/manifest.h"

/* Thread: one at a time. */
typedef struct fl_stage {
    const fl_disk *disk;
    char *dir;
    bool made;        /* the folder was not there before */
    char *path;       /* the staging folder; NULL: there is none */
    fl_file *alive;   /* the lock that tells it from one of a dead process */
    fl_manifest list; /* what was staged */
    bool committed;   /* readers see the new files */
    bool failed;      /* the disk refused something */
    /* The file that is being written. */
    fl_file *file;
    char *name; /* NULL: none */
    int64_t size;
    uint32_t crc;
} fl_stage;

/* Make the folder and a staging folder in it. What a killed save has left is
 * finished where it was committed, and removed where it was not. `kind` says
 * what the manifest is of; a folder holds one kind. fl_stage_fini in any
 * case. */
fl_err fl_stage_init(fl_stage *s, const fl_disk *disk, const char *dir,
                     const char *kind) FL_MUST_CHECK;

/* One file, from several parts; or as it comes. One is open at a time. A name
 * is a path below the folder (fl_path_check). */
fl_err fl_stage_write(fl_stage *s, const char *name, const fl_part *part,
                      int64_t n) FL_MUST_CHECK;
fl_err fl_stage_open(fl_stage *s, const char *name) FL_MUST_CHECK;
fl_err fl_stage_append(fl_stage *s, const void *bytes, size_t n) FL_MUST_CHECK;
fl_err fl_stage_close(fl_stage *s) FL_MUST_CHECK;

/* The path of a file for notes of the caller's; it is gone after the save.
 * Own: the caller's, fl_mem_free. */
char *fl_stage_scratch(const fl_stage *s);

/* All that was staged becomes visible. After a failure s->committed tells
 * whether readers see the new files: if so, some were not moved into place,
 * and the next save does it. */
fl_err fl_stage_commit(fl_stage *s) FL_MUST_CHECK;

/* What was not committed is removed. The last sentence stays. */
void fl_stage_fini(fl_stage *s);

#endif
