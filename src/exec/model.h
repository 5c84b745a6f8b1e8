/* model.h - saving and loading in Paddle's layout, inside.
 *
 * fluid.h has what users call; here the same with what an engine holds. */
#ifndef FL_EXEC_MODEL_H
#define FL_EXEC_MODEL_H

#include "base/disk.h"
#include "exec/scope.h"
#include "graph/program.h"

/* Does a variable's value go to disk with the others? */
bool fl_var_saved(const fl_var *v);

typedef FL_VEC(const fl_var *) fl_vars;

/* n < 0: every variable that goes to disk; else those that are named. In the
 * order of names, which a combined file has. */
fl_err fl_vars_list(const fl_program *p, int n, const char *const *names,
                    fl_vars *out) FL_MUST_CHECK;

/* The same variables to files and back. */
fl_err fl_vars_save(const fl_disk *disk, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names) FL_MUST_CHECK;
fl_err fl_vars_load(const fl_disk *disk, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names) FL_MUST_CHECK;

/* Names of its feeds and fetches by column, into its arena. EPROTO when a
 * column is missing or stands twice. */
fl_err fl_model_ports(fl_model *m, const char *path) FL_MUST_CHECK;

#endif
