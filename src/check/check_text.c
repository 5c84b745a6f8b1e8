/* SPDX-License-Identifier: Apache-2.0 */
/* check_text.c - the shape rule alone, from a line of text. */
#include "check/check.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST = 16 /* metas of a side */
};

typedef struct reader {
    const char *at;
    fl_arena *arena;
    fl_desc *desc;
    fl_meta in[MOST], out[MOST];
    const fl_meta *in_at[FL_SLOTS][MOST];
    fl_meta *out_at[FL_SLOTS][MOST];
    int n;
} reader;

static char *word(reader *r, const char *stop)
{
    size_t n = strcspn(r->at, stop);
    char *w = fl_arena_dup(r->arena, r->at, n + 1);
    w[n] = 0;
    r->at += n;
    return w;
}

static bool skip_char(reader *r, char c)
{
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* [1,2,3], also [] */
static int64_t *list(reader *r, int *n)
{
    int64_t *v = fl_arena_alloc(r->arena, 32 * sizeof *v);
    *n = 0;
    CHECK(skip_char(r, '['));
    while (!skip_char(r, ']')) {
        char *end;
        v[(*n)++] = strtoll(r->at, &end, 10);
        r->at = end;
        skip_char(r, ',');
    }
    return v;
}

static void read_attr(reader *r)
{
    fl_attr a = {.name = word(r, "=")};
    CHECK(skip_char(r, '='));
    if (*r->at == '[') {
        a.type = FL_ATTR_LONGS;
        a.longs = list(r, &a.n);
    } else if (skip_char(r, '"')) {
        a.type = FL_ATTR_STRING;
        a.s = word(r, "\"");
        skip_char(r, '"');
    } else {
        const char *w = word(r, ",}");
        a.type = isalpha((unsigned char)*w) ? FL_ATTR_BOOL
                 : strchr(w, '.')           ? FL_ATTR_FLOAT
                                            : FL_ATTR_LONG;
        if (a.type == FL_ATTR_BOOL)
            a.b = !strcmp(w, "true");
        else if (a.type == FL_ATTR_FLOAT)
            a.f = strtof(w, NULL);
        else
            a.i = strtoll(w, NULL, 10);
    }
    fl_desc_set_attr(r->desc, &a);
    skip_char(r, ',');
}

/* X=f32[-1,8]/1 or X=rows:f32[9,8] */
static void read_meta(reader *r)
{
    fl_meta *m = &r->in[r->n++];
    const char *slot = word(r, "=");
    r->at++;
    *m = (fl_meta){.kind = FL_LOD_TENSOR};
    if (fl_starts_with(r->at, "rows:")) {
        m->kind = FL_SELECTED_ROWS;
        r->at += 5;
    }
    CHECK(fl_dtype_find(word(r, "["), &m->dtype));
    int64_t *dim = list(r, &m->shape.rank);
    memcpy(m->shape.dim, dim, (size_t)m->shape.rank * sizeof *dim);
    if (skip_char(r, '/'))
        m->lod_level = atoi(word(r, " "));

    const fl_args *old = fl_desc_in(r->desc, slot);
    int n = old ? old->n : 0;
    const char *name[MOST];
    for (int i = 0; i <= n; i++)
        name[i] = "x";
    fl_desc_set_in(r->desc, slot, n + 1, name);
    /* A slot that the table does not have is refused by the check. */
    const fl_op_def *def;
    int s = fl_registry_get(fl_check_registry(), r->desc->type, &def)
                ? -1
                : fl_op_slot_in(def, slot);
    if (s >= 0)
        r->in_at[s][n] = m;
}

static void read_all(reader *r, const char *op)
{
    r->at = op;
    r->desc = fl_desc_new(r->arena, word(r, " {"));
    if (skip_char(r, '{'))
        while (!skip_char(r, '}'))
            read_attr(r);
    while (skip_char(r, ' '))
        read_meta(r);
}

static fl_err infer(reader *r, const fl_op_def **def)
{
    fl_infer x = {0};
    FL_TRY(fl_registry_get(fl_check_registry(), r->desc->type, def));
    for (int s = 0; s < FL_SLOTS && (*def)->out[s].name; s++)
        fl_desc_set_out1(r->desc, (*def)->out[s].name, "y");
    FL_TRY(fl_desc_check(*def, r->desc, false));
    FL_TRY(fl_desc_attrs(*def, r->desc, r->arena, &x.attr));
    x.def = *def;
    for (int s = 0; s < FL_SLOTS; s++) {
        x.in[s] = r->in_at[s];
        for (x.n_in[s] = 0; r->in_at[s][x.n_in[s]];)
            x.n_in[s]++;
        x.out[s] = r->out_at[s];
        bool many = (*def)->out[s].flags & FL_MANY;
        x.n_out[s] = !(*def)->out[s].name ? 0 : many ? 2 : 1;
        for (int i = 0; i < x.n_out[s]; i++)
            r->out_at[s][i] = fl_arena_alloc(r->arena, sizeof(fl_meta));
    }
    return fl_infer_run(&x);
}

static void write_meta(fl_str *to, const char *slot, const fl_meta *m)
{
    char shape[FL_SHAPE_TEXT];
    if (!m || !m->kind)
        return;
    fl_str_printf(to, "%s%s=%s%s%s", to->n ? " " : "", slot,
                  m->kind == FL_SELECTED_ROWS ? "rows:" : "",
                  fl_dtype_name(m->dtype), fl_shape_text(&m->shape, shape));
    if (m->lod_level)
        fl_str_printf(to, "/%d", m->lod_level);
}

const char *fl_infer_text(const char *op)
{
    static char text[1024];
    reader r = {.arena = fl_arena_new()};
    const fl_op_def *def;
    fl_str s = {0};
    read_all(&r, op);
    CHECK_OK(infer(&r, &def));
    for (int i = 0; i < FL_SLOTS && def->out[i].name; i++)
        for (int j = 0; j < MOST && r.out_at[i][j]; j++)
            write_meta(&s, def->out[i].name, r.out_at[i][j]);
    snprintf(text, sizeof text, "%s", s.at ? s.at : "");
    fl_str_fini(&s);
    fl_arena_free(r.arena);
    return text;
}

fl_err fl_infer_try(const char *op)
{
    reader r = {.arena = fl_arena_new()};
    const fl_op_def *def;
    read_all(&r, op);
    fl_err err = infer(&r, &def);
    fl_arena_free(r.arena);
    return err;
}
