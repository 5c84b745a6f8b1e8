/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - saving and loading in Paddle's layout, for use inside the library.
 *
 * fluid.h has the functions that users call. */
#ifndef FL_EXEC_MODEL_H
#define FL_EXEC_MODEL_H

#include "base/folder.h"
#include "base/stage.h"
#include "exec/scope.h"
#include "graph/program.h"

/* Whether a save of all variables includes this one. */
bool fl_var_saved(const fl_var *v);

typedef FL_VEC(const fl_var *) fl_vars;

/* List the named variables, or if n < 0 all that a save includes. They are
 * sorted by name, which is the order in a combined file. */
fl_err fl_vars_list(const fl_program *p, int n, const char *const *names,
                    fl_vars *out) FL_MUST_CHECK;

/* Write the values of these variables to files of a save: one file each, or all
 * in `file` (NULL: one each). */
fl_err fl_vars_save(fl_stage *stage, const fl_program *p, fl_scope *s,
                    const char *file, int n,
                    const char *const *names) FL_MUST_CHECK;

/* Values that were read from files and are in no scope yet, so that a bad file
 * changes nothing. Zero is empty. fl_loaded_read replaces what it holds. */
typedef struct fl_loaded {
    fl_vars list;
    fl_value *value; /* value of each variable in `list` */
} fl_loaded;

void fl_loaded_fini(fl_loaded *l);
fl_err fl_loaded_read(fl_loaded *l, const fl_folder *f, const fl_program *p,
                      const char *file, int n,
                      const char *const *names) FL_MUST_CHECK;
void fl_loaded_give(fl_loaded *l, fl_scope *s); /* moves the values to s */

/* Read the files of `dir` into a scope. */
fl_err fl_vars_load(const fl_disk *disk, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names) FL_MUST_CHECK;

/* Set the names of the model's feeds and fetches, in the order of their
 * columns. Own: the model's arena. Err: EPROTO if a column is missing or occurs
 * twice. */
fl_err fl_model_ports(fl_model *m, const char *path) FL_MUST_CHECK;

#endif
