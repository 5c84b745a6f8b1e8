/* model.c - programs and models on the engine's disk. */
#include "api/engine.h"

#include "base/mem.h"
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

/* The variables of p, of which servers keep those that `at` says. */
static fl_err save_vars(fl_engine *e, const fl_program *at, const fl_program *p,
                        fl_scope *s, const char *dir, const char *file, int n,
                        const char *const *names)
{
    fl_saver saver = {.disk = e->disk, .place = at->place, .scope = s};
    if (!is_trainers(at))
        return fl_vars_save(e->disk, p, s, dir, file, n, names);
    FL_TRY(fl_service_flush(e->service, at->place, s, NULL));
    FL_TRY(fl_service_trainer(e->service, at->place, NULL, &saver.trainer));
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

fl_err fl_load_vars(fl_engine *e, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names)
{
    if (p->place && p->place->server >= 0 && !file)
        return fl_place_load(e->disk, p, s, dir, n, names);
    return fl_vars_load(e->disk, p, s, dir, file, n, names);
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

fl_err fl_model_load(fl_engine *e, const char *dir, fl_scope *s,
                     const fl_model_opts *opts, fl_model *out)
{
    fl_model m = {0};
    char *path = model_path(dir, opts);
    fl_err err = fl_program_load(e, path, &m.program);
    if (!err)
        err = fl_model_ports(&m, path);
    if (!err)
        err = fl_vars_load(e->disk, m.program, s, dir, params_file(opts), -1,
                           NULL);
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
    if (!v || v->kind != FL_LOD_TENSOR || !v->tensor.data)
        return fl_fail(FL_ENOENT, "scope: \"%s\" holds no tensor", name);
    return fl_tensor_copy(out, &v->tensor);
}

fl_err fl_scope_set(fl_scope *s, const char *name, const fl_tensor *t)
{
    fl_value *v = fl_scope_find(s, name);
    if (!v)
        v = fl_scope_var(s, name);
    FL_TRY(fl_tensor_copy(&v->tensor, t));
    v->kind = FL_LOD_TENSOR;
    return FL_OK;
}
