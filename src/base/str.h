/* SPDX-License-Identifier: Apache-2.0 */
/* str.h - text that grows. */
#ifndef FL_BASE_STR_H
#define FL_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

/* Zero is the empty string. at is NUL-terminated once anything was added. */
typedef struct fl_str {
    char *at;
    size_t n, cap; /* bytes, without the NUL */
} fl_str;

void fl_str_fini(fl_str *s);
void fl_str_add(fl_str *s, const char *text);
void fl_str_bytes(fl_str *s, const void *bytes, size_t n);
void fl_str_printf(fl_str *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Take the text out of s, which is empty afterwards. Own: the caller frees it
 * with fl_mem_free. */
char *fl_str_take(fl_str *s);

bool fl_starts_with(const char *s, const char *start);
bool fl_ends_with(const char *s, const char *end);

/* Read two hexadecimal digits. False: there are none. (sscanf would look for
 * the end of the whole text each time.) */
bool fl_str_hex(const char *at, unsigned char *out);

/* The number of edits that turn a into b. Two swapped neighbours count as one
 * edit. */
int fl_str_distance(const char *a, const char *b);

/* Finds the name that was probably meant: start with {.name = the word that was
 * given}, offer all names, then read `best` (NULL: none is similar). */
typedef struct fl_near {
    const char *name, *best;
    int edits; /* edits from name to best */
} fl_near;

void fl_near_offer(fl_near *n, const char *candidate);

#endif
