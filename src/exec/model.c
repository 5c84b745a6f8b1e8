/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - values and inference programs in Paddle's layout.
 *
 * Each variable has a file of its name, or one file has all of them, sorted by
 * name. */
#include "exec/model.h"

#include "base/path.h"
#include "exec/absent.h"
#include "tensor/file.h"

#include <stdlib.h>
#include <string.h>

bool fl_var_saved(const fl_var *v)
{
    return v->persistable && v->kind != FL_FEED_MINIBATCH &&
           v->kind != FL_FETCH_LIST && v->kind != FL_READER &&
           v->kind != FL_RAW;
}

static int by_name(const void *a, const void *b)
{
    const fl_var *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static fl_err named_var(const fl_program *p, const char *name,
                        const fl_var **out)
{
    for (int64_t i = 0; i < p->blocks.n; i++)
        if ((*out = fl_block_var(p->blocks.at[i], name)))
            return FL_OK;
    return fl_fail(FL_ENOENT, "the program has no variable \"%s\"", name);
}

fl_err fl_vars_list(const fl_program *p, int n, const char *const *names,
                    fl_vars *out)
{
    const fl_block *b = fl_program_block(p, 0);
    fl_err err = FL_OK;
    for (int i = 0; i < n && !err; i++) {
        const fl_var *v;
        err = named_var(p, names[i], &v);
        if (!err)
            fl_push(out, v);
    }
    for (fl_entry *e = NULL; n < 0 && (e = fl_map_next(&b->vars, e));)
        if (fl_var_saved(e->value))
            fl_push(out, e->value);
    if (out->n)
        qsort(out->at, (size_t)out->n, sizeof *out->at, by_name);
    return err;
}

static fl_err value_of(fl_scope *s, const fl_var *v, fl_value **out)
{
    *out = fl_scope_find(s, v->name);
    if (*out && fl_value_is_absent(*out))
        return fl_absent_fail(v->name);
    if (*out && (*out)->kind)
        return FL_OK;
    return fl_fail(FL_ENOENT,
                   "save: \"%s\" holds nothing yet; run the startup program "
                   "first",
                   v->name);
}

fl_err fl_vars_save(fl_stage *stage, const fl_program *p, fl_scope *s,
                    const char *file, int n, const char *const *names)
{
    fl_vars list = {0};
    fl_err err = fl_vars_list(p, n, names, &list);
    fl_value **v = fl_mem_alloc((size_t)list.n * sizeof *v);
    for (int64_t i = 0; i < list.n && !err; i++)
        err = value_of(s, list.at[i], &v[i]);
    if (!err && file)
        err = fl_values_stage(stage, file, (int)list.n,
                              (const fl_value *const *)v, false);
    for (int64_t i = 0; i < list.n && !file && !err; i++)
        err = fl_values_stage(stage, list.at[i]->name, 1,
                              (const fl_value *const *)&v[i], false);
    fl_mem_free(v);
    fl_vec_fini(&list);
    return err;
}

/* Check that the dtype and the known dimensions are those of the program. */
static fl_err check_loaded(const fl_var *v, const fl_value *value,
                           const char *path)
{
    char got[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    const fl_tensor *t = &value->tensor;
    if (v->kind != FL_LOD_TENSOR || value->kind != FL_LOD_TENSOR)
        return FL_OK;
    if (t->dtype == v->dtype && fl_shape_alike(&t->shape, &v->shape))
        return FL_OK;
    return fl_fail(FL_ESHAPE,
                   "%s: \"%s\" is %s%s in the file, %s%s in the "
                   "program",
                   path, v->name, fl_dtype_name(t->dtype),
                   fl_shape_text(&t->shape, got), fl_dtype_name(v->dtype),
                   fl_shape_text(&v->shape, want));
}

/* Refuse a table with so many rows that no process could hold it as a tensor.
 * Its file lists only some of the rows. */
static fl_err check_size(const fl_var *v, const char *path)
{
    char text[FL_SHAPE_TEXT];
    if (v->kind != FL_LOD_TENSOR || !v->shape.rank ||
        v->shape.dim[0] <= INT32_MAX)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s: \"%s\" is %s: a table of so many rows is loaded by "
                   "servers, not on one machine",
                   path, v->name, fl_shape_text(&v->shape, text));
}

static fl_err read_file(const fl_folder *f, const char *name, int n,
                        const fl_var *const *var, fl_value *const *value)
{
    char *path = fl_path_join(f->dir, name);
    fl_err err = FL_OK;
    for (int i = 0; i < n && !err; i++)
        err = check_size(var[i], path);
    if (!err)
        err = fl_values_read(f, name, n, value);
    for (int i = 0; i < n && !err; i++)
        err = check_loaded(var[i], value[i], path);
    fl_mem_free(path);
    return err;
}

void fl_loaded_fini(fl_loaded *l)
{
    for (int64_t i = 0; i < l->list.n && l->value; i++)
        fl_value_fini(&l->value[i]);
    fl_mem_free(l->value);
    fl_vec_fini(&l->list);
    *l = (fl_loaded){0};
}

static fl_err read_files(fl_loaded *l, const fl_folder *f, const char *file)
{
    const int n = (int)l->list.n;
    fl_value **at = fl_mem_alloc((size_t)n * sizeof *at);
    fl_err err = FL_OK;
    for (int i = 0; i < n; i++) {
        at[i] = &l->value[i];
        at[i]->kind = l->list.at[i]->kind; /* the format to expect */
    }
    if (file && n)
        err = read_file(f, file, n, l->list.at, at);
    for (int i = 0; i < n && !file && !err; i++)
        err = read_file(f, l->list.at[i]->name, 1, &l->list.at[i], &at[i]);
    fl_mem_free(at);
    return err;
}

fl_err fl_loaded_read(fl_loaded *l, const fl_folder *f, const fl_program *p,
                      const char *file, int n, const char *const *names)
{
    fl_loaded_fini(l);
    FL_TRY(fl_vars_list(p, n, names, &l->list));
    l->value = fl_mem_alloc((size_t)l->list.n * sizeof *l->value);
    return read_files(l, f, file);
}

static fl_value *place_of(fl_scope *s, const char *name)
{
    fl_value *v = fl_scope_find(s, name);
    return v ? v : fl_scope_var(fl_scope_root(s), name);
}

void fl_loaded_give(fl_loaded *l, fl_scope *s)
{
    for (int64_t i = 0; i < l->list.n; i++) {
        fl_value *v = place_of(s, l->list.at[i]->name);
        fl_value old = *v;
        *v = l->value[i];
        l->value[i] = old;
    }
    fl_loaded_fini(l);
}

/* Arguments of fl_vars_load. */
typedef struct request {
    const fl_program *p;
    const char *file;
    int n;
    const char *const *names;
    fl_loaded loaded;
} request;

static fl_err read_request(const fl_folder *f, void *user)
{
    request *r = user;
    return fl_loaded_read(&r->loaded, f, r->p, r->file, r->n, r->names);
}

fl_err fl_vars_load(const fl_disk *disk, const fl_program *p, fl_scope *s,
                    const char *dir, const char *file, int n,
                    const char *const *names)
{
    request r = {p, file, n, names, {{0}}};
    const fl_err err = fl_folder_visit(disk, dir, read_request, &r);
    if (!err)
        fl_loaded_give(&r.loaded, s);
    fl_loaded_fini(&r.loaded);
    return err;
}

/* --- inference programs --- */

static void drop_ports(fl_block *b)
{
    for (int64_t i = b->ops.n - 1; i >= 0; i--) {
        const char *type = b->ops.at[i]->desc.type;
        if (!strcmp(type, "feed") || !strcmp(type, "fetch"))
            fl_block_remove_op(b, i);
    }
    fl_block_remove_var(b, "feed");
    fl_block_remove_var(b, "fetch");
}

static fl_err add_port(fl_block *b, const char *type, const char *from,
                       const char *to, int col)
{
    fl_arena *a = b->program->arena;
    fl_desc *d = fl_desc_new(a, type);
    fl_desc_set_in1(d, "X", from);
    fl_desc_set_out1(d, "Out", to);
    fl_desc_set_attr(d, &(fl_attr){"col", FL_ATTR_INT, .i = col});
    return fl_block_insert_op(b, strcmp(type, "feed") ? -1 : 0, d, NULL);
}

static fl_err add_ports(fl_block *b, int n_feeds, const char *const *feeds,
                        int n_targets, const char *const *targets)
{
    fl_var *v;
    FL_TRY(fl_block_add_var(b,
                            &(fl_var){.name = "feed",
                                      .kind = FL_FEED_MINIBATCH,
                                      .persistable = true},
                            &v));
    FL_TRY(fl_block_add_var(
        b,
        &(fl_var){.name = "fetch", .kind = FL_FETCH_LIST, .persistable = true},
        &v));
    for (int i = 0; i < n_feeds; i++) {
        FL_TRY(fl_block_get(b, feeds[i], &v));
        FL_TRY(add_port(b, "feed", "feed", feeds[i], i));
    }
    for (int i = 0; i < n_targets; i++)
        FL_TRY(add_port(b, "fetch", targets[i], "fetch", i));
    return FL_OK;
}

/* Fetch each target through a scale op with factor 1, as Fluid does, so that
 * the name of the fetched variable is not a name of the network. */
static fl_err add_scales(fl_block *b, int n, const char *const *targets,
                         const char **names)
{
    fl_arena *a = b->program->arena;
    for (int i = 0; i < n; i++) {
        fl_var *v;
        fl_desc *d = fl_desc_new(a, "scale");
        names[i] = fl_arena_printf(a, "save_infer_model/scale_%d", i);
        FL_TRY(fl_block_get(b, targets[i], &v));
        fl_desc_set_in1(d, "X", targets[i]);
        fl_desc_set_out1(d, "Out", names[i]);
        FL_TRY(fl_block_append_op(b, d, NULL));
    }
    return FL_OK;
}

/* Check that the model reads each feed. */
static fl_err check_feeds(const fl_program *all, const fl_program *model,
                          int n_feeds, const char *const *feeds)
{
    for (int i = 0; i < n_feeds; i++)
        if (!fl_block_var(model->blocks.at[0], feeds[i]))
            return fl_fail(FL_ENOENT, "save: feed \"%s\": %s", feeds[i],
                           fl_block_var(all->blocks.at[0], feeds[i])
                               ? "the targets do not depend on it; leave it out"
                               : "the program has no such variable");
    return FL_OK;
}

static fl_err make_inference(fl_program *copy, int n_feeds,
                             const char *const *feeds, int n_targets,
                             const char *const *targets, fl_program **out)
{
    const char **names =
        fl_arena_alloc(copy->arena, (size_t)n_targets * sizeof *names);
    fl_program *pruned;
    drop_ports(fl_program_block(copy, 0));
    FL_TRY(add_scales(fl_program_block(copy, 0), n_targets, targets, names));
    FL_TRY(fl_program_prune(copy, n_targets, names, &pruned));
    fl_err err = check_feeds(copy, pruned, n_feeds, feeds);
    if (!err)
        err = add_ports(fl_program_block(pruned, 0), n_feeds, feeds, n_targets,
                        names);
    if (err) {
        fl_program_free(pruned);
        return err;
    }
    *out = pruned;
    return FL_OK;
}

fl_err fl_inference_program(const fl_program *p, int n_feeds,
                            const char *const *feeds, int n_targets,
                            const char *const *targets, fl_program **out)
{
    if (!n_targets)
        return fl_fail(FL_EINVAL, "save: a model needs at least one target");
    fl_program *copy = fl_program_clone(p, true);
    fl_err err = make_inference(copy, n_feeds, feeds, n_targets, targets, out);
    fl_program_free(copy);
    return err;
}

static int count_ops(const fl_block *b, const char *type)
{
    int n = 0;
    for (int64_t i = 0; i < b->ops.n; i++)
        n += !strcmp(b->ops.at[i]->desc.type, type);
    return n;
}

static fl_err read_ports(const fl_block *b, const char *type, int n,
                         const char **names, const char *path)
{
    bool feed = !strcmp(type, "feed");
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        if (strcmp(d->type, type))
            continue;
        const fl_attr *col = fl_desc_attr(d, "col");
        const char *name = feed ? fl_desc_out1(d, "Out") : fl_desc_in1(d, "X");
        if (!col || !name || col->i < 0 || col->i >= n || names[col->i])
            return fl_fail(FL_EPROTO,
                           "%s: %s op %lld has column %lld, expected each of "
                           "0 to %d once",
                           path, type, (long long)i,
                           col ? (long long)col->i : -1, n - 1);
        names[col->i] = name;
    }
    return FL_OK;
}

fl_err fl_model_ports(fl_model *m, const char *path)
{
    const fl_block *b = fl_program_block(m->program, 0);
    fl_arena *a = m->program->arena;
    m->n_feeds = count_ops(b, "feed");
    m->n_fetches = count_ops(b, "fetch");
    m->feeds = fl_arena_alloc(a, (size_t)m->n_feeds * sizeof *m->feeds);
    m->fetches = fl_arena_alloc(a, (size_t)m->n_fetches * sizeof *m->fetches);
    FL_TRY(read_ports(b, "feed", m->n_feeds, m->feeds, path));
    return read_ports(b, "fetch", m->n_fetches, m->fetches, path);
}
