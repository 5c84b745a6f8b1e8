/* hash.h - the hashes by which readers turn texts into ids. */
#ifndef FL_DATA_HASH_H
#define FL_DATA_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text (UTF-8) to a number below `dim`, or false: it is no UTF-8. */
typedef struct fl_hash {
    const char *name;
    int first; /* the number that Criteo's first category has in its key */
    bool (*id)(const char *text, size_t n, int64_t dim, int64_t *out);
} fl_hash;

const fl_hash *fl_hash_find(const char *name); /* NULL: none */

/* Python's hash(str) with PYTHONHASHSEED=0: SipHash-1-3 with a key of zeros,
 * over the characters as Python keeps them, which is in 1, 2 or 4 bytes each
 * as the largest needs. */
bool fl_hash_python(const char *text, size_t n, int64_t *out);

#endif
