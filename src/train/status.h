/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - how far training is, on stderr: a bar, lines, or JSON.
 *
 * A bar is drawn several times a second; a line comes after a second and then
 * every five; the last one always. Text and time are apart from the loop, so
 * that tests can look at both. */
#ifndef FL_TRAIN_STATUS_H
#define FL_TRAIN_STATUS_H

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"

typedef enum fl_status_mode {
    FL_STATUS_OFF,
    FL_STATUS_LINES,
    FL_STATUS_JSON,
    FL_STATUS_BAR,
} fl_status_mode;

/* word as in fl_train_opts.status. EINVAL: there is no such. */
fl_err fl_status_mode_of(const char *word, bool terminal,
                         fl_status_mode *out) FL_MUST_CHECK;

/* Thread: one at a time. */
typedef struct fl_status {
    fl_status_mode mode;
    int fd;
    int64_t due; /* ns since the start, when something is to be shown */
    bool drawn;  /* a bar stands in the last line */
} fl_status;

void fl_status_init(fl_status *s, fl_status_mode mode, int fd);
/* Is it time, so many nanoseconds after the start? */
bool fl_status_due(const fl_status *s, int64_t ns);
void fl_status_show(fl_status *s, const fl_progress *p, int64_t ns);
void fl_status_clear(fl_status *s); /* the bar makes room for other text */

/* One line without its end; a bar that is `columns` wide. */
void fl_status_text(fl_str *out, const fl_progress *p);
void fl_status_json(fl_str *out, const fl_progress *p);
void fl_status_bar(fl_str *out, const fl_progress *p, int columns);

#endif
