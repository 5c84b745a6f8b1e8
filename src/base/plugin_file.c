/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_file.c - where plug-ins lie. */
#include "base/plugin_file.h"

#include "base/str.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

/* The folder of this library, with a slash at its end; "": not known. */
static void find_folder(fl_str *out)
{
    Dl_info info;
    const char *slash = dladdr((void *)(uintptr_t)fl_plugin_file_open, &info)
                            ? strrchr(info.dli_fname, '/')
                            : NULL;
    if (slash)
        fl_str_bytes(out, info.dli_fname, (size_t)(slash + 1 - info.dli_fname));
}

void *fl_plugin_file_open(const char *name, bool global)
{
    const int how = RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL);
    fl_str path = {0};
    find_folder(&path);
    fl_str_printf(&path, "libfluid-%s.so", name);
    void *library = dlopen(path.at, how);
    if (!library && strrchr(path.at, '/'))
        library = dlopen(strrchr(path.at, '/') + 1, how);
    fl_str_fini(&path);
    return library;
}
