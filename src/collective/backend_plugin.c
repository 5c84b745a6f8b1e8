/* SPDX-License-Identifier: Apache-2.0 */
/* backend_plugin.c - a library as a backend: FLUID_COLLECTIVE=mpi loads
 * libfluid-mpi.so from the folder of libfluid.so or from the system's library
 * path. */
#include "collective/backend.h"

#include "base/mem.h"
#include "base/plugin_file.h"
#include "collective/plugin.h"

#include <dlfcn.h>
#include <string.h>

typedef struct loaded {
    const fl_plugin *plugin;
    void *self;
} loaded;

static fl_err fail_call(const loaded *l, int code, const char *why)
{
    return code ? fl_fail(FL_EIO, "%s: %s", l->plugin->name, why) : FL_OK;
}

static fl_err find_type(fl_dtype type, fl_plugin_type *out)
{
    switch (type) {
    case FL_F32:
        *out = FL_PLUGIN_F32;
        return FL_OK;
    case FL_F64:
        *out = FL_PLUGIN_F64;
        return FL_OK;
    case FL_I32:
        *out = FL_PLUGIN_I32;
        return FL_OK;
    case FL_I64:
        *out = FL_PLUGIN_I64;
        return FL_OK;
    default:
        return fl_fail(FL_ETYPE,
                       "ranks reduce f32, f64, i32 and i64, not dtype %d",
                       (int)type);
    }
}

static fl_plugin_reduce find_reduce(fl_reduce how)
{
    static const fl_plugin_reduce all[] = {
        [FL_REDUCE_SUM] = FL_PLUGIN_SUM,
        [FL_REDUCE_MAX] = FL_PLUGIN_MAX,
        [FL_REDUCE_MIN] = FL_PLUGIN_MIN,
        [FL_REDUCE_PROD] = FL_PLUGIN_PROD,
    };
    return all[how];
}

static fl_err plugin_all_reduce(void *self, fl_reduce how, fl_dtype type,
                                void *x, int64_t n)
{
    const loaded *l = self;
    char why[FL_PLUGIN_WHY] = "";
    fl_plugin_type t = FL_PLUGIN_F32;
    FL_TRY(find_type(type, &t));
    return fail_call(
        l, l->plugin->all_reduce(l->self, find_reduce(how), t, x, n, why), why);
}

static fl_err plugin_reduce_scatter(void *self, fl_reduce how, fl_dtype type,
                                    void *x, int64_t n)
{
    const loaded *l = self;
    char why[FL_PLUGIN_WHY] = "";
    fl_plugin_type t = FL_PLUGIN_F32;
    FL_TRY(find_type(type, &t));
    return fail_call(
        l, l->plugin->reduce_scatter(l->self, find_reduce(how), t, x, n, why),
        why);
}

static fl_err plugin_all_gather(void *self, void *x, const size_t *at)
{
    const loaded *l = self;
    char why[FL_PLUGIN_WHY] = "";
    return fail_call(l, l->plugin->all_gather(l->self, x, at, why), why);
}

static fl_err plugin_broadcast(void *self, int root, void *x, size_t size)
{
    const loaded *l = self;
    char why[FL_PLUGIN_WHY] = "";
    return fail_call(l, l->plugin->broadcast(l->self, root, x, size, why), why);
}

static fl_err plugin_barrier(void *self)
{
    const loaded *l = self;
    char why[FL_PLUGIN_WHY] = "";
    return fail_call(l, l->plugin->barrier(l->self, why), why);
}

static void plugin_about(void *self, const fl_mesh_subject *about)
{
    (void)self;
    (void)about; /* a plug-in writes its own messages */
}

static void plugin_fail(void *self, const char *why)
{
    const loaded *l = self;
    l->plugin->fail(l->self, why);
}

/* The library stays loaded: MPI cannot be started twice in a process. */
static void plugin_free(void *self)
{
    loaded *l = self;
    l->plugin->leave(l->self);
    fl_mem_free(l);
}

fl_err fl_backend_plugin(const char *name, const fl_mesh_opts *o, fl_backend *b)
{
    char why[FL_PLUGIN_WHY] = "";
    void *self = NULL;
    int local = 1;
    if (!*name || strspn(name, "abcdefghijklmnopqrstuvwxyz") != strlen(name))
        return fl_fail(FL_EINVAL,
                       "FLUID_COLLECTIVE is \"%s\", expected ring or mpi",
                       name);
    /* parts of MPI need its symbols to be global */
    void *library = fl_plugin_file_open(name, true);
    if (!library)
        return fl_fail(FL_ENOENT,
                       "FLUID_COLLECTIVE is \"%s\", but its library cannot be "
                       "loaded: %s; it is built where libopenmpi-dev is there "
                       "(scripts/deps mpi; make)",
                       name, dlerror());
    const fl_plugin *plugin = dlsym(library, FL_PLUGIN_SYMBOL);
    if (!plugin || plugin->abi != FL_PLUGIN_ABI)
        return fl_fail(FL_EINVAL,
                       "libfluid-%s.so is of another version of Fluid", name);
    if (plugin->join(o->rank, o->world, &self, &local, why))
        return fl_fail(FL_EIO, "%s: %s", name, why);
    loaded *l = fl_mem_alloc(sizeof *l);
    *l = (loaded){plugin, self};
    *b = (fl_backend){
        .self = l,
        .local = local,
        .all_reduce = plugin_all_reduce,
        .reduce_scatter = plugin_reduce_scatter,
        .all_gather = plugin_all_gather,
        .broadcast = plugin_broadcast,
        .barrier = plugin_barrier,
        .about = plugin_about,
        .fail = plugin_fail,
        .free = plugin_free,
    };
    return FL_OK;
}
