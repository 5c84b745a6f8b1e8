/* SPDX-License-Identifier: Apache-2.0 */
/* test_data.h - small files and what readers make of them. Tests only. */
#ifndef FL_DATA_TEST_DATA_H
#define FL_DATA_TEST_DATA_H

#include "base/disk.h"
#include "base/test.h"
#include "data/dataset.h"

#include <stdio.h>

/* A file in the test's folder; its path, which lasts. */
static inline const char *test_file_of(const char *name, const void *bytes,
                                       size_t n)
{
    static char path[16][512];
    static int next;
    char *p = path[next++ % 16];
    snprintf(p, sizeof path[0], "%s/%s", fl_test_dir(), name);
    CHECK_OK(fl_disk_write(fl_disk_real(), p, bytes, n, false));
    return p;
}

static inline const char *test_file(const char *name, const char *text)
{
    return test_file_of(name, text, strlen(text));
}

/* x: two floats; ids: any number; label: one. */
static const fl_data_slot test_slots[] = {
    {"x", FL_F32, .shape = {2, {-1, 2}}},
    {"ids", FL_I64, .sparse = true},
    {"label", FL_I64, .shape = {2, {-1, 1}}},
};

enum {
    TEST_SLOTS = 3
};

static inline fl_dataset *test_set(const fl_dataset_opts *opts)
{
    fl_dataset_opts o = *opts;
    fl_dataset *d = fl_dataset_new();
    if (!o.slots) {
        o.slots = test_slots;
        o.n_slots = TEST_SLOTS;
    }
    CHECK_OK(fl_dataset_set(d, &o));
    return d;
}

/* One slot after the other: "[0.5 1|0 -1] ids{0 1 3}[7|8|9] ..." */
static inline void test_show(const fl_tensor *t, fl_str *out)
{
    for (int64_t i = 0; t->lod.levels && i < t->lod.n[0]; i++)
        fl_str_printf(out, "%s%lld%s", i ? " " : "{",
                      (long long)t->lod.off[0][i],
                      i + 1 < t->lod.n[0] ? "" : "}");
    const int64_t width = t->shape.rank > 1 ? t->shape.dim[1] : 1;
    for (int64_t i = 0; i < t->shape.dim[0] * width; i++) {
        fl_str_add(out, !i ? "[" : i % width ? " " : "|");
        if (t->dtype == FL_F32)
            fl_str_printf(out, "%g", (double)((float *)t->data)[i]);
        else
            fl_str_printf(out, "%lld", (long long)((int64_t *)t->data)[i]);
    }
    fl_str_add(out, t->shape.dim[0] ? "]" : "[]");
}

/* All batches of one reader, a line each; the failure last. */
static inline char *test_drain(fl_reader *r, fl_err *err)
{
    fl_tensor t[TEST_SLOTS] = {0};
    fl_str out = {0};
    int64_t rows = 1;
    const int columns = r->batch.schema->n_columns;
    fl_str_add(&out, "");
    while (!(*err = fl_reader_next(r, t, &rows)) && rows) {
        for (int i = 0; i < columns; i++) {
            fl_str_add(&out, i ? " " : "");
            test_show(&t[i], &out);
        }
        fl_str_add(&out, "\n");
    }
    for (int i = 0; i < columns; i++)
        fl_tensor_fini(&t[i]);
    return fl_str_take(&out);
}

/* Read the dataset once by one reader and end it; the text is the test's to
 * free. */
static inline char *test_read(const fl_dataset_opts *opts, int ahead,
                              fl_err *err)
{
    fl_reader *r;
    fl_dataset *d = test_set(opts);
    char *text = NULL;
    *err = fl_dataset_open(d, 1, &(fl_reader_opts){.ahead = ahead}, &r);
    if (!*err) {
        text = test_drain(r, err);
        fl_reader_free(r);
    }
    fl_dataset_free(d);
    return text;
}

/* The batches must be these. */
static inline void test_reads(const fl_dataset_opts *opts, const char *want)
{
    for (int ahead = 0; ahead < 3; ahead++) {
        fl_err err;
        char *got = test_read(opts, ahead, &err);
        CHECK_OK(err);
        CHECK_STR(got, want);
        fl_mem_free(got);
    }
}

/* Reading must fail with this. */
static inline void test_fails(const fl_dataset_opts *opts, fl_err code,
                              const char *sentence)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        fl_err err;
        char *got = test_read(opts, ahead, &err);
        CHECK_ERR(err, code, sentence);
        fl_mem_free(got);
    }
}

#endif
