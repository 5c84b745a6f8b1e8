/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.c - what operators over sequences share. */
#include "kernel/sequence.h"

fl_err fl_sequence_check(const fl_infer *x, const char *slot, int i)
{
    const fl_meta *in = fl_meta_in(x, slot, i);
    if (in->shape.rank < 1)
        return fl_fail(FL_ESHAPE, "%s: %s [] has no rows", fl_meta_type(x),
                       slot);
    if (!fl_meta_running(x))
        return FL_OK;
    if (!in->lod_level)
        return fl_fail(FL_ESHAPE, "%s: %s has no sequences (LoD)",
                       fl_meta_type(x), slot);
    return fl_lod_check(in->lod, in->shape.dim[0]);
}

fl_sequences fl_sequences_of(const fl_lod *l)
{
    return (fl_sequences){l->n[l->levels - 1] - 1, l->off[l->levels - 1]};
}

fl_lod fl_sequence_lod(int64_t n, const int64_t *off)
{
    return (fl_lod){.levels = 1, .n = {n}, .off = {off}};
}

int64_t fl_sequence_width(const fl_tensor *t)
{
    return fl_shape_span(&t->shape, 1, t->shape.rank);
}
