/* SPDX-License-Identifier: Apache-2.0 */
/* dense.c - a catalogue in text, and one mapping for all variables. */
#include "state/dense.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

#include <string.h>

enum {
    LINE = 64 /* bytes; memory of a variable begins at a multiple */
};

struct fl_dense {
    fl_str catalogue;
    FL_VEC(size_t) offset; /* of each variable */
    size_t bytes;          /* of all */
    fl_mapping *map;
};

fl_dense *fl_dense_new(void)
{
    return fl_mem_alloc(sizeof(fl_dense));
}

void fl_dense_free(fl_dense *d)
{
    if (!d)
        return;
    fl_mapping_unref(d->map);
    fl_str_fini(&d->catalogue);
    fl_vec_fini(&d->offset);
    fl_mem_free(d);
}

int64_t fl_dense_add(fl_dense *d, const char *about, size_t bytes)
{
    fl_str_printf(&d->catalogue, "%s at %zu, %zu bytes\n", about, d->bytes,
                  bytes);
    fl_push(&d->offset, d->bytes);
    d->bytes += (bytes + LINE - 1) / LINE * LINE;
    return d->offset.n - 1;
}

/* The first line in which two catalogues differ. */
static fl_err other_variables(const fl_mapping *m, const char *have,
                              const char *want)
{
    while (*have && *have == *want) {
        have++;
        want++;
    }
    return fl_fail(FL_EINVAL,
                   "%s is of other variables: it goes on with \"%.*s\", "
                   "expected \"%.*s\"; the state cannot be used by this "
                   "program",
                   fl_mapping_path(m), (int)strcspn(have, "\n"), have,
                   (int)strcspn(want, "\n"), want);
}

static fl_err check_catalogue(fl_dense *d, fl_statedir *dir)
{
    const char *want = d->catalogue.at ? d->catalogue.at : "";
    const size_t n = strlen(want) + 1;
    fl_mapping *m;
    fl_err err = FL_OK;
    FL_TRY(fl_statedir_map(dir, "catalogue", fl_statedir_found(dir) ? 1 : n, 0,
                           &m));
    char *have = fl_mapping_at(m);
    if (!fl_statedir_found(dir))
        memcpy(have, want, n);
    else if (fl_mapping_size(m) != n || memcmp(have, want, n)) {
        have[fl_mapping_size(m) - 1] = 0;
        err = other_variables(m, have, want);
    }
    fl_mapping_unref(m);
    return err;
}

fl_err fl_dense_map(fl_dense *d, fl_statedir *dir)
{
    FL_TRY(check_catalogue(d, dir));
    return fl_statedir_map(dir, "dense", d->bytes ? d->bytes : LINE, 0,
                           &d->map);
}

void *fl_dense_at(const fl_dense *d, int64_t number)
{
    return (char *)fl_mapping_at(d->map) + d->offset.at[number];
}

uint64_t fl_dense_offset(const fl_dense *d, const void *at)
{
    return (uint64_t)((const char *)at - (const char *)fl_mapping_at(d->map));
}

void *fl_dense_find(const fl_dense *d, uint64_t offset, size_t bytes)
{
    const size_t size = fl_mapping_size(d->map);
    if (offset > size || bytes > size - offset)
        return NULL;
    return (char *)fl_mapping_at(d->map) + offset;
}

fl_mapping *fl_dense_mapping(const fl_dense *d)
{
    return d->map;
}
