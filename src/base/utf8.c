/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - characters of UTF-8, one by one. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Read the character at `text`. Returns its length in bytes; 0: it is not
 * valid. */
static int read_char(const char *text, uint32_t *out)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t *s = (const uint8_t *)text;
    const int n = s[0] < 0x80             ? 1
                  : (s[0] & 0xe0) == 0xc0 ? 2
                  : (s[0] & 0xf0) == 0xe0 ? 3
                  : (s[0] & 0xf8) == 0xf0 ? 4
                                          : 0;
    uint32_t code = n == 1 ? s[0] : s[0] & (0x7f >> n);
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    *out = code;
    return code < least[n] || surrogate || code > 0x10ffff ? 0 : n;
}

/* Whether a character is none of these: control characters, Unicode's two line
 * separators, marks of writing direction. */
static bool is_plain(uint32_t c)
{
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    const bool line_break = c == 0x2028 || c == 0x2029;
    const bool direction = c == 0x200e || c == 0x200f ||
                           (c >= 0x202a && c <= 0x202e) ||
                           (c >= 0x2066 && c <= 0x2069);
    return !control && !line_break && !direction;
}

bool fl_utf8_valid(const char *s)
{
    uint32_t c;
    for (int n; *s; s += n)
        if (!(n = read_char(s, &c)))
            return false;
    return true;
}

bool fl_utf8_plain(const char *s)
{
    uint32_t c;
    for (int n; *s; s += n)
        if (!(n = read_char(s, &c)) || !is_plain(c))
            return false;
    return true;
}

static void escape_char(fl_str *s, uint32_t c)
{
    static const char names[] = "\a\b\f\n\r\t\v", letters[] = "abfnrtv";
    const char *name = c < 0x80 ? strchr(names, (int)c) : NULL;
    if (name)
        fl_str_printf(s, "\\%c", letters[name - names]);
    else
        fl_str_printf(s, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
}

static void escape_text(fl_str *s, const char *text, bool lines)
{
    uint32_t c;
    fl_str_add(s, "");
    for (int n; *text; text += n) {
        n = read_char(text, &c);
        if (n && (is_plain(c) || (lines && c == '\n'))) {
            fl_str_bytes(s, text, (size_t)n);
        } else {
            escape_char(s, n ? c : (uint8_t)*text);
            n = n ? n : 1;
        }
    }
}

void fl_utf8_escape(fl_str *s, const char *text)
{
    escape_text(s, text, false);
}

void fl_utf8_escape_lines(fl_str *s, const char *text)
{
    escape_text(s, text, true);
}
