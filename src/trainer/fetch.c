/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c - parameters come piece by piece, large pieces row by row. */
#include "trainer/fetch.h"

#include <stdlib.h>

enum {
    FETCH_BYTES = 64 << 20 /* of an answer, about */
};

/* Rows first .. first + n of a piece; n < 0: the whole piece. */
static fl_err fetch_rows(fl_trainer *t, const fl_watch *by, const fl_piece *k,
                         int64_t first, int64_t n, char *to, size_t bytes)
{
    fl_tensor got = {0};
    int64_t *rows = n > 0 ? fl_mem_alloc((size_t)n * sizeof *rows) : NULL;
    for (int64_t i = 0; i < n; i++)
        rows[i] = first + i;
    fl_err err = fl_trainer_lookup(
        t, by, 1, &(fl_lookup){k->server, k->name, n, rows, &got, 0});
    if (!err && fl_tensor_bytes(&got) != bytes)
        err = fl_fail(
            FL_EPROTO,
            "fetch: server %d has sent %zu bytes for \"%s\", expected %zu",
            k->server, fl_tensor_bytes(&got), k->name, bytes);
    if (!err)
        memcpy(to, got.data, bytes);
    fl_tensor_fini(&got);
    fl_mem_free(rows);
    return err;
}

static fl_err fetch_piece(fl_trainer *t, const fl_watch *by, const fl_piece *k,
                          fl_tensor *whole)
{
    const size_t one = fl_dtype_size(whole->dtype);
    const int64_t rows = k->shape.dim[0];
    const size_t row = one * (size_t)fl_shape_span(&k->shape, 1, k->shape.rank);
    const size_t all = row * (size_t)rows;
    char *to = (char *)whole->data + (size_t)k->first * one;
    if (all <= FETCH_BYTES)
        return fetch_rows(t, by, k, 0, -1, to, all);
    const int64_t most = (int64_t)(FETCH_BYTES / row) + 1;
    for (int64_t at = 0, n; at < rows; at += n) {
        n = rows - at < most ? rows - at : most;
        FL_TRY(fetch_rows(t, by, k, at, n, to + (size_t)at * row,
                          (size_t)n * row));
    }
    return FL_OK;
}

fl_err fl_fetch_params(fl_trainer *t, const fl_watch *by, const fl_program *p,
                       fl_scope *scope)
{
    const fl_placement *place = fl_trainer_placement(t);
    const fl_block *b = fl_program_block(p, 0);
    for (int i = 0; i < place->n_pieces; i++) {
        const fl_piece *k = &place->pieces[i];
        const fl_var *v = fl_block_var(b, k->var);
        if (!v || !v->param || k->first == FL_BY_ID || k->shape.rank < 1)
            continue;
        fl_value *x = fl_scope_var(scope, k->var);
        if (x->kind != FL_LOD_TENSOR || !x->tensor.data ||
            !fl_shape_equal(&x->tensor.shape, &v->shape)) {
            x->kind = FL_LOD_TENSOR;
            FL_TRY(fl_tensor_resize(&x->tensor, v->dtype, &v->shape));
        }
        FL_TRY(fl_tensor_unique(&x->tensor));
        FL_TRY(fetch_piece(t, by, k, &x->tensor));
    }
    return FL_OK;
}
