/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - a buffer through which the lines of a source pass.
 *
 *     buf [ used | indexed lines | the start of a line | room | slack ]
 *                ^ from                                ^ to
 *
 * The buffer is small enough for the L2 cache; it grows for long lines. */
#include "data/text.h"

#include "base/clock.h"
#include "base/mem.h"
#include "data/number.h"

#include <string.h>

enum {
    BUFFER = 1 << 16 /* bytes */
};

void fl_text_take(fl_text *t, fl_source *s)
{
    fl_source_free(t->source);
    t->source = s;
    t->from = t->to = 0;
    t->at_end = !s;
    t->looked = true;
    t->index.n_lines = t->next = 0;
    t->tokens = t->start = 0;
    t->number = t->got = t->moved = 0;
}

fl_err fl_text_skip(fl_text *t, int64_t bytes, int64_t lines)
{
    t->got = t->moved = bytes;
    t->number = lines;
    return fl_source_skip(t->source, bytes);
}

int64_t fl_text_offset(const fl_text *t)
{
    const int64_t at = t->moved + (int64_t)t->from + t->start;
    return at < t->got ? at : t->got; /* the last line may have no newline */
}

void fl_text_fini(fl_text *t)
{
    fl_source_free(t->source);
    fl_index_fini(&t->index);
    fl_mem_free(t->buf);
    *t = (fl_text){.split = t->split};
}

static fl_err make_room(fl_text *t)
{
    if (t->from) {
        memmove(t->buf, t->buf + t->from, t->to - t->from);
        t->to -= t->from;
        t->moved += (int64_t)t->from;
        t->from = 0;
    }
    if (t->to < t->cap)
        return FL_OK;
    if (t->cap >= FL_LINE_MAX) {
        char word[FL_WORD_TEXT];
        return fl_fail(FL_EPROTO,
                       "%s:%lld:1: the line has more than %d bytes, in \"%s\"",
                       fl_source_name(t->source), (long long)t->number + 1,
                       FL_LINE_MAX, fl_word_text(t->buf, t->cap, word));
    }
    const size_t cap = t->cap ? t->cap * 2 : BUFFER;
    char *buf = fl_mem_try(cap + FL_TEXT_SLACK);
    if (!buf)
        return fl_fail(FL_ENOMEM, "%s: no memory for a line of %zu bytes",
                       fl_source_name(t->source), cap);
    memset(buf, 0, cap + FL_TEXT_SLACK);
    if (t->to)
        memcpy(buf, t->buf, t->to);
    fl_mem_free(t->buf);
    t->buf = buf;
    t->cap = cap;
    return FL_OK;
}

static fl_err read_more(fl_text *t)
{
    size_t got;
    FL_TRY(make_room(t));
    const int64_t start = fl_clock_now(fl_clock_real());
    FL_TRY(fl_source_read(t->source, t->buf + t->to, t->cap - t->to, &got));
    t->read_ns += fl_clock_now(fl_clock_real()) - start;
    t->to += got;
    t->bytes += (int64_t)got;
    t->got += (int64_t)got;
    t->at_end = !got;
    if (t->at_end &&
        t->to > t->from) /* the last line has no newline: add one */
        t->buf[t->to++] =
            '\n'; /* there is room, because the last read asked for more */
    return FL_OK;
}

fl_err fl_text_fill(fl_text *t)
{
    t->from += t->start;
    t->start = t->tokens = 0;
    t->index.n_lines = t->next = 0;
    for (;;) {
        if (!t->looked)
            t->looked = fl_index_scan(&t->index, t->split, t->buf + t->from,
                                      t->to - t->from);
        if (t->index.n_lines || t->at_end)
            return FL_OK;
        FL_TRY(read_more(t));
        t->looked = false;
    }
}
