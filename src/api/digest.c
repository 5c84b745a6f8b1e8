/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - whether saved folders are undamaged and equal.
 *
 * The digest of a folder is that of the text that sha256sum prints for its
 * files in the order of their names, so that it can be computed without Fluid:
 *
 *     sha256sum FILE.. | sha256sum
 *
 * Only files that were saved count, without the manifest. A saved folder has
 * whole variables, so its digest does not depend on the number of servers.
 *
 * A snapshot of servers has parts. In place of files, its variables and tables
 * count: the pieces of a variable are joined in their order, and the digests of
 * the rows of a table are added up, whichever part has a row. So this digest
 * does not depend on the number of servers either. */
#include "api/engine.h"

#include "base/folder.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/sha256.h"
#include "state/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
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

typedef FL_VEC(file_sum) sum_list; /* own the names */

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

/* Compare a file with the manifest, and compute its digest. */
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

/* Refuse a folder without a manifest, because only files that a manifest lists
 * count. */
static fl_err need_manifest(const fl_folder *f)
{
    if (f->manifest.kind)
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "%s has no %s: Fluid did not save this folder, so its files "
                   "cannot be checked",
                   f->dir, FL_MANIFEST);
}

/* Visit a folder, which must exist. */
static fl_err visit_folder(fl_engine *e, const char *dir, fl_folder_fn read,
                           void *user)
{
    FL_TRY(fl_folder_need(e->disk, dir));
    return fl_folder_visit(e->disk, dir, read, user);
}

/* --- the variables and tables of a snapshot --- */

/* A tensor of a part, or a piece of one. */
typedef struct piece {
    const fl_snapshot_part *part;
    const fl_snapshot_tensor *tensor;
} piece;

typedef struct snapshot {
    int servers;
    fl_snapshot_part *part; /* one for each server */
    FL_VEC(piece) piece;    /* sorted by variable, then by position in it */
} snapshot;

static int compare_pieces(const void *a, const void *b)
{
    const fl_snapshot_tensor *x = ((const piece *)a)->tensor;
    const fl_snapshot_tensor *y = ((const piece *)b)->tensor;
    const int order = strcmp(x->var, y->var);
    return order ? order : (x->first > y->first) - (x->first < y->first);
}

static void close_snapshot(snapshot *s)
{
    for (int i = 0; i < s->servers; i++)
        fl_snapshot_part_fini(&s->part[i]);
    fl_mem_free(s->part);
    fl_vec_fini(&s->piece);
}

static void list_pieces(snapshot *s)
{
    for (int i = 0; i < s->servers; i++)
        for (int64_t k = 0; k < s->part[i].index.tensor.n; k++)
            fl_push(&s->piece,
                    (piece){&s->part[i], &s->part[i].index.tensor.at[k]});
    if (s->piece.n)
        qsort(s->piece.at, (size_t)s->piece.n, sizeof(piece), compare_pieces);
}

/* Open all parts of the snapshot in the folder `dir`. */
static fl_err open_snapshot(const fl_disk *disk, const char *dir, snapshot *s)
{
    const char *dash = strrchr(fl_path_base(dir), '-');
    const int64_t number = dash ? strtoll(dash + 1, NULL, 10) : 0;
    char *base = fl_path_parent(dir);
    fl_snapshot_job job;
    fl_str image = {0};
    fl_err err = fl_snapshot_read(disk, base, number, &job, &image);
    fl_str_fini(&image);
    *s = (snapshot){0};
    if (!err)
        s->part = fl_mem_alloc((size_t)job.servers * sizeof *s->part);
    while (!err && s->servers < job.servers) {
        err = fl_snapshot_part_init(&s->part[s->servers], disk, base, number,
                                    s->servers);
        s->servers += !err;
    }
    fl_mem_free(base);
    if (err)
        close_snapshot(s);
    else
        list_pieces(s);
    return err;
}

static fl_err add_part_bytes(fl_sha256 *sha, const fl_snapshot_part *p,
                             int64_t at, int64_t bytes)
{
    char *chunk = fl_mem_alloc(CHUNK);
    fl_err err = FL_OK;
    for (const int64_t end = at + bytes; at < end && !err;) {
        const size_t n = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        err = p->disk->read_at(p->data, at, chunk, n);
        if (!err)
            fl_sha256_add(sha, chunk, n);
        at += (int64_t)n;
    }
    fl_mem_free(chunk);
    return err;
}

/* The digest of the variable whose pieces begin at *i, which is moved past
 * them. A piece that several servers have, such as a learning rate, is included
 * once. */
static fl_err sum_variable(const snapshot *s, int64_t *i, sum_list *sums)
{
    const fl_snapshot_tensor *t = s->piece.at[*i].tensor;
    const char *var = t->var;
    int64_t before = -1;
    file_sum sum = {.name = NULL};
    fl_sha256 sha;
    fl_sha256_init(&sha);
    fl_sha256_add(&sha, &t->dtype, sizeof t->dtype);
    for (; *i < s->piece.n; ++*i) {
        const piece *p = &s->piece.at[*i];
        if (strcmp(p->tensor->var, var))
            break;
        if (p->tensor->first != before)
            FL_TRY(
                add_part_bytes(&sha, p->part, p->tensor->at, p->tensor->bytes));
        before = p->tensor->first;
    }
    end_sum(&sha, sum.hex);
    sum.name = fl_mem_strdup(var);
    fl_push(sums, sum);
    return FL_OK;
}

/* Add the digests of the rows of a table, as four numbers. */
static fl_err add_rows(const fl_snapshot_part *p, const fl_snapshot_table *t,
                       uint64_t total[FL_SHA256 / 8])
{
    const size_t size = sizeof(int64_t) + (size_t)t->row;
    char *row = fl_mem_alloc(size);
    fl_err err = FL_OK;
    for (int64_t i = 0; i < t->rows && !err; i++) {
        uint64_t word[FL_SHA256 / 8];
        fl_sha256 sha;
        err = p->disk->read_at(p->data, t->at + i * (int64_t)size, row, size);
        fl_sha256_init(&sha);
        fl_sha256_add(&sha, row, size);
        fl_sha256_end(&sha, (unsigned char *)word);
        for (int k = 0; k < FL_SHA256 / 8; k++)
            total[k] += word[k];
    }
    fl_mem_free(row);
    return err;
}

/* The digest of table number k of the index, which all servers have. */
static fl_err sum_table(const snapshot *s, int64_t k, sum_list *sums)
{
    const char *name = s->part[0].index.table.at[k].name;
    uint64_t total[FL_SHA256 / 8] = {0};
    file_sum sum = {.name = NULL};
    fl_sha256 sha;
    for (int i = 0; i < s->servers; i++)
        for (int64_t j = 0; j < s->part[i].index.table.n; j++)
            if (!strcmp(s->part[i].index.table.at[j].name, name))
                FL_TRY(add_rows(&s->part[i], &s->part[i].index.table.at[j],
                                total));
    fl_sha256_init(&sha);
    fl_sha256_add(&sha, total, sizeof total);
    end_sum(&sha, sum.hex);
    sum.name = fl_mem_strdup(name);
    fl_push(sums, sum);
    return FL_OK;
}

static fl_err sum_snapshot(const fl_folder *f, sum_list *sums)
{
    snapshot s;
    fl_err err = FL_OK;
    FL_TRY(open_snapshot(f->disk, f->dir, &s));
    for (int64_t i = 0; i < s.piece.n && !err;)
        err = sum_variable(&s, &i, sums);
    for (int64_t k = 0; s.servers && k < s.part[0].index.table.n && !err; k++)
        err = sum_table(&s, k, sums);
    close_snapshot(&s);
    return err;
}

/* --- folders --- */

static fl_err sum_folder(const fl_folder *f, void *user)
{
    sum_list *sums = user;
    free_sums(sums); /* left from an attempt that another save made invalid */
    FL_TRY(need_manifest(f));
    if (!strcmp(f->manifest.kind, FL_SNAPSHOT_KIND))
        return sum_snapshot(f, sums);
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
    const fl_err err = visit_folder(e, dir, sum_folder, &sums);
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
    lines->n =
        0; /* left from an earlier attempt, which another save made invalid */
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
    const fl_err err = visit_folder(e, dir, list_damage, &found);
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
    fl_err err = visit_folder(e, a, sum_folder, &x);
    if (!err)
        err = visit_folder(e, b, sum_folder, &y);
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
