/* SPDX-License-Identifier: Apache-2.0 */
/* save.h - one whole model from a job whose parameters lie on servers.
 *
 * A trainer asks the servers for what they keep, piece by piece, and writes it
 * as if it were its own: nobody can tell the files from those of one machine.
 * A large variable passes through in parts and is never whole in memory. A
 * server loads its pieces from such files, however many servers there were.
 *
 * In a synchronous job what is saved is one version of everything: no round can
 * close while this trainer saves. */
#ifndef FL_TRAIN_SAVE_H
#define FL_TRAIN_SAVE_H

#include "base/stage.h"
#include "exec/scope.h"
#include "trainer/trainer.h"

/* Who saves: a trainer at its place, and what it has itself. */
typedef struct fl_saver {
    fl_stage *stage; /* the files of this save */
    fl_trainer *trainer;
    const fl_placement *place;
    fl_scope *scope;
} fl_saver;

/* The variables of p that go to disk (n < 0), or those that are named: one file
 * each, or all in `file`. */
fl_err fl_saver_save(const fl_saver *s, const fl_program *p, const char *file,
                     int n, const char *const *names) FL_MUST_CHECK;

/* The program that was cut. Own: *out is new. */
fl_err fl_placement_origin(const fl_placement *place, const fl_registry *r,
                           fl_program **out) FL_MUST_CHECK;

/* What a server keeps (n < 0), or those pieces of it that are named, from the
 * files of `dir`, which have whole variables. What `dir` has not stays as it
 * is; ENOENT if it has none of them. */
fl_err fl_placement_load(const fl_disk *disk, const fl_program *server,
                         fl_scope *scope, const char *dir, int n,
                         const char *const *names) FL_MUST_CHECK;

#endif
