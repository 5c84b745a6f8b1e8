/* SPDX-License-Identifier: Apache-2.0 */
/* test_exec.h - a program from text, a scope, an executor. Tests only. */
#ifndef FL_EXEC_TEST_EXEC_H
#define FL_EXEC_TEST_EXEC_H

#include "base/test.h"
#include "check/check.h"
#include "exec/exe.h"

typedef struct rig {
    fl_entropy entropy;
    fl_program *program;
    fl_scope *scope;
    fl_exe *exe;
} rig;

static inline void rig_init(rig *r, const char *text, bool no_fuse)
{
    *r = (rig){.entropy = fl_entropy_fake(1), .scope = fl_scope_new()};
    r->exe = fl_exe_make(&(fl_exec_env){.registry = fl_check_registry(),
                                        .disk = fl_disk_real(),
                                        .entropy = &r->entropy,
                                        .no_fuse = no_fuse});
    CHECK_OK(fl_program_parse(fl_check_registry(), text, &r->program));
}

static inline void rig_fini(rig *r)
{
    fl_exe_free(r->exe);
    fl_scope_free(r->scope);
    fl_program_free(r->program);
}

/* A feed of n x m floats. */
static inline fl_feed rig_feed(const char *name, int64_t n, int64_t m,
                               const float *x)
{
    fl_shape s = {2, {n, m}};
    return (fl_feed){name, fl_tensor_view(FL_F32, &s, x)};
}

/* Put a parameter into the scope. */
static inline void rig_set(rig *r, const char *name, fl_shape shape,
                           const float *x)
{
    fl_tensor t = fl_tensor_view(FL_F32, &shape, x);
    fl_value *v = fl_scope_var(r->scope, name);
    v->kind = FL_LOD_TENSOR;
    CHECK_OK(fl_tensor_copy(&v->tensor, &t));
}

#endif
