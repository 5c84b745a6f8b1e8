/* SPDX-License-Identifier: Apache-2.0 */
/* wide.h - finds and reads tokens with vectors of up to 64 bytes.
 *
 * These functions need AVX-512 with VBMI2 (processors since 2019), which
 * fl_wide detects at run time. They read only common forms and return how much
 * they have read; number.h reads the rest. FL_TEXT_SLACK bytes after a text
 * must be readable. */
#ifndef FL_DATA_WIDE_H
#define FL_DATA_WIDE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FL_WIDE_IDS = 64,   /* pairs that fl_wide_ids reads at a time, at most */
    FL_WIDE_BLOCK = 64, /* bytes: as many as a word has bits */
};

/* Whether the other functions may be called. */
bool fl_wide(void);

/* For each of n blocks of text, two masks: bytes that are a newline, and bytes
 * that are a newline or a tab; with blanks, bytes that are any white space. */
typedef struct fl_bits {
    uint64_t separator, newline;
} fl_bits;
void fl_wide_bits(bool blanks, const char *text, int n, fl_bits *out);

/* List the positions of the bits that are set in n words, plus base. Up to
 * FL_WIDE_BLOCK entries of `out` after them are overwritten. */
void fl_wide_list(const uint64_t *set, int n, uint32_t base, uint32_t *out);

/* The following read tokens of a text: token i ends at text[end[i]], and the
 * first starts at text[at]. They return how many of n were read. */

/* Floats with one digit before the point: 0.25. The bits are those of strtof.
 */
int64_t fl_wide_floats(const char *text, uint32_t at, const uint32_t *end,
                       int64_t n, float *out);

/* Read pairs of tokens: the first is 1, and the second has up to 8 digits. n is
 * at most FL_WIDE_IDS. */
int fl_wide_ids(const char *text, uint32_t at, const uint32_t *end, int n,
                int64_t out[FL_WIDE_IDS]);

#endif
