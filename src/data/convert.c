/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - converts Criteo lines to lines of slots (paddle read criteo). */
#include "data/criteo.h"
#include "data/number.h"
#include "data/text.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER = 1 << 16, /* bytes */
    ROW = 2048,       /* bytes of a line, at most */
    KNOWN = 4096,     /* number texts that are cached */
};

/* A cache of number texts: numbers repeat, and formatting one is slow. */
typedef struct known {
    double x;
    uint8_t n; /* 0: empty */
    char text[FL_F64_TEXT];
} known;

typedef struct writer {
    int fd;
    size_t n;
    char buf[BUFFER];
    known known[KNOWN];
} writer;

static fl_err flush_output(writer *w)
{
    for (size_t done = 0; done < w->n;) {
        const ssize_t put = write(w->fd, w->buf + done, w->n - done);
        if (put < 0 && errno != EINTR)
            return fl_fail(FL_EIO, "the output cannot be written: %s",
                           strerror(errno));
        done += put > 0 ? (size_t)put : 0;
    }
    w->n = 0;
    return FL_OK;
}

static void add_text(writer *w, const char *text, size_t n)
{
    memcpy(w->buf + w->n, text, n);
    w->n += n;
}

static void add_double(writer *w, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    known *k = &w->known[(bits * 0x9e3779b97f4a7c15) >> 52];
    if (!k->n || memcmp(&k->x, &x, sizeof x)) {
        k->x = x;
        k->n = (uint8_t)fl_f64_text(x, k->text);
    }
    add_text(w, " ", 1);
    add_text(w, k->text, k->n);
}

static void add_int(writer *w, int64_t x)
{
    char text[24], *p = text + sizeof text;
    uint64_t left = x < 0 ? -(uint64_t)x : (uint64_t)x;
    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (x < 0)
        *--p = '-';
    add_text(w, " 1 ", 3);
    add_text(w, p, (size_t)(text + sizeof text - p));
}

static fl_err write_row(writer *w, const fl_criteo_row *row)
{
    if (w->n + ROW > BUFFER)
        FL_TRY(flush_output(w));
    add_text(w, "13", 2);
    for (int i = 0; i < FL_CRITEO_NUMBERS; i++)
        add_double(w, row->number[i]);
    for (int i = 0; i < FL_CRITEO_CATEGORIES; i++)
        add_int(w, row->category[i]);
    add_int(w, row->label);
    add_text(w, "\n", 1);
    return FL_OK;
}

static fl_err convert_lines(const fl_criteo_format *f, fl_text *text, writer *w)
{
    fl_line line;
    fl_flaw flaw;
    fl_criteo_row row;
    bool more;
    for (;;) {
        FL_TRY(fl_text_next(text, &line, &more));
        if (!more)
            return FL_OK;
        const fl_err err = fl_criteo_read(f, &line, &row, &flaw);
        if (err == FL_EPROTO)
            return fl_flaw_fail(&flaw, fl_source_name(text->source),
                                text->number, &line);
        FL_TRY(err);
        FL_TRY(write_row(w, &row));
    }
}

/* Check that stdin or stdout is open. If it was closed, its number may belong
 * to an event descriptor of ours, and reading that would block forever. */
static fl_err check_open(int fd, const char *what)
{
    struct stat st;
    if (fstat(fd, &st) || !(st.st_mode & S_IFMT))
        return fl_fail(FL_EIO, "the %s is closed", what);
    return FL_OK;
}

fl_err fl_criteo_convert(const fl_criteo *how, int in, int out)
{
    fl_criteo_format f;
    fl_cancel cancel;
    fl_source *source;
    FL_TRY(fl_criteo_init(&f, how));
    FL_TRY(check_open(in, "input"));
    FL_TRY(check_open(out, "output"));
    FL_TRY(fl_cancel_init(&cancel));
    fl_err err = fl_source_of(in, "input", &cancel, &source);
    if (!err) {
        fl_text text = {.split = FL_SPLIT_TABS};
        writer *w = fl_mem_alloc(sizeof *w);
        w->fd = out;
        fl_text_take(&text, source);
        err = convert_lines(&f, &text, w);
        const fl_err flushed = err ? FL_OK : flush_output(w);
        err = err ? err : flushed;
        fl_text_fini(&text);
        fl_mem_free(w);
    }
    fl_cancel_fini(&cancel);
    return err;
}
