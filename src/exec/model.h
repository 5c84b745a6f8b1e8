/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - saving and loading in Paddle's layout, inside.
 *
 * fluid.h has what users call; here the same with what an engine holds. */
#ifndef FL_EXEC_MODEL_H
#define FL_EXEC_MODEL_H

#include "base/folder.h"
#include "base/stage.h"
#include "exec/scope.h"
#include "graph/program.h"

/* Does a variable's value go to disk with the others? */
bool fl_var_saved(const fl_var *v);

typedef FL_VEC(const fl_var *) fl_vars;

/* n < 0: every variable that goes to disk; else those that are named. In the
 * order of names, which a combined file has. */
fl_err fl_vars_list(const fl_program *p, int n, const char *const *names,
                    fl_vars *out) FL_MUST_CHECK;

/* The values of such variables become files of a save: one for each, or all in
 * `file`. */
fl_err fl_vars_save(fl_stage *stage, const fl_program *p, fl_scope *s,
                    const char *file, int n,
                    const char *const *names) FL_MUST_CHECK;

/* Values that were read and are in no scope yet: a bad file changes nothing.
 * Zero has none; reading drops what it had. */
typedef struct fl_loaded {
    fl_vars list;
    fl_value *value; /* by list */
} fl_loaded;

void fl_loaded_fini(fl_loaded *l);
fl_err fl_loaded_read(fl_loaded *l, const fl_folder *f, const fl_program *p,
                      const char *file, int n,
                      const char *const *names) FL_MUST_CHECK;
void fl_loaded_give(fl_loaded *l, fl_scope *s); /* the values become s's */

/* All of that: from the files of `dir` into a scope. */
fl_err fl_vars_load(const fl_disk *disk, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names) FL_MUST_CHECK;

/* Names of its feeds and fetches by column, into its arena. EPROTO when a
 * column is missing or stands twice. */
fl_err fl_model_ports(fl_model *m, const char *path) FL_MUST_CHECK;

#endif
