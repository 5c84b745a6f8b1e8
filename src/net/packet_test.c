/* SPDX-License-Identifier: Apache-2.0 */
#include "net/packet.h"

#include "base/test.h"
#include "base/vec.h"

static void count_drop(void *owner)
{
    ++*(int *)owner;
}

/* "0123456789", spread over five spans, the third one copied. */
static fl_packet *scattered(void)
{
    fl_packet *p = fl_packet_new();
    fl_packet_lend(p, "0", 1, NULL, NULL);
    fl_packet_lend(p, "123", 3, NULL, NULL);
    fl_packet_copy(p, "45", 2);
    fl_packet_lend(p, "", 0, NULL, NULL);
    fl_packet_lend(p, "678", 3, NULL, NULL);
    fl_packet_copy(p, "9", 1);
    return p;
}

static void new_packet_is_empty(void)
{
    const fl_span *spans;
    fl_span s;
    size_t cursor = 0;
    fl_packet *p = fl_packet_new();
    CHECK_INT(fl_packet_size(p), 0);
    CHECK_INT(fl_packet_spans(p, &spans), 0);
    CHECK(!fl_bytes_next((fl_bytes){p, 0, 0}, &cursor, &s));
    fl_packet_unref(p);
    fl_packet_unref(NULL);
}

static void copies_become_one_span(void)
{
    const fl_span *spans;
    char word[] = "abc";
    fl_packet *p = fl_packet_new();
    for (int i = 0; i < 3; i++, word[0]++)
        fl_packet_copy(p, word, 3);
    CHECK_INT(fl_packet_spans(p, &spans), 1);
    CHECK_INT(spans[0].size, 9);
    CHECK(!memcmp(spans[0].at, "abcbbccbc", 9));
    fl_packet_unref(p);
}

static void copies_of_any_size_stay_where_they_are(void)
{
    enum {
        N = 40000
    };
    char *bytes = fl_mem_alloc(N), *back = fl_mem_alloc(N);
    fl_packet *p = fl_packet_new();
    const fl_span *spans;
    for (int i = 0; i < N; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    for (int at = 0, step = 1; at < N; at += step, step = step * 2 % 16381)
        fl_packet_copy(p, bytes + at, (size_t)(at + step < N ? step : N - at));
    CHECK_INT(fl_packet_size(p), N);
    CHECK(fl_packet_spans(p, &spans) < 16);
    fl_bytes_copy((fl_bytes){p, 0, N}, 0, back, N);
    CHECK(!memcmp(back, bytes, N));
    fl_packet_unref(p);
    fl_mem_free(bytes);
    fl_mem_free(back);
}

static void lent_memory_is_not_copied(void)
{
    const fl_span *spans;
    static const char big[1000];
    fl_packet *p = fl_packet_new();
    fl_packet_copy(p, "head", 4);
    fl_packet_lend(p, big, sizeof big, NULL, NULL);
    fl_packet_copy(p, "tail", 4);
    CHECK_INT(fl_packet_spans(p, &spans), 3);
    CHECK(spans[1].at == big && spans[1].size == sizeof big);
    CHECK_INT(fl_packet_size(p), 1008);
    fl_packet_unref(p);
}

static void last_reference_drops_each_loan_once(void)
{
    int drops[2] = {0};
    fl_packet *p = fl_packet_new();
    fl_packet_lend(p, "abc", 3, count_drop, &drops[0]);
    fl_packet_lend(p, NULL, 0, count_drop,
                   &drops[1]); /* empty memory, but an owner */
    CHECK(fl_packet_ref(p) == p);
    fl_packet_unref(p);
    CHECK_INT(drops[0] + drops[1], 0);
    fl_packet_unref(p);
    CHECK_INT(drops[0], 1);
    CHECK_INT(drops[1], 1);
}

static void bytes_are_copied_across_spans(void)
{
    fl_packet *p = scattered();
    char out[11] = {0};
    for (size_t at = 0; at <= 10; at++) {
        for (size_t n = 0; at + n <= 10; n++) {
            memset(out, 0, sizeof out);
            fl_bytes_copy((fl_bytes){p, at, 10 - at}, 0, out, n);
            CHECK(!memcmp(out, &"0123456789"[at], n) && !out[n]);
        }
    }
    fl_bytes_copy((fl_bytes){p, 2, 6}, 3, out, 3);
    CHECK(!memcmp(out, "567", 3));
    fl_packet_unref(p);
}

static void bytes_come_piece_by_piece(void)
{
    static const char *const want[] = {"3", "45", "67"};
    fl_packet *p = scattered();
    fl_span s;
    size_t cursor = 0;
    for (int i = 0; i < 3; i++) {
        CHECK(fl_bytes_next((fl_bytes){p, 3, 5}, &cursor, &s));
        CHECK_INT(s.size, strlen(want[i]));
        CHECK(!memcmp(s.at, want[i], s.size));
    }
    CHECK(!fl_bytes_next((fl_bytes){p, 3, 5}, &cursor, &s));
    fl_packet_unref(p);
}

const fl_test fl_tests[] = {
    {"packet is empty when new", new_packet_is_empty},
    {"packet copies become one span", copies_become_one_span},
    {"packet copies of any size stay", copies_of_any_size_stay_where_they_are},
    {"packet does not copy what is lent", lent_memory_is_not_copied},
    {"packet drops each loan once", last_reference_drops_each_loan_once},
    {"bytes are copied across spans", bytes_are_copied_across_spans},
    {"bytes come piece by piece", bytes_come_piece_by_piece},
    {0},
};
