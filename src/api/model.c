/* model.c - programs and models on the engine's disk. */
#include "api/engine.h"

#include "base/log.h"
#include "base/mem.h"
#include "exec/away.h"
#include "exec/model.h"
#include "train/save.h"

enum {
    LARGEST_PROGRAM = 256 << 20 /* bytes; a program file has no data in it */
};

fl_program *fl_program_new(fl_engine *e)
{
    return fl_program_make(e->registry);
}

fl_err fl_program_save(fl_engine *e, const fl_program *p, const char *path)
{
    void *bytes;
    size_t n;
    FL_TRY(fl_program_encode(p, &bytes, &n));
    fl_err err = fl_disk_make_parents(e->disk, path);
    if (!err)
        err = fl_disk_write(e->disk, path, bytes, n, false);
    fl_mem_free(bytes);
    return err;
}

fl_err fl_program_read(fl_engine *e, const char *name, const void *bytes,
                       size_t n, fl_program **out)
{
    return fl_program_decode(e->registry, name, bytes, n, out);
}

fl_err fl_program_load(fl_engine *e, const char *path, fl_program **out)
{
    fl_str bytes = {0};
    fl_err err = e->disk->read(e->disk, path, LARGEST_PROGRAM, &bytes);
    if (!err)
        err = fl_program_read(e, path, bytes.at, bytes.n, out);
    fl_str_fini(&bytes);
    return err;
}

/* A trainer's program: what it lacks is on servers. */
static bool is_trainers(const fl_program *p)
{
    return p->place && p->place->origin_size;
}

/* The job that keeps what p lacks here, or NULL. */
static const fl_place *keeper_of(fl_engine *e, const fl_program *p, fl_scope *s)
{
    const fl_block *b = fl_program_block(p, 0);
    for (fl_entry *v = NULL; (v = fl_map_next(&b->vars, v));) {
        const fl_value *value = fl_scope_find(s, v->key);
        if (value && fl_value_is_away(value))
            return fl_service_keeper(e->service, v->key);
    }
    return NULL;
}

/* The variables of p, of which servers keep those that `at` says; if that was
 * not cut (a test on a trainer), those that a job of the engine keeps. */
static fl_err save_vars(fl_engine *e, const fl_program *at, const fl_program *p,
                        fl_scope *s, const char *dir, const char *file, int n,
                        const char *const *names)
{
    const fl_place *place = is_trainers(at) ? at->place : keeper_of(e, p, s);
    fl_saver saver = {.disk = e->disk, .place = place, .scope = s};
    if (!place)
        return fl_vars_save(e->disk, p, s, dir, file, n, names);
    FL_TRY(fl_service_flush(e->service, place, s, NULL));
    FL_TRY(fl_service_trainer(e->service, place, &saver.trainer));
    return fl_saver_save(&saver, p, dir, file, n, names);
}

fl_err fl_save_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file)
{
    return save_vars(e, p, p, s, dir, file, -1, NULL);
}

fl_err fl_load_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file)
{
    return fl_load_vars(e, p, s, dir, file, -1, NULL);
}

fl_err fl_save_vars(fl_engine *e, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names)
{
    return save_vars(e, p, p, s, dir, file, n, names);
}

/* Is it for servers to load? */
static bool is_servers(const fl_program *p, fl_scope *s, const char *name)
{
    const fl_value *v = fl_scope_find(s, name);
    return fl_place_lacks(p->place, name) || (v && fl_value_is_away(v));
}

/* What servers hold stays there. A combined file is read whole all the same:
 * what stands where is known by what stands before. */
static fl_err load_here(fl_engine *e, const fl_program *p, fl_scope *s,
                        const char *dir, const char *file, int n,
                        const char *const *names)
{
    fl_vars all = {0}, away = {0};
    FL_VEC(const char *) here = {0};
    fl_err err = fl_vars_list(p, n, names, &all);
    for (int64_t i = 0; i < all.n; i++)
        if (is_servers(p, s, all.at[i]->name))
            fl_push(&away, all.at[i]);
        else
            fl_push(&here, all.at[i]->name);
    if (!err)
        err = away.n && !file
                  ? fl_vars_load(e->disk, p, s, dir, file, (int)here.n, here.at)
                  : fl_vars_load(e->disk, p, s, dir, file, n, names);
    for (int64_t i = 0; i < away.n && !err; i++) {
        const fl_var *v = away.at[i];
        FL_WARN("\"%s\" was not loaded here: it lies on the servers, which "
                "load it (fleet.init_server(dirname))",
                v->name);
        if (file)
            fl_value_send_away(fl_scope_find(s, v->name), v->dtype, &v->shape);
    }
    fl_vec_fini(&all);
    fl_vec_fini(&away);
    fl_vec_fini(&here);
    return err;
}

fl_err fl_load_vars(fl_engine *e, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names)
{
    if (p->place && p->place->server >= 0 && !file)
        return fl_place_load(e->disk, p, s, dir, n, names);
    return load_here(e, p, s, dir, file, n, names);
}

static char *model_path(const char *dir, const fl_model_opts *opts)
{
    fl_str path = {0};
    fl_str_printf(&path, "%s%s%s", dir, fl_ends_with(dir, "/") ? "" : "/",
                  opts && opts->model_file ? opts->model_file : "__model__");
    return fl_str_take(&path);
}

static const char *params_file(const fl_model_opts *opts)
{
    return opts ? opts->params_file : NULL;
}

/* What computes the targets; of a trainer's program, that before the cut. */
static fl_err inference_of(fl_engine *e, const fl_program *p, int n_feeds,
                           const char *const *feeds, int n_targets,
                           const char *const *targets, fl_program **out)
{
    fl_program *origin;
    if (!is_trainers(p))
        return fl_inference_program(p, n_feeds, feeds, n_targets, targets, out);
    FL_TRY(fl_place_origin(p->place, e->registry, &origin));
    const fl_err err =
        fl_inference_program(origin, n_feeds, feeds, n_targets, targets, out);
    fl_program_free(origin);
    return err;
}

fl_err fl_model_save(fl_engine *e, const fl_program *p, fl_scope *s,
                     const char *dir, int n_feeds, const char *const *feeds,
                     int n_targets, const char *const *targets,
                     const fl_model_opts *opts)
{
    fl_program *inference;
    FL_TRY(inference_of(e, p, n_feeds, feeds, n_targets, targets, &inference));
    fl_err err = FL_OK;
    if (!opts || !opts->program_only)
        err = save_vars(e, p, inference, s, dir, params_file(opts), -1, NULL);
    if (!err) {
        char *path = model_path(dir, opts);
        err = fl_program_save(e, inference, path);
        fl_mem_free(path);
    }
    fl_program_free(inference);
    return err;
}

/* A model is asked for as it was saved, so its tables are loaded here, too. */
static void warn_of_copies(const fl_program *p, fl_scope *s, const char *dir)
{
    const fl_block *b = fl_program_block(p, 0);
    for (fl_entry *v = NULL; (v = fl_map_next(&b->vars, v));) {
        const fl_value *value = fl_scope_find(s, v->key);
        if (value && fl_value_is_away(value))
            FL_WARN("\"%s\" lies on the servers; what runs in this scope now "
                    "reads the copy of %s in their place: load a model into "
                    "a scope of its own (fluid.scope_guard(fluid.Scope()))",
                    v->key, dir);
    }
}

fl_err fl_model_load(fl_engine *e, const char *dir, fl_scope *s,
                     const fl_model_opts *opts, fl_model *out)
{
    fl_model m = {0};
    char *path = model_path(dir, opts);
    fl_err err = fl_program_load(e, path, &m.program);
    if (!err)
        err = fl_model_ports(&m, path);
    if (!err) {
        warn_of_copies(m.program, s, dir);
        err = fl_vars_load(e->disk, m.program, s, dir, params_file(opts), -1,
                           NULL);
    }
    fl_mem_free(path);
    if (err) {
        fl_model_fini(&m);
        return err;
    }
    *out = m;
    return FL_OK;
}

void fl_model_fini(fl_model *m)
{
    fl_program_free(m->program);
    *m = (fl_model){0};
}

fl_err fl_scope_get(fl_scope *s, const char *name, fl_tensor *out)
{
    const fl_value *v = fl_scope_find(s, name);
    if (v && fl_value_is_away(v))
        return fl_away_fail(name);
    if (!v || v->kind != FL_LOD_TENSOR || !v->tensor.data)
        return fl_fail(FL_ENOENT, "scope: \"%s\" holds no tensor", name);
    return fl_tensor_copy(out, &v->tensor);
}

fl_err fl_scope_set(fl_scope *s, const char *name, const fl_tensor *t)
{
    fl_value *v = fl_scope_find(s, name);
    if (!v)
        v = fl_scope_var(s, name);
    if (fl_value_is_away(v))
        return fl_away_fail(name);
    FL_TRY(fl_tensor_copy(&v->tensor, t));
    v->kind = FL_LOD_TENSOR;
    return FL_OK;
}
