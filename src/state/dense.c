/* SPDX-License-Identifier: Apache-2.0 */
/* dense.c - a catalogue in text, and one mapping for all variables.
 *
 *     dense   slot 0 of each variable, in order; then slot 1 of each, of which
 *             only those that were asked for have room
 *     slots   a word for each variable: which slot counts, and whether slot 1
 *             has room */
#include "state/dense.h"

#include "base/atomic.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

#include <pthread.h>
#include <string.h>

enum {
    LINE = 64 /* bytes; memory of a variable begins at a multiple */
};

/* Bits of the word of a variable. */
enum {
    SLOT = 1, /* the number of the slot that counts */
    ROOM = 2  /* slot 1 has room */
};

typedef struct variable {
    size_t offset, bytes;
} variable;

struct fl_dense {
    fl_str catalogue;
    FL_VEC(variable) at;
    size_t bytes; /* of one slot of all */
    fl_mapping *map, *slots;
    pthread_mutex_t lock; /* of the size of `map` */
};

fl_dense *fl_dense_new(void)
{
    fl_dense *d = fl_mem_alloc(sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
    return d;
}

void fl_dense_free(fl_dense *d)
{
    if (!d)
        return;
    fl_mapping_unref(d->map);
    fl_mapping_unref(d->slots);
    fl_str_fini(&d->catalogue);
    fl_vec_fini(&d->at);
    pthread_mutex_destroy(&d->lock);
    fl_mem_free(d);
}

int64_t fl_dense_add(fl_dense *d, const char *about, size_t bytes)
{
    fl_str_printf(&d->catalogue, "%s at %zu, %zu bytes\n", about, d->bytes,
                  bytes);
    fl_push(&d->at, ((variable){d->bytes, bytes}));
    d->bytes += (bytes + LINE - 1) / LINE * LINE;
    return d->at.n - 1;
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
    d->bytes = d->bytes ? d->bytes : LINE;
    FL_TRY(fl_statedir_map(
        dir, "slots", (size_t)(d->at.n + 1) * sizeof(uint64_t), 0, &d->slots));
    return fl_statedir_map(dir, "dense", d->bytes, 2 * d->bytes, &d->map);
}

/* --- slots --- */

static uint64_t *word_of(const fl_dense *d, int64_t number)
{
    return (uint64_t *)fl_mapping_at(d->slots) + number;
}

static size_t offset_of(const fl_dense *d, int64_t number, uint64_t slot)
{
    return d->at.at[number].offset + (slot ? d->bytes : 0);
}

static void *slot_at(const fl_dense *d, int64_t number, uint64_t slot)
{
    return (char *)fl_mapping_at(d->map) + offset_of(d, number, slot);
}

void *fl_dense_at(const fl_dense *d, int64_t number)
{
    return slot_at(d, number, fl_word_get(word_of(d, number)) & SLOT);
}

fl_err fl_dense_other(fl_dense *d, int64_t number, void **at)
{
    uint64_t *word = word_of(d, number);
    const uint64_t now = fl_word_get(word);
    *at = slot_at(d, number, ~now & SLOT);
    if (now & ROOM)
        return FL_OK;
    const size_t from = offset_of(d, number, 1);
    pthread_mutex_lock(&d->lock);
    const fl_err err =
        fl_mapping_extend(d->map, from, from + d->at.at[number].bytes);
    pthread_mutex_unlock(&d->lock);
    if (!err)
        fl_word_set(word, now | ROOM);
    return err;
}

void *fl_dense_flip(fl_dense *d, int64_t number)
{
    uint64_t *word = word_of(d, number);
    const uint64_t now = fl_word_get(word);
    void *to = slot_at(d, number, ~now & SLOT);
    memcpy(to, slot_at(d, number, now & SLOT), d->at.at[number].bytes);
    fl_failpoint_hit("slot.copied");
    fl_word_set(word, now ^ SLOT);
    fl_failpoint_hit("slot.flip");
    return to;
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
