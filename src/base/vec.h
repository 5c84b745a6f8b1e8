/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - a growing array of anything.
 *
 *     FL_VEC(fl_op *) ops = {0};
 *     fl_push(&ops, op);
 *     for (int64_t i = 0; i < ops.n; i++) use(ops.at[i]);
 *     fl_vec_fini(&ops); */
#ifndef FL_BASE_VEC_H
#define FL_BASE_VEC_H

#include "base/mem.h"

#include <string.h>

#define FL_VEC(T)                                                              \
    struct {                                                                   \
        T *at;                                                                 \
        int64_t n, cap;                                                        \
    }

#define fl_push(v, ...)                                                        \
    (fl_vec_reserve((void **)&(v)->at, &(v)->cap, (v)->n + 1,                  \
                    sizeof *(v)->at),                                          \
     (void)((v)->at[(v)->n++] = __VA_ARGS__))

/* Open a gap at i (0 <= i <= n) and put the value there. */
#define fl_insert(v, i, ...)                                                   \
    ((void)(*(__typeof__((v)->at))fl_vec_gap((void **)&(v)->at, &(v)->n,       \
                                             &(v)->cap, (i),                   \
                                             sizeof *(v)->at) = __VA_ARGS__))

#define fl_remove(v, i) fl_vec_cut((v)->at, &(v)->n, (i), sizeof *(v)->at)

#define fl_vec_fini(v) (fl_mem_free((v)->at), memset((v), 0, sizeof *(v)))

/* Make room for at least `need` elements of `size` bytes. The capacity doubles.
 */
static inline void fl_vec_reserve(void **at, int64_t *cap, int64_t need,
                                  size_t size)
{
    if (need <= *cap)
        return;
    *cap = *cap * 2 > need ? *cap * 2 : need < 8 ? 8 : need;
    *at = fl_mem_grow(*at, (size_t)*cap * size);
}

/* The same for an array of n elements that may still be in `inside`, memory of
 * its owner. */
static inline void fl_vec_grow_from(void **at, const void *inside, int64_t n,
                                    int64_t *cap, int64_t need, size_t size)
{
    if (need <= *cap)
        return;
    void *had = *at == inside ? NULL : *at;
    *cap = *cap * 2 > need ? *cap * 2 : need;
    void *more = fl_mem_grow(had, (size_t)*cap * size);
    if (!had && n)
        memcpy(more, inside, (size_t)n * size);
    *at = more;
}

/* Free an array of fl_vec_grow_from, unless it lies in `inside`. */
static inline void fl_vec_free_grown(void *at, const void *inside)
{
    if (at != inside)
        fl_mem_free(at);
}

/* Make the gap. i is evaluated before n changes, so that it may be n itself. */
static inline void *fl_vec_gap(void **at, int64_t *n, int64_t *cap, int64_t i,
                               size_t size)
{
    fl_vec_reserve(at, cap, *n + 1, size);
    char *gap = (char *)*at + (size_t)i * size;
    memmove(gap + size, gap, (size_t)((*n)++ - i) * size);
    return gap;
}

static inline void fl_vec_cut(void *at, int64_t *n, int64_t i, size_t size)
{
    char *gone = (char *)at + (size_t)i * size;
    memmove(gone, gone + size, (size_t)(--*n - i) * size);
}

#endif
