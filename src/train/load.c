/* load.c - a server's pieces from files that hold whole variables. */
#include "train/save.h"

#include "tensor/file.h"

/* Elements of `whole` from k->first on, in the shape of the piece. */
static fl_err cut_piece(const fl_kept *k, const fl_tensor *whole,
                        const char *path, fl_value *out)
{
    char got[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    const int64_t n = fl_shape_numel(&k->shape);
    if (k->first + n > fl_tensor_numel(whole))
        return fl_fail(FL_ESHAPE,
                       "%s has %s, too few for the piece %s from element %lld "
                       "on that this server keeps",
                       path, fl_shape_text(&whole->shape, got),
                       fl_shape_text(&k->shape, want), (long long)k->first);
    const char *at = (const char *)whole->data +
                     (size_t)k->first * fl_dtype_size(whole->dtype);
    const fl_tensor piece = fl_tensor_view(whole->dtype, &k->shape, at);
    out->kind = FL_LOD_TENSOR;
    return fl_tensor_copy(&out->tensor, &piece);
}

static fl_err load_piece(const fl_disk *disk, const fl_kept *k, fl_scope *scope,
                         const char *path)
{
    fl_value whole = {.kind = FL_LOD_TENSOR}, *at = &whole;
    if (k->first == FL_BY_ID)
        return fl_fail(FL_EINVAL,
                       "%s: \"%s\" is spread over servers by id, and such a "
                       "table cannot be loaded on servers yet; train it with "
                       "is_distributed=False to go on from a model",
                       path, k->var);
    fl_err err = fl_values_load(disk, path, 1, &at);
    fl_value *value = fl_scope_find(scope, k->name);
    if (!err)
        err = cut_piece(k, &whole.tensor, path,
                        value ? value : fl_scope_var(scope, k->name));
    fl_value_fini(&whole);
    return err;
}

/* *loaded counts files. Gradients have none: they start with the round. */
static fl_err load_if_saved(const fl_disk *disk, const fl_kept *k,
                            fl_scope *scope, const char *dir, int *loaded)
{
    int64_t size;
    fl_err err = FL_OK;
    fl_str path = {0};
    fl_str_printf(&path, "%s%s%s", dir, fl_ends_with(dir, "/") ? "" : "/",
                  k->var);
    if (!disk->size(disk, path.at, &size)) {
        err = load_piece(disk, k, scope, path.at);
        ++*loaded;
    }
    fl_str_fini(&path);
    return err;
}

static bool is_named(const char *name, int n, const char *const *names)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return n < 0;
}

fl_err fl_place_load(const fl_disk *disk, const fl_program *server,
                     fl_scope *scope, const char *dir, int n,
                     const char *const *names)
{
    const fl_place *place = server->place;
    int loaded = 0;
    for (int i = 0; i < place->n_kept; i++) {
        const fl_kept *k = &place->kept[i];
        if (k->server == place->server && is_named(k->name, n, names))
            FL_TRY(load_if_saved(disk, k, scope, dir, &loaded));
    }
    if (!loaded)
        return fl_fail(FL_ENOENT,
                       "%s has no variable that server %d (%s) keeps", dir,
                       place->server, place->servers[place->server]);
    return FL_OK;
}
