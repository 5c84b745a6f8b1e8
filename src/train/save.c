/* save.c - files from what servers keep. See save.h.
 *
 * Files are written beside their places and renamed when all are whole: a save
 * that fails leaves the old model as it was. */
#include "train/save_in.h"

#include "exec/model.h"
#include "tensor/file.h"

#include <stdlib.h>

/* --- from servers --- */

static int by_first(const void *a, const void *b)
{
    const fl_kept *const *x = a, *const *y = b;
    return ((*x)->first > (*y)->first) - ((*x)->first < (*y)->first);
}

typedef FL_VEC(const fl_kept *) pieces;

/* The pieces of a variable in order; each place in it counts once, though
 * several servers may keep it. */
static void find_pieces(const fl_place *place, const char *var, pieces *found)
{
    int64_t n = 0;
    for (int i = 0; i < place->n_kept; i++)
        if (!strcmp(place->kept[i].var, var))
            fl_push(found, &place->kept[i]);
    if (found->n)
        qsort(found->at, (size_t)found->n, sizeof *found->at, by_first);
    for (int64_t i = 0; i < found->n; i++)
        if (!n || found->at[i]->first != found->at[n - 1]->first)
            found->at[n++] = found->at[i];
    found->n = n;
}

fl_err fl_writer_add(fl_writer *o, const void *bytes, size_t n)
{
    return o->s->disk->append(o->file, bytes, n);
}

/* Rows first .. first + n of a piece, or all of it (n < 0). */
static fl_err append_rows(fl_writer *o, const fl_kept *k, int64_t first,
                          int64_t n)
{
    fl_tensor part = {0};
    int64_t *rows = n < 0 ? NULL : fl_mem_alloc((size_t)n * sizeof *rows);
    for (int64_t i = 0; i < n; i++)
        rows[i] = first + i;
    fl_err err =
        fl_trainer_lookup(o->s->trainer, NULL, 1,
                          &(fl_lookup){k->server, k->name, n, rows, &part});
    if (!err)
        err = fl_writer_add(o, part.data, fl_tensor_bytes(&part));
    fl_tensor_fini(&part);
    fl_mem_free(rows);
    return err;
}

static fl_err append_piece(fl_writer *o, const fl_kept *k, fl_dtype dtype)
{
    const int64_t width = fl_shape_span(&k->shape, 1, k->shape.rank);
    const int64_t rows = k->shape.dim[0];
    int64_t most = FL_SAVE_PART / (width * (int64_t)fl_dtype_size(dtype));
    most += most == 0;
    if (k->shape.rank < 2 || rows <= most)
        return append_rows(o, k, 0, -1);
    for (int64_t i = 0; i < rows; i += most)
        FL_TRY(append_rows(o, k, i, rows - i < most ? rows - i : most));
    return FL_OK;
}

static fl_err append_kept(fl_writer *o, const fl_var *v, const pieces *found)
{
    fl_str head = {0};
    if (found->at[0]->first == FL_BY_ID)
        return fl_writer_add_table(o, v);
    fl_tensor_head(v->dtype, &v->shape, &head);
    fl_err err = fl_writer_add(o, head.at, head.n);
    fl_str_fini(&head);
    for (int64_t i = 0; i < found->n && !err; i++)
        err = append_piece(o, found->at[i], v->dtype);
    return err;
}

/* --- from here --- */

static fl_err append_own(fl_writer *o, const fl_var *v)
{
    fl_str bytes = {0};
    const fl_value *value = fl_scope_find(o->s->scope, v->name);
    if (!value || !value->kind)
        return fl_fail(FL_ENOENT,
                       "save: \"%s\" holds nothing yet, and no server keeps "
                       "it; run the startup program first",
                       v->name);
    fl_err err = fl_value_encode(value, false, &bytes);
    if (!err)
        err = fl_writer_add(o, bytes.at, bytes.n);
    fl_str_fini(&bytes);
    return err;
}

static fl_err append_var(fl_writer *o, const fl_var *v)
{
    pieces found = {0};
    find_pieces(o->s->place, v->name, &found);
    const fl_err err = found.n ? append_kept(o, v, &found) : append_own(o, v);
    fl_vec_fini(&found);
    return err;
}

/* --- files --- */

/* Trainers may save at once: each has files of its own until they are whole. */
static fl_err begin(fl_writer *o, const fl_saver *s, const char *dir,
                    const char *name)
{
    fl_str path = {0}, aside = {0};
    const int id = s->place->trainer_id;
    fl_str_printf(&path, "%s%s%s", dir, fl_ends_with(dir, "/") ? "" : "/",
                  name);
    fl_str_printf(&aside, id ? "%s.part%d" : "%s.part", path.at, id);
    *o = (fl_writer){s, fl_str_take(&path), fl_str_take(&aside), NULL};
    FL_TRY(fl_disk_make_parents(s->disk, o->path));
    (void)!s->disk->remove(s->disk, o->aside); /* of one who was killed */
    return s->disk->open(s->disk, o->aside, &o->file);
}

static void close_file(fl_writer *o)
{
    if (o->file)
        o->s->disk->close(o->file);
    o->file = NULL;
}

fl_err fl_save_drop(const fl_disk *disk, const char *path, fl_err err)
{
    fl_str why = {0};
    fl_str_add(&why, fl_errmsg());
    if (disk->remove(disk, path))
        (void)!fl_fail(err, "%s", why.at);
    fl_str_fini(&why);
    return err;
}

/* All that was written takes its place, or nothing does. */
static fl_err end_all(int64_t n, fl_writer *o, fl_err err)
{
    for (int64_t i = 0; i < n; i++) {
        const fl_disk *disk = o[i].s->disk;
        if (!err)
            err = disk->rename(disk, o[i].aside, o[i].path);
        if (err)
            err = fl_save_drop(disk, o[i].aside, err);
        fl_mem_free(o[i].path);
        fl_mem_free(o[i].aside);
    }
    return err;
}

fl_err fl_saver_save(const fl_saver *s, const fl_program *p, const char *dir,
                     const char *file, int n, const char *const *names)
{
    fl_vars list = {0};
    fl_err err = fl_vars_list(p, n, names, &list);
    fl_writer *o = fl_mem_alloc((size_t)(list.n + 1) * sizeof *o);
    int64_t begun = 0;
    for (int64_t i = 0; i < (file ? 1 : list.n) && !err; i++) {
        err = begin(&o[begun++], s, dir, file ? file : list.at[i]->name);
        for (int64_t j = i; j < (file ? list.n : i + 1) && !err; j++)
            err = append_var(&o[i], list.at[j]);
        close_file(&o[i]);
    }
    err = end_all(begun, o, err);
    fl_mem_free(o);
    fl_vec_fini(&list);
    return err;
}

fl_err fl_place_origin(const fl_place *place, const fl_registry *r,
                       fl_program **out)
{
    return fl_program_decode(r, "the program that was cut", place->origin,
                             place->origin_size, out);
}
