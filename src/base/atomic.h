/* SPDX-License-Identifier: Apache-2.0 */
/* atomic.h - a count that several threads move, and words of memory that
 * outlives the process. */
#ifndef FL_BASE_ATOMIC_H
#define FL_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

/* Thread: any. */
typedef struct fl_count {
    _Atomic int64_t n;
} fl_count;

static inline void fl_count_init(fl_count *c, int64_t n)
{
    atomic_init(&c->n, n);
}

/* Who adds a reference holds one already, so nothing has to be ordered. */
static inline void fl_count_up(fl_count *c)
{
    atomic_fetch_add_explicit(&c->n, 1, memory_order_relaxed);
}

/* What is left. Who gets 0 sees all that the others wrote before. */
static inline int64_t fl_count_down(fl_count *c)
{
    return atomic_fetch_sub_explicit(&c->n, 1, memory_order_acq_rel) - 1;
}

/* A number that nobody else gets: 1, 2, 3. */
static inline int64_t fl_count_next(fl_count *c)
{
    return atomic_fetch_add_explicit(&c->n, 1, memory_order_relaxed) + 1;
}

static inline void fl_count_set(fl_count *c, int64_t n)
{
    atomic_store_explicit(&c->n, n, memory_order_release);
}

/* n may be negative; what it comes to. */
static inline int64_t fl_count_add(fl_count *c, int64_t n)
{
    return atomic_fetch_add_explicit(&c->n, n, memory_order_relaxed) + n;
}

static inline int64_t fl_count_get(const fl_count *c)
{
    return atomic_load_explicit(&c->n, memory_order_acquire);
}

/* --- memory that outlives the process ---
 *
 * Of a process that is killed, a prefix of the stores of each thread is there.
 * So only the compiler must keep the order of stores. An aligned word is never
 * torn. */

/* All stores before this line are made before those behind it. */
static inline void fl_store_order(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* All stores before this one are made before it, those behind it after it. */
static inline void fl_word_set(uint64_t *w, uint64_t value)
{
    __atomic_store_n(w, value, __ATOMIC_RELEASE);
    fl_store_order();
}

static inline uint64_t fl_word_get(const uint64_t *w)
{
    return __atomic_load_n(w, __ATOMIC_ACQUIRE);
}

#endif
