/* hash.c - Python's hash of a str, CRC-32 and FNV-1a. */
#include "data/hash.h"

#include "data/number.h"

#include <zlib.h>

enum {
    LONGEST = 1100 /* bytes of a key; criteo.c refuses longer ones */
};

/* --- SipHash-1-3 with a key of zeros --- */

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static inline uint64_t turn(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static inline void round_of(sip *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = turn(s->b, 13) ^ s->a;
    s->d = turn(s->d, 16) ^ s->c;
    s->a = turn(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = turn(s->b, 17) ^ s->c;
    s->d = turn(s->d, 21) ^ s->a;
    s->c = turn(s->c, 32);
}

static inline void mix(sip *s, uint64_t word)
{
    s->d ^= word;
    round_of(s);
    s->a ^= word;
}

static uint64_t siphash13(const unsigned char *p, size_t n)
{
    sip s = {0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261,
             0x7465646279746573};
    uint64_t last = (uint64_t)n << 56;
    for (; n >= 8; n -= 8, p += 8)
        mix(&s, fl_word((const char *)p));
    for (size_t i = 0; i < n; i++)
        last |= (uint64_t)p[i] << (8 * i);
    mix(&s, last);
    s.c ^= 0xff;
    round_of(&s);
    round_of(&s);
    round_of(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

/* --- Python's str --- */

static bool is_ascii(const char *p, size_t n)
{
    unsigned char all = 0;
    for (size_t i = 0; i < n; i++)
        all |= (unsigned char)p[i];
    return all < 0x80;
}

/* The character at *i, which moves behind it; -1: no UTF-8. */
static int32_t character(const char *p, size_t n, size_t *i)
{
    static const int32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char c = (unsigned char)p[(*i)++];
    const int more = c < 0x80   ? 0
                     : c < 0xc2 ? -1
                     : c < 0xe0 ? 1
                     : c < 0xf0 ? 2
                     : c < 0xf5 ? 3
                                : -1;
    if (more < 0 || n - *i < (size_t)more)
        return -1;
    int32_t x = more ? c & (0x3f >> more) : c;
    for (int k = 0; k < more; k++) {
        const unsigned char next = (unsigned char)p[(*i)++];
        if ((next & 0xc0) != 0x80)
            return -1;
        x = x << 6 | (next & 0x3f);
    }
    const bool half = x >= 0xd800 && x < 0xe000; /* of a surrogate pair */
    return x < least[more] || x > 0x10ffff || half ? -1 : x;
}

static bool decode(const char *p, size_t n, int32_t *out, size_t *count,
                   int32_t *largest)
{
    *count = 0;
    *largest = 0;
    for (size_t i = 0; i < n;) {
        const int32_t c = character(p, n, &i);
        if (c < 0)
            return false;
        *largest = c > *largest ? c : *largest;
        out[(*count)++] = c;
    }
    return true;
}

/* The characters in `size` bytes each, lowest first. */
static size_t pack(const int32_t *c, size_t n, size_t size, unsigned char *out)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < size; k++)
            out[i * size + k] = (unsigned char)(c[i] >> (8 * k));
    return n * size;
}

static bool hash_wide(const char *text, size_t n, uint64_t *out)
{
    int32_t wide[LONGEST], largest;
    unsigned char packed[4 * LONGEST];
    size_t count;
    if (n > LONGEST || !decode(text, n, wide, &count, &largest))
        return false;
    const size_t size = largest < 0x100 ? 1 : largest < 0x10000 ? 2 : 4;
    *out = siphash13(packed, pack(wide, count, size, packed));
    return true;
}

bool fl_hash_python(const char *text, size_t n, int64_t *out)
{
    uint64_t h = 0; /* of the empty text */
    if (n && is_ascii(text, n))
        h = siphash13((const unsigned char *)text, n);
    else if (n && !hash_wide(text, n, &h))
        return false;
    *out = (int64_t)h == -1 ? -2 : (int64_t)h; /* -1 means an error to it */
    return true;
}

/* --- ids --- */

static bool python_id(const char *text, size_t n, int64_t dim, int64_t *out)
{
    int64_t h;
    if (!fl_hash_python(text, n, &h))
        return false;
    const int64_t left = h % dim; /* Python's % is never negative */
    *out = left < 0 ? left + dim : left;
    return true;
}

/* zlib.crc32(text.encode()) */
static bool crc_id(const char *text, size_t n, int64_t dim, int64_t *out)
{
    uint64_t unused;
    if (!is_ascii(text, n) && !hash_wide(text, n, &unused))
        return false;
    *out = (int64_t)crc32(0, (const unsigned char *)text, (uInt)n) % dim;
    return true;
}

static bool fnv_id(const char *text, size_t n, int64_t dim, int64_t *out)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
    *out = (int64_t)(h % (uint64_t)dim);
    return true;
}

static const fl_hash hashes[] = {
    {"python", 14, python_id},
    {"crc32", 0, crc_id},
    {"fnv", 14, fnv_id},
};

const fl_hash *fl_hash_find(const char *name)
{
    for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++)
        if (!strcmp(hashes[i].name, name))
            return &hashes[i];
    return NULL;
}
