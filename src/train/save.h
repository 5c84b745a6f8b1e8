/* SPDX-License-Identifier: Apache-2.0 */
/* save.h - saves the whole model of a job whose parameters are on servers.
 *
 * A trainer gets the pieces from the servers and writes the same files as a
 * program without servers would. A large variable is copied in parts and is
 * never in memory as a whole. Servers load their pieces from such files; the
 * number of servers may be another one.
 *
 * In a synchronous job all variables of a save have the same version, because
 * no round can close while this trainer saves. */
#ifndef FL_TRAIN_SAVE_H
#define FL_TRAIN_SAVE_H

#include "base/stage.h"
#include "exec/scope.h"
#include "trainer/trainer.h"

/* The trainer that saves, and its own variables. */
typedef struct fl_saver {
    fl_stage *stage; /* the files of this save */
    fl_trainer *trainer;
    const fl_placement *place;
    fl_scope *scope;
} fl_saver;

/* Save the named variables of p, or if n < 0 all that a save includes: one file
 * each, or all in `file`. */
fl_err fl_saver_save(const fl_saver *s, const fl_program *p, const char *file,
                     int n, const char *const *names) FL_MUST_CHECK;

/* The program that was transpiled. Own: *out is new. */
fl_err fl_placement_origin(const fl_placement *place, const fl_registry *r,
                           fl_program **out) FL_MUST_CHECK;

/* Load the named pieces of a server, or if n < 0 all of them, from the files of
 * `dir`, which hold whole variables. A piece without a file is not changed.
 * Err: ENOENT if no piece has a file. */
fl_err fl_placement_load(const fl_disk *disk, const fl_program *server,
                         fl_scope *scope, const char *dir, int n,
                         const char *const *names) FL_MUST_CHECK;

#endif
