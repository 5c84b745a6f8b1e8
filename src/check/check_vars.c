/* SPDX-License-Identifier: Apache-2.0 */
/* check_vars.c - variables by name, and operators run on them. */
#include "check/check.h"

#include "op/frame.h"

#include <string.h>

static uint64_t fixed_entropy(fl_call *c)
{
    return 12345;
}

void fl_vars_init(fl_vars *v)
{
    *v = (fl_vars){.arena = fl_arena_new(), .hooks.entropy = fixed_entropy};
    v->hooks.workspace = &v->workspace;
}

void fl_vars_fini(fl_vars *v)
{
    for (fl_entry *e = NULL; (e = fl_map_next(&v->values, e));)
        fl_value_fini(e->value);
    fl_map_fini(&v->values);
    fl_mem_free(v->workspace.data);
    fl_arena_free(v->arena);
}

fl_value *fl_vars_get(fl_vars *v, const char *name)
{
    fl_value *x = fl_map_get(&v->values, name);
    if (!x) {
        x = fl_arena_alloc(v->arena, sizeof *x);
        fl_map_put(&v->values, fl_arena_strdup(v->arena, name), x);
    }
    return x;
}

fl_tensor *fl_vars_set(fl_vars *v, const char *name, int64_t n,
                       const float *elements)
{
    fl_value *x = fl_vars_get(v, name);
    fl_shape s = {1, {n}};
    x->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_resize(&x->tensor, FL_F32, &s));
    memcpy(x->tensor.data, elements, (size_t)n * sizeof *elements);
    return &x->tensor;
}

static fl_value *resolve(void *self, const char *name)
{
    return fl_vars_get(self, name);
}

static fl_err run(fl_vars *v, const fl_op_def *def, fl_desc *d, fl_frame *f)
{
    FL_TRY(fl_desc_check(def, d, false));
    FL_TRY(
        fl_frame_init(f, v->arena, def, d, &v->hooks, v->runner, resolve, v));
    FL_TRY(fl_frame_prepare(f));
    return fl_frame_run(f);
}

fl_err fl_vars_run(fl_vars *v, fl_desc *d)
{
    const fl_op_def *def;
    fl_frame f = {0};
    FL_TRY(fl_registry_get(fl_check_registry(), d->type, &def));
    fl_err err = run(v, def, d, &f);
    fl_frame_fini(&f);
    return err;
}
