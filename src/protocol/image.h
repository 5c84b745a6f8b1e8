/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - the state of a machine as bytes that outlive its process.
 *
 * A machine has one function that visits every field that is kept. With an
 * image that is written the function appends the fields, with one that is read
 * it fills them: so their order is written once.
 *
 *     image := "FLIM" kind format job.hi job.lo index trainers field* crc
 *
 * Numbers have 7 bits to a byte, the lowest first. The last 4 bytes are the
 * CRC-32C of all others. A reader trusts nothing: a number has its bounds, and
 * a list is not longer than the bytes that are left. */
#ifndef FL_PROTOCOL_IMAGE_H
#define FL_PROTOCOL_IMAGE_H

#include "base/str.h"
#include "base/vec.h"
#include "protocol/message.h"
#include "protocol/window.h"

typedef enum fl_image_kind {
    FL_IMAGE_SERVER = 1,
    FL_IMAGE_COORD = 2,
    FL_IMAGE_CUT = 3, /* the state of a machine in a snapshot */
} fl_image_kind;

typedef struct fl_image {
    fl_str *to;                    /* written; NULL: the image is read */
    size_t start;                  /* written: where it begins in `to` */
    const unsigned char *at, *end; /* read: what is left */
    bool bad; /* read: it ended early, or a number was out of bounds */
} fl_image;

/* Begin to append an image of a party of that job to `to`. */
fl_image fl_image_begin(fl_str *to, fl_image_kind kind, const fl_job *job,
                        int index);
void fl_image_finish(fl_image *im); /* appends the checksum */

/* Begin to read. Err: EPROTO: the bytes are not a complete image of that kind,
 * job and party; the message says what differs. */
fl_err fl_image_open(fl_image *im, const void *bytes, size_t n,
                     fl_image_kind kind, const fl_job *job,
                     int index) FL_MUST_CHECK;

/* All fields were visited. Err: EPROTO: one of them was bad, or bytes are left.
 */
fl_err fl_image_check(const fl_image *im) FL_MUST_CHECK;

/* --- fields --- */

void fl_image_word(fl_image *im, uint64_t *word);
void fl_image_any(fl_image *im, int64_t *n); /* any value */
void fl_image_count(fl_image *im, int64_t *n, int64_t least, int64_t most);
void fl_image_int(fl_image *im, int *n, int least, int most);
void fl_image_bool(fl_image *im, bool *b);
void fl_image_id(fl_image *im, fl_id *id);
/* A text in `buf`, whose size includes the NUL. */
void fl_image_text(fl_image *im, char *buf, size_t size);
/* A text on the heap of at most size bytes, including its NUL; NULL: no text.
 */
void fl_image_string(fl_image *im, char **text, size_t size);
void fl_image_window(fl_image *im, fl_window *w);
void fl_image_leave(fl_image *im, fl_leave *l, int trainers);

/* The length of a vector, at most `most`. Read: the elements are zero. */
#define fl_image_vec(im, v, most)                                              \
    fl_image_elements((im), (void **)&(v)->at, &(v)->n, &(v)->cap,             \
                      sizeof *(v)->at, (most))
void fl_image_elements(fl_image *im, void **at, int64_t *n, int64_t *cap,
                       size_t size, int64_t most);

/* Members by rank, each rank once. Read: *at is new, on the heap. */
void fl_image_members(fl_image *im, fl_member **at, int *n, int trainers);

#endif
