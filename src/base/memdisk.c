/* memdisk.c - a list of named byte strings behind the disk interface. */
#include "base/memdisk.h"

#include <stdlib.h>

typedef struct item {
    char *path;
    fl_str bytes;
    size_t synced; /* bytes that survive a crash */
} item;

struct fl_memdisk {
    fl_disk disk;
    FL_VEC(item *) items;
    int64_t left; /* changes before failures begin; -1: no failures */
};

struct fl_file {
    fl_memdisk *m;
    char *path; /* not the item: it may be removed meanwhile */
};

static fl_memdisk *of(const fl_disk *d)
{
    return d->self;
}

static int64_t find(const fl_memdisk *m, const char *path)
{
    for (int64_t i = 0; i < m->items.n; i++)
        if (!strcmp(m->items.at[i]->path, path))
            return i;
    return -1;
}

static fl_err get(const fl_memdisk *m, const char *path, item **out)
{
    int64_t i = find(m, path);
    if (i < 0)
        return fl_fail(FL_ENOENT, "%s: is not on this disk", path);
    *out = m->items.at[i];
    return FL_OK;
}

static item *get_or_make(fl_memdisk *m, const char *path)
{
    int64_t i = find(m, path);
    if (i >= 0)
        return m->items.at[i];
    item *it = fl_mem_alloc(sizeof *it);
    it->path = fl_mem_strdup(path);
    fl_push(&m->items, it);
    return it;
}

static void drop(fl_memdisk *m, int64_t i)
{
    item *it = m->items.at[i];
    fl_mem_free(it->path);
    fl_str_fini(&it->bytes);
    fl_mem_free(it);
    fl_remove(&m->items, i);
}

/* Before each change: may it pass? */
static fl_err pass(fl_memdisk *m, const char *path)
{
    if (m->left > 0)
        m->left--;
    else if (!m->left)
        return fl_fail(FL_EIO, "%s: the disk was told to fail", path);
    return FL_OK;
}

static fl_err mem_size(const fl_disk *d, const char *path, int64_t *bytes)
{
    item *it = NULL;
    FL_TRY(get(of(d), path, &it));
    *bytes = (int64_t)it->bytes.n;
    return FL_OK;
}

static fl_err mem_read(const fl_disk *d, const char *path, size_t limit,
                       fl_str *out)
{
    item *it = NULL;
    FL_TRY(get(of(d), path, &it));
    if (it->bytes.n > limit)
        return fl_fail(FL_EINVAL, "%s: %zu bytes, the limit is %zu", path,
                       it->bytes.n, limit);
    out->n = 0;
    fl_str_bytes(out, it->bytes.at, it->bytes.n);
    return FL_OK;
}

static fl_err mem_write(const fl_disk *d, const char *path, const fl_part *part,
                        int64_t n, bool sync)
{
    FL_TRY(pass(of(d), path));
    item *it = get_or_make(of(d), path);
    it->bytes.n = 0;
    for (int64_t i = 0; i < n; i++)
        fl_str_bytes(&it->bytes, part[i].at, part[i].n);
    it->synced = it->bytes.n;
    return FL_OK;
}

static fl_err mem_mkdirs(const fl_disk *d, const char *path)
{
    return FL_OK;
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
    for (int64_t i = 0; i < of(d)->items.n; i++) {
        const char *p = of(d)->items.at[i]->path;
        if (strncmp(p, path, n) || p[n] != '/')
            continue;
        char *name = fl_mem_strdup(p + n + 1);
        *strchrnul(name, '/') = 0; /* a directory shows once */
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
    item *it = NULL;
    FL_TRY(get(of(d), path, &it));
    FL_TRY(pass(of(d), path));
    drop(of(d), find(of(d), path));
    return FL_OK;
}

static fl_err mem_rename(const fl_disk *d, const char *from, const char *to)
{
    item *it = NULL;
    FL_TRY(get(of(d), from, &it));
    FL_TRY(pass(of(d), from));
    if (!strcmp(from, to))
        return FL_OK;
    int64_t old = find(of(d), to);
    if (old >= 0)
        drop(of(d), old);
    fl_mem_free(it->path);
    it->path = fl_mem_strdup(to);
    return FL_OK;
}

static fl_err mem_open(const fl_disk *d, const char *path, fl_file **out)
{
    get_or_make(of(d), path);
    fl_file *f = fl_mem_alloc(sizeof *f);
    *f = (fl_file){of(d), fl_mem_strdup(path)};
    *out = f;
    return FL_OK;
}

static fl_err mem_append(fl_file *f, const void *bytes, size_t n)
{
    item *it = get_or_make(f->m, f->path);
    fl_err err = pass(f->m, f->path);
    fl_str_bytes(&it->bytes, bytes, err ? n / 2 : n);
    return err;
}

static fl_err mem_sync(fl_file *f)
{
    FL_TRY(pass(f->m, f->path));
    item *it = get_or_make(f->m, f->path);
    it->synced = it->bytes.n;
    return FL_OK;
}

static void mem_close(fl_file *f)
{
    fl_mem_free(f->path);
    fl_mem_free(f);
}

static fl_err mem_look(const fl_disk *d, const char *path, fl_file **out,
                       int64_t *bytes)
{
    FL_TRY(mem_size(d, path, bytes));
    return mem_open(d, path, out);
}

static fl_err mem_read_at(fl_file *f, int64_t from, void *to, size_t n)
{
    item *it = NULL;
    FL_TRY(get(f->m, f->path, &it));
    const size_t at = (size_t)from, have = it->bytes.n;
    if (at > have || have - at < n)
        return fl_fail(FL_EIO, "%s: it ends after %zu bytes", f->path, have);
    if (n)
        memcpy(to, it->bytes.at + at, n);
    return FL_OK;
}

static const fl_disk functions = {
    .size = mem_size,
    .read = mem_read,
    .write = mem_write,
    .mkdirs = mem_mkdirs,
    .list = mem_list,
    .remove = mem_remove,
    .rename = mem_rename,
    .open = mem_open,
    .append = mem_append,
    .sync = mem_sync,
    .close = mem_close,
    .look = mem_look,
    .read_at = mem_read_at,
};

fl_memdisk *fl_memdisk_new(void)
{
    fl_memdisk *m = fl_mem_alloc(sizeof *m);
    m->disk = functions;
    m->disk.self = m;
    m->left = -1;
    return m;
}

void fl_memdisk_free(fl_memdisk *m)
{
    if (!m)
        return;
    while (m->items.n)
        drop(m, m->items.n - 1);
    fl_vec_fini(&m->items);
    fl_mem_free(m);
}

const fl_disk *fl_memdisk_disk(fl_memdisk *m)
{
    return &m->disk;
}

void fl_memdisk_fail_after(fl_memdisk *m, int64_t n)
{
    m->left = n;
}

void fl_memdisk_crash(fl_memdisk *m)
{
    for (int64_t i = 0; i < m->items.n; i++)
        m->items.at[i]->bytes.n = m->items.at[i]->synced;
}
