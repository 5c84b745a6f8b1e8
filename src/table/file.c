/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - reads rows of a table from files, a part at a time. */
#include "table/file.h"

enum {
    PART = 4 << 20 /* bytes of rows in memory at a time */
};

fl_kind fl_table_file_kind(int64_t rows)
{
    return rows > INT32_MAX ? FL_SELECTED_ROWS : FL_LOD_TENSOR;
}

static bool is_listed(const fl_piece *k)
{
    return fl_table_file_kind(k->shape.dim[0]) == FL_SELECTED_ROWS;
}

/* --- opening --- */

static fl_err check_shape(const fl_record *r, const fl_piece *k, fl_dtype dtype)
{
    char got[FL_SHAPE_TEXT], want[FL_SHAPE_TEXT];
    fl_shape whole = r->shape;
    if (is_listed(k))
        whole.dim[0] = r->height;
    if (r->dtype == dtype && fl_shape_equal(&whole, &k->shape))
        return FL_OK;
    return fl_fail(FL_ESHAPE, "%s: it has %s%s, but \"%s\" is %s%s", r->path,
                   fl_dtype_word(r->dtype), fl_shape_text(&whole, got), k->var,
                   fl_dtype_word(dtype), fl_shape_text(&k->shape, want));
}

fl_err fl_table_file_open(const fl_disk *disk, const char *path,
                          const fl_piece *k, fl_dtype dtype, fl_record *out)
{
    FL_TRY(
        fl_record_open(disk, path, fl_table_file_kind(k->shape.dim[0]), out));
    const fl_err err = check_shape(out, k, dtype);
    if (err)
        fl_record_close(out);
    return err;
}

/* --- parts --- */

/* Some rows of a file. */
typedef struct part {
    int64_t n;
    int64_t *id;
    char *rows;
    size_t bytes; /* bytes of a row */
} part;

static void move_row(part *p, int64_t to, int64_t from)
{
    p->id[to] = p->id[from];
    if (to < from)
        memcpy(p->rows + (size_t)to * p->bytes,
               p->rows + (size_t)from * p->bytes, p->bytes);
}

/* Drop the rows whose ids belong to other servers. */
static void keep_own(part *p, int server, int servers)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->n; i++)
        if (fl_id_server(p->id[i], servers) == server)
            move_row(p, n++, i);
    p->n = n;
}

/* Drop the rows that are equal to what the table has for their ids. */
static fl_err keep_changed(part *p, const fl_table *t, int state,
                           fl_tensor *now)
{
    int64_t n = 0;
    FL_TRY(fl_table_read(t, state, p->n, p->id, now));
    const char *old = now->data;
    for (int64_t i = 0; i < p->n; i++, old += p->bytes)
        if (memcmp(old, p->rows + (size_t)i * p->bytes, p->bytes))
            move_row(p, n++, i);
    p->n = n;
    return FL_OK;
}

static fl_err read_part(const fl_record *r, bool listed, int64_t first, part *p)
{
    const int64_t width = fl_shape_span(&r->shape, 1, r->shape.rank);
    FL_TRY(fl_record_read(r, first * width, p->n * width, p->rows));
    if (listed)
        return fl_record_rows(r, first, p->n, p->id);
    for (int64_t i = 0; i < p->n; i++)
        p->id[i] = first + i;
    return FL_OK;
}

/* A file, and which of its rows belong to the table. */
typedef struct source {
    const fl_record *r;
    bool listed; /* the file lists the ids of its rows */
    int server, servers;
    int state; /* what is loaded: a state, or FL_TABLE_VALUE */
} source;

static fl_err load_part(fl_table *t, const source *from, int64_t at, part *p,
                        fl_tensor *now)
{
    FL_TRY(read_part(from->r, from->listed, at, p));
    keep_own(p, from->server, from->servers);
    if (!from->listed)
        FL_TRY(keep_changed(p, t, from->state, now));
    const fl_shape shape = {2, {p->n, fl_table_width(t)}};
    const fl_tensor rows = fl_tensor_view(from->r->dtype, &shape, p->rows);
    return fl_table_load(t, from->state, p->n, p->id, &rows);
}

fl_err fl_table_file_load(fl_table *t, int state, const fl_record *r,
                          const fl_piece *k, int servers,
                          int (*poll)(void *user), void *user)
{
    const source from = {r, is_listed(k), k->server, servers, state};
    const int64_t rows = r->shape.dim[0];
    part p = {.bytes = (size_t)fl_table_width(t) * fl_dtype_size(r->dtype)};
    const int64_t most = PART / (int64_t)p.bytes + 1;
    fl_tensor now = {0};
    fl_err err = FL_OK;
    p.id = fl_mem_alloc((size_t)most * sizeof *p.id);
    p.rows = fl_mem_alloc((size_t)most * p.bytes);
    for (int64_t at = 0; at < rows && !err; at += most) {
        p.n = rows - at < most ? rows - at : most;
        err = poll && poll(user)
                  ? fl_fail(FL_EINTR, "%s: loading was interrupted", r->path)
                  : load_part(t, &from, at, &p, &now);
    }
    fl_tensor_fini(&now);
    fl_mem_free(p.rows);
    fl_mem_free(p.id);
    return err;
}
