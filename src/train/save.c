/* SPDX-License-Identifier: Apache-2.0 */
/* save.c - writes files with the variables of servers. See save.h.
 *
 * A table whose rows are distributed over servers by id is saved as
 *
 *     up to INT32_MAX rows   all rows, by ranges of ids; a pull adds no row
 *     more                   the rows that exist: first the ids of all servers,
 *                            in a temporary file, then their rows
 *
 * Rows may be added while a table is saved. So the ids are listed and counted
 * first, and exactly these rows are written. They are in the order of the
 * table, which does not depend on the number of servers. */
#include "train/save.h"

#include "exec/model.h"
#include "table/file.h"
#include "tensor/file.h"

#include <stdlib.h>

enum {
    SAVE_PART = 4 << 20 /* bytes of a variable that are copied at a time */
};

/* --- tables with rows by id --- */

/* Gets the rows of a list of ids: each server is asked for its own. */
typedef struct row_lookup {
    const fl_saver *by;
    const fl_var *v;
    int servers;
    fl_lookup *ask; /* one for each server, like the two arrays below */
    fl_tensor *got;
    int64_t *next; /* next row of the answer to be written */
    int64_t most;  /* rows that are asked for at a time */
    int64_t *ids;
    int64_t *by_server; /* the same ids, those of server 0 first */
    char *rows;
    size_t row; /* bytes of a row */
} row_lookup;

static row_lookup begin_row_lookup(const fl_saver *s, const fl_var *v)
{
    const size_t n = (size_t)s->place->n_servers;
    row_lookup d = {.by = s,
                    .v = v,
                    .servers = s->place->n_servers,
                    .row = (size_t)v->shape.dim[1] * fl_dtype_size(v->dtype)};
    d.most = SAVE_PART / (int64_t)d.row + 1;
    d.ask = fl_mem_alloc(n * sizeof *d.ask);
    d.got = fl_mem_alloc(n * sizeof *d.got);
    d.next = fl_mem_alloc(n * sizeof *d.next);
    d.ids = fl_mem_alloc((size_t)d.most * sizeof *d.ids);
    d.by_server = fl_mem_alloc((size_t)d.most * sizeof *d.by_server);
    d.rows = fl_mem_alloc((size_t)d.most * d.row);
    return d;
}

static void end_row_lookup(row_lookup *d)
{
    for (int i = 0; i < d->servers; i++)
        fl_tensor_fini(&d->got[i]);
    fl_mem_free(d->ask);
    fl_mem_free(d->got);
    fl_mem_free(d->next);
    fl_mem_free(d->ids);
    fl_mem_free(d->by_server);
    fl_mem_free(d->rows);
}

/* Assign the first n of d->ids to their servers. */
static void assign_ids(row_lookup *d, int64_t n)
{
    int64_t *at = d->by_server;
    for (int s = 0; s < d->servers; s++)
        d->next[s] = 0;
    for (int64_t i = 0; i < n; i++)
        d->next[fl_id_server(d->ids[i], d->servers)]++;
    for (int s = 0; s < d->servers; s++) {
        d->ask[s] = (fl_lookup){s, d->v->name, 0, at, &d->got[s], 0};
        at += d->next[s];
    }
    for (int64_t i = 0; i < n; i++) {
        fl_lookup *k = &d->ask[fl_id_server(d->ids[i], d->servers)];
        ((int64_t *)k->rows)[k->n++] = d->ids[i];
    }
}

static fl_err check_rows(const row_lookup *d)
{
    char got[FL_SHAPE_TEXT];
    for (int s = 0; s < d->servers; s++)
        if (fl_tensor_bytes(&d->got[s]) != (size_t)d->ask[s].n * d->row)
            return fl_fail(FL_EPROTO,
                           "save: server %d was asked for %lld rows of \"%s\" "
                           "and has sent %s",
                           s, (long long)d->ask[s].n, d->v->name,
                           fl_shape_text(&d->got[s].shape, got));
    return FL_OK;
}

/* Get and write the rows of the first n of d->ids. */
static fl_err add_rows(row_lookup *d, int64_t n)
{
    assign_ids(d, n);
    FL_TRY(fl_trainer_lookup(d->by->trainer, NULL, d->servers, d->ask));
    FL_TRY(check_rows(d));
    for (int s = 0; s < d->servers; s++)
        d->next[s] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int s = fl_id_server(d->ids[i], d->servers);
        memcpy(d->rows + (size_t)i * d->row,
               (const char *)d->got[s].data + (size_t)d->next[s]++ * d->row,
               d->row);
    }
    return fl_stage_append(d->by->stage, d->rows, (size_t)n * d->row);
}

/* --- all rows --- */

static fl_err add_all(row_lookup *d)
{
    const int64_t rows = d->v->shape.dim[0];
    fl_str head = {0};
    fl_tensor_head(d->v->dtype, &d->v->shape, &head);
    fl_err err = fl_stage_append(d->by->stage, head.at, head.n);
    fl_str_fini(&head);
    for (int64_t at = 0; at < rows && !err; at += d->most) {
        const int64_t n = rows - at < d->most ? rows - at : d->most;
        for (int64_t i = 0; i < n; i++)
            d->ids[i] = at + i;
        err = add_rows(d, n);
    }
    return err;
}

/* --- only the rows that exist --- */

/* Merges the sorted lists of ids of all servers. */
typedef struct merge {
    row_lookup *d;
    uint64_t key;   /* hash key of the job's tables */
    int64_t *after; /* by server: the last id that was received */
    bool *begun, *over;
    int64_t last; /* the last id that was taken, if any */
    bool some;
} merge;

/* Ask each server whose ids are used up for more. */
static fl_err ask_ids(merge *m)
{
    row_lookup *d = m->d;
    int n = 0;
    for (int s = 0; s < d->servers; s++) {
        if (m->over[s] || d->next[s] < fl_tensor_numel(&d->got[s]))
            continue;
        d->next[s] = 0;
        d->ask[n++] = (fl_lookup){
            s, d->v->name, m->begun[s], m->after + s, &d->got[s], d->most};
    }
    if (n)
        FL_TRY(fl_trainer_lookup(d->by->trainer, NULL, n, d->ask));
    for (int i = 0; i < n; i++) {
        const int s = d->ask[i].server;
        const int64_t got = fl_tensor_numel(&d->got[s]);
        m->begun[s] = true;
        m->over[s] = !got;
        if (got)
            m->after[s] = ((const int64_t *)d->got[s].data)[got - 1];
    }
    return FL_OK;
}

static int64_t head_of(const merge *m, int s)
{
    return ((const int64_t *)m->d->got[s].data)[m->d->next[s]];
}

static uint64_t order_of(const merge *m, int64_t id)
{
    return fl_table_order(m->key, id);
}

/* The server with the next id; -1: there are no more ids. */
static int next_server(const merge *m)
{
    int first = -1;
    for (int s = 0; s < m->d->servers; s++)
        if (!m->over[s] && (first < 0 || order_of(m, head_of(m, s)) <
                                             order_of(m, head_of(m, first))))
            first = s;
    return first;
}

/* Move ids to d->ids until it is full or a server must be asked for more. */
static fl_err take_ids(merge *m, int64_t *n)
{
    row_lookup *d = m->d;
    for (int s; *n < d->most && (s = next_server(m)) >= 0;) {
        const int64_t id = head_of(m, s);
        if (m->some && order_of(m, id) <= order_of(m, m->last))
            return fl_fail(FL_EPROTO,
                           "save: server %d has listed row %lld of \"%s\" "
                           "after row %lld, which is the wrong order",
                           s, (long long)id, d->v->name, (long long)m->last);
        m->some = true;
        m->last = d->ids[(*n)++] = id;
        if (++d->next[s] == fl_tensor_numel(&d->got[s]))
            break;
    }
    return FL_OK;
}

static fl_err list_ids(row_lookup *d, fl_file *to, int64_t *count)
{
    const size_t n = (size_t)d->servers;
    merge m = {.d = d,
               .key = fl_table_key(d->by->place->tables),
               .after = fl_mem_alloc(n * sizeof *m.after),
               .begun = fl_mem_alloc(n * sizeof *m.begun),
               .over = fl_mem_alloc(n * sizeof *m.over)};
    fl_err err = FL_OK;
    *count = 0;
    for (int64_t some = 1; some && !err; *count += some) {
        some = 0;
        err = ask_ids(&m);
        if (!err)
            err = take_ids(&m, &some);
        if (!err && some)
            err = d->by->stage->disk->append(to, d->ids,
                                             (size_t)some * sizeof *d->ids);
    }
    fl_mem_free(m.after);
    fl_mem_free(m.begun);
    fl_mem_free(m.over);
    return err;
}

/* Write the listed ids, or the rows of these ids. */
static fl_err add_listed(row_lookup *d, fl_file *list, int64_t count, bool rows)
{
    for (int64_t at = 0; at < count; at += d->most) {
        const int64_t n = count - at < d->most ? count - at : d->most;
        FL_TRY(d->by->stage->disk->read_at(list, at * (int64_t)sizeof *d->ids,
                                           d->ids, (size_t)n * sizeof *d->ids));
        FL_TRY(rows ? add_rows(d, n)
                    : fl_stage_append(d->by->stage, d->ids,
                                      (size_t)n * sizeof *d->ids));
    }
    return FL_OK;
}

static fl_err add_record(row_lookup *d, fl_file *list, int64_t count)
{
    const fl_shape shape = {2, {count, d->v->shape.dim[1]}};
    fl_str head = {0};
    fl_rows_head(count, &head);
    fl_err err = fl_stage_append(d->by->stage, head.at, head.n);
    if (!err)
        err = add_listed(d, list, count, false);
    head.n = 0;
    fl_rows_tail(d->v->shape.dim[0], d->v->dtype, &shape, &head);
    if (!err)
        err = fl_stage_append(d->by->stage, head.at, head.n);
    if (!err)
        err = add_listed(d, list, count, true);
    fl_str_fini(&head);
    return err;
}

static fl_err add_existing_by(row_lookup *d, const char *path)
{
    const fl_disk *disk = d->by->stage->disk;
    fl_file *list = NULL;
    int64_t count = 0, size;
    FL_TRY(disk->open(disk, path, &list));
    fl_err err = list_ids(d, list, &count);
    disk->close(list);
    FL_TRY(err);
    FL_TRY(disk->look(disk, path, &list, &size));
    err = add_record(d, list, count);
    disk->close(list);
    return err;
}

static fl_err add_existing(row_lookup *d)
{
    char *path = fl_stage_scratch(d->by->stage);
    const fl_err err = add_existing_by(d, path);
    const fl_sentence last = fl_sentence_keep();
    (void)!d->by->stage->disk->remove(d->by->stage->disk,
                                      path); /* for the next save */
    fl_sentence_restore(&last);
    fl_mem_free(path);
    return err;
}

static fl_err append_table(const fl_saver *s, const fl_var *v)
{
    row_lookup d = begin_row_lookup(s, v);
    const bool whole = fl_table_file_kind(v->shape.dim[0]) == FL_LOD_TENSOR;
    const fl_err err = whole ? add_all(&d) : add_existing(&d);
    end_row_lookup(&d);
    return err;
}

/* --- variables that are split by rows --- */

static int by_first(const void *a, const void *b)
{
    const fl_piece *const *x = a, *const *y = b;
    return ((*x)->first > (*y)->first) - ((*x)->first < (*y)->first);
}

typedef FL_VEC(const fl_piece *) pieces;

/* List the pieces of a variable in order. If several servers have the same
 * elements, only the first of them is listed. */
static void find_pieces(const fl_placement *place, const char *var,
                        pieces *found)
{
    int64_t n = 0;
    for (int i = 0; i < place->n_pieces; i++)
        if (!strcmp(place->pieces[i].var, var))
            fl_push(found, &place->pieces[i]);
    if (found->n)
        qsort(found->at, (size_t)found->n, sizeof *found->at, by_first);
    for (int64_t i = 0; i < found->n; i++)
        if (!n || found->at[i]->first != found->at[n - 1]->first)
            found->at[n++] = found->at[i];
    found->n = n;
}

/* Write rows first .. first + n of a piece, or all of it (n < 0). */
static fl_err append_rows(const fl_saver *s, const fl_piece *k, int64_t first,
                          int64_t n)
{
    fl_tensor part = {0};
    int64_t *rows = n < 0 ? NULL : fl_mem_alloc((size_t)n * sizeof *rows);
    for (int64_t i = 0; i < n; i++)
        rows[i] = first + i;
    fl_err err = fl_trainer_lookup(
        s->trainer, NULL, 1, &(fl_lookup){k->server, k->name, n, rows, &part});
    if (!err)
        err = fl_stage_append(s->stage, part.data, fl_tensor_bytes(&part));
    fl_tensor_fini(&part);
    fl_mem_free(rows);
    return err;
}

static fl_err append_piece(const fl_saver *s, const fl_piece *k, fl_dtype dtype)
{
    const int64_t width = fl_shape_span(&k->shape, 1, k->shape.rank);
    const int64_t rows = k->shape.dim[0];
    int64_t most = SAVE_PART / (width * (int64_t)fl_dtype_size(dtype));
    most += most == 0;
    if (k->shape.rank < 2 || rows <= most)
        return append_rows(s, k, 0, -1);
    for (int64_t i = 0; i < rows; i += most)
        FL_TRY(append_rows(s, k, i, rows - i < most ? rows - i : most));
    return FL_OK;
}

static fl_err append_kept(const fl_saver *s, const fl_var *v,
                          const pieces *found)
{
    fl_str head = {0};
    if (found->at[0]->first == FL_BY_ID)
        return append_table(s, v);
    fl_tensor_head(v->dtype, &v->shape, &head);
    fl_err err = fl_stage_append(s->stage, head.at, head.n);
    fl_str_fini(&head);
    for (int64_t i = 0; i < found->n && !err; i++)
        err = append_piece(s, found->at[i], v->dtype);
    return err;
}

/* --- variables of the trainer itself --- */

static fl_err append_own(const fl_saver *s, const fl_var *v)
{
    fl_str bytes = {0};
    const fl_value *value = fl_scope_find(s->scope, v->name);
    if (!value || !value->kind)
        return fl_fail(FL_ENOENT,
                       "save: \"%s\" holds nothing yet, and no server keeps "
                       "it; run the startup program first",
                       v->name);
    fl_err err = fl_value_encode(value, false, &bytes);
    if (!err)
        err = fl_stage_append(s->stage, bytes.at, bytes.n);
    fl_str_fini(&bytes);
    return err;
}

static fl_err append_var(const fl_saver *s, const fl_var *v)
{
    pieces found = {0};
    find_pieces(s->place, v->name, &found);
    const fl_err err = found.n ? append_kept(s, v, &found) : append_own(s, v);
    fl_vec_fini(&found);
    return err;
}

/* --- files --- */

static fl_err save_file(const fl_saver *s, const char *name, int64_t n,
                        const fl_var *const *var)
{
    FL_TRY(fl_stage_open(s->stage, name));
    for (int64_t i = 0; i < n; i++)
        FL_TRY(append_var(s, var[i]));
    return fl_stage_close(s->stage);
}

fl_err fl_saver_save(const fl_saver *s, const fl_program *p, const char *file,
                     int n, const char *const *names)
{
    fl_vars list = {0};
    fl_err err = fl_vars_list(p, n, names, &list);
    if (!err && file)
        err = save_file(s, file, list.n, list.at);
    for (int64_t i = 0; i < list.n && !file && !err; i++)
        err = save_file(s, list.at[i]->name, 1, &list.at[i]);
    fl_vec_fini(&list);
    return err;
}

fl_err fl_placement_origin(const fl_placement *place, const fl_registry *r,
                           fl_program **out)
{
    return fl_program_decode(r, "the program that was cut", place->origin,
                             place->origin_size, out);
}
