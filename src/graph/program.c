/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - makes, frees and replaces programs and their blocks. */
#include "graph/program.h"

#include "base/atomic.h"

/* Counts programs, so that each has another number. Caches use the number,
 * because a new program may have the address of an old one. */
static fl_count programs;

static fl_block *push_block(fl_program *p, int parent)
{
    fl_block *b = fl_arena_alloc(p->arena, sizeof *b);
    b->program = p;
    b->idx = (int)p->blocks.n;
    b->parent = parent;
    b->forward = -1;
    fl_push(&p->blocks, b);
    return b;
}

fl_program *fl_program_make(const fl_registry *r)
{
    fl_program *p = fl_mem_alloc(sizeof *p);
    p->registry = r;
    p->arena = fl_arena_new();
    p->uid = (uint64_t)fl_count_next(&programs);
    p->had_version = p->had_version_number =
        true; /* as Fluid writes: version { version: 0 } */
    push_block(p, -1);
    return p;
}

/* Free everything that the program holds, but not the struct. */
static void drop_contents(fl_program *p)
{
    for (int64_t i = 0; i < p->blocks.n; i++) {
        fl_vec_fini(&p->blocks.at[i]->ops);
        fl_map_fini(&p->blocks.at[i]->vars);
    }
    fl_vec_fini(&p->blocks);
    fl_arena_free(p->arena);
    fl_handle_unref(p->job);
    p->arena = NULL;
    p->job = NULL;
}

void fl_program_free(fl_program *p)
{
    if (!p)
        return;
    drop_contents(p);
    fl_mem_free(p);
}

fl_block *fl_program_block(const fl_program *p, int i)
{
    return i >= 0 && i < p->blocks.n ? p->blocks.at[i] : NULL;
}

fl_block *fl_program_add_block(fl_program *p, int parent)
{
    p->version++;
    return push_block(p, parent);
}

void fl_program_set_job(fl_program *p, fl_handle *job)
{
    fl_handle *old = p->job;
    p->version++;
    p->job = fl_handle_ref(job);
    fl_handle_unref(old);
}

void fl_program_take(fl_program *dst, fl_program *src)
{
    const uint64_t uid = dst->uid, version = dst->version + 1;
    drop_contents(dst);
    *dst = *src;
    dst->uid = uid;
    dst->version = version;
    for (int64_t i = 0; i < dst->blocks.n; i++)
        dst->blocks.at[i]->program = dst;
    src->arena = NULL;
    src->job = NULL;
    memset(&src->blocks, 0, sizeof src->blocks);
}
