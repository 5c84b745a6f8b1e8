/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - the hashes by which readers turn texts into ids. */
#ifndef FL_DATA_HASH_H
#define FL_DATA_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A divisor, and numbers that turn a division by it into a multiplication. */
typedef struct fl_modulus {
    uint64_t d;
    uint64_t magic; /* floor((2^64 - 1) / d) */
    uint64_t wrap;  /* 2^64 modulo d */
} fl_modulus;

fl_modulus fl_modulus_of(int64_t d); /* d > 0 */

/* x modulo d without branches, which would be mispredicted for hashes. */
static inline int64_t fl_modulo(const fl_modulus *m, uint64_t x)
{
    const uint64_t q = (uint64_t)(((unsigned __int128)x * m->magic) >> 64);
    uint64_t left = x - q * m->d; /* q is at most 2 too small */
    left -= m->d & -(uint64_t)(left >= m->d);
    left -= m->d & -(uint64_t)(left >= m->d);
    return (int64_t)left;
}

/* Compute the id of a text: a number (0 to 99) followed by these bytes. False:
 * it is not UTF-8, or longer than FL_HASH_MAX. FL_TEXT_SLACK bytes after the
 * text must be readable. */
enum {
    FL_HASH_MAX = 1024,
    FL_HASH_MANY = 32,
};

typedef struct fl_hash {
    const char *name;
    int first; /* the number of Criteo's first category */
    bool (*id)(int number, const char *text, size_t n, const fl_modulus *m,
               int64_t *out);
    /* The same for n texts at once (1 to FL_HASH_MANY), which have 8 ASCII
     * characters, given as words, and numbers of two digits. NULL: not
     * available. */
    void (*eights)(int n, const int *number, const uint64_t *text,
                   const fl_modulus *m, int64_t *out);
} fl_hash;

const fl_hash *fl_hash_find(const char *name); /* NULL: none */

/* Python's hash(str) with PYTHONHASHSEED=0: SipHash-1-3 with a key of zeros,
 * over the characters as Python keeps them, which is in 1, 2 or 4 bytes each
 * as the largest needs. */
bool fl_hash_python(const char *text, size_t n, int64_t *out);

#endif
