/* SPDX-License-Identifier: Apache-2.0 */
/* test_minimize.h - small networks, and the ops that minimize adds to them. */
#ifndef FL_BUILD_TEST_MINIMIZE_H
#define FL_BUILD_TEST_MINIMIZE_H

#include "build/layer.h"
#include "build/optimizer.h"
#include "build/test_net.h"
#include "check/check.h"

#include <stdio.h>

typedef struct scene {
    fl_net *net;
    fl_optimizer *opt;
    fl_var *loss;
    fl_param_grads grads;
    fl_ops ops;
} scene;

static inline fl_var *layer(fl_net *n, const char *name, const fl_arg *args)
{
    fl_var *v = fl_layer(n, name, args);
    if (!v)
        CHECK_OK(fl_net_error(n));
    return v;
}

static inline fl_var *data(fl_net *n, const char *name, int64_t width)
{
    return layer(n, "data",
                 (fl_arg[]){{"name", .s = name}, {"shape", .i = width}, {0}});
}

/* fit a line; `attr` is the weight's. */
static inline void begin(scene *s, const fl_param_attr *attr)
{
    *s = (scene){.net = fl_net_make(fl_check_registry())};
    fl_net *n = s->net;
    fl_var *x = data(n, "x", 13), *y = data(n, "y", 1);
    fl_var *predict = layer(n, "fc",
                            (fl_arg[]){{"input", .var = x},
                                       {"size", .i = 1},
                                       {"param_attr", .attr = attr},
                                       {0}});
    fl_var *cost =
        layer(n, "square_error_cost",
              (fl_arg[]){{"input", .var = predict}, {"label", .var = y}, {0}});
    s->loss = layer(n, "mean", (fl_arg[]){{"x", .var = cost}, {0}});
}

static inline fl_err try(scene *s, const char *name, const fl_arg *args)
{
    FL_TRY(fl_optimizer_new(s->net, name, args, &s->opt));
    return fl_optimizer_minimize(s->opt, s->loss, NULL, &s->grads, &s->ops);
}

static inline void end(scene *s)
{
    CHECK_OK(fl_program_verify(s->net->main));
    CHECK_OK(fl_program_verify(s->net->startup));
    fl_optimizer_free(s->opt);
    fl_vec_fini(&s->grads);
    fl_vec_fini(&s->ops);
    fl_net_free(s->net);
}

/* Lines of a program's brief text that contain a word, in the net's arena. */
static inline const char *lines(fl_net *n, const fl_program *p,
                                const char *word)
{
    char *text = fl_program_brief(p);
    char *out = fl_arena_alloc(n->arena, strlen(text) + 1), *to = out;
    for (char *line = text, *next; *line; line = next) {
        next = strchr(line, '\n') + 1;
        const char old = *next;
        *next = 0;
        if (strstr(line, word))
            to = stpcpy(to, line + 2);
        *next = old;
    }
    fl_mem_free(text);
    return out;
}

/* The update ops as types: "adam adam scale scale". */
static inline const char *types(scene *s)
{
    char *text = fl_arena_alloc(s->net->arena, 1024), *to = text;
    for (int64_t i = 0; i < s->ops.n; i++)
        to += sprintf(to, "%s%s", i ? " " : "", s->ops.at[i]->desc.type);
    return text;
}

/* What startup fills, in its order: "b=0 learning_rate_0=0.5". */
static inline const char *starts(scene *s)
{
    const fl_ops *ops = &fl_program_block(s->net->startup, 0)->ops;
    char *text = fl_arena_alloc(s->net->arena, 1024), *to = text;
    for (int64_t i = 0; i < ops->n; i++) {
        const fl_desc *d = &ops->at[i]->desc;
        if (strcmp(d->type, "fill_constant"))
            continue;
        to += sprintf(to, "%s%s=%g", to == text ? "" : " ",
                      fl_desc_out1(d, "Out"),
                      (double)fl_desc_attr(d, "value")->f);
    }
    return text;
}

/* Ops of the bias. Those of the weight differ only in names. */
static inline const char *bias_ops(scene *s)
{
    return lines(s->net, s->net->main, "op_role=2, op_role_var=[\"fc_0.b_0\"");
}

/* Without attributes. */
static inline char *shortened(scene *s, const char *text)
{
    char *out = fl_arena_strdup(s->net->arena, text), *to = out;
    for (const char *at = out; *at; at++) {
        if (!strncmp(at, " {", 2))
            at = strchr(at, '\n');
        *to++ = *at;
    }
    *to = 0;
    return out;
}

/* Two lookups in one table, summed up. */
static inline void begin_sparse(scene *s)
{
    *s = (scene){.net = fl_net_make(fl_check_registry())};
    fl_net *n = s->net;
    fl_var *out[2];
    for (int i = 0; i < 2; i++) {
        fl_var *ids = layer(n, "data",
                            (fl_arg[]){{"name", .s = i ? "b" : "a"},
                                       {"shape", .i = 1},
                                       {"dtype", .i = FL_I64},
                                       {0}});
        out[i] = layer(
            n, "embedding",
            (fl_arg[]){{"input", .var = ids},
                       {"size", .n = 2, .ints = (int64_t[]){10, 4}},
                       {"is_sparse", .b = true},
                       {"param_attr", .attr = &(fl_param_attr){.name = "emb"}},
                       {0}});
    }
    fl_var *sum =
        layer(n, "sums", (fl_arg[]){{"input", .n = 2, .vars = out}, {0}});
    s->loss = layer(n, "mean", (fl_arg[]){{"x", .var = sum}, {0}});
}

static const fl_arg rate[] = {{"learning_rate", .f = 0.5}, {0}};

#endif
