/* SPDX-License-Identifier: Apache-2.0 */
#include "data/test_data.h"

#include "base/random.h"
#include "data/number.h"

static void reads(const char *text, const char *want)
{
    const char *file = test_file("lines", text);
    test_reads(&(fl_dataset_opts){.n_files = 1, .files = &file}, want);
}

static void makes_a_tensor_of_each_slot(void)
{
    reads("2 0.5 -1 1 7 1 0\n"
          "2 3 4e1 3 8 9 18446744073709551615 1 1\n",
          "[0.5 -1|3 40] {0 1 4}[7|8|9|-1] [0|1]\n");
}

static void white_space_is_free(void)
{
    const char *want = "[1 2] {0 2}[3|4] [5]\n";
    reads("2 1 2 2 3 4 1 5", want); /* no newline at the end */
    reads("  2\t1  2 2   3 4 1 5 \t \n", want);
    reads("2 1 2 2 3 4 1 5\r\n", want);
    reads("2 1 2 2 3 4 1 5 \r", want);
}

static void counts_may_be_long(void)
{
    fl_str text = {0}, want = {0};
    fl_str_add(&text, "2 0 0 1000");
    fl_str_add(&want, "[0 0] {0 1000}[");
    for (int i = 0; i < 1000; i++) {
        fl_str_printf(&text, " %d", i * i);
        fl_str_printf(&want, "%s%d", i ? "|" : "", i * i);
    }
    fl_str_add(&text, " 1 1\n");
    fl_str_add(&want, "] [1]\n");
    reads(text.at, want.at);
    fl_str_fini(&text);
    fl_str_fini(&want);
}

static void says(const char *text, const char *sentence)
{
    const char *file = test_file("bad", text);
    test_fails(&(fl_dataset_opts){.n_files = 1, .files = &file}, FL_EPROTO,
               sentence);
}

static void each_rule_has_its_sentence(void)
{
    says("2 1 2 1 3 1 4\n2 1 x 1 3 1 4\n",
         "bad:2:5: value 2 of slot \"x\" is \"x\", expected a finite number, "
         "in \"2 1 x 1 3 1 4\"");
    says("2 1 2 0 1 4\n", "bad:1:7: the count of slot \"ids\" is \"0\", "
                          "expected a whole number from 1 on");
    says("2 1 2 -3 1 4\n", "the count of slot \"ids\" is \"-3\"");
    says("2 1 2 1.0 1 4\n", "the count of slot \"ids\" is \"1.0\"");
    says("3 1 2 3 1 3 1 4\n", ":1:1: slot \"x\" has 3 values, expected 2, in");
    says("2 1 2 5 3 1 4\n",
         ":1:7: slot \"ids\" should have 5 values, the line has only 3 more");
    says("2 1 2 1 3.5 1 4\n", ":1:9: value 1 of slot \"ids\" is \"3.5\", "
                              "expected a whole number");
    says("2 1 2 1 3\n", ":1:10: the line ends before slot \"label\"");
    says("2 1 2 1 3 1 4 5\n", ":1:15: \"5\" follows the last slot, \"label\"");
    says("2 1 2 1 3 1 4\n\n2 1 2 1 3 1 4\n", ":2:1: the line is empty");
    says("2 1 nan 1 3 1 4\n", "is \"nan\", expected a finite number");
    says("2 1 2 99999999999999999999 1 1 4\n", "the count of slot");
    says("2 1 2 9223372036854775807 1 1 4\n", "the line has only 3 more");
}

static void long_lines_are_cut(void)
{
    fl_str text = {0};
    fl_str_add(&text, "2 1 2 300");
    for (int i = 0; i < 299; i++)
        fl_str_add(&text, " 1234567");
    fl_str_add(&text, " x 1 4\n");
    says(text.at, "value 300 of slot \"ids\" is \"x\", expected a whole "
                  "number, in \"...567 1234567 1234567 x 1 4\"");
    fl_str_fini(&text);
}

static void zero_bytes_are_no_blanks(void)
{
    static const char text[] = "2 1\0 2 1 3 1 4\n";
    const char *file = test_file_of("nul", text, sizeof text - 1);
    test_fails(&(fl_dataset_opts){.n_files = 1, .files = &file}, FL_EPROTO,
               "value 1 of slot \"x\" is \"1.\"");
}

static void unused_slots_are_passed_over(void)
{
    static const fl_data_slot slots[] = {
        {"a", FL_I64, .sparse = true, .unused = true},
        {"b", FL_I64, .sparse = true},
        {"c", FL_F32, .unused = true},
        {"d", FL_F32, .shape = {1, {-1}}},
    };
    const char *file = test_file("unused", "3 a b c 1 7 2 1 2 1 5\n"
                                           "1 1 2 8 9 1 x 1 6\n");
    test_reads(
        &(fl_dataset_opts){
            .n_files = 1, .files = &file, .n_slots = 4, .slots = slots},
        "{0 1 3}[7|8|9] [5|6]\n");
}

static void slots_are_checked(void)
{
    fl_dataset *d = fl_dataset_new();
    fl_data_slot slot = {"x", FL_F64, .sparse = true};
    fl_dataset_opts o = {.n_slots = 1, .slots = &slot};
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL, "slot \"x\" is f64");
    slot = (fl_data_slot){"x", FL_F32, .shape = {2, {-1, -1}}};
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL,
              "[-1,-1], but only the first dim");
    slot = (fl_data_slot){"x", FL_F32};
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL, "a dense slot needs a shape");
    o.n_slots = 0;
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL, "0 slots");
    fl_dataset_free(d);
}

/* The index against a scan that goes byte by byte. */
static void index_finds_every_token(void)
{
    char text[700 + FL_TEXT_SLACK] = {0};
    static const char letters[] = "11111  \t\r\n";
    fl_rng rng = fl_rng_of(4);
    fl_index ix = {0};
    for (int round = 0; round < 600; round++) {
        ix.narrow = round % 2;
        const size_t n = 1 + fl_rng_next(&rng) % 699;
        for (size_t i = 0; i < n; i++)
            text[i] = letters[fl_rng_next(&rng) % 10];
        CHECK(fl_index_scan(&ix, FL_SPLIT_BLANKS, text, n));
        uint32_t tokens = 0;
        int lines = 0;
        for (size_t i = 0; i < n; i++) {
            if (text[i] != '1' && i && text[i - 1] == '1')
                CHECK_INT(ix.end[tokens++], (int64_t)i);
            if (text[i] == '\n') {
                CHECK_INT(ix.line[lines].newline, (int64_t)i);
                CHECK_INT(ix.line[lines++].tokens, tokens);
            }
        }
        CHECK_INT(ix.n_lines, lines);
    }
    fl_index_fini(&ix);
}

const fl_test fl_tests[] = {
    {"multislot makes a tensor of each slot", makes_a_tensor_of_each_slot},
    {"multislot takes any white space", white_space_is_free},
    {"multislot takes long lists", counts_may_be_long},
    {"multislot has a sentence for each rule", each_rule_has_its_sentence},
    {"multislot cuts long lines in sentences", long_lines_are_cut},
    {"multislot refuses NUL bytes", zero_bytes_are_no_blanks},
    {"multislot passes over unused slots", unused_slots_are_passed_over},
    {"multislot checks the slots that are asked for", slots_are_checked},
    {"index finds every token and line", index_finds_every_token},
    {0},
};
