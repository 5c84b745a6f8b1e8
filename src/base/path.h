/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - names that become paths below a folder.
 *
 * Names of variables come from programs, and programs come from anywhere: a
 * name that leads out of its folder is refused here and nowhere else. */
#ifndef FL_BASE_PATH_H
#define FL_BASE_PATH_H

#include "base/err.h"

/* Check that a name is a path below a folder: "w" and "block/w" are; "", "/w",
 * "a//w", "../w" and "a/./w" are not. Names that a save uses for itself
 * (manifest.h) are refused, too. Err: EINVAL. */
fl_err fl_path_check(const char *name) FL_MUST_CHECK;

/* "dir/name"; an empty dir is the current directory. Own: the caller frees it
 * with fl_mem_free. */
char *fl_path_join(const char *dir, const char *name);

/* The folder of a file, "." where the path has none. Own: as above. */
char *fl_path_parent(const char *path);
const char *fl_path_base(const char *path); /* the part after the last slash */

#endif
