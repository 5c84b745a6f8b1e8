/* SPDX-License-Identifier: Apache-2.0 */
/* directory.c - entries of a table's extents, and the change that is under way.
 *
 * An entry is the number of an extent, then 8 bits for the depth of its
 * segment; 0: there is none. A change that was written down and is not finished
 * is carried out again after a restart. */
#include "table/directory.h"

#include "base/atomic.h"
#include "base/failpoint.h"
#include "base/mem.h"

#include <stdio.h>

/* The file. */
typedef struct directory_file {
    fl_directory_layout layout;
    uint64_t redo_live;    /* 1: the change below is under way */
    uint64_t first, slots; /* entries that change; the second half of them gets
                              to[1] */
    uint64_t to[2];
    uint64_t entry[FL_DIRECTORY_SLOTS];
} directory_file;

struct fl_directory {
    fl_mapping *map;
    directory_file *file;
};

static uint64_t encode_entry(fl_directory_entry e)
{
    return (uint64_t)e.extent << 8 | (uint64_t)e.depth;
}

static void carry_out_change(directory_file *f)
{
    for (uint64_t i = 0; i < f->slots; i++)
        f->entry[f->first + i] = f->to[i >= f->slots / 2];
    fl_store_order();
}

fl_err fl_directory_damaged(const fl_directory *d, const char *what)
{
    return fl_fail(FL_EINVAL, "%s is damaged: %s", fl_mapping_path(d->map),
                   what);
}

static fl_err check_found(fl_directory *d, const fl_directory_layout *layout)
{
    directory_file *f = d->file;
    if (f->layout.stride != layout->stride ||
        f->layout.bucket_bytes != layout->bucket_bytes ||
        f->layout.key != layout->key)
        return fl_directory_damaged(d, "its rows have another layout");
    if (!fl_word_get(&f->redo_live))
        return FL_OK;
    if (f->first >= FL_DIRECTORY_SLOTS ||
        f->slots > FL_DIRECTORY_SLOTS - f->first)
        return fl_directory_damaged(d, "a change names no entries");
    carry_out_change(f);
    fl_word_set(&f->redo_live, 0);
    return FL_OK;
}

fl_err fl_directory_open(fl_statedir *dir, int number,
                         const fl_directory_layout *layout, fl_directory **out)
{
    char name[32];
    fl_mapping *map;
    snprintf(name, sizeof name, "table-%d", number);
    FL_TRY(fl_statedir_map(dir, name, sizeof(directory_file), 0, &map));
    fl_directory *d = fl_mem_alloc(sizeof *d);
    *d = (fl_directory){map, fl_mapping_at(map)};
    if (!fl_statedir_found(dir))
        d->file->layout = *layout;
    const fl_err err = check_found(d, layout);
    if (err) {
        fl_directory_free(d);
        return err;
    }
    *out = d;
    return FL_OK;
}

void fl_directory_free(fl_directory *d)
{
    if (d)
        fl_mapping_unref(d->map);
    fl_mem_free(d);
}

bool fl_directory_get(const fl_directory *d, int slot, fl_directory_entry *out)
{
    const uint64_t entry = d->file->entry[slot];
    *out = (fl_directory_entry){(uint32_t)(entry >> 8), entry & 255};
    return d->file->entry[0];
}

/* One entry is one store; more are written down before they are made. */
void fl_directory_set(fl_directory *d, int first, int slots,
                      const fl_directory_entry to[2])
{
    directory_file *f = d->file;
    fl_failpoint_hit("table.shelf");
    fl_store_order();
    if (slots == 1) {
        fl_word_set(&f->entry[first], encode_entry(to[0]));
        fl_failpoint_hit("table.dir");
        return;
    }
    f->first = (uint64_t)first;
    f->slots = (uint64_t)slots;
    for (int i = 0; i < 2; i++)
        f->to[i] = encode_entry(to[i]);
    fl_word_set(&f->redo_live, 1);
    fl_failpoint_hit("table.redo");
    carry_out_change(f);
    fl_failpoint_hit("table.dir");
    fl_word_set(&f->redo_live, 0);
}
