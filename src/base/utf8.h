/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - text from outside: whether it is UTF-8 and can be shown.
 *
 * Text from a peer or a file is shown in logs and on terminals only as ordinary
 * characters. Control characters could forge log lines or control the terminal,
 * and marks of writing direction could reverse a message. */
#ifndef FL_BASE_UTF8_H
#define FL_BASE_UTF8_H

#include "base/str.h"

/* Overlong forms, surrogates and numbers beyond Unicode are not valid. */
bool fl_utf8_valid(const char *s);

/* Whether the text is valid and every character can be shown as it is. */
bool fl_utf8_plain(const char *s);

/* Append `text` as plain characters: a line feed becomes \n, an escape \x1b, a
 * byte that is not UTF-8 \xff, a mark of direction \u202e. A backslash is not
 * escaped: the result is for reading and cannot be converted back. */
void fl_utf8_escape(fl_str *s, const char *text);

/* The same for text of several lines: line feeds stay. */
void fl_utf8_escape_lines(fl_str *s, const char *text);

#endif
