/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - names that become paths below a folder.
 *
 * Names of variables come from programs, and programs come from anywhere: a
 * name that leads out of its folder is refused here and nowhere else. */
#ifndef FL_BASE_PATH_H
#define FL_BASE_PATH_H

#include "base/err.h"

/* Is it a path below a folder: "w", "block/w", but not "", "/w", "a//w",
 * "../w" or "a/./w"? Names that a save needs for itself (manifest.h) are
 * refused, too. EINVAL names the name. */
fl_err fl_path_check(const char *name) FL_MUST_CHECK;

/* "dir/name"; an empty dir is the current one. Own: the caller's,
 * fl_mem_free. */
char *fl_path_join(const char *dir, const char *name);

/* The folder of a file, "." where the path has none. Own: as above. */
char *fl_path_parent(const char *path);
const char *fl_path_base(const char *path); /* what is behind the last slash */

#endif
