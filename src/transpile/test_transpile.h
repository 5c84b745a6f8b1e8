/* SPDX-License-Identifier: Apache-2.0 */
/* test_transpile.h - networks that are cut, and cuts as short texts. */
#ifndef FL_TRANSPILE_TEST_TRANSPILE_H
#define FL_TRANSPILE_TEST_TRANSPILE_H

#include "build/layer.h"
#include "build/optimizer.h"
#include "build/test_net.h"
#include "check/check.h"
#include "kernel/rule.h"
#include "transpile/transpile.h"

#define A "127.0.0.1:6174"
#define B "127.0.0.1:6175"

typedef struct scene {
    fl_net *net;
    fl_var *loss;
    fl_cut *cut;
} scene;

static inline void scene_begin(scene *s)
{
    *s = (scene){.net = fl_net_make(fl_check_registry())};
}

static inline void scene_end(scene *s)
{
    fl_cut_free(s->cut);
    fl_net_free(s->net);
}

/* x -> fc -> square_error_cost -> mean; the parameters are named `w` and `b`,
 * or as layers name them (NULL). */
static inline void scene_line(scene *s, int64_t in, int64_t out,
                              const fl_param_attr *w, const fl_param_attr *b)
{
    fl_net *n = s->net;
    fl_var *x = test_data(n, "x", FL_F32, 1, &in);
    fl_var *y = test_data(n, "y", FL_F32, 1, &out);
    fl_var *predict =
        TEST_LAYER(n, "fc", {"input", .var = x}, {"size", .i = out},
                   {"param_attr", .attr = w}, {"bias_attr", .attr = b});
    fl_var *cost = TEST_LAYER(n, "square_error_cost", {"input", .var = predict},
                              {"label", .var = y});
    s->loss = TEST_LAYER(n, "mean", {"x", .var = cost});
}

/* The network of Fluid's own transpiler tests. */
static inline void scene_fc(scene *s)
{
    scene_begin(s);
    scene_line(s, 1000, 1000, &(fl_param_attr){.name = "fc_w"},
               &(fl_param_attr){.name = "fc_b"});
}

static inline void scene_minimize(scene *s, const char *optimizer,
                                  const fl_arg *args)
{
    fl_optimizer *o;
    CHECK_OK(fl_optimizer_new(s->net, optimizer, args, &o));
    CHECK_OK(fl_optimizer_minimize(o, s->loss, NULL, NULL, NULL));
    fl_optimizer_free(o);
}

/* The optimiser of that row, with a value for each argument it requires. */
static inline void scene_minimize_by(scene *s, const fl_optimizer_def *def)
{
    const fl_arg args[] = {
        {"learning_rate", .f = 0.5},
        {fl_arg_known(def->args, "momentum") ? "momentum" : NULL, .f = 0.9},
        {0}};
    scene_minimize(s, def->op, args);
}

static inline const fl_rule *scene_rule_of(const fl_optimizer_def *def)
{
    return fl_registry_find(fl_check_registry(), def->op)->rule;
}

static inline void scene_cut(scene *s, const fl_transpile_opts *opts)
{
    CHECK_OK(fl_transpile(s->net->main, s->net->startup, opts, &s->cut));
    CHECK_OK(fl_program_verify(s->cut->trainer));
    CHECK_OK(fl_program_verify(s->cut->trainer_startup));
    for (int i = 0; i < s->cut->n_servers; i++) {
        CHECK_OK(fl_program_verify(s->cut->server[i]));
        CHECK_OK(fl_program_verify(s->cut->server_startup[i]));
    }
}

/* Two servers, two trainers that meet. */
static inline void scene_cut2(scene *s)
{
    scene_cut(s, &(fl_transpile_opts){.pservers = A "," B, .trainers = 2});
}

/* Texts live in the net's arena. */
static inline const char *scene_keep(scene *s, fl_str *text)
{
    const char *kept = fl_arena_strdup(s->net->arena, text->at ? text->at : "");
    fl_str_fini(text);
    return kept;
}

/* The types of a block's ops: "mul send". */
static inline const char *scene_types(scene *s, const fl_program *p, int block)
{
    const fl_block *b = fl_program_block(p, block);
    fl_str t = {0};
    for (int64_t i = 0; i < b->ops.n; i++)
        fl_str_printf(&t, "%s%s", i ? " " : "", b->ops.at[i]->desc.type);
    return scene_keep(s, &t);
}

static inline const char *scene_trainer(scene *s)
{
    return scene_types(s, s->cut->trainer, 0);
}

/* The blocks of a server but the first: "1/0: sum scale sgd\n". */
static inline const char *scene_blocks(scene *s, int server)
{
    const fl_program *p = s->cut->server[server];
    fl_str t = {0};
    CHECK_STR(scene_types(s, p, 0), "listen_and_serv");
    for (int i = 1; i < p->blocks.n; i++)
        fl_str_printf(&t, "%d/%d: %s\n", i, p->blocks.at[i]->parent,
                      scene_types(s, p, i));
    return scene_keep(s, &t);
}

/* "w.block0[500,1000] learning_rate_0[1]": persistable or not. */
static inline const char *scene_vars(scene *s, const fl_program *p,
                                     bool persistable)
{
    const fl_block *b = fl_program_block(p, 0);
    fl_str t = {0};
    for (fl_entry *e = NULL; (e = fl_map_next(&b->vars, e));) {
        const fl_var *v = e->value;
        if (v->persistable == persistable)
            fl_str_printf(&t, "%s%s%s", t.n ? " " : "", v->name,
                          test_shape(s->net, v));
    }
    return scene_keep(s, &t);
}

/* What a startup program starts: "fill_constant b[4]". */
static inline const char *scene_starts(scene *s, const fl_program *p)
{
    const fl_block *b = fl_program_block(p, 0);
    fl_str t = {0};
    for (int64_t i = 0; i < b->ops.n; i++) {
        const fl_desc *d = &b->ops.at[i]->desc;
        const fl_attr *offset = fl_desc_attr(d, "offset");
        fl_str_printf(&t, "%s%s %s", i ? ", " : "", d->type, d->out[0].name[0]);
        if (offset && offset->i)
            fl_str_printf(&t, "+%lld", (long long)offset->i);
    }
    return scene_keep(s, &t);
}

/* Lines of a program's brief text that contain a word. */
static inline const char *scene_lines(scene *s, const fl_program *p,
                                      const char *word)
{
    char *text = fl_program_brief(p);
    fl_str t = {0};
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (strstr(line, word))
            fl_str_printf(&t, "%s\n", line + 2);
    }
    fl_free(text);
    return scene_keep(s, &t);
}

static inline const char *scene_brief(scene *s, const fl_program *p)
{
    char *text = fl_program_brief(p);
    const char *kept = fl_arena_strdup(s->net->arena, text);
    fl_free(text);
    return kept;
}

/* Which servers hold what: "b:0 w.block0:1". */
static inline const char *scene_places(scene *s)
{
    fl_str t = {0};
    for (int64_t i = 0; i < s->cut->shares.n; i++) {
        const fl_share *share = s->cut->shares.at[i];
        for (int k = 0; k < share->n; k++)
            fl_str_printf(&t, "%s%s:%d", t.n ? " " : "", share->slice[k].param,
                          share->slice[k].server);
    }
    return scene_keep(s, &t);
}

static const fl_arg scene_rate[] = {{"learning_rate", .f = 0.5}, {0}};

#endif
