/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.c - numbered saves from which training goes on after a crash.
 *
 *     DIR/checkpoint_7/__model__/           a file for each variable
 *                      __model__/_SUCCESS   written last: now it is whole
 *                      trainer_0/epoch_id   the last step that it contains
 *                      trainer_0/step_id
 *
 * A checkpoint without _SUCCESS is incomplete: it is never loaded, and the next
 * save removes it. Both folders have manifests, so a damaged file is found, and
 * the checkpoint before it is loaded instead.
 *
 * In a job with servers trainer 0 saves, and each server loads its pieces. If a
 * trainer continued from a checkpoint while the servers had started with
 * initial values, the model would be wrong and nobody would notice. So a
 * trainer compares the parameters that it received with the checkpoint. */
#include "api/engine.h"

#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/stage.h"
#include "exec/model.h"
#include "state/snapshot.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define PREFIX  "checkpoint_"
#define MODEL   "__model__"
#define ARGS    "trainer_0"
#define SUCCESS MODEL "/_SUCCESS"

enum {
    LARGEST_NUMBER = 32 /* bytes of a file that holds a number */
};

typedef FL_VEC(int64_t) serial_list;

/* The path DIR/checkpoint_N/name, or of the folder itself (name NULL). Own: the
 * caller frees it with fl_mem_free. */
static char *path_in(const char *dir, int64_t serial, const char *name)
{
    fl_str s = {0};
    fl_str_printf(&s, "%s/" PREFIX "%lld", *dir ? dir : ".", (long long)serial);
    if (name)
        fl_str_printf(&s, "/%s", name);
    return fl_str_take(&s);
}

/* --- the list --- */

static bool read_serial(const char *name, int64_t *out)
{
    char *end;
    if (!fl_starts_with(name, PREFIX) || !name[strlen(PREFIX)])
        return false;
    *out = strtoll(name + strlen(PREFIX), &end, 10);
    return !*end && *out >= 0 && *out < INT64_MAX;
}

static int by_serial(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* List all checkpoints, also incomplete ones, the oldest first. A missing
 * folder gives an empty list. */
static fl_err list_serials(const fl_disk *disk, const char *dir,
                           serial_list *out)
{
    fl_file_names names = {0};
    const fl_err err = disk->list(disk, *dir ? dir : ".", &names);
    for (int64_t i = 0; i < names.n; i++) {
        int64_t serial;
        if (read_serial(names.at[i], &serial))
            fl_push(out, serial);
    }
    fl_file_names_fini(&names);
    if (out->n)
        qsort(out->at, (size_t)out->n, sizeof *out->at, by_serial);
    return err == FL_ENOENT ? FL_OK : err;
}

static bool is_whole(const fl_disk *disk, const char *dir, int64_t serial)
{
    int64_t bytes;
    char *path = path_in(dir, serial, SUCCESS);
    const bool whole = !disk->size(disk, path, &bytes);
    fl_mem_free(path);
    return whole;
}

/* --- saving --- */

static fl_err write_args(const fl_disk *disk, const char *path,
                         const fl_checkpoint *at)
{
    const struct {
        const char *name;
        int64_t value;
    } args[] = {{"epoch_id", at->epoch}, {"step_id", at->step}};
    fl_stage stage;
    fl_err err = fl_stage_init(&stage, disk, path, "checkpoint");
    for (int i = 0; i < 2 && !err; i++) {
        char text[LARGEST_NUMBER];
        const int n =
            snprintf(text, sizeof text, "%lld\n", (long long)args[i].value);
        err = fl_stage_write(&stage, args[i].name, &(fl_part){text, (size_t)n},
                             1);
    }
    if (!err)
        err = fl_stage_commit(&stage);
    fl_stage_fini(&stage);
    return err;
}

/* Remove incomplete checkpoints, and all but the `most` newest. _SUCCESS is
 * removed first, so that an interrupted removal leaves no checkpoint that looks
 * complete. */
static fl_err remove_old(const fl_disk *disk, const char *dir,
                         const serial_list *all, int most)
{
    for (int64_t i = all->n - 1; i >= 0; i--) {
        if (is_whole(disk, dir, all->at[i]) && most-- > 0)
            continue;
        char *success = path_in(dir, all->at[i], SUCCESS);
        char *path = path_in(dir, all->at[i], NULL);
        fl_err err = disk->remove(disk, success);
        if (!err || err == FL_ENOENT)
            err = fl_disk_remove_tree(disk, path);
        fl_mem_free(success);
        fl_mem_free(path);
        FL_TRY(err);
    }
    return FL_OK;
}

static fl_err write_checkpoint(fl_engine *e, const fl_program *p, fl_scope *s,
                               const char *dir, const fl_checkpoint *at)
{
    char *model = path_in(dir, at->serial, MODEL);
    char *args = path_in(dir, at->serial, ARGS);
    char *success = path_in(dir, at->serial, SUCCESS);
    fl_err err = write_args(e->disk, args, at);
    if (!err)
        err = fl_save_persistables(e, p, s, model, NULL);
    if (!err)
        err = fl_file_write(e->disk, success, NULL, 0);
    fl_mem_free(model);
    fl_mem_free(args);
    fl_mem_free(success);
    return err;
}

fl_err fl_checkpoint_save(fl_engine *e, const fl_program *p, fl_scope *s,
                          const char *dir, int most, fl_checkpoint *at)
{
    serial_list all = {0};
    if (most < 1)
        return fl_fail(FL_EINVAL,
                       "checkpoint: the number of checkpoints to keep is %d, "
                       "expected 1 or more",
                       most);
    fl_err err = list_serials(e->disk, dir, &all);
    at->serial = all.n ? all.at[all.n - 1] + 1 : 0;
    if (!err)
        err = write_checkpoint(e, p, s, dir, at);
    fl_push(&all, at->serial);
    if (!err)
        err = remove_old(e->disk, dir, &all, most);
    fl_vec_fini(&all);
    return err;
}

fl_err fl_checkpoint_clean(fl_engine *e, const char *dir)
{
    serial_list all = {0};
    fl_err err = list_serials(e->disk, dir, &all);
    if (!err)
        err = remove_old(e->disk, dir, &all, 0);
    fl_vec_fini(&all);
    return err;
}

/* --- loading --- */

static fl_err read_number(const fl_folder *f, const char *name, int64_t *out)
{
    fl_str text = {0};
    char *end = NULL;
    fl_err err = fl_folder_read(f, name, LARGEST_NUMBER, &text);
    if (!err) {
        *out = strtoll(text.n ? text.at : "", &end, 10);
        if (!text.n || end == text.at || (*end && *end != '\n') || *out < 0)
            err = fl_fail(FL_EPROTO, "%s/%s does not hold a number", f->dir,
                          name);
    }
    fl_str_fini(&text);
    return err;
}

static fl_err read_args(const fl_folder *f, void *user)
{
    fl_checkpoint *c = user;
    FL_TRY(read_number(f, "epoch_id", &c->epoch));
    return read_number(f, "step_id", &c->step);
}

/* Arguments of a load on a trainer, which loads only the variables that it has
 * itself. */
typedef struct trainer_load {
    const fl_program *p;
    FL_VEC(const char *) names;
    fl_loaded loaded;
} trainer_load;

static fl_err read_loaded(const fl_folder *f, void *user)
{
    trainer_load *t = user;
    return fl_loaded_read(&t->loaded, f, t->p, NULL, (int)t->names.n,
                          t->names.at);
}

static bool same_tensor(const fl_value *a, const fl_value *b)
{
    return b && a->kind == FL_LOD_TENSOR && b->kind == FL_LOD_TENSOR &&
           fl_tensor_bytes(&a->tensor) == fl_tensor_bytes(&b->tensor) &&
           !memcmp(a->tensor.data, b->tensor.data, fl_tensor_bytes(&a->tensor));
}

/* Compare the parameters that the startup program received from the servers
 * with the checkpoint. */
static fl_err compare_params(const fl_loaded *l, fl_scope *s, const char *dir)
{
    for (int64_t i = 0; i < l->list.n; i++) {
        const fl_var *v = l->list.at[i];
        if (v->param && !same_tensor(&l->value[i], fl_scope_find(s, v->name)))
            return fl_fail(
                FL_EINVAL,
                "checkpoint %s: \"%s\" on the servers is not what the "
                "checkpoint holds, so the servers did not load it; give all "
                "processes of the job one checkpoint folder that they share, "
                "or remove the checkpoints to begin anew",
                dir, v->name);
    }
    return FL_OK;
}

static fl_err load_on_trainer(fl_engine *e, const fl_program *p, fl_scope *s,
                              const char *model)
{
    trainer_load t = {.p = p};
    fl_vars all = {0};
    fl_err err = fl_vars_list(p, -1, NULL, &all);
    for (int64_t i = 0; i < all.n; i++) {
        const fl_value *v = fl_scope_find(s, all.at[i]->name);
        if (v && !fl_value_is_absent(v))
            fl_push(&t.names, all.at[i]->name);
    }
    if (!err)
        err = fl_folder_visit(e->disk, model, read_loaded, &t);
    if (!err)
        err = compare_params(&t.loaded, s, model);
    if (!err)
        fl_loaded_give(&t.loaded, s);
    fl_loaded_fini(&t.loaded);
    fl_vec_fini(&t.names);
    fl_vec_fini(&all);
    return err;
}

static fl_err load_one(fl_engine *e, const fl_program *p, fl_scope *s,
                       const char *dir, fl_checkpoint *c)
{
    char *args = path_in(dir, c->serial, ARGS);
    char *model = path_in(dir, c->serial, MODEL);
    const bool trainers = p->job && fl_placement_of(p->job)->origin_size;
    fl_err err = fl_folder_visit(e->disk, args, read_args, c);
    if (!err)
        err = trainers ? load_on_trainer(e, p, s, model)
                       : fl_load_persistables(e, p, s, model, NULL);
    fl_mem_free(args);
    fl_mem_free(model);
    return err;
}

/* Load the newest complete checkpoint; if it is damaged, the one before it. */
static fl_err load_newest(fl_engine *e, const fl_program *p, fl_scope *s,
                          const char *dir, const serial_list *all,
                          fl_checkpoint *out)
{
    fl_err err = FL_OK;
    for (int64_t i = all->n - 1; i >= 0; i--) {
        fl_checkpoint c = {.serial = all->at[i]};
        if (!is_whole(e->disk, dir, c.serial))
            continue;
        err = load_one(e, p, s, dir, &c);
        if (!err) {
            *out = c;
            return FL_OK;
        }
        if (err != FL_EPROTO && err != FL_ENOENT)
            return err;
        FL_WARN("checkpoint %lld of %s cannot be used: %s", (long long)c.serial,
                dir, fl_errmsg());
    }
    if (err)
        return fl_fail_at(err,
                          "no checkpoint of %s can be loaded; remove them to "
                          "begin anew",
                          dir);
    out->serial = -1;
    return FL_OK;
}

fl_err fl_checkpoint_load(fl_engine *e, const fl_program *p, fl_scope *s,
                          const char *dir, fl_checkpoint *out)
{
    serial_list all = {0};
    fl_err err = list_serials(e->disk, dir, &all);
    if (!err)
        err = load_newest(e, p, s, dir, &all, out);
    fl_vec_fini(&all);
    return err;
}

/* --- text for users --- */

/* "epoch 2, step 30, 12 files, 3456 bytes", or what is wrong with it. */
static void describe_checkpoint(fl_engine *e, const char *dir, int64_t serial,
                                fl_str *lines)
{
    char *args = path_in(dir, serial, ARGS),
         *model = path_in(dir, serial, MODEL);
    fl_checkpoint at = {.serial = serial};
    fl_folder f = {0};
    int64_t bytes = 0;
    fl_str_printf(lines, PREFIX "%lld: ", (long long)serial);
    if (!is_whole(e->disk, dir, serial)) {
        fl_str_add(lines, "cut short: it is not loaded, and the next save "
                          "removes it\n");
    } else if (fl_folder_visit(e->disk, args, read_args, &at) ||
               fl_folder_init(&f, e->disk, model)) {
        fl_str_printf(lines, "damaged: %s\n", fl_errmsg());
    } else {
        for (int64_t i = 0; i < f.manifest.file.n; i++)
            bytes += f.manifest.file.at[i].size;
        fl_str_printf(lines, "epoch %lld, step %lld, %lld files, %lld bytes\n",
                      (long long)at.epoch, (long long)at.step,
                      (long long)f.manifest.file.n, (long long)bytes);
    }
    fl_folder_fini(&f);
    fl_mem_free(args);
    fl_mem_free(model);
}

/* --- snapshots of servers, for people --- */

/* The function that is called for each snapshot of a folder. */
typedef struct looking {
    fl_engine *engine;
    const char *dir;
    fl_str *lines;
    fl_err first; /* error */
} looking;

static void add_part_bytes(void *user, const char *path)
{
    int64_t *bytes = user, size;
    char *data = fl_path_join(path, "data");
    if (!fl_disk_real()->size(fl_disk_real(), data, &size))
        *bytes += size;
    fl_mem_free(data);
}

static void describe_snapshot(void *user, int64_t number)
{
    const looking *l = user;
    const fl_disk *disk = l->engine->disk;
    char *path = fl_snapshot_path(l->dir, number);
    fl_snapshot_job job = {0};
    fl_str image = {0};
    int64_t bytes = 0;
    char version[48] = ""; /* an asynchronous job has no rounds to count */
    const fl_err err = fl_snapshot_read(disk, l->dir, number, &job, &image);
    fl_str_printf(l->lines, "snapshot-%lld: ", (long long)number);
    if (err == FL_ENOENT)
        fl_str_add(l->lines, "cut short: it is not used, and the next one "
                             "removes it\n");
    else if (err)
        fl_str_printf(l->lines, "damaged: %s\n", fl_errmsg());
    else if (!fl_snapshot_parts(disk, path, add_part_bytes, &bytes)) {
        if (!job.async)
            snprintf(version, sizeof version, "version %lld, ",
                     (long long)job.version);
        fl_str_printf(l->lines,
                      "whole, %s%ssynchronous, %d servers, %d trainers, %lld "
                      "bytes\n",
                      version, job.async ? "a" : "", job.servers, job.trainers,
                      (long long)bytes);
    }
    fl_str_fini(&image);
    fl_mem_free(path);
}

static void verify_part(void *user, const char *path)
{
    looking *l = user;
    const fl_err err = fl_engine_damage(l->engine, path, l->lines);
    l->first = l->first ? l->first : err;
}

static bool is_snapshot(fl_engine *e, const char *path)
{
    fl_folder f;
    const fl_err err = fl_folder_init(&f, e->disk, path);
    const bool is =
        !err && f.manifest.kind && !strcmp(f.manifest.kind, FL_SNAPSHOT_KIND);
    if (!err)
        fl_folder_fini(&f);
    return is || err == FL_EPROTO;
}

/* Verify all files of a complete snapshot, and of its parts. */
static void verify_snapshot(looking *l, const char *path)
{
    verify_part(l, path);
    const fl_err err = fl_snapshot_parts(l->engine->disk, path, verify_part, l);
    l->first = l->first ? l->first : err;
}

static void verify_numbered(void *user, int64_t number)
{
    looking *l = user;
    char *path = fl_snapshot_path(l->dir, number);
    if (is_snapshot(l->engine, path)) /* the others are incomplete */
        verify_snapshot(l, path);
    fl_mem_free(path);
}

static void count_one(void *user, int64_t number)
{
    ++*(int *)user;
}

static int count_snapshots(fl_engine *e, const char *dir)
{
    int n = 0;
    if (fl_snapshot_each(e->disk, dir, count_one, &n))
        return 0;
    return n;
}

fl_err fl_checkpoint_list(fl_engine *e, const char *dir, char **text)
{
    serial_list all = {0};
    fl_str lines = {0};
    looking l = {.engine = e, .dir = dir, .lines = &lines};
    fl_err err = fl_folder_need(e->disk, dir);
    if (!err)
        err = list_serials(e->disk, dir, &all);
    if (!err && !all.n && count_snapshots(e, dir))
        err = fl_snapshot_each(e->disk, dir, describe_snapshot, &l);
    else if (!err && !all.n)
        err = fl_fail(FL_ENOENT, "%s has no folder " PREFIX "N or snapshot-N",
                      *dir ? dir : ".");
    for (int64_t i = 0; i < all.n && !err; i++)
        describe_checkpoint(e, dir, all.at[i], &lines);
    if (!err)
        *text = fl_str_take(&lines);
    fl_vec_fini(&all);
    fl_str_fini(&lines);
    return err;
}

fl_err fl_verify(fl_engine *e, const char *dir, char **text)
{
    static const char *const parts[] = {MODEL, ARGS};
    serial_list all = {0};
    fl_str lines = {0};
    fl_err first = fl_folder_need(e->disk, dir);
    if (first) {
        *text = fl_mem_strdup("");
        return first;
    }
    first = list_serials(e->disk, dir, &all);
    looking l = {.engine = e, .dir = dir, .lines = &lines};
    if (!first && !all.n && is_snapshot(e, dir)) {
        verify_snapshot(&l, dir);
        first = l.first;
    } else if (!first && !all.n && count_snapshots(e, dir)) {
        first = fl_snapshot_each(e->disk, dir, verify_numbered, &l);
        first = first ? first : l.first;
    } else if (!first && !all.n)
        first = fl_engine_damage(e, dir, &lines);
    for (int64_t i = 0; i < all.n; i++)
        for (int k = 0; k < 2; k++) {
            char *path = path_in(dir, all.at[i], parts[k]);
            const fl_err err = fl_engine_damage(e, path, &lines);
            first = first ? first : err;
            fl_mem_free(path);
        }
    fl_vec_fini(&all);
    fl_str_add(&lines, "");
    *text = fl_str_take(&lines);
    return first;
}
