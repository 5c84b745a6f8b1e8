/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - the newest step of each rank, and a window of its parts. */
#include "protocol/steps.h"

#include "base/mem.h"

#include <string.h>

typedef struct rank_step {
    int64_t step; /* 0: none yet */
    fl_window parts;
} rank_step;

struct fl_steps {
    int n;
    rank_step at[]; /* by rank */
};

static size_t steps_size(int ranks)
{
    return sizeof(fl_steps) + (size_t)ranks * sizeof(rank_step);
}

fl_steps *fl_steps_new(int ranks)
{
    fl_steps *s = fl_mem_alloc(steps_size(ranks));
    s->n = ranks;
    return s;
}

fl_steps *fl_steps_dup(const fl_steps *s)
{
    fl_steps *copy = fl_mem_alloc(steps_size(s->n));
    memcpy(copy, s, steps_size(s->n));
    return copy;
}

void fl_steps_free(fl_steps *s)
{
    fl_mem_free(s);
}

bool fl_steps_has(const fl_steps *s, int rank, int64_t step, int64_t part)
{
    const rank_step *r = &s->at[rank];
    return step < r->step ||
           (step == r->step && fl_window_fits(&r->parts, part) &&
            fl_window_seen(&r->parts, part));
}

void fl_steps_mark(fl_steps *s, int rank, int64_t step, int64_t part)
{
    if (!step || fl_steps_has(s, rank, step, part))
        return;
    rank_step *r = &s->at[rank];
    if (step > r->step)
        *r = (rank_step){.step = step};
    if (fl_window_fits(&r->parts, part))
        fl_window_mark(&r->parts, part);
}

void fl_steps_visit(fl_steps *s, fl_image *im)
{
    for (int i = 0; i < s->n; i++) {
        fl_image_count(im, &s->at[i].step, 0, INT64_MAX - 1);
        fl_image_window(im, &s->at[i].parts);
    }
}
