/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_fuzz.c - reads a snapshot whose index of a part, and whose
 * description of the job, are the fuzzer's bytes; the manifests are right. */
#include "state/snapshot.h"

#include "base/memdisk.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(fl_stage *s, const char *name, const void *at, size_t n)
{
    if (fl_stage_write(s, name, &(fl_part){at, n}, 1))
        abort();
}

static void write_folder(const fl_disk *d, const char *dir, const char *kind,
                         const char *name, const fl_part *bytes,
                         const char *other)
{
    static const char content[256];
    fl_stage s;
    if (fl_stage_init(&s, d, dir, kind))
        abort();
    write_file(&s, name, bytes->at, bytes->n);
    write_file(&s, other, content, sizeof content);
    if (fl_stage_commit(&s))
        abort();
    fl_stage_fini(&s);
}

static void read_part(const fl_disk *d)
{
    fl_snapshot_part p;
    if (fl_snapshot_part_init(&p, d, "b", 1, 0))
        return;
    for (int64_t i = 0; i < p.index.tensor.n; i++) {
        const fl_snapshot_tensor *t = &p.index.tensor.at[i];
        if (t->at < 0 || t->bytes < 0 || t->at + t->bytes > 256)
            abort(); /* it must lie in `data` */
    }
    fl_snapshot_part_fini(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fl_memdisk *m = fl_memdisk_new();
    const fl_disk *d = fl_memdisk_disk(m);
    const fl_part bytes = {data, size};
    fl_snapshot_job job;
    fl_str image = {0};
    write_folder(d, "b/snapshot-1/server-0", FL_SNAPSHOT_PART, "index", &bytes,
                 "data");
    write_folder(d, "b/snapshot-1", FL_SNAPSHOT_KIND, "job", &bytes,
                 "coordinator");
    read_part(d);
    if (!fl_snapshot_read(d, "b", 1, &job, &image) && job.servers < 1)
        abort();
    fl_str_fini(&image);
    fl_memdisk_free(m);
    return 0;
}
