/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "graph/test_ops.h"

#include <stdio.h>

/* --- there and back --- */

static void check_bytes(const fl_program *p, const void *want, size_t n)
{
    void *bytes = NULL;
    size_t size = 0;
    CHECK_OK(fl_program_encode(p, &bytes, &size));
    CHECK_INT((int64_t)size, (int64_t)n);
    CHECK(!memcmp(bytes, want, n));
    fl_mem_free(bytes);
}

static void a_file_of_the_original_comes_back(void)
{
    fl_str file = {0};
    fl_test_original("__model__", &file);
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_decode(r, "__model__", file.at, file.n, &p));
    char *text = fl_program_brief(p);
    CHECK_STR(text, "block 0\n"
                    "  var fetch: fetch_list persistable\n"
                    "  var feed: feed_minibatch persistable\n"
                    "  var x: f32[-1,13]\n"
                    "  var fc_0.b_0: f32[1] persistable\n"
                    "  var fc_0.tmp_1: f32[-1,1]\n"
                    "  var fc_0.tmp_0: f32[-1,1]\n"
                    "  var fc_0.w_0: f32[13,1] persistable\n"
                    "  feed(X=feed) -> Out=x\n"
                    "  mul(X=x, Y=fc_0.w_0) -> Out=fc_0.tmp_0\n"
                    "  elementwise_add(X=fc_0.tmp_0, Y=fc_0.b_0) -> "
                    "Out=fc_0.tmp_1 {axis=1} target\n"
                    "  fetch(X=fc_0.tmp_1) -> Out=fetch\n");
    check_bytes(p, file.at, file.n);
    fl_program *q = fl_program_clone(p, false);
    check_bytes(q, file.at, file.n);
    fl_mem_free(text);
    fl_program_free(p);
    fl_program_free(q);
    fl_registry_free(r);
    fl_str_fini(&file);
}

static const char all_there_is[] =
    "version 2\n"
    "block 0\n"
    "  var x: f32[-1,13] lod=1\n"
    "  var rows: selected_rows f64[10,4] persistable\n"
    "  var array: lod_tensor_array i64[-1]\n"
    "  var scopes: step_scopes\n"
    "  every(X=[x, rows]) -> Out=[x, @EMPTY@] "
    "{i=-1, f=1e-05, s=\"a\", ints=[1, -2], floats=[0.1], "
    "strings=[\"\", \"x\"], b=true, bools=[true, false], l=-3l, "
    "blocks=[@2], longs=[4l], unknown=\"kept\"}\n"
    "  every() {ints=ints[], blocks=blocks[]} target\n"
    "  conditional_block() -> Scope=scopes {sub_block=@1}\n"
    "block 1 parent=0\n"
    "block 2 parent=1 forward=1\n";

static void everything_travels(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL, *q = NULL;
    void *bytes = NULL;
    size_t n = 0;
    CHECK_OK(fl_program_parse(r, all_there_is, &p));
    CHECK_OK(fl_program_encode(p, &bytes, &n));
    CHECK_OK(fl_program_decode(r, "p", bytes, n, &q));
    char *back = fl_program_text(q);
    CHECK_STR(back, all_there_is);
    check_bytes(q, bytes, n);
    fl_mem_free(back);
    fl_mem_free(bytes);
    fl_program_free(p);
    fl_program_free(q);
    fl_registry_free(r);
}

/* --- bytes by hand --- */

/* A program of one block: what every reader accepts, and `more` in it. */
static fl_str one_block(const void *more, size_t n)
{
    static const char start[] =
        "\x08\x00\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    fl_str s = {0};
    fl_str_printf(&s, "\x0a%c", (int)(sizeof start - 1 + n));
    fl_str_bytes(&s, start, sizeof start - 1);
    fl_str_bytes(&s, more, n);
    return s;
}

static void optional_fields_stay_as_they_were(void)
{
    /* no version; vars without tensor, LoD level or persistable */
    static const char vars[] = "\x1a\x07\x0a\x01x\x12\x02\x08\x07"
                               "\x1a\x09\x0a\x01z\x12\x02\x08\x08\x18\x00"
                               "\x1a\x0d\x0a\x01y\x12\x08\x08\x07\x1a\x04\x0a"
                               "\x02\x08\x05"
                               "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    fl_str s = one_block(vars, sizeof vars - 1);
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    CHECK_OK(fl_program_decode(r, "p", s.at, s.n, &p));
    check_bytes(p, s.at, s.n);
    fl_program_free(p);
    fl_registry_free(r);
    fl_str_fini(&s);
}

typedef struct fault {
    const char *more;
    size_t n;
    const char *part;
    fl_err code; /* 0 reads as EPROTO */
} fault;

#define BYTES(s) s, sizeof s - 1

static const fault faults[] = {
    {BYTES("\x1a\x05\x0a\x01x\x12\x00"),
     "model: blocks[0].vars[0].type.type: a field that must be there is "
     "missing"},
    {BYTES("\x1a\x07\x0a\x01x\x12\x02\x08\x10"), "type: its number has no"},
    {BYTES("\x1a\x07\x0a\x01x\x12\x02\x08\x05"),
     "var \"x\" is of the unknown kind 5"},
    {BYTES("\x1a\x06\x0a\x00\x12\x02\x08\x11"),
     "model: a var has an empty name (var 0 in block 0)"},
    {BYTES("\x1a\x07\x0a\x01\xff\x12\x02\x08\x11"), "name that is not UTF-8"},
    {BYTES("\x1a\x07\x0a\x01\x00\x12\x02\x08\x11"), "text holds a zero byte"},
    {BYTES("\x1a\x07\x0a\x01x\x12\x02\x08\x11"
           "\x1a\x07\x0a\x01x\x12\x02\x08\x11"),
     "var \"x\" is declared twice (var 1 in block 0)"},
    {BYTES("\x1a\x0d\x0a\x01x\x12\x08\x08\x07\x1a\x04\x0a\x02\x08\x07"),
     "var \"x\" has elements of the unknown type 7"},
    {BYTES("\x1a\x0f\x0a\x01x\x12\x0a\x08\x07\x1a\x06\x0a\x02\x08\x05\x10\x05"),
     "var \"x\" has 5 LoD levels, at most 4"},
    {BYTES("\x1a\x18\x0a\x01x\x12\x13\x08\x07\x1a\x0f\x0a\x0d\x08\x05\x10\xfe"
           "\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
     "var \"x\" has the dimension -2"},
    {BYTES("\x1a\x21\x0a\x01x\x12\x1c\x08\x07\x1a\x18\x0a\x16\x08\x05\x10\x01"
           "\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01\x10\x01"
           "\x10\x01"),
     "var \"x\" has 10 dimensions, at most 9"},
    {BYTES("\x22\x07\x1a\x05scalf"),
     "model: unknown op \"scalf\"; did you mean \"scale\"? (op 0 in block 0)",
     FL_ENOENT},
    {BYTES("\x22\x07\x1a\x05scale"), "scale: input X is missing (op 0 in"},
    {BYTES("\x22\x0d\x0a\x04\x0a\x00\x12\x00\x1a\x05scale"), "empty name"},
    {BYTES("\x22\x19\x0a\x06\x0a\x01X\x12\x01x\x12\x08\x0a\x03Out\x12\x01y"
           "\x1a\x05scale"),
     "op 0 \"scale\" in block 0 reads \"x\", which is declared neither"},
    {BYTES("\x22\x10\x1a\x05"
           "every\x22\x07\x0a\x01i\x10\x00\x20\x00"),
     "its bytes are of another type"},
    {BYTES("\x22\x0e\x1a\x05"
           "every\x22\x05\x0a\x01i\x10\x00"),
     "attribute i has the type int, but no value of it (op 0 in block 0)"},
    {BYTES("\x22\x0e\x1a\x05"
           "every\x22\x05\x0a\x01i\x10\x0c"),
     "attrs[0].type: its number has no meaning"},
    {BYTES("\x22\x10\x1a\x05"
           "every\x22\x07\x0a\x01k\x10\x08\x60\x01"),
     "attribute k is block 1, but the program has 1 blocks"},
    {BYTES("\x22\x10\x1a\x05"
           "every\x22\x07\x0a\x01"
           "f\x10\x06\x50\x01"),
     "attribute f is bool, expected float"},
    {BYTES("\x08\x00"), "blocks[0].idx: it is there twice"},
    {BYTES("\x22\x7f"), "blocks[0].ops[0]: its length goes beyond the end"},
    {BYTES("\x23"), "a field's wire type is unknown"},
    {BYTES("\x80"), "a field's number is broken"},
    {BYTES("\x28\x05"), "its forward block is 5, expected an earlier one"},
};

static void faults_name_file_and_place(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fl_str s = one_block(faults[i].more, faults[i].n);
        CHECK_ERR(fl_program_decode(r, "model", s.at, s.n, &p),
                  faults[i].code ? faults[i].code : FL_EPROTO, faults[i].part);
        fl_str_fini(&s);
    }
    CHECK_ERR(fl_program_decode(r, "model", "", 0, &p), FL_EPROTO,
              "model: it has 0 blocks");
    CHECK_ERR(fl_program_decode(r, "model", "\x0a\x04\x08\x01\x10\x00", 6, &p),
              FL_EPROTO, "model: block 1 is at position 0 of the program");
    CHECK_ERR(fl_program_decode(r, "model", "\x0a\x04\x08\x00\x10\x00", 6, &p),
              FL_EPROTO, "its parent is block 0, expected none (-1)");
    CHECK(!p);
    fl_registry_free(r);
}

/* --- rubbish --- */

static void check_flood(fl_registry *r, const char *unit, size_t n,
                        const char *part)
{
    const size_t size = 2 << 20;
    fl_str s = {0};
    fl_program *p = NULL;
    while (s.n < size)
        fl_str_bytes(&s, unit, n);
    const uint64_t before = fl_mem_count();
    CHECK_ERR(fl_program_decode(r, "flood", s.at, s.n, &p), FL_EPROTO, part);
    CHECK(fl_mem_count() - before < 16); /* nothing but the sentence */
    fl_str_fini(&s);
}

static void two_megabytes_of_nothing_cost_nothing(void)
{
    fl_registry *r = test_registry();
    check_flood(r, "\x0a\x00", 2, "flood: blocks[0].idx: a field that must");
    check_flood(r, "\x12\x00", 2, "flood: version: it is there twice");
    fl_registry_free(r);
}

/* What a decoder may do with rubbish: refuse it, or read it. */
static void try_bytes(fl_registry *r, const char *bytes, size_t n)
{
    fl_program *p = NULL;
    char *copy = fl_mem_alloc(n); /* so that a sanitizer sees every step out */
    memcpy(copy, bytes, n);
    const fl_err err = fl_program_decode(r, "rubbish", copy, n, &p);
    CHECK(err ? !p && strstr(fl_errmsg(), "rubbish: ") : !!p);
    fl_mem_free(copy);
    fl_program_free(p);
}

static void cut_or_flipped_files_never_crash(void)
{
    fl_registry *r = test_registry();
    fl_program *p = NULL;
    void *bytes = NULL;
    size_t n = 0;
    CHECK_OK(fl_program_parse(r,
                              "block 0\n  data x: f32[-1,4] lod=1\n"
                              "  var y: f32[-1,4]\n"
                              "  scale(X=x) -> Out=y {scale=2.0}\n"
                              "  every(X=[x, y]) {ints=[1, 2], s=\"text\"}\n"
                              "  conditional_block(Cond=x) {sub_block=@1}\n"
                              "block 1 parent=0\n  scale(X=x) -> Out=y\n",
                              &p));
    CHECK_OK(fl_program_encode(p, &bytes, &n));
    for (size_t cut = 0; cut < n; cut++)
        try_bytes(r, bytes, cut);
    for (size_t i = 0; i < n * 8; i++) {
        ((unsigned char *)bytes)[i / 8] ^= 1u << i % 8;
        try_bytes(r, bytes, n);
        ((unsigned char *)bytes)[i / 8] ^= 1u << i % 8;
    }
    fl_mem_free(bytes);
    fl_program_free(p);
    fl_registry_free(r);
}

const fl_test fl_tests[] = {
    {"a program file of the original comes back byte for byte",
     a_file_of_the_original_comes_back},
    {"everything in a program travels through its file", everything_travels},
    {"optional fields of a program file stay as they were",
     optional_fields_stay_as_they_were},
    {"faults in a program file name file and place",
     faults_name_file_and_place},
    {"two megabytes of nothing cost nothing",
     two_megabytes_of_nothing_cost_nothing},
    {"cut or flipped program files never crash",
     cut_or_flipped_files_never_crash},
    {0},
};
