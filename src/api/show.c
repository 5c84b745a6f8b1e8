/* show.c - saved things and tables in words. */
#include "api/engine.h"

#include "base/mem.h"
#include "graph/program.h"
#include "tensor/file.h"

#include <string.h>

enum {
    LARGEST_FILE = 1 << 30, /* bytes: more than a person reads */
    SHOWN = 32,             /* elements of a tensor */
};

static void show_elements(const fl_tensor *t, fl_str *s)
{
    int64_t n = fl_tensor_numel(t);
    size_t size = fl_dtype_size(t->dtype);
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        double d;
        if (fl_convert(1, t->dtype, (char *)t->data + size * (size_t)i, FL_F64,
                       &d))
            return;
        fl_str_printf(s, "%s%.9g", i ? " " : "  ", d);
    }
    if (n > SHOWN)
        fl_str_printf(s, " ... (%lld elements)", (long long)n);
    fl_str_add(s, "\n");
}

static void show_lod(const fl_lod *lod, fl_str *s)
{
    for (int l = 0; l < lod->levels; l++) {
        fl_str_printf(s, "  lod %d:", l);
        for (int64_t i = 0; i < lod->n[l] && i < SHOWN; i++)
            fl_str_printf(s, " %lld", (long long)lod->off[l][i]);
        fl_str_add(s, lod->n[l] > SHOWN ? " ...\n" : "\n");
    }
}

static void show_value(const fl_value *v, fl_str *s)
{
    char shape[FL_SHAPE_TEXT];
    bool rows = v->kind == FL_SELECTED_ROWS;
    const fl_tensor *t = rows ? &v->rows.value : &v->tensor;
    fl_str_printf(s, "%s %s%s", rows ? "selected rows" : "tensor",
                  fl_dtype_name(t->dtype), fl_shape_text(&t->shape, shape));
    if (rows)
        fl_str_printf(s, " of %lld", (long long)v->rows.height);
    fl_str_add(s, "\n");
    show_lod(&t->lod, s);
    show_elements(t, s);
}

/* Records back to back: one for a variable, several in a combined file. */
static fl_err show_records(const char *path, const fl_str *bytes, fl_kind kind,
                           fl_str *s)
{
    fl_err err = FL_OK;
    for (size_t at = 0; at < bytes->n && !err;) {
        fl_value v = {.kind = kind};
        size_t used = 0;
        err = fl_value_decode(path, bytes->at + at, bytes->n - at, &v, &used);
        if (!err)
            show_value(&v, s);
        fl_value_fini(&v);
        at += used;
    }
    return err;
}

/* A tensor file begins with four zero bytes, a program never does. */
static bool is_tensor(const fl_str *bytes)
{
    return bytes->n >= 4 && !memcmp(bytes->at, "\0\0\0\0", 4);
}

static fl_err show_bytes(fl_engine *e, const char *path, const fl_str *bytes,
                         char **text)
{
    if (is_tensor(bytes)) {
        fl_str s = {0};
        fl_err err = show_records(path, bytes, FL_LOD_TENSOR, &s);
        if (err) {
            fl_str rows = {0};
            if (!show_records(path, bytes, FL_SELECTED_ROWS, &rows))
                err = FL_OK;
            else /* say what was wrong with it as a tensor */
                err = show_records(path, bytes, FL_LOD_TENSOR, &s);
            fl_str_fini(&s);
            s = rows;
        }
        if (err)
            fl_str_fini(&s);
        else
            *text = fl_str_take(&s);
        return err;
    }
    fl_program *p;
    FL_TRY(fl_program_decode(e->registry, path, bytes->at, bytes->n, &p));
    *text = fl_program_brief(p);
    fl_program_free(p);
    return FL_OK;
}

/* Of a saved model, a directory, the program is shown. */
static fl_err read_saved(const fl_disk *d, const char *path, fl_str *model,
                         fl_str *bytes)
{
    int64_t size;
    fl_str_printf(model, "%s/__model__", path);
    if (!d->size(d, model->at, &size))
        path = model->at;
    return d->read(d, path, LARGEST_FILE, bytes);
}

fl_err fl_show(fl_engine *e, const char *path, char **text)
{
    fl_str bytes = {0}, model = {0};
    fl_err err = read_saved(e->disk, path, &model, &bytes);
    if (!err && !bytes.n)
        err = fl_fail(FL_EPROTO, "%s: the file is empty", path);
    if (!err)
        err = show_bytes(e, path, &bytes, text);
    fl_str_fini(&model);
    fl_str_fini(&bytes);
    return err;
}
