/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - finds separators as bit masks, and lists their positions. */
#include "data/index.h"

#include "base/clones.h"
#include "base/vec.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    BLOCK = FL_WIDE_BLOCK,
    CHUNK = 32,     /* blocks whose masks are made before ends are listed */
    AT_A_TIME = 16, /* ends that are always written, whatever their number */
};

#ifdef __SSE2__

/* ' ', and \t \n \v \f \r, which are 9 to 13. */
static inline __m128i is_blank(__m128i x)
{
    const __m128i from9 = _mm_sub_epi8(x, _mm_set1_epi8(9));
    const __m128i control =
        _mm_cmpeq_epi8(_mm_min_epu8(from9, _mm_set1_epi8(4)), from9);
    return _mm_or_si128(control, _mm_cmpeq_epi8(x, _mm_set1_epi8(' ')));
}

static inline fl_bits find_bits(fl_split split, const char *p)
{
    fl_bits b = {0, 0};
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

static inline fl_bits find_bits(fl_split split, const char *p)
{
    fl_bits b = {0, 0};
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

static inline uint32_t lowest_bit(uint64_t set)
{
    return (uint32_t)__builtin_ctzll(set | (uint64_t)1 << 63);
}

/* List the positions of the bits that are set, plus base. Their number varies,
 * so that a branch would be mispredicted: 16 entries are always written, and
 * the next block overwrites the surplus. */
static inline void list_bits(uint64_t set, uint32_t base, uint32_t *out)
{
    for (int i = 0; i < AT_A_TIME; i++, set &= set - 1)
        out[i] = base + lowest_bit(set);
    for (out += AT_A_TIME; set; set &= set - 1)
        *out++ = base + lowest_bit(set);
}

FL_CLONES static void find_chunk(fl_split split, const char *text, int n,
                                 fl_bits *out)
{
    for (int i = 0; i < n; i++)
        out[i] = find_bits(split, text + i * BLOCK);
}

FL_CLONES static void list_chunk(const uint64_t *set, int n, uint32_t base,
                                 uint32_t *out)
{
    for (int i = 0; i < n; i++, base += BLOCK) {
        list_bits(set[i], base, out);
        out += __builtin_popcountll(set[i]);
    }
}

void fl_index_fini(fl_index *ix)
{
    fl_mem_free(ix->end);
    ix->end = NULL;
    ix->cap = ix->n_lines = 0;
}

static inline void add_lines(fl_index *ix, uint64_t newlines, uint64_t ends,
                             uint32_t tokens, uint32_t base)
{
    for (; newlines; newlines &= newlines - 1) {
        const uint64_t upto = newlines ^ (newlines - 1);
        ix->line[ix->n_lines++] = (fl_line_end){
            .tokens = tokens + (uint32_t)__builtin_popcountll(ends & upto),
            .newline = base + lowest_bit(newlines),
        };
    }
}

/* The state of the scan before a block. */
typedef struct scan {
    size_t at;       /* where the block starts */
    uint32_t tokens; /* tokens that have ended so far */
    uint64_t before; /* 1: the byte before the block is a separator */
} scan;

/* Add the ends of tokens in a block, and the lines that end in it. */
static inline uint64_t add_block(fl_index *ix, fl_split split, fl_bits b,
                                 scan *s)
{
    uint64_t ends = b.separator;
    if (split == FL_SPLIT_BLANKS) {
        ends &= ~(b.separator << 1 | s->before);
        s->before = b.separator >> (BLOCK - 1);
    }
    add_lines(ix, b.newline, ends, s->tokens, (uint32_t)s->at);
    s->tokens += (uint32_t)__builtin_popcountll(ends);
    s->at += BLOCK;
    return ends;
}

/* Make the masks of n blocks. Bits after the end of the text, which has `left`
 * bytes, are 0. */
static void find_all(bool wide, fl_split split, const char *text, size_t left,
                     int n, fl_bits *b)
{
    if (wide)
        fl_wide_bits(split == FL_SPLIT_BLANKS, text, n, b);
    else
        find_chunk(split, text, n, b);
    if (left < (size_t)n * BLOCK) {
        const uint64_t inside = ((uint64_t)1 << left % BLOCK) - 1;
        b[n - 1].separator &= inside;
        b[n - 1].newline &= inside;
    }
}

FL_CLONES
bool fl_index_scan(fl_index *ix, fl_split split, const char *text, size_t n)
{
    const bool wide = !ix->narrow && fl_wide();
    scan s = {.before = 1};
    ix->n_lines = 0;
    while (s.at < n && ix->n_lines <= FL_INDEX_LINES - BLOCK) {
        fl_bits b[CHUNK];
        uint64_t ends[CHUNK];
        const scan was = s;
        const size_t left = n - s.at, blocks = (left + BLOCK - 1) / BLOCK;
        const int most = blocks < CHUNK ? (int)blocks : CHUNK;
        int k = 0;
        find_all(wide, split, text + s.at, left, most, b);
        for (; k < most && ix->n_lines <= FL_INDEX_LINES - BLOCK; k++)
            ends[k] = add_block(ix, split, b[k], &s);
        fl_vec_reserve((void **)&ix->end, &ix->cap,
                       (int64_t)s.tokens + FL_WIDE_BLOCK, sizeof *ix->end);
        if (wide)
            fl_wide_list(ends, k, (uint32_t)was.at, ix->end + was.tokens);
        else
            list_chunk(ends, k, (uint32_t)was.at, ix->end + was.tokens);
    }
    return s.at >= n;
}
