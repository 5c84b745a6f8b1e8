/* SPDX-License-Identifier: Apache-2.0 */
/* program_fuzz.c - any bytes as a program file. What is read must survive
 * being written and read again, as bytes and as text, and being pruned. */
#include "base/str.h"
#include "graph/program.h"
#include "ops/ops.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check_bytes(const fl_program *p)
{
    void *once = NULL, *twice = NULL;
    size_t n = 0, m = 0;
    fl_program *q = NULL;
    must(!fl_program_encode(p, &once, &n));
    must(!fl_program_decode(p->registry, "again", once, n, &q));
    must(!fl_program_encode(q, &twice, &m));
    must(n == m && !memcmp(once, twice, n));
    fl_program_free(q);
    fl_mem_free(once);
    fl_mem_free(twice);
}

static void check_text(const fl_program *p)
{
    fl_program *q = NULL;
    char *once = fl_program_text(p);
    must(!fl_program_parse(p->registry, once, &q));
    char *twice = fl_program_text(q);
    must(!strcmp(once, twice));
    fl_program_free(q);
    fl_mem_free(once);
    fl_mem_free(twice);
}

static void check_prune(const fl_program *p)
{
    const fl_block *b = p->blocks.at[0];
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));) {
        fl_program *q = NULL;
        if (!fl_program_prune(p, 1, &e->key, &q))
            must(!fl_program_verify(q));
        fl_program_free(q);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fl_registry *r; /* made once; a fuzzer never ends */
    if (!r)
        must(!fl_registry_new(fl_ops_table, fl_ops_count, &r));
    fl_program *p = NULL;
    if (fl_program_decode(r, "fuzz", data, size, &p))
        return 0;
    check_bytes(p);
    check_text(p);
    check_prune(p);
    fl_program_free(p);
    return 0;
}
