/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - text that came from outside: is it UTF-8, can it be shown?
 *
 * What a peer or a file says may stand in a log or on a terminal only as
 * ordinary characters. Control characters could forge lines and speak to the
 * terminal, and marks of writing direction could turn a sentence round. */
#ifndef FL_BASE_UTF8_H
#define FL_BASE_UTF8_H

#include "base/str.h"

/* Overlong forms, surrogates and numbers beyond Unicode are not valid. */
bool fl_utf8_valid(const char *s);

/* Valid, and every character can be shown as it is. */
bool fl_utf8_plain(const char *s);

/* Append `text` as plain characters: a line feed becomes \n, an escape \x1b, a
 * byte that is not UTF-8 \xff, a mark of direction \u202e. A backslash stays as
 * it is: this is for reading, not for turning back. */
void fl_utf8_escape(fl_str *s, const char *text);

/* The same for text of several lines: line feeds stay. */
void fl_utf8_escape_lines(fl_str *s, const char *text);

#endif
