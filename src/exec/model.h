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

/* n < 0: every variable that goes to disk; else those that are named. */
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
