/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of memory on files; the large ones lie on the system's tmpfs, where a
 * server has its state. */
#include "state/mapping.h"

#include "base/pages.h"
#include "base/test.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HUGE = FL_HUGE_PAGE,
    COLLAPSE = 25, /* MADV_COLLAPSE, of Linux 6.1 */
};

/* The name of a new file, which is to be removed. */
static const char *new_path(char path[64])
{
    snprintf(path, 64, "/dev/shm/fluid-test-%ld", (long)getpid());
    unlink(path);
    return path;
}

/* Bytes of the mapping at `at` that lie on huge pages of its file. */
static int64_t huge_bytes(const void *at)
{
    char line[256];
    bool mine = false;
    long kb = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    CHECK(f != NULL);
    while (fgets(line, sizeof line, f)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            mine = from == (uintptr_t)at;
        if (mine && sscanf(line, "ShmemPmdMapped: %ld kB", &kb) == 1)
            break;
    }
    fclose(f);
    return (int64_t)kb << 10;
}

/* Whether the kernel makes a huge page of small ones. */
static bool can_collapse(void *at)
{
    memset(at, 0, HUGE);
    return !madvise(at, HUGE, COLLAPSE);
}

static void large_memory_lies_on_huge_pages(void)
{
    char path[64];
    fl_mapping *m;
    const size_t first = 3 * (size_t)HUGE + 5000, all = 7 * (size_t)HUGE + 100;
    CHECK_OK(fl_mapping_make(new_path(path), first, 8 * (size_t)HUGE, &m));
    char *at = fl_mapping_at(m);
    CHECK_INT((int64_t)((uintptr_t)at % HUGE), 0);
    for (size_t i = 0; i < first; i++)
        if (at[i])
            fail_msg("byte %zu of new memory is %d", i, at[i]);
    memset(at, 7, first);
    const int64_t before = huge_bytes(at);
    CHECK_OK(fl_mapping_grow(m, all));
    memset(at + first, 8, all - first);
    const int64_t after = huge_bytes(at);
    CHECK(at[first - 1] == 7 && at[first] == 8 && at[all - 1] == 8);
    if (can_collapse(at)) { /* the page of the old end is a small one */
        CHECK_INT(before, 3 * HUGE);
        CHECK_INT(after, 6 * HUGE);
    }
    fl_mapping_unref(m);
    unlink(path);
}

static void the_next_process_finds_huge_pages(void)
{
    char path[64];
    fl_mapping *m;
    const size_t size = 2 * (size_t)HUGE;
    CHECK_OK(fl_mapping_make(new_path(path), size, 0, &m));
    memset(fl_mapping_at(m), 7, size);
    const int64_t before = huge_bytes(fl_mapping_at(m));
    fl_mapping_unref(m);
    CHECK_OK(fl_mapping_find(path, 0, &m));
    const char *at = fl_mapping_at(m);
    CHECK_INT((int64_t)fl_mapping_size(m), (int64_t)size);
    CHECK(at[0] == 7 && at[size - 1] == 7);
    CHECK_INT(huge_bytes(at), before);
    fl_mapping_unref(m);
    unlink(path);
}

static void memory_that_cannot_grow_keeps_its_size(void)
{
    char path[64];
    struct rlimit old, limit;
    struct stat st;
    fl_mapping *m;
    CHECK_OK(fl_mapping_make(new_path(path), 4096, 16 * (size_t)HUGE, &m));
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 5 * (rlim_t)HUGE + 8192; /* four huge pages fit */
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_ERR(fl_mapping_grow(m, 8 * (size_t)HUGE), FL_ENOMEM,
              "no room for 16773120 bytes more");
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_INT(stat(path, &st), 0);
    CHECK_INT(st.st_size, 4096);
    CHECK_INT(st.st_blocks, 8);
    CHECK_INT((int64_t)fl_mapping_size(m), 4096);
    CHECK_OK(fl_mapping_grow(m, 8 * (size_t)HUGE)); /* there is room again */
    ((char *)fl_mapping_at(m))[8 * (size_t)HUGE - 1] = 1;
    fl_mapping_unref(m);
    unlink(path);
}

const fl_test fl_tests[] = {
    {"mapping: large memory lies on huge pages",
     large_memory_lies_on_huge_pages},
    {"mapping: the next process finds huge pages",
     the_next_process_finds_huge_pages},
    {"mapping: memory that cannot grow keeps its size",
     memory_that_cannot_grow_keeps_its_size},
    {0},
};
