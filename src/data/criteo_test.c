/* SPDX-License-Identifier: Apache-2.0 */
#include "data/test_data.h"

#include "base/random.h"
#include "data/number.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* What Python 3.11 says with PYTHONHASHSEED=0. */
static void hash_is_that_of_python(void)
{
    static const struct {
        const char *text;
        int64_t want;
    } rows[] = {
        {"", 0},
        {"14", -419027820482650326},
        {"1468fd1e64", 858371208796119963},
        {"abcdefgh", 4574395652268504554},
        {"h\xc3\xa9llo", 6395329678795984700}, /* fits one byte a character */
        {"\xe4\xbd\xa0\xe5\xa5\xbd", 136820607464071493}, /* two */
        {"x\xf0\x9f\x98\x80", -4086645887891144435},      /* four */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64 + FL_TEXT_SLACK] = {0};
        int64_t got;
        memcpy(text, rows[i].text, strlen(rows[i].text));
        CHECK(fl_hash_python(text, strlen(text), &got));
        CHECK_INT(got, rows[i].want);
    }
}

static void bytes_that_are_no_text_have_no_hash(void)
{
    static const char *const wrong[] = {
        "\xff",
        "\xc3",
        "\x80",
        "\xc0\x80",
        "\xed\xa0\x80",
        "\xe4\xbd",
        "\xf5\x80\x80\x80",
        "\xe0\x80\x80",
        "\xf0\x80\x80\x80",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[16 + FL_TEXT_SLACK] = {0};
        int64_t got;
        memcpy(text, wrong[i], strlen(wrong[i]));
        if (fl_hash_python(text, strlen(text), &got))
            CHECK_INT((int64_t)i, -1);
    }
}

static void doubles_are_written_as_python_does(void)
{
    static const struct {
        double x;
        const char *want;
    } rows[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {-2.5, "-2.5"},
        {0.05, "0.05"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 603, "0.001658374792703151"},
        {1.0 / 64000, "1.5625e-05"},
        {0.0001, "0.0001"},
        {0.00012345, "0.00012345"},
        {123456.0, "123456.0"},
        {1e15, "1000000000000000.0"},
        {9007199254740993.0, "9007199254740992.0"},
        {1e16, "1e+16"},
        {1.5e300, "1.5e+300"},
        {5e-324, "5e-324"},
        {1e22, "1e+22"},
        {100, "100.0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[FL_F64_TEXT];
        CHECK_INT((int64_t)fl_f64_text(rows[i].x, text),
                  (int64_t)strlen(rows[i].want));
        CHECK_STR(text, rows[i].want);
    }
}

/* Against the division of the machine. */
static void modulo_is_exact(void)
{
    static const int64_t divisors[] = {
        1,        2, 3, 10, 1000001, INT64_C(1) << 32, (INT64_C(1) << 62) + 1,
        INT64_MAX};
    fl_rng rng = fl_rng_of(5);
    for (size_t i = 0; i < sizeof divisors / sizeof *divisors; i++) {
        const fl_modulus m = fl_modulus_of(divisors[i]);
        CHECK_INT(fl_modulo(&m, UINT64_MAX),
                  (int64_t)(UINT64_MAX % (uint64_t)divisors[i]));
        for (int k = 0; k < 2000; k++) {
            const uint64_t x = (uint64_t)fl_rng_next(&rng) << 33 ^
                               fl_rng_next(&rng) >> (k % 30);
            CHECK_INT(fl_modulo(&m, x), (int64_t)(x % (uint64_t)divisors[i]));
        }
    }
}

/* --- lines --- */

static const char *line = "1\t5\t-1\t\t2\t64000\t0\t3.5\t1e1\t\t0\t1\t2\t50\t"
                          "68fd1e64\t\tc\td\te\tf\tg\th\ti\tj\tk\tl\tm\tn\to\tp"
                          "\tq\tr\ts\tt\tu\tv\tw\tx\ty\tlast";

static fl_data_slot *slots(void)
{
    static fl_data_slot s[FL_CRITEO_SLOTS];
    s[0] = (fl_data_slot){"x", FL_F32, .shape = {2, {-1, 13}}};
    for (int i = 1; i < FL_CRITEO_SLOTS; i++)
        s[i] = (fl_data_slot){"id", FL_I64, .sparse = true};
    s[27] = (fl_data_slot){"label", FL_I64, .shape = {2, {-1, 1}}};
    return s;
}

static const char *with_end(const char *name, const char *end)
{
    fl_str text = {0};
    fl_str_printf(&text, "%s%s", line, end);
    const char *path = test_file(name, text.at);
    fl_str_fini(&text);
    return path;
}

/* The first batch of a file, into t. */
static fl_err read_first(const fl_dataset_opts *o, fl_tensor *t, int64_t *rows)
{
    fl_reader *r;
    fl_dataset *d = fl_dataset_new();
    fl_err err = fl_dataset_set(d, o);
    if (!err)
        err = fl_dataset_open(d, 1, NULL, &r);
    if (!err) {
        err = fl_reader_next(r, t, rows);
        fl_reader_free(r);
    }
    fl_dataset_free(d);
    return err;
}

static void fini(fl_tensor *t)
{
    for (int i = 0; i < FL_CRITEO_SLOTS; i++)
        fl_tensor_fini(&t[i]);
}

static void line_becomes_numbers_and_ids(void)
{
    static const char *const ends[] = {"\n", "", "\r\n"};
    static const char last[3][8 + FL_TEXT_SLACK] = {"39last", "39last",
                                                    "39last\r"};
    for (int i = 0; i < 3; i++) {
        int64_t rows, id;
        fl_tensor t[FL_CRITEO_SLOTS] = {0};
        const char *file = with_end("criteo", ends[i]);
        const fl_criteo how = {.dim = 1000};
        CHECK_OK(read_first(&(fl_dataset_opts){.n_slots = FL_CRITEO_SLOTS,
                                               .slots = slots(),
                                               .n_files = 1,
                                               .files = &file,
                                               .criteo = &how},
                            t, &rows));
        CHECK_INT(rows, 1);
        const float *x = t[0].data;
        CHECK_NEAR((double)x[0], 0.25, 0);
        CHECK_NEAR((double)x[1], (double)(float)(2.0 / 603), 0);
        CHECK_NEAR((double)x[2], 0, 0);
        CHECK_NEAR((double)x[4], 1, 0);
        CHECK_NEAR((double)x[6], (double)0.035f, 0);
        CHECK_NEAR((double)x[7], (double)0.2f, 0);
        const char key[4 + FL_TEXT_SLACK] = "15"; /* an empty category */
        CHECK(fl_hash_python(key, 2, &id));
        CHECK_INT(*(int64_t *)t[2].data, ((id % 1000) + 1000) % 1000);
        CHECK(fl_hash_python(last[i], strlen(last[i]), &id));
        CHECK_INT(*(int64_t *)t[26].data, ((id % 1000) + 1000) % 1000);
        CHECK_INT(*(int64_t *)t[27].data, 1);
        fini(t);
    }
}

static void says(const char *text, const char *sentence)
{
    int64_t rows;
    fl_tensor t[FL_CRITEO_SLOTS] = {0};
    const char *file = test_file("bad", text);
    const fl_criteo how = {.dim = 1000};
    CHECK_ERR(read_first(&(fl_dataset_opts){.n_slots = FL_CRITEO_SLOTS,
                                            .slots = slots(),
                                            .n_files = 1,
                                            .files = &file,
                                            .criteo = &how},
                         t, &rows),
              FL_EPROTO, sentence);
    fini(t);
}

static void bad_lines_have_sentences(void)
{
    char text[1024];
    says("1\t2\t3\n", "bad:1:1: 3 fields, expected 40");
    says("\n", "1 fields, expected 40");
    snprintf(text, sizeof text, "x%s\n", line + 1);
    says(text, "bad:1:1: field 1 is \"x\", expected a label");
    snprintf(text, sizeof text, "1\tnan%s\n", line + 3);
    says(text, "bad:1:3: field 2 is \"nan\", expected a number or nothing");
    snprintf(text, sizeof text, "%s\xff\n", line);
    says(text, "expected UTF-8");
}

static void settings_are_checked(void)
{
    const char *file = with_end("criteo", "\n");
    fl_dataset *d = fl_dataset_new();
    fl_criteo how = {.dim = 0};
    fl_dataset_opts o = {.n_slots = FL_CRITEO_SLOTS,
                         .slots = slots(),
                         .n_files = 1,
                         .files = &file,
                         .criteo = &how};
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL, "dim is 0");
    how = (fl_criteo){.dim = 10, .hash = "md5"};
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL, "no hash is called \"md5\"");
    how.hash = "crc32";
    o.n_slots = 27;
    CHECK_ERR(fl_dataset_set(d, &o), FL_EINVAL,
              "the 27 slots that were set are not those");
    fl_dataset_free(d);
}

static bool is_native(const char *command, int64_t dim, const char *hash)
{
    fl_criteo how;
    char name[FL_HASH_NAME];
    return fl_criteo_command(command, &how, name) && how.dim == dim &&
           (hash ? how.hash && !strcmp(how.hash, hash) : !how.hash);
}

static void known_command_is_not_started(void)
{
    CHECK(is_native("paddle read criteo --dim 1000001", 1000001, NULL));
    CHECK(is_native(" paddle read criteo --dim=7 --hash=crc32 ", 7, "crc32"));
    CHECK(is_native("paddle read criteo --hash fnv --dim 7", 7, "fnv"));
    CHECK(!is_native("paddle read criteo", 0, NULL));
    CHECK(!is_native("paddle read criteo --dim 7 | head", 7, NULL));
    CHECK(!is_native("paddle read criteo --dim 7;", 7, NULL));
    CHECK(!is_native("paddle read criteo --dim -7", -7, NULL));
    CHECK(!is_native("paddle read criteo --dim 7 --hash md5", 7, "md5"));
    CHECK(!is_native("python criteo_reader.py 7", 7, NULL));
}

/* Read as it is, and written as slots and then read: the same bits. */
static void conversion_changes_no_bit(void)
{
    int64_t rows;
    fl_tensor t[FL_CRITEO_SLOTS] = {0}, u[FL_CRITEO_SLOTS] = {0};
    char path[512];
    const char *file = with_end("criteo", "\n"), *slots_file = path;
    snprintf(path, sizeof path, "%s/slots", fl_test_dir());
    const int in = open(file, O_RDONLY | O_CLOEXEC);
    const int out = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    const fl_criteo how = {.dim = 1000001};
    CHECK_OK(fl_criteo_convert(&how, in, out));
    close(in);
    close(out);
    fl_dataset_opts o = {.n_slots = FL_CRITEO_SLOTS,
                         .slots = slots(),
                         .n_files = 1,
                         .files = &file,
                         .pipe = "paddle read criteo --dim 1000001"};
    CHECK_OK(read_first(&o, t, &rows));
    o.pipe = NULL;
    o.files = &slots_file;
    CHECK_OK(read_first(&o, u, &rows));
    CHECK_INT(rows, 1);
    for (int i = 0; i < FL_CRITEO_SLOTS; i++) {
        CHECK(fl_shape_equal(&t[i].shape, &u[i].shape));
        CHECK(fl_lod_equal(&t[i].lod, &u[i].lod));
        CHECK_INT(memcmp(t[i].data, u[i].data, fl_tensor_bytes(&t[i])), 0);
    }
    fini(t);
    fini(u);
}

const fl_test fl_tests[] = {
    {"hash is that of Python", hash_is_that_of_python},
    {"hash of what is no text is refused", bytes_that_are_no_text_have_no_hash},
    {"hash modulo dim is exact", modulo_is_exact},
    {"doubles are written as Python does", doubles_are_written_as_python_does},
    {"criteo lines become numbers and ids", line_becomes_numbers_and_ids},
    {"criteo lines that are bad have a sentence", bad_lines_have_sentences},
    {"criteo settings are checked", settings_are_checked},
    {"criteo command need not be started", known_command_is_not_started},
    {"criteo written as slots keeps every bit", conversion_changes_no_bit},
    {0},
};
