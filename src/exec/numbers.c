/* SPDX-License-Identifier: Apache-2.0 */
/* numbers.c - values sorted by address; a value's number is its position. */
#include "exec/numbers.h"

#include <stdlib.h>

void fl_numbers_add(fl_numbers *m, fl_value *v)
{
    if (v)
        fl_push(&m->values, v);
}

static void add_args(fl_numbers *m, fl_value **const *args, const int *n)
{
    for (int s = 0; s < FL_SLOTS; s++)
        for (int i = 0; i < n[s]; i++)
            fl_numbers_add(m, args[s][i]);
}

void fl_numbers_add_call(fl_numbers *m, const fl_call *c)
{
    add_args(m, c->in, c->n_in);
    add_args(m, c->out, c->n_out);
}

static int by_address(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return (x > y) - (x < y);
}

void fl_numbers_sort(fl_numbers *m)
{
    int64_t n = 0;
    if (m->values.n)
        qsort(m->values.at, (size_t)m->values.n, sizeof *m->values.at,
              by_address);
    for (int64_t i = 0; i < m->values.n; i++)
        if (!n || m->values.at[i] != m->values.at[n - 1])
            m->values.at[n++] = m->values.at[i];
    m->values.n = n;
}

void fl_numbers_fini(fl_numbers *m)
{
    fl_vec_fini(&m->values);
}

int64_t fl_numbers_find(const fl_numbers *m, const fl_value *v)
{
    fl_value **at = m->values.n && v
                        ? bsearch(&v, m->values.at, (size_t)m->values.n,
                                  sizeof *m->values.at, by_address)
                        : NULL;
    return at ? at - m->values.at : -1;
}
