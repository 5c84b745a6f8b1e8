/* err.c - the last failure of each thread. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char sentence[1024];

static void append(size_t at, const char *fmt, va_list ap)
{
    if (at < sizeof sentence)
        vsnprintf(sentence + at, sizeof sentence - at, fmt, ap);
}

fl_err fl_fail(fl_err code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    append(0, fmt, ap);
    va_end(ap);
    return code;
}

fl_err fl_fail_at(fl_err code, const char *fmt, ...)
{
    char where[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
    size_t at = strlen(sentence);
    snprintf(sentence + at, sizeof sentence - at, " (%s)", where);
    return code;
}

const char *fl_errmsg(void)
{
    return sentence;
}
