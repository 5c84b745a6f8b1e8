/* SPDX-License-Identifier: Apache-2.0 */
/* text_read.c - the words of the text form: names, strings, numbers. */
#include "graph/text_read.h"

#include "base/str.h"
#include "graph/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Put "text 3:14: " in front of the sentence. */
fl_err fl_read_place(const fl_text_reader *r, fl_err err)
{
    char sentence[900];
    snprintf(sentence, sizeof sentence, "%s", fl_errmsg());
    return fl_fail(err, "text %d:%lld: %s", r->line,
                   (long long)(r->at - r->line_at + 1), sentence);
}

void fl_read_skip(fl_text_reader *r)
{
    for (;; r->at++) {
        if (*r->at == '#')
            r->at += strcspn(r->at, "\n");
        if (*r->at == '\n' && r->nesting) {
            r->line++;
            r->line_at = r->at + 1;
        } else if (*r->at != ' ' && *r->at != '\t' && *r->at != '\r') {
            return;
        }
    }
}

/* The text at the current position, for error messages. */
static const char *text_here(const fl_text_reader *r)
{
    static const char letters[] = " \n\t,()[]{}=:";
    if (!*r->at)
        return "the end";
    if (*r->at == '\n')
        return "the end of the line";
    size_t n = strcspn(r->at, letters);
    if (n == 0)
        n = 1;
    return fl_arena_printf(r->a, "\"%.*s\"", n > 40 ? 40 : (int)n, r->at);
}

fl_err fl_read_expected(const fl_text_reader *r, const char *what)
{
    return FL_READ_FAIL(r, "expected %s, found %s", what, text_here(r));
}

bool fl_read_accept(fl_text_reader *r, const char *text)
{
    fl_read_skip(r);
    if (!fl_starts_with(r->at, text))
        return false;
    r->at += strlen(text);
    if (strchr("([{", *text))
        r->nesting++;
    if (strchr(")]}", *text))
        r->nesting--;
    return true;
}

fl_err fl_read_expect(fl_text_reader *r, const char *text)
{
    if (fl_read_accept(r, text))
        return FL_OK;
    return fl_read_expected(r, fl_arena_printf(r->a, "\"%s\"", text));
}

static fl_err read_escape(fl_text_reader *r, fl_str *s)
{
    unsigned char code;
    char c = *r->at++;
    if (c == 'n') {
        c = '\n';
    } else if (c == 'x') {
        if (!fl_str_hex(r->at, &code) || !code)
            return fl_read_expected(r, "two hexadecimal digits");
        r->at += 2;
        c = (char)code;
    } else if (c != '"' && c != '\\') {
        r->at--;
        return fl_read_expected(r, "one of n, x, \", \\ after \\");
    }
    fl_str_bytes(s, &c, 1);
    return FL_OK;
}

static fl_err read_quoted(fl_text_reader *r, fl_str *s)
{
    r->at++;
    while (*r->at != '"') {
        if (!*r->at || *r->at == '\n')
            return fl_read_expected(r, "a closing \"");
        if (*r->at == '\\') {
            r->at++;
            FL_TRY(read_escape(r, s));
        } else {
            fl_str_bytes(s, r->at++, 1);
        }
    }
    r->at++;
    return FL_OK;
}

fl_err fl_read_string(fl_text_reader *r, const char **out)
{
    fl_str s = {0};
    fl_read_skip(r);
    fl_err err = *r->at == '"' ? read_quoted(r, &s)
                               : fl_read_expected(r, "a string in quotes");
    if (!err)
        *out = fl_arena_strdup(r->a, s.at ? s.at : "");
    fl_str_fini(&s);
    return err;
}

static bool is_letter(char c)
{
    return c && fl_name_is_bare((const char[]){c, 0});
}

fl_err fl_read_name(fl_text_reader *r, const char *what, const char **out)
{
    fl_read_skip(r);
    if (*r->at == '"') {
        FL_TRY(fl_read_string(r, out));
        return **out ? FL_OK : FL_READ_FAIL(r, "%s is empty", what);
    }
    const char *from = r->at;
    while (is_letter(*r->at))
        r->at++;
    if (r->at == from)
        return fl_read_expected(r, what);
    char *name = fl_arena_alloc(r->a, (size_t)(r->at - from) + 1);
    memcpy(name, from, (size_t)(r->at - from));
    *out = name;
    return FL_OK;
}

/* Read a word, if the next bare word is exactly this one. */
bool fl_read_word(fl_text_reader *r, const char *word)
{
    fl_read_skip(r);
    const size_t n = strlen(word);
    if (strncmp(r->at, word, n) || is_letter(r->at[n]))
        return false;
    r->at += n;
    return true;
}

fl_err fl_read_int(fl_text_reader *r, int64_t least, int64_t most, int64_t *out)
{
    char *end;
    fl_read_skip(r);
    errno = 0;
    const long long i = strtoll(r->at, &end, 10);
    if (end == r->at || strchr("\n\v\f", *r->at))
        return fl_read_expected(r, "a whole number");
    if (errno || i < least || i > most)
        return FL_READ_FAIL(r, "%.*s is not within %lld and %lld",
                            (int)(end - r->at), r->at, (long long)least,
                            (long long)most);
    r->at = end;
    *out = i;
    return FL_OK;
}
