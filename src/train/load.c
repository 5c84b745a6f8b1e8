/* load.c - a server's pieces from files that hold whole variables.
 *
 * All files are looked at before the first is read: one that is damaged or does
 * not fit changes nothing. Of a file only the elements of the piece are read.
 * Tables by id are made when the server starts to serve; until then a note says
 * where their rows are. */
#include "train/save.h"

#include "base/log.h"
#include "dist/table_file.h"
#include "tensor/record.h"

typedef struct piece {
    const fl_kept *k;
    fl_dtype dtype;
    char *path;
} piece;

typedef struct loader {
    const fl_disk *disk;
    const fl_program *server;
    fl_scope *scope;
    FL_VEC(piece) pieces; /* that have a file */
    const char *lacks;    /* a variable that has none */
} loader;

/* Elements of a variable; several servers may keep the same ones. */
static int64_t count(const fl_place *place, const char *var)
{
    int64_t n = 0;
    for (int i = 0; i < place->n_kept; i++) {
        const fl_kept *k = &place->kept[i];
        const int64_t end = k->first + fl_shape_numel(&k->shape);
        if (!strcmp(k->var, var) && end > n)
            n = end;
    }
    return n;
}

static fl_err check(const loader *l, const piece *p, const fl_record *r)
{
    char got[FL_SHAPE_TEXT];
    const fl_kept *k = p->k;
    const int64_t n = count(l->server->place, k->var);
    if (r->dtype != p->dtype)
        return fl_fail(FL_ESHAPE, "%s has %s, but \"%s\" is %s", p->path,
                       fl_dtype_word(r->dtype), k->var,
                       fl_dtype_word(p->dtype));
    if (fl_shape_numel(&r->shape) != n)
        return fl_fail(FL_ESHAPE,
                       "%s has %s, but \"%s\" has %lld elements: it is of "
                       "another model",
                       p->path, fl_shape_text(&r->shape, got), k->var,
                       (long long)n);
    return FL_OK;
}

/* Own: *r, until close. */
static fl_err open_piece(const loader *l, const piece *p, fl_record *r)
{
    if (p->k->first == FL_BY_ID)
        return fl_table_file_open(l->disk, p->path, p->k, p->dtype, r);
    FL_TRY(fl_record_open(l->disk, p->path, FL_LOD_TENSOR, r));
    const fl_err err = check(l, p, r);
    if (err)
        fl_record_close(r);
    return err;
}

static fl_err read_piece(const loader *l, const piece *p, const fl_record *r)
{
    const fl_kept *k = p->k;
    fl_value *old = fl_scope_find(l->scope, k->name), fresh = {0};
    if (k->first == FL_BY_ID)
        return fl_table_file_note(l->scope, k->name, p->path);
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

/* Look at it, or read it. */
static fl_err visit(const loader *l, const piece *p, bool read)
{
    fl_record r = {0};
    FL_TRY(open_piece(l, p, &r));
    const fl_err err = read ? read_piece(l, p, &r) : FL_OK;
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

/* A model for inference has no state of optimisers, gradients are in none. */
static void find_piece(loader *l, const fl_kept *k, const char *dir)
{
    const fl_var *v = fl_block_var(fl_program_block(l->server, 0), k->name);
    fl_str path = {0};
    int64_t size;
    fl_str_printf(&path, "%s%s%s", dir, fl_ends_with(dir, "/") ? "" : "/",
                  k->var);
    if (v && !l->disk->size(l->disk, path.at, &size))
        fl_push(&l->pieces, (piece){k, v->dtype, fl_str_take(&path)});
    else if (v && v->persistable && !l->lacks)
        l->lacks = k->var;
    fl_str_fini(&path);
}

static fl_err load_all(const loader *l)
{
    for (int read = 0; read < 2; read++)
        for (int64_t i = 0; i < l->pieces.n; i++)
            FL_TRY(visit(l, &l->pieces.at[i], read));
    return FL_OK;
}

fl_err fl_place_load(const fl_disk *disk, const fl_program *server,
                     fl_scope *scope, const char *dir, int n,
                     const char *const *names)
{
    const fl_place *place = server->place;
    loader l = {.disk = disk, .server = server, .scope = scope};
    for (int i = 0; i < place->n_kept; i++) {
        const fl_kept *k = &place->kept[i];
        if (k->server == place->server && is_named(k->name, n, names))
            find_piece(&l, k, dir);
    }
    fl_err err = load_all(&l);
    if (!l.pieces.n)
        err = fl_fail(FL_ENOENT, "%s has no variable that server %d (%s) keeps",
                      dir, place->server, place->servers[place->server]);
    else if (!err && l.lacks)
        FL_WARN("%s has no \"%s\"; what it lacks starts anew", dir, l.lacks);
    for (int64_t i = 0; i < l.pieces.n; i++)
        fl_mem_free(l.pieces.at[i].path);
    fl_vec_fini(&l.pieces);
    return err;
}
