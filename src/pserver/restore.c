/* SPDX-License-Identifier: Apache-2.0 */
/* restore.c - reads tensors and rows from the parts of a snapshot. */
#include "pserver/restore.h"

#include "base/failpoint.h"
#include "base/mem.h"

#include <string.h>

enum {
    CHUNK = 1 << 20 /* bytes of rows that are read at a time */
};

struct fl_restore {
    char *path;
    fl_snapshot_job job;
    fl_str coordinator;
    fl_snapshot_part *part;
    int parts;
    bool own; /* the only part is that of this server */
};

static fl_err check_job(const fl_restore *r, const fl_job *job)
{
    const fl_snapshot_job *j = &r->job;
    if (j->trainers != job->trainers || j->async != job->async)
        return fl_fail(FL_EINVAL,
                       "%s is of a job with %d trainers, %ssynchronous; this "
                       "one has %d, %ssynchronous",
                       r->path, j->trainers, j->async ? "a" : "", job->trainers,
                       job->async ? "a" : "");
    return FL_OK; /* variables are compared when they are read */
}

static fl_err open_parts(fl_restore *r, const fl_disk *disk, const char *base,
                         const fl_placement *place)
{
    r->own = r->job.servers == place->n_servers;
    const int n = r->own ? 1 : r->job.servers;
    r->part = fl_mem_alloc((size_t)n * sizeof *r->part);
    for (int i = 0; i < n; i++) {
        FL_TRY(fl_snapshot_part_init(&r->part[i], disk, base, r->job.number,
                                     r->own ? place->server : i));
        r->parts++;
    }
    if (r->part[0].index.servers != r->job.servers)
        return fl_fail(FL_EINVAL,
                       "%s is of a job with %d servers, but one of its parts "
                       "is of a job with %d",
                       r->path, r->job.servers, r->part[0].index.servers);
    return FL_OK;
}

static fl_err open_restore(fl_restore *r, const fl_disk *disk, const char *base,
                           int64_t number, const fl_placement *place,
                           const fl_job *job)
{
    r->path = fl_snapshot_path(base, number);
    fl_err err = fl_snapshot_read(disk, base, number, &r->job, &r->coordinator);
    if (err == FL_ENOENT && place->server) {
        r->job = (fl_snapshot_job){.number = number,
                                   .servers = place->n_servers,
                                   .trainers = job->trainers,
                                   .async = job->async};
        err = FL_OK;
    }
    FL_TRY(err);
    FL_TRY(check_job(r, job));
    return open_parts(r, disk, base, place);
}

fl_err fl_restore_open(const fl_disk *disk, const char *base, int64_t number,
                       const fl_placement *place, const fl_job *job,
                       fl_restore **out)
{
    fl_restore *r = fl_mem_alloc(sizeof *r);
    const fl_err err = open_restore(r, disk, base, number, place, job);
    if (err) {
        fl_restore_close(r);
        return err;
    }
    *out = r;
    return FL_OK;
}

void fl_restore_close(fl_restore *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->parts; i++)
        fl_snapshot_part_fini(&r->part[i]);
    fl_mem_free(r->part);
    fl_str_fini(&r->coordinator);
    fl_mem_free(r->path);
    fl_mem_free(r);
}

const fl_snapshot_job *fl_restore_job(const fl_restore *r)
{
    return &r->job;
}

int64_t fl_restore_version(const fl_restore *r)
{
    return r->own ? r->part[0].index.version : r->job.version;
}

const fl_str *fl_restore_coordinator(const fl_restore *r)
{
    return &r->coordinator;
}

const fl_str *fl_restore_server(const fl_restore *r)
{
    static const fl_str none;
    return r->own ? &r->part[0].index.image : &none;
}

/* --- tensors --- */

/* Copy the elements that a piece has in common with the tensor. Their number
 * is added to *have. */
static fl_err read_common(const fl_snapshot_part *p,
                          const fl_snapshot_tensor *t, int64_t first,
                          fl_tensor *to, int64_t *have)
{
    const int64_t size = (int64_t)fl_dtype_size(to->dtype);
    const int64_t n = fl_tensor_numel(to), m = t->bytes / size;
    const int64_t from = t->first > first ? t->first : first;
    const int64_t end = t->first + m < first + n ? t->first + m : first + n;
    if (end <= from)
        return FL_OK;
    *have += end - from;
    return p->disk->read_at(p->data, t->at + (from - t->first) * size,
                            (char *)to->data + (from - first) * size,
                            (size_t)((end - from) * size));
}

fl_err fl_restore_tensor(const fl_restore *r, const char *var, int64_t first,
                         fl_tensor *to)
{
    const int64_t n = fl_tensor_numel(to);
    int64_t have = 0;
    fl_failpoint_hit("rewind.restore");
    for (int i = 0; i < r->parts; i++) {
        const fl_snapshot_index *x = &r->part[i].index;
        for (int64_t k = 0; k < x->tensor.n && have < n; k++)
            if (!strcmp(x->tensor.at[k].var, var) &&
                x->tensor.at[k].dtype == (int)to->dtype)
                FL_TRY(read_common(&r->part[i], &x->tensor.at[k], first, to,
                                   &have));
    }
    if (have == n)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s has %lld of %lld elements of \"%s\": it is of another "
                   "program",
                   r->path, (long long)have, (long long)n, var);
}

/* --- tables --- */

/* The rows of a chunk that belong to this server. */
static fl_err load_chunk(const char *bytes, int64_t n, int64_t row,
                         const fl_placement *place, fl_table *to,
                         fl_tensor *rows, int64_t *id)
{
    int64_t m = 0;
    for (int64_t i = 0; i < n; i++) {
        const char *at = bytes + i * (row + 8);
        memcpy(&id[m], at, sizeof *id);
        if (place && fl_id_server(id[m], place->n_servers) != place->server)
            continue;
        memcpy((char *)rows->data + m * row, at + 8, (size_t)row);
        m++;
    }
    rows->shape.dim[0] = m;
    return m ? fl_table_load(to, FL_TABLE_WHOLE, m, id, rows) : FL_OK;
}

static fl_err load_rows(const fl_snapshot_part *p, const fl_snapshot_table *t,
                        const fl_placement *place, fl_table *to)
{
    const int64_t span = fl_table_span(to);
    const int64_t most = CHUNK / (t->row + 8) + 1;
    fl_tensor rows = {0};
    char *bytes = fl_mem_alloc((size_t)(most * (t->row + 8)));
    int64_t *id = fl_mem_alloc((size_t)most * sizeof *id);
    fl_err err = fl_tensor_resize(&rows, (fl_dtype)t->dtype,
                                  &(fl_shape){2, {most, span}});
    for (int64_t i = 0; i < t->rows && !err; i += most) {
        const int64_t n = t->rows - i < most ? t->rows - i : most;
        err = p->disk->read_at(p->data, t->at + i * (t->row + 8), bytes,
                               (size_t)(n * (t->row + 8)));
        if (!err)
            err = load_chunk(bytes, n, t->row, place, to, &rows, id);
    }
    fl_tensor_fini(&rows);
    fl_mem_free(bytes);
    fl_mem_free(id);
    return err;
}

fl_err fl_restore_table(const fl_restore *r, const char *name,
                        const fl_placement *place, fl_table *to)
{
    int found = 0;
    for (int i = 0; i < r->parts; i++) {
        const fl_snapshot_index *x = &r->part[i].index;
        for (int64_t k = 0; k < x->table.n; k++) {
            const fl_snapshot_table *t = &x->table.at[k];
            if (strcmp(t->name, name) != 0 || !fl_dtype_valid(t->dtype))
                continue;
            if (t->row !=
                fl_table_span(to) * (int64_t)fl_dtype_size((fl_dtype)t->dtype))
                return fl_fail(FL_EINVAL,
                               "%s has rows of %lld bytes of table \"%s\": it "
                               "is of another program",
                               r->path, (long long)t->row, name);
            FL_TRY(load_rows(&r->part[i], t, place, to));
            found++;
        }
    }
    return found ? FL_OK
                 : fl_fail(FL_EINVAL,
                           "%s has no table \"%s\": it is of another program",
                           r->path, name);
}
