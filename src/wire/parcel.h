/* parcel.h - named tensors on their way between a trainer and a server.
 *
 * What a blob of the protocol is in production: its owner is a parcel. One that
 * is sent lends the memory of tensors; one that came borrows from its packet.
 *
 *     push    items with elements: gradients, or slices of large ones
 *     pull    bare items: a name, and the rows wanted where it is a table
 *     values  items with elements, in the order asked for */
#ifndef FL_WIRE_PARCEL_H
#define FL_WIRE_PARCEL_H

#include "net/packet.h"
#include "protocol/message.h"
#include "tensor/value.h"

typedef struct fl_item {
    const char *name;
    fl_kind kind; /* FL_LOD_TENSOR, FL_SELECTED_ROWS; 0: bare */
    fl_dtype dtype;
    fl_shape shape; /* shape of `data`; selected rows: [rows, ...]; bare: [how
                       many rows or elements are wanted], rank 0: all */
    int64_t height; /* selected rows: rows of the variable; bare: the limit of
                       fl_parcel_want_ids */
    int64_t first;  /* index of the first element: of a slice, or of the range
                       that is wanted */
    fl_bytes rows;  /* an int64 for each selected or wanted row */
    fl_bytes data;
} fl_item;

/* Thread: one while it is filled, any afterwards. */
typedef struct fl_parcel {
    int n;
    const fl_item *item;
    size_t size; /* bytes on the wire, without the message around it */
    /* After fl_parcel_scan: the first item with an element that is not finite,
     * and which; NULL: none is known. */
    const char *not_finite;
    int64_t not_finite_at;
} fl_parcel;

fl_parcel *fl_parcel_new(void); /* empty, one reference */
fl_parcel *fl_parcel_ref(fl_parcel *p);
void fl_parcel_unref(fl_parcel *p); /* NULL is fine */

/* Append. The tensor has memory, which is lent: a share of it is kept where it
 * is counted, and borrowed memory must stay until the parcel ends. */
void fl_parcel_add(fl_parcel *p, const char *name, const fl_tensor *t);
/* Elements first .. first + n of it. */
void fl_parcel_add_slice(fl_parcel *p, const char *name, const fl_tensor *t,
                         int64_t first, int64_t n);
void fl_parcel_add_rows(fl_parcel *p, const char *name, const fl_rows *r);
/* Ask for a variable; for rows of it (n >= 0; they are copied). */
void fl_parcel_want(fl_parcel *p, const char *name, int64_t n,
                    const int64_t *rows);

/* Ask for elements first .. first + n of a variable; n > 0. */
void fl_parcel_want_range(fl_parcel *p, const char *name, int64_t first,
                          int64_t n);
/* Does a bare item ask for such a range? */
bool fl_item_is_range(const fl_item *item);

/* Ask which rows a table has: at most so many ids, those that come behind the
 * row *after in the table's order; NULL: from the start. */
void fl_parcel_want_ids(fl_parcel *p, const char *name, int64_t most,
                        const int64_t *after);

/* Its name is copied; the packets that its bytes are of are kept. */
void fl_parcel_add_item(fl_parcel *p, const fl_item *item);

/* Look for NaN and infinities (on the thread that read it, without locks). */
void fl_parcel_scan(fl_parcel *p);

const fl_item *fl_parcel_find(const fl_parcel *p, const char *name); /* NULL */

/* A blob with a reference of its own, and what keeps and drops such blobs. Its
 * size is the parcel's, its bytes nobody sees. */
fl_blob fl_parcel_blob(fl_parcel *p);
fl_parcel *fl_parcel_of(fl_blob b); /* borrowed; NULL: an empty blob */
extern const fl_keeper fl_keeper_parcels;

/* The elements into a tensor of that shape, which is made; rows alike. */
fl_err fl_item_tensor(const fl_item *item, fl_tensor *out) FL_MUST_CHECK;
fl_err fl_item_rows(const fl_item *item, fl_rows *out) FL_MUST_CHECK;

#endif
