/* SPDX-License-Identifier: Apache-2.0 */
/* memdisk.c - named byte strings behind the disk interface.
 *
 *     now       what programs see
 *     durable   what is left after a loss of power */
#include "base/memdisk.h"

#include "base/path.h"

#include <errno.h>
#include <stdlib.h>

/* The bytes of a file; entries of both lists share them. */
typedef struct body {
    fl_str bytes;
    size_t synced; /* bytes that survive a crash */
    bool locked;
    int refs;
} body;

typedef struct entry {
    char *path;
    body *body;
} entry;

typedef FL_VEC(entry) entries;

struct fl_memdisk {
    fl_disk disk;
    entries now, durable;
    int64_t left; /* changes before failures begin; -1: no failures */
    bool once;    /* only one change fails */
    int64_t room; /* bytes that may still be appended; -1: any number */
};

struct fl_file {
    fl_memdisk *m;
    char *path;
    body *body; /* the body that the path had when it was opened */
};

static fl_memdisk *memdisk_of(const fl_disk *d)
{
    return d->self;
}

/* --- entries --- */

static void unref_body(body *b)
{
    if (--b->refs)
        return;
    fl_str_fini(&b->bytes);
    fl_mem_free(b);
}

static body *new_body(void)
{
    return fl_mem_alloc(sizeof(body));
}

static int64_t find_path(const entries *list, const char *path)
{
    for (int64_t i = 0; i < list->n; i++)
        if (!strcmp(list->at[i].path, path))
            return i;
    return -1;
}

static void drop_entry(entries *list, int64_t i)
{
    fl_mem_free(list->at[i].path);
    unref_body(list->at[i].body);
    fl_remove(list, i);
}

static void clear_entries(entries *list)
{
    while (list->n)
        drop_entry(list, list->n - 1);
    fl_vec_fini(list);
}

/* Let the path name this body from now on. */
static void put_body(entries *list, const char *path, body *b)
{
    const int64_t old = find_path(list, path);
    b->refs++;
    if (old >= 0)
        drop_entry(list, old);
    fl_push(list, (entry){fl_mem_strdup(path), b});
}

static fl_err get_body(const fl_memdisk *m, const char *path, body **out)
{
    int64_t i = find_path(&m->now, path);
    if (i < 0)
        return fl_fail(FL_ENOENT, "%s: is not on this disk", path);
    *out = m->now.at[i].body;
    return FL_OK;
}

static body *get_or_make(fl_memdisk *m, const char *path)
{
    if (find_path(&m->now, path) < 0)
        put_body(&m->now, path, new_body());
    return m->now.at[find_path(&m->now, path)].body;
}

static bool is_in(const char *path, const char *dir)
{
    char *parent = fl_path_parent(path);
    const bool in = !strcmp(parent, dir);
    fl_mem_free(parent);
    return in;
}

/* Called before each change. Err: EIO if the change must fail. */
static fl_err pass_change(fl_memdisk *m, const char *path)
{
    if (m->left > 0)
        m->left--;
    else if (!m->left) {
        m->left = m->once ? -1 : 0;
        errno = EIO;
        return fl_fail(FL_EIO, "%s: the disk was told to fail", path);
    }
    return FL_OK;
}

/* --- the interface --- */

static fl_err mem_size(const fl_disk *d, const char *path, int64_t *bytes)
{
    body *b = NULL;
    FL_TRY(get_body(memdisk_of(d), path, &b));
    *bytes = (int64_t)b->bytes.n;
    return FL_OK;
}

static fl_err mem_read(const fl_disk *d, const char *path, size_t limit,
                       fl_str *out)
{
    body *b = NULL;
    FL_TRY(get_body(memdisk_of(d), path, &b));
    if (b->bytes.n > limit)
        return fl_fail(FL_EINVAL, "%s: %zu bytes, the limit is %zu", path,
                       b->bytes.n, limit);
    out->n = 0;
    fl_str_bytes(out, b->bytes.at, b->bytes.n);
    return FL_OK;
}

static fl_err mem_write(const fl_disk *d, const char *path, const fl_part *part,
                        int64_t n, bool sync)
{
    FL_TRY(pass_change(memdisk_of(d), path));
    body *b = new_body();
    for (int64_t i = 0; i < n; i++)
        fl_str_bytes(&b->bytes, part[i].at, part[i].n);
    b->synced = b->bytes.n; /* a name is never bound to half of a file */
    put_body(&memdisk_of(d)->now, path, b);
    if (sync)
        put_body(&memdisk_of(d)->durable, path, b);
    return FL_OK;
}

static fl_err mem_mkdirs(const fl_disk *d, const char *path)
{
    return pass_change(memdisk_of(d), path);
}

static fl_err mem_mkdtemp(const fl_disk *d, char *path)
{
    return pass_change(memdisk_of(d),
                       path); /* one process: the lock is always free */
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool listed(const fl_file_names *n, int64_t first, const char *name)
{
    for (int64_t i = first; i < n->n; i++)
        if (!strcmp(n->at[i], name))
            return true;
    return false;
}

static fl_err mem_list(const fl_disk *d, const char *path, fl_file_names *out)
{
    size_t n = strlen(path);
    int64_t first = out->n;
    for (int64_t i = 0; i < memdisk_of(d)->now.n; i++) {
        const char *p = memdisk_of(d)->now.at[i].path;
        if (strncmp(p, path, n) || p[n] != '/')
            continue;
        char *name = fl_mem_strdup(p + n + 1);
        *strchrnul(name, '/') = 0; /* a directory is listed once */
        if (listed(out, first, name))
            fl_mem_free(name);
        else
            fl_push(out, name);
    }
    if (out->n == first)
        return fl_fail(FL_ENOENT, "%s: is not on this disk", path);
    qsort(out->at + first, (size_t)(out->n - first), sizeof *out->at, by_name);
    return FL_OK;
}

static fl_err mem_remove(const fl_disk *d, const char *path)
{
    body *b = NULL;
    FL_TRY(get_body(memdisk_of(d), path, &b));
    FL_TRY(pass_change(memdisk_of(d), path));
    drop_entry(&memdisk_of(d)->now, find_path(&memdisk_of(d)->now, path));
    return FL_OK;
}

/* The files in a directory. False: there are none. */
static bool rename_directory(entries *list, const char *from, const char *to)
{
    bool any = false;
    for (int64_t i = 0; i < list->n; i++) {
        fl_str path = {0};
        if (!is_in(list->at[i].path, from))
            continue;
        fl_str_printf(&path, "%s%s", to, list->at[i].path + strlen(from));
        fl_mem_free(list->at[i].path);
        list->at[i].path = fl_str_take(&path);
        any = true;
    }
    return any;
}

static fl_err mem_rename(const fl_disk *d, const char *from, const char *to)
{
    body *b = NULL;
    const fl_err err = get_body(memdisk_of(d), from, &b);
    FL_TRY(pass_change(memdisk_of(d), from));
    if (err && rename_directory(&memdisk_of(d)->now, from, to))
        return FL_OK;
    FL_TRY(err);
    if (!strcmp(from, to))
        return FL_OK;
    put_body(&memdisk_of(d)->now, to, b);
    drop_entry(&memdisk_of(d)->now, find_path(&memdisk_of(d)->now, from));
    return FL_OK;
}

static fl_file *open_body(fl_memdisk *m, const char *path, body *b)
{
    fl_file *f = fl_mem_alloc(sizeof *f);
    *f = (fl_file){m, fl_mem_strdup(path), b};
    b->refs++;
    return f;
}

static fl_err mem_open(const fl_disk *d, const char *path, fl_file **out)
{
    FL_TRY(pass_change(memdisk_of(d), path));
    *out = open_body(memdisk_of(d), path, get_or_make(memdisk_of(d), path));
    return FL_OK;
}

static fl_err mem_append(fl_file *f, const void *bytes, size_t n)
{
    fl_memdisk *m = f->m;
    fl_err err = pass_change(m, f->path);
    size_t put = err ? n / 2 : n;
    if (m->room >= 0 && put > (size_t)m->room) {
        put = (size_t)m->room;
        err = fl_fail(FL_EIO, "%s: the disk is full", f->path);
        errno = ENOSPC;
    }
    m->room -= m->room >= 0 ? (int64_t)put : 0;
    fl_str_bytes(&f->body->bytes, bytes, put);
    return err;
}

static fl_err mem_sync(fl_file *f)
{
    FL_TRY(pass_change(f->m, f->path));
    f->body->synced = f->body->bytes.n;
    return FL_OK;
}

static fl_err mem_close(fl_file *f)
{
    unref_body(f->body);
    fl_mem_free(f->path);
    fl_mem_free(f);
    return FL_OK;
}

/* Make the names in a directory durable. */
static void persist_names(fl_memdisk *m, const char *dir)
{
    for (int64_t i = m->durable.n - 1; i >= 0; i--)
        if (is_in(m->durable.at[i].path, dir) &&
            find_path(&m->now, m->durable.at[i].path) < 0)
            drop_entry(&m->durable, i);
    for (int64_t i = 0; i < m->now.n; i++)
        if (is_in(m->now.at[i].path, dir))
            put_body(&m->durable, m->now.at[i].path, m->now.at[i].body);
}

static fl_err mem_persist(const fl_disk *d, const char *path)
{
    fl_memdisk *m = memdisk_of(d);
    const int64_t i = find_path(&m->now, path);
    FL_TRY(pass_change(m, path));
    if (i >= 0)
        m->now.at[i].body->synced = m->now.at[i].body->bytes.n;
    else
        persist_names(m, path);
    return FL_OK;
}

static bool is_below(const char *path, const char *dir)
{
    const size_t n = strlen(dir);
    return !strncmp(path, dir, n) && path[n] == '/';
}

static fl_err mem_persist_tree(const fl_disk *d, const char *path)
{
    fl_memdisk *m = memdisk_of(d);
    FL_TRY(pass_change(m, path));
    for (int64_t i = m->durable.n - 1; i >= 0; i--)
        if (is_below(m->durable.at[i].path, path))
            drop_entry(&m->durable, i);
    for (int64_t i = 0; i < m->now.n; i++) {
        entry *e = &m->now.at[i];
        if (!is_below(e->path, path))
            continue;
        e->body->synced = e->body->bytes.n;
        put_body(&m->durable, e->path, e->body);
    }
    return FL_OK;
}

static fl_err mem_lock(const fl_disk *d, const char *path, int ms,
                       fl_file **out)
{
    FL_TRY(pass_change(memdisk_of(d), path));
    body *b = get_or_make(memdisk_of(d), path);
    if (b->locked)
        return fl_fail(FL_ETIMEOUT, "%s: is locked", path);
    b->locked = true;
    *out = open_body(memdisk_of(d), path, b);
    return FL_OK;
}

/* A process that is killed cannot remove the file, but the lock ends. */
static void mem_unlock(fl_file *f)
{
    if (!f)
        return;
    const int64_t i = find_path(&f->m->now, f->path);
    f->body->locked = false;
    if (f->m->left && i >= 0 && f->m->now.at[i].body == f->body)
        drop_entry(&f->m->now, i);
    mem_close(f);
}

static fl_err mem_look(const fl_disk *d, const char *path, fl_file **out,
                       int64_t *bytes)
{
    body *b = NULL;
    FL_TRY(get_body(memdisk_of(d), path, &b));
    *bytes = (int64_t)b->bytes.n;
    *out = open_body(memdisk_of(d), path, b);
    return FL_OK;
}

static fl_err mem_read_at(fl_file *f, int64_t from, void *to, size_t n)
{
    const size_t at = (size_t)from, have = f->body->bytes.n;
    if (at > have || have - at < n)
        return fl_fail(FL_EIO, "%s: it ends after %zu bytes", f->path, have);
    if (n)
        memcpy(to, f->body->bytes.at + at, n);
    return FL_OK;
}

static const fl_disk functions = {
    .size = mem_size,
    .read = mem_read,
    .write = mem_write,
    .mkdirs = mem_mkdirs,
    .mkdtemp = mem_mkdtemp,
    .list = mem_list,
    .remove = mem_remove,
    .rename = mem_rename,
    .open = mem_open,
    .append = mem_append,
    .sync = mem_sync,
    .close = mem_close,
    .persist = mem_persist,
    .persist_tree = mem_persist_tree,
    .lock = mem_lock,
    .unlock = mem_unlock,
    .look = mem_look,
    .read_at = mem_read_at,
};

fl_memdisk *fl_memdisk_new(void)
{
    fl_memdisk *m = fl_mem_alloc(sizeof *m);
    m->disk = functions;
    m->disk.self = m;
    m->left = m->room = -1;
    return m;
}

void fl_memdisk_free(fl_memdisk *m)
{
    if (!m)
        return;
    clear_entries(&m->now);
    clear_entries(&m->durable);
    fl_mem_free(m);
}

const fl_disk *fl_memdisk_disk(fl_memdisk *m)
{
    return &m->disk;
}

void fl_memdisk_fail_after(fl_memdisk *m, int64_t n)
{
    m->left = n;
    m->once = false;
}

void fl_memdisk_fail_once(fl_memdisk *m, int64_t n)
{
    m->left = n;
    m->once = true;
}

void fl_memdisk_fill(fl_memdisk *m, int64_t n)
{
    m->room = n;
}

void fl_memdisk_crash(fl_memdisk *m, bool names_survive)
{
    if (!names_survive) {
        clear_entries(&m->now);
        for (int64_t i = 0; i < m->durable.n; i++)
            put_body(&m->now, m->durable.at[i].path, m->durable.at[i].body);
    }
    for (int64_t i = 0; i < m->now.n; i++) {
        body *b = m->now.at[i].body;
        if (b->bytes.n > b->synced)
            b->bytes.n = b->synced;
    }
}
