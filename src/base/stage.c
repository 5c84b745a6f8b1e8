/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - files that become visible together. docs/saving.md tells the order
 * of steps and why it is so.
 *
 *     DIR/.save-lock                 held while staging folders come and go,
 *                                    and while files are moved
 *     DIR/.save-ID/                  a staging folder
 *     DIR/.save-ID/.save-lock        held by the process whose folder it is
 *     DIR/.save-ID/w, ...            new files
 *     DIR/.save-ID/__manifest__      the new manifest, before its rename */
#include "base/stage.h"

#include "base/crc.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/path.h"
#include "base/random.h"

#include <inttypes.h>

#define LOCK FL_STAGING "lock"

enum {
    LOCK_WAIT = 60000, /* ms; a lock is held while some files are renamed */
    PART = 1 << 20, /* bytes that are written and summed at a time, so that they
                       stay in the cache */
    MANY = 16,      /* files; more are synced by one syncfs */
};

/* --- moving into place --- */

/* Make the folders above each file, or sync them, and the folder itself. */
static fl_err visit_folders(const fl_disk *disk, const char *dir,
                            const fl_manifest *m,
                            fl_err (*visit)(const fl_disk *, const char *))
{
    const char *last = "";
    fl_err err = FL_OK;
    for (int64_t i = 0; i < m->file.n && !err; i++) {
        const char *name = m->file.at[i].name;
        for (const char *at = name; (at = strchr(at, '/')) && !err; at++) {
            const size_t n = (size_t)(at - name);
            if (!strncmp(last, name, n + 1))
                continue; /* same folder as that of the file before */
            char *part = fl_mem_strdup(name);
            part[n] = 0;
            char *path = fl_path_join(dir, part);
            err = visit(disk, path);
            fl_mem_free(path);
            fl_mem_free(part);
        }
        last = name;
    }
    return err ? err : visit(disk, dir);
}

static fl_err move_file(const fl_disk *disk, const char *from_dir,
                        const char *dir, const char *name)
{
    char *from = fl_path_join(from_dir, name), *to = fl_path_join(dir, name);
    const fl_err err = disk->rename(disk, from, to);
    fl_mem_free(from);
    fl_mem_free(to);
    return err == FL_ENOENT ? FL_OK : err; /* it was moved before */
}

static fl_err write_manifest(const fl_disk *disk, const char *path,
                             const fl_manifest *m)
{
    fl_str text = {0};
    fl_file *f = NULL;
    fl_manifest_encode(m, &text);
    fl_err err = disk->open(disk, path, &f);
    if (!err) {
        err = disk->append(f, text.at, text.n);
        if (!err)
            err = disk->sync(f);
        const fl_err last = disk->close(f);
        err = err ? err : last;
    }
    fl_str_fini(&text);
    return err;
}

/* Write the manifest in the staging folder and rename it, so that nobody reads
 * half of it. */
static fl_err put_manifest(const fl_disk *disk, const char *dir,
                           const char *staging, const fl_manifest *m)
{
    char *from = fl_path_join(staging, FL_MANIFEST);
    char *to = fl_path_join(dir, FL_MANIFEST);
    fl_err err = disk->mkdirs(disk, staging);
    if (!err)
        (void)!disk->remove(disk, from); /* of a process that was killed here */
    if (!err)
        err = write_manifest(disk, from, m);
    if (!err)
        err = disk->persist(disk, dir); /* the manifest names a folder in it */
    if (!err)
        err = disk->rename(disk, from, to);
    fl_mem_free(from);
    fl_mem_free(to);
    return err;
}

/* After a commit: move every file into place, then write a manifest without
 * `staged`. Any process can repeat this from any point. */
static fl_err finish_commit(const fl_disk *disk, const char *dir,
                            fl_manifest *m)
{
    char *staged = m->staged, *from = fl_path_join(dir, staged);
    fl_err err = disk->persist(disk, dir);
    if (!err)
        err = visit_folders(disk, dir, m, disk->mkdirs);
    for (int64_t i = 0; i < m->file.n && !err; i++)
        err = move_file(disk, from, dir, m->file.at[i].name);
    if (!err)
        err = visit_folders(disk, dir, m, disk->persist);
    m->staged = NULL;
    if (!err)
        err = put_manifest(disk, dir, from, m);
    if (!err)
        err = fl_disk_remove_tree(disk, from);
    fl_mem_free(staged);
    fl_mem_free(from);
    return err;
}

/* --- files of other saves --- */

/* Read the manifest. A damaged one counts as missing. */
static fl_err read_manifest(const fl_disk *disk, const char *dir,
                            fl_manifest *m)
{
    fl_folder f;
    const fl_err err = fl_folder_init(&f, disk, dir);
    if (err && err != FL_EPROTO)
        return err;
    if (err) {
        FL_WARN("%s; this save writes a new one", fl_errmsg());
        return FL_OK;
    }
    *m = f.manifest;
    f.manifest = (fl_manifest){0};
    fl_folder_fini(&f);
    return FL_OK;
}

/* Remove a staging folder whose process has ended. On a file system without
 * locks this is not known, and all folders stay. */
static void remove_if_dead(const fl_disk *disk, const char *path)
{
    char *lock = fl_path_join(path, LOCK);
    fl_file *held = NULL;
    if (!disk->lock(disk, lock, 0, &held) && held &&
        fl_disk_remove_tree(disk, path))
        FL_WARN("files of a save that was killed cannot be removed: %s",
                fl_errmsg());
    if (held)
        disk->unlock(held);
    fl_mem_free(lock);
}

static void remove_dead(const fl_disk *disk, const char *dir, const char *own)
{
    fl_file_names names = {0};
    if (disk->list(disk, dir, &names))
        return;
    for (int64_t i = 0; i < names.n; i++) {
        const char *name = names.at[i];
        if (!fl_starts_with(name, FL_STAGING) || !strcmp(name, LOCK))
            continue;
        char *path = fl_path_join(dir, name);
        if (!own || strcmp(path, own))
            remove_if_dead(disk, path);
        fl_mem_free(path);
    }
    fl_file_names_fini(&names);
}

/* Finish a save that was committed, remove those that were not. *m becomes the
 * manifest. */
static fl_err tidy_folder(const fl_disk *disk, const char *dir, const char *own,
                          fl_manifest *m)
{
    FL_TRY(read_manifest(disk, dir, m));
    if (m->staged)
        FL_TRY(finish_commit(disk, dir, m));
    remove_dead(disk, dir, own);
    return FL_OK;
}

static fl_err lock_folder(const fl_disk *disk, const char *dir, fl_file **out)
{
    char *path = fl_path_join(dir, LOCK);
    const fl_err err = disk->lock(disk, path, LOCK_WAIT, out);
    fl_mem_free(path);
    return err;
}

/* --- staging --- */

/* Note that the disk failed, and not the values that the caller wanted to save.
 */
static fl_err note_failure(fl_stage *s, fl_err err)
{
    s->failed |= err != FL_OK;
    return err;
}

/* The same for a file; the error message also names its final path. */
static fl_err note_file_failure(fl_stage *s, const char *name, fl_err err)
{
    if (err)
        fl_fail_at(err, "saving %s/%s", s->dir, name);
    return note_failure(s, err);
}

static fl_err make_staging(fl_stage *s)
{
    fl_str name = {0};
    fl_entropy random = fl_entropy_real();
    fl_str_printf(&name, FL_STAGING "%016" PRIx64, random.draw(&random));
    s->path = fl_path_join(s->dir, name.at);
    fl_str_fini(&name);
    char *lock = fl_path_join(s->path, LOCK);
    fl_err err = s->disk->mkdirs(s->disk, s->path);
    if (!err)
        err = s->disk->lock(s->disk, lock, 0, &s->alive);
    fl_mem_free(lock);
    return err;
}

static fl_err check_kind(const fl_manifest *m, const fl_stage *s)
{
    if (!m->kind || !strcmp(m->kind, s->list.kind))
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s holds a %s, and a %s cannot be saved into it: choose "
                   "another folder",
                   s->dir, m->kind, s->list.kind);
}

static bool is_missing(const fl_disk *disk, const char *path)
{
    int64_t size;
    return disk->size(disk, path, &size) == FL_ENOENT;
}

/* Make a folder, and its parents if needed. A new folder survives a loss of
 * power once its parent was synced. */
static fl_err make_folder(const fl_disk *disk, const char *dir)
{
    char *above = fl_path_parent(dir);
    const bool is_top = !strcmp(above, dir); /* "/" or "." */
    fl_err err = FL_OK;
    if (!is_top && is_missing(disk, above))
        err = make_folder(disk, above);
    if (!err)
        err = disk->mkdirs(disk, dir);
    if (!err && !is_top)
        err = disk->persist(disk, above);
    fl_mem_free(above);
    return err;
}

static fl_err begin_stage(fl_stage *s)
{
    fl_file *lock = NULL;
    fl_manifest old = {0};
    s->made = is_missing(s->disk, s->dir);
    FL_TRY((s->made ? make_folder : s->disk->mkdirs)(s->disk, s->dir));
    FL_TRY(lock_folder(s->disk, s->dir, &lock));
    fl_err err = tidy_folder(s->disk, s->dir, NULL, &old);
    if (!err)
        err = check_kind(&old, s);
    if (!err)
        err = make_staging(s);
    s->disk->unlock(lock);
    fl_manifest_fini(&old);
    return err;
}

fl_err fl_stage_init(fl_stage *s, const fl_disk *disk, const char *dir,
                     const char *kind)
{
    *s = (fl_stage){.disk = disk, .dir = fl_mem_strdup(*dir ? dir : ".")};
    s->list.kind = fl_mem_strdup(kind);
    return note_failure(s, begin_stage(s));
}

static fl_err open_staged(fl_stage *s, const char *name)
{
    char *path = fl_path_join(s->path, name);
    fl_err err =
        strchr(name, '/') ? fl_disk_make_parents(s->disk, path) : FL_OK;
    if (!err)
        err = s->disk->open(s->disk, path, &s->file);
    fl_mem_free(path);
    return note_file_failure(s, name, err);
}

fl_err fl_stage_open(fl_stage *s, const char *name)
{
    FL_TRY(fl_path_check(name));
    if (fl_manifest_find(&s->list, name))
        return fl_fail(FL_EINVAL, "\"%s\" would be saved twice into %s", name,
                       s->dir);
    FL_TRY(open_staged(s, name));
    s->name = fl_mem_strdup(name);
    s->size = 0;
    s->crc = 0;
    return FL_OK;
}

fl_err fl_stage_append(fl_stage *s, const void *bytes, size_t n)
{
    for (size_t at = 0; at < n; at += PART) {
        const size_t some = n - at < PART ? n - at : PART;
        s->crc = fl_crc32c(s->crc, (const char *)bytes + at, some);
        FL_TRY(note_file_failure(
            s, s->name,
            s->disk->append(s->file, (const char *)bytes + at, some)));
    }
    s->size += (int64_t)n;
    return FL_OK;
}

static fl_err end_file(fl_stage *s)
{
    fl_err err = s->file ? s->disk->close(s->file) : FL_OK;
    err = note_file_failure(s, s->name, err);
    fl_mem_free(s->name);
    s->file = NULL;
    s->name = NULL;
    return err;
}

fl_err fl_stage_close(fl_stage *s)
{
    fl_manifest_put(&s->list, s->name, s->size, s->crc);
    return end_file(s);
}

fl_err fl_stage_write(fl_stage *s, const char *name, const fl_part *part,
                      int64_t n)
{
    fl_err err = fl_stage_open(s, name);
    for (int64_t i = 0; i < n && !err; i++)
        err = fl_stage_append(s, part[i].at, part[i].n);
    return err ? err : fl_stage_close(s);
}

char *fl_stage_scratch(const fl_stage *s)
{
    return fl_path_join(s->path, FL_STAGING "scratch");
}

/* --- commit --- */

/* List the staged files, and those of earlier saves that still exist, if they
 * stay. */
static void merge_old(const fl_stage *s, const fl_manifest *old,
                      fl_manifest *all)
{
    for (int64_t i = 0; i < old->file.n && !s->replaces; i++) {
        const fl_listed *f = &old->file.at[i];
        char *path = fl_path_join(s->dir, f->name);
        int64_t size;
        if (!s->disk->size(s->disk, path, &size))
            fl_manifest_put(all, f->name, f->size, f->crc);
        fl_mem_free(path);
    }
    for (int64_t i = 0; i < s->list.file.n; i++) {
        const fl_listed *f = &s->list.file.at[i];
        fl_manifest_put(all, f->name, f->size, f->crc);
    }
}

/* Check before the commit that all files can be moved into place. */
static fl_err check_places(const fl_stage *s)
{
    FL_TRY(visit_folders(s->disk, s->dir, &s->list, s->disk->mkdirs));
    for (int64_t i = 0; i < s->list.file.n; i++) {
        char *path = fl_path_join(s->dir, s->list.file.at[i].name);
        fl_file_names below = {0};
        const bool is_folder = !s->disk->list(s->disk, path, &below);
        const fl_err err = is_folder ? fl_fail(FL_EIO,
                                               "%s: cannot save a file here, "
                                               "because a folder has this name",
                                               path)
                                     : FL_OK;
        fl_file_names_fini(&below);
        fl_mem_free(path);
        FL_TRY(err);
    }
    return FL_OK;
}

/* Whether the path is that of a listed file; *above: or of a folder above one.
 */
static bool is_listed(const fl_manifest *m, const char *path, bool *above)
{
    const size_t n = strlen(path);
    bool is = false;
    *above = false;
    for (int64_t i = 0; i < m->file.n; i++) {
        const char *name = m->file.at[i].name;
        is |= !strcmp(name, path);
        *above |= !strncmp(name, path, n) && name[n] == '/';
    }
    return is;
}

/* Remove what the manifest does not list below `path`, which is a folder of the
 * save; NULL: below the folder itself. A kill leaves some of it to the next
 * save that replaces the folder. */
static fl_err remove_unlisted(const fl_stage *s, const fl_manifest *m,
                              const char *path)
{
    fl_file_names names = {0};
    char *dir = path ? fl_path_join(s->dir, path) : fl_mem_strdup(s->dir);
    fl_err err = s->disk->list(s->disk, dir, &names);
    for (int64_t i = 0; i < names.n && !err; i++) {
        const char *name = names.at[i];
        bool above;
        if (!path &&
            (fl_starts_with(name, FL_STAGING) || !strcmp(name, FL_MANIFEST)))
            continue;
        char *at = path ? fl_path_join(path, name) : fl_mem_strdup(name);
        char *full = fl_path_join(dir, name);
        const bool listed = is_listed(m, at, &above);
        if (above)
            err = remove_unlisted(s, m, at);
        else if (!listed && s->disk->remove(s->disk, full))
            err = fl_disk_remove_tree(s->disk, full); /* it may be a folder */
        fl_mem_free(full);
        fl_mem_free(at);
    }
    fl_file_names_fini(&names);
    fl_mem_free(dir);
    return err;
}

static fl_err commit_over(fl_stage *s, const fl_manifest *old)
{
    fl_manifest all = {.kind = fl_mem_strdup(s->list.kind),
                       .staged = fl_mem_strdup(fl_path_base(s->path))};
    fl_err err = check_kind(old, s);
    if (!err)
        err = check_places(s);
    merge_old(s, old, &all);
    if (!err)
        err = put_manifest(s->disk, s->dir, s->path, &all);
    s->committed = !err;
    if (!err && finish_commit(s->disk, s->dir, &all))
        err = fl_fail_at(FL_EIO,
                         "the save is complete and loads from %s; the next "
                         "save moves the files into place",
                         s->path);
    if (!err && s->replaces && remove_unlisted(s, &all, NULL))
        FL_WARN("files that an earlier save has left cannot be removed: %s",
                fl_errmsg());
    fl_manifest_fini(&all);
    return err;
}

static fl_err persist_staged(const fl_stage *s)
{
    if (s->list.file.n > MANY)
        return s->disk->persist_tree(s->disk, s->path);
    for (int64_t i = 0; i < s->list.file.n; i++) {
        char *path = fl_path_join(s->path, s->list.file.at[i].name);
        const fl_err err = s->disk->persist(s->disk, path);
        fl_mem_free(path);
        FL_TRY(err);
    }
    return visit_folders(s->disk, s->path, &s->list, s->disk->persist);
}

fl_err fl_stage_commit(fl_stage *s)
{
    fl_file *lock = NULL;
    fl_manifest old = {0};
    fl_err err = persist_staged(s);
    if (!err)
        err = lock_folder(s->disk, s->dir, &lock);
    if (err)
        return note_failure(s, err);
    err = tidy_folder(s->disk, s->dir, s->path, &old);
    if (!err)
        err = commit_over(s, &old);
    s->disk->unlock(lock);
    fl_manifest_fini(&old);
    return note_failure(s, err);
}

void fl_stage_fini(fl_stage *s)
{
    const fl_sentence last = fl_sentence_keep();
    (void)!end_file(s);
    if (s->path && !s->committed && fl_disk_remove_tree(s->disk, s->path))
        FL_WARN("files of a save that failed cannot be removed: %s",
                fl_errmsg());
    if (s->alive)
        s->disk->unlock(s->alive);
    if (s->made && s->failed && !s->committed)
        (void)!s->disk->remove(s->disk, s->dir); /* fails if it is not empty */
    fl_manifest_fini(&s->list);
    fl_mem_free(s->dir);
    fl_mem_free(s->path);
    *s = (fl_stage){0};
    fl_sentence_restore(&last);
}
