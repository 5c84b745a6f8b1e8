/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_file.h - libraries that are loaded while the program runs, if they are
 * there: parts of Fluid that need libraries which few hosts have. */
#ifndef FL_BASE_PLUGIN_FILE_H
#define FL_BASE_PLUGIN_FILE_H

#include <stdbool.h>

/* Load libfluid-NAME.so from the folder of libfluid.so or from the system's
 * library path. `global`: its symbols are seen by libraries that are loaded
 * later. NULL: not possible; dlerror says why. It stays loaded. Thread: any. */
void *fl_plugin_file_open(const char *name, bool global);

#endif
