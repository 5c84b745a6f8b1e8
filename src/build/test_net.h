/* SPDX-License-Identifier: Apache-2.0 */
/* test_net.h - networks as short texts, for build/'s tests.
 *
 *     mul(X=x Y=fc_0.w_0) Out=fc_0.tmp_0
 *
 * One line for each op; attributes are asked for one by one. */
#ifndef FL_BUILD_TEST_NET_H
#define FL_BUILD_TEST_NET_H

#include "base/str.h"
#include "base/test.h"
#include "build/net.h"

static inline void test_add_args(fl_str *s, const fl_args *args, int n)
{
    for (int i = 0; i < n; i++) {
        fl_str_printf(s, "%s%s=", i ? " " : "", args[i].slot);
        for (int j = 0; j < args[i].n; j++)
            fl_str_printf(s, "%s%s", j ? "," : "", args[i].name[j]);
    }
}

/* The ops of a block; the text lives in the net's arena. */
static inline const char *test_ops_text(fl_net *n, const fl_program *p,
                                        int block)
{
    fl_str s = {0};
    const fl_block *b = fl_program_block(p, block);
    CHECK_OK(fl_program_verify(p));
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        fl_str_printf(&s, "%s%s(", i ? "\n" : "", d->type);
        test_add_args(&s, d->in, d->n_in);
        fl_str_add(&s, ") ");
        test_add_args(&s, d->out, d->n_out);
    }
    const char *text = fl_arena_strdup(n->arena, s.at ? s.at : "");
    fl_str_fini(&s);
    return text;
}

static inline const char *test_main_text(fl_net *n)
{
    return test_ops_text(n, n->main, 0);
}

static inline const char *test_startup_text(fl_net *n)
{
    return test_ops_text(n, n->startup, 0);
}

/* An attribute of op `i` of the global block; -1 is the last. */
static inline const fl_attr *test_attr(const fl_program *p, int64_t i,
                                       const char *name)
{
    const fl_block *b = fl_program_block(p, 0);
    CHECK(b->ops.n > 0);
    const fl_attr *a =
        fl_desc_attr(&b->ops.at[i < 0 ? b->ops.n + i : i]->desc, name);
    CHECK(a != NULL);
    return a;
}

static inline fl_var *test_find(const fl_program *p, const char *name)
{
    fl_var *v = NULL;
    CHECK_OK(fl_block_get(fl_program_block(p, 0), name, &v));
    return v;
}

static inline const char *test_shape(fl_net *n, const fl_var *v)
{
    return fl_shape_text(&v->shape,
                         fl_arena_alloc(n->arena, (size_t)FL_SHAPE_TEXT));
}

/* A data variable; the batch's dimension is put in front. */
static inline fl_var *test_data(fl_net *n, const char *name, fl_dtype dtype,
                                int rank, const int64_t *dim)
{
    fl_var *v = fl_layer(n, "data",
                         (fl_arg[]){{"name", .s = name},
                                    {"shape", .n = rank, .ints = dim},
                                    {"dtype", .i = dtype},
                                    {0}});
    CHECK_OK(fl_net_error(n));
    return v;
}

/* A layer that must succeed. */
#define TEST_LAYER(net, name, ...)                                             \
    test_layer(net, name, (fl_arg[]){__VA_ARGS__, {0}})

static inline fl_var *test_layer(fl_net *n, const char *name,
                                 const fl_arg *args)
{
    fl_var *v = NULL;
    v = fl_layer(n, name, args);
    CHECK_OK(fl_net_error(n));
    CHECK(v != NULL);
    return v;
}

#endif
