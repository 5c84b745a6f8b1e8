/* SPDX-License-Identifier: Apache-2.0 */
/* parcel.c - a list of items, and references to the packets with their bytes.
 *
 * A parcel that is filled by fl_parcel_add has one packet of its own, to which
 * the memory of the tensors is lent; the bytes of each item are a range of that
 * packet. */
#include "wire/parcel.h"

#include "base/atomic.h"
#include "wire/codec.h"
#include "wire/scan.h"

enum {
    FEW = 8, /* items that fit into a small parcel */
    FEW_KEPT = 2,
    NAMES = 256, /* bytes of names that fit into a small parcel */
};

/* A parcel. The arrays of a small parcel are inside this struct, so that it is
 * one allocation. */
typedef struct parcel {
    fl_parcel seen; /* the public struct; must be the first field */
    fl_count refs;
    FL_VEC(fl_item) items;
    FL_VEC(fl_packet *) kept; /* packets with the bytes of items */
    fl_packet *own;           /* the packet of this parcel; NULL: none yet */
    fl_arena *arena;          /* names beyond those in `names`; or NULL */
    size_t names_used;        /* bytes of `names` */
    fl_item few_items[FEW];
    fl_packet *few_kept[FEW_KEPT];
    char names[NAMES];
} parcel;

fl_parcel *fl_parcel_new(void)
{
    parcel *p = fl_mem_alloc(sizeof *p);
    fl_count_init(&p->refs, 1);
    p->items.at = p->few_items;
    p->items.cap = FEW;
    p->kept.at = p->few_kept;
    p->kept.cap = FEW_KEPT;
    return &p->seen;
}

fl_parcel *fl_parcel_ref(fl_parcel *p)
{
    fl_count_up(&((parcel *)p)->refs);
    return p;
}

void fl_parcel_unref(fl_parcel *seen)
{
    parcel *p = (parcel *)seen;
    if (!p || fl_count_down(&p->refs))
        return;
    for (int64_t i = 0; i < p->kept.n; i++)
        fl_packet_unref(p->kept.at[i]);
    fl_packet_unref(p->own);
    fl_vec_free_grown(p->kept.at, p->few_kept);
    fl_vec_free_grown(p->items.at, p->few_items);
    fl_arena_free(p->arena);
    fl_mem_free(p);
}

/* --- filling --- */

static void keep_packet(parcel *p, const fl_packet *of)
{
    const int64_t n = p->kept.n;
    if (!of || of == p->own || (n && p->kept.at[n - 1] == of))
        return;
    fl_vec_grow_from((void **)&p->kept.at, p->few_kept, n, &p->kept.cap, n + 1,
                     sizeof *p->kept.at);
    fl_push(&p->kept, fl_packet_ref((fl_packet *)of));
}

static const char *keep_name(parcel *p, const char *name)
{
    const size_t size = strlen(name) + 1;
    if (size <= sizeof p->names - p->names_used) {
        char *at = p->names + p->names_used;
        p->names_used += size;
        return memcpy(at, name, size);
    }
    if (!p->arena)
        p->arena = fl_arena_new();
    return fl_arena_strdup(p->arena, name);
}

void fl_parcel_hold(fl_parcel *p, const fl_packet *packet)
{
    keep_packet((parcel *)p, packet);
}

void fl_parcel_add_item(fl_parcel *seen, const fl_item *item)
{
    parcel *p = (parcel *)seen;
    keep_packet(p, item->rows.of);
    keep_packet(p, item->data.of);
    fl_item copy = *item;
    copy.name = keep_name(p, item->name);
    fl_vec_grow_from((void **)&p->items.at, p->few_items, p->items.n,
                     &p->items.cap, p->items.n + 1, sizeof *p->items.at);
    fl_push(&p->items, copy);
    seen->item = p->items.at;
    seen->n = (int)p->items.n;
    seen->size += fl_item_size(&copy);
}

static fl_packet *own_packet(fl_parcel *seen)
{
    parcel *p = (parcel *)seen;
    if (!p->own)
        p->own = fl_packet_new();
    return p->own;
}

static void drop_buf(void *buf)
{
    fl_buf_unref(buf);
}

/* Lend `size` bytes of the tensor's memory, from byte `from` on. */
static fl_bytes lend_tensor(fl_parcel *p, const fl_tensor *t, size_t from,
                            size_t size)
{
    fl_packet *own = own_packet(p);
    fl_bytes b = {own, fl_packet_size(own), size};
    if (size && t->buf)
        fl_packet_lend(own, (char *)t->data + from, size, drop_buf,
                       fl_buf_ref(t->buf));
    else if (size)
        fl_packet_lend(own, (char *)t->data + from, size, NULL, NULL);
    return b;
}

void fl_parcel_add(fl_parcel *p, const char *name, const fl_tensor *t)
{
    fl_parcel_add_item(p, &(fl_item){
                              .name = name,
                              .kind = FL_LOD_TENSOR,
                              .dtype = t->dtype,
                              .shape = t->shape,
                              .data = lend_tensor(p, t, 0, fl_tensor_bytes(t)),
                          });
}

void fl_parcel_add_bytes(fl_parcel *p, const char *name, const void *at,
                         size_t size)
{
    const int64_t n = (int64_t)size;
    const fl_shape shape = fl_shape_of(1, &n);
    const fl_tensor t = fl_tensor_view(FL_U8, &shape, at);
    fl_parcel_add(p, name, &t);
}

void fl_parcel_add_slice(fl_parcel *p, const char *name, const fl_tensor *t,
                         int64_t first, int64_t n)
{
    const size_t one = fl_dtype_size(t->dtype);
    fl_parcel_add_item(
        p, &(fl_item){
               .name = name,
               .kind = FL_LOD_TENSOR,
               .dtype = t->dtype,
               .shape = fl_shape_of(1, &n),
               .first = first,
               .data = lend_tensor(p, t, (size_t)first * one, (size_t)n * one),
           });
}

void fl_parcel_add_rows(fl_parcel *p, const char *name, const fl_rows *r)
{
    fl_item item = {
        .name = name,
        .kind = FL_SELECTED_ROWS,
        .dtype = r->value.dtype,
        .shape = r->value.shape,
        .height = r->height,
    };
    item.shape.dim[0] = r->n; /* the tensor may have room for more rows */
    item.rows = lend_tensor(p, &r->index, 0, (size_t)r->n * sizeof(int64_t));
    item.data = lend_tensor(p, &r->value, 0,
                            (size_t)fl_shape_numel(&item.shape) *
                                fl_dtype_size(item.dtype));
    fl_parcel_add_item(p, &item);
}

static void want_rows(fl_parcel *p, const char *name, int64_t n,
                      const int64_t *rows, int64_t height)
{
    fl_item item = {.name = name, .height = height};
    if (n >= 0) {
        fl_packet *own = own_packet(p);
        const size_t size = (size_t)n * sizeof *rows;
        item.shape = fl_shape_of(1, &n);
        item.rows = (fl_bytes){own, fl_packet_size(own), size};
        fl_packet_copy(own, rows, size);
    }
    fl_parcel_add_item(p, &item);
}

void fl_parcel_want(fl_parcel *p, const char *name, int64_t n,
                    const int64_t *rows)
{
    want_rows(p, name, n, rows, 0);
}

void fl_parcel_want_range(fl_parcel *p, const char *name, int64_t first,
                          int64_t n)
{
    fl_parcel_add_item(
        p, &(fl_item){.name = name, .shape = {1, {n}}, .first = first});
}

bool fl_item_is_range(const fl_item *item)
{
    return !item->kind && item->shape.rank == 1 && item->shape.dim[0] > 0 &&
           !item->rows.size && !item->height;
}

void fl_parcel_want_ids(fl_parcel *p, const char *name, int64_t most,
                        const int64_t *after)
{
    want_rows(p, name, after ? 1 : 0, after, most);
}

const fl_item *fl_parcel_find(const fl_parcel *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->item[i].name, name))
            return &p->item[i];
    return NULL;
}

void fl_parcel_scan(fl_parcel *p)
{
    p->not_finite = NULL;
    for (int i = 0; i < p->n && !p->not_finite; i++) {
        const fl_item *item = &p->item[i];
        const int64_t bad = fl_scan(item->data, item->dtype);
        if (bad >= 0) {
            p->not_finite = item->name;
            p->not_finite_at = item->first + bad;
        }
    }
}

/* --- blobs --- */

fl_blob fl_parcel_blob(fl_parcel *p)
{
    return (fl_blob){.size = p->size, .owner = fl_parcel_ref(p)};
}

fl_parcel *fl_parcel_of(fl_blob b)
{
    return b.owner;
}

static fl_blob keep_parcel(void *self, fl_blob b)
{
    if (b.owner)
        fl_parcel_ref(b.owner);
    return b;
}

static void drop_parcel(void *self, fl_blob b)
{
    fl_parcel_unref(b.owner);
}

const fl_keeper fl_keeper_parcels = {NULL, keep_parcel, drop_parcel};

/* --- copies --- */

fl_err fl_item_tensor(const fl_item *item, fl_tensor *out)
{
    if (item->kind != FL_LOD_TENSOR)
        return fl_fail(FL_EINVAL, "%s: %s came where a tensor was expected",
                       item->name, item->kind ? "selected rows" : "a name");
    FL_TRY(fl_tensor_resize(out, item->dtype, &item->shape));
    fl_bytes_copy(item->data, 0, out->data, item->data.size);
    return FL_OK;
}

fl_err fl_item_rows(const fl_item *item, fl_rows *out)
{
    if (item->kind != FL_SELECTED_ROWS)
        return fl_fail(FL_EINVAL, "%s: %s came where rows were expected",
                       item->name, item->kind ? "a tensor" : "a name");
    fl_shape whole = item->shape;
    const int64_t n = whole.dim[0];
    whole.dim[0] = item->height;
    FL_TRY(fl_rows_resize(out, item->dtype, &whole, n));
    fl_bytes_copy(item->rows, 0, out->index.data, item->rows.size);
    fl_bytes_copy(item->data, 0, out->value.data, item->data.size);
    return FL_OK;
}
