/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - chunks that double in size; allocation moves a pointer. */
#include "base/arena.h"

#include "base/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    FIRST_CHUNK = 4096, /* bytes */
    LARGEST_CHUNK = 1 << 20,
    ALIGN = 16,
};

typedef struct chunk {
    struct chunk *next; /* older */
    size_t size, used;
    _Alignas(ALIGN) unsigned char bytes[];
} chunk;

struct fl_arena {
    chunk *top;
};

fl_arena *fl_arena_new(void)
{
    return fl_mem_alloc(sizeof(fl_arena));
}

static void free_from(chunk *c)
{
    while (c) {
        chunk *older = c->next;
        fl_mem_free(c);
        c = older;
    }
}

void fl_arena_free(fl_arena *a)
{
    if (!a)
        return;
    free_from(a->top);
    fl_mem_free(a);
}

void fl_arena_reset(fl_arena *a)
{
    if (!a->top)
        return;
    free_from(a->top->next);
    a->top->next = NULL;
    memset(a->top->bytes, 0, a->top->used);
    a->top->used = 0;
}

static void add_chunk(fl_arena *a, size_t need)
{
    size_t size = a->top ? a->top->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    if (size < need)
        size = need;
    chunk *c = fl_mem_alloc(sizeof *c + size);
    c->size = size;
    c->next = a->top;
    a->top = c;
}

void *fl_arena_alloc(fl_arena *a, size_t size)
{
    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (!a->top || a->top->size - a->top->used < size)
        add_chunk(a, size);
    void *p = a->top->bytes + a->top->used;
    a->top->used += size;
    return p;
}

void *fl_arena_dup(fl_arena *a, const void *from, size_t size)
{
    void *p = fl_arena_alloc(a, size);
    return size ? memcpy(p, from, size) : p;
}

char *fl_arena_strdup(fl_arena *a, const char *s)
{
    return fl_arena_dup(a, s, strlen(s) + 1);
}

char *fl_arena_printf(fl_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = fl_arena_alloc(a, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return s;
}
