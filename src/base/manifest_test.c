/* SPDX-License-Identifier: Apache-2.0 */
#include "base/manifest.h"

#include "base/crc.h"
#include "base/test.h"

#include <stdio.h>

/* `body` with the line that ends it. */
static fl_err decode(const char *body, fl_manifest *m)
{
    fl_str text = {0};
    fl_str_add(&text, body);
    fl_str_printf(&text, "end %08x\n", fl_crc32c(0, text.at, text.n));
    const fl_err err = fl_manifest_decode("d/__manifest__", text.at, text.n, m);
    fl_str_fini(&text);
    return err;
}

static void comes_back_as_it_was(void)
{
    fl_manifest m = {.kind = fl_mem_strdup("model")}, again;
    fl_str text = {0};
    fl_manifest_put(&m, "w\\n\nx y", 7, 0xabcdef01);
    fl_manifest_put(&m, "b", 1, 2);
    fl_manifest_put(&m, "a/b", 3, 4);
    fl_manifest_put(&m, "b", INT64_MAX, 5); /* in place of the first */
    fl_manifest_encode(&m, &text);
    CHECK_STR(text.at, "fluid manifest 1\n"
                       "kind model\n"
                       "file 3 00000004 a/b\n"
                       "file 9223372036854775807 00000005 b\n"
                       "file 7 abcdef01 w\\\\n\\nx y\n"
                       "end 51a5eef1\n");
    CHECK_OK(fl_manifest_decode("m", text.at, text.n, &again));
    CHECK_STR(again.kind, "model");
    CHECK(!again.staged);
    CHECK_INT(again.file.n, 3);
    CHECK(fl_manifest_find(&again, "w\\n\nx y")->crc == 0xabcdef01);
    CHECK(fl_manifest_find(&again, "b")->size == INT64_MAX);
    CHECK(!fl_manifest_find(&again, "c"));
    fl_manifest_fini(&m);
    fl_manifest_fini(&again);
    fl_str_fini(&text);
}

static void a_folder_of_staged_files_is_named(void)
{
    fl_manifest m;
    CHECK_OK(decode("fluid manifest 1\nkind model\nstaged .save-1\n", &m));
    CHECK_STR(m.staged, ".save-1");
    CHECK_INT(m.file.n, 0);
    fl_manifest_fini(&m);
}

static void any_flipped_bit_is_seen(void)
{
    fl_manifest m = {.kind = fl_mem_strdup("model")}, again;
    fl_str text = {0};
    fl_manifest_put(&m, "w", 7, 0xabcdef01);
    fl_manifest_encode(&m, &text);
    for (size_t bit = 0; bit < 8 * text.n; bit++) {
        text.at[bit / 8] ^= (char)(1 << bit % 8);
        CHECK_ERR(fl_manifest_decode("m", text.at, text.n, &again), FL_EPROTO,
                  "m: is damaged: its CRC-32C is");
        text.at[bit / 8] ^= (char)(1 << bit % 8);
    }
    for (size_t n = 0; n < text.n; n++)
        CHECK(fl_manifest_decode("m", text.at, n, &again) == FL_EPROTO);
    fl_manifest_fini(&m);
    fl_str_fini(&text);
}

#define HEAD "fluid manifest 1\nkind model\n"

static void what_is_no_manifest_is_refused(void)
{
    const struct {
        const char *body, *sentence;
    } bad[] = {
        {"", "line 1 is damaged"},
        {"\n", "expected \"fluid manifest\""},
        {"fluid manifest 0\n", "expected \"fluid manifest\""},
        {"fluid manifest 1\n", "line 2 is damaged"},
        {"fluid manifest 1\nkind \n", "expected \"kind\""},
        {HEAD "file\n", "line 3 is damaged"},
        {HEAD "file 1\n", "expected a CRC-32C"},
        {HEAD "file -1 00000000 w\n", "expected \"file\""},
        {HEAD "file 1 0000 w\n", "expected a CRC-32C"},
        {HEAD "file 1 00000000\n", "expected a CRC-32C"},
        {HEAD "file 1 00000000 ../w\n", "\"../w\" cannot be the name"},
        {HEAD "file 1 00000000 /w\n", "\"/w\" cannot be the name"},
        {HEAD "file 1 00000000 \n", "\"\" cannot be the name"},
        {HEAD "file 1 00000000 a\\b\n", "where a name has a backslash"},
        {HEAD "file 1 00000000 b\nfile 1 00000000 a\n", "in their order"},
        {HEAD "file 1 00000000 b\nfile 1 00000000 b\n", "in their order"},
        {HEAD "staged ../x\n", "one folder of staged files"},
        {HEAD "staged .save-/../..\n", "one folder of staged files"},
        {HEAD "file 1 00000000 b", "expected a line"},
    };
    fl_manifest m;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_ERR(decode(bad[i].body, &m), FL_EPROTO, bad[i].sentence);
    CHECK_ERR(decode("fluid manifest 2\nall else may differ\n", &m), FL_EINVAL,
              "version 2, but this program knows version 1");
}

const fl_test fl_tests[] = {
    {"a manifest comes back as it was", comes_back_as_it_was},
    {"a manifest names the folder of staged files",
     a_folder_of_staged_files_is_named},
    {"any flipped bit of a manifest is seen", any_flipped_bit_is_seen},
    {"what is no manifest is refused", what_is_no_manifest_is_refused},
    {0},
};
