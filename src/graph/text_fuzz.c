/* SPDX-License-Identifier: Apache-2.0 */
/* text_fuzz.c - any text as a program. What is read is written so that it
 * reads back the same. */
#include "graph/program.h"
#include "ops/ops.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fl_registry *r; /* made once; a fuzzer never ends */
    if (!r)
        must(!fl_registry_new(fl_ops_table, fl_ops_count, &r));
    fl_program *p = NULL, *q = NULL;
    char *text = fl_mem_alloc(size + 1);
    memcpy(text, data, size);
    const fl_err err = fl_program_parse(r, text, &p);
    fl_mem_free(text);
    if (err)
        return 0;
    char *once = fl_program_text(p);
    must(!fl_program_parse(r, once, &q));
    char *twice = fl_program_text(q);
    must(!strcmp(once, twice));
    fl_mem_free(once);
    fl_mem_free(twice);
    fl_program_free(p);
    fl_program_free(q);
    return 0;
}
