/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - programs and models on the engine's disk. */
#include "api/engine.h"

#include "base/flag.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/stage.h"
#include "exec/absent.h"
#include "exec/model.h"
#include "train/save.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

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
        err = fl_file_write(e->disk, path, &(fl_part){bytes, n}, 1);
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
    fl_err err = fl_file_read(e->disk, path, LARGEST_PROGRAM, &bytes);
    if (!err)
        err = fl_program_read(e, path, bytes.at, bytes.n, out);
    fl_str_fini(&bytes);
    return err;
}

/* Whether p is the program of a trainer in a job with servers. */
static bool is_trainer_program(const fl_program *p)
{
    return p->job && fl_placement_of(p->job)->origin_size;
}

/* The placement of the job whose servers hold variables of p; NULL: there is
 * none. */
static const fl_placement *placement_for(fl_engine *e, const fl_program *p,
                                         fl_scope *s)
{
    const fl_block *b = fl_program_block(p, 0);
    for (fl_entry *v = NULL; (v = fl_map_next(&b->vars, v));) {
        const fl_value *value = fl_scope_find(s, v->key);
        if (value && fl_value_is_absent(value))
            return fl_service_find_placement(e->service, v->key);
    }
    return NULL;
}

/* --- saving --- */

/* Arguments of a save. */
typedef struct saving {
    fl_engine *e;
    /* The program whose placement says which variables are on servers. If it
     * was not transpiled (a test program on a trainer), the job of the engine
     * decides. */
    const fl_program *cut;
    const fl_program *vars; /* its variables are saved; NULL: none are */
    fl_scope *scope;
    const char *file; /* one file for all variables; NULL: one file each */
    int n; /* number of names; < 0: all variables that a save includes */
    const char *const *names;
    const fl_program *model; /* the program to save as model_file; or NULL */
    const char *model_file;
} saving;

static fl_err stage_vars(const saving *v, fl_stage *stage)
{
    fl_engine *e = v->e;
    const fl_placement *place = is_trainer_program(v->cut)
                                    ? fl_placement_of(v->cut->job)
                                    : placement_for(e, v->vars, v->scope);
    fl_saver saver = {.stage = stage, .place = place, .scope = v->scope};
    if (!place)
        return fl_vars_save(stage, v->vars, v->scope, v->file, v->n, v->names);
    FL_TRY(fl_service_flush(e->service, place, v->scope, NULL));
    FL_TRY(fl_service_trainer(e->service, place, &saver.trainer));
    return fl_saver_save(&saver, v->vars, v->file, v->n, v->names);
}

static fl_err stage_model(const saving *v, fl_stage *stage)
{
    void *bytes;
    size_t n;
    FL_TRY(fl_program_encode(v->model, &bytes, &n));
    const fl_err err =
        fl_stage_write(stage, v->model_file, &(fl_part){bytes, n}, 1);
    fl_mem_free(bytes);
    return err;
}

/* Save. *refused: the folder cannot be written; another folder may work. */
static fl_err save_into(const saving *v, const char *dir, bool *refused)
{
    fl_stage stage;
    fl_err err = fl_stage_init(&stage, v->e->disk, dir, "model");
    if (!err && v->vars)
        err = stage_vars(v, &stage);
    if (!err && v->model)
        err = stage_model(v, &stage);
    if (!err)
        err = fl_stage_commit(&stage);
    *refused = stage.failed && !stage.committed;
    fl_stage_fini(&stage);
    return err;
}

/* The name of a fallback folder: "fluid-saved-" and the path that was meant. */
static char *fallback_name(const char *dir)
{
    enum {
        LONGEST = 200 /* bytes; file systems allow 255 */
    };
    fl_str s = {0};
    const size_t n = strlen(dir);
    fl_str_add(&s, "fluid-saved-");
    fl_str_add(&s, n > LONGEST ? dir + n - LONGEST : dir);
    for (char *at = s.at; *at; at++)
        if (*at == '/')
            *at = '-';
    return fl_str_take(&s);
}

/* Save into a new folder with an unpredictable name. In a folder for temporary
 * files another user could create a predictable name first. */
static fl_err save_into_new(const saving *v, char *template)
{
    bool refused;
    FL_TRY(v->e->disk->mkdtemp(v->e->disk, template));
    const fl_err err = save_into(v, template, &refused);
    const fl_sentence why = fl_sentence_keep();
    if (err)
        (void)!v->e->disk->remove(v->e->disk, template);
    fl_sentence_restore(&why);
    return err;
}

/* If the folder cannot be written, save the model to the current directory or
 * to the one for temporary files, so that it is not lost. The call still fails,
 * and the error says where the model is. */
static fl_err save_elsewhere(const saving *v, const char *dir, fl_err err)
{
    const fl_sentence why = fl_sentence_keep();
    const char *temp = fl_flag_text("TMPDIR");
    char *name = fallback_name(dir), real[PATH_MAX];
    bool refused, saved = !save_into(v, name, &refused);
    fl_str path = {0};
    fl_str_add(&path, name);
    if (!saved) {
        path.n = 0;
        fl_str_printf(&path, "%s/%s-XXXXXX", temp && *temp ? temp : "/tmp",
                      name);
        saved = !save_into_new(v, path.at);
    }
    const fl_sentence last = fl_sentence_keep();
    if (saved)
        (void)!fl_fail(err, "%s; it was saved to %s instead", why.text,
                       realpath(path.at, real) ? real : path.at);
    else
        (void)!fl_fail(err, "%s; it could not be saved elsewhere either (%s)",
                       why.text, last.text);
    fl_mem_free(name);
    fl_str_fini(&path);
    return err;
}

static fl_err save_all(const saving *v, const char *dir)
{
    bool refused;
    const fl_err err = save_into(v, dir, &refused);
    return err && refused ? save_elsewhere(v, dir, err) : err;
}

fl_err fl_save_vars(fl_engine *e, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names)
{
    return save_all(&(saving){.e = e,
                              .cut = p,
                              .vars = p,
                              .scope = s,
                              .file = file,
                              .n = n,
                              .names = names},
                    dir);
}

fl_err fl_save_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file)
{
    return fl_save_vars(e, p, s, dir, file, -1, NULL);
}

/* --- loading --- */

fl_err fl_load_persistables(fl_engine *e, const fl_program *p, fl_scope *s,
                            const char *dir, const char *file)
{
    return fl_load_vars(e, p, s, dir, file, -1, NULL);
}

/* Whether servers load the variable, because it is absent here. */
static bool is_on_servers(const fl_program *p, fl_scope *s, const char *name)
{
    const fl_var *var = fl_block_find(fl_program_block(p, 0), name);
    const fl_value *v = fl_scope_find(s, name);
    return (var && var->absent) || (v && fl_value_is_absent(v));
}

/* Load the variables that this process has, and skip those on servers. A
 * combined file is read completely, because the position of a record depends on
 * the records before it. */
static fl_err load_here(fl_engine *e, const fl_program *p, fl_scope *s,
                        const char *dir, const char *file, int n,
                        const char *const *names)
{
    fl_vars all = {0}, away = {0};
    FL_VEC(const char *) here = {0};
    fl_err err = fl_vars_list(p, n, names, &all);
    for (int64_t i = 0; i < all.n; i++)
        if (is_on_servers(p, s, all.at[i]->name))
            fl_push(&away, all.at[i]);
        else
            fl_push(&here, all.at[i]->name);
    if (!err)
        err = away.n && !file
                  ? fl_vars_load(e->disk, p, s, dir, file, (int)here.n, here.at)
                  : fl_vars_load(e->disk, p, s, dir, file, n, names);
    for (int64_t i = 0; i < away.n && !err; i++) {
        const fl_var *v = away.at[i];
        FL_WARN("\"%s\" was not loaded here: it is on the servers, which load "
                "it (fleet.init_server(dirname))",
                v->name);
        if (file)
            fl_value_set_absent(fl_scope_find(s, v->name), v->dtype, &v->shape);
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
    if (p->job && fl_placement_of(p->job)->server >= 0 && !file)
        return fl_placement_load(e->disk, p, s, dir, n, names);
    return load_here(e, p, s, dir, file, n, names);
}

/* --- models --- */

static const char *model_file(const fl_model_opts *opts)
{
    return opts && opts->model_file ? opts->model_file : "__model__";
}

static const char *params_file(const fl_model_opts *opts)
{
    return opts ? opts->params_file : NULL;
}

/* The program that computes the targets. For a trainer, it is made from the
 * program before it was transpiled. */
static fl_err inference_of(fl_engine *e, const fl_program *p, int n_feeds,
                           const char *const *feeds, int n_targets,
                           const char *const *targets, fl_program **out)
{
    fl_program *origin;
    if (!is_trainer_program(p))
        return fl_inference_program(p, n_feeds, feeds, n_targets, targets, out);
    FL_TRY(fl_placement_origin(fl_placement_of(p->job), e->registry, &origin));
    const fl_err err =
        fl_inference_program(origin, n_feeds, feeds, n_targets, targets, out);
    fl_program_free(origin);
    return err;
}

/* Save a program and, unless only the program is wanted, the values of its
 * variables. */
static fl_err save_model(fl_engine *e, const fl_program *cut,
                         const fl_program *model, const char *file, fl_scope *s,
                         const char *dir, const fl_model_opts *opts)
{
    return save_all(&(saving){.e = e,
                              .cut = cut,
                              .vars = opts && opts->program_only ? NULL : model,
                              .scope = s,
                              .file = params_file(opts),
                              .n = -1,
                              .model = model,
                              .model_file = file},
                    dir);
}

fl_err fl_model_save(fl_engine *e, const fl_program *p, fl_scope *s,
                     const char *dir, int n_feeds, const char *const *feeds,
                     int n_targets, const char *const *targets,
                     const fl_model_opts *opts)
{
    fl_program *inference = NULL;
    fl_str file = {0};
    fl_err err = FL_OK;
    fl_str_add(&file, model_file(opts));
    if (opts && opts->whole)
        fl_str_add(&file, ".main_program");
    else
        err =
            inference_of(e, p, n_feeds, feeds, n_targets, targets, &inference);
    if (!err)
        err =
            save_model(e, p, inference ? inference : p, file.at, s, dir, opts);
    fl_program_free(inference);
    fl_str_fini(&file);
    return err;
}

/* Warn if the scope now has copies of tables that are on servers: loading a
 * model loads all of its variables. */
static void warn_of_copies(const fl_program *p, fl_scope *s, const char *dir)
{
    const fl_block *b = fl_program_block(p, 0);
    for (fl_entry *v = NULL; (v = fl_map_next(&b->vars, v));) {
        const fl_value *value = fl_scope_find(s, v->key);
        if (value && fl_value_is_absent(value))
            FL_WARN("\"%s\" is on the servers, but programs that run in this "
                    "scope now read the copy from %s: load a model into a "
                    "scope of its own (fluid.scope_guard(fluid.Scope()))",
                    v->key, dir);
    }
}

/* Arguments and result of loading a model. */
typedef struct arrival {
    fl_engine *e;
    const fl_model_opts *opts;
    fl_model model;
    fl_loaded values;
} arrival;

static fl_err read_program(arrival *a, const fl_folder *f)
{
    const char *name = model_file(a->opts);
    fl_str bytes = {0};
    char *path = fl_path_join(f->dir, name);
    fl_err err = fl_folder_read(f, name, LARGEST_PROGRAM, &bytes);
    if (!err)
        err = fl_program_read(a->e, path, bytes.at, bytes.n, &a->model.program);
    if (!err)
        err = fl_model_ports(&a->model, path);
    fl_str_fini(&bytes);
    fl_mem_free(path);
    return err;
}

static fl_err read_model(const fl_folder *f, void *user)
{
    arrival *a = user;
    fl_loaded_fini(&a->values);
    fl_model_fini(&a->model);
    FL_TRY(read_program(a, f));
    return fl_loaded_read(&a->values, f, a->model.program, params_file(a->opts),
                          -1, NULL);
}

fl_err fl_model_load(fl_engine *e, const char *dir, fl_scope *s,
                     const fl_model_opts *opts, fl_model *out)
{
    arrival a = {.e = e, .opts = opts};
    const fl_err err = fl_folder_visit(e->disk, dir, read_model, &a);
    if (err) {
        fl_loaded_fini(&a.values);
        fl_model_fini(&a.model);
        return err;
    }
    warn_of_copies(a.model.program, s, dir);
    fl_loaded_give(&a.values, s);
    *out = a.model;
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
    if (v && fl_value_is_absent(v))
        return fl_absent_fail(name);
    if (!v || v->kind != FL_LOD_TENSOR || !v->tensor.data)
        return fl_fail(FL_ENOENT, "scope: \"%s\" holds no tensor", name);
    return fl_tensor_copy(out, &v->tensor);
}

fl_err fl_scope_set(fl_scope *s, const char *name, const fl_tensor *t)
{
    fl_value *v = fl_scope_find(s, name);
    if (!v)
        v = fl_scope_var(s, name);
    if (fl_value_is_absent(v))
        return fl_absent_fail(name);
    FL_TRY(fl_tensor_copy(&v->tensor, t));
    v->kind = FL_LOD_TENSOR;
    return FL_OK;
}
