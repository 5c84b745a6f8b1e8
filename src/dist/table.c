/* table.c - ids hashed to numbers of rows, rows in chunks that never move. */
#include "dist/table.h"

#include "base/vec.h"

enum {
    POOL = 4096,          /* numbers that starts are picked from */
    CHUNK_BYTES = 1 << 20 /* of rows, at least one */
};

typedef struct slot {
    int64_t id;
    int64_t row; /* 1 + its number; 0: free */
} slot;

struct fl_table {
    uint64_t salt; /* of the name */
    fl_dtype dtype;
    int64_t width;
    size_t bytes; /* of a row */
    fl_tensor pool;
    slot *slots;
    int64_t n_slots; /* a power of 2 */
    int64_t n;       /* rows */
    int64_t per_chunk;
    FL_VEC(char *) chunks;
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t mix_text(const char *text)
{
    uint64_t x = 0;
    for (; *text; text++)
        x = mix(x + (unsigned char)*text + 1);
    return x;
}

fl_err fl_table_new(const char *name, const fl_tensor *started, fl_table **out)
{
    char text[FL_SHAPE_TEXT];
    const fl_shape *s = &started->shape;
    const int64_t numel = fl_tensor_numel(started);
    if ((started->dtype != FL_F32 && started->dtype != FL_F64) ||
        s->rank != 2 || numel < 1)
        return fl_fail(FL_EINVAL,
                       "table \"%s\" was started as %s%s, expected rows of "
                       "float32 or float64",
                       name, fl_dtype_word(started->dtype),
                       fl_shape_text(s, text));
    fl_table *t = fl_mem_alloc(sizeof *t);
    t->salt = mix_text(name);
    t->dtype = started->dtype;
    t->width = s->dim[1];
    t->bytes = (size_t)t->width * fl_dtype_size(t->dtype);
    t->per_chunk = CHUNK_BYTES / (int64_t)t->bytes;
    t->per_chunk += t->per_chunk == 0;
    const fl_shape most = {1, {numel < POOL ? numel : POOL}};
    const fl_tensor first =
        fl_tensor_view(started->dtype, &most, started->data);
    const fl_err err = fl_tensor_copy(&t->pool, &first);
    if (err) {
        fl_table_free(t);
        return err;
    }
    *out = t;
    return FL_OK;
}

void fl_table_free(fl_table *t)
{
    if (!t)
        return;
    for (int64_t i = 0; i < t->chunks.n; i++)
        fl_mem_free(t->chunks.at[i]);
    fl_vec_fini(&t->chunks);
    fl_tensor_fini(&t->pool);
    fl_mem_free(t->slots);
    fl_mem_free(t);
}

int64_t fl_table_rows(const fl_table *t)
{
    return t->n;
}

int64_t fl_table_width(const fl_table *t)
{
    return t->width;
}

static char *row_at(const fl_table *t, int64_t row)
{
    return t->chunks.at[row / t->per_chunk] +
           (size_t)(row % t->per_chunk) * t->bytes;
}

/* Its slot, or the free one where it belongs. */
static slot *find(const fl_table *t, int64_t id)
{
    uint64_t at = mix((uint64_t)id);
    for (;; at++) {
        slot *s = &t->slots[at & (uint64_t)(t->n_slots - 1)];
        if (!s->row || s->id == id)
            return s;
    }
}

static fl_err grow(fl_table *t)
{
    const int64_t n = t->n_slots;
    slot *old = t->slots, *slots;
    if (2 * (t->n + 1) <= n)
        return FL_OK;
    t->n_slots = n ? 2 * n : 1024;
    slots = fl_mem_try((size_t)t->n_slots * sizeof *slots);
    if (!slots) {
        t->n_slots = n;
        return fl_fail(FL_ENOMEM, "table: no memory for %lld rows",
                       (long long)t->n + 1);
    }
    t->slots = memset(slots, 0, (size_t)t->n_slots * sizeof *slots);
    for (int64_t i = 0; i < n; i++)
        if (old[i].row)
            *find(t, old[i].id) = old[i];
    fl_mem_free(old);
    return FL_OK;
}

static void start_row(const fl_table *t, int64_t id, char *row)
{
    const size_t one = fl_dtype_size(t->dtype);
    const uint64_t numbers = (uint64_t)fl_tensor_numel(&t->pool);
    const uint64_t seed = mix(t->salt ^ mix((uint64_t)id));
    for (int64_t i = 0; i < t->width; i++) {
        const uint64_t at = mix(seed + (uint64_t)i) % numbers;
        memcpy(row + (size_t)i * one, (char *)t->pool.data + at * one, one);
    }
}

static fl_err add_row(fl_table *t, int64_t id, char **out)
{
    FL_TRY(grow(t));
    if (t->n == t->chunks.n * t->per_chunk) {
        char *chunk = fl_mem_try((size_t)t->per_chunk * t->bytes);
        if (!chunk)
            return fl_fail(FL_ENOMEM, "table: no memory for %lld rows",
                           (long long)t->n + 1);
        fl_push(&t->chunks, chunk);
    }
    *out = row_at(t, t->n);
    start_row(t, id, *out);
    *find(t, id) = (slot){id, ++t->n};
    return FL_OK;
}

static fl_err row_of(fl_table *t, int64_t id, char **out)
{
    const slot *s = t->n_slots ? find(t, id) : NULL;
    if (!s || !s->row)
        return add_row(t, id, out);
    *out = row_at(t, s->row - 1);
    return FL_OK;
}

fl_err fl_table_read(fl_table *t, int64_t n, const int64_t *id, fl_tensor *out)
{
    char *row;
    FL_TRY(fl_tensor_resize(out, t->dtype, &(fl_shape){2, {n, t->width}}));
    for (int64_t i = 0; i < n; i++) {
        FL_TRY(row_of(t, id[i], &row));
        memcpy((char *)out->data + (size_t)i * t->bytes, row, t->bytes);
    }
    return FL_OK;
}

fl_err fl_table_write(fl_table *t, int64_t n, const int64_t *id,
                      const fl_tensor *in)
{
    char *row;
    for (int64_t i = 0; i < n; i++) {
        FL_TRY(row_of(t, id[i], &row));
        memcpy(row, (const char *)in->data + (size_t)i * t->bytes, t->bytes);
    }
    return FL_OK;
}
