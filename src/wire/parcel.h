/* SPDX-License-Identifier: Apache-2.0 */
/* parcel.h - the named tensors of one message between a trainer and a server.
 *
 * The protocol carries a parcel as a blob (fl_parcel_blob). A parcel that is
 * sent borrows the memory of its tensors. A parcel that was received borrows
 * from its packet.
 *
 *     push    items with elements: gradients, or slices of large gradients
 *     pull    bare items, which have a name and no elements; a bare item may
 *             list the rows that are wanted
 *     values  items with elements, in the order of the pull */
#ifndef FL_WIRE_PARCEL_H
#define FL_WIRE_PARCEL_H

#include "net/packet.h"
#include "protocol/message.h"
#include "tensor/value.h"

typedef struct fl_item {
    const char *name;
    fl_kind kind; /* FL_LOD_TENSOR or FL_SELECTED_ROWS; 0: a bare item */
    fl_dtype dtype;
    fl_shape shape; /* the shape of `data`. A bare item: [number of rows or
                       elements that are wanted]; rank 0: all of them */
    int64_t height; /* selected rows: the number of rows of the variable. A bare
                       item: the limit of fl_parcel_want_ids, else 0 */
    int64_t first;  /* index of the first element, of a slice or of a wanted
                       range */
    fl_bytes rows;  /* the indices of selected or wanted rows, int64 each */
    fl_bytes data;  /* the elements; a bare item has none */
} fl_item;

/* Thread: one thread fills a parcel; afterwards any thread may read it. */
typedef struct fl_parcel {
    int n;
    const fl_item *item;
    size_t size; /* bytes on the wire, without the message around it */
    const char *not_finite; /* name of the first item in which fl_parcel_scan
                               found a NaN or an infinity; NULL: none */
    int64_t not_finite_at;  /* index of that element in its item */
} fl_parcel;

fl_parcel *fl_parcel_new(void); /* an empty parcel with one reference */
fl_parcel *fl_parcel_ref(fl_parcel *p);
void fl_parcel_unref(fl_parcel *p); /* p may be NULL */

/* Append a tensor without copying its elements. Own: the parcel takes a
 * reference to counted memory; the caller keeps other memory alive until the
 * parcel ends. */
void fl_parcel_add(fl_parcel *p, const char *name, const fl_tensor *t);
/* Append bytes as a tensor of uint8 in the same way. */
void fl_parcel_add_bytes(fl_parcel *p, const char *name, const void *at,
                         size_t size);
/* Append elements first .. first + n of a tensor in the same way. */
void fl_parcel_add_slice(fl_parcel *p, const char *name, const fl_tensor *t,
                         int64_t first, int64_t n);
/* Append selected rows in the same way. */
void fl_parcel_add_rows(fl_parcel *p, const char *name, const fl_rows *r);

/* Ask for n rows of a variable; n < 0: for all of it. The list of rows is
 * copied. */
void fl_parcel_want(fl_parcel *p, const char *name, int64_t n,
                    const int64_t *rows);

/* Ask for elements first .. first + n of a variable; n > 0. */
void fl_parcel_want_range(fl_parcel *p, const char *name, int64_t first,
                          int64_t n);
/* Whether the item was made by fl_parcel_want_range. */
bool fl_item_is_range(const fl_item *item);

/* Ask which rows a table has. The answer lists at most `most` ids, in the
 * table's order, from the id that follows *after (NULL: from the first id). */
void fl_parcel_want_ids(fl_parcel *p, const char *name, int64_t most,
                        const int64_t *after);

/* Append an item. Own: the name is copied, and the parcel takes references to
 * the packets that hold the item's bytes. */
void fl_parcel_add_item(fl_parcel *p, const fl_item *item);

/* Keep a packet as long as the parcel, also if no item lies in it. */
void fl_parcel_hold(fl_parcel *p, const fl_packet *packet);

/* Look for NaN and infinities in all items, and set not_finite. It reads every
 * element: call it without holding a lock. */
void fl_parcel_scan(fl_parcel *p);

/* The first item of that name; NULL: there is none. */
const fl_item *fl_parcel_find(const fl_parcel *p, const char *name);

/* The parcel as a blob of the protocol, with the size of the parcel. Own: the
 * blob holds a reference, which fl_keeper_parcels copies and drops. */
fl_blob fl_parcel_blob(fl_parcel *p);
fl_parcel *fl_parcel_of(fl_blob b); /* borrowed; NULL: the blob is empty */
extern const fl_keeper fl_keeper_parcels;

/* Copy the item into a tensor or into selected rows; *out is resized to the
 * shape of the item. Err: EINVAL if the item is of another kind. */
fl_err fl_item_tensor(const fl_item *item, fl_tensor *out) FL_MUST_CHECK;
fl_err fl_item_rows(const fl_item *item, fl_rows *out) FL_MUST_CHECK;

#endif
