/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - creates and frees a network under construction, and appends ops to
 * it.
 *
 * Every op gets the attributes that Fluid sets: role, role vars and name
 * scope. Attributes that the op already has are kept. */
#include "build/net.h"

#include <stdio.h>

fl_net *fl_net_over(fl_program *main, fl_program *startup, fl_names *names)
{
    fl_net *n = fl_mem_alloc(sizeof *n);
    n->main = main;
    n->startup = startup;
    n->names = names;
    n->arena = fl_arena_new();
    return n;
}

fl_net *fl_net_make(const fl_registry *r)
{
    fl_net *n =
        fl_net_over(fl_program_make(r), fl_program_make(r), fl_names_new(NULL));
    n->owns = n->owns_names = true;
    return n;
}

void fl_net_free(fl_net *n)
{
    if (!n)
        return;
    if (n->owns) {
        fl_program_free(n->main);
        fl_program_free(n->startup);
    }
    if (n->owns_names)
        fl_names_free(n->names);
    fl_arena_free(n->arena);
    fl_mem_free(n);
}

fl_err fl_net_fail(fl_net *n, fl_err err)
{
    if (err && !n->err) {
        n->err = err;
        snprintf(n->sentence, sizeof n->sentence, "%s", fl_errmsg());
    }
    return err;
}

fl_err fl_net_error(const fl_net *n)
{
    return n->err ? fl_fail(n->err, "%s", n->sentence) : FL_OK;
}

fl_block *fl_net_block(const fl_net *n)
{
    return fl_program_block(n->main, n->block);
}

fl_desc *fl_net_desc(fl_net *n, const char *type)
{
    return fl_desc_new(n->arena, type);
}

fl_net_state fl_net_look(const fl_net *n)
{
    return (fl_net_state){
        .main = n->main,
        .startup = n->startup,
        .names = n->names,
        .block = n->block,
        .role = n->role,
        .role_var = {n->role_var[0], n->role_var[1]},
        .scope = n->scope,
        .n_callstack = n->n_callstack,
        .callstack = n->callstack,
    };
}

void fl_net_set(fl_net *n, const fl_net_state *s)
{
    n->main = s->main;
    n->startup = s->startup;
    n->names = s->names;
    n->block = s->block;
    n->role = s->role;
    n->role_var[0] = s->role_var[0];
    n->role_var[1] = s->role_var[1];
    n->scope = s->scope;
    n->n_callstack = s->n_callstack;
    n->callstack = s->callstack;
}

static void set_if_absent(fl_desc *d, const fl_attr *attr)
{
    if (!fl_desc_attr(d, attr->name))
        fl_desc_set_attr(d, attr);
}

static void stamp_op(const fl_net *n, fl_desc *d, int role)
{
    set_if_absent(d, &(fl_attr){"op_role", FL_ATTR_INT, .i = role});
    set_if_absent(d, &(fl_attr){"op_namescope", FL_ATTR_STRING,
                                .s = n->scope ? n->scope : "/"});
    if (n->n_callstack)
        set_if_absent(d,
                      &(fl_attr){"op_callstack", FL_ATTR_STRINGS,
                                 .n = n->n_callstack, .strings = n->callstack});
}

static void stamp_all(const fl_net *n, fl_desc *d)
{
    stamp_op(n, d, n->role);
    if (n->role_var[0])
        set_if_absent(d, &(fl_attr){"op_role_var", FL_ATTR_STRINGS,
                                    .n = n->role_var[1] ? 2 : 1,
                                    .strings = n->role_var});
}

fl_err fl_net_insert(fl_net *n, int64_t at, fl_desc *d)
{
    stamp_all(n, d);
    return fl_block_insert_op(fl_net_block(n), at, d, NULL);
}

fl_err fl_net_add_op(fl_net *n, fl_block *b, int64_t at, const fl_desc *desc,
                     fl_op **out)
{
    fl_desc *d = fl_desc_dup(n->arena, desc);
    stamp_all(n, d);
    return fl_block_insert_op(b, at, d, out);
}

fl_err fl_net_append(fl_net *n, fl_desc *d)
{
    return fl_net_insert(n, -1, d);
}

fl_err fl_net_start(fl_net *n, int64_t at, fl_desc *d)
{
    stamp_op(n, d, FL_ROLE_FORWARD);
    return fl_block_insert_op(fl_program_block(n->startup, 0), at, d, NULL);
}

fl_err fl_net_tmp(fl_net *n, const char *layer, fl_dtype dtype, fl_var **out)
{
    const char *key = fl_arena_printf(n->arena, "%s.tmp", layer);
    return fl_block_add_var(
        fl_net_block(n),
        &(fl_var){.name = fl_names_generate(n->names, n->arena, key),
                  .dtype = dtype},
        out);
}
