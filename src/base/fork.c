/* SPDX-License-Identifier: Apache-2.0 */
/* fork.c - the mark is a page that the kernel gives to a child as zeros
 * (MADV_WIPEONFORK, Linux 4.14). */
#include "base/fork.h"

#include "base/mem.h"
#include "base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE = 4096, /* bytes; the kernel rounds it up to a page of its own */
};

struct fl_fork_mark {
    pid_t pid;  /* process that made the mark */
    bool *page; /* true, and false in a child; NULL: pids are compared */
};

fl_fork_mark *fl_fork_mark_new(void)
{
    fl_fork_mark *m = fl_mem_alloc(sizeof *m);
    m->pid = getpid();
    m->page = fl_pages_map(PAGE);
    if (m->page && madvise(m->page, PAGE, MADV_WIPEONFORK)) {
        fl_pages_unmap(m->page, PAGE);
        m->page = NULL;
    }
    if (m->page)
        *m->page = true;
    return m;
}

void fl_fork_mark_free(fl_fork_mark *m)
{
    if (m)
        fl_pages_unmap(m->page, PAGE);
    fl_mem_free(m);
}

bool fl_fork_mark_is_lost(const fl_fork_mark *m)
{
    return m->page ? !*m->page : m->pid != getpid();
}
