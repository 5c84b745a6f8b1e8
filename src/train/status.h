/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - shows the progress of training on stderr: a bar, lines, or JSON.
 *
 * A bar is drawn several times a second. A line is shown after one second, then
 * every five seconds, and at the end. Texts and times can be tested without the
 * training loop. */
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

/* `word` is fl_train_opts.status. Err: EINVAL if it is unknown. */
fl_err fl_status_mode_of(const char *word, bool terminal,
                         fl_status_mode *out) FL_MUST_CHECK;

/* Thread: one at a time. */
typedef struct fl_status {
    fl_status_mode mode;
    int fd;
    int64_t due; /* when to show the next one, ns since the start */
    bool drawn;  /* the last line on the terminal is a bar */
} fl_status;

void fl_status_init(fl_status *s, fl_status_mode mode, int fd);
/* Whether something is to be shown now, `ns` after the start. */
bool fl_status_due(const fl_status *s, int64_t ns);
void fl_status_show(fl_status *s, const fl_progress *p, int64_t ns);
void fl_status_clear(fl_status *s); /* erase the bar before other text */

/* Append a line without its line feed, or a bar of `columns` columns. */
void fl_status_text(fl_str *out, const fl_progress *p);
void fl_status_json(fl_str *out, const fl_progress *p);
void fl_status_bar(fl_str *out, const fl_progress *p, int columns);

#endif
