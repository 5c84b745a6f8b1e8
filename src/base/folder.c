/* SPDX-License-Identifier: Apache-2.0 */
/* folder.c - the files of a folder as its last complete save left them. */
#include "base/folder.h"

#include "base/crc.h"
#include "base/path.h"
#include "base/stage.h"

#include <inttypes.h>

enum {
    LARGEST_MANIFEST = 256 << 20, /* bytes; about 100 for each file */
    PART = 1 << 20,    /* bytes that are read at a time for a checksum */
    MOST_TRIES = 1000, /* times that another save was completed while reading */
};

/* --- the manifest --- */

static fl_err read_text(const fl_folder *f, fl_str *text)
{
    const fl_err err = f->disk->read(f->disk, f->path, LARGEST_MANIFEST, text);
    return err == FL_ENOENT ? FL_OK : err;
}

static fl_err read_manifest(fl_folder *f)
{
    FL_TRY(read_text(f, &f->text));
    if (!f->text.at)
        return FL_OK;
    fl_err err =
        fl_manifest_decode(f->path, f->text.at, f->text.n, &f->manifest);
    if (err == FL_EPROTO)
        err = fl_fail_at(err, "remove %s to load the files unchecked", f->path);
    return err;
}

fl_err fl_folder_init(fl_folder *f, const fl_disk *disk, const char *dir)
{
    *f = (fl_folder){.disk = disk, .dir = fl_mem_strdup(*dir ? dir : ".")};
    f->path = fl_path_join(dir, FL_MANIFEST);
    const fl_err err = read_manifest(f);
    if (err)
        fl_folder_fini(f);
    return err;
}

void fl_folder_fini(fl_folder *f)
{
    fl_manifest_fini(&f->manifest);
    fl_str_fini(&f->text);
    fl_mem_free(f->dir);
    fl_mem_free(f->path);
    *f = (fl_folder){0};
}

fl_err fl_folder_need(const fl_disk *disk, const char *dir)
{
    fl_file_names names = {0};
    const fl_err err = disk->list(disk, *dir ? dir : ".", &names);
    fl_file_names_fini(&names);
    if (err == FL_ENOENT)
        return fl_fail(err, "%s does not exist, expected a saved folder", dir);
    return err ? fl_fail_at(err, "expected a saved folder") : FL_OK;
}

bool fl_folder_has_changed(const fl_folder *f)
{
    fl_str now = {0};
    const bool changed =
        !read_text(f, &now) &&
        (now.n != f->text.n || (now.n && memcmp(now.at, f->text.at, now.n)));
    fl_str_fini(&now);
    return changed;
}

fl_err fl_folder_visit(const fl_disk *disk, const char *dir, fl_folder_fn read,
                       void *user)
{
    for (int i = 1;; i++) {
        fl_folder f;
        FL_TRY(fl_folder_init(&f, disk, dir));
        const fl_err err = read(&f, user);
        const fl_sentence last = fl_sentence_keep();
        /* without a manifest a mixture of two saves would not be noticed */
        const bool again =
            (err || !f.manifest.kind) && fl_folder_has_changed(&f);
        fl_sentence_restore(&last);
        fl_folder_fini(&f);
        if (!again || i == MOST_TRIES)
            return err;
    }
}

/* --- files --- */

/* The path of a file in the staging folder, before it is moved; NULL: there is
 * no staging folder. Own: the caller frees it with fl_mem_free. */
static char *staged_path(const fl_folder *f, const char *name)
{
    if (!f->manifest.staged)
        return NULL;
    char *dir = fl_path_join(f->dir, f->manifest.staged);
    char *path = fl_path_join(dir, name);
    fl_mem_free(dir);
    return path;
}

static fl_err is_missing(const fl_folder *f, const char *name, fl_err err)
{
    const fl_listed *is = fl_manifest_find(&f->manifest, name);
    if (err == FL_ENOENT && !f->manifest.kind &&
        fl_folder_need(f->disk, f->dir) == FL_ENOENT)
        return FL_ENOENT; /* the folder rather than a file in it */
    if (err != FL_ENOENT || !is)
        return err;
    return fl_fail(FL_ENOENT,
                   "%s/%s is missing: %s lists it with %" PRId64 " bytes",
                   f->dir, name, f->path, is->size);
}

fl_err fl_folder_find(const fl_folder *f, const char *name, char **path)
{
    int64_t size;
    FL_TRY(fl_path_check(name));
    char *at = staged_path(f, name);
    if (!at || f->disk->size(f->disk, at, &size)) {
        fl_mem_free(at);
        at = fl_path_join(f->dir, name);
    }
    const fl_err err = f->disk->size(f->disk, at, &size);
    if (err)
        fl_mem_free(at);
    else
        *path = at;
    return is_missing(f, name, err);
}

/* Append to the error what to do about a file that differs from what was saved.
 */
static fl_err is_another(const fl_folder *f)
{
    return fl_fail_at(FL_EPROTO,
                      "it was changed after the save: save again, restore "
                      "it, or remove %s to load the files as they are",
                      f->path);
}

static fl_err check_size(const fl_folder *f, const fl_listed *is, int64_t bytes)
{
    if (bytes == is->size)
        return FL_OK;
    (void)!fl_fail(FL_EPROTO,
                   "%s/%s has %" PRId64 " bytes, but %s says %" PRId64, f->dir,
                   is->name, bytes, f->path, is->size);
    return is_another(f);
}

static fl_err check_crc(const fl_folder *f, const fl_listed *is, uint32_t crc)
{
    if (crc == is->crc)
        return FL_OK;
    (void)!fl_fail(FL_EPROTO,
                   "%s/%s has the CRC-32C %08" PRIx32
                   ", but %s says %08" PRIx32,
                   f->dir, is->name, crc, f->path, is->crc);
    return is_another(f);
}

fl_err fl_folder_check(const fl_folder *f, const char *name, fl_file *file,
                       int64_t bytes)
{
    const fl_listed *is = fl_manifest_find(&f->manifest, name);
    if (!is)
        return FL_OK;
    FL_TRY(check_size(f, is, bytes));
    char *part = fl_mem_alloc(PART);
    uint32_t crc = 0;
    fl_err err = FL_OK;
    for (int64_t at = 0; at < bytes && !err; at += PART) {
        const size_t n = bytes - at < PART ? (size_t)(bytes - at) : PART;
        err = f->disk->read_at(file, at, part, n);
        if (!err)
            crc = fl_crc32c(crc, part, n);
    }
    fl_mem_free(part);
    return err ? err : check_crc(f, is, crc);
}

fl_err fl_folder_read(const fl_folder *f, const char *name, size_t limit,
                      fl_str *out)
{
    const fl_listed *is = fl_manifest_find(&f->manifest, name);
    FL_TRY(fl_path_check(name));
    char *staged = staged_path(f, name), *path = fl_path_join(f->dir, name);
    fl_err err =
        staged ? f->disk->read(f->disk, staged, limit, out) : FL_ENOENT;
    if (err == FL_ENOENT)
        err = f->disk->read(f->disk, path, limit, out);
    fl_mem_free(staged);
    fl_mem_free(path);
    if (err || !is)
        return is_missing(f, name, err);
    FL_TRY(check_size(f, is, (int64_t)out->n));
    return check_crc(f, is, fl_crc32c(0, out->at, out->n));
}

/* --- one file by its path --- */

typedef struct one_file {
    const char *name;
    size_t limit;
    fl_str *out;
} one_file;

static fl_err read_one(const fl_folder *f, void *user)
{
    const one_file *o = user;
    return fl_folder_read(f, o->name, o->limit, o->out);
}

fl_err fl_file_read(const fl_disk *disk, const char *path, size_t limit,
                    fl_str *out)
{
    one_file o = {fl_path_base(path), limit, out};
    char *dir = fl_path_parent(path);
    const fl_err err = fl_folder_visit(disk, dir, read_one, &o);
    fl_mem_free(dir);
    return err;
}

static fl_err write_listed(const fl_disk *disk, const char *dir,
                           const char *name, const char *kind,
                           const fl_part *part, int64_t n)
{
    fl_stage s;
    fl_err err = fl_stage_init(&s, disk, dir, kind);
    if (!err)
        err = fl_stage_write(&s, name, part, n);
    if (!err)
        err = fl_stage_commit(&s);
    fl_stage_fini(&s);
    return err;
}

fl_err fl_file_write(const fl_disk *disk, const char *path, const fl_part *part,
                     int64_t n)
{
    const char *name = fl_path_base(path);
    char *dir = fl_path_parent(path);
    fl_folder f = {0};
    fl_err err = fl_path_check(name);
    if (!err)
        err = fl_folder_init(&f, disk, dir);
    if (!err && f.manifest.kind)
        err = write_listed(disk, dir, name, f.manifest.kind, part, n);
    else if (!err)
        err = disk->write(disk, path, part, n, false);
    fl_folder_fini(&f);
    fl_mem_free(dir);
    return err;
}
