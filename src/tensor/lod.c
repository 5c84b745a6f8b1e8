/* SPDX-License-Identifier: Apache-2.0 */
/* lod.c - level of detail: offsets of sequences, all levels in one buffer.
 *
 * A LoD without levels may still have a buffer, whose memory is used for the
 * next one. Offsets without a buffer belong to the caller and must be copied
 * to be kept. */
#include "tensor/tensor.h"

#include <string.h>

void fl_lod_fini(fl_lod *l)
{
    fl_buf_unref(l->buf);
    *l = (fl_lod){0};
}

/* Make room for `levels` levels of n[] offsets and set off[] to it. Old offsets
 * may be overwritten, unless another LoD shares them. */
static fl_err resize_offsets(fl_lod *l, int levels, const int64_t *n)
{
    size_t total = 0;
    for (int i = 0; i < levels; i++)
        total += (size_t)n[i] * sizeof(int64_t);
    if (!levels) {
        l->levels = 0;
        return FL_OK;
    }
    if (!l->buf || fl_buf_shared(l->buf) || fl_buf_size(l->buf) < total) {
        fl_buf *b;
        FL_TRY(fl_buf_new(total, &b));
        fl_buf_unref(l->buf);
        l->buf = b;
    }
    int64_t *at = fl_buf_data(l->buf);
    l->levels = levels;
    for (int i = 0; i < levels; i++, at += n[i - 1]) {
        l->n[i] = n[i];
        l->off[i] = at;
    }
    return FL_OK;
}

static fl_err check_levels(int levels)
{
    if (levels >= 0 && levels <= FL_MAX_LOD)
        return FL_OK;
    return fl_fail(FL_EINVAL, "lod: %d levels, from 0 to %d are possible",
                   levels, FL_MAX_LOD);
}

fl_err fl_lod_copy(fl_lod *dst, const fl_lod *src)
{
    fl_lod from = *src; /* dst may be src */
    FL_TRY(check_levels(from.levels));
    if (dst == src && (from.buf || !from.levels))
        return FL_OK;
    FL_TRY(resize_offsets(dst, from.levels, from.n));
    for (int i = 0; i < from.levels; i++)
        memmove((int64_t *)dst->off[i], from.off[i],
                (size_t)from.n[i] * sizeof(int64_t));
    return FL_OK;
}

fl_err fl_lod_ref(fl_lod *dst, const fl_lod *src)
{
    if (!src->buf || !src->levels || dst == src)
        return fl_lod_copy(dst, src);
    fl_lod shared = *src;
    fl_buf_ref(shared.buf);
    fl_lod_fini(dst);
    *dst = shared;
    return FL_OK;
}

static fl_err sum_up(int level, int64_t n, const int64_t *length, int64_t *off)
{
    off[0] = 0;
    for (int64_t i = 0; i < n; i++)
        if (length[i] < 0 ||
            __builtin_add_overflow(off[i], length[i], &off[i + 1]))
            return fl_fail(FL_EINVAL,
                           "lod: length %lld of level %d is %lld, expected 0 "
                           "or more (lengths so far add up to %lld)",
                           (long long)i, level, (long long)length[i],
                           (long long)off[i]);
    return FL_OK;
}

fl_err fl_lod_from_lengths(fl_lod *dst, int levels, const int64_t *n,
                           const int64_t *const *length)
{
    int64_t offsets[FL_MAX_LOD] = {0};
    FL_TRY(check_levels(levels));
    for (int i = 0; i < levels; i++) {
        if (n[i] < 0)
            return fl_fail(FL_EINVAL,
                           "lod: level %d has %lld lengths, expected 0 or more",
                           i, (long long)n[i]);
        offsets[i] = n[i] + 1;
    }
    FL_TRY(resize_offsets(dst, levels, offsets));
    fl_err err = FL_OK;
    for (int i = 0; i < levels && !err; i++)
        err = sum_up(i, n[i], length[i], (int64_t *)dst->off[i]);
    if (!err)
        err = fl_lod_check(dst, -1);
    if (err)
        dst->levels = 0;
    return err;
}

static fl_err check_level(const fl_lod *l, int level)
{
    const int64_t *off = l->off[level];
    if (l->n[level] < 1 || !off)
        return fl_fail(FL_EINVAL, "lod: level %d has no offsets", level);
    if (off[0])
        return fl_fail(FL_EINVAL, "lod: level %d starts at %lld, not at 0",
                       level, (long long)off[0]);
    for (int64_t i = 1; i < l->n[level]; i++)
        if (off[i] < off[i - 1])
            return fl_fail(FL_EINVAL,
                           "lod: level %d: offset %lld is followed by %lld at "
                           "%lld, expected no smaller one",
                           level, (long long)off[i - 1], (long long)off[i],
                           (long long)i);
    return FL_OK;
}

fl_err fl_lod_check(const fl_lod *l, int64_t rows)
{
    FL_TRY(check_levels(l->levels));
    for (int i = 0; i < l->levels; i++)
        FL_TRY(check_level(l, i));
    for (int i = 0; i < l->levels; i++) {
        bool last = i == l->levels - 1;
        int64_t end = l->off[i][l->n[i] - 1];
        int64_t want = last ? rows : l->n[i + 1] - 1;
        if (end != want && want >= 0)
            return fl_fail(FL_EINVAL,
                           "lod: level %d ends at %lld, but there are %lld %s",
                           i, (long long)end, (long long)want,
                           last ? "rows" : "sequences below it");
    }
    return FL_OK;
}

bool fl_lod_equal(const fl_lod *a, const fl_lod *b)
{
    if (a->levels != b->levels)
        return false;
    for (int i = 0; i < a->levels; i++)
        if (a->n[i] != b->n[i] ||
            memcmp(a->off[i], b->off[i], (size_t)a->n[i] * sizeof(int64_t)))
            return false;
    return true;
}

fl_err fl_lod_slice(fl_lod *dst, const fl_lod *src, int64_t *from, int64_t *to)
{
    int64_t begin[FL_MAX_LOD], n[FL_MAX_LOD];
    for (int l = 0; l < src->levels; l++) {
        begin[l] = *from;
        n[l] = *to - *from + 1;
        *from = src->off[l][*from];
        *to = src->off[l][*to];
    }
    FL_TRY(resize_offsets(dst, src->levels, n));
    for (int l = 0; l < src->levels; l++) {
        const int64_t *off = src->off[l] + begin[l];
        for (int64_t i = 0; i < n[l]; i++)
            ((int64_t *)dst->off[l])[i] = off[i] - off[0];
    }
    return FL_OK;
}

fl_err fl_lod_join(fl_lod *dst, int n, const fl_tensor *const *src)
{
    int64_t total[FL_MAX_LOD] = {0};
    const int levels = src[0]->lod.levels;
    for (int i = 0; i < n; i++) {
        const fl_lod *l = &src[i]->lod;
        if (l->levels != levels)
            return fl_fail(
                FL_EINVAL,
                "lod: tensors of %d and of %d levels cannot be joined", levels,
                l->levels);
        for (int k = 0; k < levels; k++)
            total[k] += l->n[k] - (i > 0);
    }
    FL_TRY(resize_offsets(dst, levels, total));
    for (int k = 0; k < levels; k++) {
        int64_t *at = (int64_t *)dst->off[k], end = 0;
        *at++ = 0;
        for (int i = 0; i < n; i++, end = at[-1])
            for (int64_t j = 1; j < src[i]->lod.n[k]; j++)
                *at++ = end + src[i]->lod.off[k][j];
    }
    return FL_OK;
}
