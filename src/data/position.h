/* SPDX-License-Identifier: Apache-2.0 */
/* position.h - which examples of a pass are used up.
 *
 * A pass has parts: files, or batches in memory. A position does not depend on
 * how many readers share the pass. As text:
 *
 *     3 5:10240:97 7:all    used: parts 0 to 2; the first 10240 bytes of part
 * 5, which are 97 lines; all of part 7 */
#ifndef FL_DATA_POSITION_H
#define FL_DATA_POSITION_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    FL_USED_ALL = -1 /* bytes of a part that is used up */
};

/* How much of a part is used. */
typedef struct fl_used {
    int64_t part;
    int64_t bytes; /* bytes of its unpacked text; or FL_USED_ALL */
    int64_t lines;
} fl_used;

typedef FL_VEC(fl_used) fl_uses;

void fl_uses_copy(fl_uses *to, const fl_uses *from);

static inline void fl_uses_swap(fl_uses *a, fl_uses *b)
{
    const fl_uses c = *a;
    *a = *b;
    *b = c;
}

/* Zero: nothing is used. */
typedef struct fl_position {
    int64_t first; /* all parts below this one are used up */
    fl_uses uses; /* uses of parts from `first` on; sorted, one for each part */
} fl_position;

void fl_position_fini(fl_position *p);
void fl_position_copy(fl_position *to,
                      const fl_position *from); /* frees what `to` had */

/* Note that more of a part is used. */
void fl_position_add(fl_position *p, fl_used use);

/* How much of a part is used; its bytes are 0 if nothing is. */
fl_used fl_position_find(const fl_position *p, int64_t part);

void fl_position_text(const fl_position *p, fl_str *to);

/* Err: EPROTO: the text is no position. *p is then zero. */
fl_err fl_position_read(fl_position *p, const char *text) FL_MUST_CHECK;

#endif
