/* SPDX-License-Identifier: Apache-2.0 */
/* model_fuzz.c - loads a folder whose files are the fuzzer's bytes: a manifest,
 * a program and two files of values, in place or staged. After that, a save
 * into the same folder must succeed, and the saved model must load.
 *
 *     byte 0            1: there is a manifest, made of the bytes; 2: the files
 *                       are staged; 4: a correct manifest is made; 8: one file
 *     then four times   two bytes of length, and the bytes of a file */
#include "exec/model.h"

#include "base/memdisk.h"
#include "base/path.h"
#include "ops/ops.h"
#include "tensor/file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

enum {
    MANIFEST = 1,
    STAGED = 2,
    TRUE_MANIFEST = 4,
    ONE_FILE = 8
};

/* The next piece of the input. */
static fl_part take(const uint8_t **at, size_t *left)
{
    fl_part part = {"", 0};
    if (*left < 2)
        return part;
    const size_t n = (size_t)(*at)[0] | (size_t)(*at)[1] << 8;
    *at += 2;
    *left -= 2;
    part = (fl_part){*at, n < *left ? n : *left};
    *at += part.n;
    *left -= part.n;
    return part;
}

static void put(const fl_disk *d, const char *dir, const char *name,
                fl_part part)
{
    char *path = fl_path_join(dir, name);
    must(!d->write(d, path, &part, 1, true));
    fl_mem_free(path);
}

static void fill(const fl_disk *d, const uint8_t *data, size_t size)
{
    static const char *const names[] = {"__model__", "a", "b"};
    const int how = data[0];
    const uint8_t *at = data + 1;
    size_t left = size - 1;
    const fl_part manifest = take(&at, &left);
    fl_stage s;
    if (how & TRUE_MANIFEST)
        must(!fl_stage_init(&s, d, "m", "model"));
    for (int i = 0; i < 3; i++) {
        const fl_part part = take(&at, &left);
        if (how & TRUE_MANIFEST)
            must(!fl_stage_write(&s, names[i], &part, 1));
        else
            put(d, how & STAGED ? "m/.save-1" : "m", names[i], part);
    }
    if (how & TRUE_MANIFEST) {
        must(!fl_stage_commit(&s));
        fl_stage_fini(&s);
    }
    if (how & MANIFEST)
        put(d, "m", FL_MANIFEST, manifest);
}

/* State of load_inference_model without an engine. */
typedef struct guest {
    const fl_registry *registry;
    bool one_file;
    fl_program *program;
    fl_loaded values;
} guest;

static fl_err load(const fl_folder *f, void *user)
{
    guest *g = user;
    fl_str bytes = {0};
    fl_program_free(g->program);
    g->program = NULL;
    fl_err err = fl_folder_read(f, "__model__", 1 << 20, &bytes);
    if (!err)
        err = fl_program_decode(g->registry, "m/__model__", bytes.at, bytes.n,
                                &g->program);
    fl_str_fini(&bytes);
    return err ? err
               : fl_loaded_read(&g->values, f, g->program,
                                g->one_file ? "a" : NULL, -1, NULL);
}

static void check_again(const fl_disk *d, guest *g)
{
    fl_scope *s = fl_scope_new();
    fl_stage stage;
    fl_loaded_give(&g->values, s);
    fl_err err = fl_stage_init(&stage, d, "m", "model");
    if (!err)
        err = fl_vars_save(&stage, g->program, s, NULL, -1, NULL);
    if (!err)
        err = fl_stage_commit(&stage);
    fl_stage_fini(&stage);
    if (!err)
        must(!fl_vars_load(d, g->program, s, "m", NULL, -1, NULL));
    fl_scope_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fl_registry *r; /* made once and never freed */
    if (!r)
        must(!fl_registry_new(fl_ops_table, fl_ops_count, &r));
    if (!size)
        return 0;
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    guest g = {.registry = r, .one_file = data[0] & ONE_FILE};
    fill(d, data, size);
    if (!fl_folder_visit(d, "m", load, &g))
        check_again(d, &g);
    fl_loaded_fini(&g.values);
    fl_program_free(g.program);
    fl_memdisk_free(m);
    return 0;
}
