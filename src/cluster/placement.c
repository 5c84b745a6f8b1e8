/* SPDX-License-Identifier: Apache-2.0 */
/* placement.c - a placement is copied once, and shared by reference after that.
 */
#include "cluster/placement.h"

#include "base/mem.h"

enum {
    ABOUT_MOST = 16 << 10 /* bytes of `about`, which must fit into an answer */
};

static void free_placement(fl_handle *h)
{
    fl_placement *p = (fl_placement *)h;
    fl_arena_free(p->arena);
    fl_mem_free(p);
}

static const char **dup_names(fl_arena *a, int n, const char *const *names)
{
    const char **own = fl_arena_alloc(a, (size_t)n * sizeof *own);
    for (int i = 0; i < n; i++)
        own[i] = fl_arena_strdup(a, names[i]);
    return own;
}

static const fl_piece *dup_pieces(fl_arena *a, int n, const fl_piece *pieces)
{
    fl_piece *own = fl_arena_dup(a, pieces, (size_t)n * sizeof *own);
    for (int i = 0; i < n; i++) {
        own[i].var = fl_arena_strdup(a, own[i].var);
        own[i].name = fl_arena_strdup(a, own[i].name);
    }
    return own;
}

static const char *list_pieces(fl_arena *a, int n, const fl_piece *pieces)
{
    fl_str lines = {0};
    for (int i = 0; i < n && lines.n < ABOUT_MOST; i++) {
        char shape[FL_SHAPE_TEXT];
        fl_str_printf(&lines, "%s %s\n", pieces[i].name,
                      fl_shape_text(&pieces[i].shape, shape));
    }
    const char *own = fl_arena_strdup(a, lines.n ? lines.at : "");
    fl_str_fini(&lines);
    return own;
}

fl_placement *fl_placement_new(const fl_placement *like)
{
    fl_placement *p = fl_mem_alloc(sizeof *p);
    fl_arena *a = fl_arena_new();
    *p = *like;
    p->handle = (fl_handle){.free = free_placement};
    fl_count_init(&p->handle.refs, 1);
    p->arena = a;
    p->servers = dup_names(a, like->n_servers, like->servers);
    p->pieces = dup_pieces(a, like->n_pieces, like->pieces);
    p->about = list_pieces(a, like->n_pieces, like->pieces);
    p->origin = fl_arena_dup(a, like->origin, like->origin_size);
    return p;
}

fl_job fl_placement_job(const fl_placement *p, const fl_job *limits)
{
    fl_job job = *limits;
    job.id = (fl_id){p->digest[0], p->digest[1] + FL_PROTOCOL};
    job.servers = p->n_servers;
    job.endpoints = p->servers;
    job.about = p->about;
    job.trainers = p->trainers;
    job.async = p->async;
    return fl_job_defaults(job);
}
