/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - names that become paths below a folder. */
#include "base/path.h"

#include "base/manifest.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static bool is_part(const char *at, size_t n)
{
    return n && !(n == 1 && at[0] == '.') &&
           !(n == 2 && at[0] == '.' && at[1] == '.');
}

fl_err fl_path_check(const char *name)
{
    const char *at = name;
    for (bool more = true; more; at++) {
        const size_t n = strcspn(at, "/");
        if (!is_part(at, n))
            return fl_fail(FL_EINVAL,
                           "\"%s\" cannot be the name of a file in a folder: "
                           "it is empty, absolute, or has a part that is "
                           "empty, \".\" or \"..\"",
                           name);
        at += n;
        more = *at;
    }
    if (!strcmp(name, FL_MANIFEST) || fl_starts_with(name, FL_STAGING))
        return fl_fail(FL_EINVAL,
                       "\"%s\" cannot be the name of a saved file: saving "
                       "keeps this name for itself",
                       name);
    return FL_OK;
}

char *fl_path_join(const char *dir, const char *name)
{
    fl_str s = {0};
    if (!*dir)
        dir = ".";
    fl_str_printf(&s, "%s%s%s", dir, fl_ends_with(dir, "/") ? "" : "/", name);
    return fl_str_take(&s);
}

char *fl_path_parent(const char *path)
{
    fl_str dir = {0};
    const char *slash = strrchr(path, '/');
    if (!slash)
        fl_str_add(&dir, ".");
    else
        fl_str_bytes(&dir, path, slash == path ? 1 : (size_t)(slash - path));
    return fl_str_take(&dir);
}

const char *fl_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
