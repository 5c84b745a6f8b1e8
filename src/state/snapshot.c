/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - the files of a snapshot. Both texts end with their last line:
 *
 *     job      fluid snapshot 1
 *              number 7
 *              version 812
 *              generation 0
 *              servers 2
 *              trainers 2
 *              mode synchronous
 *              state 00112233aabbccdd
 *              job 0123456789abcdef0123456789abcdef
 *              run 1234.5678
 *
 *     index    fluid snapshot part 1
 *              server 0 2 7 812        server, servers, number, version
 *              image 0a0b0c..          hexadecimal
 *              tensor 5 0 0 52 2 13 1  dtype, first, at, bytes, rank, shape
 *              =fc_0.w_0.block0        its name, then that of the variable
 *              =fc_0.w_0
 *              table 5 40 1000 52      dtype, bytes of a row, rows, at
 *              =emb
 */
#include "state/snapshot.h"

#include "base/crc.h"
#include "base/failpoint.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/path.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PREFIX "snapshot-"
#define PART   "server-"
#define ASIDE  ".damaged"
#define HEAD   "fluid snapshot 1\n"
#define INDEX  "fluid snapshot part 1\n"

enum {
    TEXT_MOST = 1 << 30 /* bytes of a text or an image */
};

char *fl_snapshot_path(const char *base, int64_t number)
{
    fl_str s = {0};
    fl_str_printf(&s, "%s/" PREFIX "%lld", base, (long long)number);
    return fl_str_take(&s);
}

static char *part_path(const char *base, int64_t number, int server)
{
    fl_str s = {0};
    fl_str_printf(&s, "%s/" PREFIX "%lld/" PART "%d", base, (long long)number,
                  server);
    return fl_str_take(&s);
}

/* --- which there are --- */

static bool read_number(const char *name, const char *prefix,
                        const char *suffix, int64_t *out)
{
    char *end;
    if (!fl_starts_with(name, prefix) ||
        !isdigit((unsigned char)name[strlen(prefix)]))
        return false;
    *out = strtoll(name + strlen(prefix), &end, 10);
    return !strcmp(end, suffix) && *out >= 0 && *out < INT64_MAX;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static fl_err list_numbers(const fl_disk *disk, const char *dir,
                           const char *prefix, const char *suffix,
                           fl_snapshot_numbers *out)
{
    fl_file_names names = {0};
    const fl_err err = disk->list(disk, dir, &names);
    for (int64_t i = 0; i < names.n; i++) {
        int64_t number;
        if (read_number(names.at[i], prefix, suffix, &number))
            fl_push(out, number);
    }
    fl_file_names_fini(&names);
    if (out->n)
        qsort(out->at, (size_t)out->n, sizeof *out->at, by_number);
    return err == FL_ENOENT ? FL_OK : err;
}

/* Err: EPROTO: its manifest is damaged; EIO, ENOMEM: it cannot be read, so that
 * nobody knows. */
static fl_err look_at_whole(const fl_disk *disk, const char *base,
                            int64_t number, bool *whole)
{
    char *path = fl_snapshot_path(base, number);
    fl_folder f;
    const fl_err err = fl_folder_init(&f, disk, path);
    *whole =
        !err && f.manifest.kind && !strcmp(f.manifest.kind, FL_SNAPSHOT_KIND);
    fl_folder_fini(&f);
    fl_mem_free(path);
    return err;
}

static bool is_whole(const fl_disk *disk, const char *base, int64_t number)
{
    bool whole;
    return !look_at_whole(disk, base, number, &whole) && whole;
}

/* True also for one whose manifest cannot be read at the moment. */
static bool may_be_whole(const fl_disk *disk, const char *base, int64_t number)
{
    bool whole;
    const fl_err err = look_at_whole(disk, base, number, &whole);
    return whole || (err && err != FL_EPROTO);
}

fl_err fl_snapshot_find(const fl_disk *disk, const char *base, int64_t *last,
                        int64_t *whole)
{
    fl_snapshot_numbers all = {0}, aside = {0};
    fl_err err = list_numbers(disk, base, PREFIX, "", &all);
    if (!err)
        err = list_numbers(disk, base, PREFIX, ASIDE, &aside);
    *last = all.n ? all.at[all.n - 1] : 0;
    if (aside.n && aside.at[aside.n - 1] > *last)
        *last = aside.at[aside.n - 1];
    *whole = 0;
    for (int64_t i = all.n - 1; i >= 0 && !*whole && !err; i--) {
        bool is;
        if (look_at_whole(disk, base, all.at[i], &is))
            FL_WARN("snapshot %lld is left out: %s", (long long)all.at[i],
                    fl_errmsg());
        *whole = is ? all.at[i] : 0;
    }
    fl_vec_fini(&all);
    fl_vec_fini(&aside);
    return err;
}

fl_err fl_snapshot_list(const fl_disk *disk, const char *base,
                        fl_snapshot_numbers *out)
{
    fl_snapshot_numbers all = {0};
    const fl_err err = list_numbers(disk, base, PREFIX, "", &all);
    for (int64_t i = 0; i < all.n && !err; i++)
        if (is_whole(disk, base, all.at[i]))
            fl_push(out, all.at[i]);
    fl_vec_fini(&all);
    return err;
}

static char *aside_path(const char *base, int64_t number)
{
    fl_str s = {0};
    fl_str_printf(&s, "%s/" PREFIX "%lld" ASIDE, base, (long long)number);
    return fl_str_take(&s);
}

fl_err fl_snapshot_set_aside(const fl_disk *disk, const char *base,
                             int64_t number, char **path)
{
    char *from = fl_snapshot_path(base, number);
    *path = aside_path(base, number);
    fl_err err = disk->rename(disk, from, *path);
    if (!err)
        err = disk->persist(disk, base);
    fl_mem_free(from);
    return err;
}

/* --- the job as a whole --- */

static void encode_job(const fl_snapshot_job *j, fl_str *text)
{
    fl_str_printf(text,
                  HEAD "number %" PRId64 "\nversion %" PRId64
                       "\ngeneration %" PRId64 "\nservers %d\ntrainers %d\n"
                       "mode %s\nstate %016" PRIx64 "\njob %s\nrun %s\n",
                  j->number, j->version, j->generation, j->servers, j->trainers,
                  j->async ? "asynchronous" : "synchronous", j->state,
                  j->digest[0] ? j->digest : "-", j->run[0] ? j->run : "-");
}

static fl_err decode_job(const char *path, const char *text, fl_snapshot_job *j)
{
    char mode[16] = "";
    const int n = sscanf(text,
                         HEAD "number %" SCNd64 "\nversion %" SCNd64
                              "\ngeneration %" SCNd64
                              "\nservers %d\ntrainers %d\nmode %15s\n"
                              "state %" SCNx64 "\njob %32s\nrun %63s\n",
                         &j->number, &j->version, &j->generation, &j->servers,
                         &j->trainers, mode, &j->state, j->digest, j->run);
    if (n != 9 || strncmp(text, HEAD, strlen(HEAD)) || j->version < 0 ||
        j->generation < 0 || j->servers < 1 || j->trainers < 1)
        return fl_fail(FL_EPROTO, "%s: its file \"job\" cannot be read", path);
    j->async = !strcmp(mode, "asynchronous");
    if (!strcmp(j->run, "-"))
        j->run[0] = 0;
    return FL_OK;
}

/* The manifest of a part becomes one of the snapshot's files. */
static fl_err add_part(fl_stage *s, const char *path, int64_t server)
{
    fl_str name = {0}, text = {0};
    fl_str_printf(&name, PART "%lld/" FL_MANIFEST, (long long)server);
    char *from = fl_path_join(path, name.at);
    fl_err err = s->disk->read(s->disk, from, TEXT_MOST, &text);
    if (!err)
        err = fl_stage_write(s, name.at, &(fl_part){text.at, text.n}, 1);
    else if (err == FL_ENOENT)
        err = FL_OK; /* of another host, or of one that was killed */
    fl_mem_free(from);
    fl_str_fini(&name);
    fl_str_fini(&text);
    return err;
}

static fl_err stage_job(fl_stage *s, const char *path,
                        const fl_snapshot_job *job, const void *coordinator,
                        size_t n)
{
    fl_str text = {0};
    fl_err err = FL_OK;
    encode_job(job, &text);
    for (int i = 0; i < job->servers && !err; i++)
        err = add_part(s, path, i);
    if (!err)
        err = fl_stage_write(s, "job", &(fl_part){text.at, text.n}, 1);
    if (!err)
        err = fl_stage_write(s, "coordinator", &(fl_part){coordinator, n}, 1);
    fl_failpoint_hit("snapshot.rename");
    if (!err)
        err = fl_stage_commit(s);
    fl_str_fini(&text);
    return err;
}

/* The manifest goes first: a removal that is cut short leaves none that looks
 * whole. */
static fl_err remove_snapshot(const fl_disk *disk, const char *path)
{
    char *manifest = fl_path_join(path, FL_MANIFEST);
    fl_err err = disk->remove(disk, manifest);
    fl_mem_free(manifest);
    if (!err || err == FL_ENOENT)
        err = fl_disk_remove_tree(disk, path);
    return err;
}

static void remove_old(const fl_disk *disk, const char *base, int64_t newest)
{
    fl_snapshot_numbers all = {0}, aside = {0};
    int64_t oldest = newest;
    int keep = FL_SNAPSHOT_KEEP;
    if (list_numbers(disk, base, PREFIX, "", &all) ||
        list_numbers(disk, base, PREFIX, ASIDE, &aside))
        FL_WARN("old snapshots are not removed: %s", fl_errmsg());
    for (int64_t i = all.n - 1; i >= 0; i--) {
        bool whole;
        if (all.at[i] > newest)
            continue;
        const fl_err err = look_at_whole(disk, base, all.at[i], &whole);
        if (err && err != FL_EPROTO) {
            FL_WARN("a snapshot that may be whole stays: %s", fl_errmsg());
            continue;
        }
        if (whole && keep-- > 0) {
            oldest = all.at[i];
            continue;
        }
        char *path = fl_snapshot_path(base, all.at[i]);
        if (remove_snapshot(disk, path))
            FL_WARN("an old snapshot cannot be removed: %s", fl_errmsg());
        fl_mem_free(path);
    }
    for (int64_t i = 0; i < aside.n && aside.at[i] < oldest; i++) {
        char *path = aside_path(base, aside.at[i]);
        if (fl_disk_remove_tree(disk, path))
            FL_WARN("a damaged snapshot cannot be removed: %s", fl_errmsg());
        fl_mem_free(path);
    }
    fl_vec_fini(&all);
    fl_vec_fini(&aside);
}

/* One whose manifest cannot be read may be whole. */
static bool has_manifest(const fl_disk *disk, const char *path)
{
    char *manifest = fl_path_join(path, FL_MANIFEST);
    int64_t bytes;
    const fl_err err = disk->size(disk, manifest, &bytes);
    fl_mem_free(manifest);
    return err != FL_ENOENT;
}

void fl_snapshot_clear(const fl_disk *disk, const char *base, int64_t number)
{
    fl_snapshot_numbers all = {0};
    if (list_numbers(disk, base, PREFIX, "", &all))
        all.n = 0;
    for (int64_t i = 0; i < all.n && all.at[i] < number; i++) {
        char *path = fl_snapshot_path(base, all.at[i]);
        if (!has_manifest(disk, path) && remove_snapshot(disk, path))
            FL_WARN("an incomplete snapshot cannot be removed: %s",
                    fl_errmsg());
        fl_mem_free(path);
    }
    fl_vec_fini(&all);
}

fl_err fl_snapshot_commit(const fl_disk *disk, const char *base,
                          const fl_snapshot_job *job, const void *coordinator,
                          size_t n)
{
    char *path = fl_snapshot_path(base, job->number);
    fl_stage s;
    fl_err err = fl_stage_init(&s, disk, path, FL_SNAPSHOT_KIND);
    if (!err)
        err = stage_job(&s, path, job, coordinator, n);
    const bool whole = s.committed;
    fl_stage_fini(&s);
    if (whole)
        remove_old(disk, base, job->number);
    fl_mem_free(path);
    return err;
}

typedef struct job_reading {
    const char *path;
    fl_snapshot_job *job;
    fl_str *coordinator;
} job_reading;

static fl_err read_job(const fl_folder *f, void *user)
{
    const job_reading *r = user;
    fl_str text = {0};
    fl_err err = FL_OK;
    if (!f->manifest.kind || strcmp(f->manifest.kind, FL_SNAPSHOT_KIND))
        return fl_fail(FL_ENOENT, "%s is not a whole snapshot", r->path);
    err = fl_folder_read(f, "job", TEXT_MOST, &text);
    if (!err)
        err = decode_job(r->path, text.at ? text.at : "", r->job);
    if (!err)
        err = fl_folder_read(f, "coordinator", TEXT_MOST, r->coordinator);
    fl_str_fini(&text);
    return err;
}

fl_err fl_snapshot_read(const fl_disk *disk, const char *base, int64_t number,
                        fl_snapshot_job *job, fl_str *coordinator)
{
    char *path = fl_snapshot_path(base, number);
    const fl_err err = fl_folder_visit(disk, path, read_job,
                                       &(job_reading){path, job, coordinator});
    fl_mem_free(path);
    return err;
}

/* A folder of a snapshot that holds this server's part only is of a host that
 * does not have server 0. */
void fl_snapshot_tidy(const fl_disk *disk, const char *base, int server,
                      int64_t number)
{
    fl_snapshot_numbers all = {0};
    int keep = FL_SNAPSHOT_KEEP;
    if (!server || list_numbers(disk, base, PREFIX, "", &all))
        all.n = 0;
    for (int64_t i = all.n - 1; i >= 0; i--) {
        if (all.at[i] >= number || may_be_whole(disk, base, all.at[i]) ||
            keep-- > 0)
            continue;
        char *part = part_path(base, all.at[i], server);
        char *path = fl_snapshot_path(base, all.at[i]);
        if (remove_snapshot(disk, part))
            FL_WARN("an old snapshot cannot be removed: %s", fl_errmsg());
        (void)!disk->remove(disk, path); /* fails if others have parts in it */
        fl_mem_free(part);
        fl_mem_free(path);
    }
    fl_vec_fini(&all);
}

/* --- a server's part: the index --- */

void fl_snapshot_index_fini(fl_snapshot_index *x)
{
    for (int64_t i = 0; i < x->tensor.n; i++) {
        fl_mem_free(x->tensor.at[i].name);
        fl_mem_free(x->tensor.at[i].var);
    }
    for (int64_t i = 0; i < x->table.n; i++)
        fl_mem_free(x->table.at[i].name);
    fl_vec_fini(&x->tensor);
    fl_vec_fini(&x->table);
    fl_str_fini(&x->image);
}

static fl_err check_name(const char *name)
{
    if (!strchr(name, '\n'))
        return FL_OK;
    return fl_fail(FL_EINVAL,
                   "snapshot: the name of a variable has an end of line");
}

static fl_err encode_index(const fl_snapshot_index *x, fl_str *text)
{
    fl_str_printf(text, INDEX "server %d %d %" PRId64 " %" PRId64 "\nimage ",
                  x->server, x->servers, x->number, x->version);
    for (size_t i = 0; i < x->image.n; i++)
        fl_str_printf(text, "%02x", (unsigned char)x->image.at[i]);
    fl_str_add(text, "\n");
    for (int64_t i = 0; i < x->tensor.n; i++) {
        const fl_snapshot_tensor *t = &x->tensor.at[i];
        FL_TRY(check_name(t->name));
        FL_TRY(check_name(t->var));
        fl_str_printf(text, "tensor %d %" PRId64 " %" PRId64 " %" PRId64 " %d",
                      t->dtype, t->first, t->at, t->bytes, t->rank);
        for (int k = 0; k < t->rank; k++)
            fl_str_printf(text, " %" PRId64, t->dim[k]);
        fl_str_printf(text, "\n=%s\n=%s\n", t->name, t->var);
    }
    for (int64_t i = 0; i < x->table.n; i++) {
        const fl_snapshot_table *t = &x->table.at[i];
        FL_TRY(check_name(t->name));
        fl_str_printf(text,
                      "table %d %" PRId64 " %" PRId64 " %" PRId64 "\n=%s\n",
                      t->dtype, t->row, t->rows, t->at, t->name);
    }
    return FL_OK;
}

/* A text that is read from its start on. */
typedef struct reader {
    const char *at;
    bool bad;
} reader;

static bool accept(reader *r, const char *word)
{
    const size_t n = strlen(word);
    const bool is = !strncmp(r->at, word, n);
    r->at += is ? n : 0;
    return is;
}

static void expect(reader *r, const char *word)
{
    r->bad = !accept(r, word) || r->bad;
}

static int64_t number(reader *r, int64_t most)
{
    char *end;
    const bool digit = isdigit((unsigned char)*r->at);
    const int64_t n = digit ? strtoll(r->at, &end, 10) : 0;
    r->bad = r->bad || !digit || n > most;
    r->at = digit ? end : r->at;
    r->at += *r->at == ' ';
    return r->bad ? 0 : n;
}

/* "=NAME\n" */
static char *name_of(reader *r)
{
    expect(r, "=");
    const size_t n = strcspn(r->at, "\n");
    fl_str name = {0};
    fl_str_bytes(&name, r->at, n);
    fl_str_add(&name, "");
    r->at += n;
    expect(r, "\n");
    return fl_str_take(&name);
}

static void image_of(reader *r, fl_str *out)
{
    for (unsigned char byte; fl_str_hex(r->at, &byte); r->at += 2)
        fl_str_bytes(out, &byte, 1);
    expect(r, "\n");
}

static void tensor_of(reader *r, int64_t data, fl_snapshot_index *x)
{
    fl_snapshot_tensor t = {0};
    t.dtype = (int)number(r, 64);
    t.first = number(r, INT64_MAX - 1);
    t.at = number(r, data);
    t.bytes = number(r, data);
    t.rank = (int)number(r, FL_SNAPSHOT_RANK);
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = number(r, INT64_MAX - 1);
    expect(r, "\n");
    t.name = name_of(r);
    t.var = name_of(r);
    r->bad = r->bad || t.bytes > data - t.at;
    fl_push(&x->tensor, t);
}

static void table_of(reader *r, int64_t data, fl_snapshot_index *x)
{
    fl_snapshot_table t = {0};
    t.dtype = (int)number(r, 64);
    t.row = number(r, INT32_MAX);
    t.rows = number(r, data);
    t.at = number(r, data);
    expect(r, "\n");
    t.name = name_of(r);
    r->bad = r->bad || t.rows > (data - t.at) / (t.row + 8);
    fl_push(&x->table, t);
}

static fl_err decode_index(const char *path, const char *text, int64_t data,
                           fl_snapshot_index *x)
{
    reader r = {.at = text};
    expect(&r, INDEX "server ");
    x->server = (int)number(&r, INT32_MAX);
    x->servers = (int)number(&r, INT32_MAX);
    x->number = number(&r, INT64_MAX - 1);
    x->version = number(&r, INT64_MAX - 1);
    expect(&r, "\nimage ");
    image_of(&r, &x->image);
    while (!r.bad && accept(&r, "tensor "))
        tensor_of(&r, data, x);
    while (!r.bad && accept(&r, "table "))
        table_of(&r, data, x);
    if (!r.bad && !*r.at)
        return FL_OK;
    return fl_fail(FL_EPROTO, "%s: its index cannot be read", path);
}

/* --- a server's part: the files --- */

fl_err fl_snapshot_begin(fl_stage *s, const fl_disk *disk, const char *base,
                         const fl_snapshot_index *x)
{
    char *path = part_path(base, x->number, x->server);
    fl_err err = fl_stage_init(s, disk, path, FL_SNAPSHOT_PART);
    fl_mem_free(path);
    return err ? err : fl_stage_open(s, "data");
}

fl_err fl_snapshot_end(fl_stage *s, const fl_snapshot_index *x)
{
    fl_str text = {0};
    fl_err err = fl_stage_close(s);
    if (!err)
        err = encode_index(x, &text);
    if (!err)
        err = fl_stage_write(s, "index", &(fl_part){text.at, text.n}, 1);
    if (!err)
        err = fl_stage_commit(s);
    fl_str_fini(&text);
    return err;
}

static fl_err open_data(const fl_folder *f, fl_snapshot_part *p, int64_t *bytes)
{
    char *path;
    FL_TRY(fl_folder_find(f, "data", &path));
    fl_err err = f->disk->look(f->disk, path, &p->data, bytes);
    fl_mem_free(path);
    if (!err)
        err = fl_folder_check(f, "data", p->data, *bytes);
    return err;
}

static fl_err read_part(const fl_folder *f, fl_snapshot_part *p)
{
    fl_str text = {0};
    int64_t bytes = 0;
    if (!f->manifest.kind || strcmp(f->manifest.kind, FL_SNAPSHOT_PART))
        return fl_fail(FL_ENOENT, "%s is not a whole part of a snapshot",
                       f->dir);
    FL_TRY(open_data(f, p, &bytes));
    fl_err err = fl_folder_read(f, "index", TEXT_MOST, &text);
    if (!err)
        err = decode_index(f->dir, text.at ? text.at : "", bytes, &p->index);
    fl_str_fini(&text);
    return err;
}

/* Compare the part's manifest with what the snapshot says of it. The snapshot
 * has a manifest only where server 0 has written it. */
static fl_err check_listed(const fl_disk *disk, const char *base,
                           int64_t number, int server)
{
    char *path = fl_snapshot_path(base, number);
    fl_str name = {0}, text = {0};
    fl_folder f;
    fl_str_printf(&name, PART "%d/" FL_MANIFEST, server);
    fl_err err = fl_folder_init(&f, disk, path);
    if (!err && fl_manifest_find(&f.manifest, name.at))
        err = fl_folder_read(&f, name.at, TEXT_MOST, &text);
    fl_folder_fini(&f);
    fl_str_fini(&name);
    fl_str_fini(&text);
    fl_mem_free(path);
    return err;
}

static fl_err check_place(const char *path, const fl_snapshot_index *x,
                          int64_t number, int server)
{
    if (x->number == number && x->server == server)
        return FL_OK;
    return fl_fail(FL_EPROTO,
                   "%s is the part of server %d in snapshot %lld, expected "
                   "server %d in snapshot %lld",
                   path, x->server, (long long)x->number, server,
                   (long long)number);
}

fl_err fl_snapshot_part_init(fl_snapshot_part *p, const fl_disk *disk,
                             const char *base, int64_t number, int server)
{
    char *path = part_path(base, number, server);
    fl_folder f;
    *p = (fl_snapshot_part){.disk = disk};
    fl_err err = fl_folder_init(&f, disk, path);
    if (!err)
        err = check_listed(disk, base, number, server);
    if (!err)
        err = read_part(&f, p);
    if (!err)
        err = check_place(path, &p->index, number, server);
    fl_folder_fini(&f);
    fl_mem_free(path);
    if (err)
        fl_snapshot_part_fini(p);
    return err;
}

void fl_snapshot_part_fini(fl_snapshot_part *p)
{
    const fl_sentence last = fl_sentence_keep();
    if (p->data)
        (void)!p->disk->close(p->data);
    fl_snapshot_index_fini(&p->index);
    *p = (fl_snapshot_part){0};
    fl_sentence_restore(&last);
}

/* --- for those who look --- */

fl_err fl_snapshot_each(const fl_disk *disk, const char *base,
                        void (*fn)(void *user, int64_t number), void *user)
{
    fl_snapshot_numbers all = {0};
    const fl_err err = list_numbers(disk, base, PREFIX, "", &all);
    for (int64_t i = 0; i < all.n && !err; i++)
        fn(user, all.at[i]);
    fl_vec_fini(&all);
    return err;
}

fl_err fl_snapshot_parts(const fl_disk *disk, const char *path,
                         void (*fn)(void *user, const char *path), void *user)
{
    fl_snapshot_numbers all = {0};
    const fl_err err = list_numbers(disk, path, PART, "", &all);
    for (int64_t i = 0; i < all.n && !err; i++) {
        fl_str part = {0};
        fl_str_printf(&part, "%s/" PART "%lld", path, (long long)all.at[i]);
        fn(user, part.at);
        fl_str_fini(&part);
    }
    fl_vec_fini(&all);
    return err;
}
