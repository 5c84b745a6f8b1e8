/* SPDX-License-Identifier: Apache-2.0 */
/* Malformed messages are refused, each with its own error message. */
#include "base/random.h"
#include "base/test.h"
#include "wire/codec.h"
#include "wire/test_packet.h"

#include <stdlib.h>

static const char *const peer = "10.0.0.7:4711";

/* Decode the bytes in spans of `piece` bytes, and free the result. */
static fl_err judge(const void *bytes, size_t n, size_t piece)
{
    fl_arena *a = fl_arena_new();
    fl_packet *p = test_cut(bytes, n, piece);
    fl_msg m = {0};
    fl_err err = fl_msg_decode(peer, p, a, &m);
    if (!err && m.blob.owner)
        fl_parcel_scan(fl_parcel_of(m.blob));
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_packet_unref(p);
    fl_arena_free(a);
    return err;
}

/* Check that the bytes are refused with the peer's name, for all sizes of
 * spans.
 */
static void refuse(const void *bytes, size_t n, const char *sentence)
{
    for (size_t piece = 1; piece <= n + 1; piece += piece + n / 3) {
        CHECK_ERR(judge(bytes, n, piece), FL_EPROTO, sentence);
        CHECK(strstr(fl_errmsg(), peer) != NULL);
    }
}

static void add_hex(fl_str *s, const char *hex)
{
    for (; *hex; hex += 2) {
        const char pair[] = {hex[0], hex[1], 0};
        fl_str_bytes(s, &(char){(char)strtol(pair, NULL, 16)}, 1);
    }
}

#define PUSH "0a020806" /* a control: kind PUSH */

typedef struct bad {
    const char *hex, *sentence;
} bad;

static void a_message_without_a_proper_control_is_refused(void)
{
    static const bad table[] = {
        {"", "control is missing"},
        {"1a00", "control is missing"}, /* unknown fields are skipped */
        {"0a00", "control.kind is missing"},
        {"0a020800", "control.kind is missing"},
        {"0a020863", "control.kind has a number that has no meaning"},
        {PUSH PUSH, "control occurs twice"},
        {"0806", "field 1: wire type 0 came, 2 was expected"},
        {"0a0408060806", "control.kind occurs twice"},
        {"0a060806aa0101ff", "control.text is not UTF-8"},
        {"0a060806aa010100", "control.text holds a zero byte"},
        {"0a0908069a010420002001", "control.member[0].g occurs twice"},
        {"0a0408062801", "control.session_lo has another wire type"},
        {"0a050806980101", "control.member has another wire type"},
        {"0a020a00", "control.kind has another wire type"},
        {"0a060806c2010101", "control.seen is cut off"},
        {"0a02", "field 1: it claims 2 bytes, 0 are left"},
        {"0a8080808008", "field 1: it claims 2147483648 bytes, 0 are left"},
        {"0affffffffffffffffff01", "it claims 18446744073709551615 bytes"},
        {"ffffffffffffffffffffff", "a number has more than 10 bytes"},
        {"80", "a number is cut off after 1 bytes"},
        {"0600", "a field has the number 0"},
        {"0b", "field 1 has the unknown wire type 3"},
        {"09000000", "field 1: 3 bytes are left of its 8"},
        {"0d000000", "field 1: 3 bytes are left of its 4"},
        {0},
    };
    for (const bad *b = table; b->hex; b++) {
        fl_str s = {0};
        add_hex(&s, b->hex);
        refuse(s.at, s.n, b->sentence);
        fl_str_fini(&s);
    }
}

/* A push with a valid tensor, then one with these fields. */
static fl_str around(const char *fields)
{
    fl_str s = {0}, t = {0};
    add_hex(&s, PUSH "12030a0178");
    add_hex(&t, fields);
    CHECK(t.n < 128);
    fl_str_bytes(&s, &(char[]){0x12, (char)t.n}, 2);
    fl_str_bytes(&s, t.at, t.n);
    fl_str_fini(&t);
    return s;
}

#define W "0a0177" /* name: "w" */

static void a_tensor_that_contradicts_itself_is_refused(void)
{
    static const bad table[] = {
        {"", "name is missing (tensor 1)"},
        {"0a00", "name is missing (tensor 1)"},
        {"0a02770a", "name: it is not UTF-8, or has control"},
        {"0a01ff", "name: it is not UTF-8"},
        {"0a027700", "name: it is not UTF-8"},
        {W W, "name occurs twice (tensor 1, w)"},
        {"0801", "name: wire type 0 came, 2 was expected"},
        {W "1009", "kind: 9 came, expected 0, 7 or 8"},
        {W "1807", "dtype: 7 is not an element type"},
        {W "18858080808001", "is not an element type"}, /* 2^35 + 5 */
        {W "2200220b0101010101010101010101", "dim: there are more than 9"},
        {W "20ffffffffffffffffff01", "dim: -1 is negative"},
        {W "28ffffffffffffffffff01", "height: -1 is negative"},
        {W "30ffffffffffffffffff01", "first: -1 is negative"},
        {W "2a00", "height: wire type 2 came, 0 was expected"},
        {W "220180", "a number is cut off after 1 bytes"},
        {W "7a0100", "data: 1 bytes came with a bare name"},
        {W "7a007a00", "data occurs twice"},
        {W "7a8080808008", "it claims 2147483648 bytes, 0 are left"},
        {W "10071805220202037a0400000000",
         "data: 4 bytes came, f32[2,3] has 24 (tensor 1, w)"},
        {W "1007180522007a00", "data: 0 bytes came, f32[] has 4"},
        {W "1007180522068080808020047a00", /* 2^33 rows of 4 */
         "data: 0 bytes came, f32[8589934592,4] has 137438953472"},
        {W "100718052212808080808080808040808080808080808040",
         "dim: f32[4611686018427387904,4611686018427387904]"},
        {W "100718052213" /* a dimension of 0 does not hide an overflow */
           "00808080808080808040808080808080808040",
         "from element 0 on is too large"},
        {W "1007180522010030ffffffffffffffff7f", "is too large"},
        {W "1008180522007a00", "dim: there are 0, selected rows need 1"},
        {W "10081805220201017a0400000000",
         "rows: 0 bytes came, 1 rows have 8 each"},
        {W "10081805220201013a0400000000", "rows: 4 bytes came, 1 rows"},
        {W "3a080000000000000000", "rows: 8 bytes came, 0 rows"},
        {W "1007180522003a080000000000000000", "rows: 8 bytes came, 0 rows"},
        {W "22020101", "dim: there are 2, rows wanted are 1"},
        {W "2201023a080000000000000000", "rows: 8 bytes came, 2 rows"},
        {W "22010128013a00", "rows: 0 bytes came, 1 rows"}, /* ids */
        {W "22010130ffffffffffffffff7f", "is too large"},
        {0},
    };
    for (const bad *b = table; b->hex; b++) {
        fl_str s = around(b->hex);
        refuse(s.at, s.n, b->sentence);
        fl_str_fini(&s);
    }
}

static void what_other_encoders_may_write_is_accepted(void)
{
    static const char *const good[] = {
        W "10071805"
          "20022001"
          "7a080000000000000000", /* dim not packed */
        "7a0400000000"
        "220101"
        "1805"
        "1007" W, /* fields in another order */
        W "10071805"
          "220101"
          "3000"
          "2800"
          "3a00"
          "7a0400000000", /* zeros */
        W "a20601ff"
          "a50600000000"
          "a1060000000000000000", /* unknown */
        W "1007"
          "1805"
          "2200"
          "7a0400000000", /* a number without dims */
        W "220100",       /* no rows are wanted */
        W "2201093007",   /* elements 7 to 15 are wanted */
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        fl_str s = around(good[i]);
        for (size_t piece = 1; piece < 8; piece += 3)
            CHECK_OK(judge(s.at, s.n, piece));
        fl_str_fini(&s);
    }
}

static void long_names_and_long_controls_are_refused(void)
{
    fl_str s = {0};
    add_hex(&s, PUSH "1284080a8108"); /* a name of 1025 bytes */
    for (int i = 0; i < 1025; i++)
        fl_str_add(&s, "n");
    refuse(s.at, s.n, "name: 1025 bytes are more than 1024");
    s.n = 0;
    add_hex(&s, "0a818040"); /* 1 MiB and a byte */
    for (int i = 0; i < 1 << 20; i++)
        fl_str_bytes(&s, "", 1);
    fl_str_bytes(&s, "", 1);
    CHECK_ERR(judge(s.at, s.n, s.n), FL_EPROTO,
              "control: 1048577 bytes are more than 1048576");
    fl_str_fini(&s);
}

/* --- short messages that claim large sizes --- */

/* Check that `start` followed by many copies of `hex` is refused. Returns how
 * many allocations that took. */
static uint64_t flood(const char *start, const char *hex, int times,
                      const char *sentence)
{
    fl_str s = {0}, unit = {0};
    add_hex(&s, start);
    add_hex(&unit, hex);
    for (int i = 0; i < times; i++)
        fl_str_bytes(&s, unit.at, unit.n);
    const uint64_t before = fl_mem_count();
    CHECK_ERR(judge(s.at, s.n, s.n), FL_EPROTO, sentence);
    const uint64_t cost = fl_mem_count() - before;
    fl_str_fini(&unit);
    fl_str_fini(&s);
    return cost;
}

static void floods_of_empty_messages_take_no_memory(void)
{
    const int most = 64; /* allocations */
    CHECK(flood(PUSH, "1200", 1 << 20, "name is missing") < most);
    CHECK(flood(PUSH, "12030a0177", 400000, "there are more than 16384") <
          most);
    CHECK(flood("0ac0cf24", "9a0100", 200000,
                "control.member has too many elements") < most);
    CHECK(flood("0a80a61d", "980601", 160000,
                "control: there are more than 32768 fields") < most);
    CHECK(flood("", PUSH, 500000, "control occurs twice") < most);
}

/* --- random changes --- */

static fl_str honest(void)
{
    static const float x[] = {1, 2, 3, 4, 5, 6};
    static const int64_t row[] = {4, 9}, d23[] = {2, 3}, d2[] = {2};
    fl_shape s23 = fl_shape_of(2, d23), s2 = fl_shape_of(1, d2);
    fl_tensor t = fl_tensor_view(FL_F32, &s23, x);
    fl_rows r = {10, 2, fl_tensor_view(FL_I64, &s2, row), t};
    const fl_member member[] = {{0, {1, 2}, 3}, {1, {4, 5}, 6}};
    fl_parcel *p = fl_parcel_new();
    fl_parcel_add(p, "fc_0.w_0@GRAD", &t);
    fl_parcel_add_rows(p, "emb@GRAD", &r);
    fl_parcel_want(p, "emb", 2, row);
    fl_msg m = {.kind = FL_MSG_PUSH,
                .session = {1, 2},
                .seq = 300,
                .member = member,
                .n_member = 2,
                .text = "why",
                .blob = fl_parcel_blob(p)};
    fl_str s = test_bytes(fl_msg_encode(&m));
    fl_keeper_parcels.drop(NULL, m.blob);
    fl_parcel_unref(p);
    return s;
}

static void a_message_cut_short_is_refused(void)
{
    fl_str s = honest();
    int whole = 0; /* prefixes that end after the control or a tensor */
    for (size_t n = 0; n <= s.n; n++) {
        const fl_err err = judge(s.at, n, n + 1);
        CHECK(!err || err == FL_EPROTO);
        whole += !err;
    }
    CHECK_INT(whole, 4);
    fl_str_fini(&s);
}

static void changed_bytes_are_read_or_refused(void)
{
    fl_str s = honest();
    char *copy = fl_mem_alloc(s.n);
    fl_rng r = fl_rng_of(2018);
    int refused = 0;
    for (int i = 0; i < 20000; i++) {
        memcpy(copy, s.at, s.n);
        for (uint32_t j = fl_rng_next(&r) % 4 + 1; j; j--)
            copy[fl_rng_next(&r) % s.n] = (char)(fl_rng_next(&r) >> 8);
        const fl_err err = judge(copy, s.n, 1 + fl_rng_next(&r) % s.n);
        CHECK(!err || err == FL_EPROTO);
        CHECK(!err || strstr(fl_errmsg(), peer));
        refused += !!err;
    }
    CHECK(refused > 5000 && refused < 20000);
    fl_mem_free(copy);
    fl_str_fini(&s);
}

static void noise_is_refused(void)
{
    char noise[64];
    fl_rng r = fl_rng_of(7);
    for (int i = 0; i < 5000; i++) {
        const size_t n = fl_rng_next(&r) % sizeof noise;
        for (size_t j = 0; j < n; j++)
            noise[j] = (char)(fl_rng_next(&r) >> 8);
        CHECK_ERR(judge(noise, n, 5), FL_EPROTO, peer);
    }
}

const fl_test fl_tests[] = {
    {"a message without a proper control is refused",
     a_message_without_a_proper_control_is_refused},
    {"a tensor that contradicts itself is refused",
     a_tensor_that_contradicts_itself_is_refused},
    {"what other encoders may write is accepted",
     what_other_encoders_may_write_is_accepted},
    {"long names and long controls are refused",
     long_names_and_long_controls_are_refused},
    {"floods of empty messages take no memory",
     floods_of_empty_messages_take_no_memory},
    {"a message cut short is refused", a_message_cut_short_is_refused},
    {"changed bytes are read or refused", changed_bytes_are_read_or_refused},
    {"noise is refused", noise_is_refused},
    {0},
};
