/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - saved programs, tensors and folders as text for users. */
#include "api/engine.h"

#include "base/folder.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/utf8.h"
#include "graph/program.h"
#include "tensor/file.h"
#include "tensor/record.h"

#include <string.h>

enum {
    LARGEST_FILE = 1 << 30, /* bytes of a file that is shown */
    SHOWN = 32,             /* elements of a tensor that are shown */
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

static void show_head(const fl_value *v, fl_str *s)
{
    char shape[FL_SHAPE_TEXT];
    bool rows = v->kind == FL_SELECTED_ROWS;
    const fl_tensor *t = rows ? &v->rows.value : &v->tensor;
    fl_str_printf(s, "%s %s%s", rows ? "selected rows" : "tensor",
                  fl_dtype_name(t->dtype), fl_shape_text(&t->shape, shape));
    if (rows)
        fl_str_printf(s, " of %lld", (long long)v->rows.height);
}

static void show_value(const fl_value *v, fl_str *s)
{
    const fl_tensor *t =
        v->kind == FL_SELECTED_ROWS ? &v->rows.value : &v->tensor;
    show_head(v, s);
    fl_str_add(s, "\n");
    show_lod(&t->lod, s);
    show_elements(t, s);
}

/* Show the records of a tensor file: one for a variable, several in a combined
 * file. With `brief` only their types and shapes, in one line. */
static fl_err show_records(const char *path, const fl_str *bytes, fl_kind kind,
                           bool brief, fl_str *s)
{
    fl_err err = FL_OK;
    for (size_t at = 0; at < bytes->n && !err;) {
        fl_value v = {.kind = kind};
        size_t used = 0;
        err = fl_value_decode(path, bytes->at + at, bytes->n - at, &v, &used);
        if (!err && brief && at)
            fl_str_add(s, ", ");
        if (!err)
            (brief ? show_head : show_value)(&v, s);
        fl_value_fini(&v);
        at += used;
    }
    return err;
}

/* Show a file of tensors or of selected rows. If it is neither, the error is
 * that of a tensor, because most files hold tensors. */
static fl_err show_tensors(const char *path, const fl_str *bytes, bool brief,
                           fl_str *s)
{
    fl_str rows = {0};
    const size_t start = s->n;
    if (!show_records(path, bytes, FL_LOD_TENSOR, brief, s))
        return FL_OK;
    s->n = start;
    fl_err err = show_records(path, bytes, FL_SELECTED_ROWS, brief, &rows);
    if (!err)
        fl_str_add(s, rows.at);
    else
        err = show_records(path, bytes, FL_LOD_TENSOR, brief, &rows);
    fl_str_fini(&rows);
    return err;
}

/* A tensor file begins with four zero bytes, a program with the tag of its
 * blocks or of its version. */
static bool is_tensor(const fl_str *bytes)
{
    return bytes->n >= 4 && !memcmp(bytes->at, "\0\0\0\0", 4);
}

static bool is_program(const fl_str *bytes)
{
    enum {
        BLOCKS = 1 << 3 | 2,
        VERSION = 2 << 3 | 2
    };
    return bytes->n && (bytes->at[0] == BLOCKS || bytes->at[0] == VERSION);
}

static fl_err show_file(fl_engine *e, const char *path, const fl_str *bytes,
                        fl_str *s)
{
    fl_program *p;
    if (!bytes->n)
        return fl_fail(FL_EPROTO, "%s is empty, expected a program or a tensor",
                       path);
    if (is_tensor(bytes))
        return show_tensors(path, bytes, false, s);
    if (!is_program(bytes))
        return fl_fail(FL_EPROTO, "%s is neither a program nor a tensor", path);
    FL_TRY(fl_program_decode(e->registry, path, bytes->at, bytes->n, &p));
    char *brief = fl_program_brief(p);
    fl_str_add(s, brief);
    fl_mem_free(brief);
    fl_program_free(p);
    return FL_OK;
}

/* --- folders --- */

static void show_program_head(fl_engine *e, const fl_str *bytes, fl_str *s)
{
    fl_program *p;
    int64_t ops = 0;
    if (fl_program_decode(e->registry, "it", bytes->at, bytes->n, &p)) {
        fl_str_add(s, "neither a program nor a tensor");
        return;
    }
    for (int64_t i = 0; i < p->blocks.n; i++)
        ops += p->blocks.at[i]->ops.n;
    fl_str_printf(s, "program, %lld operators", (long long)ops);
    fl_program_free(p);
}

/* Append what a file contains, in one line. */
static void show_content(fl_engine *e, const fl_str *bytes, fl_str *s)
{
    if (is_program(bytes))
        show_program_head(e, bytes, s);
    else if (!is_tensor(bytes) || show_tensors("it", bytes, true, s))
        fl_str_add(s, bytes->n ? "neither a program nor a tensor" : "empty");
}

/* Show the head of a file that is too large to be read as a whole, and compare
 * its checksum. */
static fl_err show_large(const fl_folder *f, const char *name, fl_str *s)
{
    char *path, shape[FL_SHAPE_TEXT];
    fl_record r;
    FL_TRY(fl_folder_find(f, name, &path));
    fl_err err = fl_record_open(f->disk, path, FL_LOD_TENSOR, &r);
    const bool rows =
        err && !fl_record_open(f->disk, path, FL_SELECTED_ROWS, &r);
    if (!err || rows) {
        fl_str_printf(s, "%s %s%s", rows ? "selected rows" : "tensor",
                      fl_dtype_name(r.dtype), fl_shape_text(&r.shape, shape));
        err = fl_folder_check(f, name, r.file, r.size);
        fl_record_close(&r);
    }
    fl_mem_free(path);
    return err;
}

static void show_entry(fl_engine *e, const fl_folder *f, const char *name,
                       fl_str *s)
{
    fl_str bytes = {0};
    fl_str_add(s, "  ");
    fl_utf8_escape(s, name);
    fl_str_add(s, "  ");
    fl_err err = fl_folder_read(f, name, LARGEST_FILE, &bytes);
    if (err == FL_EINVAL)
        err = show_large(f, name, s);
    else if (!err)
        show_content(e, &bytes, s);
    if (err) {
        fl_str_add(s, "NOT AS SAVED: ");
        fl_utf8_escape(s, fl_errmsg());
    } else if (f->manifest.kind && !fl_manifest_find(&f->manifest, name)) {
        fl_str_add(s, " (not in the manifest)");
    }
    fl_str_add(s, "\n");
    fl_str_fini(&bytes);
}

/* List every file that exists or is in the manifest, sorted by name. */
static fl_err list_files(const fl_folder *f, fl_manifest *out)
{
    fl_file_names names = {0}, below = {0};
    FL_TRY(f->disk->list(f->disk, f->dir, &names));
    for (int64_t i = 0; i < names.n; i++) {
        char *path = fl_path_join(f->dir, names.at[i]);
        if (!fl_path_check(names.at[i]) && f->disk->list(f->disk, path, &below))
            fl_manifest_put(out, names.at[i], 0, 0);
        fl_mem_free(path);
    }
    for (int64_t i = 0; i < f->manifest.file.n; i++)
        fl_manifest_put(out, f->manifest.file.at[i].name, 0, 0);
    fl_file_names_fini(&names);
    fl_file_names_fini(&below);
    return FL_OK;
}

static void show_manifest(const fl_folder *f, int64_t files, fl_str *s)
{
    const fl_manifest *m = &f->manifest;
    fl_str_printf(s, "%s: %lld file%s; ", f->dir, (long long)files,
                  files == 1 ? "" : "s");
    if (m->kind)
        fl_str_printf(s, "%s lists %lld of them as a %s\n", f->path,
                      (long long)m->file.n, m->kind);
    else
        fl_str_add(s, "there is no manifest, so nothing is checked\n");
    if (m->staged)
        fl_str_printf(s,
                      "  a save was not finished: some files are still in "
                      "%s/%s; loading finds them, the next save moves them\n",
                      f->dir, m->staged);
}

/* Arguments and result of a listing. */
typedef struct listing {
    fl_engine *e;
    fl_str *s;
} listing;

static fl_err show_folder(const fl_folder *f, void *user)
{
    const listing *l = user;
    fl_manifest all = {0};
    l->s->n = 0;
    FL_TRY(list_files(f, &all));
    show_manifest(f, all.file.n, l->s);
    for (int64_t i = 0; i < all.file.n; i++)
        show_entry(l->e, f, all.file.at[i].name, l->s);
    fl_manifest_fini(&all);
    return FL_OK;
}

static bool is_folder(const fl_disk *d, const char *path)
{
    fl_file_names names = {0};
    const bool is = !d->list(d, path, &names);
    fl_file_names_fini(&names);
    return is;
}

fl_err fl_show(fl_engine *e, const char *path, char **text)
{
    fl_str bytes = {0}, s = {0};
    fl_err err;
    if (is_folder(e->disk, path)) {
        listing l = {e, &s};
        err = fl_folder_visit(e->disk, path, show_folder, &l);
    } else {
        err = e->disk->read(e->disk, path, LARGEST_FILE, &bytes);
        if (!err)
            err = show_file(e, path, &bytes, &s);
    }
    fl_str_fini(&bytes);
    if (err)
        fl_str_fini(&s);
    else
        *text = fl_str_take(&s);
    return err;
}
