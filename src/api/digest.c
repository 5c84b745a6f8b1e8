/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - whether saved folders are undamaged and equal.
 *
 * The digest of a folder is that of the text that sha256sum prints for its
 * files in the order of their names, so that it can be computed without Fluid:
 *
 *     sha256sum FILE.. | sha256sum
 *
 * Only files that were saved count, without the manifest. A saved folder has
 * whole variables, so its digest does not depend on the number of servers. */
#include "api/engine.h"

#include "base/folder.h"
#include "base/mem.h"
#include "base/sha256.h"

#include <stdio.h>
#include <string.h>

enum {
    HEX = 2 * FL_SHA256 + 1, /* bytes of a digest as text */
    CHUNK = 1 << 20          /* bytes that are read at a time */
};

/* A file of a folder and its digest. */
typedef struct file_sum {
    char *name;
    char hex[HEX];
} file_sum;

typedef FL_VEC(file_sum) sum_list;

static void free_sums(sum_list *sums)
{
    for (int64_t i = 0; i < sums->n; i++)
        fl_mem_free(sums->at[i].name);
    fl_vec_fini(sums);
}

static void end_sum(fl_sha256 *sha, char hex[HEX])
{
    unsigned char bytes[FL_SHA256];
    fl_sha256_end(sha, bytes);
    for (int i = 0; i < FL_SHA256; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

static fl_err sum_bytes(const fl_disk *disk, fl_file *file, int64_t bytes,
                        char hex[HEX])
{
    char *chunk = fl_mem_alloc(CHUNK);
    fl_err err = FL_OK;
    fl_sha256 sha;
    fl_sha256_init(&sha);
    for (int64_t at = 0; at < bytes && !err;) {
        const size_t n = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
        err = disk->read_at(file, at, chunk, n);
        if (!err)
            fl_sha256_add(&sha, chunk, n);
        at += (int64_t)n;
    }
    end_sum(&sha, hex);
    fl_mem_free(chunk);
    return err;
}

/* Compare a file with the manifest, and sum it up. */
static fl_err sum_file(const fl_folder *f, const char *name, char hex[HEX])
{
    const fl_disk *disk = f->disk;
    char *path;
    fl_file *file;
    int64_t bytes = 0;
    FL_TRY(fl_folder_find(f, name, &path));
    fl_err err = disk->look(disk, path, &file, &bytes);
    fl_mem_free(path);
    if (err)
        return err;
    err = fl_folder_check(f, name, file, bytes);
    if (!err)
        err = sum_bytes(disk, file, bytes, hex);
    const fl_err closed = disk->close(file);
    return err ? err : closed;
}

/* The files of a folder that count: those that the manifest lists. */
static fl_err need_manifest(const fl_folder *f)
{
    if (f->manifest.kind)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s has no %s: it is no folder that Fluid has saved, and "
                   "nothing says what its files must be",
                   f->dir, FL_MANIFEST);
}

static fl_err sum_folder(const fl_folder *f, void *user)
{
    sum_list *sums = user;
    free_sums(sums); /* of an attempt that another save has overtaken */
    FL_TRY(need_manifest(f));
    for (int64_t i = 0; i < f->manifest.file.n; i++) {
        const char *name = f->manifest.file.at[i].name;
        file_sum sum = {.name = NULL};
        FL_TRY(sum_file(f, name, sum.hex));
        sum.name = fl_mem_strdup(name);
        fl_push(sums, sum);
    }
    return FL_OK;
}

fl_err fl_digest(fl_engine *e, const char *dir, char hex[FL_DIGEST_TEXT])
{
    sum_list sums = {0};
    fl_sha256 sha;
    fl_sha256_init(&sha);
    const fl_err err = fl_folder_visit(e->disk, dir, sum_folder, &sums);
    for (int64_t i = 0; i < sums.n; i++) {
        fl_sha256_add(&sha, sums.at[i].hex, HEX - 1);
        fl_sha256_add(&sha, "  ", 2);
        fl_sha256_add(&sha, sums.at[i].name, strlen(sums.at[i].name));
        fl_sha256_add(&sha, "\n", 1);
    }
    if (!err)
        end_sum(&sha, hex);
    free_sums(&sums);
    return err;
}

/* --- damage --- */

static fl_err list_damage(const fl_folder *f, void *user)
{
    fl_str *lines = user;
    fl_err first = FL_OK;
    lines->n = 0; /* of an attempt that another save has overtaken */
    FL_TRY(need_manifest(f));
    for (int64_t i = 0; i < f->manifest.file.n; i++) {
        char hex[HEX];
        const fl_err err = sum_file(f, f->manifest.file.at[i].name, hex);
        if (err)
            fl_str_printf(lines, "%s\n", fl_errmsg());
        first = first ? first : err;
    }
    return first;
}

fl_err fl_engine_damage(fl_engine *e, const char *dir, fl_str *lines)
{
    fl_str found = {0};
    const fl_err err = fl_folder_visit(e->disk, dir, list_damage, &found);
    if (err && !found.n)
        fl_str_printf(&found, "%s\n", fl_errmsg());
    if (found.n)
        fl_str_bytes(lines, found.at, found.n);
    fl_str_fini(&found);
    return err;
}

/* --- differences --- */

static fl_err compare_sums(const char *a, const sum_list *x, const char *b,
                           const sum_list *y, fl_str *lines)
{
    for (int64_t i = 0, k = 0; i < x->n || k < y->n;) {
        const int order = i == x->n   ? 1
                          : k == y->n ? -1
                                      : strcmp(x->at[i].name, y->at[k].name);
        if (order < 0)
            fl_str_printf(lines, "%s is only in %s\n", x->at[i].name, a);
        else if (order > 0)
            fl_str_printf(lines, "%s is only in %s\n", y->at[k].name, b);
        else if (strcmp(x->at[i].hex, y->at[k].hex))
            fl_str_printf(lines, "%s differs\n", x->at[i].name);
        i += order <= 0;
        k += order >= 0;
    }
    return FL_OK;
}

fl_err fl_differ(fl_engine *e, const char *a, const char *b, char **text)
{
    sum_list x = {0}, y = {0};
    fl_str lines = {0};
    fl_err err = fl_folder_visit(e->disk, a, sum_folder, &x);
    if (!err)
        err = fl_folder_visit(e->disk, b, sum_folder, &y);
    if (!err)
        err = compare_sums(a, &x, b, &y, &lines);
    fl_str_add(&lines, "");
    if (!err)
        *text = fl_str_take(&lines);
    fl_str_fini(&lines);
    free_sums(&x);
    free_sums(&y);
    return err;
}
