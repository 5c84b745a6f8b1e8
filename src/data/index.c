/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - bits of separators, and lists of where they are set. */
#include "data/index.h"

#include "base/vec.h"
#include "data/number.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    BLOCK = 64,     /* bytes: as many as a word has bits */
    AT_A_TIME = 16, /* ends written without asking whether there are so many */
};

typedef struct bits {
    uint64_t separator, newline;
} bits;

#ifdef __SSE2__

/* ' ', and \t \n \v \f \r, which are 9 to 13. */
static inline __m128i is_blank(__m128i x)
{
    const __m128i from9 = _mm_sub_epi8(x, _mm_set1_epi8(9));
    const __m128i control =
        _mm_cmpeq_epi8(_mm_min_epu8(from9, _mm_set1_epi8(4)), from9);
    return _mm_or_si128(control, _mm_cmpeq_epi8(x, _mm_set1_epi8(' ')));
}

static inline bits find_bits(fl_split split, const char *p)
{
    bits b = {0, 0};
    for (int i = 0; i < BLOCK; i += 16) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(p + i));
        const __m128i newline = _mm_cmpeq_epi8(x, _mm_set1_epi8('\n'));
        const __m128i separator =
            split == FL_SPLIT_BLANKS
                ? is_blank(x)
                : _mm_or_si128(newline, _mm_cmpeq_epi8(x, _mm_set1_epi8('\t')));
        b.separator |= (uint64_t)(uint32_t)_mm_movemask_epi8(separator) << i;
        b.newline |= (uint64_t)(uint32_t)_mm_movemask_epi8(newline) << i;
    }
    return b;
}

#else

static inline bits find_bits(fl_split split, const char *p)
{
    bits b = {0, 0};
    for (int i = 0; i < BLOCK; i++) {
        const unsigned char c = (unsigned char)p[i];
        const bool blank = split == FL_SPLIT_BLANKS
                               ? c == ' ' || (c >= 9 && c <= 13)
                               : c == '\t' || c == '\n';
        b.separator |= (uint64_t)blank << i;
        b.newline |= (uint64_t)(c == '\n') << i;
    }
    return b;
}

#endif

static inline uint32_t lowest(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set | (uint64_t)1 << 63);
}

/* Where the bits are set, plus base. How many varies from block to block and a
 * branch could not guess it: 16 are always written, the surplus is rubbish
 * that the next block overwrites. */
static inline void list_bits(uint64_t set, uint32_t base, uint32_t *out)
{
    for (int i = 0; i < AT_A_TIME; i++, set &= set - 1)
        out[i] = base + lowest(set);
    for (out += AT_A_TIME; set; set &= set - 1)
        *out++ = base + lowest(set);
}

void fl_index_fini(fl_index *ix)
{
    fl_mem_free(ix->end);
    ix->end = NULL;
    ix->cap = ix->n_lines = 0;
}

static inline void add_lines(fl_index *ix, bits b, uint64_t ends,
                             uint32_t tokens, uint32_t base)
{
    for (; b.newline; b.newline &= b.newline - 1) {
        const uint64_t upto = b.newline ^ (b.newline - 1);
        ix->line[ix->n_lines++] = (fl_line_end){
            .tokens = tokens + (uint32_t)__builtin_popcountll(ends & upto),
            .newline = base + lowest(b.newline),
        };
    }
}

static inline bool scan_text(fl_index *ix, fl_split split, const char *text,
                             size_t n)
{
    uint32_t tokens = 0;
    uint64_t before = 1; /* was the byte before a separator? */
    size_t i = 0;
    ix->n_lines = 0;
    for (; i < n && ix->n_lines <= FL_INDEX_LINES - BLOCK; i += BLOCK) {
        bits b = find_bits(split, text + i);
        const uint64_t inside =
            n - i < BLOCK ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0;
        b.separator &= inside;
        b.newline &= inside;
        uint64_t ends = b.separator;
        if (split == FL_SPLIT_BLANKS) {
            ends &= ~(b.separator << 1 | before);
            before = b.separator >> 63;
        }
        fl_vec_reserve((void **)&ix->end, &ix->cap, tokens + BLOCK + AT_A_TIME,
                       sizeof *ix->end);
        list_bits(ends, (uint32_t)i, ix->end + tokens);
        add_lines(ix, b, ends, tokens, (uint32_t)i);
        tokens += (uint32_t)__builtin_popcountll(ends);
    }
    return i >= n;
}

FL_CLONES
static bool scan_blanks(fl_index *ix, const char *text, size_t n)
{
    return scan_text(ix, FL_SPLIT_BLANKS, text, n);
}

FL_CLONES
static bool scan_tabs(fl_index *ix, const char *text, size_t n)
{
    return scan_text(ix, FL_SPLIT_TABS, text, n);
}

bool fl_index_scan(fl_index *ix, fl_split split, const char *text, size_t n)
{
    return split == FL_SPLIT_BLANKS ? scan_blanks(ix, text, n)
                                    : scan_tabs(ix, text, n);
}
