/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.c - mmap of a file, with more addresses than the file has bytes.
 *
 * Addresses behind the end of the file may be mapped, but not touched; they
 * become usable when the file has grown. */
#include "state/mapping.h"

#include "base/atomic.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct fl_mapping {
    fl_count refs;
    char *path;
    int fd; /* -1: it never grows */
    void *at;
    size_t size;    /* bytes of the file */
    size_t reserve; /* bytes of addresses */
};

static fl_err file_failed(const char *path, const char *what)
{
    return fl_fail(errno == ENOENT ? FL_ENOENT : FL_EIO, "%s: cannot %s: %s",
                   path, what, strerror(errno));
}

static fl_err no_room(const char *path, size_t more)
{
    struct statvfs fs;
    const int no = statvfs(path, &fs);
    return fl_fail(FL_ENOMEM,
                   "%s: no room for %zu bytes more; its file system has %llu "
                   "left",
                   path, more,
                   no ? 0ULL
                      : (unsigned long long)fs.f_bavail *
                            (unsigned long long)fs.f_frsize);
}

/* Give bytes `from` to `to` of a file room on its file system. */
static fl_err allocate_bytes(int fd, const char *path, size_t from, size_t to)
{
    int err = EINTR;
    while (from < to && err == EINTR)
        err = posix_fallocate(fd, (off_t)from, (off_t)(to - from));
    if (from >= to || !err)
        return FL_OK;
    errno = err;
    if (err == ENOSPC || err == ENOMEM || err == EFBIG)
        return no_room(path, to - from);
    return file_failed(path, "make it larger");
}

/* Takes fd: the mapping has it, or it is closed. */
static fl_err map_file(const char *path, int fd, size_t size, size_t reserve,
                       fl_mapping **out)
{
    const size_t page = 4096, all = size > reserve ? size : reserve;
    void *at =
        mmap(NULL, all ? all : page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        const fl_err err = file_failed(path, "map it");
        close(fd);
        return err;
    }
    madvise(at, all, MADV_DONTFORK);
    madvise(at, all, MADV_HUGEPAGE); /* a refusal costs nothing */
    fl_mapping *m = fl_mem_alloc(sizeof *m);
    fl_count_init(&m->refs, 1);
    m->path = fl_mem_strdup(path);
    m->fd = reserve ? fd : -1;
    m->at = at;
    m->size = size;
    m->reserve = all ? all : page;
    if (!reserve)
        close(fd);
    *out = m;
    return FL_OK;
}

fl_err fl_mapping_make(const char *path, size_t size, size_t reserve,
                       fl_mapping **out)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return file_failed(path, "make it");
    const fl_err err = allocate_bytes(fd, path, 0, size);
    if (err) {
        unlink(path);
        close(fd);
        return err;
    }
    return map_file(path, fd, size, reserve, out);
}

fl_err fl_mapping_find(const char *path, size_t reserve, fl_mapping **out)
{
    struct stat st;
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return file_failed(path, "open it");
    if (fstat(fd, &st)) {
        const fl_err err = file_failed(path, "look at it");
        close(fd);
        return err;
    }
    return map_file(path, fd, (size_t)st.st_size, reserve, out);
}

fl_mapping *fl_mapping_ref(fl_mapping *m)
{
    fl_count_up(&m->refs);
    return m;
}

void fl_mapping_unref(fl_mapping *m)
{
    if (!m || fl_count_down(&m->refs))
        return;
    munmap(m->at, m->reserve);
    if (m->fd >= 0)
        close(m->fd);
    fl_mem_free(m->path);
    fl_mem_free(m);
}

fl_err fl_mapping_extend(fl_mapping *m, size_t from, size_t to)
{
    if (m->fd < 0 || to > m->reserve)
        return fl_fail(FL_ENOMEM, "%s: cannot have %zu bytes, at most %zu",
                       m->path, to, m->fd < 0 ? m->size : m->reserve);
    FL_TRY(allocate_bytes(m->fd, m->path, from, to));
    if (to > m->size)
        m->size = to;
    return FL_OK;
}

fl_err fl_mapping_grow(fl_mapping *m, size_t size)
{
    return size <= m->size ? FL_OK : fl_mapping_extend(m, m->size, size);
}

void fl_mapping_shrink(fl_mapping *m, size_t size)
{
    if (m->fd >= 0 && size < m->size && !ftruncate(m->fd, (off_t)size))
        m->size = size;
}

void *fl_mapping_at(const fl_mapping *m)
{
    return m->at;
}

size_t fl_mapping_size(const fl_mapping *m)
{
    return m->size;
}

const char *fl_mapping_path(const fl_mapping *m)
{
    return m->path;
}
