/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - loads a server's pieces from files that hold whole variables.
 *
 * All files are checked before the first one is read, so that a file that is
 * damaged or does not fit changes nothing. Only the elements of the piece are
 * read from a file. A table with rows by id is made later, when the server
 * starts to serve; here only the path of its file is noted. */
#include "train/save.h"

#include "base/folder.h"
#include "base/log.h"
#include "table/file.h"
#include "tensor/record.h"

typedef struct piece {
    const fl_piece *k;
    fl_dtype dtype;
    char *path;
} piece;

typedef struct loader {
    const fl_folder *folder;
    const fl_program *server;
    fl_scope *scope;
    int n; /* number of names; < 0: all pieces */
    const char *const *names;
    FL_VEC(piece) pieces; /* pieces that have a file */
    const char *lacks;    /* a variable that has no file */
} loader;

/* The number of elements of a variable. Several servers may have the same
 * elements. */
static int64_t count_elements(const fl_placement *place, const char *var)
{
    int64_t n = 0;
    for (int i = 0; i < place->n_pieces; i++) {
        const fl_piece *k = &place->pieces[i];
        const int64_t end = k->first + fl_shape_numel(&k->shape);
        if (!strcmp(k->var, var) && end > n)
            n = end;
    }
    return n;
}

static fl_err check_record(const loader *l, const piece *p, const fl_record *r)
{
    char got[FL_SHAPE_TEXT];
    const fl_piece *k = p->k;
    const int64_t n = count_elements(fl_placement_of(l->server->job), k->var);
    if (r->dtype != p->dtype)
        return fl_fail(FL_ESHAPE, "%s has %s, but \"%s\" is %s", p->path,
                       fl_dtype_word(r->dtype), k->var,
                       fl_dtype_word(p->dtype));
    if (fl_shape_numel(&r->shape) != n)
        return fl_fail(FL_ESHAPE,
                       "%s has the shape %s, but \"%s\" has %lld elements: the "
                       "file is of another model",
                       p->path, fl_shape_text(&r->shape, got), k->var,
                       (long long)n);
    return FL_OK;
}

static fl_err open_at(const loader *l, const piece *p, fl_record *r)
{
    const fl_disk *disk = l->folder->disk;
    if (p->k->first == FL_BY_ID)
        return fl_table_file_open(disk, p->path, p->k, p->dtype, r);
    FL_TRY(fl_record_open(disk, p->path, FL_LOD_TENSOR, r));
    const fl_err err = check_record(l, p, r);
    if (err)
        fl_record_close(r);
    return err;
}

/* Own: *r, until close. */
static fl_err open_piece(const loader *l, piece *p, fl_record *r)
{
    fl_err err = open_at(l, p, r);
    if (err != FL_ENOENT)
        return err;
    fl_mem_free(p->path); /* a save has moved the file meanwhile */
    p->path = NULL;
    FL_TRY(fl_folder_find(l->folder, p->k->var, &p->path));
    return open_at(l, p, r);
}

static fl_err read_piece(const loader *l, const piece *p, const fl_record *r)
{
    const fl_piece *k = p->k;
    fl_value *old = fl_scope_find(l->scope, k->name), fresh = {0};
    if (k->first == FL_BY_ID)
        return fl_scope_set_file(l->scope, k->name, p->path);
    fresh.kind = FL_LOD_TENSOR;
    fl_err err = fl_tensor_resize(&fresh.tensor, p->dtype, &k->shape);
    if (!err)
        err = fl_record_read(r, k->first, fl_shape_numel(&k->shape),
                             fresh.tensor.data);
    if (err) {
        fl_value_fini(&fresh);
        return err;
    }
    if (!old)
        old = fl_scope_var(l->scope, k->name);
    fl_value_fini(old);
    *old = fresh;
    return FL_OK;
}

/* Check a piece's file, or read it. */
static fl_err visit_piece(const loader *l, piece *p, bool read)
{
    fl_record r = {0};
    FL_TRY(open_piece(l, p, &r));
    const fl_err err =
        read ? read_piece(l, p, &r)
             : fl_folder_check(l->folder, p->k->var, r.file, r.size);
    fl_record_close(&r);
    return err;
}

static bool is_named(const char *name, int n, const char *const *names)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return n < 0;
}

/* Find the file of a piece. A model for inference has no optimiser states, and
 * no model has gradients. */
static fl_err find_piece(loader *l, const fl_piece *k)
{
    const fl_var *v = fl_block_var(fl_program_block(l->server, 0), k->name);
    char *path = NULL;
    if (!v)
        return FL_OK;
    const fl_err err = fl_folder_find(l->folder, k->var, &path);
    if (!err)
        fl_push(&l->pieces, (piece){k, v->dtype, path});
    if (err != FL_ENOENT || fl_manifest_find(&l->folder->manifest, k->var))
        return err;
    if (v->persistable && !l->lacks)
        l->lacks = k->var;
    return FL_OK;
}

static void drop_pieces(loader *l)
{
    for (int64_t i = 0; i < l->pieces.n; i++)
        fl_mem_free(l->pieces.at[i].path);
    l->pieces.n = 0;
    l->lacks = NULL;
}

static fl_err load_folder(const fl_folder *f, void *user)
{
    loader *l = user;
    const fl_placement *place = fl_placement_of(l->server->job);
    l->folder = f;
    drop_pieces(l);
    for (int i = 0; i < place->n_pieces; i++) {
        const fl_piece *k = &place->pieces[i];
        if (k->server == place->server && is_named(k->name, l->n, l->names))
            FL_TRY(find_piece(l, k));
    }
    for (int read = 0; read < 2; read++)
        for (int64_t i = 0; i < l->pieces.n; i++)
            FL_TRY(visit_piece(l, &l->pieces.at[i], read));
    if (fl_folder_has_changed(f)) /* since the files were checked */
        return fl_fail(FL_EPROTO,
                       "%s: another save replaced the files while they were "
                       "read; load when no process saves there",
                       f->dir);
    return FL_OK;
}

fl_err fl_placement_load(const fl_disk *disk, const fl_program *server,
                         fl_scope *scope, const char *dir, int n,
                         const char *const *names)
{
    const fl_placement *place = fl_placement_of(server->job);
    loader l = {.server = server, .scope = scope, .n = n, .names = names};
    fl_err err = fl_folder_visit(disk, dir, load_folder, &l);
    if (!err && !l.pieces.n) {
        err = fl_folder_need(disk, dir);
        if (!err)
            err = fl_fail(FL_ENOENT,
                          "%s has no variable that server %d (%s) keeps", dir,
                          place->server, place->servers[place->server]);
    } else if (!err && l.lacks)
        FL_WARN("%s has no \"%s\"; variables that it lacks start with their "
                "initial values",
                dir, l.lacks);
    drop_pieces(&l);
    fl_vec_fini(&l.pieces);
    return err;
}
