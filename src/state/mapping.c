/* SPDX-License-Identifier: Apache-2.0 */
/* mapping.c - mmap of a file, with more addresses than the file has bytes.
 *
 * Addresses behind the end of the file may be mapped, but not touched; they
 * become usable when the file has grown. */
#include "state/mapping.h"

#include "base/atomic.h"
#include "base/mem.h"
#include "base/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

enum {
    PAGE = 4096
};

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
static int allocate_bytes(int fd, size_t from, size_t to)
{
    int err = EINTR;
    while (from < to && err == EINTR)
        err = posix_fallocate(fd, (off_t)from, (off_t)(to - from));
    return from < to ? err : 0;
}

/* Give the whole huge pages between `from` and `to` room, as far as the kernel
 * has any. A tmpfs has small pages unless it is mounted otherwise, but it makes
 * a huge page of one small page and a hole when it is asked to. The file ends
 * behind that small page meanwhile: if the process is killed, no byte of the
 * file is without room. */
static void allocate_huge_pages(const fl_mapping *m, size_t from, size_t to)
{
    const size_t huge = FL_HUGE_PAGE, first = (from + huge - 1) / huge * huge;
    if (first >= to || to - first < huge || allocate_bytes(m->fd, from, first))
        return;
    for (size_t p = first; to - p >= huge; p += huge) {
        char *at = (char *)m->at + p;
        if (allocate_bytes(m->fd, p, p + PAGE))
            return;
        (void)*(volatile char *)at; /* the kernel wants a page table */
        if (madvise(at, huge, MADV_COLLAPSE))
            return; /* no such memory, another file system, an old kernel */
    }
}

/* Give bytes `from` to `to` of the file room. Err: ENOMEM, EIO; the file has
 * its old size. */
static fl_err make_room(const fl_mapping *m, size_t from, size_t to)
{
    struct stat before;
    if (fstat(m->fd, &before))
        return file_failed(m->path, "look at it");
    allocate_huge_pages(m, from, to);
    const int err = allocate_bytes(m->fd, from, to);
    if (!err)
        return FL_OK;
    if (ftruncate(m->fd, before.st_size))
        return file_failed(m->path, "give back its room");
    errno = err;
    if (err == ENOSPC || err == ENOMEM || err == EFBIG)
        return no_room(m->path, to - from);
    return file_failed(m->path, "make it larger");
}

/* Map `size` bytes of a file. Huge pages need addresses that are aligned to
 * their size: more is reserved than is needed, and the surplus is given back.
 */
static void *map_aligned(int fd, size_t size)
{
    const size_t huge = FL_HUGE_PAGE, all = size + huge;
    char *from = mmap(NULL, all, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (from == MAP_FAILED)
        return MAP_FAILED;
    char *at = from + (huge - (uintptr_t)from % huge) % huge;
    char *end = at + (size + PAGE - 1) / PAGE * PAGE;
    fl_pages_unmap(from, (size_t)(at - from));
    fl_pages_unmap(end, (size_t)(from + all - end));
    void *mapped =
        mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (mapped == MAP_FAILED)
        fl_pages_unmap(at, (size_t)(end - at));
    return mapped;
}

/* Takes fd: the mapping has it, or it is closed. */
static fl_err map_file(const char *path, int fd, size_t size, size_t reserve,
                       fl_mapping **out)
{
    const size_t all = size > reserve ? size : reserve;
    void *at = map_aligned(fd, all ? all : PAGE);
    if (at == MAP_FAILED) {
        const fl_err err =
            errno == ENOMEM ? no_room(path, all) : file_failed(path, "map it");
        close(fd);
        return err;
    }
    madvise(at, all, MADV_DONTFORK);
    madvise(at, all, MADV_HUGEPAGE); /* a refusal costs nothing */
    fl_mapping *m = fl_mem_alloc(sizeof *m);
    fl_count_init(&m->refs, 1);
    m->path = fl_mem_strdup(path);
    m->fd = fd;
    m->at = at;
    m->size = size;
    m->reserve = all ? all : PAGE;
    *out = m;
    return FL_OK;
}

/* A mapping without a reserve never grows and needs no file descriptor. */
static void close_file(fl_mapping *m, size_t reserve)
{
    if (reserve)
        return;
    close(m->fd);
    m->fd = -1;
}

fl_err fl_mapping_make(const char *path, size_t size, size_t reserve,
                       fl_mapping **out)
{
    fl_mapping *m;
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return file_failed(path, "make it");
    fl_err err = map_file(path, fd, size, reserve, &m);
    if (!err) {
        err = make_room(m, 0, size);
        if (err)
            fl_mapping_unref(m);
    }
    if (err) {
        unlink(path);
        return err;
    }
    close_file(m, reserve);
    *out = m;
    return FL_OK;
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
    FL_TRY(map_file(path, fd, (size_t)st.st_size, reserve, out));
    close_file(*out, reserve);
    return FL_OK;
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
    FL_TRY(make_room(m, from, to));
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
