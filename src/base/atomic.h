/* SPDX-License-Identifier: Apache-2.0 */
/* atomic.h - counts that several threads change, and ordered stores to memory
 * that outlives the process. */
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

/* The caller already holds a reference, so no order is needed. */
static inline void fl_count_up(fl_count *c)
{
    atomic_fetch_add_explicit(&c->n, 1, memory_order_relaxed);
}

/* Returns the new count. A thread that gets 0 sees all that other threads wrote
 * before they counted down. */
static inline int64_t fl_count_down(fl_count *c)
{
    return atomic_fetch_sub_explicit(&c->n, 1, memory_order_acq_rel) - 1;
}

/* Returns a number that no other call returns: 1, 2, 3. */
static inline int64_t fl_count_next(fl_count *c)
{
    return atomic_fetch_add_explicit(&c->n, 1, memory_order_relaxed) + 1;
}

static inline void fl_count_set(fl_count *c, int64_t n)
{
    atomic_store_explicit(&c->n, n, memory_order_release);
}

/* Add n, which may be negative. Returns the new count. */
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
 * When a process is killed, the memory has a prefix of the stores of each
 * thread. So only the compiler must keep the order of stores. A store of an
 * aligned word is done completely or not at all. */

/* Stores before this call happen before stores after it. */
static inline void fl_store_order(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

/* Store a word: after all earlier stores and before all later ones. */
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
