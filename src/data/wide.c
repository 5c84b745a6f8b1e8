/* SPDX-License-Identifier: Apache-2.0 */
/* wide.c - kernels for AVX-512.
 *
 * Digits become numbers in three steps, as in number.h, but in all bytes of a
 * vector: pairs, pairs of pairs, and pairs of those. A step is one
 * multiplication whose neighbouring products are added:
 *
 *     bytes   d0 d1 d2 d3 d4 d5 d6 d7      times 10, 1
 *     16 bits d0d1  d2d3  d4d5  d6d7       times 100, 1
 *     32 bits d0..d3      d4..d7           times 10000, 1
 *     number  d0..d7 */
#include "data/wide.h"

#include "data/number.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define WIDE                                                                   \
    __attribute__((                                                            \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,"    \
               "bmi,bmi2,popcnt,lzcnt")))

bool fl_wide(void)
{
    return __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
}

/* --- where tokens end --- */

WIDE void fl_wide_bits(bool blanks, const char *text, int n, fl_bits *out)
{
    for (int i = 0; i < n; i++) {
        const __m512i x = _mm512_loadu_si512(text + i * FL_WIDE_BLOCK);
        const __m512i from9 = _mm512_sub_epi8(x, _mm512_set1_epi8(9));
        out[i].newline = _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8('\n'));
        out[i].separator =
            blanks /* ' ', and \t \n \v \f \r, 9 to 13 */
                ? _mm512_cmpeq_epi8_mask(x, _mm512_set1_epi8(' ')) |
                      _mm512_cmple_epu8_mask(from9, _mm512_set1_epi8(4))
                : _mm512_cmple_epu8_mask(from9, _mm512_set1_epi8('\n' - '\t'));
    }
}

/* Half of a block has at most 32 tokens, most have fewer than 16. */
WIDE void fl_wide_list(const uint64_t *set, int n, uint32_t base, uint32_t *out)
{
    static const uint8_t number[64] = {
        0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
        32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
        48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    };
    const __m512i all = _mm512_loadu_si512(number);
    for (int i = 0; i < n; i++, base += FL_WIDE_BLOCK) {
        const int many = __builtin_popcountll(set[i]);
        __m512i at = _mm512_maskz_compress_epi8(set[i], all);
        const __m512i first = _mm512_set1_epi32((int)base);
        for (int k = 0;; k += 32) {
            const __m128i low = _mm512_castsi512_si128(at);
            const __m128i high = _mm512_extracti32x4_epi32(at, 1);
            _mm512_storeu_si512(
                out + k, _mm512_add_epi32(first, _mm512_cvtepu8_epi32(low)));
            _mm512_storeu_si512(
                out + k + 16,
                _mm512_add_epi32(first, _mm512_cvtepu8_epi32(high)));
            if (__builtin_expect(many <= k + 32, 1))
                break;
            at = _mm512_shuffle_i64x2(at, at, 0xee);
        }
        out += many;
    }
}

/* --- numbers --- */

enum {
    FLOATS = 4,   /* floats that are read at once */
    TOO_LONG = 32 /* bytes of a float; a power of two */
};

/* Read d.dd dddd | dddddddd | dddddddd | dddddddd as four numbers. Bytes after
 * the token count as zeros, and the point as a digit with weight 0. `odd`
 * becomes nonzero if a byte is not as expected. */
WIDE static inline __m128i read_parts(const char *p, uint32_t len, __m256i *odd)
{
    const __m256i least =
        _mm256_setr_epi8('0', '.', '0', '0', '0', '0', '0', '0', '0', '0', '0',
                         '0', '0', '0', '0', '0', '0', '0', '0', '0', '0', '0',
                         '0', '0', '0', '0', '0', '0', '0', '0', '0', '0');
    const __m256i most =
        _mm256_setr_epi8(9, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9,
                         9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9);
    const __m256i tens = _mm256_setr_epi8(1, 0, 10, 1, 10, 1, 10, 1, 10, 1, 10,
                                          1, 10, 1, 10, 1, 10, 1, 10, 1, 10, 1,
                                          10, 1, 10, 1, 10, 1, 10, 1, 10, 1);
    __m256i x = _mm256_maskz_sub_epi8(
        _bzhi_u32(~0u, len), _mm256_loadu_si256((const __m256i *)p), least);
    *odd = _mm256_or_si256(*odd, _mm256_subs_epu8(x, most));
    x = _mm256_madd_epi16(_mm256_maddubs_epi16(x, tens),
                          _mm256_set1_epi32(1 << 16 | 100));
    return _mm_madd_epi16(_mm_packus_epi32(_mm256_castsi256_si128(x),
                                           _mm256_extracti128_si256(x, 1)),
                          _mm_set1_epi32(1 << 16 | 10000));
}

/* Add the parts of four numbers. Each sum is wrong by at most 4 units in the
 * last place of a double (fl_f32_of in number.h). False: one of them is too
 * close to the middle of two floats. */
WIDE static inline bool add_parts(__m512i parts, float *out)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i x = _mm512_permutexvar_epi32(order, parts);
    const __m512d high = _mm512_mul_pd(
        _mm512_cvtepi32_pd(_mm512_castsi512_si256(x)),
        _mm512_setr_pd(1e-6, 1e-6, 1e-6, 1e-6, 1e-14, 1e-14, 1e-14, 1e-14));
    const __m512d low = _mm512_mul_pd(
        _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(x, 1)),
        _mm512_setr_pd(1e-22, 1e-22, 1e-22, 1e-22, 1e-30, 1e-30, 1e-30, 1e-30));
    const __m512d both = _mm512_add_pd(high, low);
    const __m256d sum = _mm256_add_pd(_mm512_castpd512_pd256(both),
                                      _mm512_extractf64x4_pd(both, 1));
    const __m256i rest = _mm256_and_si256(_mm256_castpd_si256(sum),
                                          _mm256_set1_epi64x(0x1fffffff));
    _mm_storeu_ps(out, _mm256_cvtpd_ps(sum));
    return !_mm256_cmple_epu64_mask(
        _mm256_sub_epi64(rest, _mm256_set1_epi64x(0x0ffffff8)),
        _mm256_set1_epi64x(16));
}

WIDE int64_t fl_wide_floats(const char *text, uint32_t at, const uint32_t *end,
                            int64_t n, float *out)
{
    int64_t i = 0;
    for (; n - i >= FLOATS; i += FLOATS) {
        const uint32_t *e = end + i;
        const uint32_t start[] = {i ? e[-1] + 1 : at, e[0] + 1, e[1] + 1,
                                  e[2] + 1};
        const uint32_t len[] = {e[0] - start[0], e[1] - start[1],
                                e[2] - start[2], e[3] - start[3]};
        __m256i odd = _mm256_setzero_si256();
        const __m128i part[] = {read_parts(text + start[0], len[0], &odd),
                                read_parts(text + start[1], len[1], &odd),
                                read_parts(text + start[2], len[2], &odd),
                                read_parts(text + start[3], len[3], &odd)};
        __m512i parts = _mm512_castsi128_si512(part[0]);
        parts = _mm512_inserti32x4(parts, part[1], 1);
        parts = _mm512_inserti32x4(parts, part[2], 2);
        parts = _mm512_inserti32x4(parts, part[3], 3);
        if ((len[0] | len[1] | len[2] | len[3]) >= TOO_LONG ||
            !_mm256_testz_si256(odd, odd) || !add_parts(parts, out + i))
            break;
    }
    return i;
}

/* Pick bytes from text[0, 128): `at` has their positions. */
WIDE static inline __m512i pick_bytes(const char *text, __m512i at)
{
    return _mm512_permutex2var_epi8(_mm512_loadu_si512(text), at,
                                    _mm512_loadu_si512(text + 64));
}

/* Read up to eight numbers of up to eight digits in text[0, 128). Their bytes
 * are picked from vectors, because a gather takes longer. `ends` are offsets
 * from `text`. Returns a mask of those that were read. */
WIDE static inline unsigned read_ids(const char *text, __m512i ends,
                                     __mmask8 wanted, __m512i *out)
{
    const __m512i one = _mm512_set1_epi64(1), eight = _mm512_set1_epi64(8);
    const __m512i nine = _mm512_set1_epi8(9);
    const __m512i spread = /* copy the lowest byte of a word to all its bytes */
        _mm512_set4_epi64(0x0808080808080808, 0, 0x0808080808080808, 0);
    const __m512i each = _mm512_set1_epi64(0x0706050403020100);
    const __m512i id_end = _mm512_srli_epi64(ends, 32);
    const __m512i count_end =
        _mm512_and_si512(ends, _mm512_set1_epi64(0xffffffff));
    const __m512i count = /* an id starts one byte after the one before it */
        _mm512_add_epi64(_mm512_alignr_epi64(id_end, _mm512_set1_epi64(-1), 7),
                         one);
    const __m512i id = _mm512_add_epi64(count_end, one);
    const __m512i len = _mm512_sub_epi64(id_end, id);
    __mmask8 good = _mm512_mask_cmpeq_epi64_mask(
        wanted, _mm512_sub_epi64(count_end, count), one);
    good =
        _mm512_mask_cmplt_epu64_mask(good, _mm512_sub_epi64(len, one), eight);
    good = _mm512_mask_cmple_epu64_mask(good, id_end, _mm512_set1_epi64(128));
    const __m512i digit = _mm512_maskz_sub_epi8(
        0x0101010101010101, pick_bytes(text, count), _mm512_set1_epi8('0'));
    good = _mm512_mask_cmpeq_epi64_mask(good, digit, one);
    __m512i x = _mm512_sub_epi8(
        pick_bytes(text,
                   _mm512_add_epi8(_mm512_shuffle_epi8(id, spread), each)),
        _mm512_set1_epi8('0'));
    x = _mm512_sllv_epi64(x,
                          _mm512_slli_epi64(_mm512_sub_epi64(eight, len), 3));
    const __m512i odd = _mm512_subs_epu8(x, nine);
    x = _mm512_maddubs_epi16(x, _mm512_set1_epi16(1 << 8 | 10));
    x = _mm512_madd_epi16(x, _mm512_set1_epi32(1 << 16 | 100));
    *out = _mm512_add_epi64(_mm512_mul_epu32(x, _mm512_set1_epi64(10000)),
                            _mm512_srli_epi64(x, 32));
    return _mm512_mask_testn_epi64_mask(good, odd, odd);
}

WIDE int fl_wide_ids(const char *text, uint32_t at, const uint32_t *end, int n,
                     int64_t out[FL_WIDE_IDS])
{
    for (int i = 0; i < n; i += 8, end += 16) {
        __m512i ids;
        at = i ? end[-1] + 1 : at;
        const __mmask8 wanted = (__mmask8)_bzhi_u32(255, (unsigned)(n - i));
        const __m512i ends = _mm512_sub_epi32(
            _mm512_maskz_loadu_epi64(wanted, end), _mm512_set1_epi32((int)at));
        const unsigned good = read_ids(text + at, ends, wanted, &ids);
        _mm512_storeu_si512(out + i, ids);
        if (__builtin_expect(good != wanted, 0))
            return i + __builtin_ctz(~good);
    }
    return n;
}

#else

bool fl_wide(void)
{
    return false;
}

void fl_wide_bits(bool blanks, const char *text, int n, fl_bits *out)
{
}

void fl_wide_list(const uint64_t *set, int n, uint32_t base, uint32_t *out)
{
}

int64_t fl_wide_floats(const char *text, uint32_t at, const uint32_t *end,
                       int64_t n, float *out)
{
    return 0;
}

int fl_wide_ids(const char *text, uint32_t at, const uint32_t *end, int n,
                int64_t out[FL_WIDE_IDS])
{
    return 0;
}

#endif
