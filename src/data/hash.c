/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - Python's hash of a str, CRC-32 and FNV-1a. */
#include "data/hash.h"

#include "data/number.h"

#include <zlib.h>

enum {
    LONGEST = FL_HASH_MAX + 2 /* bytes of a number and a text */
};

/* --- SipHash-1-3 with a key of zeros --- */

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

/* Eight hashes at once. */
typedef uint64_t lanes __attribute__((vector_size(64)));

typedef struct wide {
    lanes a, b, c, d;
} wide;

/* Rotate a uint64_t, or each of a vector of them. */
#define TURN(x, n) ((x) << (n) | (x) >> (64 - (n)))
#define ROUND(s)                                                               \
    ((s)->a += (s)->b, (s)->c += (s)->d, (s)->b = TURN((s)->b, 13) ^ (s)->a,   \
     (s)->d = TURN((s)->d, 16) ^ (s)->c, (s)->a = TURN((s)->a, 32),            \
     (s)->c += (s)->b, (s)->a += (s)->d, (s)->b = TURN((s)->b, 17) ^ (s)->c,   \
     (s)->d = TURN((s)->d, 21) ^ (s)->a, (s)->c = TURN((s)->c, 32))
#define MIX(s, word) ((s)->d ^= (word), ROUND(s), (s)->a ^= (word))
#define FINISH(s)    ((s)->c ^= 0xff, ROUND(s), ROUND(s), ROUND(s))

static const sip start = {0x736f6d6570736575, 0x646f72616e646f6d,
                          0x6c7967656e657261, 0x7465646279746573};

static uint64_t siphash13(const unsigned char *p, size_t n)
{
    sip s = start;
    uint64_t last = (uint64_t)n << 56;
    for (; n >= 8; n -= 8, p += 8)
        MIX(&s, fl_word((const char *)p));
    for (size_t i = 0; i < n; i++)
        last |= (uint64_t)p[i] << (8 * i);
    MIX(&s, last);
    FINISH(&s);
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

/* Read the character at *i, and move *i past it; -1: it is not UTF-8. */
static int32_t read_character(const char *p, size_t n, size_t *i)
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

static bool decode_text(const char *p, size_t n, int32_t *out, size_t *count,
                        int32_t *largest)
{
    *count = 0;
    *largest = 0;
    for (size_t i = 0; i < n;) {
        const int32_t c = read_character(p, n, &i);
        if (c < 0)
            return false;
        *largest = c > *largest ? c : *largest;
        out[(*count)++] = c;
    }
    return true;
}

/* Write the characters in `size` bytes each, little endian. */
static size_t pack_characters(const int32_t *c, size_t n, size_t size,
                              unsigned char *out)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < size; k++)
            out[i * size + k] = (unsigned char)(c[i] >> (8 * k));
    return n * size;
}

static bool hash_wide(const char *text, size_t n, uint64_t *out)
{
    int32_t letter[LONGEST], largest;
    unsigned char packed[4 * LONGEST];
    size_t count;
    if (n > LONGEST || !decode_text(text, n, letter, &count, &largest))
        return false;
    const size_t size = largest < 0x100 ? 1 : largest < 0x10000 ? 2 : 4;
    *out = siphash13(packed, pack_characters(letter, count, size, packed));
    return true;
}

bool fl_hash_python(const char *text, size_t n, int64_t *out)
{
    uint64_t h = 0; /* hash of the empty text */
    if (n && is_ascii(text, n))
        h = siphash13((const unsigned char *)text, n);
    else if (n && !hash_wide(text, n, &h))
        return false;
    *out =
        (int64_t)h == -1 ? -2 : (int64_t)h; /* Python reserves -1 for errors */
    return true;
}

/* --- ids --- */

fl_modulus fl_modulus_of(int64_t d)
{
    const uint64_t magic = UINT64_MAX / (uint64_t)d;
    return (fl_modulus){(uint64_t)d, magic,
                        (UINT64_MAX - magic * (uint64_t)d + 1) % (uint64_t)d};
}

/* Python's x % d, which is never negative. A negative x was treated as x +
 * 2^64, so 2^64 % d is subtracted. */
static inline int64_t signed_modulo(const fl_modulus *m, int64_t x)
{
    const uint64_t minus = -(uint64_t)(x < 0);
    const int64_t left = fl_modulo(m, (uint64_t)x) - (int64_t)(m->wrap & minus);
    return left + (int64_t)(m->d & -(uint64_t)(left < 0));
}

/* Write the digits of a number, and return how many there are. */
static inline size_t put_number(int number, char out[2])
{
    const size_t digits = number < 10 ? 1 : 2;
    out[0] = (char)('0' + number / 10);
    out[digits - 1] = (char)('0' + number % 10);
    return digits;
}

static bool python_id(int number, const char *text, size_t n,
                      const fl_modulus *m, int64_t *out)
{
    char key[LONGEST + FL_TEXT_SLACK];
    int64_t h;
    const size_t digits = put_number(number, key);
    if (n > FL_HASH_MAX)
        return false;
    memcpy(key + digits, text, n);
    if (!fl_hash_python(key, digits + n, &h))
        return false;
    *out = signed_modulo(m, h);
    return true;
}

/* Two digits and eight characters are a word of eight bytes and one of two,
 * whose highest byte is the length. */
FL_CLONES
static void sip_eights(const lanes *first, const lanes *last, int n, lanes *out)
{
    for (int i = 0; i < n; i++) {
        wide s = {
            .a = start.a + (lanes){0},
            .b = start.b + (lanes){0},
            .c = start.c + (lanes){0},
            .d = start.d + (lanes){0},
        };
        MIX(&s, first[i]);
        MIX(&s, last[i]);
        FINISH(&s);
        out[i] = s.a ^ s.b ^ s.c ^ s.d;
    }
}

static void python_eights(int n, const int *number, const uint64_t *text,
                          const fl_modulus *m, int64_t *out)
{
    enum {
        WIDTH = 8
    };
    union {
        lanes wide[FL_HASH_MANY / WIDTH];
        uint64_t one[FL_HASH_MANY];
    } first = {0}, last = {0}, hash;
    for (int i = 0; i < n; i++) {
        const uint64_t digits =
            (uint64_t)(('0' + number[i] / 10) | ('0' + number[i] % 10) << 8);
        first.one[i] = digits | text[i] << 16;
        last.one[i] = text[i] >> 48 | (uint64_t)10 << 56;
    }
    sip_eights(first.wide, last.wide, (n + WIDTH - 1) / WIDTH, hash.wide);
    for (int i = 0; i < n; i++) {
        const int64_t h = (int64_t)hash.one[i];
        out[i] = signed_modulo(m, h == -1 ? -2 : h);
    }
}

/* zlib.crc32(text.encode()) */
static bool crc_id(int number, const char *text, size_t n, const fl_modulus *m,
                   int64_t *out)
{
    char digits[2];
    uint64_t unused;
    if (!is_ascii(text, n) && !hash_wide(text, n, &unused))
        return false;
    const size_t k = put_number(number, digits);
    const uLong start_crc = crc32(0, (const unsigned char *)digits, (uInt)k);
    *out = fl_modulo(m, crc32(start_crc, (const unsigned char *)text, (uInt)n));
    return n <= FL_HASH_MAX;
}

static uint64_t fnv(uint64_t h, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3;
    return h;
}

static bool fnv_id(int number, const char *text, size_t n, const fl_modulus *m,
                   int64_t *out)
{
    char digits[2];
    const size_t k = put_number(number, digits);
    *out = fl_modulo(m, fnv(fnv(0xcbf29ce484222325, digits, k), text, n));
    return n <= FL_HASH_MAX;
}

static const fl_hash hashes[] = {
    {"python", 14, python_id, python_eights},
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
