/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fifo.h"

#include "base/mem.h"
#include "base/test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum {
    TOTAL = 5 * FL_FIFO + 12345,
};

static void passes_bytes_in_order_across_its_end(void)
{
    fl_fifo_memory *m = fl_mem_alloc(fl_fifo_memory_size());
    fl_fifo w = {.memory = m}, r = {.memory = m};
    unsigned char next = 0, want = 0;
    size_t in = 0, out = 0;
    for (int turn = 0; out < TOTAL; turn++) {
        char *to;
        const char *from;
        size_t n = (size_t)(turn * 7919 % 100000) + 1;
        n = n < TOTAL - in ? n : TOTAL - in;
        const size_t space = (size_t)fl_fifo_space(&w, &to);
        n = n < space ? n : space;
        for (size_t i = 0; i < n; i++)
            to[i] = (char)next++;
        CHECK(!fl_fifo_written(&w, n));
        in += n;
        const size_t ready = (size_t)fl_fifo_ready(&r, &from);
        for (size_t i = 0; i < ready; i++)
            CHECK((unsigned char)from[i] == want++);
        CHECK(!fl_fifo_taken(&r, ready));
        out += ready;
    }
    CHECK_INT(out, in);
    CHECK_INT(fl_fifo_gap(&r, 64), (64 - TOTAL % 64) % 64);
    fl_mem_free(m);
}

static void tells_whom_to_wake(void)
{
    fl_fifo_memory *m = fl_mem_alloc(fl_fifo_memory_size());
    fl_fifo w = {.memory = m}, r = {.memory = m};
    CHECK(fl_fifo_sleep_reader(&r));
    CHECK(fl_fifo_written(&w, 10));
    CHECK(!fl_fifo_written(&w, 10)); /* it was told once */
    CHECK(!fl_fifo_sleep_reader(&r));
    CHECK(!fl_fifo_sleep_writer(&w));
    CHECK(!fl_fifo_written(&w, FL_FIFO - 20));
    CHECK(fl_fifo_sleep_writer(&w));
    CHECK(fl_fifo_taken(&r, 1));
    CHECK(!fl_fifo_taken(&r, 1));
    fl_mem_free(m);
}

static void reports_counts_that_cannot_be(void)
{
    fl_fifo_memory *m = fl_mem_alloc(fl_fifo_memory_size());
    fl_fifo w = {.memory = m}, r = {.memory = m};
    char *to;
    const char *from;
    memset(m, 0xee, 200); /* both counts */
    CHECK_INT(fl_fifo_space(&w, &to), -1);
    CHECK_INT(fl_fifo_ready(&r, &from), -1);
    fl_mem_free(m);
}

static void *read_all(void *memory)
{
    fl_fifo r = {.memory = memory};
    uint64_t sum = 0;
    for (size_t out = 0; out < TOTAL;) {
        const char *from;
        const int64_t n = fl_fifo_ready(&r, &from);
        if (!n)
            sched_yield();
        for (int64_t i = 0; i < n; i++)
            sum = sum * 31 + (unsigned char)from[i];
        fl_fifo_taken(&r, (size_t)n);
        out += (size_t)n;
    }
    return (void *)(uintptr_t)sum;
}

static void serves_two_threads(void)
{
    fl_fifo_memory *m = fl_mem_alloc(fl_fifo_memory_size());
    fl_fifo w = {.memory = m};
    pthread_t reader;
    void *got;
    uint64_t sum = 0;
    CHECK(!pthread_create(&reader, NULL, read_all, m));
    for (size_t in = 0; in < TOTAL;) {
        char *to;
        size_t n = (size_t)fl_fifo_space(&w, &to);
        n = n < TOTAL - in ? n : TOTAL - in;
        n = n < 5000 ? n : 5000;
        if (!n)
            sched_yield();
        for (size_t i = 0; i < n; i++) {
            to[i] = (char)((in + i) * 2654435761u >> 13);
            sum = sum * 31 + (unsigned char)to[i];
        }
        fl_fifo_written(&w, n);
        in += n;
    }
    pthread_join(reader, &got);
    CHECK((uintptr_t)got == (uintptr_t)sum);
    fl_mem_free(m);
}

const fl_test fl_tests[] = {
    {"bytes pass in order across the end of the memory",
     passes_bytes_in_order_across_its_end},
    {"who goes on tells whom to wake", tells_whom_to_wake},
    {"counts that cannot be are reported", reports_counts_that_cannot_be},
    {"a thread reads what another writes", serves_two_threads},
    {0},
};
