/* SPDX-License-Identifier: Apache-2.0 */
#include "data/wide.h"

#include "base/random.h"
#include "base/test.h"
#include "data/number.h"
#include "data/parse.h"
#include "data/test_data.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TOKENS = 64,
    TEXT = 8192
};

/* Tokens with one blank behind each. */
typedef struct line {
    char text[TEXT + FL_TEXT_SLACK];
    uint32_t used, end[TOKENS];
    int n;
} line;

static void add_token(line *l, const char *token)
{
    const size_t len = strlen(token);
    memcpy(l->text + l->used, token, len);
    l->used += (uint32_t)len;
    l->end[l->n++] = l->used;
    l->text[l->used++] = ' ';
}

static const char *token_at(const line *l, int i, char out[256])
{
    const uint32_t at = i ? l->end[i - 1] + 1 : 0;
    snprintf(out, 256, "%.*s", (int)(l->end[i] - at), l->text + at);
    return out;
}

static void random_digits(fl_rng *rng, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (char)('0' + fl_rng_next(rng) % 10);
    out[n] = 0;
}

/* --- floats --- */

/* How many were read, after a look at their bits. */
static int64_t read_floats(const line *l)
{
    float got[TOKENS];
    char text[256];
    const int64_t n = fl_wide_floats(l->text, 0, l->end, l->n, got);
    for (int64_t i = 0; i < n; i++) {
        const float want = strtof(token_at(l, (int)i, text), NULL);
        if (memcmp(&got[i], &want, sizeof want))
            CHECK_STR(text, "what strtof says");
    }
    return n;
}

static void floats_have_the_bits_of_strtof(void)
{
    fl_rng rng = fl_rng_of(1);
    if (!fl_wide())
        return;
    for (int round = 0; round < 20000; round++) {
        line l = {0};
        while (l.n < 8) {
            char text[64] = "0.";
            text[0] = (char)('0' + fl_rng_next(&rng) % 10);
            random_digits(&rng, 1 + fl_rng_next(&rng) % 29, text + 2);
            add_token(&l, text);
        }
        CHECK_INT(read_floats(&l), 8);
    }
}

/* Four are read at a time, up to the first that is odd. */
static void odd_floats_are_left(void)
{
    static const char *const odd[] = {
        "-1.5",
        "12.5",
        "1e3",
        "1.2.3",
        "nan",
        "0,5",
        "1.5e-3",
        ".5",
        "0.1234567890123456789012345678901",   /* 33 bytes */
        "0.000000000000000000000000000000001", /* 35 bytes */
        "1.000000059604644775390625",          /* the middle of two floats */
        "1.00000017881393432617187499",
    };
    if (!fl_wide())
        return;
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        for (int at = 0; at < 13; at++) {
            line l = {0};
            for (int i = 0; i < 13; i++)
                add_token(&l, i == at ? odd[k] : i % 2 ? "0.25" : "7");
            CHECK_INT(read_floats(&l), at < 12 ? at / 4 * 4 : 12);
        }
}

static void long_tokens_do_not_wrap(void)
{
    char text[300];
    fl_rng rng = fl_rng_of(2);
    if (!fl_wide())
        return;
    for (size_t n = 31; n < 290; n++) {
        line l = {0};
        random_digits(&rng, n, text);
        text[1] = '.';
        for (int i = 0; i < 4; i++)
            add_token(&l, i == 2 ? text : "0.5");
        CHECK_INT(read_floats(&l), n < 32 ? 4 : 0);
    }
}

/* --- ids --- */

static void ids_are_read_in_pairs(void)
{
    fl_rng rng = fl_rng_of(3);
    if (!fl_wide())
        return;
    for (int round = 0; round < 2000; round++) {
        const int n = 1 + round % 32;
        int64_t want[TOKENS], got[FL_WIDE_IDS];
        line l = {0};
        for (int i = 0; i < n; i++) {
            char text[16];
            random_digits(&rng, 1 + fl_rng_next(&rng) % 8, text);
            want[i] = atoll(text);
            add_token(&l, "1");
            add_token(&l, text);
        }
        CHECK_INT(fl_wide_ids(l.text, 0, l.end, n, got), n);
        for (int i = 0; i < n; i++)
            CHECK_INT(got[i], want[i]);
    }
}

static void odd_ids_are_left(void)
{
    static const char *const odd[][2] = {
        {"2", "5"},  {"1", "123456789"}, {"1", "-1"},       {"1", "1.0"},
        {"01", "5"}, {"1", "1234567x"},  {"1", "/"},        {"1", ":"},
        {"x", "5"},  {"1", " 5"},        {" 1", "5"},       {"1", "\xb0"},
        {"", "5"},   {"11", "7"},        {"1", "\x01\x02"},
    };
    if (!fl_wide())
        return;
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++)
        for (int at = 0; at < 20; at++) {
            int64_t got[FL_WIDE_IDS];
            line l = {0};
            for (int i = 0; i < 20; i++) {
                add_token(&l, i == at ? odd[k][0] : "1");
                add_token(&l, i == at ? odd[k][1] : "12345678");
            }
            CHECK_INT(fl_wide_ids(l.text, 0, l.end, 20, got), at);
            for (int i = 0; i < at; i++)
                CHECK_INT(got[i], 12345678);
        }
}

/* --- lines --- */

/* Lines of many slots, of which one may be odd, as text of their tensors. */
static void add_slots(fl_rng *rng, int n, fl_str *text)
{
    static const char *const odd[] = {
        "1 x",
        "2 5 6",
        "1  7",
        "0",
        "1 18446744073709551615",
        "1 1 1 1",
        "1",
        "1 5 \t1 6",
        "1 123456789",
        "3 1 2 3",
    };
    fl_str_add(text, "5");
    for (int i = 0; i < 5; i++)
        fl_str_printf(text, " %s%u.%u", fl_rng_next(rng) % 20 ? "" : "-",
                      fl_rng_next(rng) % 10, fl_rng_next(rng) % 100000);
    for (int i = 0; i < n; i++)
        if (fl_rng_next(rng) % 40)
            fl_str_printf(text, " 1 %u", fl_rng_next(rng) % 100000000);
        else
            fl_str_printf(text, " %s", odd[fl_rng_next(rng) % 10]);
    fl_str_add(text, "\n");
}

/* What a line became: its values, or its flaw. */
static void read_line(const fl_schema *s, bool wide, const fl_str *text,
                      fl_str *out)
{
    fl_tensor t[TOKENS] = {0};
    fl_index ix = {.narrow = !wide};
    fl_batch b;
    fl_flaw flaw;
    fl_batch_init(&b, s);
    b.wide = wide;
    CHECK_OK(fl_batch_begin(&b, t, 1));
    CHECK(fl_index_scan(&ix, FL_SPLIT_BLANKS, text->at, (size_t)text->n));
    const fl_line l = {text->at, 0, ix.line[0].newline, ix.end,
                       ix.line[0].tokens};
    if (fl_multislot.row(&fl_multislot, &l, &b, &flaw))
        fl_str_printf(out, "%u: %s", flaw.at, flaw.rule);
    for (int i = 0; i < s->n_columns; i++)
        for (int64_t k = 0; k < b.column[i].n; k++)
            if (i)
                fl_str_printf(out, " %lld", (long long)b.column[i].i64[k]);
            else
                fl_str_printf(out, " %a", (double)b.column[i].f32[k]);
    for (int i = 0; i < s->n_columns; i++)
        fl_tensor_fini(&t[i]);
    fl_index_fini(&ix);
    fl_batch_fini(&b);
}

static void lines_are_the_same(void)
{
    static const char *const name[] = {"a", "b", "c", "d", "e", "f", "g",
                                       "h", "i", "j", "k", "l", "m", "n",
                                       "o", "p", "q", "r", "s", "t"};
    fl_data_slot slots[21] = {{"x", FL_F32, .shape = {2, {-1, 5}}}};
    fl_rng rng = fl_rng_of(4);
    fl_arena *a = fl_arena_new();
    for (int i = 0; i < 20; i++)
        slots[1 + i] = (fl_data_slot){name[i], FL_I64, .sparse = true};
    slots[11].unused = true;
    for (int round = 0; round < 1000 && fl_wide(); round++) {
        fl_str text = {0}, wide = {0}, narrow = {0};
        fl_schema s;
        const int n = 1 + round % 20;
        CHECK_OK(fl_schema_init(&s, 1 + n, slots, a));
        add_slots(&rng, n, &text);
        const int64_t used = text.n;
        for (int i = 0; i < FL_TEXT_SLACK; i++)
            fl_str_add(&text, "7");
        text.n = used;
        read_line(&s, true, &text, &wide);
        read_line(&s, false, &text, &narrow);
        CHECK_STR(wide.at, narrow.at);
        fl_str_fini(&text);
        fl_str_fini(&wide);
        fl_str_fini(&narrow);
    }
    fl_arena_free(a);
}

const fl_test fl_tests[] = {
    {"wide floats have the bits of strtof", floats_have_the_bits_of_strtof},
    {"wide floats end before an odd one", odd_floats_are_left},
    {"wide floats leave tokens of any length", long_tokens_do_not_wrap},
    {"wide ids are read in pairs", ids_are_read_in_pairs},
    {"wide ids end before an odd pair", odd_ids_are_left},
    {"multislot is the same with and without wide vectors", lines_are_the_same},
    {0},
};
