/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - text that grows, and comparisons of texts. */
#include "base/str.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void reserve_bytes(fl_str *s, size_t more)
{
    size_t need = s->n + more + 1;
    if (need <= s->cap)
        return;
    s->cap = need > 2 * s->cap ? need : 2 * s->cap;
    s->at = fl_mem_grow(s->at, s->cap);
}

void fl_str_fini(fl_str *s)
{
    fl_mem_free(s->at);
    memset(s, 0, sizeof *s);
}

void fl_str_bytes(fl_str *s, const void *bytes, size_t n)
{
    reserve_bytes(s, n);
    if (n)
        memcpy(s->at + s->n, bytes, n);
    s->n += n;
    s->at[s->n] = 0;
}

void fl_str_add(fl_str *s, const char *text)
{
    fl_str_bytes(s, text, strlen(text));
}

void fl_str_printf(fl_str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    reserve_bytes(s, (size_t)n);
    va_start(ap, fmt);
    vsnprintf(s->at + s->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    s->n += (size_t)n;
}

char *fl_str_take(fl_str *s)
{
    char *text = s->at ? s->at : fl_mem_strdup("");
    *s = (fl_str){0};
    return text;
}

bool fl_starts_with(const char *s, const char *start)
{
    return !strncmp(s, start, strlen(start));
}

bool fl_ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* The value of a hexadecimal digit; -1: it is none. */
static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char lower = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    const char *at = lower ? strchr(digits, lower) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool fl_str_hex(const char *at, unsigned char *out)
{
    const int high = digit_of(at[0]);
    const int low = high < 0 ? -1 : digit_of(at[1]);
    if (low < 0)
        return false;
    *out = (unsigned char)(high << 4 | low);
    return true;
}

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

int fl_str_distance(const char *a, const char *b)
{
    enum {
        LONGEST = 63
    };
    int rows[3][LONGEST + 1]; /* i % 3 is the row of the first i bytes of a */
    const int m = (int)strnlen(a, LONGEST), n = (int)strnlen(b, LONGEST);
    for (int j = 0; j <= n; j++)
        rows[0][j] = j;
    for (int i = 1; i <= m; i++) {
        int *row = rows[i % 3];
        const int *last = rows[(i + 2) % 3], *swap = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            row[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min_int(row[j], min_int(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_int(row[j], swap[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

void fl_near_offer(fl_near *n, const char *candidate)
{
    const int edits = fl_str_distance(n->name, candidate);
    const int most =
        (int)strlen(n->name) / 2; /* "foo" is not similar to "env" */
    if (edits > 3 || edits > most || (n->best && edits >= n->edits))
        return; /* with more edits it is another word */
    n->best = candidate;
    n->edits = edits;
}
