/* SPDX-License-Identifier: Apache-2.0 */
/* ring.c - a ring for large messages, pairs of ranks for smaller ones.
 *
 *     ring    Each rank sends to the next one. Part c starts at rank c; each
 *             rank adds its own elements and sends the bytes on as they arrive;
 *             after world - 1 hops the sum is complete and makes a second
 *             round.
 *     halve   Pairs of ranks at distance .., 4, 2, 1 divide what they have:
 *             each sends one half and adds the other. In the end each rank has
 *             the sum of one part; then the pairs exchange sums in reverse
 *             order. That is as many bytes as in a ring with fewer waits, but
 *             bytes are not sent on while others arrive.
 *     double  Pairs of ranks at distance 1, 2, 4, .. exchange all they have.
 *             Ranks beyond the largest power of two first send theirs to a rank
 *             below it, and at the end receive the result from it.
 *
 * The elements of a part are combined in the order of ranks, beginning with the
 * part's owner (ring), or by the tree of pairs (halve; double: lower rank
 * first). So the bits do not depend on timing. */
#include "net/ring.h"

#include "base/clones.h"

enum {
    SMALL = 32 << 10, /* bytes; up to this size fewer hops are faster than fewer
                         bytes */
    MIDDLE = 4 << 20, /* bytes; up to this size fewer waits are faster than
                         bytes that are sent on as they arrive */
};

/* --- folds ---------------------------------------------------------------- */

#define SUM(a, b)  ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define MAX(a, b)  ((a) > (b) || (a) != (a) ? (a) : (b))
#define MIN(a, b)  ((a) < (b) || (a) != (a) ? (a) : (b))

/* The order of operands matters for signed zeros and NaN. */
#define FOLD(name, type, OP)                                                   \
    FL_CLONES static void name(void *to, const void *from, size_t n,           \
                               bool from_first)                                \
    {                                                                          \
        type *restrict x = to;                                                 \
        const type *restrict y = from;                                         \
        if (from_first)                                                        \
            for (size_t i = 0; i < n; i++)                                     \
                x[i] = OP(y[i], x[i]);                                         \
        else                                                                   \
            for (size_t i = 0; i < n; i++)                                     \
                x[i] = OP(x[i], y[i]);                                         \
    }

/* Integers are added and multiplied as unsigned numbers, so they wrap around.
 */
FOLD(sum_f32, float, SUM)
FOLD(max_f32, float, MAX)
FOLD(min_f32, float, MIN)
FOLD(prod_f32, float, PROD)
FOLD(sum_f64, double, SUM)
FOLD(max_f64, double, MAX)
FOLD(min_f64, double, MIN)
FOLD(prod_f64, double, PROD)
FOLD(sum_i32, uint32_t, SUM)
FOLD(max_i32, int32_t, MAX)
FOLD(min_i32, int32_t, MIN)
FOLD(prod_i32, uint32_t, PROD)
FOLD(sum_i64, uint64_t, SUM)
FOLD(max_i64, int64_t, MAX)
FOLD(min_i64, int64_t, MIN)
FOLD(prod_i64, uint64_t, PROD)

typedef struct kind {
    fl_dtype type;
    const char *name;
    size_t size;      /* bytes of an element */
    fl_fold *fold[4]; /* by fl_reduce */
} kind;

static const kind kinds[] = {
    {FL_F32, "f32", 4, {sum_f32, max_f32, min_f32, prod_f32}},
    {FL_F64, "f64", 8, {sum_f64, max_f64, min_f64, prod_f64}},
    {FL_I32, "i32", 4, {sum_i32, max_i32, min_i32, prod_i32}},
    {FL_I64, "i64", 8, {sum_i64, max_i64, min_i64, prod_i64}},
};

static const char *const names[] = {"sum", "max", "min", "prod"};

static fl_err find_kind(fl_dtype type, fl_reduce how, const kind **out)
{
    if (how < FL_REDUCE_SUM || how > FL_REDUCE_PROD)
        return fl_fail(FL_EINVAL, "reduction %d is not known", (int)how);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type) {
            *out = &kinds[i];
            return FL_OK;
        }
    return fl_fail(FL_ETYPE, "ranks reduce f32, f64, i32 and i64, not dtype %d",
                   (int)type);
}

/* --- steps ---------------------------------------------------------------- */

/* Send and receive `size` bytes; rank -1: do not send, or do not receive. */
static fl_err exchange(fl_mesh *m, int to, const void *out, int from, void *in,
                       size_t size)
{
    const size_t at[] = {0, size};
    fl_move move = {
        .to = to,
        .from = from,
        .out = {.base = (char *)out, .at = at, .parts = 1, .count = to >= 0},
        .in = {.base = in, .at = at, .parts = 1, .count = from >= 0},
    };
    return fl_mesh_move(m, &move);
}

/* Send the parts of x round the ring: each rank receives `count` parts and
 * combines the first `folds` of them. This rank sends part `first` first. */
static fl_err pass_round(fl_mesh *m, void *x, const size_t *at, int first,
                         int count, int folds, fl_fold *fold, size_t size)
{
    const int world = fl_mesh_world(m), rank = fl_mesh_rank(m);
    const int next = (first + world - 1) % world; /* the first part received */
    fl_move move = {
        .to = (rank + 1) % world,
        .from = (rank + world - 1) % world,
        .out = {x, at, world, first, count},
        .in = {x, at, world, next, count},
        .forward = true,
        .credit = at[first + 1] - at[first],
        .fold = fold,
        .folds = folds,
        .size = size,
    };
    return fl_mesh_move(m, &move);
}

/* All-reduce of a small x, by pairs. */
static fl_err reduce_by_doubling(fl_mesh *m, void *x, const kind *k,
                                 fl_fold *fold, size_t n)
{
    const int world = fl_mesh_world(m), rank = fl_mesh_rank(m);
    const size_t bytes = n * k->size;
    _Alignas(64) char other[SMALL];
    int power = 1;
    while (power * 2 <= world)
        power *= 2;
    if (rank >= power) {
        FL_TRY(exchange(m, rank - power, x, -1, NULL, bytes));
        return exchange(m, -1, NULL, rank - power, x, bytes);
    }
    const int extra = rank + power < world ? rank + power : -1;
    if (extra >= 0) {
        FL_TRY(exchange(m, -1, NULL, extra, other, bytes));
        fold(x, other, n, false);
    }
    for (int distance = 1; distance < power; distance *= 2) {
        const int peer = rank ^ distance;
        FL_TRY(exchange(m, peer, x, peer, other, bytes));
        fold(x, other, n, peer < rank);
    }
    return extra >= 0 ? exchange(m, extra, x, -1, NULL, bytes) : FL_OK;
}

/* Divide n elements into a part for each rank: part i is at[i] .. at[i + 1], in
 * bytes. */
static void divide_parts(const fl_mesh *m, size_t n, size_t size, size_t *at)
{
    const size_t world = (size_t)fl_mesh_world(m);
    for (size_t i = 0; i <= world; i++) /* avoids n * i, which could overflow */
        at[i] = (n / world * i + n % world * i / world) * size;
}

static fl_err reduce_by_ring(fl_mesh *m, void *x, const kind *k, fl_fold *fold,
                             size_t n)
{
    const int world = fl_mesh_world(m);
    size_t at[FL_MESH_WORLD + 1];
    divide_parts(m, n, k->size, at);
    return pass_round(m, x, at, fl_mesh_rank(m), 2 * (world - 1), world - 1,
                      fold, k->size);
}

/* A step of halving, between two ranks at a distance that is a power of two.
 * Each of them has its half of their parts. With a fold each rank sends the
 * half of the other one and combines its own half with what it receives.
 * Without a fold each sends its own half. */
static fl_err swap_halves(fl_mesh *m, void *x, const size_t *at, int distance,
                          fl_fold *fold, size_t size)
{
    const int rank = fl_mesh_rank(m), peer = rank ^ distance;
    const int mine = rank & -distance, other = peer & -distance;
    const size_t my_half[] = {at[mine], at[mine + distance]};
    const size_t other_half[] = {at[other], at[other + distance]};
    fl_move move = {
        .to = peer,
        .from = peer,
        .out = {x, fold ? other_half : my_half, 1, 0, 1},
        .in = {x, fold ? my_half : other_half, 1, 0, 1},
        .fold = fold,
        .folds = fold != NULL,
        .size = size,
    };
    return fl_mesh_move(m, &move);
}

/* The number of ranks is a power of two. */
static fl_err reduce_by_halving(fl_mesh *m, void *x, const kind *k,
                                fl_fold *fold, size_t n)
{
    const int world = fl_mesh_world(m);
    size_t at[FL_MESH_WORLD + 1];
    divide_parts(m, n, k->size, at);
    for (int distance = world / 2; distance; distance /= 2)
        FL_TRY(swap_halves(m, x, at, distance, fold, k->size));
    for (int distance = 1; distance < world; distance *= 2)
        FL_TRY(swap_halves(m, x, at, distance, NULL, k->size));
    return FL_OK;
}

/* Broadcast along the chain of ranks from root on. */
static fl_err broadcast_by_chain(fl_mesh *m, int root, void *x, size_t size)
{
    const int world = fl_mesh_world(m), rank = fl_mesh_rank(m);
    const size_t at[] = {0, size};
    const bool first = rank == root, last = (rank + 1) % world == root;
    fl_move move = {
        .to = last ? -1 : (rank + 1) % world,
        .from = first ? -1 : (rank + world - 1) % world,
        .out = {.base = x, .at = at, .parts = 1, .count = !last},
        .in = {.base = x, .at = at, .parts = 1, .count = !first},
        .forward = !first,
    };
    return fl_mesh_move(m, &move);
}

/* Broadcast by a binomial tree: each rank that has the bytes sends them to the
 * rank at half the distance. */
static fl_err broadcast_by_tree(fl_mesh *m, int root, void *x, size_t size)
{
    const int world = fl_mesh_world(m);
    const int hops = (fl_mesh_rank(m) - root + world) % world; /* from root */
    int distance = 1;
    while (distance < world && !(hops & distance))
        distance *= 2;
    if (hops)
        FL_TRY(
            exchange(m, -1, NULL, (hops - distance + root) % world, x, size));
    for (distance /= 2; distance; distance /= 2)
        if (hops + distance < world)
            FL_TRY(exchange(m, (hops + distance + root) % world, x, -1, NULL,
                            size));
    return FL_OK;
}

/* --- calls ---------------------------------------------------------------- */

fl_err fl_ring_all_reduce(fl_mesh *m, fl_reduce how, fl_dtype type, void *x,
                          int64_t n)
{
    const kind *k = NULL;
    FL_TRY(find_kind(type, how, &k));
    FL_TRY(fl_mesh_begin(m, "all-reduce %s of %lld %s", names[how],
                         (long long)n, k->name));
    const int world = fl_mesh_world(m);
    const size_t bytes = (size_t)n * k->size;
    if (world == 1)
        return FL_OK;
    if (bytes <= SMALL)
        return reduce_by_doubling(m, x, k, k->fold[how], (size_t)n);
    /* Two ranks have as many waits in the ring. */
    if (bytes <= MIDDLE && world > 2 && !(world & (world - 1)))
        return reduce_by_halving(m, x, k, k->fold[how], (size_t)n);
    return reduce_by_ring(m, x, k, k->fold[how], (size_t)n);
}

fl_err fl_ring_reduce_scatter(fl_mesh *m, fl_reduce how, fl_dtype type, void *x,
                              int64_t n)
{
    const int world = fl_mesh_world(m), rank = fl_mesh_rank(m);
    size_t at[FL_MESH_WORLD + 1];
    const kind *k = NULL;
    FL_TRY(find_kind(type, how, &k));
    FL_TRY(fl_mesh_begin(m, "reduce-scatter %s of %lld %s each", names[how],
                         (long long)n, k->name));
    if (world == 1)
        return FL_OK;
    for (int i = 0; i <= world; i++)
        at[i] = (size_t)i * (size_t)n * k->size;
    return pass_round(m, x, at, (rank + world - 1) % world, world - 1,
                      world - 1, k->fold[how], k->size);
}

fl_err fl_ring_all_gather(fl_mesh *m, void *x, const size_t *at)
{
    const int world = fl_mesh_world(m);
    uint64_t layout = 14695981039346656037u; /* FNV-1a of the offsets */
    for (int i = 0; i <= world; i++)
        layout = (layout ^ at[i]) * 1099511628211u;
    FL_TRY(fl_mesh_begin(m, "all-gather of %zu bytes, layout %08x",
                         at[world] - at[0], (unsigned)(layout ^ layout >> 32)));
    if (world == 1)
        return FL_OK;
    return pass_round(m, x, at, fl_mesh_rank(m), world - 1, 0, NULL, 1);
}

fl_err fl_ring_broadcast(fl_mesh *m, int root, void *x, size_t size)
{
    const int world = fl_mesh_world(m);
    if (root < 0 || root >= world)
        return fl_fail(FL_EINVAL,
                       "broadcast: root is rank %d, expected 0 to %d", root,
                       world - 1);
    FL_TRY(fl_mesh_begin(m, "broadcast of %zu bytes from rank %d", size, root));
    if (world == 1)
        return FL_OK;
    return size <= SMALL ? broadcast_by_tree(m, root, x, size)
                         : broadcast_by_chain(m, root, x, size);
}

fl_err fl_ring_barrier(fl_mesh *m)
{
    int32_t one = 1;
    FL_TRY(fl_mesh_begin(m, "barrier"));
    return fl_mesh_world(m) == 1
               ? FL_OK
               : reduce_by_doubling(m, &one, &kinds[2], sum_i32, 1);
}
