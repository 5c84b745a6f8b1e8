/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - the texts of the progress, and when they are shown. */
#include "train/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SEC INT64_C(1000000000)

static const int64_t first_line = SEC, more_lines = 5 * SEC, redraw = SEC / 5;

enum {
    BAR = 24,      /* cells of the bar, if there is room */
    FIGURES = 84,  /* columns for the numbers before the bar */
    COLUMNS = 100, /* width of a terminal if it is not known */
};

fl_err fl_status_mode_of(const char *word, bool terminal, fl_status_mode *out)
{
    static const char *const words[] = {"off", "lines", "json", "bar"};
    if (!word || !*word) {
        *out = terminal ? FL_STATUS_BAR : FL_STATUS_LINES;
        return FL_OK;
    }
    for (int i = 0; i < 4; i++)
        if (!strcmp(word, words[i])) {
            *out = (fl_status_mode)i;
            return FL_OK;
        }
    return fl_fail(FL_EINVAL,
                   "status (FLUID_STATUS) is \"%s\", expected off, lines, json "
                   "or bar",
                   word);
}

/* --- text --- */

/* 1,234,567 */
static void add_count(fl_str *out, int64_t n)
{
    char digits[24];
    const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            fl_str_add(out, ",");
        fl_str_bytes(out, &digits[i], 1);
    }
}

static void add_time(fl_str *out, double seconds)
{
    const long long s = llround(seconds);
    if (s < 60)
        fl_str_printf(out, "%llds", s);
    else if (s < 3600)
        fl_str_printf(out, "%lldm%02llds", s / 60, s % 60);
    else
        fl_str_printf(out, "%lldh%02lldm", s / 3600, s % 3600 / 60);
}

static void add_epoch(fl_str *out, const fl_progress *p)
{
    if (p->epoch)
        fl_str_printf(out, "epoch %d  ", p->epoch);
}

static void add_figures(fl_str *out, const fl_progress *p)
{
    add_count(out, p->examples);
    fl_str_add(out, " examples");
    if (p->done) {
        fl_str_add(out, p->stopped ? ", then asked to stop," : "");
        fl_str_printf(out, " in %.1f s", p->seconds);
    }
    fl_str_add(out, "  ");
    add_count(out, llround(p->rate));
    fl_str_add(out, "/s");
    if (!isnan(p->loss))
        fl_str_printf(out, "  loss %.5g", p->loss);
    if (isnan(p->auc)) /* no trainer has counted an example yet */
        return;
    fl_str_printf(out, "  auc %.4f", p->auc);
    if (p->auc_trainers > 1)
        fl_str_printf(out, " (%d trainers)", p->auc_trainers);
}

static void add_shares(fl_str *out, const fl_progress *p)
{
    fl_str_printf(out, "  reading %.0f%% computing %.0f%% waiting %.0f%%",
                  100 * p->reading, 100 * p->computing, 100 * p->waiting);
    if (p->threads > 1)
        fl_str_printf(out, " of %d threads", p->threads);
    if (p->bad_lines) {
        fl_str_add(out, "  ");
        add_count(out, p->bad_lines);
        fl_str_add(out, " bad lines");
    }
}

static void add_left(fl_str *out, const fl_progress *p)
{
    if (p->done || isnan(p->eta))
        return;
    fl_str_add(out, "  ");
    add_time(out, p->eta);
    fl_str_add(out, " left");
}

void fl_status_text(fl_str *out, const fl_progress *p)
{
    add_epoch(out, p);
    if (!p->done && !isnan(p->fraction))
        fl_str_printf(out, "%.0f%%  ", 100 * p->fraction);
    add_figures(out, p);
    add_shares(out, p);
    add_left(out, p);
}

/* [====>     ] */
static void add_cells(fl_str *out, int n, double fraction)
{
    const int full = (int)(n * fraction);
    if (n < 1)
        return;
    fl_str_add(out, "[");
    for (int i = 0; i < n; i++)
        fl_str_add(out, i < full ? "=" : i == full ? ">" : " ");
    fl_str_add(out, "] ");
}

/* The text is cut at the width, since a bar that wraps cannot be overwritten.
 */
void fl_status_bar(fl_str *out, const fl_progress *p, int columns)
{
    const size_t start = out->n;
    const int room = columns - FIGURES;
    add_epoch(out, p);
    if (!isnan(p->fraction)) {
        add_cells(out, room < BAR ? room : BAR, p->fraction);
        fl_str_printf(out, "%.0f%%  ", 100 * p->fraction);
    }
    add_figures(out, p);
    add_left(out, p);
    add_shares(out, p);
    if (out->n - start >= (size_t)columns) {
        out->n = start + (size_t)columns - 1;
        out->at[out->n] = 0;
    }
}

static void add_number(fl_str *out, const char *name, double x)
{
    if (isfinite(x))
        fl_str_printf(out, ", \"%s\": %.6g", name, x);
    else
        fl_str_printf(out, ", \"%s\": null", name);
}

void fl_status_json(fl_str *out, const fl_progress *p)
{
    fl_str_printf(out,
                  "{\"epoch\": %d, \"threads\": %d, \"examples\": %lld, "
                  "\"batches\": %lld, \"bad_lines\": %lld",
                  p->epoch, p->threads, (long long)p->examples,
                  (long long)p->batches, (long long)p->bad_lines);
    add_number(out, "seconds", p->seconds);
    add_number(out, "rate", p->rate);
    add_number(out, "fraction", p->fraction);
    add_number(out, "eta", p->eta);
    add_number(out, "loss", p->loss);
    add_number(out, "auc", p->auc);
    fl_str_printf(out, ", \"auc_trainers\": %d", p->auc_trainers);
    add_number(out, "reading", p->reading);
    add_number(out, "computing", p->computing);
    add_number(out, "waiting", p->waiting);
    fl_str_printf(out, ", \"done\": %s, \"stopped\": %s}",
                  p->done ? "true" : "false", p->stopped ? "true" : "false");
}

/* --- when and where --- */

void fl_status_init(fl_status *s, fl_status_mode mode, int fd)
{
    *s = (fl_status){.mode = mode,
                     .fd = fd,
                     .due = mode == FL_STATUS_BAR ? redraw : first_line};
}

bool fl_status_due(const fl_status *s, int64_t ns)
{
    return s->mode && ns >= s->due;
}

/* Write the line with one call, so that lines of several processes do not mix.
 * Errors of stderr are ignored. */
static void put_line(const fl_status *s, const fl_str *text)
{
    if (write(s->fd, text->at, text->n) < 0)
        return;
}

static int columns_of(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) || !size.ws_col ? COLUMNS : size.ws_col;
}

#define CLEAR_LINE "\r\033[K"

void fl_status_clear(fl_status *s)
{
    if (s->drawn)
        put_line(s, &(fl_str){.at = CLEAR_LINE, .n = strlen(CLEAR_LINE)});
    s->drawn = false;
}

void fl_status_show(fl_status *s, const fl_progress *p, int64_t ns)
{
    fl_str out = {0};
    if (!s->mode)
        return;
    fl_status_clear(s);
    s->due = ns + (s->mode == FL_STATUS_BAR ? redraw : more_lines);
    if (s->mode == FL_STATUS_JSON)
        fl_status_json(&out, p);
    else if (s->mode == FL_STATUS_BAR && !p->done)
        fl_status_bar(&out, p, columns_of(s->fd));
    else
        fl_status_text(&out, p);
    s->drawn = s->mode == FL_STATUS_BAR && !p->done;
    if (!s->drawn)
        fl_str_add(&out, "\n");
    put_line(s, &out);
    fl_str_fini(&out);
}
