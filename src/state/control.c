/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - two copies and a selector.
 *
 *     control-0   selector  copy 0: sizes, checksum, bytes
 *     control-1   (unused)  copy 1 */
#include "state/control.h"

#include "base/atomic.h"
#include "base/crc.h"
#include "base/failpoint.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

enum {
    STEP = 64 << 10,   /* bytes by which the file of a copy grows */
    RESERVE = 1 << 30, /* bytes of a copy at most */
    ZERO_SELECTED = 1  /* selector: copy 0; 0: none; 2: copy 1 */
};

typedef struct copy {
    uint64_t selector; /* of the first copy alone */
    uint64_t n[FL_CONTROL_PARTS];
    uint32_t crc, unused;
    char bytes[];
} copy;

struct fl_control {
    fl_mapping *map[2];
    size_t last; /* bytes of the images that were saved or loaded last */
};

static copy *copy_at(const fl_control *c, int i)
{
    return fl_mapping_at(c->map[i]);
}

static uint32_t sum_of(const copy *k)
{
    const uint32_t sizes = fl_crc32c(0, k->n, sizeof k->n);
    return fl_crc32c(sizes, k->bytes, k->n[0] + k->n[1]);
}

/* The size of a copy's file that has room for images of n bytes. */
static size_t size_for(size_t n)
{
    return (sizeof(copy) + n + STEP - 1) / STEP * STEP;
}

fl_err fl_control_new(fl_statedir *d, size_t expected, fl_control **out)
{
    fl_control *c = fl_mem_alloc(sizeof *c);
    const size_t size = fl_statedir_found(d) ? STEP : size_for(expected);
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "control-%d", i);
        const fl_err err = fl_statedir_map(d, name, size, RESERVE, &c->map[i]);
        if (err) {
            fl_control_free(c);
            return err;
        }
    }
    *out = c;
    return FL_OK;
}

void fl_control_free(fl_control *c)
{
    if (!c)
        return;
    for (int i = 0; i < 2; i++)
        fl_mapping_unref(c->map[i]);
    fl_mem_free(c);
}

fl_err fl_control_reserve(fl_control *c, size_t more)
{
    for (int i = 0; i < 2; i++)
        FL_TRY(fl_mapping_grow(c->map[i], size_for(c->last + more)));
    return FL_OK;
}

fl_err fl_control_save(fl_control *c, const fl_control_image *image)
{
    uint64_t *selector = &copy_at(c, 0)->selector;
    const int to = fl_word_get(selector) == ZERO_SELECTED;
    const size_t n = image->n[0] + image->n[1];
    FL_TRY(fl_mapping_grow(c->map[to], size_for(n)));
    copy *k = copy_at(c, to);
    c->last = n;
    char *at = k->bytes;
    for (int i = 0; i < FL_CONTROL_PARTS; at += image->n[i++]) {
        k->n[i] = image->n[i];
        if (image->n[i])
            memcpy(at, image->at[i], image->n[i]);
    }
    k->crc = sum_of(k);
    fl_failpoint_hit("image.written");
    fl_word_set(selector, (uint64_t)(ZERO_SELECTED + to));
    fl_failpoint_hit("image.selected");
    return FL_OK;
}

fl_err fl_control_load(fl_control *c, fl_control_image *out)
{
    const uint64_t selected = fl_word_get(&copy_at(c, 0)->selector);
    *out = (fl_control_image){0};
    if (!selected)
        return FL_OK;
    const int from = selected == ZERO_SELECTED ? 0 : 1;
    const copy *k = copy_at(c, from);
    const size_t room = fl_mapping_size(c->map[from]) - sizeof *k;
    if (k->n[0] > room || k->n[1] > room - k->n[0] || sum_of(k) != k->crc)
        return fl_fail(FL_EINVAL,
                       "%s is damaged: the checksum of its %llu bytes is wrong",
                       fl_mapping_path(c->map[from]),
                       (unsigned long long)(k->n[0] + k->n[1]));
    const char *at = k->bytes;
    c->last = k->n[0] + k->n[1];
    for (int i = 0; i < FL_CONTROL_PARTS; at += k->n[i++]) {
        out->at[i] = at;
        out->n[i] = k->n[i];
    }
    return FL_OK;
}
