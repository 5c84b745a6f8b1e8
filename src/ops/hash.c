/* SPDX-License-Identifier: Apache-2.0 */
/* hash   Out[n, k] = XXH64(row n of X, seed k) modulo mod_by, k < num_hash
 *
 * X is [N, D] of ids, hashed as the bytes in which they stand in memory; Out is
 * [N, num_hash, 1]: ids that all fit a table of mod_by rows, several for each
 * row so that two rows that share one id differ in another. There is no
 * gradient. (Fluid 1.5 took the first half of the bytes of int64 rows, by
 * mistake; later releases and we take all: a table of such ids is not the
 * same.)
 *
 * XXH64 as its specification gives it: 32 bytes at a time in four lanes, then
 * what is left in words of 8, 4 and 1 bytes, then a mix of all bits. */
#include "op/kernel.h"

static const uint64_t prime[] = {
    0,
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
};

static uint64_t turn(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* A little-endian word of n bytes. */
static uint64_t word(const uint8_t *p, int n)
{
    uint64_t x = 0;
    for (int i = 0; i < n; i++)
        x |= (uint64_t)p[i] << (8 * i);
    return x;
}

static uint64_t mix_lane(uint64_t lane, uint64_t input)
{
    return turn(lane + input * prime[2], 31) * prime[1];
}

/* Process the stripes of 32 bytes; *p is moved past them. */
static uint64_t stripes(const uint8_t **p, const uint8_t *end, uint64_t seed)
{
    static const int turns[] = {1, 7, 12, 18};
    uint64_t lane[] = {seed + prime[1] + prime[2], seed + prime[2], seed,
                       seed - prime[1]};
    uint64_t h = 0;
    for (; end - *p >= 32; *p += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = mix_lane(lane[i], word(*p + 8 * i, 8));
    for (int i = 0; i < 4; i++)
        h += turn(lane[i], turns[i]);
    for (int i = 0; i < 4; i++)
        h = (h ^ mix_lane(0, lane[i])) * prime[1] + prime[4];
    return h;
}

static uint64_t xxh64(const uint8_t *p, size_t n, uint64_t seed)
{
    const uint8_t *end = p + n;
    uint64_t h = n >= 32 ? stripes(&p, end, seed) : seed + prime[5];
    h += n;
    for (; end - p >= 8; p += 8)
        h = turn(h ^ mix_lane(0, word(p, 8)), 27) * prime[1] + prime[4];
    for (; end - p >= 4; p += 4)
        h = turn(h ^ word(p, 4) * prime[1], 23) * prime[2] + prime[3];
    for (; p < end; p++)
        h = turn(h ^ *p * prime[5], 11) * prime[1];
    h = (h ^ h >> 33) * prime[2];
    h = (h ^ h >> 29) * prime[3];
    return h ^ h >> 32;
}

static fl_err hash(fl_call *c)
{
    const fl_tensor *x = fl_in(c, "X");
    const size_t size = (size_t)x->shape.dim[1] * fl_dtype_size(x->dtype);
    const int64_t times = fl_attr_i64(c, "num_hash");
    const uint64_t mod = (uint64_t)fl_attr_i64(c, "mod_by");
    void *y = fl_out(c, "Out")->data;
    for (int64_t i = 0, n = x->shape.dim[0] * times; i < n; i++) {
        const uint8_t *row = (const uint8_t *)x->data + i / times * size;
        const uint64_t id = xxh64(row, size, (uint64_t)(i % times)) % mod;
        if (x->dtype == FL_I64)
            ((int64_t *)y)[i] = (int64_t)id;
        else
            ((int32_t *)y)[i] = (int32_t)id;
    }
    return FL_OK;
}

static fl_err infer(fl_infer *x)
{
    const fl_meta *in = fl_meta_in(x, "X", 0);
    const int64_t times = fl_meta_attr(x, "num_hash")->i;
    const int64_t mod = fl_meta_attr(x, "mod_by")->i;
    const int64_t most = in->dtype == FL_I32 ? INT32_MAX : INT64_MAX;
    char text[FL_SHAPE_TEXT];
    FL_TRY(fl_meta_check(x, "X", FL_SET(FL_I64) | FL_SET(FL_I32)));
    if (in->shape.rank != 2)
        return fl_fail(FL_ESHAPE, "%s: X is %s, expected [N,D]",
                       fl_meta_type(x), fl_shape_text(&in->shape, text));
    if (times < 1 || times > INT32_MAX)
        return fl_fail(FL_EINVAL, "%s: num_hash is %lld, expected 1 or more",
                       fl_meta_type(x), (long long)times);
    if (mod < 1 || mod > most)
        return fl_fail(FL_EINVAL, "%s: mod_by is %lld, expected 1 to %lld",
                       fl_meta_type(x), (long long)mod, (long long)most);
    const fl_shape s = {3, {in->shape.dim[0], times, 1}};
    fl_meta_set(x, "Out", 0, in->dtype, &s);
    fl_meta_share_lod(x, "X", "Out");
    return FL_OK;
}

const fl_op_def fl_op_hash = {
    .type = "hash",
    .in = {{"X", FL_NOGRAD}},
    .out = {{"Out"}},
    .attr = {{"num_hash", FL_ATTR_INT, .i = 1},
             {"mod_by", FL_ATTR_LONG, .i = 100000}},
    .infer = infer,
    .run = hash,
};
