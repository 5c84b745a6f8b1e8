/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - error messages about bad lines. */
#include "data/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SHOWN = 60,  /* bytes of a bad line that are shown */
    BEFORE = 20, /* bytes of them before the flaw */
};

fl_err fl_flaw_set(fl_flaw *f, uint32_t at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    f->at = at;
    vsnprintf(f->rule, sizeof f->rule, fmt, ap);
    va_end(ap);
    return FL_EPROTO;
}

static void show_text(const char *p, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)p[i];
        out[i] = c == '\t' ? ' ' : c < ' ' || c == 127 ? '.' : (char)c;
    }
    out[n] = 0;
}

const char *fl_word_text(const char *p, size_t len, char out[FL_WORD_TEXT])
{
    const size_t most = FL_WORD_TEXT - 4;
    show_text(p, len > most ? most : len, out);
    if (len > most)
        memcpy(out + most, "...", 4);
    return out;
}

fl_err fl_flaw_fail(const fl_flaw *f, const char *file, int64_t number,
                    const fl_line *l)
{
    char text[SHOWN + 1];
    const uint32_t column = f->at - l->start;
    const uint32_t from = l->stop - l->start > SHOWN && column > BEFORE
                              ? f->at - BEFORE
                              : l->start;
    const size_t left = l->stop - from;
    show_text(l->text + from, left > SHOWN ? SHOWN : left, text);
    return fl_fail(FL_EPROTO, "%s:%lld:%u: %s, in \"%s%s%s\"", file,
                   (long long)number, column + 1, f->rule,
                   from > l->start ? "..." : "", text,
                   left > SHOWN ? "..." : "");
}
