/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - the last failure of each thread. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[sizeof(fl_sentence)];

static void append_text(size_t at, const char *fmt, va_list ap)
{
    if (at < sizeof sentence)
        vsnprintf(sentence + at, sizeof sentence - at, fmt, ap);
}

fl_err fl_fail(fl_err code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    append_text(0, fmt, ap);
    va_end(ap);
    return code;
}

fl_err fl_fail_at(fl_err code, const char *fmt, ...)
{
    char where[512];
    va_list ap;
    if (code == FL_EENDED || code == FL_EDONE || code == FL_EINTR)
        return code;
    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
    size_t at = strlen(sentence);
    snprintf(sentence + at, sizeof sentence - at, " (%s)", where);
    return code;
}

fl_sentence fl_sentence_keep(void)
{
    fl_sentence s;
    memcpy(s.text, sentence, sizeof s.text);
    return s;
}

void fl_sentence_restore(const fl_sentence *s)
{
    memcpy(sentence, s->text, sizeof sentence);
}

const char *fl_errmsg(void)
{
    return sentence;
}
